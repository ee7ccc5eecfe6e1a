/* SPDX-License-Identifier: MIT */
/*
 * Goal: a runtime's report on its memory is true: pages, nodes, registration;
 * each shortage is one line with the command that ends it, for all workers;
 * reads are right at each step, into other workers' memory too, and only
 * unregistered memory is counted as such. W2, W3, W12, BP-31, G6.
 * Method: children under several locked-memory limits, each a user of its own
 * where it may be, as the kernel counts by user; a child for which the kernel
 * makes no huge pages, a child whose rings may not clone, and a machine of two
 * nodes, only one of which exists; in each, each worker reads a file into the
 * arenas of both.
 */
#include "runtime/base/base.h"
#include "runtime/task/entry.h"
#include "runtime/worker/worker.h"
#include "tests/support/child.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"
#include "tests/support/syscalls.h"

#include <linux/capability.h>
#include <semaphore.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum {
	WORKERS = 2,
	BUFFERS = 12, /* of 1 MiB: six huge pages and one for small ones */
	BLOCK = 4096,
	ROUNDS = 20,
	OWN_USERS = 1 << 28, /* and a process's number: not in use */
};

static struct pinion_runtime *runtime;
static struct pinion_file file;
static struct pinion_runtime_info facts;
static bool probe_is_passed;
static struct pin_atomic_u32 refused_count;

static uint32_t count_lines(const char *with)
{
	uint32_t count = 0;

	for (const char *at = runtimes_log; (at = strstr(at, with)) != NULL; at++) {
		count++;
	}
	return count;
}

/* ---- a worker reads into both arenas, first and last byte ---- */

struct reading {
	struct pinion_task start;
	struct pinion_request request;
	uint32_t step;
	uint32_t unregistered; /* reads into what no ring knows */
	sem_t ended;
};

static uint8_t *target_of(uint32_t step)
{
	const struct pin_arena *arena = &runtime->shared.workers[step / 2].arena;

	return step % 2 == 0 ? arena->memory : arena->memory + arena->bytes - BLOCK;
}

/* It is free; for as long as it is read into it counts as acquired. */
static void change_use(const uint8_t *bytes)
{
	struct pin_worker *owner = &runtime->shared.workers[0];

	for (uint32_t i = 0; i < WORKERS; i++, owner++) {
		struct pin_entry *entry = pin_pool_find_first(&owner->buffers, bytes);

		if (entry == NULL) {
			entry = pin_pool_find_first(&owner->small_buffers, bytes);
		}
		if (entry != NULL) {
			pin_fetch_add_relaxed_u64(&entry->state, 1);
		}
	}
}

static int read_next(struct pinion_task *task);

static int submit(struct reading *reading)
{
	const struct pin_worker *worker = pin_worker_current();

	reading->request = (struct pinion_request){
		.task.run = read_next,
		.file = &file,
		.bytes = target_of(reading->step),
		.length_bytes = BLOCK,
	};
	change_use(reading->request.bytes);
	PIN_ASAN_UNPOISON(reading->request.bytes, BLOCK);
	memset(reading->request.bytes, 0, BLOCK);
	reading->unregistered +=
		pin_ring_registered_index(&worker->ring, reading->request.bytes, BLOCK) < 0;
	return pinion_request_submit(runtime, &reading->request);
}

static int read_next(struct pinion_task *task)
{
	struct reading *reading = PIN_CONTAINER_OF(task, struct reading, request.task);

	change_use(reading->request.bytes);
	expect_number("result", 4, reading->request.result);
	expect_number("bytes read", 0, memcmp(reading->request.bytes, "text", 4));
	reading->step++;
	if (reading->step < 2 * WORKERS) {
		return submit(reading);
	}
	sem_post(&reading->ended);
	return 0;
}

static int start_reading(struct pinion_task *task)
{
	return submit(PIN_CONTAINER_OF(task, struct reading, start));
}

