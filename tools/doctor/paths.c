/* SPDX-License-Identifier: MIT */
/*
 * How the files of one path can be read: its file system, the device below it
 * and that one's queue, O_DIRECT and RWF_DONTCACHE each tried on a file.
 */
#include "tools/doctor/subjects.h"
#include "tools/report.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <pinion/pinion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef RWF_DONTCACHE
#define RWF_DONTCACHE 0x00000080 /* since Linux 6.14 */
#endif

enum {
	/* A directory is searched for a readable file no further than this. */
	SAMPLE_ENTRIES_MAX = 100000,
	/* Holds what any device wants aligned, and is so aligned itself. */
	BLOCK_BYTES = 4096,
};

/* What a shell takes for the path, or PATH where that would be no one line. */
static void append_word(struct output_text *text, const char *path)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789/._+,:@%-";
	bool is_plain = path[0] != '\0' && path[strspn(path, plain)] == '\0';
	bool can_be_quoted = true;

	for (const char *at = path; *at != '\0'; at++) {
		can_be_quoted &= *at >= ' ' && *at < 0x7f && *at != '\'';
	}
	if (!can_be_quoted) {
		output_text_string(text, "PATH");
		return;
	}
	output_text_string(text, is_plain ? "" : "'");
	output_text_string(text, path);
	output_text_string(text, is_plain ? "" : "'");
}

/* `words` before the path and after it are the command that helps. */
static void report_unreadable(
	struct findings *findings, int error, const char *path, const char *const words[2])
{
	struct output_text mend = {0};

	findings_flag(findings, "readable", false);
	output_text_string(&mend, words[0]);
	append_word(&mend, path);
	output_text_string(&mend, words[1]);
	output_text_append(&mend, "", 1);
	findings_problem(findings, VERDICT_UNUSABLE, report_reason(error),
		mend.failed ? "namei -l PATH" : mend.bytes);
	output_text_free(&mend);
}

/* Where a path is mounted from. */
struct mount {
	char type[32];
	char source[96];
};

/* For mounts that mountinfo does not show, as in a chroot. */
static const char *type_by_magic(const char *path)
{
	static const struct {
		long magic;
		const char *name;
	} types[] = {
		{EXT4_SUPER_MAGIC, "ext4"}, /* or one of those before it */
		{XFS_SUPER_MAGIC, "xfs"},
		{BTRFS_SUPER_MAGIC, "btrfs"},
		{F2FS_SUPER_MAGIC, "f2fs"},
		{TMPFS_MAGIC, "tmpfs"},
		{OVERLAYFS_SUPER_MAGIC, "overlay"},
		{NFS_SUPER_MAGIC, "nfs"},
	};
	struct statfs status;

	for (size_t i = 0; statfs(path, &status) == 0 && i < sizeof(types) / sizeof(types[0]);
		i++) {
		if ((long)status.f_type == types[i].magic) {
			return types[i].name;
		}
	}
	return "unknown";
}

/* The mount of that number in mountinfo: ID … - TYPE SOURCE OPTIONS. */
static void find_mount(const char *path, uint64_t mount_id, struct mount *out_mount)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t capacity = 0;

	snprintf(out_mount->type, sizeof(out_mount->type), "%s", type_by_magic(path));
	snprintf(out_mount->source, sizeof(out_mount->source), "unknown");
	while (file != NULL && getline(&line, &capacity, file) > 0) {
		const char *separator = strstr(line, " - ");

		if (separator != NULL && strtoull(line, NULL, 10) == mount_id) {
			/* A source too long for its field is cut. */
			(void)sscanf(
				separator + 3, "%31s %95s", out_mount->type, out_mount->source);
			break;
		}
	}
	free(line);
	if (file != NULL) {
		fclose(file);
	}
}

/* A file of the device's queue; those of a partition are its disk's. */
static bool queue_line(dev_t device, const char *name, char *out, size_t size)
{
	static const char *const folders[] = {"queue", "../queue"};

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		char path[128];

		snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%s/%s", major(device),
			minor(device), folders[i], name);
		if (doctor_line(path, NULL, out, size)) {
			return true;
		}
	}
	return false;
}

