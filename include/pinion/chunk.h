/* SPDX-License-Identifier: MIT */
/*
 * A chunk: a buffer, the valid part of it, and the part of an object that this
 * is. It begins with a prefix of bytes that the chunk before it had as well, so
 * that a match across a border is found in one piece; the bytes after the
 * prefix, its payload, are new in this chunk.
 *
 *     object      ....|........|==================|......
 *                     base     new bytes' start   end
 *     data            [ prefix |     payload      ]
 *     buffer  [ headroom       | bytes                      ]
 *
 * Data is read aligned, so the payload usually begins where the buffer does,
 * and the prefix is copied into the headroom in front of it: data stays in one
 * piece and only the prefix is copied.
 */
#ifndef PINION_CHUNK_H
#define PINION_CHUNK_H

#include <pinion/pool.h>

PINION_BEGIN_DECLS

/*
 * Shape: 56 bytes. Set all but `buffer` and call pinion_chunk_init(); from then
 * on these rules hold: `prefix_length` is at most `length`; data is in the
 * buffer or its headroom; its end, in the object, fits into 64 bits.
 * Units: bytes, except `object_id`, which is the caller's and any number.
 * Owns: its buffer, until pinion_chunk_into_buffer(). A copy of the struct
 * refers to the same buffer, as a copied handle does.
 * Since: 0.1
 */
struct pinion_chunk {
	struct pinion_buffer buffer;
	uint64_t object_id;
	uint64_t base_offset;	/* in the object, of the first byte of data */
	uint32_t length;	/* of data: prefix and payload */
	uint32_t prefix_length; /* 0: there is none */
	/*
	 * Start of the data, counted from `buffer.bytes`: negative in the
	 * headroom, -headroom_bytes … buffer_bytes - length.
	 */
	int32_t buffer_offset;
	uint32_t headroom_bytes; /* in front of `buffer.bytes` */
	uint32_t buffer_bytes;	 /* from `buffer.bytes` on */
	uint32_t reserved;	 /* 0 */
};

/* A part of a chunk's data: [begin, end). Since: 0.1 */
struct pinion_chunk_range {
	uint32_t begin;
	uint32_t end;
};

/*
 * Checks the chunk and has it take the buffer over: the handle is cleared.
 * `headroom_bytes` and `buffer_bytes` are those of the buffer's pool, as
 * pinion_chunk_init_in() sets them; a buffer of pinion_buffer_acquire() has no
 * headroom.
 *
 * Context: any thread.
 * Errors: -EINVAL: a rule of struct pinion_chunk does not hold, a size is more
 * than 2 GiB, `reserved` is not 0, or the handle is empty. The chunk and the
 * handle are as before.
 * Since: 0.1
 */
PINION_API int pinion_chunk_init(struct pinion_chunk *chunk, struct pinion_buffer *buffer);

/* As above, for a buffer of `pool`, whose sizes it sets first. Since: 0.1 */
static inline int pinion_chunk_init_in(
	struct pinion_chunk *chunk, const struct pinion_pool *pool, struct pinion_buffer *buffer)
{
	chunk->headroom_bytes = pinion_pool_headroom_bytes(pool);
	chunk->buffer_bytes = pinion_pool_buffer_bytes(pool);
	return pinion_chunk_init(chunk, buffer);
}

/*
 * Copies the end of `before`, the chunk of the same object that ends where this
 * one begins, in front of this one's data, as its prefix: `overlap_length`
 * bytes of it, or all its bytes, its own prefix included, if these are fewer.
 *
 * Context: any thread that has both.
 * Errors: -EINVAL: this chunk has a prefix, or `before` is of another object or
 * ends elsewhere. -ENOSPC: more than there is room for in front of its data.
 * The chunk is as before. Otherwise the prefix's length.
 * Source: `headroom_bytes` of the pool; one alignment block of O_DIRECT is
 * enough for overlaps of up to 4096 bytes.
 * Since: 0.1
 */
PINION_API int64_t pinion_chunk_prepend(
	struct pinion_chunk *chunk, const struct pinion_chunk *before, uint32_t overlap_length);

/*
 * Gives the buffer back to the caller, to use or release it; the chunk has no
 * buffer and no data any more.
 */
static inline struct pinion_buffer pinion_chunk_into_buffer(struct pinion_chunk *chunk)
{
	struct pinion_buffer buffer = chunk->buffer;

	chunk->buffer.bytes = NULL;
	chunk->buffer.index = 0;
	chunk->buffer.generation = 0;
	chunk->length = 0;
	chunk->prefix_length = 0;
	chunk->buffer_offset = 0;
	return buffer;
}

/*
 * Returns the whole buffer that the chunk owns, with the bytes that are not
 * valid.
 */
static inline const struct pinion_buffer *pinion_chunk_buffer(const struct pinion_chunk *chunk)
{
	return &chunk->buffer;
}

/* ---- its contents ---- */

/* Returns the first byte of its data, of `length`: the bytes to search. */
static inline uint8_t *pinion_chunk_data(const struct pinion_chunk *chunk)
{
	return chunk->buffer.bytes + chunk->buffer_offset;
}

/* Returns the first byte after the prefix, of pinion_chunk_payload_length(). */
static inline uint8_t *pinion_chunk_payload(const struct pinion_chunk *chunk)
{
	return pinion_chunk_data(chunk) + chunk->prefix_length;
}

static inline uint32_t pinion_chunk_payload_length(const struct pinion_chunk *chunk)
{
	return chunk->length - chunk->prefix_length;
}

/* Returns the payload as a part of data. */
static inline struct pinion_chunk_range pinion_chunk_new_range(const struct pinion_chunk *chunk)
{
	struct pinion_chunk_range range;

	range.begin = chunk->prefix_length;
	range.end = chunk->length;
	return range;
}

/* ---- where that is in the object ---- */

/* Returns the offset of the first byte that no chunk before it had. */
static inline uint64_t pinion_chunk_new_bytes_start(const struct pinion_chunk *chunk)
{
	return chunk->base_offset + chunk->prefix_length;
}

/* Returns the offset after its last byte. */
static inline uint64_t pinion_chunk_end_offset(const struct pinion_chunk *chunk)
{
	return chunk->base_offset + chunk->length;
}

/* Says whether the object begins with it; then it has no prefix. */
static inline bool pinion_chunk_is_first(const struct pinion_chunk *chunk)
{
	return pinion_chunk_new_bytes_start(chunk) == 0;
}

/*
 * Returns the offset of byte `index` of data, 0 … length; `length` gives the
 * end.
 */
static inline uint64_t pinion_chunk_to_absolute(const struct pinion_chunk *chunk, uint32_t index)
{
	return chunk->base_offset + index;
}

/* Says whether the object's byte at `offset` is in the payload. */
static inline bool pinion_chunk_is_new_byte(const struct pinion_chunk *chunk, uint64_t offset)
{
	return offset >= pinion_chunk_new_bytes_start(chunk) &&
		offset < pinion_chunk_end_offset(chunk);
}

/*
 * Says whether this chunk should report a finding that ends before `end_offset`
 * of the object. A finding that ends in the prefix was reported by a chunk
 * before; so each is reported once, however the object is cut, as long as the
 * prefix is at least as long as the longest finding less one byte.
 */
static inline bool pinion_chunk_keeps(const struct pinion_chunk *chunk, uint64_t end_offset)
{
	return end_offset > pinion_chunk_new_bytes_start(chunk);
}

PINION_END_DECLS

#endif
