/* SPDX-License-Identifier: MIT */
/*
 * The queue of parts: a list, the oldest part first.
 */
#include "tools/mpi/parts.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	/* So often a thread that waits looks whether it is stopped. */
	LOOK_NS = 50 * 1000 * 1000,
	NS_PER_SECOND = 1000 * 1000 * 1000,
	TEXT_BYTES_MAX = 1 << 30,
};

struct parts {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct part *oldest;
	struct part *newest;
	uint32_t count;	 /* [W:lock R:any] */
	bool is_waiting; /* the adding thread is */
	bool has_ended;
};

struct parts *parts_create(void)
{
	struct parts *parts = calloc(1, sizeof(*parts));

	if (parts != NULL) {
		pthread_mutex_init(&parts->lock, NULL);
		pthread_cond_init(&parts->changed, NULL);
	}
	return parts;
}

void parts_destroy(struct parts *parts)
{
	if (parts == NULL) {
		return;
	}
	while (parts->oldest != NULL) {
		struct part *part = parts->oldest;

		parts->oldest = part->newer;
		free(part);
	}
	pthread_cond_destroy(&parts->changed);
	pthread_mutex_destroy(&parts->lock);
	free(parts);
}

/* ---- the list, under the lock ---- */

static void append(struct parts *parts, struct part *part)
{
	part->newer = NULL;
	part->older = parts->newest;
	*(parts->newest == NULL ? &parts->oldest : &parts->newest->newer) = part;
	parts->newest = part;
	__atomic_store_n(&parts->count, parts->count + 1, __ATOMIC_RELAXED);
}

static struct part *cut(struct parts *parts, struct part *part)
{
	if (part != NULL) {
		*(part->older == NULL ? &parts->oldest : &part->older->newer) = part->newer;
		*(part->newer == NULL ? &parts->newest : &part->newer->older) = part->older;
		__atomic_store_n(&parts->count, parts->count - 1, __ATOMIC_RELAXED);
	}
	return part;
}

static size_t text_bytes(const struct part_head *head)
{
	return (size_t)head->root_bytes + 1 + head->directory_bytes + 1 + head->names_bytes;
}

/* ---- any thread ---- */

static struct part *part_create(const struct part_head *head)
{
	struct part *part = malloc(sizeof(*part) + text_bytes(head));

	if (part != NULL) {
		part->head = *head;
	}
	return part;
}

bool parts_push(struct parts *parts, enum part_kind kind, const char *root, const char *directory,
	size_t directory_bytes, const char *names, size_t names_bytes)
{
	struct part_head head = {
		.kind = kind,
		.root_bytes = (uint32_t)strlen(root),
		.directory_bytes = (uint32_t)directory_bytes,
		.names_bytes = (uint32_t)names_bytes,
	};
	struct part *part = part_create(&head);
	char *text;

	if (part == NULL) {
		return false;
	}
	text = part->text;
	memcpy(text, root, head.root_bytes + 1);
	text += head.root_bytes + 1;
	memcpy(text, directory, directory_bytes);
	text[directory_bytes] = '\0';
	if (names_bytes > 0) {
		memcpy(text + directory_bytes + 1, names, names_bytes);
	}
	pthread_mutex_lock(&parts->lock);
	append(parts, part);
	pthread_mutex_unlock(&parts->lock);
	return true;
}

uint32_t parts_count(const struct parts *parts)
{
	return __atomic_load_n(&parts->count, __ATOMIC_RELAXED);
}

/* ---- the adding thread ---- */

struct part *parts_try_take(struct parts *parts)
{
	struct part *part;

	pthread_mutex_lock(&parts->lock);
	part = cut(parts, parts->newest);
	pthread_mutex_unlock(&parts->lock);
	return part;
}

static void wait_for_change(struct parts *parts)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += LOOK_NS;
	until.tv_sec += until.tv_nsec / NS_PER_SECOND;
	until.tv_nsec %= NS_PER_SECOND;
	(void)pthread_cond_timedwait(&parts->changed, &parts->lock, &until);
}

