/* SPDX-License-Identifier: MIT */
/*
 * Goal: each error of a checkpoint log is returned, with a line that says what
 * differs; a disk that fails at any write or sync leaves whole records, and no
 * later one. Records become durable by themselves, after a time or after work,
 * and the file's name with the file. EX-51.
 * Method: files of others, facts of others, fields out of range; the disk's
 * calls are the test's, and the nth of them fails.
 */
#include "tests/support/checkpoints.h"

#include "runtime/checkpoint/frame.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/types.h>

ssize_t __real_pwrite(int fd, const void *bytes, size_t length, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t length, off_t offset);
int __wrap_fdatasync(int fd);
int __wrap_fsync(int fd);

enum { RECORDS = 12 };

#define UNBORN "checkpoint log: it has no records: its run was stopped as it began"

/* Read by the log's thread, set while there is none. */
static uint32_t calls_left; /* before one fails; 0: none does */
static int call_error;
static uint32_t folder_syncs;

static bool fails(void)
{
	return calls_left > 0 && --calls_left == 0;
}

/* A full disk takes a part first. */
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t length, off_t offset)
{
	if (!fails()) {
		return __real_pwrite(fd, bytes, length, offset);
	}
	if (length > 20) {
		calls_left = 1;
		return __real_pwrite(fd, bytes, 20, offset);
	}
	errno = call_error;
	return -1;
}

int __wrap_fdatasync(int fd)
{
	(void)fd;
	errno = call_error;
	return fails() ? -1 : 0;
}

int __wrap_fsync(int fd)
{
	(void)fd;
	folder_syncs++;
	return 0;
}

static void expect_open(const char *what, int expected, uint32_t flags, const char *line)
{
	struct pinion_checkpoint_config config = checkpoints_config(flags);
	struct pinion_checkpoint *checkpoint = NULL;

	expect_number(what, expected, pinion_checkpoint_open("log", &config, &checkpoint));
	expect_text(what, line, checkpoints_line);
	pinion_checkpoint_close(checkpoint, 0);
}

static void check_files(void)
{
	struct pinion_checkpoint_config config = checkpoints_config(0);
	struct pinion_checkpoint *first = NULL;
	struct pinion_checkpoint_info info;

	expect_open("missing", -ENOENT, PINION_CHECKPOINT_READ,
		"checkpoint log: cannot be opened: No such file or directory");
	expect_number("made", 0, pinion_checkpoint_open("log", &config, &first));
	expect_open("second writer", -EBUSY, PINION_CHECKPOINT_RESUME,
		"checkpoint log: another process writes it: wait for its end");
	expect_open("reader beside", 0, PINION_CHECKPOINT_READ, "");
	expect_number("close", 0, pinion_checkpoint_close(first, 1));
	expect_open("there", -EEXIST, 0,
		"checkpoint log: it is there already: resume it, or remove it to begin anew");
	checkpoints_facts[1].value = "sha256:5678";
	expect_open("other facts", -ESTALE, PINION_CHECKPOINT_RESUME,
		"checkpoint log: it is of another run, with rules sha256:1234; this run has "
		"sha256:5678: remove it to begin anew");
	checkpoints_facts[1] = (struct pinion_checkpoint_fact){"options", "x"};
	expect_open("other names", -ESTALE, PINION_CHECKPOINT_RESUME,
		"checkpoint log: it is of another run, with options (none); this run has x: "
		"remove it to begin anew");
	checkpoints_facts[1] = (struct pinion_checkpoint_fact){"rules", "sha256:1234"};
	config = checkpoints_config(PINION_CHECKPOINT_READ);
	expect_number("read", 0, pinion_checkpoint_open("log", &config, &first));
	expect_number("append", -EROFS, checkpoints_append(first, 0));
	expect_number("sync", -EROFS, pinion_checkpoint_sync(first));
	expect_text("fact", "sha256:1234", pinion_checkpoint_fact_value(first, "rules"));
	expect_true("no fact", pinion_checkpoint_fact_value(first, "root") == NULL);
	pinion_checkpoint_get_info(first, &info, sizeof(info));
	expect_number("complete", 1, info.is_complete);
	expect_number("close", 0, pinion_checkpoint_close(first, 0));
	expect_ready("unlink", unlink("log") == 0);
}

