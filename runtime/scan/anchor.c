/* SPDX-License-Identifier: MIT */
/*
 * The anchor of deep paths; see anchor.h.
 */
#include "runtime/scan/anchor.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/host/heap.h"
#include "runtime/host/long_path.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

enum {
	/* Paths up to this are opened as they are. Few trees have others. */
	LONG_BYTES = 512,
	/* A new anchor is that far above the end of the path, or less. */
	REST_BYTES = 256,
};

/* A name is shorter than that, so there is a slash to cut at. */
_Static_assert(REST_BYTES > NAME_MAX, "a path is cut between its names");

/* The part of the path that the anchor stands for, with its slash; 0: none. */
static size_t passed_bytes(const struct pin_anchor *anchor, const char *path, size_t bytes)
{
	bool is_above = anchor->bytes > 0 && anchor->bytes + 1 < bytes &&
		path[anchor->bytes] == '/' && memcmp(path, anchor->path, anchor->bytes) == 0;

	return is_above ? anchor->bytes + 1 : 0;
}

/* Where the directory of a new anchor ends; 0: there is no place. */
static size_t find_cut(const char *path, size_t bytes, size_t passed)
{
	size_t cut = bytes - REST_BYTES;

	PIN_DCHECK(bytes > LONG_BYTES && cut > passed);
	while (cut < bytes && path[cut] != '/') {
		cut++;
	}
	return cut < bytes ? cut : 0;
}

static bool note_path(
	const struct pin_host *host, struct pin_anchor *anchor, const char *path, size_t bytes)
{
	if (bytes + 1 > anchor->capacity) {
		size_t capacity = pin_round_up(bytes + 1, 2 * (size_t)LONG_BYTES);
		char *grown = pin_heap_allocate(host, PIN_HEAP_ALIGN, capacity, 1);

		if (grown == NULL) {
			return false;
		}
		pin_heap_release(host, anchor->path, PIN_HEAP_ALIGN, anchor->capacity, 1);
		anchor->path = grown;
		anchor->capacity = capacity;
	}
	memcpy(anchor->path, path, bytes);
	anchor->path[bytes] = '\0';
	return true;
}

/* From the old anchor, where that is above it. False: there is none now. */
static bool move_anchor(const struct pin_host *host, struct pin_anchor *anchor, int root_fd,
	const char *path, size_t cut)
{
	size_t passed = passed_bytes(anchor, path, cut);
	int from_fd = passed > 0 ? anchor->fd : root_fd;
	int old_fd = anchor->bytes > 0 ? anchor->fd : -1;
	int fd = -1;

	anchor->bytes = 0;
	if (note_path(host, anchor, path, cut)) {
		fd = pin_beneath_open(
			from_fd, anchor->path + passed, O_PATH | O_DIRECTORY | O_CLOEXEC);
	}
	if (old_fd >= 0) {
		close(old_fd);
	}
	if (fd < 0) {
		return false;
	}
	anchor->fd = fd;
	anchor->bytes = cut;
	anchor->moves++;
	return true;
}

int pin_anchor_reach(const struct pin_host *host, struct pin_anchor *anchor, int root_fd,
	const char *path, size_t bytes, size_t *out_start)
{
	size_t passed = passed_bytes(anchor, path, bytes);

	if (bytes - passed > LONG_BYTES) {
		size_t cut = find_cut(path, bytes, passed);

		passed = cut > 0 && move_anchor(host, anchor, root_fd, path, cut) ? cut + 1 : 0;
	}
	PIN_DCHECK(passed < bytes);
	*out_start = passed;
	return passed > 0 ? anchor->fd : root_fd;
}

bool pin_anchor_drop(struct pin_anchor *anchor)
{
	if (anchor->bytes == 0) {
		return false;
	}
	close(anchor->fd);
	anchor->bytes = 0;
	return true;
}

void pin_anchor_fini(const struct pin_host *host, struct pin_anchor *anchor)
{
	(void)pin_anchor_drop(anchor);
	pin_heap_release(host, anchor->path, PIN_HEAP_ALIGN, anchor->capacity, 1);
	*anchor = (struct pin_anchor){.path = NULL};
}
