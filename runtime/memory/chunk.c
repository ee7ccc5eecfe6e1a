/* SPDX-License-Identifier: MIT */
/*
 * Chunks: parts of a buffer with their place in an object; the checks of their
 * rules, and the prefix in front of the payload.
 *
 * Readers and scanners of any thread use them; the inline rest is in the public
 * header.
 *
 * Invariant: the payload and its prefix are contiguous and within the buffer
 * and its headroom.
 */
#include "runtime/base/check.h"

#include <errno.h>
#include <pinion/chunk.h>
#include <string.h>

_Static_assert(sizeof(struct pinion_chunk) == 56, "released size; within a cache line");

/* Whether data is where the buffer is, or before it. */
static bool is_within(const struct pinion_chunk *chunk)
{
	int64_t begin = chunk->buffer_offset;

	return chunk->headroom_bytes <= INT32_MAX && chunk->buffer_bytes <= INT32_MAX &&
		begin >= -(int64_t)chunk->headroom_bytes &&
		begin + chunk->length <= (int64_t)chunk->buffer_bytes;
}

static bool is_valid(const struct pinion_chunk *chunk)
{
	return chunk->prefix_length <= chunk->length && is_within(chunk) &&
		chunk->base_offset <= UINT64_MAX - chunk->length && chunk->reserved == 0;
}

int pinion_chunk_init(struct pinion_chunk *chunk, struct pinion_buffer *buffer)
{
	if (buffer->bytes == NULL || !is_valid(chunk)) {
		return -EINVAL;
	}
	chunk->buffer = *buffer;
	*buffer = (struct pinion_buffer){0};
	return 0;
}

static void check_whole(const struct pinion_chunk *chunk)
{
	if (!is_valid(chunk)) {
		pin_check_misused(NULL,
			"pinion_chunk_prepend() of a chunk at %p that pinion_chunk_init() would "
			"refuse: leave its bounds as they were, or make it anew",
			(const void *)chunk);
	}
}

/*
 * Copies the end of the chunk before into this chunk's headroom; the payload
 * itself is never copied.
 */
int64_t pinion_chunk_prepend(
	struct pinion_chunk *chunk, const struct pinion_chunk *before, uint32_t overlap_length)
{
	uint32_t length = overlap_length < before->length ? overlap_length : before->length;

	check_whole(chunk);
	check_whole(before);
	if (chunk->prefix_length != 0 || before->object_id != chunk->object_id ||
		pinion_chunk_end_offset(before) != chunk->base_offset) {
		return -EINVAL;
	}
	if ((int64_t)chunk->buffer_offset + chunk->headroom_bytes < length) {
		return -ENOSPC;
	}
	/* It ends where this one begins, and did not begin before 0. */
	PIN_DCHECK(chunk->base_offset >= length);
	chunk->base_offset -= length;
	chunk->buffer_offset -= (int32_t)length;
	chunk->length += length;
	chunk->prefix_length = length;
	PIN_DCHECK((int64_t)chunk->buffer_offset + chunk->headroom_bytes >= 0);
	memcpy(pinion_chunk_data(chunk), pinion_chunk_data(before) + before->length - length,
		length);
	PIN_CHECK(is_valid(chunk));
	return length;
}