static void check_others(void)
{
	scratch_file("log", "a text of somebody else's, longer than a frame is");
	expect_open("a text", -EBADMSG, PINION_CHECKPOINT_RESUME,
		"checkpoint log: it is no checkpoint log, or its start is damaged");
	expect_ready("unlink", unlink("log") == 0 && mkfifo("log", 0600) == 0);
	expect_open("a pipe", -EBADMSG, PINION_CHECKPOINT_RESUME,
		"checkpoint log: it is no plain file");
	expect_ready("unlink", unlink("log") == 0);
	/* Made by a run that was killed at once. */
	scratch_file("log", "");
	expect_open("empty", -ENODATA, PINION_CHECKPOINT_READ, UNBORN);
	expect_open("empty", 0, PINION_CHECKPOINT_RESUME, "");
	expect_ready("unlink", unlink("log") == 0);
}

/* Cut anywhere in its header, which a reader of any facts recognises. */
static void check_unborn(void)
{
	struct pinion_checkpoint_config config = checkpoints_config(0);
	struct pinion_checkpoint *checkpoint = NULL;
	struct pin_frame frame;
	int fd;

	expect_ready("made",
		pinion_checkpoint_open("log", &config, &checkpoint) == 0 &&
			pinion_checkpoint_close(checkpoint, 0) == 0);
	fd = open("log", O_RDWR | O_CLOEXEC);
	expect_ready("log", fd >= 0 && read(fd, &frame, sizeof(frame)) == sizeof(frame));
	expect_ready("cut", ftruncate(fd, (off_t)pin_frame_bytes(frame.length)) == 0);
	expect_open("whole header", 0, PINION_CHECKPOINT_READ, "");
	for (size_t bytes = pin_frame_bytes(frame.length); bytes-- > 0;) {
		expect_ready("cut", ftruncate(fd, (off_t)bytes) == 0);
		expect_open("cut header", -ENODATA, PINION_CHECKPOINT_READ, UNBORN);
	}
	expect_ready("short", pwrite(fd, "2PK", 3, 0) == 3);
	expect_open("short", -EBADMSG, PINION_CHECKPOINT_READ,
		"checkpoint log: it is no checkpoint log, or its start is damaged");
	close(fd);
	expect_ready("unlink", unlink("log") == 0);
}

