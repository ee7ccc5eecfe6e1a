/* SPDX-License-Identifier: MIT */
/*
 * The hash functions as rows of one table, and those of libxxhash themselves.
 */
#include "tools/sum/digest.h"

#include "tools/report.h"
#include "tools/sum/digest_blake3.h"
#include "tools/sum/digest_openssl.h"

#include <errno.h>
#include <string.h>

#if defined(HAVE_XXHASH)
/* For the size of the state only; every call goes to the shared library. */
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>
#if defined(HAVE_XXH3_DISPATCH)
#include <xxh_x86dispatch.h> /* defines the usual names as its own functions */
#endif
#endif

#if defined(HAVE_XXHASH)
_Static_assert(sizeof(XXH3_state_t) <= DIGEST_STATE_BYTES, "the state fits");
_Static_assert(alignof(XXH3_state_t) <= alignof(struct digest_state), "so does its alignment");

static XXH3_state_t *xxh3_state(struct digest_state *state)
{
	return (XXH3_state_t *)(void *)state->bytes;
}

static int xxh3_result(XXH_errorcode code)
{
	return code == XXH_OK ? 0 : -EINVAL;
}

static int xxh3_64_init(struct digest_state *state)
{
	return xxh3_result(XXH3_64bits_reset(xxh3_state(state)));
}

static int xxh3_64_update(struct digest_state *state, const void *bytes, size_t length)
{
	return xxh3_result(XXH3_64bits_update(xxh3_state(state), bytes, length));
}

static int xxh3_64_final(struct digest_state *state, uint8_t *digest)
{
	XXH64_canonical_t canonical;

	XXH64_canonicalFromHash(&canonical, XXH3_64bits_digest(xxh3_state(state)));
	memcpy(digest, canonical.digest, sizeof(canonical.digest));
	return 0;
}

static int xxh3_128_init(struct digest_state *state)
{
	return xxh3_result(XXH3_128bits_reset(xxh3_state(state)));
}

static int xxh3_128_update(struct digest_state *state, const void *bytes, size_t length)
{
	return xxh3_result(XXH3_128bits_update(xxh3_state(state), bytes, length));
}

static int xxh3_128_final(struct digest_state *state, uint8_t *digest)
{
	XXH128_canonical_t canonical;

	XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(xxh3_state(state)));
	memcpy(digest, canonical.digest, sizeof(canonical.digest));
	return 0;
}

/* Its only pointer is that to the secret of the library. */
static bool xxh3_save(struct digest_state *state, struct output_text *out, uint64_t *end)
{
	uint64_t version = XXH_versionNumber();
	XXH3_state_t copy;

	(void)end;
	memcpy(&copy, state->bytes, sizeof(copy));
	copy.extSecret = NULL;
	output_text_append(out, &version, sizeof(version));
	output_text_append(out, &copy, sizeof(copy));
	return !out->failed;
}

static bool xxh3_load(struct digest_state *state, const void *bytes, size_t length, uint64_t end)
{
	const unsigned char *secret = xxh3_state(state)->extSecret;
	uint64_t version;

	(void)end;
	if (length != sizeof(version) + sizeof(XXH3_state_t)) {
		return false;
	}
	memcpy(&version, bytes, sizeof(version));
	if (version != XXH_versionNumber()) {
		return false;
	}
	memcpy(state->bytes, (const uint8_t *)bytes + sizeof(version), sizeof(XXH3_state_t));
	xxh3_state(state)->extSecret = secret;
	return true;
}

static void xxh3_discard(struct digest_state *state)
{
	(void)state;
}

#define XXH3_CALLS(bits) \
	.init = xxh3_##bits##_init, .update = xxh3_##bits##_update, .final = xxh3_##bits##_final, \
	.discard = xxh3_discard, .save = xxh3_save, .load = xxh3_load
#else
#define XXH3_CALLS(bits) .missing = xxh3_missing
static const char xxh3_missing[] = "install libxxhash-dev and configure --with-xxhash";
#endif

#if defined(HAVE_OPENSSL)
#define OPENSSL_CALLS(init_fn) \
	.init = init_fn, .update = digest_openssl_update, .final = digest_openssl_final, \
	.discard = digest_openssl_discard
#else
#define OPENSSL_CALLS(init_fn) .missing = openssl_missing
static const char openssl_missing[] = "install libssl-dev and configure --with-openssl";
#endif
#if !defined(HAVE_BLAKE3)
static const char blake3_missing[] = "install librust-blake3-dev and configure --with-blake3";
#endif

const struct digest_algorithm digest_algorithms[DIGEST_COUNT] = {
	[DIGEST_XXH3_64] =
		{
			.name = "xxh3-64",
			.tag = "XXH3",
			.stdin_name = "stdin",
			.digest_bytes = 8,
			.is_tagged = true,
			XXH3_CALLS(64),
		},
	[DIGEST_XXH3_128] =
		{
			.name = "xxh3-128",
			.tag = "XXH128",
			.stdin_name = "stdin",
			.digest_bytes = 16,
			XXH3_CALLS(128),
		},
	[DIGEST_SHA256] =
		{
			.name = "sha256",
			.tag = "SHA256",
			.stdin_name = "-",
			.digest_bytes = 32,
			OPENSSL_CALLS(digest_sha256_init),
		},
	[DIGEST_BLAKE3] =
		{
			.name = "blake3",
			.tag = "BLAKE3",
			.stdin_name = "-",
			.digest_bytes = 32,
#if defined(HAVE_BLAKE3)
			.init = digest_blake3_init,
			.update = digest_blake3_update,
			.part = digest_blake3_part,
			.final = digest_blake3_final,
			.save = digest_blake3_save,
			.load = digest_blake3_load,
			.discard = digest_blake3_discard,
#else
			.missing = blake3_missing,
#endif
		},
	[DIGEST_MD5] =
		{
			.name = "md5",
			.tag = "MD5",
			.stdin_name = "-",
			.digest_bytes = 16,
			OPENSSL_CALLS(digest_md5_init),
		},
	[DIGEST_SHA1] =
		{
			.name = "sha1",
			.tag = "SHA1",
			.stdin_name = "-",
			.digest_bytes = 20,
			OPENSSL_CALLS(digest_sha1_init),
		},
};

bool digest_is_built(const struct digest_algorithm *algorithm)
{
	if (algorithm->missing != NULL) {
		report_line("%s is not built into this program: %s", algorithm->name,
			algorithm->missing);
	}
	return algorithm->missing == NULL;
}

void digest_append_features(struct output_text *text)
{
#if defined(HAVE_OPENSSL)
	output_text_string(text, " +openssl ");
	output_text_string(text, digest_openssl_version());
#else
	output_text_string(text, " -openssl");
#endif
#if defined(HAVE_XXHASH)
	/* MAJOR * 10000 + MINOR * 100 + RELEASE */
	unsigned version = XXH_versionNumber();

	output_text_string(text, " +xxhash ");
	output_text_decimal(text, version / 10000);
	output_text_string(text, ".");
	output_text_decimal(text, version / 100 % 100);
	output_text_string(text, ".");
	output_text_decimal(text, version % 100);
#else
	output_text_string(text, " -xxhash");
#endif
#if defined(HAVE_BLAKE3)
	output_text_string(text, " +blake3 ");
	output_text_string(text, digest_blake3_version());
#else
	output_text_string(text, " -blake3");
#endif
}
