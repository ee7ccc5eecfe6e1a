/* SPDX-License-Identifier: MIT */
/*
 * Goal: with an allocator of the embedder's all that a runtime, its pools, its
 * scans, a thread pool, or a pool by itself allocate comes from it, aligned as
 * asked for, and goes back to the same allocator with the same size and
 * alignment, all of it; when it has nothing to give, the n-th time for every n,
 * the call fails with -ENOMEM or goes on, and nothing is left. Memory filled
 * with rubbish does no harm. What ignore files say is part of it. G11, EX-53.
 * Method: an allocator that keeps books of each block, in lines around it as
 * well; the linker's wrappers (tests/fault/failing.h) count what the library
 * asks malloc and its kin for besides. Two runtimes at once have two
 * allocators.
 */
#include "runtime/base/atomic.h"
#include "tests/fault/failing.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"

#include <errno.h>

enum {
	BLOCKS_MAX = 4096,
	MARGIN = 4096, /* no alignment is larger */
	RUBBISH = 0xa5,
	FILES = 3,
	FILE_BYTES = 20000,
	LIMIT_SECONDS = 100,
	LIVES_MAX = 800,
	RULES = 40,  /* more than there is room for at first */
	LEVELS = 20, /* of directories */
};

struct block {
	uint8_t *start; /* of all; the memory follows the margin */
	size_t align;
	size_t bytes;
};

struct books {
	pthread_mutex_t lock;
	struct block blocks[BLOCKS_MAX];
	size_t block_count;
	uint32_t taken;	  /* in all */
	uint32_t fail_at; /* 0: none fails */
	uint32_t failed;
	uint32_t wrong; /* alignments, releases of what it never gave, torn lines */
};

static struct books books[2];

/* Past the wrappers. */
void *__real_aligned_alloc(size_t align, size_t bytes);
void __real_free(void *memory);

static bool is_torn(const struct block *block)
{
	for (size_t i = 0; i < MARGIN; i++) {
		if (block->start[i] != RUBBISH ||
			block->start[MARGIN + block->bytes + i] != RUBBISH) {
			return true;
		}
	}
	return false;
}

static void *take(void *arg, size_t align, size_t bytes)
{
	struct books *own = arg;
	size_t whole = (bytes + 2 * MARGIN + MARGIN - 1) / MARGIN * MARGIN;
	uint8_t *start = NULL;

	pthread_mutex_lock(&own->lock);
	own->taken++;
	own->wrong += bytes == 0 || align == 0 || (align & (align - 1)) != 0 || align > MARGIN;
	if (own->taken == own->fail_at) {
		own->failed++;
	} else if (own->block_count < BLOCKS_MAX) {
		start = __real_aligned_alloc(MARGIN, whole);
	}
	if (start != NULL) {
		memset(start, RUBBISH, whole);
		own->blocks[own->block_count] = (struct block){start, align, bytes};
		own->block_count++;
	}
	pthread_mutex_unlock(&own->lock);
	return start == NULL ? NULL : start + MARGIN;
}

static void give_back(void *arg, void *memory, size_t align, size_t bytes)
{
	struct books *own = arg;
	size_t i = 0;

	pthread_mutex_lock(&own->lock);
	while (i < own->block_count && own->blocks[i].start + MARGIN != memory) {
		i++;
	}
	if (i == own->block_count) {
		own->wrong++;
	} else {
		struct block *block = &own->blocks[i];

		own->wrong += block->align != align || block->bytes != bytes || is_torn(block);
		__real_free(block->start);
		own->block_count--;
		own->blocks[i] = own->blocks[own->block_count];
	}
	pthread_mutex_unlock(&own->lock);
}

static struct pinion_allocator allocators[2] = {
	{.allocate = take, .release = give_back, .arg = &books[0]},
	{.allocate = take, .release = give_back, .arg = &books[1]},
};

static void begin_books(uint32_t fail_at)
{
	for (size_t i = 0; i < 2; i++) {
		memset(&books[i], 0, sizeof(books[i]));
		pthread_mutex_init(&books[i].lock, NULL);
		books[i].fail_at = fail_at;
	}
}

static void check_books(const char *what, size_t i)
{
	char line[100];

	snprintf(line, sizeof(line), "%s: wrong sizes, alignments, bytes around", what);
	expect_number(line, 0, books[i].wrong);
	snprintf(line, sizeof(line), "%s: blocks left", what);
	expect_number(line, 0, (long long)books[i].block_count);
}

/* ---- what allocates ---- */

static void make_files(void)
{
	static uint8_t contents[FILE_BYTES];

	expect_ready("mkdir", mkdir("tree", 0755) == 0 && mkdir("tree/below", 0755) == 0);
	for (int i = 0; i < FILES; i++) {
		char path[64];
		FILE *file;

		snprintf(path, sizeof(path), "tree/%sfile-%d", i % 2 == 0 ? "" : "below/", i);
		file = fopen(path, "we");
		expect_ready(path, file != NULL);
		expect_ready(path, fwrite(contents, sizeof(contents), 1, file) == 1);
		fclose(file);
	}
}

