/* SPDX-License-Identifier: MIT */
/*
 * Rows of git's answer. With -z they end in NUL, so that a path may have any
 * other byte.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include "tools/scan/git/changes.h"

#include "tools/input.h"
#include "tools/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	/* Neighbours that one process compares: their trees are alike. */
	BLOCK_COMMITS = 64,
};

/* Of the modes of entries. */
#define MODE_GITLINK "160000"
#define MODE_NONE "000000"

/* The answer of one process, of which a thread adds each change. */
struct answer {
	struct git_changes *changes;
	struct git_process process;
	size_t part;	    /* of its commits: each `part_count`th block, from this on */
	size_t part_count;  /* 0: they are of no commit */
	size_t taken_count; /* of its commits */
	uint32_t commit;    /* the last of them */
	char *raw;	    /* a copy */
	size_t raw_bytes;
	int error;
	bool has_thread;
	pthread_t thread;
};

/* ---- raw changes ---- */

enum { PARENTS_MAX = 64 };

/* ":MODE MODE ID ID STATUS", or with a colon more for each further parent. */
struct raw {
	char *modes[PARENTS_MAX + 1];
	char *ids[PARENTS_MAX + 1];
	size_t parents; /* the last of both is that of the commit */
};

static char *next_word(char **rest)
{
	char *word = *rest;
	char *end = strchr(word, ' ');

	if (end == NULL) {
		*rest = word + strlen(word);
	} else {
		*end = '\0';
		*rest = end + 1;
	}
	return word;
}

/* An octopus with more parents: those beyond do not count as bases. */
static bool parse_raw(char *text, struct raw *out_raw)
{
	size_t parents = strspn(text, ":");
	char *rest = text + parents;
	size_t kept = parents < PARENTS_MAX ? parents : PARENTS_MAX;

	for (size_t i = 0; i <= parents; i++) {
		out_raw->modes[i < kept ? i : kept] = next_word(&rest);
	}
	for (size_t i = 0; i <= parents; i++) {
		out_raw->ids[i < kept ? i : kept] = next_word(&rest);
	}
	out_raw->parents = kept;
	return *out_raw->ids[kept] != '\0';
}

static int add_base(struct answer *answer, const char *mode, const char *id_text, const char *path,
	size_t path_bytes)
{
	uint8_t id[GIT_ID_BYTES_MAX];

	if (strcmp(mode, MODE_NONE) == 0 || strcmp(mode, MODE_GITLINK) == 0) {
		return 0;
	}
	if (!git_id_parse(answer->changes->blobs, id_text, strlen(id_text), id)) {
		return -EBADMSG;
	}
	return git_blobs_add_base(answer->changes->blobs, id, path, path_bytes, answer->commit);
}

static int add_change(
	struct answer *answer, const struct raw *raw, const char *path, size_t path_bytes)
{
	struct git_blobs *blobs = answer->changes->blobs;
	const char *mode = raw->modes[raw->parents];
	const char *id_text = raw->ids[raw->parents];
	uint8_t id[GIT_ID_BYTES_MAX];
	uint32_t ignored;
	int error = 0;

	for (size_t i = 0; answer->changes->has_bases && i < raw->parents && error == 0; i++) {
		error = add_base(answer, raw->modes[i], raw->ids[i], path, path_bytes);
	}
	if (error != 0 || strcmp(mode, MODE_NONE) == 0) {
		return error;
	}
	if (strcmp(mode, MODE_GITLINK) == 0) {
		return git_names_add(&blobs->submodules, path, path_bytes, &ignored);
	}
	if (!git_id_parse(blobs, id_text, strlen(id_text), id)) {
		return -EBADMSG;
	}
	return git_blobs_add(blobs, id, path, path_bytes, answer->commit);
}

/* ---- commits ---- */

/* "ID\nNAME\nMAIL\nSECONDS ZONE", of the next of its commits. */
static int take_commit(struct answer *answer, char *text)
{
	struct git_blobs *blobs = answer->changes->blobs;
	size_t block = answer->taken_count / BLOCK_COMMITS * answer->part_count + answer->part;
	size_t index = block * BLOCK_COMMITS + answer->taken_count % BLOCK_COMMITS;
	char *name = strchr(text, '\n');
	char *date = strrchr(text, '\n');
	struct git_commit *commit;
	char *end;
	long zone;
	int error;

	if (answer->part_count == 0 || index >= blobs->commit_count || name == NULL ||
		date == name) {
		return -EBADMSG;
	}
	commit = &blobs->commits[index];
	if (!git_id_parse(blobs, text, (size_t)(name - text), commit->id)) {
		return -EBADMSG;
	}
	commit->seconds = strtoll(date + 1, &end, 10);
	zone = strtol(end, NULL, 10);
	commit->zone_minutes = (int32_t)(zone / 100 * 60 + zone % 100);
	answer->commit = (uint32_t)index;
	answer->taken_count++;
	pthread_mutex_lock(&answer->changes->lock);
	error = git_names_add(
		&blobs->authors, name + 1, (size_t)(date - name - 1), &commit->author);
	pthread_mutex_unlock(&answer->changes->lock);
	return error;
}

/* A change: its row stays until the row with its path has come. */
static int take_change(
	struct answer *answer, struct input_lines *rows, const char *row, size_t length)
{
	struct raw raw;
	char *path;
	int status;

