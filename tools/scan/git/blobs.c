/* SPDX-License-Identifier: MIT */
/*
 * The table of blobs, and their order.
 *
 * A base has an entry of its own, even where its blob has one: it has a path
 * of its own, and is no news there.
 */
#include "tools/scan/git/blobs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	HEADS_FIRST = 4096,
};

void git_blobs_fini(struct git_blobs *blobs)
{
	free(blobs->items);
	free(blobs->heads);
	free(blobs->commits);
	free(blobs->order);
	git_names_fini(&blobs->paths);
	git_names_fini(&blobs->authors);
	git_names_fini(&blobs->submodules);
	*blobs = (struct git_blobs){.items = NULL};
}

/* ---- ids ---- */

static int digit_value(char digit)
{
	if (digit >= '0' && digit <= '9') {
		return digit - '0';
	}
	return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

bool git_id_parse(struct git_blobs *blobs, const char *text, size_t length, uint8_t *out_id)
{
	if (length != 40 && length != GIT_ID_CHARS_MAX) {
		return false;
	}
	if (blobs->id_bytes == 0) {
		blobs->id_bytes = length / 2;
	}
	if (blobs->id_bytes != length / 2) {
		return false;
	}
	memset(out_id, 0, GIT_ID_BYTES_MAX);
	for (size_t i = 0; i < length / 2; i++) {
		int high = digit_value(text[2 * i]);
		int low = digit_value(text[2 * i + 1]);

		if (high < 0 || low < 0) {
			return false;
		}
		out_id[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

void git_id_write(
	const struct git_blobs *blobs, const uint8_t *id, char out_text[GIT_ID_CHARS_MAX + 1])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < blobs->id_bytes; i++) {
		out_text[2 * i] = digits[id[i] >> 4];
		out_text[2 * i + 1] = digits[id[i] & 15];
	}
	out_text[2 * blobs->id_bytes] = '\0';
}

/* An id is random already. */
static size_t hash_of(const struct git_blobs *blobs, const uint8_t *id)
{
	uint64_t hash;

	memcpy(&hash, id, sizeof(hash));
	return (size_t)hash & (blobs->head_count - 1);
}

/* ---- filling ---- */

int git_blobs_reserve_commits(struct git_blobs *blobs, size_t count)
{
	if (count >= GIT_NO_COMMIT) {
		return -E2BIG;
	}
	blobs->commits = calloc(count + 1, sizeof(*blobs->commits));
	blobs->commit_count = blobs->commits == NULL ? 0 : count;
	return blobs->commits == NULL ? -ENOMEM : 0;
}

static int grow(struct git_blobs *blobs)
{
	size_t count = blobs->head_count == 0 ? HEADS_FIRST : 2 * blobs->head_count;
	struct git_blob *items = realloc(blobs->items, count * sizeof(*items));
	uint32_t *heads;

	if (items == NULL) {
		return -ENOMEM;
	}
	blobs->items = items;
	heads = calloc(count, sizeof(*heads));
	if (heads == NULL) {
		return -ENOMEM;
	}
	free(blobs->heads);
	blobs->heads = heads;
	blobs->head_count = count;
	blobs->capacity = count;
	for (size_t i = 0; i < blobs->count; i++) {
		uint32_t *head = &heads[hash_of(blobs, items[i].id)];

		items[i].next = *head;
		*head = (uint32_t)i + 1;
	}
	return 0;
}

/* Base or not, the entry of this blob and, for a base, of this path. */
static struct git_blob *find(
	const struct git_blobs *blobs, const uint8_t *id, bool is_base, uint32_t path)
{
	uint32_t index = blobs->head_count == 0 ? 0 : blobs->heads[hash_of(blobs, id)];

	for (; index != 0; index = blobs->items[index - 1].next) {
		struct git_blob *blob = &blobs->items[index - 1];

		if (memcmp(blob->id, id, sizeof(blob->id)) == 0 && blob->is_base == is_base &&
			(!is_base || blob->path == path)) {
			return blob;
		}
	}
	return NULL;
}

/* A new entry; NULL: no memory, or no room. */
static struct git_blob *append(struct git_blobs *blobs, const uint8_t *id)
{
	struct git_blob *blob;
	uint32_t *head;

	if (blobs->count >= UINT32_MAX - 1 ||
		(blobs->count == blobs->capacity && grow(blobs) != 0)) {
		return NULL;
	}
	blob = &blobs->items[blobs->count];
	*blob = (struct git_blob){.path = 0};
	memcpy(blob->id, id, sizeof(blob->id));
	head = &blobs->heads[hash_of(blobs, id)];
	blob->next = *head;
	*head = (uint32_t)++blobs->count;
	return blob;
}

static uint8_t reason_of(const struct git_blobs *blobs, const char *path, size_t path_bytes)
{
	return blobs->matcher == NULL
		? PINION_WALK_REASONS
		: (uint8_t)pinion_walk_matcher_path(blobs->matcher, path, path_bytes);
}

/* No commit at all is younger than each. */
static uint64_t age_of(uint32_t commit)
{
	return commit == GIT_NO_COMMIT ? 0 : (uint64_t)commit + 1;
}

/* Whether a place of a blob counts in place of the blob that it has. */
static bool is_better(const struct git_blob *blob, uint8_t reason, uint32_t commit)
{
	bool is_kept = reason == PINION_WALK_REASONS;
	bool was_kept = blob->reason == PINION_WALK_REASONS;

	return is_kept != was_kept ? is_kept : age_of(commit) > age_of(blob->commit);
}

int git_blobs_add(struct git_blobs *blobs, const uint8_t *id, const char *path, size_t path_bytes,
	uint32_t commit)
{
	struct git_blob *blob = find(blobs, id, false, 0);
	uint8_t reason = reason_of(blobs, path, path_bytes);
	uint32_t name;
	int error;

	if (blob != NULL && !is_better(blob, reason, commit)) {
		return 0;
	}
	error = git_names_add(&blobs->paths, path, path_bytes, &name);
	if (error == 0 && blob == NULL) {
		blob = append(blobs, id);
		error = blob == NULL ? -ENOMEM : 0;
	}
	if (error == 0) {
		blob->path = name;
		blob->commit = commit;
		blob->reason = reason;
	}
	return error;
}

int git_blobs_add_base(struct git_blobs *blobs, const uint8_t *id, const char *path,
	size_t path_bytes, uint32_t commit)
{
	struct git_blob *blob;
	uint32_t name;
	int error;

	if (reason_of(blobs, path, path_bytes) != PINION_WALK_REASONS) {
		return 0;
	}
	error = git_names_add(&blobs->paths, path, path_bytes, &name);
	if (error != 0) {
		return error;
	}
	blob = find(blobs, id, true, name);
	if (blob == NULL) {
		blob = append(blobs, id);
		if (blob == NULL) {
			return -ENOMEM;
		}
		blob->path = name;
		blob->commit = commit;
		blob->reason = PINION_WALK_REASONS;
		blob->is_base = true;
	}
	/* The oldest that has changed it. */
	if (age_of(commit) > age_of(blob->commit)) {
		blob->commit = commit;
	}
	return 0;
}

void git_blobs_lack_all(struct git_blobs *blobs)
{
	for (size_t i = 0; i < blobs->count; i++) {
		blobs->items[i].is_missing = true;
	}
}

void git_blobs_has(struct git_blobs *blobs, const char *id_text, size_t length)
{
	uint8_t id[GIT_ID_BYTES_MAX];
	uint32_t index;

	if (blobs->head_count == 0 || !git_id_parse(blobs, id_text, length, id)) {
		return;
	}
	index = blobs->heads[hash_of(blobs, id)];
	for (; index != 0; index = blobs->items[index - 1].next) {
		struct git_blob *blob = &blobs->items[index - 1];

		if (memcmp(blob->id, id, sizeof(blob->id)) == 0) {
			blob->is_missing = false;
		}
	}
}

/* ---- the order ---- */

/* The commits have brought it there, before the commit that changed it. */
static bool is_news(const struct git_blobs *blobs, const struct git_blob *base)
{
	const struct git_blob *blob = find(blobs, base->id, false, 0);

	return blob != NULL && blob->path == base->path && blob->commit != GIT_NO_COMMIT &&
		blob->commit > base->commit;
}

struct path_key {
	const struct git_name *name;
	uint32_t index;
};

static int compare_names(const void *left, const void *right)
{
	const struct git_name *a = left;
	const struct git_name *b = right;
	uint32_t shorter = a->length < b->length ? a->length : b->length;
	int order = memcmp(a->bytes, b->bytes, shorter);

	return order != 0 ? order : (a->length > b->length) - (a->length < b->length);
}

static int compare_paths(const void *left, const void *right)
{
	return compare_names(
		((const struct path_key *)left)->name, ((const struct path_key *)right)->name);
}

/* Of each path, its place among all; NULL: no memory. */
static uint32_t *rank_paths(const struct git_names *paths)
{
	struct path_key *keys = malloc((paths->count + 1) * sizeof(*keys));
	uint32_t *ranks = malloc((paths->count + 1) * sizeof(*ranks));

	if (keys == NULL || ranks == NULL) {
		free(keys);
		free(ranks);
		return NULL;
	}
	for (size_t i = 0; i < paths->count; i++) {
		keys[i] = (struct path_key){.name = &paths->items[i], .index = (uint32_t)i};
	}
	qsort(keys, paths->count, sizeof(*keys), compare_paths);
	for (size_t i = 0; i < paths->count; i++) {
		ranks[keys[i].index] = (uint32_t)i;
	}
	free(keys);
	return ranks;
}

struct blob_key {
	uint32_t rank; /* of its path */
	uint64_t age;  /* 0: a base; else the less, the older */
	const uint8_t *id;
	uint32_t index;
};

static int compare_blobs(const void *left, const void *right)
{
	const struct blob_key *a = left;
	const struct blob_key *b = right;

	if (a->rank != b->rank) {
		return a->rank < b->rank ? -1 : 1;
	}
	if (a->age != b->age) {
		return a->age < b->age ? -1 : 1;
	}
	return memcmp(a->id, b->id, GIT_ID_BYTES_MAX);
}

int git_blobs_sort(struct git_blobs *blobs)
{
	uint32_t *ranks = rank_paths(&blobs->paths);
	struct blob_key *keys = malloc((blobs->count + 1) * sizeof(*keys));
	size_t count = 0;

	blobs->order = malloc((blobs->count + 1) * sizeof(*blobs->order));
	if (ranks == NULL || keys == NULL || blobs->order == NULL) {
		free(ranks);
		free(keys);
		return -ENOMEM;
	}
	for (size_t i = 0; i < blobs->count; i++) {
		const struct git_blob *blob = &blobs->items[i];

		if (blob->reason != PINION_WALK_REASONS || blob->is_missing ||
			(blob->is_base && is_news(blobs, blob))) {
			continue;
		}
		keys[count++] = (struct blob_key){
			.rank = ranks[blob->path],
			.age = blob->is_base ? 0 : (uint64_t)UINT32_MAX - blob->commit + 1,
			.id = blob->id,
			.index = (uint32_t)i,
		};
	}
	qsort(keys, count, sizeof(*keys), compare_blobs);
	for (size_t i = 0; i < count; i++) {
		blobs->order[i] = keys[i].index;
	}
	blobs->order_count = count;
	/* No more are added, so that their order is free. */
	if (blobs->submodules.count > 1) {
		qsort(blobs->submodules.items, blobs->submodules.count,
			sizeof(*blobs->submodules.items), compare_names);
	}
	free(ranks);
	free(keys);
	return 0;
}
