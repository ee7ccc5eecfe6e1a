/* SPDX-License-Identifier: MIT */
/*
 * The blobs that are to be searched, each once, with the path and the commit
 * that findings in it are shown with.
 *
 * Of all the places of a blob in a history the oldest counts: the commit that
 * brought it first. Changes may be added in any order. A path that options
 * leave out is no place; a blob without another is left out for its reason.
 *
 * A blob may also be a base: a version of a file from before the commits in
 * question. It is searched, but its findings are no news.
 *
 * Memory: some 80 bytes a blob, 50 a commit, and each path and author once.
 *
 * Context: filled by the first thread; constant once it is sorted.
 */
#ifndef PINION_TOOLS_SCAN_GIT_BLOBS_H
#define PINION_TOOLS_SCAN_GIT_BLOBS_H

#include "tools/scan/git/names.h"

#include <pinion/walk.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	GIT_ID_BYTES_MAX = 32, /* SHA-256 */
	GIT_ID_CHARS_MAX = 2 * GIT_ID_BYTES_MAX,
};

/* Of a blob that no commit has. */
#define GIT_NO_COMMIT UINT32_MAX

struct git_commit {
	uint8_t id[GIT_ID_BYTES_MAX];
	int64_t seconds; /* the author's date, since 1970 */
	int32_t zone_minutes;
	uint32_t author; /* a name: "NAME\nMAIL" */
};

struct git_blob {
	uint8_t id[GIT_ID_BYTES_MAX];
	uint32_t path;	 /* a name */
	uint32_t commit; /* the greater, the older */
	uint32_t next;	 /* of the same hash */
	uint8_t reason;	 /* PINION_WALK_REASONS: it is to be searched */
	bool is_base;
	bool is_missing; /* a partial clone does not have it */
};

/* Zero-initialise. */
struct git_blobs {
	size_t id_bytes; /* 20 or 32; 0: no id was seen yet */
	struct git_blob *items;
	size_t count;
	size_t capacity;
	uint32_t *heads; /* by hash, one more than an index; 0: none */
	size_t head_count;
	struct git_commit *commits; /* from the newest on */
	size_t commit_count;
	struct git_names paths;
	struct git_names authors;
	struct git_names submodules;		   /* paths */
	const struct pinion_walk_matcher *matcher; /* NULL: nothing is left out */
	uint32_t *order; /* after git_blobs_sort(): the blobs to be searched */
	size_t order_count;
};

void git_blobs_fini(struct git_blobs *blobs);

/* The bytes of an id in hexadecimal. False: it is none. */
bool git_id_parse(struct git_blobs *blobs, const char *text, size_t length, uint8_t *out_id);
void git_id_write(
	const struct git_blobs *blobs, const uint8_t *id, char out_text[GIT_ID_CHARS_MAX + 1]);

/* As many commits, to be filled in: none is older than those after it. */
int git_blobs_reserve_commits(struct git_blobs *blobs, size_t count);

/*
 * A blob at a path of this commit, or of none; of several paths in one commit
 * the first counts. 0 or -ENOMEM.
 */
int git_blobs_add(struct git_blobs *blobs, const uint8_t *id, const char *path, size_t path_bytes,
	uint32_t commit);

/* The version of a file before that in this commit. 0 or -ENOMEM. */
int git_blobs_add_base(struct git_blobs *blobs, const uint8_t *id, const char *path,
	size_t path_bytes, uint32_t commit);

/* All are missing, but those that git_blobs_has() is called with. */
void git_blobs_lack_all(struct git_blobs *blobs);
void git_blobs_has(struct git_blobs *blobs, const char *id_text, size_t length);

/*
 * Drops bases that the commits themselves have brought, and sets the order: by
 * path, bases first, then from the oldest commit on. Missing ones
 * are not in it. 0 or -ENOMEM.
 */
int git_blobs_sort(struct git_blobs *blobs);

#endif
