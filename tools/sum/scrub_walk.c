/* SPDX-License-Identifier: MIT */
/*
 * Which files there are, which of them are due, and which are gone.
 */
#include "tools/growing.h"
#include "tools/output.h"
#include "tools/report.h"
#include "tools/signals.h"
#include "tools/sum/checklist.h"
#include "tools/sum/scrub_run.h"

#include <errno.h>
#include <pinion/walk.h>
#include <string.h>
#include <sys/stat.h>

/* Of STATE, and of the one that is to replace it. */
static bool is_state(const struct scrub *scrub, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash == NULL ? path : slash + 1;
	size_t length = strlen(scrub->state_name);
	struct stat status;

	return strncmp(name, scrub->state_name, length) == 0 && name[length] == '\0' &&
		stat(path, &status) == 0 && status.st_dev == scrub->state_status.st_dev &&
		status.st_ino == scrub->state_status.st_ino;
}

/* A check in the future, as of a clock that was set back, was long ago. */
static bool is_due(const struct scrub *scrub, const struct scrub_file *file)
{
	uint64_t age_ns = (uint64_t)scrub->now_ns - (uint64_t)file->checked_ns;

	return file->order == 0 || age_ns >= scrub->job->options->scrub.max_age_ns;
}

static int visit_file(struct scrub *scrub, const char *path)
{
	struct scrub_file *file;
	uint32_t *queue;

	if (is_state(scrub, path)) {
		return 0;
	}
	file = scrub_state_add(&scrub->state, path);
	if (file == NULL) {
		return -ENOMEM;
	}
	scrub->root_count++;
	/* Trees may overlap. */
	if ((file->flags & SCRUB_IS_SEEN) != 0) {
		return 0;
	}
	file->flags |= SCRUB_IS_SEEN;
	scrub->seen_count++;
	if (!is_due(scrub, file)) {
		return 0;
	}
	queue = growing_make_room(
		scrub->queue, scrub->queue_count, &scrub->queue_capacity, sizeof(*queue));
	if (queue == NULL) {
		return -ENOMEM;
	}
	scrub->queue = queue;
	queue[scrub->queue_count++] = (uint32_t)(file - scrub->state.files);
	return 0;
}

static int visit(void *arg, const struct pinion_walk_entry *entry)
{
	struct scrub *scrub = arg;

	if (signals_interrupted()) {
		return -ECANCELED;
	}
	if (entry->kind == PINION_WALK_FILE) {
		return visit_file(scrub, entry->path);
	}
	if (entry->kind == PINION_WALK_ERROR ||
		(entry->kind == PINION_WALK_SPECIAL && entry->root_fd < 0)) {
		report_path(entry->path,
			entry->kind == PINION_WALK_ERROR ? report_reason(entry->error)
							 : "is no file: it has no times");
		sum_trouble(scrub->job);
		scrub->is_partial = true;
	}
	return 0;
}

/* Whether STATE knows files of a tree in which there are none. */
static bool is_missing(const struct scrub *scrub, const char *root)
{
	size_t length = strlen(root);
	bool has_slash = length > 0 && root[length - 1] == '/';

	for (size_t i = 0; i < scrub->state.count && scrub->root_count == 0; i++) {
		const struct scrub_file *file = &scrub->state.files[i];

		if ((file->flags & SCRUB_IS_GONE) == 0 && strncmp(file->path, root, length) == 0 &&
			(has_slash || file->path[length] == '/')) {
			struct stat status;

			/* One that is there was left out by the options. */
			return lstat(file->path, &status) != 0;
		}
	}
	return false;
}

int scrub_walk(struct scrub *scrub, char *const *paths, int path_count)
{
	const struct pinion_scan_config *scan = &scrub->job->options->scanning.scan;
	struct pinion_walk_config config;
	int error = 0;

	pinion_walk_config_init(&config);
	config.skip_ignored = scan->skip_ignored;
	config.follow_links = scan->follow_links;
	config.filter = scan->filter;
	config.runtime = scrub->job->runtime;
	for (int i = 0; i < path_count && error == 0; i++) {
		scrub->root_count = 0;
		error = pinion_walk_with(paths[i], &config, visit, scrub);
		if (error == 0 && !scrub->is_partial && is_missing(scrub, paths[i])) {
			report_path(paths[i],
				"has no files any more: mount it; once it is to be empty, remove "
				"STATE");
			sum_trouble(scrub->job);
			scrub->is_partial = true;
		}
	}
	if (error != 0 && error != -ECANCELED) {
		report_line("%s", report_reason(error));
		sum_trouble(scrub->job);
	}
	return error;
}

/* Files that the walk has left out are there all the same. */
int scrub_note_gone(struct scrub *scrub)
{
	int error = 0;

	for (size_t i = 0; i < scrub->state.count && error == 0 && !scrub->is_partial; i++) {
		struct scrub_file *file = &scrub->state.files[i];
		struct output_text text = {.bytes = NULL};
		struct stat status;

		if ((file->flags & (SCRUB_IS_SEEN | SCRUB_IS_GONE)) != 0 ||
			lstat(file->path, &status) == 0 || (errno != ENOENT && errno != ENOTDIR)) {
			continue;
		}
		error = scrub_state_put_gone(&scrub->state, file);
		scrub->gone_count++;
		if (!scrub->job->options->is_quiet) {
			checklist_append_verdict(&text, file->path, "GONE");
			output_write(text.bytes, text.length);
			output_text_free(&text);
		}
	}
	return error;
}
