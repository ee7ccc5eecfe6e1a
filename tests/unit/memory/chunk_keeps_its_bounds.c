/* SPDX-License-Identifier: MIT */
/*
 * Goal: a chunk is made only when its rules hold, and then says of its data
 * which bytes are new, where it is in the buffer and where in the object.
 * BP-43, BP-44.
 * Method: numbers by hand, at each edge of each rule.
 */
#include "runtime/base/base.h"
#include "tests/support/users.h"

#include <pinion/chunk.h>

enum {
	BUFFER = 4096,
	HEADROOM = 512,
};

static uint8_t memory[HEADROOM + BUFFER];

static struct pinion_buffer make_buffer(void)
{
	return (struct pinion_buffer){.bytes = memory + HEADROOM, .index = 3, .generation = 5};
}

static struct pinion_chunk make_raw(
	uint64_t base_offset, uint32_t length, uint32_t prefix_length, int32_t buffer_offset)
{
	return (struct pinion_chunk){
		.object_id = 77,
		.base_offset = base_offset,
		.length = length,
		.prefix_length = prefix_length,
		.buffer_offset = buffer_offset,
		.headroom_bytes = HEADROOM,
		.buffer_bytes = BUFFER,
	};
}

static struct pinion_chunk make(
	uint64_t base_offset, uint32_t length, uint32_t prefix_length, int32_t buffer_offset)
{
	struct pinion_chunk chunk = make_raw(base_offset, length, prefix_length, buffer_offset);
	struct pinion_buffer buffer = make_buffer();

	expect_number("init", 0, pinion_chunk_init(&chunk, &buffer));
	expect_true("it has the buffer",
		chunk.buffer.bytes == memory + HEADROOM && chunk.buffer.index == 3 &&
			chunk.buffer.generation == 5);
	expect_true("the handle is cleared", buffer.bytes == NULL && buffer.generation == 0);
	return chunk;
}

static void refuse(const char *what, struct pinion_chunk chunk)
{
	struct pinion_buffer buffer = make_buffer();
	struct pinion_chunk before = chunk;

	expect_number(what, -EINVAL, pinion_chunk_init(&chunk, &buffer));
	expect_true("the chunk is as before", memcmp(&before, &chunk, sizeof(chunk)) == 0);
	expect_true("so is the handle", buffer.bytes != NULL && buffer.generation == 5);
}

static void check_first(void)
{
	struct pinion_chunk chunk = make(0, 100, 0, 0);

	expect_true("first", pinion_chunk_is_first(&chunk));
	expect_number("new from", 0, (long long)pinion_chunk_new_bytes_start(&chunk));
	expect_number("end", 100, (long long)pinion_chunk_end_offset(&chunk));
	expect_number("payload", 100, pinion_chunk_payload_length(&chunk));
	expect_true("data", pinion_chunk_data(&chunk) == memory + HEADROOM);
	expect_true("all of it new", pinion_chunk_payload(&chunk) == memory + HEADROOM);
}

static void check_with_prefix(void)
{
	struct pinion_chunk chunk = make(1000, 100, 30, -30);

	expect_true("not first", !pinion_chunk_is_first(&chunk));
	expect_number("new from", 1030, (long long)pinion_chunk_new_bytes_start(&chunk));
	expect_number("end", 1100, (long long)pinion_chunk_end_offset(&chunk));
	expect_number("payload", 70, pinion_chunk_payload_length(&chunk));
	expect_true("data", pinion_chunk_data(&chunk) == memory + HEADROOM - 30);
	expect_true("payload is aligned", pinion_chunk_payload(&chunk) == memory + HEADROOM);
}

/* Later, without overlap: it has no prefix, and yet is not the first. */
static void check_without_overlap(void)
{
	struct pinion_chunk chunk = make(1000, 10, 0, 0);

	expect_true("not first", !pinion_chunk_is_first(&chunk));
	expect_number("new from", 1000, (long long)pinion_chunk_new_bytes_start(&chunk));
}

