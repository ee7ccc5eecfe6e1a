/* SPDX-License-Identifier: MIT */
/*
 * Goal: BLAKE3 of a file in parts, in any order and from several threads, is
 * that of the whole file in order, and both are the published test vectors;
 * parts that make no file are an error.
 * Method: lengths around chunks, powers of two of them and windows; parts of
 * random lengths in random order, and equal windows taken by threads. The
 * parent node that is computed without internal functions has its known value.
 */
#include "tests/support/expect.h"
#include "tests/support/random.h"
#include "tools/sum/digest.h"
#include "tools/sum/digest_blake3.h"

#include <errno.h>
#include <pthread.h>

#if !defined(HAVE_BLAKE3)
int main(void)
{
	printf("built without BLAKE3\n");
	return EXPECT_SKIPPED;
}
#else
enum {
	CHUNK = 1024,
	PATTERN = 251,
	BYTES_MAX = 1 << 20,
	PARTS_MAX = BYTES_MAX / CHUNK + 1,
	THREADS = 4,
	ROUNDS = 60,
	DIGEST = 32,
};

/* Of bytes that count from 0 to 250 again and again. */
static const struct {
	size_t length;
	const char *hex;
} vectors[] = {
	{0, "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"},
	{1, "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213"},
	{63, "e9bc37a594daad83be9470df7f7b3798297c3d834ce80ba85d6e207627b7db7b"},
	{64, "4eed7141ea4a5cd4b788606bd23f46e212af9cacebacdc7d1f4c6dc7f2511b98"},
	{65, "de1e5fa0be70df6d2be8fffd0e99ceaa8eb6e8c93a63f2d8d1c30ecb6b263dee"},
	{1023, "10108970eeda3eb932baac1428c7a2163b0e924c9a9e25b35bba72b28f70bd11"},
	{1024, "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7"},
	{1025, "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444"},
	{2048, "e776b6028c7cd22a4d0ba182a8bf62205d2ef576467e838ed6f2529b85fba24a"},
	{2049, "5f4d72f40d7a5f82b15ca2b2e44b1de3c2ef86c426c95c1af0b6879522563030"},
	{3072, "b98cb0ff3623be03326b373de6b9095218513e64f1ee2edd2525c7ad1e5cffd2"},
	{3073, "7124b49501012f81cc7f11ca069ec9226cecb8a2c850cfe644e327d22d3e1cd3"},
	{4096, "015094013f57a5277b59d8475c0501042c0b642e531b0a1c8f58d2163229e969"},
	{4097, "9b4052b38f1c5fc8b1f9ff7ac7b27cd242487b3d890d15c96a1c25b8aa0fb995"},
	{5120, "9cadc15fed8b5d854562b26a9536d9707cadeda9b143978f319ab34230535833"},
	{8192, "aae792484c8efe4f19e2ca7d371d8c467ffb10748d8a5a1ae579948f718a2a63"},
	{8193, "bab6c09cb8ce8cf459261398d2e7aef35700bf488116ceb94a36d0f5f1b7bc3b"},
	{16384, "f875d6646de28985646f34ee13be9a576fd515f76b5b0a26bb324735041ddde4"},
	{31744, "62b6960e1a44bcc1eb1a611a8d6235b6b4b78f32e7abc4fb4c6cdcce94895c47"},
	{102400, "bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085"},
};

static uint8_t bytes[BYTES_MAX];
static struct random_source source;

static const struct digest_algorithm *blake3(void)
{
	return &digest_algorithms[DIGEST_BLAKE3];
}

static void to_hex(const uint8_t *digest, char *hex)
{
	for (int i = 0; i < DIGEST; i++) {
		snprintf(hex + 2 * i, 3, "%02x", (unsigned)digest[i]);
	}
}

static void whole(size_t length, uint8_t *digest)
{
	struct digest_state state = {0};

	expect_number("init", 0, blake3()->init(&state));
	expect_number("update", 0, blake3()->update(&state, bytes, length));
	expect_number("final", 0, blake3()->final(&state, digest));
}

static void expect_digest(const char *what, size_t length, const uint8_t *got)
{
	uint8_t expected[DIGEST];
	char name[64];

	whole(length, expected);
	snprintf(name, sizeof(name), "%s, %zu bytes", what, length);
	expect_true(name, memcmp(expected, got, DIGEST) == 0);
}

static void vectors_hold(void)
{
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		uint8_t digest[DIGEST];
		char hex[2 * DIGEST + 1];

		whole(vectors[i].length, digest);
		to_hex(digest, hex);
		expect_text("a vector", vectors[i].hex, hex);
	}
}

/* ---- any order ---- */

struct part {
	size_t offset;
	size_t length;
};

static size_t cut(struct part *parts, size_t length, size_t chunks_max)
{
	size_t count = 0;

	for (size_t offset = 0; offset < length; count++) {
		size_t step = CHUNK * (1 + random_below(&source, chunks_max));

		parts[count].offset = offset;
		parts[count].length = step < length - offset ? step : length - offset;
		offset += step;
	}
	return count;
}

static void shuffle(struct part *parts, size_t count)
{
	for (size_t i = count; i > 1; i--) {
		size_t other = random_below(&source, i);
		struct part kept = parts[i - 1];

		parts[i - 1] = parts[other];
		parts[other] = kept;
	}
}

