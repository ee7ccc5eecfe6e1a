/* SPDX-License-Identifier: MIT */
/*
 * Goal: STATE of a scrub has the last check of each path, in the order of the
 * checks, whatever was written before; a long one is written anew at a number
 * of records, with nothing lost, and stays as it is where that fails; records
 * that no version has written are refused. EX-51.
 * Method: records put and read again; the log's own calls for bad records.
 */
#include "tests/support/scratch.h"
#include "tools/sum/scrub_state.h"

#include <errno.h>

enum {
	MANY = 100000,
	SPARE = 1024, /* records that do not count before a rewrite */
	FILE_RECORD = 32 + DIGEST_BYTES_MAX + 24,
};

static struct scrub_state state;

static bool open_as(const char *algorithm)
{
	const struct scrub_state_config config = {
		.path = "STATE", .algorithm = algorithm, .roots = "tree"};

	return scrub_state_open(&state, &config);
}

static void reopen(void)
{
	expect_true("close", scrub_state_close(&state));
	expect_true("open", open_as("blake3"));
}

/* A check whose every value follows from a number. */
static void put(const char *path, int number, const struct pinion_gap *gaps, size_t gap_count)
{
	struct scrub_file *file = scrub_state_add(&state, path);

	expect_ready("add", file != NULL);
	file->checked_ns = number + 1;
	file->size_bytes = (uint64_t)number + 2;
	file->modified_ns = number + 3;
	file->changed_ns = number + 4;
	memset(file->digest, number + 5, sizeof(file->digest));
	file->error = gap_count > 0 ? -EIO : 0;
	file->flags = SCRUB_HAS_DIGEST | SCRUB_IS_SEEN | (gap_count > 0 ? SCRUB_IS_ROTTEN : 0u);
	expect_number("put", 0, scrub_state_put(&state, file, gaps, gap_count));
}

static const struct scrub_file *expect_file(const char *path, int number)
{
	const struct scrub_file *file = scrub_state_find(&state, path);
	uint8_t digest[DIGEST_BYTES_MAX];

	memset(digest, number + 5, sizeof(digest));
	if (!expect_true(path, file != NULL)) {
		exit(1);
	}
	expect_text("path", path, file->path);
	expect_number("checked", number + 1, file->checked_ns);
	expect_number("size", number + 2, (long long)file->size_bytes);
	expect_number("modified", number + 3, file->modified_ns);
	expect_number("changed", number + 4, file->changed_ns);
	expect_number("digest", 0, memcmp(digest, file->digest, sizeof(digest)));
	expect_true("order", file->order > 0);
	return file;
}

static const struct pinion_gap gaps[] = {
	{.offset_bytes = 4096, .length_bytes = 8192, .error = -EIO},
	{.offset_bytes = 40960, .length_bytes = 4096, .error = -ENODATA},
};

static void expect_gaps(const struct scrub_file *file)
{
	size_t count;
	struct pinion_gap *got = scrub_state_gaps(&state, file, &count);

	expect_number("error", -EIO, file->error);
	expect_number("flags", SCRUB_HAS_DIGEST | SCRUB_IS_ROTTEN, file->flags);
	expect_number("gaps", 2, (long long)count);
	expect_number("ranges", 0, got == NULL ? 1 : memcmp(gaps, got, sizeof(gaps)));
	free(got);
}

static void check_last_records(void)
{
	const struct scrub_run run = {.began_ns = 50, .file_count = 3, .due_count = 2};
	struct scrub_file *gone;
	size_t count;

	put("tree/a", 10, NULL, 0);
	put("tree/b", 20, gaps, 2);
	put("tree/c\n", 30, NULL, 0);
	expect_number("begin", 0, scrub_state_put_begin(&state, &run));
	put("tree/a", 40, NULL, 0);
	expect_number("end", 0, scrub_state_put_end(&state, 60));
	reopen();
	expect_number("records", 6, (long long)state.record_count);
	expect_number("files", 3, (long long)state.count);
	expect_number("began", 50, state.run.began_ns);
	expect_number("ended", 60, state.run.ended_ns);
	expect_number("run's files", 3, (long long)state.run.file_count);
	expect_number("run's due", 2, (long long)state.run.due_count);
	expect_number("run's checked", 1, (long long)state.run.checked_count);
	/* Neither of memory alone. */
	expect_number("flags", SCRUB_HAS_DIGEST, expect_file("tree/a", 40)->flags);
	expect_gaps(expect_file("tree/b", 20));
	expect_true("no gaps",
		scrub_state_gaps(&state, expect_file("tree/a", 40), &count) == NULL && count == 0);
	expect_true("b before c",
		expect_file("tree/b", 20)->order < expect_file("tree/c\n", 30)->order);
	expect_true("c before a",
		expect_file("tree/c\n", 30)->order < expect_file("tree/a", 40)->order);
	expect_true("prefix", scrub_state_find(&state, "tree/") == NULL);

	gone = scrub_state_find(&state, "tree/c\n");
	expect_number("gone", 0, scrub_state_put_gone(&state, gone));
	reopen();
	expect_true("gone", scrub_state_find(&state, "tree/c\n") == NULL);
	expect_number("gone", 1, (long long)state.gone_count);
	/* It comes back without what was known of it. */
	gone = scrub_state_add(&state, "tree/c\n");
	expect_true("again", gone != NULL && gone->order == 0 && gone->flags == 0);
	expect_number("gone", 0, (long long)state.gone_count);
	expect_true("other algorithm", scrub_state_close(&state) && !open_as("sha256"));
	expect_true("close", scrub_state_close(&state) && open_as("blake3"));
}

