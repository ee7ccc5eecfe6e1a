/* SPDX-License-Identifier: MIT */
/*
 * Goal: the memory cgroup that leaves the least is found, in both versions, and
 * page cache does not count as used; arenas shrink to the rest, by large
 * buffers alone, or the creation fails; either is reported in one line, whose
 * number is the least that has to be free, and which names what to lower. The
 * machine's memory counts as a group's does, and the trace as buffers do. G6.
 * Method: recorded /proc and cgroup trees in tests/fixtures/cgroup, and a table
 * of configurations and limits.
 */
#include "runtime/api/internal.h"
#include "runtime/worker/worker.h"
#include "tests/support/runtimes.h"

#include <errno.h>

#define MIB (UINT64_C(1) << 20)

static void check_fixture(
	const char *name, uint64_t limit_bytes, uint64_t free_bytes, const char *path)
{
	const char *top = getenv("top_srcdir");
	struct pin_memlimit limit;
	char root[2000];

	snprintf(root, sizeof(root), "%s/tests/fixtures/cgroup/%s", top == NULL ? "." : top, name);
	pin_memlimit_find(root, &limit);
	expect_number(name, (long long)limit_bytes, (long long)limit.limit_bytes);
	expect_number(name, (long long)free_bytes, (long long)limit.free_bytes);
	expect_text(name, path, limit.path);
}

static const struct fit {
	uint32_t workers;
	uint32_t buffers;  /* of 1 MiB */
	uint32_t pool_mib; /* beside 4 MiB of small buffers */
	uint64_t free_mib; /* UINT64_MAX: no limit */
	uint32_t expected; /* large buffers of each; 0: -ENOMEM */
} fits[] = {
	{1, 28, 0, UINT64_MAX, 28},
	{1, 28, 0, 1000, 28},
	{1, 28, 0, 37, 28}, /* seven eighths of 37 are more than 32 */
	{1, 28, 0, 36, 26}, /* of 36 they are 31.5, of which 30 are whole pages */
	{1, 28, 0, 32, 24},
	{1, 28, 0, 7, 2},
	{1, 28, 0, 6, 0},
	{1, 28, 0, 0, 0},
	{4, 28, 0, 147, 28},
	{4, 28, 0, 64, 10},
	{4, 28, 8, 64, 1}, /* 8.5 with headroom: of 14 one is left */
	{4, 28, 16, 64, 0},
	{64, 28, 0, 100, 0},
	{4096, 1, 0, 1 << 20, 1},
};

/* With it free the creation does not fail, and with 1 MiB less it does. */
static void check_needed(
	const struct pinion_config *config, uint64_t trace_bytes, struct pin_memlimit limit)
{
	struct pin_log silent = {.fn = NULL};
	const char *at = strstr(runtimes_log, " need ");
	uint64_t needed_mib = at == NULL ? 0 : strtoull(at + strlen(" need "), NULL, 10);

	for (uint64_t less = 0; less < 2; less++) {
		struct pinion_config copy = *config;

		limit.free_bytes = (needed_mib - less) * MIB;
		expect_number("of what the line says", less == 0 ? 0 : -ENOMEM,
			pin_arena_setup_shrink(&copy, trace_bytes, &limit, &silent));
	}
}

static void check_fit(const struct fit *fit)
{
	struct pin_memlimit limit = {
		.limit_bytes = 2048 * MIB,
		.free_bytes = fit->free_mib == UINT64_MAX ? UINT64_MAX : fit->free_mib * MIB,
		.path = "/sys/fs/cgroup/app/memory.max",
	};
	struct pin_log log = {.fn = runtimes_note};
	struct pinion_config config;
	char what[96];
	int rc;

	snprintf(what, sizeof(what), "%u workers, %u buffers, pools of %u, %llu MiB", fit->workers,
		fit->buffers, fit->pool_mib, (unsigned long long)fit->free_mib);
	pinion_config_init(&config);
	config.worker_count = fit->workers;
	config.buffer_count = fit->buffers;
	config.small_buffer_count = 64;
	config.pool_bytes = fit->pool_mib * MIB;
	runtimes_log[0] = '\0';
	rc = pin_arena_setup_shrink(&config, 0, &limit, &log);
	expect_number(what, fit->expected == 0 ? -ENOMEM : 0, rc);
	expect_number(what, fit->expected == 0 ? fit->buffers : fit->expected, config.buffer_count);
	if (fit->expected == fit->buffers) {
		expect_text(what, "", runtimes_log);
		return;
	}
	expect_true("the line names the limit", strstr(runtimes_log, limit.path) != NULL);
	expect_true("and what lifts it", strstr(runtimes_log, "MemoryMax=") != NULL);
	expect_true("and is one", strchr(runtimes_log, '\n') == strrchr(runtimes_log, '\n'));
	if (rc == -ENOMEM) {
		check_needed(&config, 0, limit);
	}
	if (rc == 0) {
		size_t bytes = (pin_arena_setup_arena_bytes(&config) + (2 * MIB - 1)) / (2 * MIB) *
			(2 * MIB);

		expect_true(what, bytes * fit->workers <= limit.free_bytes - limit.free_bytes / 8);
	}
}

