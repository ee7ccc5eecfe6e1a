/* SPDX-License-Identifier: MIT */
/*
 * Goal: threads that the kernel starts for a bound worker's ring run on no CPU
 * that the program was not to use. G7.
 * Method: this thread keeps to one CPU, is bound to it as workers are, and then
 * may use all again; an fsync is always done by a thread of the kernel's, and
 * /proc shows its mask, which without the call would be all. Then a runtime of
 * one worker; there, kernels since 6.2 leave its threads no other CPU anyway.
 */
#include "tests/support/requests.h"
#include "tests/support/scratch.h"

#include "runtime/host/host.h"

#include <errno.h>
#include <fcntl.h>

enum { LIMIT_SECONDS = 60 };

/* Of the first CPU that is allowed and of all; false: there is but one. */
static bool keep_to_one(unsigned *out_cpu)
{
	cpu_set_t cpus;
	unsigned cpu = 0;

	expect_ready("affinity", sched_getaffinity(0, sizeof(cpus), &cpus) == 0);
	if (CPU_COUNT(&cpus) < 2) {
		return false;
	}
	while (!CPU_ISSET(cpu, &cpus)) {
		cpu++;
	}
	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	expect_ready("one CPU", sched_setaffinity(0, sizeof(cpus), &cpus) == 0);
	*out_cpu = cpu;
	return true;
}

/* A thread's file below /proc, as text; empty when it has ended. */
static void read_thread(const char *thread, const char *name, char *out, size_t size)
{
	char path[512];
	FILE *stream;
	size_t length = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%s/%s", thread, name);
	stream = fopen(path, "re");
	if (stream != NULL) {
		length = fread(out, 1, size - 1, stream);
		fclose(stream);
	}
	out[length] = '\0';
}

/* How many threads of io-wq there are; each has to be on that CPU alone. */
static uint32_t check_helpers(unsigned cpu)
{
	DIR *folder = opendir("/proc/self/task");
	struct dirent *entry;
	uint32_t count = 0;
	char wanted[32];

	snprintf(wanted, sizeof(wanted), "\t%u\n", cpu);
	expect_ready("threads", folder != NULL);
	while ((entry = readdir(folder)) != NULL) {
		static char text[8192];
		const char *mask;

		read_thread(entry->d_name, "comm", text, sizeof(text));
		if (strncmp(text, "iou-wrk", strlen("iou-wrk")) != 0) {
			continue;
		}
		read_thread(entry->d_name, "status", text, sizeof(text));
		mask = strstr(text, "Cpus_allowed_list:");
		if (mask != NULL) {
			count++;
			expect_true("on its CPU alone",
				strncmp(mask + strlen("Cpus_allowed_list:"), wanted,
					strlen(wanted)) == 0);
		}
	}
	closedir(folder);
	return count;
}

static struct pinion_file open_file(void)
{
	struct pinion_file file =
		runtimes_plain_file(open("file", O_RDWR | O_CREAT | O_CLOEXEC, 0600));

	expect_ready("file", file.fd >= 0);
	return file;
}

/* 0 where there is no io_uring, or no way to set the mask. */
static uint32_t sync_by_ring(unsigned cpu, const cpu_set_t *all)
{
	struct pinion_file file = open_file();
	struct io_uring_cqe *cqe;
	struct io_uring ring;
	uint32_t count = 0;
	int rc;

	expect_number("not bound yet", -EINVAL, pin_host_linux.ring_bind_helpers(-1, 0));
	expect_number("bind", 0, pin_host_linux.thread_bind(&cpu, 1));
	expect_ready("all again", sched_setaffinity(0, sizeof(*all), all) == 0);
	if (io_uring_queue_init(4, &ring, 0) == 0) {
		rc = pin_host_linux.ring_bind_helpers(ring.ring_fd, 0);
		/* Not where the kernel has no such thing: before 5.14. */
		if (!(rc == -EINVAL &&
			    io_uring_register_iowq_aff(&ring, sizeof(*all), all) == rc) &&
			expect_number("helpers", 0, rc)) {
			io_uring_prep_fsync(io_uring_get_sqe(&ring), file.fd, 0);
			expect_number("submit", 1, io_uring_submit(&ring));
			expect_number("wait", 0, io_uring_wait_cqe(&ring, &cqe));
			expect_number("fsync", 0, cqe->res);
			count = check_helpers(cpu);
		}
		io_uring_queue_exit(&ring);
	}
	close(file.fd);
	return count;
}

static void sync_by_runtime(unsigned cpu)
{
	struct pinion_file file = open_file();
	struct pinion_runtime *runtime;
	struct requests_one one;

	runtime = runtimes_start(1, PINION_IO_AUTO);
	requests_begin(&one, PINION_OP_FSYNC)->file = &file;
	expect_number("fsync", 0, requests_do(runtime, &one));
	check_helpers(cpu);
	pinion_runtime_destroy(runtime);
	close(file.fd);
}

int main(void)
{
	uint32_t count;
	cpu_set_t all;
	unsigned cpu;

	runtimes_watchdog(LIMIT_SECONDS);
	expect_ready("affinity", sched_getaffinity(0, sizeof(all), &all) == 0);
	if (!keep_to_one(&cpu)) {
		printf("skipped: there is one CPU only\n");
		return EXPECT_SKIPPED;
	}
	scratch_enter("ring_helpers");
	count = sync_by_ring(cpu, &all);
	keep_to_one(&cpu);
	sync_by_runtime(cpu);
	scratch_leave();
	if (count == 0 && expect_failure_count == 0) {
		printf("skipped: nothing was done by a thread of the kernel's\n");
		return EXPECT_SKIPPED;
	}
	return expect_status();
}
