/* SPDX-License-Identifier: MIT */
/*
 * OpenSSL's hash functions and the list of its contexts.
 */
#include "tools/sum/digest_openssl.h"

#if defined(HAVE_OPENSSL)
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>

struct openssl_state {
	EVP_MD_CTX *context;
};

_Static_assert(sizeof(struct openssl_state) <= DIGEST_STATE_BYTES, "the state fits");

static pthread_once_t methods_once = PTHREAD_ONCE_INIT;
static EVP_MD *md5_method;
static EVP_MD *sha1_method;
static EVP_MD *sha256_method;

static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER;
static EVP_MD_CTX **idle;
static size_t idle_count;
static size_t idle_capacity;

/* Looked up once: a fetch takes locks and several microseconds. */
static void fetch_methods(void)
{
	md5_method = EVP_MD_fetch(NULL, "MD5", NULL);
	sha1_method = EVP_MD_fetch(NULL, "SHA1", NULL);
	sha256_method = EVP_MD_fetch(NULL, "SHA256", NULL);
}

static struct openssl_state *openssl_state(struct digest_state *state)
{
	return (struct openssl_state *)(void *)state->bytes;
}

static EVP_MD_CTX *context_acquire(void)
{
	EVP_MD_CTX *context = NULL;

	pthread_mutex_lock(&idle_lock);
	if (idle_count > 0) {
		context = idle[--idle_count];
	}
	pthread_mutex_unlock(&idle_lock);
	return context != NULL ? context : EVP_MD_CTX_new();
}

static void context_release(EVP_MD_CTX *context)
{
	pthread_mutex_lock(&idle_lock);
	if (idle_count == idle_capacity) {
		size_t capacity = idle_capacity == 0 ? 64 : 2 * idle_capacity;
		EVP_MD_CTX **grown = realloc(idle, capacity * sizeof(*grown));

		if (grown != NULL) {
			idle = grown;
			idle_capacity = capacity;
		}
	}
	if (idle_count < idle_capacity) {
		idle[idle_count++] = context;
		context = NULL;
	}
	pthread_mutex_unlock(&idle_lock);
	EVP_MD_CTX_free(context);
}

static int init(struct digest_state *state, EVP_MD *const *method)
{
	EVP_MD_CTX *context;

	pthread_once(&methods_once, fetch_methods);
	if (*method == NULL) {
		return -EOPNOTSUPP;
	}
	context = context_acquire();
	if (context == NULL) {
		return -ENOMEM;
	}
	if (EVP_DigestInit_ex2(context, *method, NULL) != 1) {
		EVP_MD_CTX_free(context);
		return -ENOMEM;
	}
	openssl_state(state)->context = context;
	return 0;
}

int digest_md5_init(struct digest_state *state)
{
	return init(state, &md5_method);
}

int digest_sha1_init(struct digest_state *state)
{
	return init(state, &sha1_method);
}

int digest_sha256_init(struct digest_state *state)
{
	return init(state, &sha256_method);
}

int digest_openssl_update(struct digest_state *state, const void *bytes, size_t length)
{
	return EVP_DigestUpdate(openssl_state(state)->context, bytes, length) == 1 ? 0 : -EIO;
}

void digest_openssl_discard(struct digest_state *state)
{
	context_release(openssl_state(state)->context);
	openssl_state(state)->context = NULL;
}

int digest_openssl_final(struct digest_state *state, uint8_t *digest)
{
	int is_done = EVP_DigestFinal_ex(openssl_state(state)->context, digest, NULL);

	digest_openssl_discard(state);
	return is_done == 1 ? 0 : -EIO;
}

const char *digest_openssl_version(void)
{
	return OpenSSL_version(OPENSSL_VERSION_STRING);
}
#endif
