#!/bin/sh
# SPDX-License-Identifier: MIT
# Goal: a C++ exception that a task lets out ends that task and nothing else,
# with the destructors it passed, and the exception itself, done; the next task
# on that thread may throw and catch as ever. With either library. C14, WP-36.
# Method: a C++ program whose tasks throw on one worker, then check the state
# that is left there. shellcheck disable=SC2154 # tests/run sets top_srcdir and
# its like
set -eu

cat >"$TMPDIR/throws.cc" <<'END'
#include <cstdio>
#include <cstring>
#include <exception>
#include <pinion/pinion.h>
#include <pthread.h>
#include <stdexcept>

enum { ROUNDS = 100 };

static int destroyed;
static int exceptions;
static int caught;
static int left_over;

struct guard {
	~guard() { destroyed++; }
};

struct failure : std::runtime_error {
	failure() : std::runtime_error("failure") { exceptions++; }
	failure(const failure &other) : std::runtime_error(other) { exceptions++; }
	~failure() override { exceptions--; }
};

static int run(struct pinion_task *task)
{
	guard destroyed_on_the_way;

	try {
		throw 1;
	} catch (int) {
		caught++;
	}
	left_over += std::uncaught_exceptions();
	switch (task->private_kind = 0, task->flags = 0, caught % 3) {
	case 0:
		throw failure();
	case 1:
		pinion_task_panic(-5, "from C++");
	default:
		pthread_exit(nullptr);
	}
}

int main()
{
	static struct pinion_task tasks[ROUNDS];
	struct pinion_runtime_stats counters;
	struct pinion_runtime *runtime;
	struct pinion_config config;

	pinion_config_init(&config);
	config.worker_count = 1;
	if (pinion_runtime_create(&config, &runtime) != 0) {
		return 1;
	}
	for (int i = 0; i < ROUNDS; i++) {
		tasks[i].run = run;
		if (pinion_task_spawn(runtime, &tasks[i]) != 0) {
			return 1;
		}
	}
	pinion_runtime_join(runtime);
	pinion_runtime_get_stats(runtime, &counters, sizeof(counters));
	pinion_runtime_destroy(runtime);
	if (counters.tasks_run != ROUNDS || counters.tasks_unwound != ROUNDS) {
		std::printf("of %d tasks %d ran, %d were unwound\n", ROUNDS,
			(int)counters.tasks_run, (int)counters.tasks_unwound);
		return 1;
	}
	if (destroyed != ROUNDS || caught != ROUNDS || exceptions != 0 || left_over != 0) {
		std::printf("%d destructors, %d caught, %d exceptions left, %d uncaught\n",
			destroyed, caught, exceptions, left_over);
		return 1;
	}
	return 0;
}
END

# build_and_run NAME LIBRARY…
build_and_run() {
	name=$1
	shift
	# shellcheck disable=SC2086,SC2046 # several words each
	$CXX -std=c++17 ${SANITIZER_CFLAGS-} -I"$top_srcdir/include" -o "$TMPDIR/throws" \
		"$TMPDIR/throws.cc" "$@" $($PKG_CONFIG --libs liburing numa hwloc) -pthread
	LD_LIBRARY_PATH=$top_builddir/.libs "$TMPDIR/throws" || {
		echo "$name: exceptions are not contained"
		exit 1
	}
}

[ -n "${CXX:-}" ] || {
	echo "no C++ compiler"
	exit 77
}
build_and_run shared -L"$top_builddir/.libs" -lpinion
build_and_run static "$top_builddir/libpinion.a"
