/* SPDX-License-Identifier: MIT */
/*
 * Built-in rules: keys of payment services, banks and shops.
 */
#include "tools/scan/builtin/families.h"

static const struct rule_builtin rules[] = {
	{"braintree-access-token", "Braintree access token",
		"\\baccess_token\\$(production|sandbox)\\$[a-z0-9]{16}\\$[a-f0-9]{32}\\b"},
	{"coinbase-cloud-key", "Coinbase Developer Platform key name",
		"organizations/" RULE_UUID "/apiKeys/" RULE_UUID "\\b"},
	{"duffel-token", "Duffel API token", "\\bduffel_(live|test)_[A-Za-z0-9_-]{43}"},
	{"easypost-api-key", "EasyPost API key", "\\bEZ[AT]K[A-Za-z0-9]{54}\\b"},
	{"flutterwave-secret-key", "Flutterwave secret key",
		"\\bFLWSECK(_TEST)?-[A-Za-z0-9]{12,40}-X\\b"},
	{"mercury-token", "Secret with the scheme of RFC 8959, as Mercury and others issue them",
		"\\bsecret-token:[A-Za-z0-9._~%-]{20,250}"},
	{"paddle-api-key", "Paddle API key",
		"\\bpdl_(live|sdbx)_apikey_[a-z0-9]{26}_[A-Za-z0-9]{22}_[A-Za-z0-9]{3}\\b"},
	{"plaid-access-token", "Plaid access token",
		"\\baccess-(development|production|sandbox)-" RULE_UUID "\\b"},
	{"razorpay-key-id", "Razorpay key id", "\\brzp_(live|test)_[A-Za-z0-9]{14}\\b"},
	{"shippo-api-token", "Shippo API token", "\\bshippo_(live|test)_[a-f0-9]{40}\\b"},
	{"shopify-token", "Shopify access token or shared secret",
		"\\bshp(at|ca|pa|ss)_[a-f0-9]{32}\\b"},
	{"square-access-token", "Square access token", "\\bsq0atp-[A-Za-z0-9_-]{22}"},
	{"square-oauth-secret", "Square OAuth secret", "\\bsq0csp-[A-Za-z0-9_-]{43}"},
	{"square-production-token", "Square production access token",
		"\\bEAAA[A-Za-z0-9_-]{60}\\b"},
	{"stripe-key", "Stripe secret or restricted key",
		"\\b[rs]k_(live|test)_[A-Za-z0-9]{24,128}\\b"},
	{"webhook-signing-secret", "Signing secret of webhooks: Stripe, Standard Webhooks",
		"\\bwhsec_[A-Za-z0-9+/]{32,90}={0,2}"},
};

const struct rule_family rules_pay = {
	.name = "pay",
	.title = "payments and commerce",
	.rules = rules,
	.count = sizeof(rules) / sizeof(rules[0]),
};
