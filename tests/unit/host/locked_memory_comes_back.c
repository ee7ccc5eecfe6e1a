/* SPDX-License-Identifier: MIT */
/*
 * Goal: the next runtime can lock as much as the last had locked: where an
 * ordinary user's limit is enough for one at a time, each of many in a row has
 * all of its arenas registered, and each has its rings where that is all there
 * is room for. G6, W16. Hazard that others met: the kernel takes a closed ring
 * apart later, and its user is short of locked memory until then.
 * Method: children of users that nothing else runs as. The limit of the first
 * is that of one runtime's arenas and a quarter, so that registered memory has
 * to be given back at once; that of the second is of a few rings, which are to
 * be waited for.
 */
#include "tests/support/child.h"
#include "tests/support/runtimes.h"

enum {
	USER = 61013,
	USER_OF_RINGS = 61014,
	LIVES = 50,
	RING_LIVES = 30,
	RING_ENTRIES = 64,
	RING_LIMIT_BYTES = 96 << 10,
	WORKERS = 2,
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *start(void)
{
	struct pinion_runtime *runtime = NULL;
	struct pinion_config config;

	runtimes_config(&config, WORKERS, PINION_IO_AUTO);
	runtimes_tuning.buffer_rest_ms = 0; /* all at once */
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	return runtime;
}

static struct pinion_runtime_info facts_of(const struct pinion_runtime *runtime)
{
	struct pinion_runtime_info facts;

	pinion_runtime_get_info(runtime, &facts, sizeof(facts));
	return facts;
}

static bool become(uint64_t limit_bytes, uint32_t user)
{
	struct rlimit limit = {limit_bytes, limit_bytes};

	if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0) {
		printf("skipped: this root may not lock that much\n");
		return false;
	}
	expect_ready("user", setgid(user) == 0 && setuid(user) == 0);
	return true;
}

static int live_often(void *arg)
{
	const struct pinion_runtime_info *wanted = arg;
	uint64_t locked = wanted->registered_bytes + wanted->registered_bytes / 4;

	if (!become(locked, USER)) {
		return EXPECT_SKIPPED;
	}
	for (uint32_t i = 0; i < LIVES; i++) {
		struct pinion_runtime *runtime = start();
		struct pinion_runtime_info facts = facts_of(runtime);

		if (!expect_number("registered", (long long)wanted->registered_bytes,
			    (long long)facts.registered_bytes)) {
			printf("in life %u: %s\n", i, runtimes_log);
		}
		expect_number("stop", 0, pinion_runtime_stop(runtime));
		pinion_runtime_destroy(runtime);
	}
	return expect_status();
}

static int have_rings(void *arg)
{
	(void)arg;
	if (!become(RING_LIMIT_BYTES, USER_OF_RINGS)) {
		return EXPECT_SKIPPED;
	}
	for (uint32_t i = 0; i < RING_LIVES; i++) {
		struct pinion_runtime *runtime = NULL;
		struct pinion_config config;
		int rc;

		runtimes_config(&config, 1, PINION_IO_RING);
		runtimes_tuning.buffer_rest_ms = 0;
		runtimes_tuning.ring_entries = RING_ENTRIES;
		rc = pinion_runtime_create(&config, &runtime);
		if (!expect_number("with a ring", 0, rc)) {
			printf("in life %u: %s\n", i, runtimes_log);
			continue;
		}
		expect_number("stop", 0, pinion_runtime_stop(runtime));
		pinion_runtime_destroy(runtime);
	}
	return expect_status();
}

int main(void)
{
	struct pinion_runtime_info facts;
	struct pinion_runtime *runtime;
	int code;

	runtimes_watchdog(LIMIT_SECONDS);
	if (getuid() != 0) {
		printf("skipped: only root can be a user that nothing else runs as\n");
		return EXPECT_SKIPPED;
	}
	runtime = start();
	facts = facts_of(runtime);
	pinion_runtime_destroy(runtime);
	printf("%llu bytes are registered\n", (unsigned long long)facts.registered_bytes);
	if (facts.registered_bytes == 0) {
		printf("skipped: nothing is registered here\n");
		return EXPECT_SKIPPED;
	}
	code = child_code(child_run(live_often, &facts, NULL, 0));
	if (code == EXPECT_SKIPPED) {
		return EXPECT_SKIPPED;
	}
	expect_number("with arenas", 0, code);
	expect_number("with rings", 0, child_code(child_run(have_rings, NULL, NULL, 0)));
	return expect_status();
}
