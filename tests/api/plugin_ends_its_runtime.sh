#!/bin/sh
# SPDX-License-Identifier: MIT
# Goal: a stalled task is named while a thread holds the loader's lock, and a
# runtime ends meanwhile: dlclose(3) holds it for as long as destructors run.
# Method: a plugin whose destructor awaits the message about a task, lets the
# task go on and destroys the runtime. W46.
# shellcheck disable=SC2154 # tests/run sets top_srcdir and its like
set -eu

cat >"$TMPDIR/plugin.c" <<'END'
extern void end_runtime(void);
__attribute__((destructor)) static void end(void)
{
	end_runtime();
}
END

cat >"$TMPDIR/program.c" <<'END'
#include <dlfcn.h>
#include <pinion/pinion.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT_S = 60 };

void end_runtime(void);

static struct pinion_runtime *runtime;
static struct pinion_call call;
static int is_named; /* atomic */
static int has_ended;

static void pause_shortly(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void note(void *arg, enum pinion_log_level level, const char *message)
{
	(void)arg;
	if (level == PINION_LOG_WARN && strstr(message, "without progress") != NULL) {
		__atomic_store_n(&is_named, 1, __ATOMIC_RELEASE);
	}
}

static int wait_until_named(void *arg)
{
	(void)arg;
	while (__atomic_load_n(&is_named, __ATOMIC_ACQUIRE) == 0) {
		pause_shortly();
	}
	return 0;
}

void end_runtime(void)
{
	if (pinion_call_start(runtime, &call) == 0) {
		pinion_future_wait(&call.done, UINT64_MAX);
	}
	pinion_runtime_destroy(runtime);
	has_ended = 1;
}

int main(int argc, char **argv)
{
	struct pinion_config config;
	void *plugin;

	(void)argc;
	alarm(LIMIT_S); /* if it hangs */
	call.run = wait_until_named;
	pinion_config_init(&config);
	config.worker_count = 1;
	config.log = note;
	if (pinion_runtime_create(&config, &runtime) != 0) {
		puts("no runtime");
		return 1;
	}
	plugin = dlopen(argv[1], RTLD_NOW);
	if (plugin == NULL) {
		puts(dlerror());
		return 1;
	}
	dlclose(plugin);
	return has_ended ? 0 : 1;
}
END

# shellcheck disable=SC2086 # several words
$CC ${SANITIZER_CFLAGS-} -std=gnu11 -Wall -Wextra -Werror -shared -fPIC \
	-o "$TMPDIR/plugin.so" "$TMPDIR/plugin.c"
# shellcheck disable=SC2086 # several words
$CC ${SANITIZER_CFLAGS-} -std=gnu11 -Wall -Wextra -Werror -I"$top_srcdir/include" -rdynamic \
	-o "$TMPDIR/program" "$TMPDIR/program.c" .libs/libpinion.so -Wl,-rpath,"$PWD/.libs" -pthread -ldl
"$TMPDIR/program" "$TMPDIR/plugin.so" || {
	echo "a plugin's destructor that ends the runtime: status $?"
	exit 1
}
