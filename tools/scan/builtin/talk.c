/* SPDX-License-Identifier: MIT */
/*
 * Built-in rules: tokens and webhooks of chat, mail, telephony and social
 * networks. Such a webhook is a secret: its URL is all that a post takes.
 */
#include "tools/scan/builtin/families.h"

static const struct rule_builtin rules[] = {
	{"brevo-api-key", "Brevo API or SMTP key",
		"\\bx(key|smtp)sib-[a-f0-9]{64}-[A-Za-z0-9]{16}\\b"},
	{"dingtalk-webhook", "DingTalk robot webhook",
		"https://oapi\\.dingtalk\\.com/robot/send\\?access_token=[a-f0-9]{64}\\b"},
	{"discord-webhook", "Discord webhook",
		"https://(canary\\.|ptb\\.)?discord(app)?\\.com/api/webhooks/[0-9]{17,20}"
		"/[A-Za-z0-9_-]{60,80}"},
	{"fcm-server-key", "Firebase Cloud Messaging server key",
		"\\bAAAA[A-Za-z0-9_-]{7}:APA91b[A-Za-z0-9_-]{134}"},
	{"feishu-webhook", "Feishu or Lark bot webhook",
		"https://open\\.(feishu\\.cn|larksuite\\.com)/open-apis/bot/v2/hook/" RULE_UUID
		"\\b"},
	{"google-chat-webhook", "Google Chat webhook",
		"https://chat\\.googleapis\\.com/v1/spaces/[A-Za-z0-9_-]{8,16}"
		"/messages\\?key=[A-Za-z0-9_-]{39}&token=[A-Za-z0-9_%-]{40,60}"},
	{"ifttt-webhook", "IFTTT webhook key",
		"https://maker\\.ifttt\\.com/(trigger/[A-Za-z0-9_-]{1,60}(/json)?/with|use)"
		"(/key)?/[A-Za-z0-9_-]{21,43}\\b"},
	{"mailchimp-key", "Mailchimp API key", "\\b[a-f0-9]{32}-us[0-9]{1,2}\\b"},
	{"mailersend-token", "MailerSend API token", "\\bmlsn\\.[a-f0-9]{64}\\b"},
	{"mailgun-key", "Mailgun API key", "\\bkey-[a-f0-9]{32}\\b"},
	{"make-webhook", "Make webhook",
		"https://hook\\.(eu|us)[0-9]\\.make\\.(celonis\\.)?com/[a-z0-9]{32}\\b"},
	{"matrix-access-token", "Matrix access token of Synapse",
		"\\bsyt_[A-Za-z0-9_=-]{4,340}_[A-Za-z]{20}_[A-Za-z0-9]{6}\\b"},
	{"onesignal-api-key", "OneSignal API key", "\\bos_v2_(app|org)_[a-z2-7]{103}\\b"},
	{"pubnub-secret-key", "PubNub secret key", "\\bsec-c-[A-Za-z0-9+/]{48}"},
	{"roblox-cookie", "Roblox session cookie", "-items\\.\\|_[A-F0-9]{100,1600}\\b"},
	{"sendgrid-key", "SendGrid API key", "\\bSG\\.[A-Za-z0-9_-]{22}\\.[A-Za-z0-9_-]{43}"},
	{"slack-app-token", "Slack app-level token",
		"\\bxapp-[0-9]-[A-Z0-9]{8,16}-[0-9]{10,16}-[a-f0-9]{32,128}\\b"},
	{"slack-session-token", "Slack session token of a browser",
		"\\bxox[cd]-[A-Za-z0-9%-]{60,300}"},
	{"slack-token", "Slack token: bot, user, legacy, refresh",
		"\\b(xoxa|xoxb|xoxe|xoxo|xoxp|xoxr|xoxs)-[A-Za-z0-9-]{10,250}"},
	{"slack-webhook", "Slack webhook",
		"https://hooks\\.slack\\.com/(services|triggers|workflows)"
		"/[A-Za-z0-9/_+-]{40,90}"},
	{"slack-workflow-token", "Slack workflow token", "\\bxwfp-[A-Za-z0-9-]{20,250}"},
	{"teams-webhook", "Microsoft Teams webhook",
		"https://[a-z0-9-]{1,60}\\.webhook\\.office\\.com/webhookb2/[a-f0-9]{8}"
		"-[a-f0-9-]{27}@[a-f0-9]{8}-[a-f0-9-]{27}/IncomingWebhook/[a-f0-9]{32}"
		"/[a-f0-9]{8}-[a-f0-9-]{27}"},
	{"telegram-bot-token", "Telegram bot token", "\\b[0-9]{7,9}[0-9]:AA[A-Za-z0-9_-]{33}"},
	{"twilio-auth-token", "Twilio auth token, with its name",
		"(TWILIO_AUTH_TOKEN|twilio_auth_token|twilioAuthToken)['\"]?[[:blank:]]{0,8}"
		"[:=][=>]?[[:blank:]]{0,8}['\"]?[a-f0-9]{32}\\b"},
	{"vk-access-token", "VK access token", "\\bvk1\\.a\\.[A-Za-z0-9_-]{160,260}"},
	{"wecom-webhook", "WeCom robot webhook",
		"https://qyapi\\.weixin\\.qq\\.com/cgi-bin/webhook/send\\?key=" RULE_UUID "\\b"},
	{"zapier-webhook", "Zapier webhook",
		"https://hooks\\.zapier\\.com/hooks/catch/[0-9]{4,10}/[a-z0-9]{6,12}\\b"},
};

const struct rule_family rules_talk = {
	.name = "talk",
	.title = "messages, mail and social networks",
	.rules = rules,
	.count = sizeof(rules) / sizeof(rules[0]),
};
