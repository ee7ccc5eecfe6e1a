/* SPDX-License-Identifier: MIT */
/*
 * Asking git what there is.
 */
#include "tools/scan/git/history.h"

#include "tools/input.h"
#include "tools/report.h"
#include "tools/scan/git/changes.h"
#include "tools/signals.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	ANSWER_BYTES_MAX = 64 << 20,
	/* Ids of some 16 million commits. */
	COMMITS_BYTES_MAX = 1 << 30,
	ID_TEXT_BYTES = GIT_ID_CHARS_MAX + 2,
};

/* ---- refs that lead to no commit ---- */

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

static int add_ref(struct git_blobs *blobs, char *id_text, const char *name)
{
	uint8_t id[GIT_ID_BYTES_MAX];

	if (!git_id_parse(blobs, id_text, strlen(id_text), id)) {
		return -EBADMSG;
	}
	return git_blobs_add(blobs, id, name, strlen(name), GIT_NO_COMMIT);
}

/* "MODE TYPE ID<TAB>PATH", each after the other. */
static bool add_tree(const struct git_history *history, struct git_blobs *blobs, const char *id)
{
	const char *const arguments[] = {"ls-tree", "-r", "-z", "--full-tree", id, NULL};
	size_t length;
	char *answer = git_read(history->place, arguments, ANSWER_BYTES_MAX, &length);
	char *row = answer;
	int error = 0;

	while (answer != NULL && error == 0 && row < answer + length) {
		char *path = strchr(row, '\t');
		char *next = row + strlen(row) + 1;

		if (path == NULL) {
			error = -EBADMSG;
			break;
		}
		*path++ = '\0';
		if (strncmp(row + 7, "blob ", 5) == 0) {
			uint8_t blob[GIT_ID_BYTES_MAX];

			error = git_id_parse(blobs, row + 12, strlen(row + 12), blob)
				? git_blobs_add(blobs, blob, path, strlen(path), GIT_NO_COMMIT)
				: -EBADMSG;
		}
		row = next;
	}
	free(answer);
	return answer != NULL && error == 0;
}

/* What a tag of a tag leads to, too. */
static bool add_peeled(const struct git_history *history, struct git_blobs *blobs, const char *id,
	const char *name)
{
	char peeled[ID_TEXT_BYTES + 8];
	const char *const ask_id[] = {"rev-parse", "--verify", "--quiet", peeled, NULL};
	const char *const ask_type[] = {"cat-file", "-t", peeled, NULL};
	size_t length;
	char *type;
	char *answer;
	bool is_good = true;

	snprintf(peeled, sizeof(peeled), "%s^{}", id);
	type = git_read(history->place, ask_type, ANSWER_BYTES_MAX, &length);
	answer = type == NULL ? NULL : git_read(history->place, ask_id, ANSWER_BYTES_MAX, &length);
	if (answer == NULL) {
		free(type);
		return false;
	}
	answer[strcspn(answer, "\n")] = '\0';
	if (strcmp(type, "blob\n") == 0) {
		is_good = add_ref(blobs, answer, name) == 0;
	} else if (strcmp(type, "tree\n") == 0) {
		is_good = add_tree(history, blobs, answer);
	}
	free(type);
	free(answer);
	return is_good;
}

/* "TYPE ID TYPE NAME": of a tag, the second type is what it leads to. */
static bool add_refs(const struct git_history *history, struct git_blobs *blobs)
{
	static const char *const arguments[] = {"for-each-ref",
		"--format=%(objecttype) %(objectname) %(*objecttype) %(refname)", NULL};
	size_t length;
	char *answer = git_read(history->place, arguments, ANSWER_BYTES_MAX, &length);
	char *rest = answer;
	bool is_good = answer != NULL;

	while (is_good && *rest != '\0') {
		char *name = rest + strcspn(rest, "\n");
		char *type;
		char *id;
		char *target;

		*name = '\0';
		type = rest;
		rest = name + 1;
		id = type;
		(void)next_word(&id);
		target = id;
		(void)next_word(&target);
		name = target;
		(void)next_word(&name);
		if (history->since == NULL && strcmp(type, "commit") != 0 &&
			strcmp(target, "commit") != 0) {
			is_good = add_peeled(history, blobs, id, name);
		}
	}
	free(answer);
	return is_good;
}

/* ---- commits since a revision, or all ---- */

