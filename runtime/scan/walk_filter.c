/* SPDX-License-Identifier: MIT */
/*
 * The filter of a walk; see walk_filter.h for its users.
 */
#include "runtime/scan/walk_filter.h"
#include "runtime/base/check.h"
#include "runtime/base/versioned.h"
#include "runtime/host/heap.h"

#include <errno.h>
#include <string.h>

enum {
	FILES_FIRST = 1024,
	FILES_MAX = 1 << 20, /* 16 MiB */
};

#define NS_PER_S INT64_C(1000000000)

void pinion_walk_filter_init_sized(struct pinion_walk_filter *filter, uint32_t size)
{
	struct pinion_walk_filter full = {.size = size};

	pin_sized_give(filter, size, &full, sizeof(full));
}

/* ---- the configuration ---- */

static int accept_config(struct pinion_walk_filter *out, const struct pinion_walk_filter *given)
{
	int rc;

	pinion_walk_filter_init(out);
	if (given->size < sizeof(*out)) {
		return -EINVAL;
	}
	rc = pin_sized_take(out, sizeof(*out), given, given->size);
	if (rc != 0) {
		return rc;
	}
	return out->one_file_system > 1 || out->skip_hidden > 1 || out->hard_links_once > 1 ||
			(out->bytes_max != 0 && out->bytes_min > out->bytes_max) ||
			(out->shard_index > 0 && out->shard_index >= out->shard_count)
		? -EINVAL
		: 0;
}

static int add_lines(struct pin_ignore_rules *rules, const char *text)
{
	size_t bytes = text == NULL ? 0 : strlen(text);
	char *copy;

	if (bytes == 0) {
		return 0;
	}
	if (bytes > PIN_IGNORE_FILE_BYTES_MAX) {
		return -EFBIG;
	}
	copy = pin_ignore_rules_reserve(rules, bytes + 1);
	if (copy == NULL) {
		return -ENOMEM;
	}
	memcpy(copy, text, bytes);
	return pin_ignore_rules_add(rules, bytes);
}

int pin_walk_filter_create(const struct pin_host *host, const struct pinion_walk_filter *given,
	struct pin_walk_filter **out_filter)
{
	struct pin_walk_filter *filter;
	struct pinion_walk_filter config;
	int rc;

	*out_filter = NULL;
	if (given == NULL) {
		return 0;
	}
	rc = accept_config(&config, given);
	if (rc != 0) {
		return rc;
	}
	filter = pin_heap_zeroed(host, PIN_HEAP_ALIGN, 1, sizeof(*filter));
	if (filter == NULL) {
		return -ENOMEM;
	}
	filter->host = host;
	filter->excluded.host = host;
	filter->included.host = host;
	filter->config = config;
	filter->config.exclude = NULL;
	filter->config.include = NULL;
	filter->examines = config.bytes_min != 0 || config.bytes_max != 0 ||
		config.modified_from_ns != 0 || config.modified_to_ns != 0 ||
		config.hard_links_once != 0;
	rc = add_lines(&filter->excluded, config.exclude);
	rc = rc == 0 ? add_lines(&filter->included, config.include) : rc;
	if (rc != 0) {
		pin_walk_filter_destroy(filter);
		return rc;
	}
	*out_filter = filter;
	return 0;
}

static void release_files(
	const struct pin_walk_filter *filter, struct pin_walk_file *files, size_t capacity)
{
	pin_heap_release(filter->host, files, PIN_HEAP_ALIGN, capacity, sizeof(*files));
}

void pin_walk_filter_destroy(struct pin_walk_filter *filter)
{
	if (filter != NULL) {
		release_files(filter, filter->files, filter->capacity);
		pin_ignore_rules_fini(&filter->excluded);
		pin_ignore_rules_fini(&filter->included);
		pin_heap_release(filter->host, filter, PIN_HEAP_ALIGN, 1, sizeof(*filter));
	}
}

/* ---- names ---- */

/*
 * FNV-1a, then mixed as MurmurHash3 ends: a shard is a range of hashes, and
 * names that differ in their last byte alone have to spread, too.
 */
uint32_t pinion_walk_shard(const char *path, size_t path_bytes, uint32_t shard_count)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < path_bytes; i++) {
		hash = (hash ^ (uint8_t)path[i]) * UINT64_C(0x100000001b3);
	}
	hash = (hash ^ hash >> 33) * UINT64_C(0xff51afd7ed558ccd);
	hash = (hash ^ hash >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
	hash ^= hash >> 33;
	return (uint32_t)((hash >> 32) * shard_count >> 32);
}

uint32_t pin_walk_filter_path(
	const struct pin_walk_filter *filter, const struct pin_ignore_path *path)
{
	const char *name = path->bytes + path->path_bytes - path->name_bytes;

	PIN_DCHECK(path->name_bytes > 0 && path->name_bytes <= path->path_bytes);
	if (filter->config.skip_hidden != 0 && name[0] == '.') {
		return PINION_WALK_BY_NAME;
	}
	if (pin_ignore_rules_decide(&filter->excluded, path) == PIN_IGNORE_HIDES) {
		return PINION_WALK_BY_PATTERN;
	}
	if (filter->included.count > 0 && !path->is_directory &&
		pin_ignore_rules_decide(&filter->included, path) != PIN_IGNORE_HIDES) {
		return PINION_WALK_BY_PATTERN;
	}
	if (filter->config.shard_count > 1 && !path->is_directory &&
		pinion_walk_shard(path->bytes, path->path_bytes, filter->config.shard_count) !=
			filter->config.shard_index) {
		return PINION_WALK_BY_SHARD;
	}
	return PIN_WALK_KEPT;
}

