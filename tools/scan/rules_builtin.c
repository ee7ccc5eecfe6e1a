/* SPDX-License-Identifier: MIT */
/*
 * The built-in rules: credentials whose shape gives them away.
 *
 * Each pattern
 *  1. is written in what PCRE and GNU's extended expressions have in common,
 *     so that --print-patterns feeds `grep -E -f`;
 *  2. is bounded, so that windows of a file can be searched in parallel with a
 *     finite overlap (the widest, a JWT, is under 2000 bytes);
 *  3. holds a literal that is rare in ordinary text, at least three bytes next
 *     to each other: the matcher looks for those and for nothing else most of
 *     the time;
 *  4. does not match itself, so that this file can be scanned in peace.
 *
 * Issuers publish most of these shapes for secret scanning; where one is only
 * known by example the pattern says no more than the prefix and the alphabet.
 */
#include "tools/scan/rules.h"

#include <stddef.h>

/* `\b` in front keeps a prefix from being found in the middle of a word. */
static const struct rule_builtin builtins[] = {
	{"aws-access-key-id", "\\bA(KI|SI|BI|CC)A[A-Z2-7]{16}\\b"},
	{"aws-secret-access-key",
		"(aws_secret_access_key|AWS_SECRET_ACCESS_KEY|[sS]ecretAccessKey)"
		"['\"]?[[:blank:]]{0,8}[:=][=>]?[[:blank:]]{0,8}['\"]?[A-Za-z0-9/+]{40}"},
	{"azure-client-secret", "[A-Za-z0-9_~.-]{3}8Q~[A-Za-z0-9_~.-]{34}"},
	{"azure-storage-key", "AccountKey=[A-Za-z0-9/+]{86}=="},
	{"digitalocean-token", "\\bdo[opr]_v1_[a-f0-9]{64}\\b"},
	{"discord-webhook",
		"https://(canary\\.|ptb\\.)?discord(app)?\\.com/api/webhooks/"
		"[0-9]{17,20}/[A-Za-z0-9_-]{60,80}"},
	{"docker-token", "\\bdckr_[op]at_[A-Za-z0-9_-]{27,32}"},
	{"gcp-api-key", "\\bAIza[A-Za-z0-9_-]{35}"},
	{"gcp-service-account", "\"type\"[[:blank:]]{0,8}:[[:blank:]]{0,8}\"service_account\""},
	{"github-fine-grained-token", "\\bgithub_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}\\b"},
	{"github-token", "\\bgh[oprsu]_[A-Za-z0-9]{36,251}\\b"},
	{"gitlab-token", "\\bgl(dt|pat|ptt|rt|soat)-[A-Za-z0-9_-]{20,64}"},
	{"google-oauth-secret", "\\bGOCSPX-[A-Za-z0-9_-]{28}"},
	{"grafana-token", "\\bglsa_[A-Za-z0-9]{32}_[a-f0-9]{8}\\b"},
	{"heroku-key", "\\bHRKU-[A-Za-z0-9_-]{60}"},
	{"huggingface-token", "\\bhf_[A-Za-z]{34}\\b"},
	{"jwt", "\\beyJ[A-Za-z0-9_-]{10,300}\\.eyJ[A-Za-z0-9_-]{10,900}\\.[A-Za-z0-9_-]{20,690}"},
	{"mailgun-key", "\\bkey-[a-f0-9]{32}\\b"},
	{"npm-token", "\\bnpm_[A-Za-z0-9]{36}\\b"},
	{"openssh-private-key", "-{5}BEGIN OPENSSH PRIVATE KEY-{5}"},
	{"pem-private-key", "-{5}BEGIN (RSA |DSA |EC |ENCRYPTED )?PRIVATE KEY-{5}"},
	{"pgp-private-key", "-{5}BEGIN PGP PRIVATE KEY BLOCK-{5}"},
	{"pypi-token", "\\bpypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,400}"},
	{"sendgrid-key", "\\bSG\\.[A-Za-z0-9_-]{22}\\.[A-Za-z0-9_-]{43}"},
	{"shopify-token", "\\bshp(at|ca|pa|ss)_[a-f0-9]{32}\\b"},
	{"slack-app-token", "\\bxapp-[0-9]-[A-Z0-9]{8,16}-[0-9]{10,16}-[a-f0-9]{32,128}\\b"},
	{"slack-token", "\\bxox[abeoprs]-[A-Za-z0-9-]{10,250}"},
	{"slack-webhook",
		"https://hooks\\.slack\\.com/(services|triggers|workflows)/[A-Za-z0-9/_+-]{40,90}"},
	{"stripe-key", "\\b[rs]k_(live|test)_[A-Za-z0-9]{24,128}\\b"},
	{"telegram-bot-token", "\\b[0-9]{8,10}:AA[A-Za-z0-9_-]{33}"},
	{"twilio-key", "\\bSK[a-f0-9]{32}\\b"},
	{"vault-token", "\\bhv[bs]\\.[A-Za-z0-9_-]{24,200}"},
};

const struct rule_builtin *rules_builtin(uint32_t *out_count)
{
	*out_count = (uint32_t)(sizeof(builtins) / sizeof(builtins[0]));
	return builtins;
}