/* To git's input, in one piece. */
static void write_text(struct git_process *process, const char *text, size_t length)
{
	while (length > 0) {
		ssize_t count = write(process->in_fd, text, length);

		if (count < 0 && errno != EINTR) {
			return; /* it has ended, and says why */
		}
		text += count > 0 ? count : 0;
		length -= count > 0 ? (size_t)count : 0;
	}
}

/* An id, or NULL after a line: REV may look like an option, which it is not. */
static char *find_commit(const struct git_history *history, const char *revision)
{
	char *wanted = malloc(strlen(revision) + 16);
	const char *const arguments[] = {"rev-parse", "--verify", "--end-of-options", wanted, NULL};
	size_t length;
	char *answer;

	if (wanted == NULL) {
		report_line("%s", report_reason(ENOMEM));
		return NULL;
	}
	sprintf(wanted, "%s^{commit}", revision);
	answer = git_read(history->place, arguments, ANSWER_BYTES_MAX, &length);
	free(wanted);
	if (answer == NULL) {
		if (!signals_interrupted()) {
			report_line(
				"--since: %s is no revision of %s", revision, history->place->path);
		}
		return NULL;
	}
	/* A git that knows no --end-of-options repeats it. */
	if (answer[0] == '-' && strchr(answer, '\n') != NULL) {
		memmove(answer, strchr(answer, '\n') + 1, strlen(strchr(answer, '\n') + 1) + 1);
	}
	answer[strcspn(answer, "\n")] = '\0';
	return answer;
}

/* The entries of the stash but the last are in its log alone. */
static void write_stash(const struct git_history *history, struct git_process *process)
{
	static const char *const exists[] = {
		"for-each-ref", "--format=%(refname)", "refs/stash", NULL};
	static const char *const arguments[] = {
		"reflog", "show", "--format=%H", "refs/stash", "--", NULL};
	size_t length;
	char *answer = git_read(history->place, exists, ANSWER_BYTES_MAX, &length);

	if (answer != NULL && length > 0) {
		free(answer);
		answer = git_read(history->place, arguments, ANSWER_BYTES_MAX, &length);
	}
	if (answer != NULL) {
		write_text(process, answer, length);
	}
	free(answer);
}

/* Their ids, as far as git knows them. NULL, or `is_whole` false: reported. */
static char *list_commits(const struct git_history *history, const char *since, size_t *out_length,
	bool *out_is_whole)
{
	static const char *const list[] = {
		"rev-list", "--date-order", "--ignore-missing", "--all", "--stdin", NULL};
	struct git_process process = {.pid = 0};
	char *ids = NULL;
	int error;

	*out_is_whole = false;
	if (!git_process_start(history->place, list, GIT_INPUT_PIPE, &process)) {
		return NULL;
	}
	if (since != NULL) {
		write_text(&process, "^", 1);
		write_text(&process, since, strlen(since));
		write_text(&process, "\n", 1);
	}
	write_stash(history, &process);
	git_process_close_input(&process);
	error = git_process_read(&process, COMMITS_BYTES_MAX, &ids, out_length);
	if (error != 0 && error != -ECANCELED) {
		report_line("%s: git rev-list: %s", history->place->path, report_reason(error));
	}
	*out_is_whole = git_process_end(history->place, &process, error == 0) && error == 0;
	return ids;
}

static bool read_commits(const struct git_history *history, struct git_changes *changes)
{
	char *since = history->since == NULL ? NULL : find_commit(history, history->since);
	bool is_good = false;
	bool is_whole;
	size_t length;
	char *ids;

	if (history->since != NULL && since == NULL) {
		return false;
	}
	ids = list_commits(history, since, &length, &is_whole);
	if (ids != NULL) {
		/* Refs that lead nowhere do not hide the others. */
		is_good = add_refs(history, changes->blobs) && is_whole;
		is_good = git_changes_of_commits(changes, ids, length, history->process_count) &&
			is_good;
	}
	free(ids);
	free(since);
	return is_good;
}

/* ---- the index ---- */

