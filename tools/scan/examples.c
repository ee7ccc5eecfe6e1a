/* SPDX-License-Identifier: MIT */
/*
 * The table of examples, and what gives placeholders away. Each text is in two
 * parts, so that no scanner takes this file for a leak.
 *
 * Source: AWS IAM user guide (its keys end in EXAMPLE and EXAMPLEKEY); Stripe,
 * "API keys" (test mode); Azurite's storage account; GitHub, "Authorizing OAuth
 * apps"; Slack, "Sending messages using incoming webhooks"; jwt.io, RFC 7519;
 * RFC 2606 and 6963, names for examples; OpenLDAP's guide and manual pages;
 * CircleCI, "New format for API access tokens"; Docker, "docker swarm join" and
 * its API; Hardhat's first account; web3.js; kubeadm's token in Kubernetes'
 * documentation; NIP-19 of Nostr; Paddle, "Authentication"; Square's API;
 * WordPress, wp_salt(); Zoho's tokens in templates of Zabbix; examples in
 * AWS' SDK and in Netlify's CLI.
 */
#include "tools/scan/examples.h"

#include "tools/scan/base64.h"

#include <string.h>

/* Where in the finding the text is. */
enum example_place {
	EXAMPLE_START,
	EXAMPLE_END,
	EXAMPLE_ANYWHERE,
};

struct example {
	const char *rule_id;
	enum example_place place;
	const char *text;
};

