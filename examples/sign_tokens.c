/* SPDX-License-Identifier: MIT-0 */
/*
 * Shows: urgent work at the high lane: the workers of a thread pool sign
 * claims, one line of JSON each, as JSON web tokens by ES384, side by side and
 * before all that the thread pool has at other lanes. The order is that of the
 * claims.
 * Try:   openssl genpkey -algorithm EC -pkeyopt group:P-384 >key.pem
 *        echo '{"sub":"ann"}' | examples/sign_tokens key.pem
 */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <pinion/pinion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 64, CLAIMS_BYTES = 4096, HALF_BYTES = 48, DER_BYTES = 128 };

static const char header[] = "{\"alg\":\"ES384\",\"typ\":\"JWT\"}";

struct token {
	struct pinion_group_task task; /* first, so that it leads back here */
	EVP_PKEY *key;
	char claims[CLAIMS_BYTES];
	char text[2 * CLAIMS_BYTES];
};

/* Base 64 as URLs have it, without padding. */
static char *append(char *to, const void *bytes, int length)
{
	int text_length = EVP_EncodeBlock((unsigned char *)to, bytes, length);

	for (int i = 0; i < text_length; i++) {
		to[i] = to[i] == '+' ? '-' : to[i] == '/' ? '_' : to[i];
	}
	return to + text_length - (3 - length % 3) % 3;
}

/* The two halves of what OpenSSL packs into a structure. */
static int unpack(const unsigned char *der, size_t length, unsigned char halves[2 * HALF_BYTES])
{
	ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &der, (long)length);
	int rc = -EIO;

	if (pair != NULL &&
		BN_bn2binpad(ECDSA_SIG_get0_r(pair), halves, HALF_BYTES) == HALF_BYTES &&
		BN_bn2binpad(ECDSA_SIG_get0_s(pair), halves + HALF_BYTES, HALF_BYTES) ==
			HALF_BYTES) {
		rc = 0;
	}
	ECDSA_SIG_free(pair);
	return rc;
}

static int sign(struct pinion_group_task *task)
{
	struct token *token = (struct token *)task;
	unsigned char der[DER_BYTES], halves[2 * HALF_BYTES];
	size_t length = sizeof(der);
	char *end = append(token->text, header, sizeof(header) - 1);
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	int rc = -EIO;

	*end++ = '.';
	end = append(end, token->claims, (int)strlen(token->claims));
	if (context != NULL &&
		EVP_DigestSignInit(context, NULL, EVP_sha384(), NULL, token->key) == 1 &&
		EVP_DigestSign(context, der, &length, (unsigned char *)token->text,
			(size_t)(end - token->text)) == 1) {
		rc = unpack(der, length, halves);
	}
	EVP_MD_CTX_free(context);
	*end++ = '.';
	*append(end, halves, sizeof(halves)) = '\0';
	return rc;
}

/* The claims of one token: 0, -ENODATA at the end, or an error. */
static int read_claims(struct token *token)
{
	if (fgets(token->claims, CLAIMS_BYTES, stdin) == NULL) {
		return feof(stdin) ? -ENODATA : -EIO;
	}
	if (strchr(token->claims, '\n') == NULL && !feof(stdin)) {
		return -EMSGSIZE;
	}
	token->claims[strcspn(token->claims, "\n")] = '\0';
	return 0;
}

/* As many lines as there are, up to BATCH; what read_claims() said last. */
static int sign_lines(struct pinion_runtime *thread_pool, struct token *tokens, EVP_PKEY *key)
{
	struct pinion_group group;
	int count = 0, rc = pinion_group_init(&group, thread_pool, 0), result;

	while (rc == 0 && count < BATCH && (rc = read_claims(&tokens[count])) == 0) {
		tokens[count].key = key;
		tokens[count].task = (struct pinion_group_task){
			.task.flags = PINION_TASK_HIGH,
			.run = sign,
		};
		rc = pinion_group_spawn(&group, &tokens[count].task);
		count += rc == 0;
	}
	result = pinion_group_wait(&group, UINT64_MAX);
	result = result == 0 ? pinion_group_result(&group) : result;
	for (int i = 0; result == 0 && i < count; i++) {
		puts(tokens[i].text);
	}
	return result == 0 ? rc : result;
}

static EVP_PKEY *read_key(const char *path)
{
	FILE *file = fopen(path, "re");
	EVP_PKEY *key = file == NULL ? NULL : PEM_read_PrivateKey(file, NULL, NULL, NULL);

	if (file != NULL) {
		fclose(file);
	}
	return key;
}

int main(int argc, char **argv)
{
	struct pinion_runtime *thread_pool = NULL;
	struct token *tokens;
	EVP_PKEY *key;
	int rc;

	if (argc != 2 || argv[1][0] == '-') {
		fprintf(stderr, "usage: sign_tokens KEY.pem <CLAIMS\n");
		return 2;
	}
	key = read_key(argv[1]);
	if (key == NULL || !EVP_PKEY_is_a(key, "EC") || EVP_PKEY_get_bits(key) != 8 * HALF_BYTES) {
		fprintf(stderr, "sign_tokens: %s: needs the private key of a P-384 curve\n",
			argv[1]);
		EVP_PKEY_free(key);
		return EXIT_FAILURE;
	}
	tokens = calloc(BATCH, sizeof(*tokens));
	rc = tokens == NULL ? -ENOMEM : pinion_thread_pool_create(NULL, NULL, &thread_pool);
	while (rc == 0) {
		rc = sign_lines(thread_pool, tokens, key);
	}
	pinion_runtime_destroy(thread_pool);
	free(tokens);
	EVP_PKEY_free(key);
	rc = rc != -ENODATA ? rc : fflush(stdout) != 0 ? -EIO : 0;
	if (rc != 0) {
		fprintf(stderr, "sign_tokens: %s\n", strerror(-rc));
		return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}
