/* SPDX-License-Identifier: MIT */
/*
 * Built-in rules: keys of services for language models and other learned ones,
 * and of the tools around them.
 */
#include "tools/scan/builtin/families.h"

static const struct rule_builtin rules[] = {
	{"anthropic-api-key", "Anthropic API key, or admin key",
		"\\bsk-ant-(api|admin)[0-9]{2}-[A-Za-z0-9_-]{80,120}"},
	{"anthropic-oauth-token", "Anthropic OAuth token, of command-line clients",
		"\\bsk-ant-o[ar]t[0-9]{2}-[A-Za-z0-9_-]{80,120}"},
	{"apify-token", "Apify API token", "\\bapify_api_[A-Za-z0-9]{36}\\b"},
	{"databricks-token", "Databricks personal access token",
		"\\bdapi[a-f0-9]{32}(-[0-9]{1,2})?\\b"},
	{"groq-api-key", "Groq API key", "\\bgsk_[A-Za-z0-9]{52}\\b"},
	{"huggingface-organization-token", "Hugging Face organization token",
		"\\bapi_org_[A-Za-z]{34}\\b"},
	{"huggingface-token", "Hugging Face access token", "\\bhf_[A-Za-z]{34}\\b"},
	{"langfuse-secret-key", "Langfuse secret key", "\\bsk-lf-" RULE_UUID "\\b"},
	{"langsmith-api-key", "LangSmith personal or service key",
		"\\blsv2_[ps][tk]_[a-f0-9]{32}_[a-f0-9]{10}\\b"},
	{"llamacloud-api-key", "LlamaCloud API key", "\\bllx-[A-Za-z0-9]{48}\\b"},
	{"nvidia-api-key", "NVIDIA NGC or NIM API key", "\\bnvapi-[A-Za-z0-9_-]{64}"},
	{"openai-api-key", "OpenAI API key of a user",
		"\\bsk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}\\b"},
	{"openai-project-key", "OpenAI key of a project, a service account or an administrator",
		"\\bsk-(admin|proj|svcacct)-[A-Za-z0-9_-]{20,100}T3BlbkFJ[A-Za-z0-9_-]{20,100}"},
	{"openrouter-api-key", "OpenRouter API key", "\\bsk-or-v1-[a-f0-9]{64}\\b"},
	{"perplexity-api-key", "Perplexity API key", "\\bpplx-[A-Za-z0-9]{48}\\b"},
	{"pinecone-api-key", "Pinecone API key", "\\bpcsk_[A-Za-z0-9]{4,8}_[A-Za-z0-9]{58,66}\\b"},
	{"replicate-api-token", "Replicate API token", "\\br8_[A-Za-z0-9]{37}\\b"},
	{"xai-api-key", "xAI API key", "\\bxai-[A-Za-z0-9]{80}\\b"},
};

const struct rule_family rules_ai = {
	.name = "ai",
	.title = "AI and machine learning",
	.rules = rules,
	.count = sizeof(rules) / sizeof(rules[0]),
};