/* The hidden file is far below, and each level's rules about it say nothing. */
static void make_ignored(void)
{
	char path[64 + 2 * LEVELS] = "tree/below";

	for (int i = 0; i < LEVELS; i++) {
		char rules[sizeof(path) + 16];
		FILE *file;

		snprintf(rules, sizeof(rules), "%s/.ignore", path);
		file = fopen(rules, "we");
		expect_ready(rules, file != NULL);
		for (int j = 0; j < RULES && i % 7 == 0; j++) {
			fprintf(file, "nothing-%d\n", j);
		}
		fputs(i == 0 ? "hidden\n.ignore\n" : "nowhere/\n", file);
		expect_ready(rules, fclose(file) == 0);
		strcat(path, "/d");
		expect_ready(path, mkdir(path, 0755) == 0);
	}
	strcat(path, "/hidden");
	expect_ready(path, mkdir(path, 0755) == 0);
}

static int window(void *arg, struct pinion_scan_file *file, const struct pinion_window *given)
{
	const uint8_t *user = file->user;

	(void)arg;
	(void)given;
	return user[0] == 0 ? 0 : -EILSEQ;
}

static struct pin_atomic_u32 lost_walks;

static void report(
	void *arg, const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	(void)arg;
	if (strcmp(file->path, "tree") == 0) {
		expect_number("outcome", PINION_SCAN_FAILED, outcome);
		expect_number("error", -ENOMEM, error);
		pin_fetch_add_acq_rel_u32(&lost_walks, 1);
	}
}

static const struct pinion_scan_ops ops = {.window = window, .report = report};

/* A walk that ends early is reported, and else no file is lost. */
static void check_walked(const struct pinion_scan_stats *totals, int rc, bool must_work)
{
	uint32_t lost_count = pin_exchange_acq_rel_u32(&lost_walks, 0);

	expect_number("walk", lost_count > 0 ? -ENOMEM : 0, rc);
	/* One allocation has failed at most. */
	expect_true("paths reported as failed", totals->failed <= 1);
	if (lost_count == 0) {
		expect_number("files", FILES, (long long)(totals->done + totals->failed));
	}
	if (must_work) {
		expect_number("files done", FILES, (long long)totals->done);
		/* The directory, and the ignore files. */
		expect_number("ignored", LEVELS + 1, (long long)totals->ignored);
	}
}

/* Whether it must work: nothing fails. */
static void scan(struct pinion_runtime *runtime, uint32_t walk_order, bool must_work)
{
	struct pinion_scan_stats totals = {0};
	struct pinion_scan_config config;
	struct pinion_scan *made = NULL;
	int rc;

	pinion_scan_config_init(&config);
	/* A trial of O_DIRECT is the file's, which belongs to no runtime. */
	config.direct = PINION_DIRECT_NEVER;
	config.file_user_bytes = 100;
	config.files_in_flight = 2;
	config.windows_in_flight = 2;
	config.skip_ignored = 1;
	config.walk_order = walk_order;
	rc = pinion_scan_create(runtime, &config, &ops, NULL, &made);
	expect_true("scan", must_work ? rc == 0 : rc == 0 || rc == -ENOMEM);
	if (rc == 0) {
		rc = pinion_scan_add_tree(made, "tree");
		pinion_scan_finish(made, &totals, sizeof(totals));
		check_walked(&totals, rc, must_work);
		pinion_scan_destroy(made);
	}
}

/* Of the runtime, or by itself with the allocator given. */
static void use_pool(
	struct pinion_runtime *runtime, const struct pinion_allocator *allocator, bool must_work)
{
	struct pinion_pool_config config;
	struct pinion_buffer buffer;
	struct pinion_pool *pool = NULL;
	int rc;

	pinion_pool_config_init(&config);
	config.worker_count = runtime == NULL ? 2 : 0;
	config.buffer_count = 16;
	config.buffer_bytes = 4096;
	config.allocator = allocator;
	rc = pinion_pool_create(runtime, &config, &pool);
	expect_true("pool", must_work ? rc == 0 : rc == 0 || rc == -ENOMEM);
	if (rc == 0) {
		expect_number("acquire", 0, pinion_pool_try_acquire(pool, &buffer));
		expect_number("release", 0, pinion_pool_release(pool, &buffer));
		expect_number("destroy", 0, pinion_pool_destroy(pool));
	}
}

static int create(struct pinion_runtime **out_runtime, uint32_t io_level,
	const struct pinion_allocator *allocator)
{
	struct pinion_allocator given = *allocator;
	struct pinion_config config;
	int rc;

	runtimes_config(&config, 2, io_level);
	config.pool_bytes = 1 << 20;
	runtimes_tuning.allocator = &given;
	rc = pinion_runtime_create(&config, out_runtime);
	/* It was copied. */
	memset(&given, 0, sizeof(given));
	return rc;
}

