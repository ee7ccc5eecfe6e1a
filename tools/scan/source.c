/* SPDX-License-Identifier: MIT */
/*
 * One buffer with the overlap in front, and the new bytes of a window after it.
 */
#include "tools/scan/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* As long as windows of cached files; --window says otherwise. */
	WINDOW_BYTES = 256 << 10,
	ZEROS_BYTES = 4096,
};

struct source {
	struct scan_job *job;
	struct scan_worker *worker;
	struct search_file searched;
	struct pinion_scan_file file;
	uint64_t sequence;
	char *path;
	size_t path_capacity;
	uint8_t *bytes; /* `overlap_bytes` and `window_bytes` long */
	size_t overlap_bytes;
	size_t window_bytes;
	size_t prefix_bytes;
	size_t fresh_bytes; /* after the prefix */
	uint64_t base;	    /* of bytes[0] */
	uint64_t index;
	int result; /* of the windows so far */
};

struct source *source_create(struct scan_job *job, struct scan_worker *worker)
{
	struct source *source = calloc(1, sizeof(*source));
	uint32_t wanted = job->options->scanning.window_bytes;

	if (source == NULL) {
		return NULL;
	}
	source->job = job;
	source->worker = worker;
	source->overlap_bytes = job->search.evidence.overlap_bytes;
	source->window_bytes = wanted != 0 ? wanted : WINDOW_BYTES;
	source->bytes = malloc(source->overlap_bytes + source->window_bytes);
	if (source->bytes == NULL) {
		free(source);
		return NULL;
	}
	return source;
}

void source_destroy(struct source *source)
{
	if (source == NULL) {
		return;
	}
	free(source->bytes);
	free(source->path);
	free(source);
}

static int copy_path(struct source *source, const char *path, size_t path_bytes)
{
	if (path_bytes >= source->path_capacity) {
		char *grown = realloc(source->path, 2 * path_bytes + 1);

		if (grown == NULL) {
			return -ENOMEM;
		}
		source->path = grown;
		source->path_capacity = 2 * path_bytes + 1;
	}
	memcpy(source->path, path, path_bytes);
	source->path[path_bytes] = '\0';
	return 0;
}

static int begin_source(struct source *source, const char *path, size_t path_bytes,
	const struct decoded *decoded, struct search_file *whole)
{
	int error = copy_path(source, path, path_bytes);

	if (error != 0) {
		return error;
	}
	memset(&source->searched, 0, sizeof(source->searched));
	source->searched.decoded = decoded;
	source->searched.whole = whole;
	source->file = (struct pinion_scan_file){
		.path = source->path,
		.path_bytes = path_bytes,
		.sequence = source->sequence,
		.user = &source->searched,
	};
	source->prefix_bytes = 0;
	source->fresh_bytes = 0;
	source->base = 0;
	source->index = 0;
	source->result = 0;
	return 0;
}

void source_follow(struct source *source, const struct pinion_scan_file *file)
{
	source->sequence = file->sequence;
}

int source_open(struct source *source, const char *path, size_t path_bytes,
	const struct source_facts *facts)
{
	int error = begin_source(source, path, path_bytes, NULL, NULL);

	source->searched.facts = facts;
	return error != 0 ? error : scan_job_open(source->job, &source->file);
}

int source_open_decoded(
	struct source *source, const struct pinion_scan_file *file, const struct decoded *decoded)
{
	struct search_file *whole = file->user;
	int error;

	source_follow(source, file);
	error = begin_source(source, file->path, file->path_bytes, decoded, whole);
	source->searched.facts = whole->facts;
	return error != 0 ? error : scan_job_open(source->job, &source->file);
}

uint64_t source_settled_to(struct source *source)
{
	return findings_held_settled_to(&source->job->search.findings, &source->searched.findings);
}

static void search_window_of(struct source *source, bool is_last)
{
	size_t length = source->prefix_bytes + source->fresh_bytes;
	const struct pinion_window window = {
		.bytes = source->bytes,
		.length_bytes = length,
		.prefix_bytes = source->prefix_bytes,
		.base_offset_bytes = source->base,
		.index = source->index,
		.is_last = is_last,
	};
	size_t kept = length < source->overlap_bytes ? length : source->overlap_bytes;

	source->result = scan_job_window(source->job, source->worker, &source->file, &window);
	source->index++;
	source->base += length - kept;
	memmove(source->bytes, source->bytes + length - kept, kept);
	source->prefix_bytes = kept;
	source->fresh_bytes = 0;
}

int source_feed(struct source *source, const uint8_t *bytes, size_t length)
{
	while (source->result == 0 && length > 0) {
		size_t room = source->window_bytes - source->fresh_bytes;
		size_t part = length < room ? length : room;

		/* More follows, so that a full window is not the last one. */
		if (room == 0) {
			search_window_of(source, false);
			continue;
		}
		memcpy(source->bytes + source->prefix_bytes + source->fresh_bytes, bytes, part);
		source->fresh_bytes += part;
		bytes += part;
		length -= part;
	}
	return source->result;
}

int source_feed_zeros(struct source *source, uint64_t length)
{
	static const uint8_t zeros[ZEROS_BYTES];
	int result = source->result;

	while (result == 0 && length > 0) {
		size_t part = length < sizeof(zeros) ? (size_t)length : sizeof(zeros);

		result = source_feed(source, zeros, part);
		length -= part;
	}
	return result;
}

int source_close(struct source *source, int error)
{
	int close_error;

	if (source->result == 0) {
		search_window_of(source, true);
	}
	if (error == 0 && source->result < 0) {
		error = source->result;
	}
	close_error = scan_job_close(source->job, source->worker, &source->file, error);
	if (source->searched.whole != NULL) {
		__atomic_fetch_add(&source->searched.whole->shown_count,
			source->searched.shown_count, __ATOMIC_RELAXED);
	}
	return error != 0 ? error : close_error;
}

bool source_is_binary(const struct source *source)
{
	return source->searched.is_binary;
}
