/* SPDX-License-Identifier: MIT */
/*
 * The table of examples. Each text is in two parts, so that no scanner takes
 * this file for a leak.
 *
 * Source: AWS IAM user guide (its keys end in EXAMPLE and EXAMPLEKEY); Stripe,
 * "API keys" (test mode); Azurite's storage account; GitHub, "Authorizing OAuth
 * apps"; Slack, "Sending messages using incoming webhooks"; jwt.io.
 */
#include "tools/scan/examples.h"

#include <string.h>

struct example {
	const char *rule_id;
	const char *text;
	bool is_prefix; /* else the finding ends in it */
};

static const struct example examples[] = {
	{"aws-access-key-id",
		"EXAM"
		"PLE",
		false},
	{"aws-secret-access-key",
		"EXAM"
		"PLEKEY",
		false},
	{"azure-storage-key",
		"Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2U"
		"VErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
		false},
	{"github-token",
		"_16C7e42F292c6912E77"
		"10c838347Ae178B4a",
		false},
	{"jwt",
		".SflKxwRJSMeKKF2QT4fwp"
		"MeJf36POk6yJV_adQssw5c",
		false},
	{"slack-webhook",
		"/T00000000/B00000000/"
		"XXXXXXXXXXXXXXXXXXXXXXXX",
		false},
	{"stripe-key",
		"sk_"
		"test_",
		true},
	{"stripe-key",
		"rk_"
		"test_",
		true},
};
enum { EXAMPLE_COUNT = sizeof(examples) / sizeof(examples[0]) };

bool examples_exist(const char *rule_id)
{
	for (int i = 0; i < EXAMPLE_COUNT; i++) {
		if (strcmp(examples[i].rule_id, rule_id) == 0) {
			return true;
		}
	}
	return false;
}

bool examples_include(const char *rule_id, const uint8_t *bytes, size_t length)
{
	for (int i = 0; i < EXAMPLE_COUNT; i++) {
		const struct example *example = &examples[i];
		size_t size = strlen(example->text);
		const uint8_t *place = bytes;

		if (size > length || strcmp(example->rule_id, rule_id) != 0) {
			continue;
		}
		place += example->is_prefix ? 0 : length - size;
		if (memcmp(place, example->text, size) == 0) {
			return true;
		}
	}
	return false;
}
