/* SPDX-License-Identifier: MIT */
/*
 * Built-in rules: keys and tokens of clouds, hosts, networks and clusters.
 *
 * The key file of a Google service account is known by the id of its key, which
 * Google writes before the key itself; files of tests and documentation have
 * words there. In a file with its members in another order pem-private-key
 * finds the key.
 */
#include "tools/scan/builtin/families.h"

static const struct rule_builtin rules[] = {
	{"alibaba-access-key-id", "Alibaba Cloud access key id", "\\bLTAI[A-Za-z0-9]{12,20}\\b"},
	{"amazon-login-token", "Login with Amazon access or refresh token",
		"\\bAtz[ar]\\|[A-Za-z0-9_-]{100,1500}"},
	{"amazon-mws-token", "Amazon MWS authorization token", "\\bamzn\\.mws\\." RULE_UUID "\\b"},
	{"amazon-oauth-client-secret", "Login with Amazon client secret",
		"\\bamzn1\\.oa2-cs\\.v1\\.[a-f0-9]{64}\\b"},
	{"aws-access-key-id", "AWS access key id", "\\b(ABIA|ACCA|AKIA|ASIA)[A-Z2-7]{16}\\b"},
	{"aws-appsync-key", "AWS AppSync API key", "\\bda2-[a-z0-9]{26}\\b"},
	{"aws-bedrock-key", "AWS Bedrock API key, for long", "\\bABSK[A-Za-z0-9+/]{109,269}={0,2}"},
	{"aws-bedrock-session-key", "AWS Bedrock API key, for a session",
		"\\bbedrock-api-key-[A-Za-z0-9+/=_-]{60,1200}"},
	{"aws-secret-access-key", "AWS secret access key, with its name",
		"(aws_secret_access_key|AWS_SECRET_ACCESS_KEY|[sS]ecretAccessKey)"
		"['\"]?[[:blank:]]{0,8}[:=][=>]?[[:blank:]]{0,8}['\"]?"
		"([A-Za-z0-9/+]{39}[A-Za-z0-9]\\b|[A-Za-z0-9/+]{39}[/+]\\B)"},
	{"aws-session-token", "AWS session token of STS",
		"\\bIQoJb3JpZ2lu[A-Za-z0-9/+=]{180,1500}"},
	{"azure-client-secret", "Microsoft Entra client secret",
		"[A-Za-z0-9_~.-]{3}8Q~[A-Za-z0-9_~.-]{34}"},
	{"azure-devops-token", "Azure DevOps personal access token",
		"[A-Za-z0-9]{20}AZDO[A-Za-z0-9]{4}\\b"},
	{"azure-function-url", "Azure Functions URL with its key",
		"\\.azurewebsites\\.net/api/[A-Za-z0-9_/-]{1,100}"
		"\\?code=[A-Za-z0-9_/%=-]{40,90}"},
	{"azure-logic-app-url", "Azure Logic Apps URL with its signature",
		"/workflows/[a-f0-9]{32}/triggers/[A-Za-z0-9_-]{1,80}"
		"/paths/invoke\\?[A-Za-z0-9%&=._-]{10,200}&sig=[A-Za-z0-9_-]{43}"},
	{"azure-sas-url", "Azure storage URL with a signature",
		"\\.core\\.windows\\.net/[A-Za-z0-9$/_.-]{0,200}\\?[A-Za-z0-9%&=:;._-]{10,300}"
		"[?&]sig=[A-Za-z0-9%/+_-]{40,70}"},
	{"azure-shared-access-key", "Azure shared access key: Service Bus, Event Hubs, IoT Hub",
		"SharedAccessKey=[A-Za-z0-9+/]{43}="},
	{"azure-storage-key", "Azure storage account key", "AccountKey=[A-Za-z0-9/+]{86}=="},
	{"baidu-cloud-api-key", "Baidu Cloud API key",
		"\\bbce-v3/ALTAK-[A-Za-z0-9]{21}/[a-f0-9]{40}\\b"},
	{"cloudflare-api-token", "Cloudflare API token or global key",
		"\\bcf(k|at|ut)_[A-Za-z0-9_-]{40}[A-Za-z0-9]{4,16}\\b"},
	{"cloudflare-origin-ca-key", "Cloudflare origin CA key",
		"\\bv1\\.0-[a-f0-9]{24}-[a-f0-9]{146}\\b"},
	{"cloudflare-tunnel-token", "Cloudflare tunnel token",
		"\\beyJhIjoi[A-Za-z0-9+/=_-]{140,240}"},
	{"digitalocean-token", "DigitalOcean token", "\\bdo[opr]_v1_[a-f0-9]{64}\\b"},
	{"docker-swarm-token", "Docker Swarm join token",
		"\\bSWMTKN-1-[a-z0-9]{50}-[a-z0-9]{25}\\b"},
	{"fly-token", "Fly.io macaroon token", "\\bfm[12][ar]?_[A-Za-z0-9+/]{80,1500}={0,2}"},
	{"gcp-api-key", "Google API key", "\\bAIza[A-Za-z0-9_-]{35}"},
	{"gcp-hmac-key-id", "Google Cloud Storage HMAC key id", "\\bGOOG1[A-Z0-9]{56}\\b"},
	{"gcp-oauth-access-token", "Google OAuth access token", "\\bya29\\.[A-Za-z0-9_-]{60,1024}"},
	{"gcp-oauth-refresh-token", "Google OAuth refresh token", "\\b1//0[A-Za-z0-9_-]{60,250}"},
	{"gcp-service-account", "Google service account key file",
		"\"type\"[[:blank:]]{0,8}:[[:blank:]]{0,8}\"service_account\",[^{}]{0,200}"
		"\"private_key_id\"[[:blank:]]{0,8}:[[:blank:]]{0,8}\"[a-f0-9]{40}\""},
	{"google-oauth-secret", "Google OAuth client secret", "\\bGOCSPX-[A-Za-z0-9_-]{28}"},
	{"heroku-key", "Heroku API key", "\\bHRKU-[A-Za-z0-9_-]{60}"},
	{"kubeadm-bootstrap-token", "Kubernetes bootstrap token of kubeadm",
		"\\bkubeadm join [A-Za-z0-9_.:-]{3,100} --token [a-z0-9]{6}\\.[a-z0-9]{16}\\b"},
	{"netlify-token", "Netlify access token", "\\bnf[cbopu]_[A-Za-z0-9]{36}\\b"},
	{"openshift-token", "OpenShift OAuth access token", "\\bsha256~[A-Za-z0-9_-]{43}"},
	{"proxmox-api-token", "Proxmox VE API token",
		"\\bP[VB][ES]APIToken=[A-Za-z0-9_.-]{1,60}@[A-Za-z0-9_.-]{1,40}"
		"![A-Za-z0-9_.-]{1,60}[=:]" RULE_UUID "\\b"},
	{"rancher-api-token", "Rancher API token", "\\btoken-[a-z0-9]{5}:[a-z0-9]{54}\\b"},
	{"render-api-key", "Render API key", "\\brnd_[A-Za-z0-9]{28}\\b"},
	{"tailscale-key", "Tailscale key",
		"\\btskey-(api|auth|client|scim|webhook)-[A-Za-z0-9]{8,20}-[A-Za-z0-9]{20,48}"
		"\\b"},
	{"tencent-secret-id", "Tencent Cloud secret id", "\\bAKID[A-Za-z0-9]{32}\\b"},
	{"vercel-blob-token", "Vercel Blob read and write token",
		"\\bvercel_blob_rw_[A-Za-z0-9]{16}_[A-Za-z0-9]{30}\\b"},
	{"yandex-cloud-api-key", "Yandex Cloud API key", "\\bAQVN[A-Za-z0-9_-]{35,38}"},
};

const struct rule_family rules_cloud = {
	.name = "cloud",
	.title = "clouds, hosting and networks",
	.rules = rules,
	.count = sizeof(rules) / sizeof(rules[0]),
};