static const struct example examples[] = {
	{"aws-access-key-id", EXAMPLE_END,
		"EXAM"
		"PLE"},
	{"aws-secret-access-key", EXAMPLE_END,
		"EXAMP"
		"LEKEY"},
	{"azure-storage-key", EXAMPLE_END,
		"Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6"
		"IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="},
	{"circleci-token", EXAMPLE_END,
		"_8fb1e3510325f7f0936"
		"1de22b9420346c53ca2cb"},
	{"docker-swarm-token", EXAMPLE_END,
		"-49nj1cmql0jkz5s954yi3oex3nedyz0fb0xx1"
		"4ie39trti4wxv-8vxv8rssmk743ojnwacrr2e7c"},
	{"docker-swarm-token", EXAMPLE_END,
		"-3pu6hszjas19xyp7ghgosyx9k8atbfcr8p2is"
		"99znpy26u2lkl-1awxwuwd3z9j1z3puu7rcgdbx"},
	{"docker-swarm-token", EXAMPLE_END,
		"-3pu6hszjas19xyp7ghgosyx9k8atbfcr8p2is"
		"99znpy26u2lkl-7p73s1dx5in4tatdymyhg9hu2"},
	{"docker-swarm-token", EXAMPLE_END,
		"-1h8aps2yszaiqmz2l3oc5392pgk8e49qhx2aj"
		"3nyv0ui0hez2a-6qmn92w6bu3jdvnglku58u11a"},
	{"docker-swarm-token", EXAMPLE_END,
		"-1h8aps2yszaiqmz2l3oc5392pgk8e49qhx2aj"
		"3nyv0ui0hez2a-8llk83c4wm9lwioey2s316r9l"},
	{"ethereum-private-key", EXAMPLE_END,
		"ac0974bec39a17e36ba4a6b4d238ff94"
		"4bacb478cbed5efcae784d7bf4f2ff80"},
	{"ethereum-private-key", EXAMPLE_END,
		"348ce564d427a3311b6536bbcff9390d"
		"69395b06ed6c486954e971d960fe8709"},
	{"ethereum-private-key", EXAMPLE_END,
		"964ced1c69ad27a311c432fdc0d8211e"
		"987595f7eb34ab405a5f16bdc9563ec5"},
	{"ethereum-private-key", EXAMPLE_END,
		"6422c9d28efdcbee93c1d32a5fc6fd6f"
		"a081b985487885296cf8c9bbb5872600"},
	{"ethereum-private-key", EXAMPLE_END,
		"756530f13c0eb636ebdda655335f5dea"
		"9921e3362e2e588b0ad59e556f7751f0"},
	{"ethereum-private-key", EXAMPLE_END,
		"bce9b59981303e76c4878b1a6d7b088e"
		"c6b9dd5c966b7d5f54d7a749ff683387"},
	{"github-token", EXAMPLE_END,
		"_16C7e42F292c6912E"
		"7710c838347Ae178B4a"},
	{"jwt", EXAMPLE_ANYWHERE,
		".eyJmb28iO"
		"iJiYXIifQ."},
	{"jwt", EXAMPLE_ANYWHERE,
		".eyJpc3MiOiJqb2UiLA0KI"
		"CJleHAiOjEzMDA4MTkzODAs"},
	{"jwt", EXAMPLE_ANYWHERE,
		".eyJzdWIiOiIxMjM0NTY3ODkwI"
		"iwibmFtZSI6IkpvaG4gRG9lIiw"},
	{"jwt", EXAMPLE_END,
		"U2yfGuRqqtKX"
		"HrJYwQ8L9Ip0"},
	{"jwt", EXAMPLE_END,
		"p8gwTL5B7NlU"
		"dh_dmSviPWrw"},
	{"jwt", EXAMPLE_END,
		"tlakM0GNbMHv"
		"IM2_n0QD23jM"},
	{"jwt", EXAMPLE_END,
		"PjYj12k0Lrxl"
		"dvGnlvDu3GMI"},
	{"jwt", EXAMPLE_END,
		"vU4bM7q8tPil"
		"F0F03Wupap_c"},
	{"kubeadm-bootstrap-token", EXAMPLE_END,
		" abcdef.0123"
		"456789abcdef"},
	{"ldap-password-hash", EXAMPLE_END,
		"d0Q0626PSH9VUld7"
		"yWpR0k6BlpQmtczb"},
	{"ldap-password-hash", EXAMPLE_END,
		"DkMTwBl+a/3DQTxC"
		"YEApdUtNXGgdUac3"},
	{"ldap-password-hash", EXAMPLE_END,
		"XKYnrjvGT3wZFQrD"
		"D5040US592LxsdLy"},
	{"ldap-password-hash", EXAMPLE_END,
		"pSOV2TpCxj2NMACi"
		"jkcMko4fGrFopctU"},
	{"ldap-password-hash", EXAMPLE_END,
		"ZKKuqbEKJfKSXhUb"
		"HG3fG8MDn9j1v4QN"},
	{"nostr-secret-key", EXAMPLE_END,
		"nsec1vl029mgpspedva04g90vltkh6f"
		"vh240zqtv9k0t9af8935ke9laqsnlfe5"},
	{"paddle-api-key", EXAMPLE_END,
		"_01gtgztp8f4kek3yd4g1wrksa3"
		"_q6TGTJyvoIz7LDtXT65bX7_AQO"},
	{"slack-token", EXAMPLE_ANYWHERE,
		"-12"
		"34-"},
	{"slack-webhook", EXAMPLE_END,
		"/T00000000/B00000000/X"
		"XXXXXXXXXXXXXXXXXXXXXXX"},
	{"square-oauth-secret", EXAMPLE_END,
		"14Piza2BfTPBXyL"
		"afLPWSzY1qAjeBf"},
	{"stripe-key", EXAMPLE_START,
		"sk_t"
		"est_"},
	{"stripe-key", EXAMPLE_START,
		"rk_t"
		"est_"},
	{"wordpress-salt", EXAMPLE_END,
		"AF0U@N@< >M%"
		"G4Yt>f`z]MON'"},
	{"wordpress-salt", EXAMPLE_END,
		"CIU#uGEnfFz|"
		"f ;;eU%/U^O~'"},
	{"wordpress-salt", EXAMPLE_END,
		"i9G;ddp_<q}6"
		"H1)o|a +&JCM'"},
	{"wordpress-salt", EXAMPLE_END,
		"&NJZ)-iO>z7X"
		">QYR0Z_XnZ@|'"},
	{"wordpress-salt", EXAMPLE_END,
		"}(dh_r6EbI#A"
		",y|nU2{B#JBW'"},
	{"wordpress-salt", EXAMPLE_END,
		"JjPi)<Bmf1v,"
		"HpGe}T1:Xt7n'"},
	{"wordpress-salt", EXAMPLE_END,
		"(u`g~EJBf#8u"
		"#R{mUEZrozmm'"},
	{"wordpress-salt", EXAMPLE_END,
		"AycHcAV$+?@3"
		"q+rxV{%^VyKT'"},
	{"zoho-token", EXAMPLE_END,
		"9768e796b6273774"
		"817032613ba6892a"},
	{"zoho-token", EXAMPLE_END,
		"03518d2d1dab9c6c"
		"4cf74ae82b89defa"},
	{"zoho-token", EXAMPLE_END,
		"edce6130ca3832a1"
		"4e5f80d005a5324d"},
};
enum { EXAMPLE_COUNT = sizeof(examples) / sizeof(examples[0]) };

static const char *const placeholder_words[] = {"EXAMPLE", "example", "Example", "PLACEHOLDER",
	"placeholder", "CHANGEME", "changeme", "REDACTED", "redacted", "DUMMY", "dummy", "SAMPLE",
	"sample", "YOUR_", "your_", "YOUR-", "your-", "yourtoken", "YourToken", "fakekey",
	"faketoken", "notareal", "not-a-real"};