/* "none [mq-deadline] kyber": the scheduler in brackets is in force. */
static void examine_scheduler(struct findings *findings, dev_t device, const char *disk)
{
	char line[256];
	char *start;
	char mend[256];
	bool is_rotational = queue_line(device, "rotational", line, sizeof(line)) && line[0] == '1';

	findings_flag(findings, "rotational", is_rotational);
	if (!queue_line(device, "scheduler", line, sizeof(line))) {
		return;
	}
	start = strchr(line, '[');
	start = start == NULL ? line : start + 1;
	start[strcspn(start, "]")] = '\0';
	findings_text(findings, "scheduler", start);
	if (!is_rotational && strcmp(start, "bfq") == 0) {
		snprintf(mend, sizeof(mend), "echo none > /sys/block/%s/queue/scheduler", disk);
		findings_problem(findings, VERDICT_DEGRADED,
			"bfq shares a slow disk out fairly; on this one it costs more than it "
			"gives",
			mend);
	}
}

static void say_node(struct findings *findings, dev_t device, const struct doctor_workers *workers)
{
	struct pinion_file file = {.fd = -1, .device = device};
	int node_index = pinion_file_node(&file);

	if (node_index >= 0) {
		doctor_distance(findings, "", (uint32_t)node_index, workers);
	}
}

/* False: no such device. */
static bool examine_disk(
	struct findings *findings, dev_t device, const struct doctor_workers *workers)
{
	char line[64];
	char *real;

	snprintf(line, sizeof(line), "/sys/dev/block/%u:%u", major(device), minor(device));
	real = realpath(line, NULL);
	if (real == NULL) {
		return false;
	}
	findings_text(findings, "device", strrchr(real, '/') + 1);
	examine_scheduler(findings, device, strrchr(real, '/') + 1);
	free(real);
	say_node(findings, device, workers);
	if (queue_line(device, "nr_requests", line, sizeof(line))) {
		findings_number(findings, "queue_requests", strtoull(line, NULL, 10));
	}
	if (queue_line(device, "io_poll", line, sizeof(line))) {
		findings_flag(findings, "polling", line[0] == '1');
	}
	if (queue_line(device, "logical_block_size", line, sizeof(line))) {
		findings_number(findings, "block_bytes", strtoull(line, NULL, 10));
	}
	return true;
}

static void examine_device(struct findings *findings, const struct stat *status,
	const struct mount *mount, const struct doctor_workers *workers)
{
	dev_t device = S_ISBLK(status->st_mode) ? status->st_rdev : status->st_dev;

	/* File systems of their own making have no device, only a source. */
	if (!examine_disk(findings, device, workers)) {
		findings_text(findings, "source", mount->source);
	}
}

/* A file to be examined: at a path, or below a directory that is open. */
struct place {
	const char *path;
	const char *beneath; /* NULL: not below a directory */
	int directory_fd;
};

/* No link on the way from the directory is followed. */
static int place_open(struct pinion_file *file, const struct place *place, uint32_t direct)
{
	struct pinion_file_options options;

	pinion_file_options_init(&options);
	options.direct = direct;
	if (place->beneath == NULL) {
		return pinion_file_open_with(file, place->path, &options);
	}
	options.directory_fd = place->directory_fd;
	options.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
	return pinion_file_open_with(file, place->beneath, &options);
}

/* The search for a file that stands for its directory. */
struct sample {
	uint64_t device; /* files of other file systems do not count */
	uint32_t entry_count;
	int root_error; /* why the directory itself could not be entered */
	size_t root_bytes;
	char *path; /* of the file found, NULL: none */
	int directory_fd;
	size_t names_start; /* in the path, of the part below the directory */
};

/* False: out of memory or descriptors. */
static bool sample_keep(struct sample *sample, const struct pinion_walk_entry *entry)
{
	sample->directory_fd = fcntl(entry->root_fd, F_DUPFD_CLOEXEC, 0);
	if (sample->directory_fd < 0) {
		return false;
	}
	sample->names_start = (size_t)(entry->beneath - entry->path);
	sample->path = strdup(entry->path);
	return sample->path != NULL;
}

