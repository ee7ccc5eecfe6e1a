/* SPDX-License-Identifier: MIT */
/*
 * pinion doctor: what this machine offers, what is missing, and the command
 * that mends it; for each path, how its files can be read.
 *
 * Everything comes from the public library and /proc; nothing is written and
 * nothing is changed. Lines come in a fixed order, one subject each. Under its
 * subject a problem stands as "! what is wrong" with "mend: command".
 *
 * The exit status is the worst verdict: 0 ready, 1 degraded (all works, slower
 * than it could), 2 unusable (something asked for cannot be read at all).
 */
#include "tools/commands.h"
#include "tools/output.h"
#include "tools/report.h"

#include <errno.h>
#include <fcntl.h>
#include <pinion/pinion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum {
	/* A directory is searched for a readable file no further than this. */
	SAMPLE_ENTRIES_MAX = 100000,
	/* Fewer descriptors than this are fewer than a scan keeps open. */
	NOFILE_MIN = 1024,
};

enum verdict {
	VERDICT_READY = EXIT_STATUS_CLEAN,
	VERDICT_DEGRADED = EXIT_STATUS_FOUND,
	VERDICT_UNUSABLE = EXIT_STATUS_TROUBLE,
};

struct doctor {
	struct output_text text;
	enum verdict verdict; /* the worst so far */
};

static void worsen(struct doctor *doctor, enum verdict verdict)
{
	if (verdict > doctor->verdict) {
		doctor->verdict = verdict;
	}
}

/* Under the line of its subject; NULL for `mend`: no command helps. */
static void problem(struct doctor *doctor, enum verdict verdict, const char *what, const char *mend)
{
	worsen(doctor, verdict);
	output_text_format(&doctor->text, "            ! %s\n", what);
	if (mend != NULL) {
		output_text_format(&doctor->text, "              mend: %s\n", mend);
	}
}

static void examine_cpus(struct doctor *doctor, const struct pinion_machine *machine)
{
	output_text_format(&doctor->text, "CPUs        %u logical, %u core%s, %u NUMA node%s; ",
		machine->cpu_count, machine->core_count, machine->core_count == 1 ? "" : "s",
		machine->node_count, machine->node_count == 1 ? "" : "s");
	if (machine->quota_millicpus == 0) {
		output_text_format(&doctor->text, "no quota\n");
	} else {
		output_text_format(&doctor->text, "quota of %u.%03u CPUs\n",
			machine->quota_millicpus / 1000, machine->quota_millicpus % 1000);
	}
	output_text_format(
		&doctor->text, "workers     %u by default\n", machine->default_worker_count);
}

static void examine_ring(struct doctor *doctor, const struct pinion_machine *machine)
{
	const struct {
		const char *name;
		uint32_t is_there;
	} features[] = {
		{"coop-taskrun", machine->has_coop_taskrun},
		{"single-issuer", machine->has_single_issuer},
		{"defer-taskrun", machine->has_defer_taskrun},
		{"registered-ring", machine->has_registered_ring},
		{"openat", machine->has_op_openat},
		{"clone-buffers", machine->has_clone_buffers},
		{"send-msg-ring", machine->has_send_msg_ring},
		{"no-iowait", machine->has_no_iowait},
	};
	uint32_t missing_count = 0;

	output_text_format(&doctor->text, "kernel      %s\n", machine->kernel_release);
	if (machine->ring_error != 0) {
		output_text_format(&doctor->text,
			"io_uring    none: files are read with plain system calls instead\n");
		problem(doctor, VERDICT_DEGRADED, machine->ring_hint, NULL);
		return;
	}
	output_text_format(
		&doctor->text, "io_uring    works, features %#x;", machine->ring_features);
	for (int wanted = 1; wanted >= 0; wanted--) {
		for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++) {
			if (features[i].is_there == (uint32_t)wanted) {
				if (wanted == 0 && missing_count++ == 0) {
					output_text_format(&doctor->text, "; not here:");
				}
				output_text_format(&doctor->text, " %s", features[i].name);
			}
		}
	}
	output_text_format(&doctor->text, "\n");
	if (!machine->has_defer_taskrun || !machine->has_op_openat) {
		problem(doctor, VERDICT_DEGRADED,
			"this kernel lacks what keeps completions cheap (Linux 6.1)",
			"apt-get install linux-image-amd64, or another kernel of 6.1 or later");
	}
}