static void check_all_prefix(void)
{
	struct pinion_chunk chunk = make(10, 20, 20, -20);
	struct pinion_chunk_range range = pinion_chunk_new_range(&chunk);

	expect_number("no payload", 0, pinion_chunk_payload_length(&chunk));
	expect_number("nothing new", range.begin, range.end);
	expect_true("not a byte", !pinion_chunk_is_new_byte(&chunk, 29));
	expect_true("nor the next", !pinion_chunk_is_new_byte(&chunk, 30));
	refuse("a longer prefix", make_raw(10, 20, 21, -20));
	refuse("a prefix of nothing", make_raw(10, 0, 1, 0));
}

static void check_empty(void)
{
	struct pinion_chunk chunk = make(0, 0, 0, 0);

	expect_true("first", pinion_chunk_is_first(&chunk));
	expect_number("end", 0, (long long)pinion_chunk_end_offset(&chunk));
	expect_true("no byte", !pinion_chunk_is_new_byte(&chunk, 0));
	(void)make(0, 0, 0, BUFFER);
	(void)make(UINT64_MAX, 0, 0, 0);
}

static void check_buffer_end(void)
{
	struct pinion_chunk chunk = make(0, BUFFER, 0, 0);

	expect_true("data", pinion_chunk_data(&chunk) == memory + HEADROOM);
	(void)make(0, BUFFER - 1, 0, 1);
	(void)make(0, BUFFER + HEADROOM, 0, -HEADROOM);
	refuse("a byte too long", make_raw(0, BUFFER + 1, 0, 0));
	refuse("a byte too far", make_raw(0, BUFFER, 0, 1));
	refuse("begins after the end", make_raw(0, 0, 0, BUFFER + 1));
	refuse("far too long", make_raw(0, UINT32_MAX, 0, 0));
	refuse("far too far", make_raw(0, UINT32_MAX, 0, INT32_MAX));
}

static void check_headroom(void)
{
	struct pinion_chunk chunk = make(HEADROOM, HEADROOM, HEADROOM, -HEADROOM);

	expect_true("data", pinion_chunk_data(&chunk) == memory);
	refuse("in front of it", make_raw(0, 10, 0, -HEADROOM - 1));
	refuse("far in front", make_raw(0, 10, 0, INT32_MIN));
	chunk = make_raw(0, 10, 0, -1);
	chunk.headroom_bytes = 0;
	refuse("there is none", chunk);
}

static void check_object_end(void)
{
	struct pinion_chunk chunk = make(UINT64_MAX - 10, 10, 4, -4);

	expect_true("end", pinion_chunk_end_offset(&chunk) == UINT64_MAX);
	expect_true("its last byte", pinion_chunk_is_new_byte(&chunk, UINT64_MAX - 1));
	expect_true("and no more", !pinion_chunk_is_new_byte(&chunk, UINT64_MAX));
	refuse("beyond 64 bits", make_raw(UINT64_MAX - 10, 11, 0, 0));
	refuse("likewise", make_raw(UINT64_MAX, 1, 0, 0));
}

static void check_other_fields(void)
{
	struct pinion_chunk chunk = make_raw(0, 10, 0, 0);
	struct pinion_buffer none = {NULL, 0, 0};

	chunk.reserved = 1;
	refuse("reserved", chunk);
	chunk = make_raw(0, 10, 0, 0);
	chunk.buffer_bytes = (uint32_t)INT32_MAX + 1;
	refuse("a buffer of 2 GiB", chunk);
	chunk = make_raw(0, 10, 0, 0);
	chunk.headroom_bytes = (uint32_t)INT32_MAX + 1;
	refuse("headroom of 2 GiB", chunk);
	chunk = make_raw(0, 10, 0, 0);
	expect_number("an empty handle", -EINVAL, pinion_chunk_init(&chunk, &none));
	expect_true("size", sizeof(struct pinion_chunk) == 56);
}

