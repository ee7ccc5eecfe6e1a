/* SPDX-License-Identifier: MIT */
/*
 * Secrets of the shapes of 32 built-in rules, put together from parts, so that
 * this source holds none.
 */
#include "tools/dev/corpus_secrets.h"

#include <stddef.h>
#include <string.h>

enum { PARTS_MAX = 7 };

static uint64_t random_state;

void corpus_random_seed(uint64_t seed)
{
	random_state = seed * 0x9e3779b97f4a7c15ULL | 1;
}

/* xorshift64*; good enough for text, the same everywhere. */
uint32_t corpus_random_below(uint32_t bound)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return (uint32_t)((random_state * 0x2545f4914f6cdd1dULL >> 32) * bound >> 32);
}

uint32_t corpus_random_between(uint32_t low, uint32_t high)
{
	return low + corpus_random_below(high - low + 1);
}

#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define DIGIT "0123456789"
#define ALNUM UPPER LOWER DIGIT
#define URLSAFE ALNUM "_-"
#define BASE64 ALNUM "+/"
#define HEX DIGIT "abcdef"

/* A fixed text, or min … max letters of an alphabet. */
struct part {
	const char *text;
	const char *alphabet;
	uint32_t min;
	uint32_t max;
};

struct secret {
	const char *rule;
	struct part parts[PARTS_MAX];
};

#define T(text) \
	{ \
		text, NULL, 0, 0 \
	}
#define R(alphabet, min, max) \
	{ \
		NULL, alphabet, min, max \
	}

static const struct secret secrets[] = {
	{"aws-access-key-id", {T("AK"), T("IA"), R(UPPER "234567", 16, 16)}},
	{"aws-secret-access-key",
		{T("aws_secret"), T("_access_key"), T(" = \""), R(BASE64, 40, 40)}},
	{"azure-client-secret", {R(ALNUM, 3, 3), T("8Q"), T("~"), R(ALNUM "_-", 34, 34)}},
	{"azure-storage-key", {T("Account"), T("Key="), R(BASE64, 86, 86), T("==")}},
	{"digitalocean-token", {T("dop"), T("_v1_"), R(HEX, 64, 64)}},
	{"discord-webhook",
		{T("https://disc"), T("ord.com/api/webhooks/"), R(DIGIT, 17, 20), T("/"),
			R(URLSAFE, 60, 80)}},
	{"docker-token", {T("dckr"), T("_pat_"), R(URLSAFE, 27, 32)}},
	{"gcp-api-key", {T("AI"), T("za"), R(URLSAFE, 35, 35)}},
	{"gcp-service-account",
		{T("\"type\": "), T("\"service"), T("_account\", \"private"), T("_key_id\": \""),
			R(HEX, 40, 40), T("\"")}},
	{"github-fine-grained-token",
		{T("github"), T("_pat_"), R(ALNUM, 22, 22), T("_"), R(ALNUM, 59, 59)}},
	{"github-token", {T("gh"), R("opsur", 1, 1), T("_"), R(ALNUM, 36, 251)}},
	{"gitlab-token", {T("gl"), T("pat-"), R(URLSAFE, 20, 64)}},
	{"google-oauth-secret", {T("GOC"), T("SPX-"), R(URLSAFE, 28, 28)}},
	{"grafana-token", {T("gl"), T("sa_"), R(ALNUM, 32, 32), T("_"), R(HEX, 8, 8)}},
	{"heroku-key", {T("HR"), T("KU-"), R(URLSAFE, 60, 60)}},
	{"huggingface-token", {T("h"), T("f_"), R(UPPER LOWER, 34, 34)}},
	{"jwt",
		{T("ey"), T("J"), R(ALNUM, 20, 300), T(".eyJ"), R(URLSAFE, 30, 900), T("."),
			R(URLSAFE, 43, 690)}},
	{"mailgun-key", {T("ke"), T("y-"), R(HEX, 32, 32)}},
	{"npm-token", {T("np"), T("m_"), R(ALNUM, 36, 36)}},
	{"openssh-private-key",
		{T("-----BEGIN OPEN"), T("SSH PRIVATE"), T(" KEY-----\\nb3BlbnNzaC1rZXktdjE"),
			R(BASE64, 20, 20)}},
	{"pem-private-key",
		{T("-----BEGIN R"), T("SA PRIVATE"), T(" KEY-----\\nMIIE"), R(BASE64, 36, 36)}},
	{"pgp-private-key", {T("-----BEGIN P"), T("GP PRIVATE"), T(" KEY BLOCK-----")}},
	{"pypi-token", {T("py"), T("pi-AgEIcHlw"), T("aS5vcmc"), R(URLSAFE, 50, 400)}},
	{"sendgrid-key", {T("S"), T("G."), R(URLSAFE, 22, 22), T("."), R(URLSAFE, 43, 43)}},
	{"shopify-token", {T("shp"), T("at_"), R(HEX, 32, 32)}},
	{"slack-app-token",
		{T("xa"), T("pp-1-"), R(UPPER DIGIT, 8, 16), T("-"), R(DIGIT, 10, 16), T("-"),
			R(HEX, 32, 128)}},
	{"slack-token", {T("xo"), T("xb-"), R(ALNUM "-", 10, 250)}},
	{"slack-webhook", {T("https://hooks.sl"), T("ack.com/services/"), R(BASE64, 40, 90)}},
	{"stripe-key", {T("sk"), T("_live_"), R(ALNUM, 24, 128)}},
	{"telegram-bot-token", {R(DIGIT, 8, 10), T(":A"), T("A"), R(URLSAFE, 33, 33)}},
	{"twilio-auth-token", {T("TWILIO_AUTH"), T("_TOKEN="), R(HEX, 32, 32)}},
	{"vault-token", {T("hv"), T("s."), R(URLSAFE, 24, 200)}},
};

#undef T
#undef R

_Static_assert(sizeof(secrets) / sizeof(secrets[0]) == CORPUS_SECRET_COUNT, "one for each rule");

const char *corpus_secret_rule(uint32_t index)
{
	return secrets[index].rule;
}

uint32_t corpus_secret_make(uint32_t index, char *out_bytes)
{
	const struct secret *secret = &secrets[index];
	uint32_t length = 0;

	for (size_t i = 0; i < PARTS_MAX; i++) {
		const struct part *part = &secret->parts[i];

		if (part->text != NULL) {
			size_t size = strlen(part->text);

			memcpy(out_bytes + length, part->text, size);
			length += (uint32_t)size;
		} else if (part->alphabet != NULL) {
			uint32_t letters = (uint32_t)strlen(part->alphabet);

			for (uint32_t n = corpus_random_between(part->min, part->max); n > 0; n--) {
				out_bytes[length++] = part->alphabet[corpus_random_below(letters)];
			}
		}
	}
	return length;
}