/* A log of the format's next version. */
static void check_version(void)
{
	uint8_t bytes[64];
	uint32_t version = 2;
	struct iovec part = {&version, sizeof(version)};
	int fd = open("log", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	pin_frame_write(bytes, PIN_FRAME_HEADER, 0, &part, 1);
	expect_ready("log", write(fd, bytes, pin_frame_bytes(4)) == (ssize_t)pin_frame_bytes(4));
	close(fd);
	expect_open("version", -EPROTONOSUPPORT, PINION_CHECKPOINT_RESUME,
		"checkpoint log: it has version 2 of the format, this is 1");
	expect_ready("unlink", unlink("log") == 0);
}

static void expect_config(
	const char *what, int expected, const struct pinion_checkpoint_config *config)
{
	struct pinion_checkpoint *checkpoint = NULL;

	expect_number(what, expected, pinion_checkpoint_open("log", config, &checkpoint));
	expect_number("nothing made", -1, access("log", F_OK));
}

static void check_configs(void)
{
	struct pinion_checkpoint_fact nameless = {NULL, ""};
	struct pinion_checkpoint_config config = checkpoints_config(8);
	struct {
		struct pinion_checkpoint_config config;
		uint64_t newer;
	} later = {.config = checkpoints_config(0), .newer = 1};

	expect_config("flags", -EINVAL, &config);
	expect_text(
		"line", "checkpoint log: flags are 0x8, of which 0x7 are known", checkpoints_line);
	config = checkpoints_config(0);
	config.sync_ns = 0;
	expect_config("sync_ns", -EINVAL, &config);
	config.sync_ns = (UINT64_C(1) << 62) + 1;
	expect_config("sync_ns of centuries", -EINVAL, &config);
	config = checkpoints_config(0);
	config.sync_bytes = 0;
	expect_config("sync_bytes", -EINVAL, &config);
	config = checkpoints_config(0);
	config.reserved = 1;
	expect_config("reserved", -EINVAL, &config);
	config = checkpoints_config(0);
	config.fact_count = PINION_CHECKPOINT_FACTS_MAX + 1;
	expect_config("facts", -EINVAL, &config);
	config = checkpoints_config(0);
	config.facts = &nameless;
	config.fact_count = 1;
	expect_config("nameless", -EINVAL, &config);
	config.size = 8;
	expect_config("size", -EINVAL, &config);
	later.config.size = sizeof(later);
	expect_config("newer", -E2BIG, &later.config);
}

static void check_records(void)
{
	struct pinion_checkpoint_config config = checkpoints_config(0);
	struct pinion_checkpoint *checkpoint = NULL;
	struct iovec part = {NULL, (size_t)PINION_CHECKPOINT_RECORD_MAX + 1};

	expect_number("open", 0, pinion_checkpoint_open("log", &config, &checkpoint));
	expect_number("type", -EINVAL, pinion_checkpoint_append(checkpoint, 0, NULL, 0, 0));
	expect_number("type", -EINVAL,
		pinion_checkpoint_append(checkpoint, PINION_CHECKPOINT_TYPE_MAX + 1, NULL, 0, 0));
	expect_number("bytes", -EINVAL, pinion_checkpoint_append(checkpoint, 1, &part, 1, 0));
	expect_number("none", 0,
		pinion_checkpoint_append(checkpoint, PINION_CHECKPOINT_TYPE_MAX, NULL, 0, 0));
	expect_number("close", 0, pinion_checkpoint_close(checkpoint, 0));
	expect_ready("unlink", unlink("log") == 0);
	expect_number("no log", 0, pinion_checkpoint_close(NULL, 1));
}

/* Another process appends, as a file system without locks lets it. */
static void check_intruder(void)
{
	struct pinion_checkpoint_config config = checkpoints_config(0);
	struct pinion_checkpoint *checkpoint = NULL;
	int fd;

	expect_number("open", 0, pinion_checkpoint_open("log", &config, &checkpoint));
	fd = open("log", O_WRONLY | O_APPEND | O_CLOEXEC);
	expect_ready("append", write(fd, "x", 1) == 1);
	close(fd);
	expect_number("first", 0, checkpoints_append(checkpoint, 0));
	expect_number("seen", -EBUSY, pinion_checkpoint_sync(checkpoint));
	expect_true("line", strstr(checkpoints_line, "another process has written to it") != NULL);
	expect_number("no more", -EBUSY, checkpoints_append(checkpoint, 1));
	expect_number("close", -EBUSY, pinion_checkpoint_close(checkpoint, 1));
	expect_ready("unlink", unlink("log") == 0);
}

/* Waits until a record is durable without being asked to. */
static void check_sync(uint64_t sync_ns, uint64_t sync_bytes, uint64_t work_bytes)
{
	struct pinion_checkpoint_config config = checkpoints_config(0);
	struct pinion_checkpoint *checkpoint = NULL;
	struct pinion_checkpoint_info before;
	struct pinion_checkpoint_info now;
	char text[] = "record";
	struct iovec part = {text, sizeof(text)};

	config.sync_ns = sync_ns;
	config.sync_bytes = sync_bytes;
	folder_syncs = 0;
	expect_number("open", 0, pinion_checkpoint_open("log", &config, &checkpoint));
	expect_number("its folder is synced", 1, folder_syncs);
	pinion_checkpoint_get_info(checkpoint, &before, sizeof(before));
	expect_number("append", 0, pinion_checkpoint_append(checkpoint, 1, &part, 1, work_bytes));
	do {
		sched_yield();
		pinion_checkpoint_get_info(checkpoint, &now, sizeof(now));
	} while (now.durable_bytes == before.durable_bytes);
	expect_number("close", 0, pinion_checkpoint_close(checkpoint, 0));
	expect_ready("unlink", unlink("log") == 0);
}

static void check_syncs(void)
{
	struct pinion_checkpoint_config standard;

	pinion_checkpoint_config_init(&standard);
	expect_number("a second", 1000000000, (long long)standard.sync_ns);
	expect_number("a GiB", 1 << 30, (long long)standard.sync_bytes);
	check_sync(1000000, UINT64_MAX, 0);
	check_sync(UINT64_C(1) << 60, 1000, 1000);
}

/* How many whole records the log has; they are the first. */
static uint32_t count_records(void)
{
	struct pinion_checkpoint_config config = checkpoints_config(PINION_CHECKPOINT_RESUME);
	struct pinion_checkpoint *checkpoint = NULL;
	struct pinion_checkpoint_record record;
	struct pinion_checkpoint_info info;
	uint32_t count = 0;

	expect_number("resume", 0, pinion_checkpoint_open("log", &config, &checkpoint));
	pinion_checkpoint_get_info(checkpoint, &info, sizeof(info));
	expect_number("cut already", 0, (long long)info.cut_bytes);
	while (pinion_checkpoint_next(checkpoint, &record) == 1) {
		expect_true("record", checkpoints_is(&record, count++));
	}
	pinion_checkpoint_close(checkpoint, 0);
	return count;
}

/* The nth call fails: only records before it are there. True: none did. */
static bool check_disk(uint32_t nth, int error)
{
	struct pinion_checkpoint_config config = checkpoints_config(0);
	struct pinion_checkpoint *checkpoint = NULL;
	uint32_t durable = 0;
	uint32_t there;
	int rc;

	calls_left = nth;
	call_error = error;
	rc = pinion_checkpoint_open("log", &config, &checkpoint);
	if (rc < 0) {
		expect_number("open", -error, rc);
		calls_left = 0;
		expect_ready("unlink", unlink("log") == 0);
		return false;
	}
	for (uint32_t i = 0; i < RECORDS && rc == 0; i++) {
		rc = checkpoints_append(checkpoint, i);
		rc = rc < 0 ? rc : pinion_checkpoint_sync(checkpoint);
		durable += rc == 0 ? 1 : 0;
	}
	expect_number("error", rc == 0 ? 0 : -error, rc);
	expect_number("append", rc, checkpoints_append(checkpoint, durable));
	rc = pinion_checkpoint_close(checkpoint, 0);
	expect_number("close", rc == 0 ? 0 : -error, rc);
	if (rc != 0) {
		expect_true("line", strstr(checkpoints_line, strerror(error)) != NULL);
	}
	calls_left = 0;
	there = count_records();
	expect_true("nothing durable is lost", there >= durable && there <= durable + 1);
	expect_ready("unlink", unlink("log") == 0);
	return rc == 0;
}

int main(void)
{
	uint32_t nth = 1;

	scratch_enter("checkpoint_refuses");
	check_files();
	check_others();
	check_unborn();
	check_version();
	check_configs();
	check_records();
	check_intruder();
	check_syncs();
	while (!check_disk(nth, nth % 2 == 0 ? EIO : ENOSPC)) {
		nth++;
	}
	expect_true("each call of each record", nth > 2 * RECORDS);
	scratch_leave();
	return expect_status();
}