static void examine_memlock(struct doctor *doctor, const struct pinion_machine *machine)
{
	uint64_t limit = machine->memlock_limit_bytes;
	uint64_t wanted;
	char mend[160];

	wanted = (uint64_t)machine->default_worker_count * machine->default_arena_mib << 20;
	if (limit == UINT64_MAX) {
		output_text_format(&doctor->text, "memlock     no limit\n");
		return;
	}
	output_text_format(&doctor->text,
		"memlock     limit %llu KiB, registered by default %llu KiB\n",
		(unsigned long long)(limit >> 10), (unsigned long long)(wanted >> 10));
	if (limit >= wanted || machine->ring_error != 0) {
		return;
	}
	snprintf(mend, sizeof(mend),
		"ulimit -l %llu (limits.conf: memlock), or LimitMEMLOCK=%lluM in the systemd unit",
		(unsigned long long)(2 * wanted >> 10), (unsigned long long)(2 * wanted >> 20));
	problem(doctor, VERDICT_DEGRADED,
		"some buffers will not be registered with io_uring; reads cost more CPU", mend);
}

static void examine_limits(struct doctor *doctor, const struct pinion_machine *machine)
{
	examine_memlock(doctor, machine);
	output_text_format(&doctor->text, "huge pages  transparent %s, %u of 2 MiB free\n",
		machine->has_transparent_huge ? "on" : "off", machine->huge_pages_free);
	if (!machine->has_transparent_huge && machine->huge_pages_free == 0) {
		problem(doctor, VERDICT_DEGRADED,
			"buffers lie on 4 KiB pages, which slows direct reads of some disks",
			"echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
	}
	output_text_format(&doctor->text,
		"files       %llu descriptors; alignment %s, cached share %s\n",
		(unsigned long long)machine->nofile_limit,
		machine->has_statx_dioalign ? "told by statx" : "found by trying",
		machine->has_cachestat ? "told by cachestat" : "guessed from the first byte");
	if (machine->nofile_limit < NOFILE_MIN) {
		problem(doctor, VERDICT_DEGRADED,
			"fewer descriptors than a scan keeps open at once",
			"ulimit -n 65536, or LimitNOFILE=65536 in the systemd unit");
	}
}

/* Where a path is mounted from. */
struct mount {
	char type[32];
	char source[96];
};

/* The mount of that number in mountinfo: ID … - TYPE SOURCE OPTIONS. */
static void find_mount(uint64_t mount_id, struct mount *out_mount)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t capacity = 0;

	snprintf(out_mount->type, sizeof(out_mount->type), "unknown");
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

/* The search for a file that stands for its directory. */
struct sample {
	struct pinion_file file;
	uint64_t device; /* files of other file systems do not count */
	uint32_t entry_count;
	int root_error; /* why the directory itself could not be entered */
	size_t root_bytes;
	char *path; /* of the file found, NULL: none */
};

static int sample_visit(void *arg, const struct pinion_walk_entry *entry)
{
	struct sample *sample = arg;

	if (entry->kind == PINION_WALK_ERROR && entry->path_bytes == sample->root_bytes) {
		sample->root_error = entry->error;
	}
	if (++sample->entry_count > SAMPLE_ENTRIES_MAX) {
		return 1;
	}
	if (entry->kind != PINION_WALK_FILE ||
		pinion_file_open(&sample->file, entry->path, PINION_DIRECT_ALWAYS) != 0) {
		return 0;
	}
	if (sample->file.size_bytes == 0 || sample->file.device != sample->device) {
		pinion_file_close(&sample->file);
		return 0;
	}
	sample->path = strdup(entry->path);
	return 1;
}

static void say_path(struct doctor *doctor, const char *path)
{
	output_text_json(&doctor->text, path, strlen(path));
}

static void say_direct(struct doctor *doctor, const struct pinion_file *file)
{
	if (file->is_direct) {
		output_text_format(&doctor->text,
			"O_DIRECT works: memory aligned to %u, offsets to %u bytes\n",
			file->memory_align_bytes, file->offset_align_bytes);
		return;
	}
	if (file->size_bytes == 0) {
		output_text_format(&doctor->text, "empty, O_DIRECT was not tried\n");
		return;
	}
	output_text_format(&doctor->text, "no O_DIRECT\n");
	problem(doctor, VERDICT_DEGRADED,
		"this file system is read through the page cache only, which costs CPU and memory",
		"move the data to one with O_DIRECT: findmnt -t ext4,xfs,btrfs lists them");
}

static void examine_file(struct doctor *doctor, const char *path)
{
	struct pinion_file file;
	int rc = pinion_file_open(&file, path, PINION_DIRECT_ALWAYS);

	if (rc != 0) {
		output_text_format(&doctor->text, "cannot be opened\n");
		problem(doctor, VERDICT_UNUSABLE, report_reason(rc), NULL);
		return;
	}
	say_direct(doctor, &file);
	pinion_file_close(&file);
}

static void examine_directory(struct doctor *doctor, const char *path, uint64_t device)
{
	struct sample sample = {
		.file.fd = -1,
		.device = device,
		.root_bytes = strlen(path),
	};

	if (pinion_walk(path, sample_visit, &sample) < 0) {
		output_text_format(&doctor->text, "out of memory\n");
		worsen(doctor, VERDICT_UNUSABLE);
	} else if (sample.root_error != 0) {
		output_text_format(&doctor->text, "cannot be entered\n");
		problem(doctor, VERDICT_UNUSABLE, report_reason(sample.root_error), NULL);
	} else if (sample.file.fd < 0) {
		output_text_format(
			&doctor->text, "no readable file in it, O_DIRECT was not tried\n");
	} else {
		if (sample.path != NULL) {
			output_text_format(&doctor->text, "tried on ");
			say_path(doctor, sample.path);
			output_text_format(&doctor->text, ", ");
		}
		say_direct(doctor, &sample.file);
	}
	pinion_file_close(&sample.file);
	free(sample.path);
}

static const char *device_of(
	const struct stat *status, const struct mount *mount, char *buffer, size_t size)
{
	char *real;
	char link[64];

	/* File systems of their own making have no device, only a source. */
	snprintf(link, sizeof(link), "/sys/dev/block/%u:%u", major(status->st_dev),
		minor(status->st_dev));
	real = realpath(link, NULL);
	if (real == NULL) {
		return mount->source;
	}
	snprintf(buffer, size, "/dev/%s", strrchr(real, '/') + 1);
	free(real);
	return buffer;
}

static const char *kind_of(mode_t mode)
{
	if (S_ISDIR(mode)) {
		return "directory";
	}
	return S_ISREG(mode) ? "file" : "special file";
}

static void examine_path(struct doctor *doctor, const char *path)
{
	struct stat status;
	struct statx extended;
	struct mount mount;
	char device[128];

	say_path(doctor, path);
	if (stat(path, &status) != 0 ||
		statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_MNT_ID, &extended) != 0) {
		output_text_format(&doctor->text, "\n");
		problem(doctor, VERDICT_UNUSABLE, report_reason(errno), NULL);
		return;
	}
	find_mount(extended.stx_mnt_id, &mount);
	output_text_format(&doctor->text, "\n            %s on %s (%s); ", kind_of(status.st_mode),
		mount.type, device_of(&status, &mount, device, sizeof(device)));
	if (S_ISDIR(status.st_mode)) {
		examine_directory(doctor, path, status.st_dev);
	} else {
		examine_file(doctor, path);
	}
}

