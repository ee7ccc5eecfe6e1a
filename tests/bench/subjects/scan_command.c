/* SPDX-License-Identifier: MIT */
/*
 * The subjects that run the command `scan` as a user does, on files in the page
 * cache: `scan_large_warm` and `scan_rare_warm` a tree of two large files, for
 * a word whose letters the text has or lacks, `scan_named_warm` the first with
 * both files named, which rg then maps; `scan_small_warm` a tree of small ones;
 * beside each `rg -F`, in turns. `scan_start` is the time until the first file
 * is opened, beside cat(1).
 *
 * Files are made in a folder that is removed again; --tree names another one.
 * Programs are started as a shell would, and their processor time is what the
 * kernel charges them.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tools/bench/tasks.h"
#include "tools/report.h"
#include "tools/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pinion/pinion.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	WORDS_MAX = 12,
	PATH_BYTES = 1280,
	TEXT_BYTES = 1 << 20,
	/* As in a checkout of sources: mean length, files in a folder. */
	SMALL_BYTES = 7000,
	SMALL_FOLDER = 64,
	OPEN_LIMIT_MS = 10000,
};

/* Not in the text of any variant. */
static const char word[] = "zqkjt";

struct variant {
	const char *letters; /* of the text */
	bool is_small;	     /* a tree of small files */
	bool is_named;	     /* the commands get the files' names, not their folder's */
	bool is_start;	     /* one file, until it is opened */
};

struct command_bench {
	const struct variant *variant;
	char *own_folder;
	const char *folder;
	char paths[2][PATH_BYTES];
	char *words[2][WORDS_MAX]; /* of each side's command */
	double cpu_s[2];
	uint32_t runs[2];
};

extern char **environ;

/* ---- the files ---- */

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place)
{
	(void)status;
	(void)type;
	(void)place;
	return remove(path);
}

/* Lines of words, the same at each call. */
static void fill_text(uint8_t *text, const char *letters)
{
	size_t count = strlen(letters);
	uint64_t state = 1;

	for (size_t i = 0; i < TEXT_BYTES; i++) {
		uint64_t draw;

		state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		draw = state >> 33;
		text[i] = draw % 6 == 0 ? (uint8_t)(draw / 6 % 10 == 0 ? '\n' : ' ')
					: (uint8_t)letters[draw / 6 % count];
	}
}

/* Parts of the text, from a place of each file's own. */
static int make_file(const char *path, const uint8_t *text, uint64_t from, uint64_t bytes)
{
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	int rc = fd < 0 ? -errno : 0;

	while (rc == 0 && bytes > 0) {
		size_t start = (size_t)(from % TEXT_BYTES);
		size_t length = TEXT_BYTES - start < bytes ? TEXT_BYTES - start : (size_t)bytes;
		ssize_t got = write(fd, text + start, length);

		if (got < 0) {
			rc = -errno;
		} else {
			from += (uint64_t)got;
			bytes -= (uint64_t)got;
		}
		rc = rc == 0 && signals_interrupted() ? -ECANCELED : rc;
	}
	if (fd >= 0) {
		close(fd);
	}
	return rc;
}

static int make_small(const char *root, const uint8_t *text, uint64_t total_bytes)
{
	char path[PATH_BYTES];
	uint64_t count = total_bytes / SMALL_BYTES;
	int rc = 0;

	for (uint64_t i = 0; rc == 0 && i < count; i++) {
		/* A quarter to seven quarters of the mean. */
		uint64_t bytes = SMALL_BYTES / 4 + i * 2654435761 % (SMALL_BYTES * 3 / 2);

		if (i % SMALL_FOLDER == 0) {
			snprintf(path, sizeof(path), "%s/%llu", root,
				(unsigned long long)(i / SMALL_FOLDER));
			rc = mkdir(path, 0700) == 0 ? 0 : -errno;
		}
		if (rc == 0) {
			snprintf(path, sizeof(path), "%s/%llu/file-%02llu.c", root,
				(unsigned long long)(i / SMALL_FOLDER),
				(unsigned long long)(i % SMALL_FOLDER));
			rc = make_file(path, text, i * 4099, bytes);
		}
	}
	return rc;
}

static int make_files(struct command_bench *bench, uint64_t total_bytes)
{
	uint8_t *text = malloc(TEXT_BYTES);
	int rc = 0;

	if (text == NULL) {
		return -ENOMEM;
	}
	fill_text(text, bench->variant->letters);
	if (memmem(text, TEXT_BYTES, word, strlen(word)) != NULL) {
		free(text);
		return -EEXIST;
	}
	if (bench->variant->is_small) {
		rc = make_small(bench->own_folder, text, total_bytes);
	}
	for (int i = 0; rc == 0 && i < 2; i++) {
		snprintf(bench->paths[i], PATH_BYTES, "%s/%c", bench->own_folder, 'a' + i);
		rc = bench->variant->is_small ? 0
			: bench->variant->is_start
			? make_file(bench->paths[i], text, 0, SMALL_BYTES)
			: make_file(bench->paths[i], text, (uint64_t)i * 4099, total_bytes / 2);
	}
	free(text);
	return rc;
}