static void check_new_bytes(void)
{
	struct pinion_chunk chunk = make(1000, 100, 30, -30);
	struct pinion_chunk_range range = pinion_chunk_new_range(&chunk);

	expect_number("new in data from", 30, range.begin);
	expect_number("to", 100, range.end);
	expect_true("before data", !pinion_chunk_is_new_byte(&chunk, 999));
	expect_true("the prefix's first", !pinion_chunk_is_new_byte(&chunk, 1000));
	expect_true("the prefix's last", !pinion_chunk_is_new_byte(&chunk, 1029));
	expect_true("the first new one", pinion_chunk_is_new_byte(&chunk, 1030));
	expect_true("the last", pinion_chunk_is_new_byte(&chunk, 1099));
	expect_true("after it", !pinion_chunk_is_new_byte(&chunk, 1100));
}

static void check_absolute(void)
{
	struct pinion_chunk chunk = make(UINT64_C(1) << 40, 100, 30, -30);

	expect_number("data", 1ll << 40, (long long)pinion_chunk_to_absolute(&chunk, 0));
	expect_number("new bytes", (1ll << 40) + 30,
		(long long)pinion_chunk_to_absolute(&chunk, pinion_chunk_new_range(&chunk).begin));
	expect_number("end", (long long)pinion_chunk_end_offset(&chunk),
		(long long)pinion_chunk_to_absolute(&chunk, 100));
}

static void check_keep_rule(void)
{
	struct pinion_chunk chunk = make(1000, 100, 30, -30);

	expect_true("ends in the prefix", !pinion_chunk_keeps(&chunk, 1029));
	expect_true("ends with the prefix", !pinion_chunk_keeps(&chunk, 1030));
	expect_true("has one new byte", pinion_chunk_keeps(&chunk, 1031));
	expect_true("ends with the data", pinion_chunk_keeps(&chunk, 1100));
	chunk = make(0, 10, 0, 0);
	expect_true("of nothing", !pinion_chunk_keeps(&chunk, 0));
	expect_true("the first byte", pinion_chunk_keeps(&chunk, 1));
}

static void check_into_buffer(void)
{
	struct pinion_chunk chunk = make(1000, 100, 30, -30);
	struct pinion_buffer buffer;

	expect_true("unchanged", pinion_chunk_buffer(&chunk)->bytes == memory + HEADROOM);
	buffer = pinion_chunk_into_buffer(&chunk);
	expect_true("the same right",
		buffer.bytes == memory + HEADROOM && buffer.index == 3 && buffer.generation == 5);
	expect_true("the chunk has none", chunk.buffer.bytes == NULL);
	expect_number("nor data", 0, chunk.length);
	expect_number("nor payload", 0, pinion_chunk_payload_length(&chunk));
	buffer = pinion_chunk_into_buffer(&chunk);
	expect_true("once only", buffer.bytes == NULL);
}

/* ---- the prefix in front ---- */

static uint8_t earlier_memory[BUFFER];

static struct pinion_chunk make_earlier(uint64_t base_offset, uint32_t length)
{
	struct pinion_chunk chunk = make_raw(base_offset, length, 0, 0);
	struct pinion_buffer buffer = {.bytes = earlier_memory, .index = 1, .generation = 1};

	chunk.headroom_bytes = 0;
	expect_number("init", 0, pinion_chunk_init(&chunk, &buffer));
	for (uint32_t i = 0; i < BUFFER; i++) {
		earlier_memory[i] = (uint8_t)(i * 7);
	}
	return chunk;
}

