/* SPDX-License-Identifier: MIT */
/*
 * The table of examples. Each text is in two parts, so that no scanner takes
 * this file for a leak.
 *
 * Source: AWS IAM user guide (its keys end in EXAMPLE and EXAMPLEKEY); Stripe,
 * "API keys" (test mode); Azurite's storage account; GitHub, "Authorizing OAuth
 * apps"; Slack, "Sending messages using incoming webhooks"; jwt.io; CircleCI,
 * "New format for API access tokens"; Docker, "docker swarm join"; Hardhat's
 * first account; kubeadm's token in Kubernetes' documentation; NIP-19 of Nostr;
 * Paddle, "Authentication".
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
	{"circleci-token",
		"_8fb1e3510325f7f09361"
		"de22b9420346c53ca2cb",
		false},
	{"docker-swarm-token",
		"-49nj1cmql0jkz5s954yi3oex3nedyz0fb0xx14ie39trti4wxv"
		"-8vxv8rssmk743ojnwacrr2e7c",
		false},
	{"ethereum-private-key",
		"ac0974bec39a17e36ba4a6b4d238ff94"
		"4bacb478cbed5efcae784d7bf4f2ff80",
		false},
	{"github-token",
		"_16C7e42F292c6912E77"
		"10c838347Ae178B4a",
		false},
	{"jwt",
		".SflKxwRJSMeKKF2QT4fwp"
		"MeJf36POk6yJV_adQssw5c",
		false},
	{"kubeadm-bootstrap-token",
		" abcdef."
		"0123456789abcdef",
		false},
	{"nostr-secret-key",
		"nsec1vl029mgpspedva04g90vltkh6fvh"
		"240zqtv9k0t9af8935ke9laqsnlfe5",
		false},
	{"paddle-api-key",
		"_01gtgztp8f4kek3yd4g1wrksa3"
		"_q6TGTJyvoIz7LDtXT65bX7_AQO",
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