static int make_folder(struct command_bench *bench, const char *directory)
{
	char *path;

	if (strlen(directory) > PATH_BYTES / 2 ||
		asprintf(&path, "%s/.pinion-bench-XXXXXX", directory) < 0) {
		return -ENAMETOOLONG;
	}
	if (mkdtemp(path) == NULL) {
		free(path);
		return -errno;
	}
	bench->own_folder = path;
	bench->folder = path;
	return 0;
}

/* ---- the commands ---- */

/* Returns 0 or a negative errno; -ENOENT: there is no such program. */
static int start_command(char *const *words, pid_t *out_pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int rc;

	sigemptyset(&none);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	rc = -posix_spawnp(out_pid, words[0], &actions, &attributes, words, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return rc;
}

/* Nothing is to be found: 0 of ours, 1 of grep's kind. */
static int end_command(char *const *words, pid_t pid, double *out_cpu_s)
{
	struct rusage usage;
	int status;

	while (wait4(pid, &status, 0, &usage) < 0) {
		if (errno != EINTR) {
			return -errno;
		}
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) {
		report_line("%s: ended with status %d", words[0], status);
		return -ECHILD;
	}
	*out_cpu_s = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
		(double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
	return signals_interrupted() ? -ECANCELED : 0;
}

static int run_command(char *const *words, double *out_cpu_s)
{
	pid_t pid;
	int rc = start_command(words, &pid);

	return rc == 0 ? end_command(words, pid, out_cpu_s) : rc;
}

static int command_run(void *state, enum bench_side side, struct samples *out_figures)
{
	struct command_bench *bench = state;
	uint64_t start_ns = bench_now_ns();
	double cpu_s = 0;
	int rc = run_command(bench->words[side], &cpu_s);

	if (rc == 0) {
		rc = samples_add(out_figures, (double)(bench_now_ns() - start_ns) / 1e6);
		bench->cpu_s[side] += cpu_s;
		bench->runs[side]++;
	}
	return rc;
}

/* 0 once the first file has been opened. */
static int await_open(int notify_fd)
{
	struct pollfd wanted = {.fd = notify_fd, .events = POLLIN};
	int rc;

	do {
		rc = poll(&wanted, 1, OPEN_LIMIT_MS);
	} while (rc < 0 && errno == EINTR && !signals_interrupted());
	return rc > 0 ? 0 : signals_interrupted() ? -ECANCELED : -ETIME;
}

static int start_run(void *state, enum bench_side side, struct samples *out_figures)
{
	struct command_bench *bench = state;
	int notify_fd = inotify_init1(IN_CLOEXEC);
	uint64_t start_ns = bench_now_ns();
	uint64_t opened_ns;
	double cpu_s;
	pid_t pid;
	int rc;

	if (notify_fd < 0 || inotify_add_watch(notify_fd, bench->paths[0], IN_OPEN) < 0) {
		rc = -errno;
		report_path(bench->paths[0], report_reason(rc));
		return rc;
	}
	rc = start_command(bench->words[side], &pid);
	if (rc == 0) {
		int end_error;

		rc = await_open(notify_fd);
		opened_ns = bench_now_ns();
		end_error = end_command(bench->words[side], pid, &cpu_s);
		rc = rc != 0 ? rc : end_error;
	}
	close(notify_fd);
	return rc != 0 ? rc : samples_add(out_figures, (double)(opened_ns - start_ns) / 1e3);
}

/* ---- the subjects ---- */

static void command_stop(void *state)
{
	struct command_bench *bench = state;

	if (bench->own_folder != NULL &&
		nftw(bench->own_folder, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0) {
		report_path(bench->own_folder, report_reason(errno));
	}
	free(bench->own_folder);
	free(bench);
}

static void set_words(char **words, const char *const *values, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		words[i] = (char *)(uintptr_t)values[i];
	}
	words[count] = NULL;
}

static void name_commands(struct command_bench *bench)
{
	const char *first = bench->variant->is_named ? bench->paths[0] : bench->folder;
	const char *second = bench->variant->is_named ? bench->paths[1] : NULL;
	const char *ours[] = {"/proc/self/exe", "scan", "-F", "-e", word, first, second};
	const char *theirs[] = {"rg", "-uuu", "-a", "-F", "-e", word, first, second};
	const char *ours_to_start[] = {"/proc/self/exe", "scan", bench->paths[0]};
	const char *floor_to_start[] = {"cat", bench->paths[0]};

	if (bench->variant->is_start) {
		set_words(bench->words[BENCH_OURS], ours_to_start, 3);
		set_words(bench->words[BENCH_FLOOR], floor_to_start, 2);
	} else {
		set_words(bench->words[BENCH_OURS], ours, second == NULL ? 6 : 7);
		set_words(bench->words[BENCH_FLOOR], theirs, second == NULL ? 7 : 8);
	}
}

/* Both once before they are measured: then all is in the page cache. */
static int warm_up(struct command_bench *bench, const struct bench_subject *subject)
{
	double cpu_s;
	int rc = run_command(bench->words[BENCH_FLOOR], &cpu_s);

	if (rc == -ENOENT) {
		report_line(
			"%s: skipped, it needs %s", subject->name, bench->words[BENCH_FLOOR][0]);
		return BENCH_SKIPPED;
	}
	return rc == 0 ? run_command(bench->words[BENCH_OURS], &cpu_s) : rc;
}

static int prepare(struct command_bench *command, struct bench *bench)
{
	const char *named = command->variant->is_small ? bench->options->tree : NULL;
	int rc = 0;

	command->folder = named;
	if (named == NULL) {
		rc = make_folder(command, bench->options->directory);
		rc = rc == 0 ? make_files(command, bench->options->size_bytes) : rc;
	}
	if (rc != 0) {
		if (rc != -ECANCELED) {
			report_path(bench->options->directory, report_reason(rc));
		}
		return rc;
	}
	name_commands(command);
	rc = warm_up(command, bench->subject);
	if (rc < 0 && rc != -ECANCELED) {
		report_line("%s: cannot be run: %s", bench->subject->name, report_reason(rc));
	}
	return rc;
}

static int command_start(struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	struct command_bench *command = bench_allocate(sizeof(*command));
	struct pinion_runtime *runtime;
	int rc;

	if (command == NULL) {
		return -ENOMEM;
	}
	command->variant = bench->subject->variant;
	rc = bench_start_workers(bench, 1, out_setting, &runtime);
	if (rc == 0) {
		pinion_runtime_destroy(runtime);
		rc = prepare(command, bench);
	}
	if (rc != 0) {
		command_stop(command);
		return rc;
	}
	snprintf(out_setting->text, sizeof(out_setting->text), "%s",
		command->own_folder == NULL	     ? "the tree named"
			: command->variant->is_small ? "small files"
			: command->variant->is_start ? "one small file"
						     : "two large files");
	*out_state = command;
	return 0;
}

static uint32_t command_further(void *state, struct bench_further further[BENCH_FURTHER_MAX])
{
	const struct command_bench *bench = state;

	if (bench->runs[BENCH_OURS] == 0 || bench->runs[BENCH_FLOOR] == 0) {
		return 0;
	}
	further[0] = (struct bench_further){
		"cpu_ms", bench->cpu_s[BENCH_OURS] * 1e3 / bench->runs[BENCH_OURS]};
	further[1] = (struct bench_further){
		"floor_cpu_ms", bench->cpu_s[BENCH_FLOOR] * 1e3 / bench->runs[BENCH_FLOOR]};
	return 2;
}

static const struct variant large_variant = {.letters = "abcdefghijklmnopqrstuvwxyz"};
static const struct variant rare_variant = {.letters = "abcdefghilmnoprsuvwxy"};
static const struct variant named_variant = {
	.letters = "abcdefghijklmnopqrstuvwxyz", .is_named = true};
static const struct variant small_variant = {
	.letters = "abcdefghijklmnopqrstuvwxyz", .is_small = true};
static const struct variant start_variant = {.letters = "abc", .is_start = true};

const struct bench_subject bench_scan_large_warm = {
	.name = "scan_large_warm",
	.unit = "ms",
	.brief = "scan -F of a tree of two cached files with the word's letters, against rg",
	.sides = {[BENCH_OURS] = "scan -F", [BENCH_FLOOR] = "rg -F"},
	.variant = &large_variant,
	.start = command_start,
	.run = command_run,
	.stop = command_stop,
	.further = command_further,
};

const struct bench_subject bench_scan_rare_warm = {
	.name = "scan_rare_warm",
	.unit = "ms",
	.brief = "the same where the text lacks the word's letters",
	.sides = {[BENCH_OURS] = "scan -F", [BENCH_FLOOR] = "rg -F"},
	.variant = &rare_variant,
	.start = command_start,
	.run = command_run,
	.stop = command_stop,
	.further = command_further,
};

const struct bench_subject bench_scan_named_warm = {
	.name = "scan_named_warm",
	.unit = "ms",
	.brief = "scan_large_warm with both files named, which rg maps",
	.sides = {[BENCH_OURS] = "scan -F", [BENCH_FLOOR] = "rg -F"},
	.variant = &named_variant,
	.start = command_start,
	.run = command_run,
	.stop = command_stop,
	.further = command_further,
};

const struct bench_subject bench_scan_small_warm = {
	.name = "scan_small_warm",
	.unit = "ms",
	.brief = "scan -F of a tree of small cached files, against rg",
	.sides = {[BENCH_OURS] = "scan -F", [BENCH_FLOOR] = "rg -F"},
	.variant = &small_variant,
	.start = command_start,
	.run = command_run,
	.stop = command_stop,
	.further = command_further,
};

const struct bench_subject bench_scan_start = {
	.name = "scan_start",
	.unit = "us",
	.brief = "from the start of scan until it opens its first file, against cat",
	.sides = {[BENCH_OURS] = "scan", [BENCH_FLOOR] = "cat"},
	.variant = &start_variant,
	.start = command_start,
	.run = start_run,
	.stop = command_stop,
};