/* Without a commit it is compared with the empty tree. */
static bool read_index(const struct git_history *history, struct git_changes *changes)
{
	static const char *const empty[] = {"hash-object", "-t", "tree", "--stdin", NULL};
	const char *arguments[] = {"diff-index", "--cached", "-r", "-z", "--raw", "--no-renames",
		history->head, "--", NULL};
	struct git_process process = {.pid = 0};
	char *tree = NULL;
	size_t length;
	bool is_good;

	if (history->head == NULL) {
		tree = git_read(history->place, empty, ANSWER_BYTES_MAX, &length);
		if (tree == NULL) {
			return false;
		}
		tree[strcspn(tree, "\n")] = '\0';
		arguments[6] = tree;
	}
	is_good = git_process_start(history->place, arguments, GIT_INPUT_NONE, &process) &&
		git_changes_of_index(changes, &process);
	free(tree);
	return is_good;
}

/* ---- the repository ---- */

/* Its first line; NULL: a line says why. */
static char *ask(const struct git_history *history, const char *const *arguments)
{
	size_t length;
	char *answer = git_read(history->place, arguments, ANSWER_BYTES_MAX, &length);

	if (answer != NULL) {
		answer[strcspn(answer, "\n")] = '\0';
	}
	return answer;
}

/* Whether a remote has promised objects that are not here. */
static bool read_settings(struct git_history *history)
{
	static const char *const arguments[] = {"config", "-z", "--name-only", "--list", NULL};
	static const char suffix[] = ".promisor";
	size_t length;
	char *answer = git_read(history->place, arguments, ANSWER_BYTES_MAX, &length);

	for (char *name = answer; name != NULL && name < answer + length;) {
		size_t bytes = strlen(name);

		history->is_partial |= strcmp(name, "extensions.partialclone") == 0 ||
			(bytes > sizeof(suffix) &&
				strcmp(name + bytes + 1 - sizeof(suffix), suffix) == 0);
		name += bytes + 1;
	}
	free(answer);
	return answer != NULL;
}

static bool probe(struct git_history *history)
{
	static const char *const folder[] = {"rev-parse", "--absolute-git-dir", NULL};
	static const char *const shallow[] = {"rev-parse", "--is-shallow-repository", NULL};
	static const char *const head[] = {"rev-parse", "--revs-only", "HEAD", NULL};
	char *answer;
	size_t length;

	history->folder = ask(history, folder);
	answer = history->folder == NULL ? NULL : ask(history, shallow);
	if (answer == NULL) {
		return false;
	}
	history->is_shallow = strcmp(answer, "true") == 0;
	free(answer);
	length = strlen(history->folder);
	if (length > 5 && strcmp(history->folder + length - 5, "/.git") == 0) {
		history->folder[length - 5] = '\0';
	}
	history->head = ask(history, head);
	if (history->head != NULL && history->head[0] == '\0') {
		free(history->head);
		history->head = NULL;
	}
	return read_settings(history);
}

/*
 * Of a partial clone: old versions of git would try to fetch a missing blob,
 * and end as they may not.
 */
static bool find_missing(const struct git_history *history, struct git_blobs *blobs)
{
	static const char *const arguments[] = {"cat-file", "--batch-all-objects", "--unordered",
		"--batch-check=%(objectname)", NULL};
	struct git_process process = {.pid = 0};
	struct input_lines ids = {.separator = '\n'};
	char *id;
	size_t length;
	bool is_good;
	int status;

	if (!git_process_start(history->place, arguments, GIT_INPUT_NONE, &process)) {
		return false;
	}
	ids.fd = process.out_fd;
	process.out_fd = -1;
	git_blobs_lack_all(blobs);
	while ((status = input_lines_next(&ids, &id, &length)) == 1) {
		git_blobs_has(blobs, id, length);
	}
	input_lines_fini(&ids);
	is_good = git_process_end(history->place, &process, status == 0);
	return is_good && status == 0;
}

bool git_history_read(struct git_history *history, struct git_blobs *blobs)
{
	struct git_changes changes = {
		.place = history->place,
		.blobs = blobs,
		.has_bases = history->is_staged || history->since != NULL,
		.lock = PTHREAD_MUTEX_INITIALIZER,
	};
	bool is_good = probe(history);

	if (is_good) {
		is_good = history->is_staged ? read_index(history, &changes)
					     : read_commits(history, &changes);
	}
	if (history->is_partial && blobs->count > 0) {
		is_good = find_missing(history, blobs) && is_good;
	}
	if (git_blobs_sort(blobs) != 0) {
		report_line("%s", report_reason(ENOMEM));
		is_good = false;
	}
	return is_good;
}