static void check_reads(void)
{
	bool knows_all =
		facts.registered_bytes == facts.arena_bytes && facts.arenas_shared == WORKERS;
	uint32_t unregistered = 0;

	for (uint32_t i = 0; i < WORKERS; i++) {
		struct reading reading = {.start.run = start_reading};

		sem_init(&reading.ended, 0, 0);
		expect_number("spawn", 0, pinion_task_spawn_on(runtime, i, &reading.start));
		sem_wait(&reading.ended);
		unregistered += reading.unregistered;
	}
	if (facts.uses_ring != 0) {
		expect_number("counted as unregistered", unregistered,
			(long long)runtimes_counters(runtime).unregistered_reads);
		expect_number("which there are", !knows_all, unregistered > 0);
	}
}

/* ---- facts ---- */

static bool start(void)
{
	struct pinion_config config;

	runtimes_config(&config, WORKERS, PINION_IO_AUTO);
	runtimes_tuning.buffer_rest_ms = 0; /* all at once */
	config.buffer_bytes = 1 << 20;
	config.buffer_count = BUFFERS;
	if (!expect_number("create", 0, pinion_runtime_create(&config, &runtime))) {
		return false;
	}
	pinion_runtime_get_info(runtime, &facts, sizeof(facts));
	expect_number("open", 0, pinion_file_open(&file, "file", PINION_DIRECT_NEVER));
	/* The page cache would answer before a ring is asked. */
	file.cached_percent = 0;
	return true;
}

static void end(void)
{
	pinion_file_close(&file);
	pinion_runtime_destroy(runtime);
}

static void check_facts(void)
{
	size_t asked = pin_arena_setup_arena_bytes(&runtime->shared.config);
	size_t bytes = 0;

	for (uint32_t i = 0; i < WORKERS; i++) {
		const struct pin_arena *arena = &runtime->shared.workers[i].arena;

		bytes += arena->bytes;
		expect_true("as asked, rounded up to huge pages where there are some",
			arena->bytes == asked ||
				(arena->huge_bytes > 0 &&
					arena->bytes == pin_round_up(asked, PIN_HUGE_PAGE_BYTES)));
	}
	/* BP-31: fixed, and exact with the rounding. */
	expect_number("arena bytes", (long long)bytes, (long long)facts.arena_bytes);
	expect_number("as many as asked for", BUFFERS, facts.buffer_count);
	expect_true("huge", facts.huge_bytes <= facts.arena_bytes);
	expect_true("set aside", facts.hugetlb_bytes <= facts.huge_bytes);
	expect_true("registered", facts.registered_bytes <= facts.arena_bytes);
	expect_number("page bytes", facts.huge_bytes == facts.arena_bytes ? 2 << 20 : 4096,
		facts.page_bytes);
	expect_number("all registered", facts.registered_bytes == facts.arena_bytes,
		facts.arenas_registered == WORKERS);
	expect_number("a line about registering",
		facts.uses_ring != 0 && facts.registered_bytes < facts.arena_bytes,
		count_lines("registered with io_uring"));
	expect_number("a line about pages", facts.huge_bytes < facts.arena_bytes,
		count_lines("4 KiB pages"));
}

static int run_plainly(void *arg)
{
	struct pin_kernel kernel;

	(void)arg;
	if (!start()) {
		return 1;
	}
	check_facts();
	check_reads();
	pin_kernel_probe(&kernel);
	if (facts.uses_ring != 0) {
		expect_number("rings that know all arenas",
			pin_kernel_has(&kernel, PINION_IO_CLONE_BUFFERS) &&
					facts.registered_bytes > 0
				? WORKERS
				: 0,
			facts.arenas_shared);
	}
	expect_true("placed where wanted", facts.local_permille >= 990);
	expect_number("no line about nodes", 0, count_lines("NUMA node"));
	end();
	return expect_status();
}

