/* SPDX-License-Identifier: MIT */
/*
 * A read of an empty pipe.
 */
#include "tools/bench/pending.h"

#include "tools/bench/tasks.h"
#include "tools/report.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static int pending_over(struct pinion_task *task)
{
	struct bench_pending *pending = (struct bench_pending *)(void *)task;

	__atomic_store_n(&pending->is_over, 1, __ATOMIC_RELEASE);
	return 0;
}

_Static_assert(offsetof(struct bench_pending, request.task) == 0, "a cast leads back");

static int replace_by_pipe(struct bench_pending *pending)
{
	int ends[2];
	int rc = 0;

	if (pipe2(ends, O_CLOEXEC) != 0) {
		return -errno;
	}
	if (dup3(ends[0], pending->file.fd, O_CLOEXEC) < 0) {
		rc = -errno;
	}
	close(ends[0]);
	if (rc != 0) {
		close(ends[1]);
		return rc;
	}
	pending->write_fd = ends[1];
	return 0;
}

int bench_pending_open(struct bench_pending *pending)
{
	int rc = pinion_file_open(&pending->file, "/proc/self/exe", PINION_DIRECT_NEVER);

	if (rc == 0) {
		rc = replace_by_pipe(pending);
		if (rc != 0) {
			pinion_file_close(&pending->file);
		}
	}
	if (rc != 0) {
		report_line("cannot open what stays pending: %s", report_reason(rc));
		return rc;
	}
	pending->request.task.run = pending_over;
	pending->request.file = &pending->file;
	pending->request.bytes = pending->bytes;
	pending->request.length_bytes = sizeof(pending->bytes);
	return 0;
}

int bench_pending_submit(struct bench_pending *pending, struct pinion_runtime *runtime)
{
	int rc = pinion_request_submit(runtime, &pending->request);

	if (rc != 0) {
		report_line("cannot read: %s", report_reason(rc));
	}
	return rc;
}

int bench_pending_check(const struct bench_pending *pending)
{
	if (bench_word_read(&pending->is_over) == 0) {
		return 0;
	}
	report_line("a read of an empty pipe has ended: %s",
		report_reason(pending->request.result < 0 ? (int)pending->request.result : EIO));
	return -EIO;
}

void bench_pending_close(struct bench_pending *pending)
{
	if (pending->request.task.run != NULL) {
		pinion_file_close(&pending->file);
		close(pending->write_fd);
	}
}

int bench_require_rings(const struct bench_subject *subject, const struct bench_setting *setting)
{
	if (setting->facts.uses_ring) {
		return 0;
	}
	report_line("%s: skipped, there is no io_uring: %s", subject->name,
		setting->facts.fallback_cause != NULL ? setting->facts.fallback_cause
						      : "see pinion doctor");
	return BENCH_SKIPPED;
}
