/* SPDX-License-Identifier: MIT */
/*
 * Goal: a runtime that has ended has given back the memory that it had locked,
 * before the next one asks for it: where an ordinary user's limit is enough for
 * one at a time, each of many in a row has all of its arenas registered. G6,
 * W16.
 * Hazard that others met: the kernel takes a closed ring apart later, and its
 * user is short of locked memory until then.
 * Method: a child of a user that nothing else runs as, whose limit is that of
 * one runtime and a quarter.
 */
#include "tests/support/child.h"
#include "tests/support/runtimes.h"

enum {
	USER = 61013,
	LIVES = 50,
	WORKERS = 2,
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *start(void)
{
	struct pinion_runtime *runtime = NULL;
	struct pinion_config config;

	runtimes_config(&config, WORKERS, PINION_IO_AUTO);
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	return runtime;
}

static struct pinion_runtime_facts facts_of(const struct pinion_runtime *runtime)
{
	struct pinion_runtime_facts facts;

	pinion_runtime_facts(runtime, &facts, sizeof(facts));
	return facts;
}

static int live_often(void *arg)
{
	const struct pinion_runtime_facts *wanted = arg;
	uint64_t locked = wanted->registered_bytes + wanted->registered_bytes / 4;
	struct rlimit limit = {locked, locked};

	if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0) {
		printf("skipped: this root may not lock so much\n");
		return EXPECT_SKIPPED;
	}
	expect_ready("user", setgid(USER) == 0 && setuid(USER) == 0);
	for (uint32_t i = 0; i < LIVES; i++) {
		struct pinion_runtime *runtime = start();
		struct pinion_runtime_facts facts = facts_of(runtime);

		if (!expect_number("registered", (long long)wanted->registered_bytes,
			    (long long)facts.registered_bytes)) {
			printf("in life %u: %s\n", i, runtimes_log);
		}
		expect_number("stop", 0, pinion_runtime_stop(runtime));
		pinion_runtime_destroy(runtime);
	}
	return expect_status();
}

int main(void)
{
	struct pinion_runtime_facts facts;
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
	expect_number("child", 0, code);
	return expect_status();
}
