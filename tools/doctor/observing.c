/* SPDX-License-Identifier: MIT */
/*
 * Whether others can observe a runtime here: by static probes, tracepoints of
 * io_uring, the state of rings, and the metrics of other users' processes; and
 * how to get there.
 *
 * Rights are read, not tried: nothing is attached to anything.
 */
#include "tools/doctor/subjects.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	/* Of capability.h. */
	SYS_PTRACE = 19,
	SYS_ADMIN = 21,
	PERFMON = 38,
};

static bool has_capability(int number)
{
	char line[64];

	return doctor_line("/proc/self/status", "CapEff", line, sizeof(line)) &&
		(strtoull(line, NULL, 16) >> number & 1) != 0;
}

/* ---- static probes ---- */

/* A file in memory; `bytes` NULL: it cannot be had. */
struct image {
	const uint8_t *bytes;
	size_t length;
};

static struct image map_program(void)
{
	struct image image = {0};
	struct stat status;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	void *memory;

	if (fd >= 0 && fstat(fd, &status) == 0 && status.st_size > 0) {
		memory = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (memory != MAP_FAILED) {
			image = (struct image){memory, (size_t)status.st_size};
		}
	}
	if (fd >= 0) {
		close(fd);
	}
	return image;
}

static bool is_within(const struct image *image, uint64_t offset, uint64_t bytes)
{
	return offset <= image->length && bytes <= image->length - offset;
}

/* Notes of SystemTap's format whose provider is pinion. */
static uint32_t count_notes(const uint8_t *at, uint64_t left)
{
	static const char owner[] = "stapsdt";
	static const char provider[] = "pinion";
	const size_t before = sizeof(Elf64_Nhdr) + sizeof(owner) + 3 * sizeof(uint64_t);
	uint32_t count = 0;
	Elf64_Nhdr note;

	while (left >= sizeof(note)) {
		uint64_t bytes;

		memcpy(&note, at, sizeof(note));
		bytes = sizeof(note) + (((uint64_t)note.n_namesz + 3) & ~UINT64_C(3)) +
			(((uint64_t)note.n_descsz + 3) & ~UINT64_C(3));
		if (bytes > left) {
			break;
		}
		if (note.n_namesz == sizeof(owner) && bytes >= before + sizeof(provider) &&
			memcmp(at + sizeof(note), owner, sizeof(owner)) == 0 &&
			memcmp(at + before, provider, sizeof(provider)) == 0) {
			count++;
		}
		at += bytes;
		left -= bytes;
	}
	return count;
}

/* In the note sections of this program. */
static uint32_t count_probes(const struct image *image)
{
	Elf64_Ehdr header;
	uint32_t count = 0;

	if (!is_within(image, 0, sizeof(header))) {
		return 0;
	}
	memcpy(&header, image->bytes, sizeof(header));
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
		header.e_ident[EI_CLASS] != ELFCLASS64 ||
		header.e_shentsize != sizeof(Elf64_Shdr) ||
		!is_within(image, header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr))) {
		return 0;
	}
	for (uint32_t i = 0; i < header.e_shnum; i++) {
		Elf64_Shdr section;

		memcpy(&section, image->bytes + header.e_shoff + i * sizeof(section),
			sizeof(section));
		if (section.sh_type == SHT_NOTE &&
			is_within(image, section.sh_offset, section.sh_size)) {
			count += count_notes(image->bytes + section.sh_offset, section.sh_size);
		}
	}
	return count;
}

static void examine_probes(struct findings *findings)
{
	struct image image = map_program();
	uint32_t count = 0;
	bool has_events = access("/sys/bus/event_source/devices/uprobe/type", F_OK) == 0;
	bool may_attach = has_events && (has_capability(PERFMON) || has_capability(SYS_ADMIN));
	char line[64];

	if (image.bytes != NULL) {
		count = count_probes(&image);
		munmap((void *)(uintptr_t)image.bytes, image.length);
	}
	findings_number(findings, "usdt_probes", count);
	findings_flag(findings, "may_attach_probes", may_attach);
	if (doctor_line("/proc/sys/kernel/perf_event_paranoid", NULL, line, sizeof(line))) {
		findings_text(findings, "perf_event_paranoid", line);
	}
	if (count == 0) {
		findings_problem(findings, VERDICT_READY,
			"this program was built without static probes (USDT)",
			"apt-get install systemtap-sdt-dev, then configure and build it again");
	}
	if (!has_events) {
		findings_problem(findings, VERDICT_READY,
			"this kernel attaches no probes to programs",
			"boot a kernel with CONFIG_UPROBE_EVENTS, as those of Debian have it");
	} else if (!may_attach) {
		findings_problem(findings, VERDICT_READY,
			"static probes are for root, or a tracer with CAP_PERFMON",
			"sudo bpftrace -l 'usdt:/proc/PID/exe:pinion:*', or setcap cap_perfmon+ep "
			"$(command -v perf)");
	}
}

/* ---- tracepoints ---- */