struct part *parts_take(struct parts *parts, bool (*is_stopped)(void))
{
	struct part *part;

	pthread_mutex_lock(&parts->lock);
	while (parts->newest == NULL && !parts->has_ended && !is_stopped()) {
		parts->is_waiting = true;
		wait_for_change(parts);
	}
	parts->is_waiting = false;
	part = is_stopped() ? NULL : cut(parts, parts->newest);
	pthread_mutex_unlock(&parts->lock);
	return part;
}

/* ---- the thread of messages ---- */

static struct part *take_oldest(struct parts *parts)
{
	struct part *part;

	pthread_mutex_lock(&parts->lock);
	part = cut(parts, parts->oldest);
	pthread_mutex_unlock(&parts->lock);
	return part;
}

/* On failure the part is there again. */
static bool give_one(struct parts *parts, struct part *part, struct output_text *out_work)
{
	size_t length = out_work->length;

	output_text_append(out_work, &part->head, sizeof(part->head));
	output_text_append(out_work, part->text, text_bytes(&part->head));
	if (!out_work->failed) {
		free(part);
		return true;
	}
	out_work->failed = false;
	out_work->length = length;
	pthread_mutex_lock(&parts->lock);
	append(parts, part);
	pthread_mutex_unlock(&parts->lock);
	return false;
}

bool parts_give(struct parts *parts, struct output_text *out_work)
{
	uint32_t count = (parts_count(parts) + 1) / 2;

	for (uint32_t i = 0; i < count && out_work->length < PARTS_GIVEN_BYTES_MAX; i++) {
		struct part *part = take_oldest(parts);

		if (part == NULL || !give_one(parts, part, out_work)) {
			break;
		}
	}
	return out_work->length > 0;
}

/* Whether the texts end where the head says. */
static bool is_sound(const struct part_head *head, const char *text)
{
	size_t directory_at = (size_t)head->root_bytes + 1;
	size_t names_at = directory_at + head->directory_bytes + 1;

	return head->kind < PART_KINDS && text[directory_at - 1] == '\0' &&
		strlen(text) == head->root_bytes && text[names_at - 1] == '\0' &&
		strlen(text + directory_at) == head->directory_bytes &&
		(head->names_bytes == 0 || text[names_at + head->names_bytes - 1] == '\0');
}

bool parts_accept(struct parts *parts, const void *bytes, size_t length)
{
	const char *at = bytes;
	const char *end = at + length;
	bool is_good = true;

	pthread_mutex_lock(&parts->lock);
	while (at < end && is_good) {
		struct part_head head;
		struct part *part = NULL;

		is_good = (size_t)(end - at) >= sizeof(head);
		if (is_good) {
			memcpy(&head, at, sizeof(head));
			at += sizeof(head);
			is_good = head.root_bytes < TEXT_BYTES_MAX &&
				head.directory_bytes < TEXT_BYTES_MAX &&
				head.names_bytes < TEXT_BYTES_MAX &&
				text_bytes(&head) <= (size_t)(end - at);
		}
		part = is_good ? part_create(&head) : NULL;
		is_good = part != NULL;
		if (is_good) {
			memcpy(part->text, at, text_bytes(&head));
			at += text_bytes(&head);
			append(parts, part);
			is_good = is_sound(&part->head, part->text);
		}
	}
	pthread_cond_signal(&parts->changed);
	pthread_mutex_unlock(&parts->lock);
	return is_good;
}

bool parts_are_idle(struct parts *parts)
{
	bool are_idle;

	pthread_mutex_lock(&parts->lock);
	are_idle = parts->is_waiting && parts->newest == NULL;
	pthread_mutex_unlock(&parts->lock);
	return are_idle;
}

void parts_end(struct parts *parts)
{
	pthread_mutex_lock(&parts->lock);
	parts->has_ended = true;
	pthread_cond_signal(&parts->changed);
	pthread_mutex_unlock(&parts->lock);
}