/* The kernel does not know how to clone; or it does, and still refuses. */
static bool refuse_clones(long number, const long *arguments, long *out_result)
{
	const struct pin_clone_buffers *clone = (const void *)arguments[2];

	if (number != __NR_io_uring_register || arguments[1] != IORING_REGISTER_CLONE_BUFFERS ||
		(probe_is_passed && clone->src_fd == UINT32_MAX)) {
		return false;
	}
	pin_fetch_add_acq_rel_u32(&refused_count, 1);
	errno = EINVAL;
	*out_result = -1;
	return true;
}

static int run_without_clones(void *arg)
{
	struct pin_kernel kernel;

	probe_is_passed = *(const bool *)arg;
	syscalls_hook = refuse_clones;
	pin_kernel_probe(&kernel);
	if (probe_is_passed && !pin_kernel_has(&kernel, PINION_IO_CLONE_BUFFERS)) {
		return EXPECT_SKIPPED; /* Linux before 6.12 */
	}
	if (!start()) {
		return 1;
	}
	check_facts();
	for (uint32_t i = 0; i < WORKERS && facts.uses_ring != 0; i++) {
		const struct pin_worker *worker = &runtime->shared.workers[i];

		/* The first worker knows its own memory and not the other's. */
		for (uint32_t j = 0; j < WORKERS; j++) {
			expect_number("knows", i == j && worker->registered_bytes > 0,
				pin_ring_registered_index(&worker->ring,
					runtime->shared.workers[j].arena.memory, BLOCK) >= 0);
		}
	}
	if (facts.uses_ring != 0) {
		/* With nothing registered there is nothing to clone. */
		expect_true("clones were refused",
			pin_load_acquire_u32(&refused_count) > 0 || facts.registered_bytes == 0);
		expect_number("rings that know all", 0, facts.arenas_shared);
	}
	check_reads();
	end();
	return expect_status();
}

/* Elsewhere each worker registers its own arena. */
static int run_unshared(void *arg)
{
	static struct pin_shared shared;

	(void)arg;
	shared.worker_count = 2;
	shared.kernel.features = PINION_IO_REGISTERED_BUFFERS | PINION_IO_CLONE_BUFFERS;
	expect_true("several workers share", pin_arena_setup_is_shared(&shared));
	shared.kernel.features = PINION_IO_REGISTERED_BUFFERS;
	expect_true("not on older kernels", !pin_arena_setup_is_shared(&shared));
	shared.kernel.features |= PINION_IO_CLONE_BUFFERS;
	shared.is_fallback = true;
	expect_true("not without rings", !pin_arena_setup_is_shared(&shared));
	shared.is_fallback = false;
	shared.worker_count = 1;
	expect_true("not one alone", !pin_arena_setup_is_shared(&shared));
	return expect_status();
}

static bool drop_lock_capability(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {{0}};

	if (syscall(SYS_capget, &header, sets) != 0) {
		return false;
	}
	sets[CAP_TO_INDEX(CAP_IPC_LOCK)].effective &= ~CAP_TO_MASK(CAP_IPC_LOCK);
	sets[CAP_TO_INDEX(CAP_IPC_LOCK)].permitted &= ~CAP_TO_MASK(CAP_IPC_LOCK);
	return syscall(SYS_capset, &header, sets) == 0;
}

/*
 * A user that no other process runs as: the memory that others have locked is
 * not counted with it.
 */
static bool become_own_user(void)
{
	uid_t own = OWN_USERS + (uid_t)getpid();

	return getuid() == 0 && setgid(own) == 0 && setuid(own) == 0 &&
		/* Else the kernel keeps /proc/self to root. */
		prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0;
}

