/* SPDX-License-Identifier: MIT */
/*
 * Built-in rules: keys of services that observe programs, keep secrets or know
 * users.
 */
#include "tools/scan/builtin/families.h"

static const struct rule_builtin rules[] = {
	{"axiom-token", "Axiom API or personal token", "\\bxa[ap]t-" RULE_UUID "\\b"},
	{"doppler-token", "Doppler token: personal, service, CLI, service account, SCIM, audit",
		"\\bdp\\.(audit|ct|pt|sa|said|scim|st)\\.([a-z0-9_-]{2,35}\\.)?[A-Za-z0-9]{40,44}"
		"\\b"},
	{"dynatrace-token", "Dynatrace API token",
		"\\bdt0[cs][0-9]{2}\\.[A-Z0-9]{24}\\.[A-Z0-9]{64}\\b"},
	{"grafana-api-key", "Grafana API key of older releases",
		"\\beyJrIjoi[A-Za-z0-9+/]{60,200}={0,2}"},
	{"grafana-cloud-token", "Grafana Cloud access policy token",
		"\\bglc_eyJ[A-Za-z0-9+/]{60,400}={0,2}"},
	{"grafana-token", "Grafana service account token",
		"\\bglsa_[A-Za-z0-9]{32}_[a-f0-9]{8}\\b"},
	{"honeycomb-key", "Honeycomb ingest or management key", "\\bhca[im]k_[a-z0-9]{58}\\b"},
	{"launchdarkly-key", "LaunchDarkly SDK key or access token",
		"\\b(api|sdk)-[a-f0-9]{8}-[a-f0-9]{4}-4[a-f0-9]{3}-[a-f0-9]{4}-[a-f0-9]{12}\\b"},
	{"new-relic-browser-key", "New Relic browser key", "\\bNRJS-[a-f0-9]{19}\\b"},
	{"new-relic-insert-key", "New Relic Insights key", "\\bNRI[IQ]-[A-Za-z0-9_-]{32}"},
	{"new-relic-license-key", "New Relic license key",
		"\\b(eu01xx|us01xx)?[a-f0-9]{30,36}NRAL\\b"},
	{"new-relic-user-key", "New Relic user API key", "\\bNRAK-[A-Z0-9]{27}\\b"},
	{"okta-api-token", "Okta API token in a header", "\\bSSWS 00[A-Za-z0-9_-]{40}"},
	{"onepassword-service-account-token", "1Password service account token",
		"\\bops_eyJ[A-Za-z0-9+/_-]{250,1200}={0,2}"},
	{"ory-token", "Ory token: personal, project, access, refresh",
		"\\bory_(ac|apikey|at|pat|rt|st|wak)_[A-Za-z0-9_-]{32,90}(\\.[A-Za-z0-9_-]{43}"
		")?"},
	{"posthog-personal-key", "PostHog personal API key", "\\bphx_[A-Za-z0-9]{40,52}\\b"},
	{"segment-public-api-token", "Segment public API token", "\\bsgp_[A-Za-z0-9]{64}\\b"},
	{"sentry-organization-token", "Sentry organization token",
		"\\bsntrys_eyJ[A-Za-z0-9+/=_-]{60,500}_[A-Za-z0-9+/]{43}"},
	{"sentry-user-token", "Sentry user token", "\\bsntryu_[a-f0-9]{64}\\b"},
	{"stytch-secret", "Stytch project secret", "\\bsecret-(live|test)-[A-Za-z0-9_=-]{36,64}"},
	{"vault-token", "HashiCorp Vault token", "\\bhv[brs]\\.[A-Za-z0-9_-]{24,300}"},
};

const struct rule_family rules_watch = {
	.name = "watch",
	.title = "observability and security services",
	.rules = rules,
	.count = sizeof(rules) / sizeof(rules[0]),
};