	if (length + 1 > answer->raw_bytes) {
		char *grown = realloc(answer->raw, length + 1);

		if (grown == NULL) {
			return -ENOMEM;
		}
		answer->raw = grown;
		answer->raw_bytes = length + 1;
	}
	memcpy(answer->raw, row, length + 1);
	if (!parse_raw(answer->raw, &raw)) {
		return -EBADMSG;
	}
	status = input_lines_next(rows, &path, &length);
	if (status != 1) {
		return status == -ECANCELED ? status : -EBADMSG;
	}
	pthread_mutex_lock(&answer->changes->lock);
	status = add_change(answer, &raw, path, length);
	pthread_mutex_unlock(&answer->changes->lock);
	return status;
}

/* The newline or empty row after a commit's own row is git's. */
static int take_rows(struct answer *answer, int fd)
{
	struct input_lines rows = {.fd = fd, .separator = '\0'};
	char *row;
	size_t length;
	int status;
	int error = 0;

	while (error == 0 && (status = input_lines_next(&rows, &row, &length)) != 0) {
		if (status != 1) {
			error = status;
			break;
		}
		if (row[0] == '\n') {
			row++;
			length--;
		}
		if (row[0] == ':') {
			error = take_change(answer, &rows, row, length);
		} else if (length > 0) {
			error = take_commit(answer, row);
		}
	}
	input_lines_fini(&rows);
	return error;
}

static void *take_answer(void *arg)
{
	struct answer *answer = arg;

	answer->error = take_rows(answer, answer->process.out_fd);
	answer->process.out_fd = -1;
	free(answer->raw);
	return NULL;
}

/* Reports what git did not say itself. */
static bool end_answer(struct answer *answer)
{
	const struct git_place *place = answer->changes->place;
	int error = answer->error;
	bool is_good = git_process_end(place, &answer->process, error == 0);

	if (error != 0 && error != -ECANCELED) {
		report_line("%s: git %s: %s", place->path, answer->process.what,
			error == -EBADMSG ? "its answer is not as expected" : report_reason(error));
	}
	return is_good && error == 0;
}

/* ---- the calls ---- */

bool git_changes_of_index(struct git_changes *changes, struct git_process *process)
{
	struct answer answer = {.changes = changes, .process = *process, .commit = GIT_NO_COMMIT};

	(void)take_answer(&answer);
	return end_answer(&answer);
}

/* Its blocks of ids, in a file in memory; -1: no memory. */
static int write_part(const struct answer *answer, const char *ids, size_t id_bytes, size_t count)
{
	int fd = memfd_create("pinion-commits", MFD_CLOEXEC);
	size_t block = answer->part;

	for (; fd >= 0 && block * BLOCK_COMMITS < count; block += answer->part_count) {
		size_t first = block * BLOCK_COMMITS;
		size_t in_block = count - first < BLOCK_COMMITS ? count - first : BLOCK_COMMITS;
		ssize_t bytes = (ssize_t)(in_block * id_bytes);

		if (write(fd, ids + first * id_bytes, (size_t)bytes) != bytes) {
			close(fd);
			fd = -1;
			break;
		}
	}
	if (fd >= 0 && lseek(fd, 0, SEEK_SET) != 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static bool start_answer(struct answer *answer, const char *ids, size_t id_bytes, size_t count)
{
	static const char *const arguments[] = {"diff-tree", "--stdin", "-c", "-r", "--root", "-z",
		"--raw", "--no-renames", "--always", "--format=%H%n%an%n%ae%n%ad", "--date=raw",
		NULL};
	int fd = write_part(answer, ids, id_bytes, count);

	if (fd < 0) {
		report_line("%s", report_reason(ENOMEM));
		return false;
	}
	if (!git_process_start(answer->changes->place, arguments, fd, &answer->process)) {
		return false;
	}
	answer->has_thread = pthread_create(&answer->thread, NULL, take_answer, answer) == 0;
	if (!answer->has_thread) {
		(void)take_answer(answer);
	}
	return true;
}

/* Ids as git has listed them. */
struct ids {
	const char *text;
	size_t id_bytes; /* with its newline */
	size_t count;
};

static bool ask_all(
	struct git_changes *changes, const struct ids *ids, struct answer *answers, size_t count)
{
	bool is_good = true;

	for (size_t i = 0; i < count && is_good; i++) {
		answers[i].changes = changes;
		answers[i].part = i;
		answers[i].part_count = count;
		is_good = start_answer(&answers[i], ids->text, ids->id_bytes, ids->count);
	}
	for (size_t i = 0; i < count && answers[i].process.pid != 0; i++) {
		if (answers[i].has_thread) {
			pthread_join(answers[i].thread, NULL);
		}
		is_good = end_answer(&answers[i]) && is_good;
	}
	return is_good;
}

bool git_changes_of_commits(
	struct git_changes *changes, const char *text, size_t bytes, size_t process_count)
{
	const char *end = memchr(text, '\n', bytes);
	struct ids ids = {.text = text};
	struct answer *answers;
	size_t blocks;
	uint8_t id[GIT_ID_BYTES_MAX];
	bool is_good = false;

	if (end == NULL) {
		return bytes == 0;
	}
	ids.id_bytes = (size_t)(end - text) + 1;
	ids.count = bytes / ids.id_bytes;
	blocks = (ids.count + BLOCK_COMMITS - 1) / BLOCK_COMMITS;
	process_count = process_count < blocks ? process_count : blocks;
	answers = calloc(process_count, sizeof(*answers));
	/* The first id says how long they are, before threads ask. */
	if (answers == NULL || !git_id_parse(changes->blobs, text, ids.id_bytes - 1, id) ||
		git_blobs_reserve_commits(changes->blobs, ids.count) != 0) {
		report_line("%s", report_reason(ENOMEM));
	} else {
		is_good = ask_all(changes, &ids, answers, process_count);
	}
	free(answers);
	return is_good;
}