static bool has_file_system(const char *name)
{
	FILE *file = fopen("/proc/filesystems", "re");
	bool is_found = false;
	char line[128];

	while (file != NULL && !is_found && fgets(line, sizeof(line), file) != NULL) {
		const char *at = strrchr(line, '\t');

		line[strcspn(line, "\n")] = '\0';
		is_found = at != NULL && strcmp(at + 1, name) == 0;
	}
	if (file != NULL) {
		fclose(file);
	}
	return is_found;
}

/* The events of a group; -1: errno says why not. */
static int count_events(const char *path)
{
	DIR *entries = opendir(path);
	const struct dirent *entry;
	int count = 0;

	if (entries == NULL) {
		return -1;
	}
	while ((entry = readdir(entries)) != NULL) {
		count += strncmp(entry->d_name, "io_uring_", strlen("io_uring_")) == 0;
	}
	closedir(entries);
	return count;
}

static void examine_tracepoints(struct findings *findings)
{
	bool is_denied;
	int count = count_events("/sys/kernel/tracing/events/io_uring");

	is_denied = count < 0 && errno == EACCES;
	if (count < 0 && !is_denied) {
		count = count_events("/sys/kernel/debug/tracing/events/io_uring");
		is_denied = count < 0 && errno == EACCES;
	}
	findings_number(findings, "ring_tracepoints", count > 0 ? (uint64_t)count : 0);
	if (count > 0) {
		return;
	}
	if (is_denied) {
		findings_problem(findings, VERDICT_READY, "tracepoints of io_uring are for root",
			"sudo perf trace -e 'io_uring:*', or mount -o remount,gid=GROUP,mode=750 "
			"/sys/kernel/tracing");
	} else if (!has_file_system("tracefs")) {
		findings_problem(findings, VERDICT_READY, "this kernel has no tracepoints",
			"boot a kernel with CONFIG_FTRACE, as those of Debian have it");
	} else if (access("/sys/kernel/tracing/events", F_OK) != 0) {
		findings_problem(findings, VERDICT_READY,
			"the file system of tracepoints is not mounted",
			"mount -t tracefs tracefs /sys/kernel/tracing");
	} else {
		findings_problem(findings, VERDICT_READY,
			"this kernel has no tracepoints of io_uring",
			"boot a kernel with CONFIG_IO_URING and CONFIG_TRACEPOINTS");
	}
}

/* ---- the state of rings ---- */

/* Of a ring made for it: whether its queues are in /proc. -1: there is none. */
static int shows_queues(void)
{
	struct io_uring_params parameters = {0};
	int fd = (int)syscall(SYS_io_uring_setup, 4, &parameters);
	char path[64];
	char head[32];
	char tail[32];
	bool is_shown;

	if (fd < 0) {
		return -1;
	}
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	is_shown = doctor_line(path, "SqHead", head, sizeof(head)) &&
		doctor_line(path, "CqTail", tail, sizeof(tail));
	close(fd);
	return is_shown ? 1 : 0;
}

static void examine_fdinfo(struct findings *findings)
{
	int shown = shows_queues();

	findings_flag(findings, "ring_fdinfo", shown == 1);
	if (shown == 0) {
		findings_problem(findings, VERDICT_READY,
			"/proc/PID/fdinfo does not show the queues of a ring",
			"boot Linux 5.16 or later, with CONFIG_PROC_FS");
	} else if (shown < 0) {
		findings_problem(findings, VERDICT_READY,
			"there is no ring whose queues could be shown",
			"see io_uring above: pinion doctor | grep -A 9 ^io_uring");
	}
}

/* ---- other users' processes ---- */

/* "hidepid=" of the mount at /proc; "0": all are shown. */
static void find_hidepid(char *out, size_t size)
{
	FILE *mounts = fopen("/proc/self/mounts", "re");
	char line[1024];

	snprintf(out, size, "0");
	while (mounts != NULL && fgets(line, sizeof(line), mounts) != NULL) {
		const char *at = strstr(line, "hidepid=");

		if (strstr(line, " /proc proc ") != NULL) {
			at = at == NULL ? "hidepid=0" : at;
			at += strlen("hidepid=");
			snprintf(out, size, "%.*s", (int)strcspn(at, ", \n"), at);
		}
	}
	if (mounts != NULL) {
		fclose(mounts);
	}
}

static void examine_others(struct findings *findings)
{
	bool may_read = has_capability(SYS_PTRACE);
	char hidden[32];
	char line[32];

	find_hidepid(hidden, sizeof(hidden));
	findings_flag(findings, "may_read_other_users", may_read);
	if (doctor_line("/proc/sys/kernel/yama/ptrace_scope", NULL, line, sizeof(line))) {
		findings_text(findings, "ptrace_scope", line);
	}
	findings_text(findings, "hidepid", hidden);
	if (!may_read) {
		findings_problem(findings, VERDICT_READY,
			"pinion top shows processes of this user only",
			"sudo pinion top, or run it as the user of the process");
	}
}

void doctor_observing(struct findings *findings)
{
	findings_subject(findings, "observing");
	examine_probes(findings);
	examine_tracepoints(findings);
	examine_fdinfo(findings);
	examine_others(findings);
}
