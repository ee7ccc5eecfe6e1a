/* SPDX-License-Identifier: MIT */
/*
 * Built-in rules: tokens of services for offices, design, documents, maps and
 * data.
 */
#include "tools/scan/builtin/families.h"

static const struct rule_builtin rules[] = {
	{"adafruit-io-key", "Adafruit IO key", "\\baio_[A-Za-z]{4}[0-9]{2}[A-Za-z0-9]{22}\\b"},
	{"adobe-client-secret", "Adobe client secret", "\\bp8e-[A-Za-z0-9_-]{32}"},
	{"cal-com-api-key", "Cal.com API key", "\\bcal_(live_|test_)?[a-f0-9]{32}\\b"},
	{"cloudinary-url", "Cloudinary URL with its secret",
		"cloudinary://[0-9]{12,16}:[A-Za-z0-9_-]{27}@[a-z0-9_-]{2,60}"},
	{"contentful-token", "Contentful personal access token", "\\bCFPAT-[A-Za-z0-9_-]{43}"},
	{"deepl-auth-key", "DeepL API key in a header", "DeepL-Auth-Key " RULE_UUID "(:fx)?"},
	{"dropbox-token", "Dropbox short-lived access token",
		"\\bsl\\.u\\.[A-Za-z0-9_-]{130,1300}"},
	{"figma-token", "Figma personal access token", "\\bfig[dor]_[A-Za-z0-9_-]{40,64}"},
	{"frameio-token", "Frame.io developer token", "\\bfio-u-[A-Za-z0-9_-]{64}"},
	{"hubspot-private-app-token", "HubSpot private app token",
		"\\bpat-(eu1|na[12])-" RULE_UUID "\\b"},
	{"linear-api-key", "Linear API key or OAuth token",
		"\\blin_(api|oauth)_[A-Za-z0-9]{40,64}\\b"},
	{"mapbox-secret-token", "Mapbox secret token",
		"\\bsk\\.eyJ[A-Za-z0-9_-]{60,120}\\.[A-Za-z0-9_-]{22}\\b"},
	{"maxmind-license-key", "MaxMind license key", "\\b[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk\\b"},
	{"mongodb-atlas-secret", "MongoDB Atlas service account secret",
		"\\bmdb_sa_sk_[A-Za-z0-9_-]{30,60}"},
	{"notion-token", "Notion integration token", "\\bntn_[0-9]{11}[A-Za-z0-9]{35}\\b"},
	{"planetscale-token", "PlanetScale service token, password or OAuth token",
		"\\bpscale_(oauth|pw|tkn)_[A-Za-z0-9=._-]{32,64}"},
	{"readme-api-key", "ReadMe API key", "\\brdme_[a-z0-9]{70}\\b"},
	{"samsara-api-token", "Samsara API token", "\\bsamsara_api_[A-Za-z0-9]{30}\\b"},
	{"supabase-secret-key", "Supabase secret API key", "\\bsb_secret_[A-Za-z0-9_-]{31}\\b"},
	{"supabase-token", "Supabase access token", "\\bsbp_(v0_)?[a-f0-9]{40}\\b"},
	{"things-stack-api-key", "The Things Stack API key",
		"\\bNNSXS\\.[A-Z0-9]{39}\\.[A-Z0-9]{52}\\b"},
	{"typeform-token", "Typeform personal access token",
		"\\btfp_[A-Za-z0-9_-]{44}_[A-Za-z0-9_-]{14}\\b"},
	{"wakatime-api-key", "WakaTime API key", "\\bwaka_" RULE_UUID "\\b"},
	{"zoho-token", "Zoho OAuth token", "\\b1000\\.[a-f0-9]{32}\\.[a-f0-9]{32}\\b"},
};

const struct rule_family rules_work = {
	.name = "work",
	.title = "office, design and data services",
	.rules = rules,
	.count = sizeof(rules) / sizeof(rules[0]),
};