static void check_prepend(void)
{
	struct pinion_chunk before = make_earlier(1000, 600);
	struct pinion_chunk chunk = make(1600, 50, 0, 0);

	memset(memory, 0xee, sizeof(memory));
	expect_number("prepend", 30, pinion_chunk_prepend(&chunk, &before, 30));
	expect_number("base", 1570, (long long)chunk.base_offset);
	expect_number("length", 80, chunk.length);
	expect_number("prefix", 30, chunk.prefix_length);
	expect_number(
		"new bytes where they were", 1600, (long long)pinion_chunk_new_bytes_start(&chunk));
	expect_true("payload where it was", pinion_chunk_payload(&chunk) == memory + HEADROOM);
	expect_true("the end of the last one",
		memcmp(pinion_chunk_data(&chunk), earlier_memory + 570, 30) == 0);
	expect_number("nothing in front is touched", 0xee, memory[HEADROOM - 31]);
	expect_number("nor the payload", 0xee, memory[HEADROOM]);
	expect_number("a second prefix", -EINVAL, pinion_chunk_prepend(&chunk, &before, 30));

	/* As much as there is room for, and as there was. */
	chunk = make(1600, 50, 0, 0);
	expect_number("all room", HEADROOM, pinion_chunk_prepend(&chunk, &before, HEADROOM));
	expect_true("data", pinion_chunk_data(&chunk) == memory);
	before = make_earlier(0, 20);
	chunk = make(20, 50, 0, 0);
	expect_number("all there was", 20, pinion_chunk_prepend(&chunk, &before, 30));
	expect_number("from the beginning", 0, (long long)chunk.base_offset);
	expect_true("its bytes", memcmp(pinion_chunk_data(&chunk), earlier_memory, 20) == 0);
	expect_true("and yet not the first", !pinion_chunk_is_first(&chunk));
	/* Into the buffer's own bytes, where data begins later. */
	chunk = make(20, 50, 0, 40);
	expect_number("none of the headroom", 20, pinion_chunk_prepend(&chunk, &before, 20));
	expect_number("at", 20, chunk.buffer_offset);
	chunk = make(20, 50, 0, 0);
	expect_number("nothing", 0, pinion_chunk_prepend(&chunk, &before, 0));
	expect_number("is nothing", 50, chunk.length);
}

static void expect_unchanged(const char *what, int64_t wanted, struct pinion_chunk chunk,
	const struct pinion_chunk *before, uint32_t overlap_length)
{
	struct pinion_chunk copy = chunk;

	expect_number(what, wanted, pinion_chunk_prepend(&chunk, before, overlap_length));
	expect_true("the chunk is as before", memcmp(&copy, &chunk, sizeof(chunk)) == 0);
}

static void check_prepend_refused(void)
{
	struct pinion_chunk before = make_earlier(1000, 600);
	struct pinion_chunk chunk = make(1600, 50, 0, 0);

	expect_unchanged("more than there is room for", -ENOSPC, chunk, &before, HEADROOM + 1);
	chunk.object_id = 78;
	expect_unchanged("another object", -EINVAL, chunk, &before, 30);
	expect_unchanged("a gap", -EINVAL, make(1601, 50, 0, 0), &before, 30);
	expect_unchanged("an overlap", -EINVAL, make(1599, 50, 0, 0), &before, 30);
	expect_unchanged("a prefix", -EINVAL, make(1600, 50, 1, 0), &before, 30);
}

static void check_pool(void)
{
	struct pinion_pool *pool = users_pool(NULL, 1, 1, 1);
	struct pinion_buffer buffer = users_take(pool);
	uint8_t *bytes = buffer.bytes;
	struct pinion_chunk chunk = {.length = 8192, .buffer_offset = -4096};

	expect_number("as large as its pool says", 0, pinion_chunk_init_in(&chunk, pool, &buffer));
	expect_true("from the headroom on", pinion_chunk_data(&chunk) == bytes - 4096);
	memset(pinion_chunk_data(&chunk), 1, chunk.length);
	buffer = pinion_chunk_into_buffer(&chunk);
	chunk = (struct pinion_chunk){.length = 4097};
	expect_number("and no larger", -EINVAL, pinion_chunk_init_in(&chunk, pool, &buffer));
	users_give(pool, &buffer);
	users_end(pool);
}

int main(void)
{
	check_first();
	check_with_prefix();
	check_without_overlap();
	check_all_prefix();
	check_empty();
	check_buffer_end();
	check_headroom();
	check_object_end();
	check_other_fields();
	check_new_bytes();
	check_absolute();
	check_keep_rule();
	check_into_buffer();
	check_prepend();
	check_prepend_refused();
	check_pool();
	return expect_status();
}
