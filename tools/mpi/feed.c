/* SPDX-License-Identifier: MIT */
/*
 * From the queue of parts to the scan, and back, where others may have some.
 */
#include "tools/mpi/feed.h"

#include "tools/signals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct {
	struct parts *parts;
	const char *root;	      /* of the part that is being added */
	struct output_text directory; /* of the batch */
	struct output_text names;     /* of files that are left; empty: there is no batch */
	uint32_t name_count;
} feed;

void feed_use(struct parts *parts)
{
	output_text_free(&feed.directory);
	output_text_free(&feed.names);
	feed.parts = parts;
}

/* ---- leaving entries to others ---- */

/* False: no memory; the batch is still there. */
static bool send_batch(void)
{
	if (feed.name_count > 0 &&
		!parts_push(feed.parts, PART_NAMES, feed.root, feed.directory.bytes,
			feed.directory.length - 1, feed.names.bytes, feed.names.length)) {
		return false;
	}
	feed.name_count = 0;
	feed.names.length = 0;
	return true;
}

static bool is_of_batch(const char *directory, size_t bytes)
{
	return feed.name_count > 0 && feed.directory.length - 1 == bytes &&
		memcmp(feed.directory.bytes, directory, bytes) == 0;
}

/* False: enough parts wait, or no memory. */
static bool begin_batch(const char *directory, size_t bytes)
{
	if (parts_count(feed.parts) >= PARTS_BATCHES || !send_batch()) {
		return false;
	}
	feed.directory.length = 0;
	feed.directory.failed = false;
	output_text_append(&feed.directory, directory, bytes);
	output_text_append(&feed.directory, "", 1);
	return !feed.directory.failed;
}

/* A file is left once its name is in the batch; without memory it is not. */
static bool leave_file(const char *beneath, size_t bytes)
{
	const char *slash = memrchr(beneath, '/', bytes);
	size_t directory_bytes = slash == NULL ? 0 : (size_t)(slash - beneath);
	const char *name = slash == NULL ? beneath : slash + 1;
	size_t length;

	if (!is_of_batch(beneath, directory_bytes) && !begin_batch(beneath, directory_bytes)) {
		return false;
	}
	length = feed.names.length;
	feed.names.failed = false;
	output_text_append(&feed.names, name, (size_t)(beneath + bytes - name));
	output_text_append(&feed.names, "", 1);
	if (feed.names.failed) {
		feed.names.length = length;
		return false;
	}
	feed.name_count++;
	if (feed.name_count >= PARTS_NAMES || feed.names.length >= PARTS_NAMES_BYTES) {
		(void)send_batch();
	}
	return true;
}

bool feed_share(void *arg, const char *beneath, size_t beneath_bytes, bool is_directory)
{
	(void)arg;
	if (is_directory) {
		return parts_count(feed.parts) < PARTS_DIRECTORIES &&
			parts_push(
				feed.parts, PART_BELOW, feed.root, beneath, beneath_bytes, NULL, 0);
	}
	return leave_file(beneath, beneath_bytes);
}

/* ---- adding parts ---- */

static int add_below(struct pinion_scan *scan, const struct pinion_scan_part *part)
{
	int error = pinion_scan_add_part(scan, part);

	/* A lack of memory is reported already. */
	if (error != 0 && error != -ECANCELED && error != -ENOMEM) {
		pinion_scan_add_failure(scan, part->root, error);
	}
	return error == -ECANCELED ? error : 0;
}

/* Leaves the second half, and so on, while others may want some. */
static void halve_names(const struct part *part, struct pinion_scan_part *own)
{
	for (;;) {
		size_t half = own->names_bytes / 2;
		const char *end;

		if (half == 0 || parts_count(feed.parts) >= PARTS_HALVES) {
			return;
		}
		/* The name in the middle is of the first half. */
		end = own->names + half;
		end += strlen(end) + 1;
		half = (size_t)(end - own->names);
		if (half == own->names_bytes ||
			!parts_push(feed.parts, PART_NAMES, own->root, own->directory,
				part->head.directory_bytes, end, own->names_bytes - half)) {
			return;
		}
		own->names_bytes = half;
	}
}

/* A batch that could not be left. */
static int add_batch(struct pinion_scan *scan)
{
	struct pinion_scan_part own = {
		.root = feed.root,
		.directory = feed.directory.bytes,
		.names = feed.names.bytes,
		.names_bytes = feed.names.length,
	};
	int error = add_below(scan, &own);

	feed.name_count = 0;
	feed.names.length = 0;
	return error;
}

static int add_path(const struct input *input, struct pinion_scan *scan, const char *path)
{
	int error;

	feed.root = path;
	error = input_add(input, scan, path);
	return error != 0 || send_batch() ? error : add_batch(scan);
}

static int add_part(const struct input *input, struct pinion_scan *scan, const struct part *part)
{
	struct pinion_scan_part own = {
		.root = part_root(part),
		.directory = part_directory(part),
		.names = part->head.kind == PART_NAMES ? part_names(part) : NULL,
		.names_bytes = part->head.names_bytes,
	};
	int error;

	if (part->head.kind == PART_PATH) {
		return add_path(input, scan, own.root);
	}
	feed.root = own.root;
	if (own.names != NULL) {
		halve_names(part, &own);
	}
	error = add_below(scan, &own);
	return error != 0 || send_batch() ? error : add_batch(scan);
}

int feed_add(const struct input *input, struct pinion_scan *scan, const char *path)
{
	int error = 0;

	if (!parts_push(feed.parts, PART_PATH, path, "", 0, NULL, 0)) {
		return add_path(input, scan, path);
	}
	while (error == 0 && parts_count(feed.parts) > PARTS_PATHS_MAX) {
		struct part *part = parts_try_take(feed.parts);

		error = part == NULL ? 0 : add_part(input, scan, part);
		free(part);
	}
	return error;
}

int feed_all_parts(const struct input *input, struct pinion_scan *scan)
{
	struct part *part;
	int error = 0;

	while (error == 0 && (part = parts_take(feed.parts, signals_interrupted)) != NULL) {
		error = add_part(input, scan, part);
		free(part);
	}
	return error == 0 && signals_interrupted() ? -ECANCELED : error;
}
