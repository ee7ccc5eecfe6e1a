/* SPDX-License-Identifier: MIT */
/*
 * Goal: with PINION_POOL_GUARD a touch of a free buffer faults, and of a buffer
 * in use does not; with PINION_POOL_ZERO a returned buffer is zeroed, headroom
 * included; pinion_pool_clear() zeroes on demand; without any of these bytes
 * stay as they are. Where huge pages were set aside, of which a part cannot be
 * hidden, a message says so. BP-42, BP-43, W8, W11.
 * Method: children that touch, as pools are not there after a fork in a child
 * of their maker's.
 */
#include "tests/support/child.h"
#include "tests/support/users.h"

enum {
	BYTES = 8192, /* of a buffer with its headroom */
	BUFFERS = 3,
	LAST_WORDS = 42,
};

enum place {
	BEGINNING,
	END,
	IN_FRONT,
	NOWHERE, /* the child ends well */
};

struct touch {
	uint32_t flags;
	bool has_runtime;
	enum place place;
};

static const char unguarded[] = "free buffers cannot be guarded: they are parts of huge pages";

static bool is_filled(const uint8_t *bytes, uint8_t value)
{
	for (int i = 0; i < BYTES; i++) {
		if (bytes[i] != value) {
			return false;
		}
	}
	return true;
}

/* The MMU's word counts here, not AddressSanitizer's. */
__attribute__((no_sanitize_address)) static void touch_byte(volatile uint8_t *byte)
{
	*byte = 1;
}

static int touch_free(void *arg)
{
	const struct touch *touch = arg;
	struct pinion_runtime *runtime = NULL;
	struct pinion_pool_config config;
	struct pinion_buffer buffers[BUFFERS];
	struct pinion_pool *pool;
	uint8_t *bytes;

	signal(SIGSEGV, SIG_DFL);
	if (touch->has_runtime) {
		runtime = users_runtime(1, 1 << 20);
	}
	users_config(&config, runtime == NULL, 2, BUFFERS);
	config.flags = touch->flags;
	pool = users_create(runtime, &config);
	for (int i = 0; i < BUFFERS; i++) {
		buffers[i] = users_take(pool);
		memset(buffers[i].bytes - 4096, 1, BYTES);
	}
	bytes = buffers[1].bytes;
	users_give(pool, &buffers[1]);
	/* Its neighbours are not disturbed. */
	memset(buffers[0].bytes - 4096, 2, BYTES);
	memset(buffers[2].bytes - 4096, 2, BYTES);
	if (strstr(runtimes_log, unguarded) != NULL) {
		fprintf(stderr, "%s\n", unguarded);
	}
	fprintf(stderr, "about to touch\n");
	switch (touch->place) {
	case BEGINNING:
		touch_byte(bytes);
		break;
	case END:
		touch_byte(bytes + 4095);
		break;
	case IN_FRONT:
		touch_byte(bytes - 4096);
		break;
	case NOWHERE:
		break;
	}
	/* With the rights of all buffers restored. */
	users_give(pool, &buffers[0]);
	users_give(pool, &buffers[2]);
	users_end(pool);
	pinion_runtime_destroy(runtime);
	return expect_failure_count == 0 ? LAST_WORDS : 1;
}

static void expect_child(const char *what, struct touch touch, int wanted)
{
	char output[512];
	int status = child_run(touch_free, &touch, output, sizeof(output));

	/* Of huge pages that were set aside a part cannot be hidden. */
	if (wanted != LAST_WORDS && strstr(output, unguarded) != NULL) {
		printf("%s: no guard on huge pages that were set aside, as documented\n", what);
		wanted = LAST_WORDS;
	}
	expect_number(what, wanted, child_code(status));
	expect_true("it came as far as the touch", strstr(output, "about to touch") != NULL);
}

static void check_guard(void)
{
	uint32_t both = PINION_POOL_GUARD | PINION_POOL_ZERO;

	expect_child("touch", (struct touch){PINION_POOL_GUARD, false, BEGINNING}, 128 + SIGSEGV);
	expect_child("of its end", (struct touch){PINION_POOL_GUARD, false, END}, 128 + SIGSEGV);
	expect_child("in front", (struct touch){PINION_POOL_GUARD, false, IN_FRONT}, 128 + SIGSEGV);
	expect_child("no touch", (struct touch){PINION_POOL_GUARD, false, NOWHERE}, LAST_WORDS);
	expect_child("zeroed", (struct touch){both, false, BEGINNING}, 128 + SIGSEGV);
	expect_child("zeroed, no touch", (struct touch){both, false, NOWHERE}, LAST_WORDS);
	expect_child("without a guard", (struct touch){0, false, BEGINNING}, LAST_WORDS);
#ifndef __SANITIZE_THREAD__ /* which allows no threads in a child */
	expect_child("of a runtime's", (struct touch){PINION_POOL_GUARD, true, END}, 128 + SIGSEGV);
	expect_child("no touch", (struct touch){PINION_POOL_GUARD, true, NOWHERE}, LAST_WORDS);
#endif
}

static void check_bytes(uint32_t flags)
{
	bool is_zeroing = (flags & PINION_POOL_ZERO) != 0;
	struct pinion_pool_config config;
	struct pinion_buffer buffer;
	struct pinion_pool *pool;

	users_config(&config, 1, 1, 1);
	config.flags = flags;
	pool = users_create(NULL, &config);
	buffer = users_take(pool);
	memset(buffer.bytes - 4096, 0xa5, BYTES);
	users_give(pool, &buffer);
	buffer = users_take(pool);
	expect_true(is_zeroing ? "zeroed" : "as they were",
		is_filled(buffer.bytes - 4096, is_zeroing ? 0 : 0xa5));
	memset(buffer.bytes - 4096, 0xa5, BYTES);
	expect_number("clear", 0, pinion_pool_clear(pool, &buffer));
	expect_true("cleared, with the headroom", is_filled(buffer.bytes - 4096, 0));
	users_give(pool, &buffer);
	users_end(pool);
}

int main(void)
{
	check_guard();
	check_bytes(0);
	check_bytes(PINION_POOL_ZERO);
	check_bytes(PINION_POOL_GUARD);
	check_bytes(PINION_POOL_ZERO | PINION_POOL_GUARD);
	return expect_status();
}
