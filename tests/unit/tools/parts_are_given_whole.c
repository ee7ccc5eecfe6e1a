/* SPDX-License-Identifier: MIT */
/*
 * Goal: each part of a rank's queue is in one queue or one message: the oldest
 * half is given, the newest is taken first, nothing changes on the way; a
 * message that is cut or damaged is refused, or is parts all the same. A rank
 * is idle only while its adding thread waits.
 * Method: parts with paths of any length go back and forth between two queues;
 * a message is cut at each byte, and each of its bits is flipped.
 */
#include "tools/mpi/parts.h"

#include "tests/support/expect.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

enum { PARTS = 9, LONG_BYTES = 9000 };

static char long_path[LONG_BYTES + 1];

static bool never(void)
{
	return false;
}

static bool always(void)
{
	return true;
}

static void push(struct parts *parts, int number)
{
	char root[32];

	snprintf(root, sizeof(root), "root %d", number);
	expect_true("push",
		number % 3 == 0 ? parts_push(parts, PART_PATH, root, "", 0, NULL, 0)
			: number % 3 == 1
			? parts_push(parts, PART_BELOW, root, long_path, LONG_BYTES, NULL, 0)
			: parts_push(parts, PART_NAMES, root, "a/b cut", 3, "x\0yy", 5));
}

static void check_part(const struct part *part, int number)
{
	char root[32];

	snprintf(root, sizeof(root), "root %d", number);
	expect_text("root", root, part_root(part));
	switch (number % 3) {
	case 0:
		expect_number("kind", PART_PATH, part->head.kind);
		expect_text("directory", "", part_directory(part));
		break;
	case 1:
		expect_number("kind", PART_BELOW, part->head.kind);
		expect_text("directory", long_path, part_directory(part));
		break;
	default:
		expect_number("kind", PART_NAMES, part->head.kind);
		expect_text("directory", "a/b", part_directory(part));
		expect_number("names", 5, part->head.names_bytes);
		expect_true("names", memcmp(part_names(part), "x\0yy", 5) == 0);
		break;
	}
}

static void take(struct parts *parts, int number)
{
	struct part *part = parts_take(parts, never);

	expect_ready("part", part != NULL);
	check_part(part, number);
	free(part);
}

static void check_halves(void)
{
	struct parts *own = parts_create();
	struct parts *other = parts_create();
	struct output_text work = {0};

	expect_ready("queues", own != NULL && other != NULL);
	expect_true("nothing to give", !parts_give(own, &work));
	for (int i = 0; i < PARTS; i++) {
		push(own, i);
	}
	expect_number("waiting", PARTS, parts_count(own));
	expect_true("give", parts_give(own, &work));
	expect_number("left", 4, parts_count(own));
	expect_true("accept", parts_accept(other, work.bytes, work.length));
	expect_number("given", 5, parts_count(other));
	for (int i = 4; i >= 0; i--) {
		take(other, i);
	}
	for (int i = PARTS - 1; i >= 5; i--) {
		take(own, i);
	}
	expect_true("none", parts_try_take(own) == NULL);
	parts_end(own);
	expect_true("the end", parts_take(own, never) == NULL);
	push(other, 1);
	expect_true("stopped", parts_take(other, always) == NULL);
	expect_number("it is still there", 1, parts_count(other));
	output_text_free(&work);
	parts_destroy(own);
	parts_destroy(other);
}

/* A message of two parts, with short texts. */
static void check_damage(void)
{
	struct parts *parts = parts_create();
	struct output_text work = {0};

	(void)parts_push(parts, PART_NAMES, "r", "d", 1, "x\0y", 4);
	(void)parts_push(parts, PART_BELOW, "root", "e/f", 3, NULL, 0);
	(void)parts_push(parts, PART_PATH, "last", "", 0, NULL, 0);
	expect_true("give", parts_give(parts, &work));
	parts_destroy(parts);
	for (size_t cut = 1; cut < work.length; cut++) {
		char *bytes = malloc(cut); /* a sanitizer sees reads beyond */

		memcpy(bytes, work.bytes, cut);
		parts = parts_create();
		expect_number("a cut message is refused",
			cut == sizeof(struct part_head) + 8 ? 1 : 0,
			parts_accept(parts, bytes, cut));
		parts_destroy(parts);
		free(bytes);
	}
	for (size_t bit = 0; bit < 8 * work.length; bit++) {
		char *bytes = malloc(work.length);

		memcpy(bytes, work.bytes, work.length);
		bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << bit % 8));
		parts = parts_create();
		if (parts_accept(parts, bytes, work.length)) {
			struct part *part;

			while ((part = parts_try_take(parts)) != NULL) {
				expect_true("kind", part->head.kind < PART_KINDS);
				expect_number("root", (long long)strlen(part_root(part)),
					part->head.root_bytes);
				free(part);
			}
		}
		parts_destroy(parts);
		free(bytes);
	}
	output_text_free(&work);
}

static void *take_one(void *arg)
{
	struct part *part = parts_take(arg, never);

	expect_true("it came", part != NULL);
	return part;
}

static void check_idle(void)
{
	struct parts *own = parts_create();
	struct parts *other = parts_create();
	struct output_text work = {0};
	pthread_t thread;
	void *part;

	push(other, 2);
	expect_true("give", parts_give(other, &work));
	expect_true("not while no thread waits", !parts_are_idle(own));
	expect_ready("thread", pthread_create(&thread, NULL, take_one, own) == 0);
	while (!parts_are_idle(own)) {
		sched_yield();
	}
	expect_true("accept", parts_accept(own, work.bytes, work.length));
	expect_true("not with work", !parts_are_idle(own));
	pthread_join(thread, &part);
	expect_true("not with work in hand", !parts_are_idle(own));
	check_part(part, 2);
	free(part);
	output_text_free(&work);
	parts_destroy(own);
	parts_destroy(other);
}

int main(void)
{
	memset(long_path, 'n', LONG_BYTES);
	check_halves();
	check_damage();
	check_idle();
	return expect_status();
}