static int sample_visit(void *arg, const struct pinion_walk_entry *entry)
{
	struct sample *sample = arg;
	const struct place place = {
		.path = entry->path,
		.beneath = entry->beneath,
		.directory_fd = entry->root_fd,
	};
	struct pinion_file file;
	bool is_fit;

	if (entry->kind == PINION_WALK_ERROR && entry->path_bytes == sample->root_bytes) {
		sample->root_error = entry->error;
	}
	if (++sample->entry_count > SAMPLE_ENTRIES_MAX) {
		return 1;
	}
	if (entry->kind != PINION_WALK_FILE || entry->beneath == NULL ||
		place_open(&file, &place, PINION_DIRECT_NEVER) != 0) {
		return 0;
	}
	is_fit = file.size_bytes > 0 && file.device == sample->device;
	pinion_file_close(&file);
	if (!is_fit) {
		return 0;
	}
	return sample_keep(sample, entry) ? 1 : -ENOMEM;
}

/* 0, or why the first block of an open file cannot be read so. */
static int try_read(const struct pinion_file *file, int flags)
{
	void *block = aligned_alloc(BLOCK_BYTES, BLOCK_BYTES);
	struct iovec vector = {.iov_base = block, .iov_len = BLOCK_BYTES};
	int rc;

	if (block == NULL) {
		return ENOMEM;
	}
	rc = preadv2(file->fd, &vector, 1, 0, flags) < 0 ? errno : 0;
	free(block);
	return rc;
}

/* Nothing where it is not known. */
static void say_transfer(struct findings *findings, const struct pinion_file *file)
{
	if (file->transfer_bytes != 0) {
		findings_number(findings, "transfer_bytes", file->transfer_bytes);
	}
}

/* What PINION_DIRECT_AUTO makes of it now. */
static void examine_choice(struct findings *findings, const struct place *place)
{
	static const char *const names[] = {
		[PINION_WAY_UNKNOWN] = "unknown",
		[PINION_WAY_DIRECT] = "direct",
		[PINION_WAY_ASKED] = "buffered",
		[PINION_WAY_CACHED] = "buffered: cached",
		[PINION_WAY_EMPTY] = "buffered: empty",
		[PINION_WAY_UNABLE] = "buffered: no o_direct",
	};
	struct pinion_file file;

	if (place_open(&file, place, PINION_DIRECT_AUTO) == 0 &&
		file.way < sizeof(names) / sizeof(names[0])) {
		findings_text(findings, "auto", names[file.way]);
	}
	pinion_file_close(&file);
}

static void examine_direct(struct findings *findings, const struct place *place)
{
	struct pinion_file file;
	bool works = false;

	if (place_open(&file, place, PINION_DIRECT_ALWAYS) == 0) {
		works = file.is_direct != 0 && try_read(&file, 0) == 0;
	}
	findings_flag(findings, "o_direct", works);
	if (works) {
		findings_number(findings, "memory_align_bytes", file.memory_align_bytes);
		findings_number(findings, "offset_align_bytes", file.offset_align_bytes);
		say_transfer(findings, &file);
	} else {
		findings_problem(findings, VERDICT_DEGRADED,
			"this file system, or device, is read through the page cache only, which "
			"costs CPU and memory",
			"move the data to a file system with O_DIRECT: findmnt -t ext4,xfs,btrfs "
			"lists them");
	}
	pinion_file_close(&file);
}

static void examine_file(struct findings *findings, const struct place *place)
{
	struct pinion_file file;
	int rc = place_open(&file, place, PINION_DIRECT_NEVER);

	if (rc == 0 && file.size_bytes > 0) {
		int error = try_read(&file, 0);

		rc = -error;
	}
	if (rc != 0) {
		report_unreadable(findings, rc, place->path,
			(const char *const[]){"see what it is and who may read it: namei -l ", ""});
	} else if (file.size_bytes == 0) {
		findings_flag(findings, "empty", true);
	} else {
		findings_flag(findings, "readable", true);
		findings_flag(findings, "dontcache", try_read(&file, RWF_DONTCACHE) == 0);
		examine_direct(findings, place);
		examine_choice(findings, place);
	}
	pinion_file_close(&file);
}

/*
 * Of an NVMe namespace: the folder above has the disk. Opening it has it asked
 * what it is.
 */