static void conclude(struct doctor *doctor)
{
	switch (doctor->verdict) {
	case VERDICT_READY:
		output_text_format(&doctor->text, "ready\n");
		break;
	case VERDICT_DEGRADED:
		output_text_format(
			&doctor->text, "degraded: everything works, slower than it could\n");
		break;
	case VERDICT_UNUSABLE:
	default:
		output_text_format(
			&doctor->text, "unusable: not everything asked for can be read\n");
		break;
	}
}

static int doctor_run(const struct command *command, int argc, char **argv)
{
	struct option_parser parser = {.command = command, .argc = argc, .argv = argv};
	struct doctor doctor = {.verdict = VERDICT_READY};
	struct pinion_machine machine;
	const char *value;
	int rc = options_next(&parser, &value);

	if (rc != OPTIONS_END) {
		return rc == OPTIONS_HELP ? EXIT_STATUS_CLEAN : EXIT_STATUS_TROUBLE;
	}
	rc = pinion_machine_probe(&machine, sizeof(machine));
	if (rc != 0) {
		report_line("the CPUs cannot be found out (%s); is /sys mounted? mend: mount -t "
			    "sysfs sysfs /sys",
			report_reason(rc));
		return EXIT_STATUS_TROUBLE;
	}
	output_text_format(&doctor.text, "pinion      %s\n", pinion_version());
	examine_cpus(&doctor, &machine);
	examine_ring(&doctor, &machine);
	examine_limits(&doctor, &machine);
	for (int i = 1; i <= parser.operand_count; i++) {
		examine_path(&doctor, argv[i]);
	}
	conclude(&doctor);
	return output_print(&doctor.text) ? (int)doctor.verdict : EXIT_STATUS_TROUBLE;
}

const struct command doctor_command = {
	.name = "doctor",
	.arguments = "[PATH]…",
	.brief = "what this machine offers, what is missing, and the command that mends it",
	.detail =
		"Shows the CPUs and memory nodes this process may use, its quota and limits, the "
		"state of io_uring, huge pages; and for each PATH its file system, its device and "
		"whether it can be read past the page cache. For a directory the first readable "
		"file in it is tried. Nothing is written.\n\n"
		"Exit status: 0 ready; 1 degraded, all works but slower than it could; 2 unusable, "
		"or bad usage.",
	.options = NULL,
	.option_count = 0,
	.run = doctor_run,
};
