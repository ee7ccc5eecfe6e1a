/* SPDX-License-Identifier: MIT */
/*
 * libxxhash and OpenSSL as rows of one table.
 *
 * OpenSSL wants its contexts on the heap. They are kept in a list and used
 * again, so their number is that of files in flight, not of files.
 */
#include "tools/sum/digest.h"

#include "tools/report.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#if defined(HAVE_XXHASH)
/* For the size of the state only; every call goes to the shared library. */
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>
#if defined(HAVE_XXH3_DISPATCH)
#include <xxh_x86dispatch.h> /* defines the usual names as its own functions */
#endif
#endif
#if defined(HAVE_OPENSSL)
#include <openssl/crypto.h>
#include <openssl/evp.h>
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

static void xxh3_discard(struct digest_state *state)
{
	(void)state;
}

#else
static const char xxh3_missing[] = "install libxxhash-dev and configure --with-xxhash";
#endif

#if defined(HAVE_OPENSSL)
struct sha256_state {
	EVP_MD_CTX *context;
};

_Static_assert(sizeof(struct sha256_state) <= DIGEST_STATE_BYTES, "the state fits");

static pthread_once_t sha256_once = PTHREAD_ONCE_INIT;
static EVP_MD *sha256_method;

static pthread_mutex_t sha256_lock = PTHREAD_MUTEX_INITIALIZER;
static EVP_MD_CTX **sha256_idle;
static size_t sha256_idle_count;
static size_t sha256_idle_capacity;

/* Looked up once: a fetch takes locks and several microseconds. */
static void sha256_fetch(void)
{
	sha256_method = EVP_MD_fetch(NULL, "SHA256", NULL);
}

static struct sha256_state *sha256_state(struct digest_state *state)
{
	return (struct sha256_state *)(void *)state->bytes;
}

static EVP_MD_CTX *sha256_acquire(void)
{
	EVP_MD_CTX *context = NULL;

	pthread_mutex_lock(&sha256_lock);
	if (sha256_idle_count > 0) {
		context = sha256_idle[--sha256_idle_count];
	}
	pthread_mutex_unlock(&sha256_lock);
	return context != NULL ? context : EVP_MD_CTX_new();
}

static void sha256_release(EVP_MD_CTX *context)
{
	pthread_mutex_lock(&sha256_lock);
	if (sha256_idle_count == sha256_idle_capacity) {
		size_t capacity = sha256_idle_capacity == 0 ? 64 : 2 * sha256_idle_capacity;
		EVP_MD_CTX **idle = realloc(sha256_idle, capacity * sizeof(*idle));

		if (idle != NULL) {
			sha256_idle = idle;
			sha256_idle_capacity = capacity;
		}
	}
	if (sha256_idle_count < sha256_idle_capacity) {
		sha256_idle[sha256_idle_count++] = context;
		context = NULL;
	}
	pthread_mutex_unlock(&sha256_lock);
	EVP_MD_CTX_free(context);
}

static int sha256_init(struct digest_state *state)
{
	EVP_MD_CTX *context;

	pthread_once(&sha256_once, sha256_fetch);
	if (sha256_method == NULL) {
		/* A FIPS or stripped configuration of OpenSSL. */
		return -EOPNOTSUPP;
	}
	context = sha256_acquire();
	if (context == NULL) {
		return -ENOMEM;
	}
	if (EVP_DigestInit_ex2(context, sha256_method, NULL) != 1) {
		EVP_MD_CTX_free(context);
		return -ENOMEM;
	}
	sha256_state(state)->context = context;
	return 0;
}

static int sha256_update(struct digest_state *state, const void *bytes, size_t length)
{
	return EVP_DigestUpdate(sha256_state(state)->context, bytes, length) == 1 ? 0 : -EIO;
}

static void sha256_discard(struct digest_state *state)
{
	sha256_release(sha256_state(state)->context);
	sha256_state(state)->context = NULL;
}

static int sha256_final(struct digest_state *state, uint8_t *digest)
{
	unsigned int length = 0;
	int is_done = EVP_DigestFinal_ex(sha256_state(state)->context, digest, &length);

	sha256_discard(state);
	return is_done == 1 && length == 32 ? 0 : -EIO;
}

#else
static const char sha256_missing[] = "install libssl-dev and configure --with-openssl";
#endif

const struct digest_algorithm digest_algorithms[DIGEST_COUNT] = {
	[DIGEST_XXH3_64] =
		{
			.name = "xxh3-64",
			.tag = "XXH3",
			.stdin_name = "stdin",
			.digest_bytes = 8,
			.is_tagged = true,
#if defined(HAVE_XXHASH)
			.init = xxh3_64_init,
			.update = xxh3_64_update,
			.final = xxh3_64_final,
			.discard = xxh3_discard,
#else
			.missing = xxh3_missing,
#endif
		},
	[DIGEST_XXH3_128] =
		{
			.name = "xxh3-128",
			.tag = "XXH128",
			.stdin_name = "stdin",
			.digest_bytes = 16,
#if defined(HAVE_XXHASH)
			.init = xxh3_128_init,
			.update = xxh3_128_update,
			.final = xxh3_128_final,
			.discard = xxh3_discard,
#else
			.missing = xxh3_missing,
#endif
		},
	[DIGEST_SHA256] =
		{
			.name = "sha256",
			.tag = "SHA256",
			.stdin_name = "-",
			.digest_bytes = 32,
#if defined(HAVE_OPENSSL)
			.init = sha256_init,
			.update = sha256_update,
			.final = sha256_final,
			.discard = sha256_discard,
#else
			.missing = sha256_missing,
#endif
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
	output_text_string(text, OpenSSL_version(OPENSSL_VERSION_STRING));
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
}