/* The part that takes the most is the one that a line says to lower. */
static void check_line(const char *what, const struct pinion_config *config, uint64_t trace_mib,
	bool is_machine, const char *expected)
{
	struct pin_memlimit limit = {
		.limit_bytes = 100 * MIB,
		.free_bytes = 64 * MIB,
		.path = "it",
		.is_machine = is_machine,
	};
	struct pin_log log = {.fn = runtimes_note};
	struct pinion_config copy = *config;
	int rc;

	runtimes_log[0] = '\0';
	rc = pin_arena_setup_shrink(&copy, trace_mib * MIB, &limit, &log);
	expect_text(what, expected, runtimes_log);
	if (rc == -ENOMEM) {
		check_needed(config, trace_mib * MIB, limit);
	}
}

static void check_lines(void)
{
	struct pinion_config config;

	pinion_config_init(&config);
	config.worker_count = 2;
	config.buffer_count = 40;
	config.small_buffer_count = 64;
	check_line("machine, shrunk", &config, 0, true,
		"it is 100 MiB, of which 64 are free, but 2 workers want 88 MiB for buffers: each "
		"gets 24 large buffers instead of 40; lower buffer_count (PINION_BUFFER_COUNT)\n");
	check_line("trace, shrunk", &config, 16, true,
		"it is 100 MiB, of which 64 are free, but 2 workers want 104 MiB for buffers and "
		"the trace: each gets 16 large buffers instead of 40; lower buffer_count "
		"(PINION_BUFFER_COUNT)\n");
	check_line("trace", &config, 56, false,
		"it is 100 MiB, of which 64 are free, but 2 workers need 78 MiB for buffers and "
		"the trace: raise it (systemd: MemoryMax=), or lower trace_events "
		"(PINION_TRACE_EVENTS) or worker_count (PINION_WORKER_COUNT)\n");
	config.pool_bytes = 64 * MIB;
	check_line("pools", &config, 56, true,
		"it is 100 MiB, of which 64 are free, but 2 workers need 234 MiB for buffers and "
		"the trace: lower pool_bytes (PINION_POOL_BYTES) or worker_count "
		"(PINION_WORKER_COUNT)\n");
	config.pool_bytes = 0;
	config.small_buffer_count = 1024;
	check_line("small buffers", &config, 0, true,
		"it is 100 MiB, of which 64 are free, but 2 workers need 151 MiB for buffers: "
		"lower small_buffer_count (PINION_SMALL_BUFFER_COUNT) or worker_count "
		"(PINION_WORKER_COUNT)\n");
	config.small_buffer_count = 64;
	config.buffer_bytes = 64 * MIB;
	check_line("large buffers", &config, 0, true,
		"it is 100 MiB, of which 64 are free, but 2 workers need 156 MiB for buffers: "
		"lower buffer_bytes (PINION_BUFFER_BYTES) or worker_count "
		"(PINION_WORKER_COUNT)\n");
	config.worker_count = 1;
	check_line("one worker", &config, 0, true,
		"it is 100 MiB, of which 64 are free, but 1 workers need 78 MiB for buffers: "
		"lower buffer_bytes (PINION_BUFFER_BYTES)\n");
}

/* Swap counts; a group's limit that leaves less stays. */
static void check_machine(void)
{
	const char *top = getenv("top_srcdir");
	struct pin_memlimit limit = {.limit_bytes = UINT64_MAX, .free_bytes = UINT64_MAX};
	char root[2000];

	snprintf(root, sizeof(root), "%s/tests/fixtures/cgroup/memory_machine",
		top == NULL ? "." : top);
	pin_memlimit_lower_to_machine(root, &limit);
	expect_number("total", 96 * (long long)MIB, (long long)limit.limit_bytes);
	expect_number("free", 48 * (long long)MIB, (long long)limit.free_bytes);
	expect_text("is named", "the memory of this machine", limit.path);
	expect_true("is the machine", limit.is_machine);
	limit = (struct pin_memlimit){
		.limit_bytes = 50 * MIB, .free_bytes = 48 * MIB, .path = "memory.max"};
	pin_memlimit_lower_to_machine(root, &limit);
	expect_text("a group's limit stays", "memory.max", limit.path);
	limit.free_bytes += 1;
	pin_memlimit_lower_to_machine(root, &limit);
	expect_true("unless it leaves more", limit.is_machine);
	limit = (struct pin_memlimit){.limit_bytes = UINT64_MAX, .free_bytes = UINT64_MAX};
	pin_memlimit_lower_to_machine("/no/such/machine", &limit);
	expect_number("none to be found", -1, (long long)limit.free_bytes);
}

int main(void)
{
	struct pin_memlimit limit;

	check_fixture("memory_v2", 100 * MIB, 60 * MIB, "/sys/fs/cgroup/app.slice/memory.max");
	check_fixture("memory_v2_none", UINT64_MAX, UINT64_MAX, "");
	check_fixture("memory_v2_full", 10 * MIB, 0, "/sys/fs/cgroup/memory.max");
	check_fixture(
		"memory_v1", 64 * MIB, 48 * MIB, "/sys/fs/cgroup/memory/memory.limit_in_bytes");
	check_fixture("memory_v1_none", UINT64_MAX, UINT64_MAX, "");
	check_fixture("v2_without_quota", UINT64_MAX, UINT64_MAX, "");
	check_fixture("no_such_machine", UINT64_MAX, UINT64_MAX, "");
	for (size_t i = 0; i < sizeof(fits) / sizeof(fits[0]); i++) {
		check_fit(&fits[i]);
	}
	check_lines();
	check_machine();
	/* And this machine's own tree can be read. */
	pin_memlimit_find("", &limit);
	expect_true("free within the limit", limit.free_bytes <= limit.limit_bytes);
	return expect_status();
}