/* Up to that number of records. */
static void fill(uint64_t record_count)
{
	for (uint64_t i = state.record_count; i < record_count; i++) {
		put("tree/b", 20, gaps, 2);
	}
	put("tree/a", 70, NULL, 0);
	reopen();
}

/* A file of that name which is no state stays, and the log as it is. */
static void check_strange_draft(void)
{
	uint64_t count = state.record_count;
	char text[8] = "";
	int fd = open("STATE.new", O_CREAT | O_RDWR | O_CLOEXEC, 0600);

	expect_ready("another's file", fd >= 0 && write(fd, "precious", 8) == 8);
	reopen();
	expect_number("kept", (long long)count, (long long)state.record_count);
	expect_number("its bytes", 8, (long long)pread(fd, text, 8, 0));
	expect_number("its bytes", 0, memcmp(text, "precious", 8));
	expect_number("its name", 0, unlink("STATE.new"));
	close(fd);
}

static void check_rewrite(void)
{
	struct stat status;
	/* Two files. */
	uint64_t most = 2 * 2 + SPARE;

	fill(most - 1);
	expect_number("not rewritten", (long long)most, (long long)state.record_count);
	/* Nor where it cannot be. */
	expect_ready("mkdir", mkdir("STATE.new", 0700) == 0);
	put("tree/a", 80, NULL, 0);
	reopen();
	expect_number("kept", (long long)most + 1, (long long)state.record_count);
	expect_file("tree/a", 80);
	expect_ready("rmdir", rmdir("STATE.new") == 0);
	check_strange_draft();
	/* A killed run has left one, and STATE is a link. */
	expect_ready("link", rename("STATE", "log") == 0 && symlink("log", "STATE") == 0);
	close(open("log.new", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	reopen();
	expect_number("rewritten", 4, (long long)state.record_count);
	expect_true("renamed", access("STATE.new", F_OK) != 0 && access("log.new", F_OK) != 0);
	expect_ready("still a link", lstat("STATE", &status) == 0);
	expect_true("still a link", S_ISLNK(status.st_mode));
	expect_ready("as before", unlink("STATE") == 0 && rename("log", "STATE") == 0);
	expect_gaps(expect_file("tree/b", 20));
	expect_true("order", expect_file("tree/b", 20)->order < expect_file("tree/a", 80)->order);
	expect_number("began", 50, state.run.began_ns);
	expect_number("ended", 60, state.run.ended_ns);
	expect_number("files", 2, (long long)state.count);
	/* It is written to from then on. */
	put("tree/b", 90, NULL, 0);
	reopen();
	expect_file("tree/b", 90);
}

static void check_many(void)
{
	char path[32];

	for (int i = 0; i < MANY; i++) {
		snprintf(path, sizeof(path), "tree/%d", i);
		put(path, i % 100, NULL, 0);
	}
	reopen();
	expect_number("files", MANY + 2, (long long)state.count);
	for (int i = 0; i < MANY; i += 997) {
		snprintf(path, sizeof(path), "tree/%d", i);
		expect_file(path, i % 100);
	}
}

/* Appends a record as another program might, and expects a refusal. */
static void check_refusal(const char *what, uint32_t type, const void *bytes, size_t length)
{
	struct iovec part = {(void *)(uintptr_t)bytes, length};

	expect_ready("unlink", unlink("STATE") == 0);
	expect_true(what, open_as("blake3"));
	expect_number(what, 0, pinion_checkpoint_append(state.log, type, &part, 1, 0));
	expect_true(what, scrub_state_close(&state) && !open_as("blake3"));
	expect_true(what, scrub_state_close(&state));
}

static void check_bad_records(void)
{
	uint8_t record[FILE_RECORD + 4] = {0};
	uint64_t length = 3;

	expect_true("close", scrub_state_close(&state));
	check_refusal("unknown type", 9, "tree", 4);
	check_refusal("short run", 3, "tree", 4);
	check_refusal("short end", 4, "tree", 4);
	check_refusal("short file", 1, record, FILE_RECORD - 1);
	check_refusal("no path", 1, record, FILE_RECORD);
	check_refusal("zero in a gone path", 2, "a\0b", 3);
	memcpy(record + FILE_RECORD - 16, &length, sizeof(length));
	check_refusal("longer path", 1, record, FILE_RECORD + 2);
	check_refusal("zeros in a path", 1, record, FILE_RECORD + 3);
	memcpy(record + FILE_RECORD, "abc", 3);
	check_refusal("half a gap", 1, record, FILE_RECORD + 4);
	length = 1;
	memcpy(record + FILE_RECORD - 8, &length, sizeof(length));
	check_refusal("a gap too few", 1, record, FILE_RECORD + 3);
}

int main(void)
{
	scratch_enter("scrub_state");
	expect_true("open", open_as("blake3"));
	check_last_records();
	check_rewrite();
	check_many();
	check_bad_records();
	scratch_leave();
	return expect_status();
}
