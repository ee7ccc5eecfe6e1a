#!/bin/sh
# SPDX-License-Identifier: MIT
# Goal: a program may load the shared library late and close it while a runtime
# lives: the workers go on, and the next dlopen() finds the same library. Eight
# copies in namespaces of their own load beside each other and run a runtime
# each.
# Method: a program that is not linked with the library, and calls it by dlsym().
# shellcheck disable=SC2154 # tests/run sets top_srcdir and its like
set -eu

cat >"$TMPDIR/late.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pinion/pinion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT_S = 30 };

struct library {
	void *handle;
	struct pinion_runtime *runtime;
	struct pinion_task task;
	int runs; /* atomic */
	int is_over;
	int (*respawn)(struct pinion_runtime *, struct pinion_task *);
};

static void fail(const char *what, const char *why)
{
	printf("%s: %s\n", what, why);
	exit(1);
}

static void *find(const struct library *library, const char *name)
{
	void *symbol = dlsym(library->handle, name);

	if (symbol == NULL) {
		fail(name, dlerror());
	}
	return symbol;
}

static int run(struct pinion_task *task)
{
	struct library *library =
		(struct library *)(void *)((char *)task - offsetof(struct library, task));

	__atomic_add_fetch(&library->runs, 1, __ATOMIC_RELAXED);
	if (__atomic_load_n(&library->is_over, __ATOMIC_RELAXED) == 0) {
		library->respawn(library->runtime, task);
	}
	return 0;
}

/* A runtime with one task that spawns itself again. */
static void begin(struct library *library)
{
	void (*config_init)(struct pinion_config *, uint32_t) =
		find(library, "pinion_config_init_sized");
	int (*create)(const struct pinion_config *, struct pinion_runtime **) =
		find(library, "pinion_runtime_create");
	int (*spawn)(struct pinion_runtime *, struct pinion_task *) = find(library, "pinion_task_spawn");
	struct pinion_config config;
	int rc;

	library->respawn = find(library, "pinion_task_respawn");
	config_init(&config, sizeof(config));
	config.worker_count = 1;
	config.buffer_count = 4;
	rc = create(&config, &library->runtime);
	if (rc != 0) {
		fail("create", strerror(-rc));
	}
	library->task = (struct pinion_task){.run = run};
	rc = spawn(library->runtime, &library->task);
	if (rc != 0) {
		fail("spawn", strerror(-rc));
	}
}

/* Waits until the task has run once more. */
static void await(struct library *library)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	int before = __atomic_load_n(&library->runs, __ATOMIC_RELAXED);

	for (int i = 0; i < LIMIT_S * 1000; i++) {
		if (__atomic_load_n(&library->runs, __ATOMIC_RELAXED) != before) {
			return;
		}
		nanosleep(&pause, NULL);
	}
	fail("runtime", "its task does not run any more");
}

static void end(struct library *library)
{
	void (*destroy)(struct pinion_runtime *) = find(library, "pinion_runtime_destroy");
	int (*drain)(struct pinion_runtime *) = find(library, "pinion_runtime_drain");

	__atomic_store_n(&library->is_over, 1, __ATOMIC_RELAXED);
	if (drain(library->runtime) != 0) {
		fail("drain", "refused");
	}
	destroy(library->runtime);
}

static void close_with_live_runtime(const char *path)
{
	struct library library = {.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL)};

	if (library.handle == NULL) {
		fail("dlopen", dlerror());
	}
	begin(&library);
	await(&library);
	if (dlclose(library.handle) != 0) {
		fail("dlclose", dlerror());
	}
	await(&library);
	library.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
	if (library.handle == NULL) {
		fail("dlopen", "the library is gone after dlclose()");
	}
	end(&library);
	dlclose(library.handle);
}

static void load_copies(const char *path, int count)
{
	static struct library libraries[8];

	for (int i = 0; i < count; i++) {
		libraries[i].handle = dlmopen(LM_ID_NEWLM, path, RTLD_NOW | RTLD_LOCAL);
		if (libraries[i].handle == NULL) {
			printf("copy %d of %d: %s\n", i + 1, count, dlerror());
			exit(1);
		}
	}
	for (int i = 0; i < count; i++) {
		begin(&libraries[i]);
	}
	for (int i = 0; i < count; i++) {
		await(&libraries[i]);
	}
	for (int i = 0; i < count; i++) {
		end(&libraries[i]);
		dlclose(libraries[i].handle);
	}
}

static void *rest(void *arg)
{
	for (;;) {
		pause();
	}
	return arg;
}

/*
 * Threads of the copies are made by their own copies of the C library, and all
 * take the loader's lock with the program's, which takes it without atomic
 * operations as long as it has made no thread itself: a waiter may then wait
 * for ever.
 */
static void make_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, rest, NULL) != 0) {
		fail("thread", "cannot be made");
	}
}

int main(int argc, char **argv)
{
	int count = argc > 2 ? atoi(argv[2]) : 0;

	make_thread();
	if (count == 0) {
		close_with_live_runtime(argv[1]);
	} else {
		load_copies(argv[1], count);
	}
	return 0;
}
END

# shellcheck disable=SC2086 # several words
$CC ${SANITIZER_CFLAGS-} -std=gnu11 -Wall -Wextra -Werror -I"$top_srcdir/include" \
	-o "$TMPDIR/late" "$TMPDIR/late.c" -pthread -ldl
library=$PWD/.libs/libpinion.so
"$TMPDIR/late" "$library" || {
	echo "dlclose() with a live runtime: status $?"
	exit 1
}
# Sanitizers know nothing of further namespaces.
[ -z "${SANITIZER_CFLAGS-}" ] || exit 0
"$TMPDIR/late" "$library" 8 || {
	echo "eight copies do not run beside each other: status $?"
	exit 1
}
bytes=$(readelf -lW "$library" | awk '$1 == "TLS" { print $6 }')
if [ $((bytes)) -gt 56 ]; then
	echo "the library has $((bytes)) bytes of thread-local variables, 56 at most leave room for eight copies"
	exit 1
fi