static int run_under_memlock(void *arg)
{
	const rlim_t *limit_bytes = arg;
	struct rlimit limit = {*limit_bytes, *limit_bytes};
	bool is_alone;

	if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0) {
		printf("skipped: no locked-memory limit can be set\n");
		return EXPECT_SKIPPED;
	}
	is_alone = become_own_user();
	if (!is_alone && !drop_lock_capability()) {
		printf("skipped: no locked-memory limit can be set\n");
		return EXPECT_SKIPPED;
	}
	if (!start()) {
		return 1;
	}
	check_facts();
	check_reads();
	expect_true("within the limit", facts.registered_bytes <= *limit_bytes);
	if (facts.uses_ring != 0) {
		expect_true("the line names the command", count_lines("ulimit -l") == 1);
	}
	/* Another user may have locked memory elsewhere. */
	if (is_alone && facts.uses_ring != 0 && *limit_bytes >= 8 << 20) {
		uint64_t first_bytes = facts.registered_bytes;

		expect_true("as much as half of the limit", first_bytes >= *limit_bytes / 2);
		/* What one had is there for the next. */
		for (int i = 0; i < ROUNDS && expect_failure_count == 0; i++) {
			end();
			if (!start()) {
				return 1;
			}
			expect_number("as much as before", (long long)first_bytes,
				(long long)facts.registered_bytes);
		}
	}
	end();
	return expect_status();
}

static int run_without_huge(void *arg)
{
	(void)arg;
	if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0) {
		return EXPECT_SKIPPED;
	}
	if (!start()) {
		return 1;
	}
	check_facts();
	check_reads();
	if (facts.hugetlb_bytes == 0) {
		expect_number("huge bytes", 0, (long long)facts.huge_bytes);
		expect_number("the line names the command", 1, count_lines("vm.nr_hugepages="));
	}
	end();
	return expect_status();
}

/* hwloc's two nodes; the kernel has memory on the first only. */
static int run_on_two_nodes(void *arg)
{
	(void)arg;
	setenv("HWLOC_SYNTHETIC", "node:2 core:1 pu:1", 1);
	if (!start()) {
		return 1;
	}
	check_reads();
	for (uint32_t i = 0; i < WORKERS && facts.local_permille != UINT32_MAX; i++) {
		const struct pin_worker *worker = &runtime->shared.workers[i];

		expect_number("wanted node", i, worker->place.node_index);
		expect_number("arena's node", i, worker->arena.options.node_index);
		expect_number("pages there", i == 0 ? 1000 : 0, worker->arena.local_permille);
	}
	if (facts.local_permille != UINT32_MAX) {
		expect_number("the fewest", 0, facts.local_permille);
		expect_number("one line", 1, count_lines("only 0.0 % of worker 1's buffers"));
		expect_number("with the command", 1, count_lines("numactl --hardware"));
	}
	end();
	return expect_status();
}

static void check(const char *what, int (*body)(void *), void *arg)
{
	int code = child_code(child_run(body, arg, NULL, 0));

	if (code != EXPECT_SKIPPED) {
		expect_number(what, 0, code);
	}
}

int main(void)
{
	rlim_t limits[] = {0, 64 << 10, 8 << 20};
	bool has_second_node = access("/sys/devices/system/node/node1", F_OK) == 0;

	/*
	 * What a kernel refuses leads to the next level, if none was asked for.
	 */
	runtimes_own_level();
	syscalls_begin();
	scratch_enter("memory");
	scratch_file("file", "text");
	check("as it is", run_plainly, NULL);
	check("workers that share", run_unshared, NULL);
	check("a kernel that does not clone", run_without_clones, &(bool){false});
	check("a worker that refuses to", run_without_clones, &(bool){true});
	for (size_t i = 0; i < PIN_ARRAY_COUNT(limits); i++) {
		char what[64];

		snprintf(what, sizeof(what), "memlock of %llu KiB",
			(unsigned long long)limits[i] >> 10);
		check(what, run_under_memlock, &limits[i]);
	}
	check("without huge pages", run_without_huge, NULL);
	if (!has_second_node) {
		check("two nodes of which one is there", run_on_two_nodes, NULL);
	}
	scratch_leave();
	return expect_status();
}