static void live(uint32_t io_level, size_t i, bool must_work)
{
	struct pinion_runtime *runtime = NULL;
	int rc = create(&runtime, io_level, &allocators[i]);

	expect_true("create", must_work ? rc == 0 : rc == 0 || rc == -ENOMEM);
	if (rc == 0) {
		use_pool(runtime, NULL, must_work);
		scan(runtime, PINION_SCAN_WALK_LISTED, must_work);
		scan(runtime, PINION_SCAN_WALK_BY_EXTENT, must_work);
		expect_number("drain", 0, pinion_runtime_drain(runtime));
		pinion_runtime_destroy(runtime);
	}
	use_pool(NULL, &allocators[i], must_work);
}

/* ---- checks ---- */

static void check_all_is_asked_for(uint32_t io_level)
{
	size_t besides = failing_block_calls();

	begin_books(0);
	live(io_level, 0, true);
	expect_number(
		"blocks from malloc and its kin", 0, (long long)(failing_block_calls() - besides));
	expect_true("blocks from the allocator", books[0].taken > 10);
	printf("level %u: %u blocks\n", io_level, books[0].taken);
	check_books("one life", 0);
}

static void check_two_at_once(void)
{
	struct pinion_runtime *runtimes[2] = {NULL, NULL};
	struct pinion_pool_config config;
	struct pinion_pool *pool = NULL;

	begin_books(0);
	expect_number("create", 0, create(&runtimes[0], PINION_IO_AUTO, &allocators[0]));
	expect_number("create", 0, create(&runtimes[1], PINION_IO_FALLBACK, &allocators[1]));
	/* A pool's own goes before its runtime's. */
	pinion_pool_config_init(&config);
	config.buffer_count = 8;
	config.buffer_bytes = 4096;
	config.allocator = &allocators[1];
	expect_number("pool", 0, pinion_pool_create(runtimes[0], &config, &pool));
	pinion_runtime_destroy(runtimes[1]);
	expect_true("the pool's blocks", books[1].block_count > 0);
	expect_number("destroy", 0, pinion_pool_destroy(pool));
	check_books("of the second", 1);
	expect_true("the first's blocks", books[0].block_count > 0);
	pinion_runtime_destroy(runtimes[0]);
	check_books("of the first", 0);
}

static void check_thread_pool(void)
{
	struct pinion_thread_pool_sizes sizes = {.high = 1, .medium = 1, .low = 1};
	size_t besides = failing_block_calls();
	struct pinion_runtime *thread_pool = NULL;
	struct pinion_config config;

	begin_books(0);
	pinion_thread_pool_config_init(&config);
	config.tuning = runtimes_thread_pool_tuning();
	runtimes_tuning.allocator = &allocators[0];
	expect_number("thread_pool", 0, pinion_thread_pool_create(&config, &sizes, &thread_pool));
	pinion_runtime_destroy(thread_pool);
	expect_number(
		"blocks from malloc and its kin", 0, (long long)(failing_block_calls() - besides));
	expect_true("blocks from the allocator", books[0].taken > 3);
	check_books("thread_pool", 0);
}

static void check_each_fails(uint32_t io_level)
{
	uint32_t nth = 1;

	do {
		begin_books(nth);
		live(io_level, 0, false);
		check_books("without one block", 0);
		nth++;
	} while (books[0].failed > 0 && nth < LIVES_MAX && expect_failure_count == 0);
	expect_true("until none failed", books[0].failed == 0);
	printf("level %u: each of %u failed once\n", io_level, nth - 2);
}

static void check_halves_are_refused(void)
{
	struct pinion_allocator half = {.allocate = take, .arg = &books[0]};
	struct pinion_runtime *runtime = NULL;
	struct pinion_pool_config config;
	struct pinion_pool *pool = NULL;
	size_t besides;

	begin_books(0);
	expect_number("no release", -EINVAL, create(&runtime, PINION_IO_FALLBACK, &half));
	half = (struct pinion_allocator){.release = give_back, .arg = &books[0]};
	expect_number("no allocate", -EINVAL, create(&runtime, PINION_IO_FALLBACK, &half));
	expect_true("it says so", strstr(runtimes_log, "allocator: ") != NULL);
	pinion_pool_config_init(&config);
	config.worker_count = 1;
	config.allocator = &half;
	expect_number("pool", -EINVAL, pinion_pool_create(NULL, &config, &pool));
	/* Neither: the C library's, as the wrappers see. */
	half = (struct pinion_allocator){.arg = &books[0]};
	besides = failing_block_calls();
	expect_number("none", 0, create(&runtime, PINION_IO_FALLBACK, &half));
	pinion_runtime_destroy(runtime);
	expect_number("no allocator was asked", 0, books[0].taken);
	expect_true("but malloc", failing_block_calls() - besides > 10);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("allocators_are_asked");
	make_files();
	make_ignored();
	check_halves_are_refused();
	check_all_is_asked_for(PINION_IO_AUTO);
	check_all_is_asked_for(PINION_IO_FALLBACK);
	check_two_at_once();
	check_thread_pool();
	check_each_fails(PINION_IO_AUTO);
	check_each_fails(PINION_IO_FALLBACK);
	scratch_leave();
	return expect_status();
}