static void examine_namespace(
	struct findings *findings, const char *path, const struct doctor_workers *workers)
{
	struct pinion_machine machine;
	struct pinion_file file;
	int rc = pinion_file_open(&file, path, PINION_DIRECT_AUTO);

	if (rc != 0) {
		report_unreadable(findings, rc, path,
			(const char *const[]){"see who may send it commands, and what its blocks "
					      "are: ls -l /dev/ng*; nvme id-ns ",
				"; read its block device, /dev/nvmeXnY, instead"});
		return;
	}
	findings_flag(findings, "readable", true);
	examine_disk(findings, (dev_t)file.device, workers);
	findings_number(findings, "size_bytes", file.size_bytes);
	findings_number(findings, "offset_align_bytes", file.offset_align_bytes);
	say_transfer(findings, &file);
	if (pinion_machine_probe(&machine, sizeof(machine)) == 0) {
		bool has_commands = (machine.io_features & PINION_IO_NVME_COMMANDS) != 0;

		findings_text(findings, "read_by", has_commands ? "commands of a ring" : "calls");
		if (!has_commands) {
			findings_problem(findings, VERDICT_DEGRADED,
				"io_uring takes no NVMe commands here: a worker sends one at a "
				"time",
				"boot Linux 5.19 or later, or read its block device, /dev/nvmeXnY");
		}
	}
	pinion_file_close(&file);
}

static void examine_directory(struct findings *findings, const char *path, uint64_t device)
{
	struct sample sample = {
		.device = device,
		.root_bytes = strlen(path),
		.directory_fd = -1,
	};

	if (pinion_walk(path, sample_visit, &sample) < 0) {
		findings->text.failed = true; /* out of memory: said at the end */
	} else if (sample.root_error != 0) {
		report_unreadable(findings, sample.root_error, path,
			(const char *const[]){"see who may enter it: namei -l ", ""});
	} else if (sample.path == NULL) {
		findings_flag(findings, "empty", true);
	} else {
		const struct place place = {
			.path = sample.path,
			.beneath = sample.path + sample.names_start,
			.directory_fd = sample.directory_fd,
		};

		findings_text(findings, "tried_on", sample.path);
		examine_file(findings, &place);
	}
	if (sample.directory_fd >= 0) {
		close(sample.directory_fd);
	}
	free(sample.path);
}

/* A device that is read by commands: /dev/ngXnY. */
static bool is_namespace(const struct stat *status)
{
	char path[64];
	char *real;
	bool is_generic;

	if (!S_ISCHR(status->st_mode)) {
		return false;
	}
	snprintf(path, sizeof(path), "/sys/dev/char/%u:%u/subsystem", major(status->st_rdev),
		minor(status->st_rdev));
	real = realpath(path, NULL);
	is_generic = real != NULL && strcmp(strrchr(real, '/'), "/nvme-generic") == 0;
	free(real);
	return is_generic;
}

static const char *kind_of(mode_t mode)
{
	if (S_ISDIR(mode)) {
		return "directory";
	}
	if (S_ISBLK(mode)) {
		return "block device";
	}
	return S_ISREG(mode) ? "file" : "special";
}

void doctor_path(struct findings *findings, const char *path, const struct doctor_workers *workers)
{
	struct stat status;
	struct statx extended;
	struct mount mount;

	findings_path(findings, path);
	if (stat(path, &status) != 0 ||
		statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_MNT_ID, &extended) != 0) {
		report_unreadable(findings, errno, path,
			(const char *const[]){"see how far the path leads: namei -l ", ""});
		return;
	}
	if (is_namespace(&status)) {
		findings_text(findings, "kind", "nvme namespace");
		examine_namespace(findings, path, workers);
		return;
	}
	find_mount(path, extended.stx_mnt_id, &mount);
	findings_text(findings, "kind", kind_of(status.st_mode));
	if (!S_ISBLK(status.st_mode)) {
		findings_text(findings, "file_system", mount.type);
	}
	examine_device(findings, &status, &mount, workers);
	if (S_ISDIR(status.st_mode)) {
		examine_directory(findings, path, status.st_dev);
	} else {
		examine_file(findings, &(struct place){.path = path});
	}
}