enum { WORD_COUNT = sizeof(placeholder_words) / sizeof(placeholder_words[0]) };

/* In the claims of tokens that documentation shows and libraries test with. */
static const char *const claim_words[] = {"\"foo\":", "\"John Doe\"", "\"1234567890\"",
	"urn:example:", "\"example.", "//example.", ".example.com", ".example.org", ".example.net",
	"@example."};
enum { CLAIM_WORD_COUNT = sizeof(claim_words) / sizeof(claim_words[0]) };

enum {
	/* Letters in a row: of a random text of 40, one in 10^7 has as many. */
	FILLER_RUN_MIN = 5,
	SAME_RUN_MIN = 12,
	RISING_RUN_MIN = 9,
	/* Longer texts may hold numbers with zeros in front. */
	SHORT_BYTES_MAX = 128,
	/* Of a token's claims, as its rule has them. */
	CLAIM_CHARS_MAX = 903,
};

static bool is_within(const uint8_t *bytes, size_t length, const char *text)
{
	return memmem(bytes, length, text, strlen(text)) != NULL;
}

static bool is_filler(uint8_t byte)
{
	return byte == 'x' || byte == 'X' || byte == '*' || byte == '.';
}

static bool is_digit_or_letter(uint8_t byte)
{
	return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
		(byte >= 'a' && byte <= 'z');
}

/* "xxxxx", "000000000000", "123456789" or "abcdefghi". */
static bool has_run(const uint8_t *bytes, size_t length)
{
	size_t same = 1;
	size_t rising = 1;

	for (size_t i = 1; i < length; i++) {
		bool is_word = is_digit_or_letter(bytes[i]) && is_digit_or_letter(bytes[i - 1]);

		same = bytes[i] == bytes[i - 1] ? same + 1 : 1;
		rising = is_word && bytes[i] == bytes[i - 1] + 1 ? rising + 1 : 1;
		if (rising >= RISING_RUN_MIN || (same >= FILLER_RUN_MIN && is_filler(bytes[i]))) {
			return true;
		}
		/* In base64 an `A` is a zero. */
		if (same >= SAME_RUN_MIN && is_word && bytes[i] != 'A' &&
			length <= SHORT_BYTES_MAX) {
			return true;
		}
	}
	return false;
}

static bool is_placeholder(const uint8_t *bytes, size_t length)
{
	if (has_run(bytes, length)) {
		return true;
	}
	/* Parts of a URL that are not the secret may be any words. */
	if (is_within(bytes, length, "/") && is_within(bytes, length, "?")) {
		return false;
	}
	for (int i = 0; i < WORD_COUNT; i++) {
		if (is_within(bytes, length, placeholder_words[i])) {
			return true;
		}
	}
	return false;
}

/* A JSON Web Token, whose claims are the second of its three parts. */
static bool has_example_claims(const uint8_t *token, size_t length)
{
	uint8_t claims[CLAIM_CHARS_MAX / 4 * 3 + 3];
	const uint8_t *first = memchr(token, '.', length);
	size_t start = first == NULL ? length : (size_t)(first - token) + 1;
	size_t end = base64_end(token, start, length);
	size_t claim_bytes;

	if (end - start > CLAIM_CHARS_MAX) {
		return false;
	}
	claim_bytes = base64_decode(token + start, end - start, claims);
	for (int i = 0; i < CLAIM_WORD_COUNT; i++) {
		if (is_within(claims, claim_bytes, claim_words[i])) {
			return true;
		}
	}
	return false;
}

static bool is_example(const struct example *example, const uint8_t *bytes, size_t length)
{
	size_t size = strlen(example->text);

	if (size > length) {
		return false;
	}
	switch (example->place) {
	case EXAMPLE_START:
		return memcmp(bytes, example->text, size) == 0;
	case EXAMPLE_END:
		return memcmp(bytes + (length - size), example->text, size) == 0;
	case EXAMPLE_ANYWHERE:
	default:
		return is_within(bytes, length, example->text);
	}
}

bool examples_include(const char *rule_id, const uint8_t *bytes, size_t length)
{
	for (int i = 0; i < EXAMPLE_COUNT; i++) {
		if (strcmp(examples[i].rule_id, rule_id) == 0 &&
			is_example(&examples[i], bytes, length)) {
			return true;
		}
	}
	if (strcmp(rule_id, "jwt") == 0 && has_example_claims(bytes, length)) {
		return true;
	}
	return is_placeholder(bytes, length);
}