static void in_any_order(size_t length, size_t chunks_max)
{
	static struct part parts[PARTS_MAX];
	struct digest_state state = {0};
	size_t count = cut(parts, length, chunks_max);
	uint8_t digest[DIGEST];

	shuffle(parts, count);
	expect_number("init", 0, blake3()->init(&state));
	for (size_t i = 0; i < count; i++) {
		expect_number("a part", 0,
			blake3()->part(
				&state, bytes + parts[i].offset, parts[i].length, parts[i].offset));
	}
	expect_number("final", 0, blake3()->final(&state, digest));
	expect_digest("parts in any order", length, digest);
}

static void lengths_around_borders(void)
{
	static const size_t chunk_counts[] = {1, 2, 3, 4, 5, 8, 16, 17, 128, 129, 1000};

	for (size_t i = 0; i < sizeof(chunk_counts) / sizeof(chunk_counts[0]); i++) {
		size_t border = chunk_counts[i] * CHUNK;

		for (size_t length = border - 1; length <= border + 1; length++) {
			in_any_order(length, 1);
			in_any_order(length, 4);
			in_any_order(length, 64);
			in_any_order(length, PARTS_MAX);
		}
	}
	for (int round = 0; round < ROUNDS; round++) {
		in_any_order(1 + random_below(&source, BYTES_MAX), 1 + random_below(&source, 64));
	}
}

/* ---- several threads ---- */

/* Every THREADSth window, from the one of its index on. */
struct taker {
	pthread_t thread;
	struct digest_state *state;
	size_t index;
	size_t length;
	size_t window;
	int error;
};

static void *take_windows(void *arg)
{
	struct taker *taker = arg;

	for (size_t i = taker->index; i * taker->window < taker->length; i += THREADS) {
		size_t offset = i * taker->window;
		size_t left = taker->length - offset;
		int error = blake3()->part(taker->state, bytes + offset,
			left < taker->window ? left : taker->window, offset);

		taker->error = taker->error == 0 ? error : taker->error;
	}
	return NULL;
}

static void on_threads(size_t length, size_t window)
{
	struct digest_state state = {0};
	struct taker takers[THREADS];
	uint8_t digest[DIGEST];

	expect_number("init", 0, blake3()->init(&state));
	for (size_t i = 0; i < THREADS; i++) {
		takers[i] = (struct taker){
			.state = &state, .index = i, .length = length, .window = window};
		expect_ready("a thread",
			pthread_create(&takers[i].thread, NULL, take_windows, &takers[i]) == 0);
	}
	for (size_t i = 0; i < THREADS; i++) {
		pthread_join(takers[i].thread, NULL);
		expect_number("parts on threads", 0, takers[i].error);
	}
	expect_number("final", 0, blake3()->final(&state, digest));
	expect_digest("parts on threads", length, digest);
}

/* ---- parts that make no file ---- */

static int final_of(const struct part *parts, size_t count)
{
	struct digest_state state = {0};
	uint8_t digest[DIGEST];

	expect_number("init", 0, blake3()->init(&state));
	for (size_t i = 0; i < count; i++) {
		expect_number("a part", 0,
			blake3()->part(&state, bytes, parts[i].length, parts[i].offset));
	}
	return blake3()->final(&state, digest);
}

static void errors_are_seen(void)
{
	struct digest_state state = {0};
	const struct part no_start[] = {{CHUNK, CHUNK}};
	const struct part no_middle[] = {{0, CHUNK}, {(size_t)2 * CHUNK, 10}};
	const struct part twice[] = {{0, CHUNK}, {0, CHUNK}, {CHUNK, 5}};
	const struct part after_the_end[] = {{0, 100}, {CHUNK, CHUNK}};

	expect_number("no first part", -EINVAL, final_of(no_start, 1));
	expect_number("no middle part", -EINVAL, final_of(no_middle, 2));
	expect_number("a part given twice", -EINVAL, final_of(twice, 3));
	expect_number("a part after the end", -EINVAL, final_of(after_the_end, 2));
	expect_number("init", 0, blake3()->init(&state));
	expect_number("within a chunk", -EINVAL, blake3()->part(&state, bytes, 10, 10));
	expect_number("one end", 0, blake3()->part(&state, bytes, 10, 0));
	expect_number("two ends", -EINVAL, blake3()->part(&state, bytes, 10, CHUNK));
	blake3()->discard(&state);
}

static void parent_needs_no_internals(void)
{
	uint8_t left[DIGEST];
	uint8_t right[DIGEST];
	uint8_t parent[DIGEST];
	char hex[2 * DIGEST + 1];

	memset(left, 1, sizeof(left));
	memset(right, 2, sizeof(right));
	digest_blake3_parent(left, right, parent);
	to_hex(parent, hex);
	expect_text("a parent", "396b10ac58d387a1ce6202b725bf2d6b93e2a2ebbaac093a8a9e7bce5cc15f92",
		hex);
}

int main(void)
{
	for (size_t i = 0; i < BYTES_MAX; i++) {
		bytes[i] = (uint8_t)(i % PATTERN);
	}
	random_begin(&source);
	vectors_hold();
	lengths_around_borders();
	on_threads(BYTES_MAX, (size_t)4 * CHUNK);
	on_threads(BYTES_MAX - 1, (size_t)12 * CHUNK);
	on_threads((size_t)700 * CHUNK + 1, (size_t)128 * CHUNK);
	errors_are_seen();
	parent_needs_no_internals();
	return expect_status();
}
#endif