/* ---- paths of no file system ---- */

int pinion_walk_matcher_create(
	const struct pinion_walk_filter *filter, struct pinion_walk_matcher **out_matcher)
{
	struct pinion_walk_filter all;
	struct pin_walk_filter *made;
	int rc;

	if (filter == NULL) {
		pinion_walk_filter_init(&all);
		filter = &all;
	}
	rc = pin_walk_filter_create(&pin_host_linux, filter, &made);
	if (rc == 0) {
		*out_matcher = (struct pinion_walk_matcher *)made;
	}
	return rc;
}

void pinion_walk_matcher_destroy(struct pinion_walk_matcher *matcher)
{
	pin_walk_filter_destroy((struct pin_walk_filter *)matcher);
}

uint32_t pinion_walk_matcher_path(
	const struct pinion_walk_matcher *matcher, const char *path, size_t path_bytes)
{
	const struct pin_walk_filter *filter = (const struct pin_walk_filter *)matcher;
	uint32_t reason = PIN_WALK_KEPT;
	size_t start = 0;

	while (reason == PIN_WALK_KEPT && start < path_bytes) {
		const char *slash = memchr(path + start, '/', path_bytes - start);
		size_t end = slash == NULL ? path_bytes : (size_t)(slash - path);
		struct pin_ignore_path part = {
			.bytes = path,
			.path_bytes = end,
			.name_bytes = end - start,
			.is_directory = slash != NULL,
		};

		if (end > start) {
			reason = pin_walk_filter_path(filter, &part);
		}
		start = end + 1;
	}
	return reason;
}

/* ---- files with several names ---- */

/* The place of a file in the table, or the free place where it belongs. */
static struct pin_walk_file *find_place(
	struct pin_walk_file *files, size_t capacity, const struct pin_walk_file *file)
{
	uint64_t hash = ((uint64_t)file->inode ^ ((uint64_t)file->device << 32)) *
		UINT64_C(0x9e3779b97f4a7c15);
	size_t place = (size_t)(hash >> 32) & (capacity - 1);

	PIN_DCHECK(file->inode != 0);
	while (files[place].inode != 0 &&
		(files[place].inode != file->inode || files[place].device != file->device)) {
		place = (place + 1) & (capacity - 1);
	}
	return &files[place];
}

/* False: it is as large as it may be, or there is no memory. */
static bool grow_files(struct pin_walk_filter *filter)
{
	size_t capacity = filter->capacity == 0 ? FILES_FIRST : 2 * filter->capacity;
	struct pin_walk_file *files = NULL;

	if (capacity <= 2 * (size_t)FILES_MAX) {
		files = pin_heap_zeroed(filter->host, PIN_HEAP_ALIGN, capacity, sizeof(*files));
	}
	if (files == NULL) {
		return false;
	}
	for (size_t i = 0; i < filter->capacity; i++) {
		if (filter->files[i].inode != 0) {
			*find_place(files, capacity, &filter->files[i]) = filter->files[i];
		}
	}
	release_files(filter, filter->files, filter->capacity);
	filter->files = files;
	filter->capacity = capacity;
	return true;
}

/* Whether a name of the file was met before; from now on one was. */
static bool was_met(struct pin_walk_filter *filter, const struct stat *status)
{
	struct pin_walk_file file = {.device = status->st_dev, .inode = status->st_ino};
	bool has_room;
	bool is_met = false;

	pin_lock_acquire(&filter->lock, filter->host);
	has_room = filter->count < filter->capacity / 2 || grow_files(filter);
	if (filter->capacity > 0 && file.inode != 0) {
		struct pin_walk_file *place = find_place(filter->files, filter->capacity, &file);

		is_met = place->inode != 0;
		if (!is_met && has_room) {
			*place = file;
			filter->count++;
			PIN_CHECK(filter->count <= filter->capacity / 2);
		}
	}
	pin_lock_release(&filter->lock, filter->host);
	return is_met;
}

uint32_t pin_walk_filter_status(struct pin_walk_filter *filter, const struct stat *status)
{
	const struct pinion_walk_filter *config = &filter->config;
	uint64_t bytes = (uint64_t)status->st_size;
	int64_t modified_ns = (int64_t)status->st_mtim.tv_sec * NS_PER_S + status->st_mtim.tv_nsec;

	PIN_DCHECK(S_ISREG(status->st_mode));
	if (bytes < config->bytes_min || (config->bytes_max != 0 && bytes > config->bytes_max)) {
		return PINION_WALK_BY_SIZE;
	}
	if ((config->modified_from_ns != 0 && modified_ns < config->modified_from_ns) ||
		(config->modified_to_ns != 0 && modified_ns > config->modified_to_ns)) {
		return PINION_WALK_BY_TIME;
	}
	if (config->hard_links_once != 0 && status->st_nlink > 1 && was_met(filter, status)) {
		return PINION_WALK_BY_LINK;
	}
	return PIN_WALK_KEPT;
}
