/* SPDX-License-Identifier: MIT */
/*
 * Built-in rules: private keys, hashes of passwords, and files that hold them,
 * of no issuer in particular. PEM headers are written so that they do not match
 * themselves.
 *
 * A key in PEM is its header and the start of its body, so that a header that
 * code writes, or that a placeholder follows, is none, and another key in the
 * same file has another fingerprint. In base64 a DER sequence begins with `M`
 * and one of `C` to `I`, OpenSSH's format with its name. Between header and
 * body is what ends a line in a file or in a string of some language; within a
 * string of JSON a slash may have a backslash before it.
 */
#include "tools/scan/builtin/families.h"

static const struct rule_builtin rules[] = {
	{"age-secret-key", "age secret key",
		"\\bAGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}\\b"},
	{"bind-tsig-key", "Key of BIND: rndc, TSIG",
		"\\bsecret[[:blank:]]{1,8}\"[A-Za-z0-9+/]{22,86}={0,2}\";"},
	{"bip32-private-key", "Extended private key of BIP 32, such as of a Bitcoin wallet",
		"\\b[tuvxyz]prv[1-9A-HJ-NP-Za-km-z]{107}\\b"},
	{"cisco-password", "Cisco password of type 7, which is no more than obscured",
		"\\bpassword 7 [0-9A-F]{8,60}\\b"},
	{"django-secret-key", "Django secret key as startproject writes it",
		"django-insecure-[a-z0-9!@#$%^&*(_=+)-]{50}"},
	{"dotnet-machine-key", "Machine key of ASP.NET",
		"(decryption|validation)Key=\"[A-F0-9]{40,128}\""},
	{"dotnet-rsa-key", "Private RSA key of .NET in XML",
		"<InverseQ>[A-Za-z0-9+/]{40,700}={0,2}</InverseQ>"},
	{"ethereum-private-key", "Ethereum private key, with its name",
		"(private_key|privateKey|PRIVATE_KEY)['\"]?[[:blank:]]{0,8}[:=][[:blank:]]{0,8}"
		"['\"]?0x[a-fA-F0-9]{64}\\b"},
	{"fernet-key", "Fernet key, with its name, such as of Airflow",
		"(fernet_key|FERNET_KEY)['\"]?[[:blank:]]{0,8}[:=][[:blank:]]{0,8}"
		"['\"]?[A-Za-z0-9_-]{43}="},
	{"juniper-secret", "Junos secret of type 9, which is no more than obscured",
		"\"\\$9\\$[A-Za-z0-9./-]{8,120}\""},
	{"jwk-private-key", "Private RSA key as a JSON Web Key",
		"\"d[pq]\"[[:blank:]]{0,4}:[[:blank:]]{0,4}\"[A-Za-z0-9_-]{80,700}\""},
	{"jwt", "JSON Web Token",
		"\\beyJ[A-Za-z0-9_-]{10,300}\\.eyJ[A-Za-z0-9_-]{10,900}\\.[A-Za-z0-9_-]{20,690}"},
	{"kubernetes-secret-key-data", "Private key of a kubeconfig, in base64",
		"client-key-data:[[:blank:]]{0,8}LS0tLS1CRUdJTi[A-Za-z0-9+/]{100,5000}={0,2}"},
	{"laravel-app-key", "Laravel application key", "APP_KEY=base64:[A-Za-z0-9+/]{43}="},
	{"ldap-password-hash", "Hash of a password of an LDAP directory",
		"\\{SSHA(256|384|512)?\\}[A-Za-z0-9+/]{32,200}={0,2}"},
	{"lnd-macaroon", "LND macaroon, in hexadecimal", "\\b0201036c6e64[a-f0-9]{180,1200}\\b"},
	{"nebula-private-key", "Private key of a Nebula node or authority",
		"-{5}BEGIN NEBULA [A-Z0-9]{2,12} (ENCRYPTED )?PRIVATE KEY-{5}"},
	{"nostr-secret-key", "Nostr secret key",
		"\\bnsec1[qpzry9x8gf2tvdw0s3jn54khce6mua7l]{58}\\b"},
	{"openssh-private-key", "OpenSSH private key",
		"-{5}BEGIN OPENSSH PRIVATE KEY-{5}(\\r?\\n--? {0,2}|[^-]{0,48})"
		"b3BlbnNzaC1rZXktdjE[A-Za-z0-9+/\\\\]{20}"},
	{"openvpn-static-key", "OpenVPN static or tls-crypt key",
		"-{5}BEGIN OpenVPN (Static key V1|tls-crypt-v2 (client|server) key)-{5}"},
	{"pem-private-key", "Private key in PEM",
		"-{5}BEGIN (RSA |DSA |EC |ENCRYPTED )?PRIVATE KEY-{5}"
		"((\\r?\\n--? {0,2}|[^-M]{0,48})M[C-I][A-Za-z0-9+/\\\\]{38}|"
		"(\\r?\\n--? {0,2}|[^-M]{0,48})Proc-Type: 4,ENCRYPTED"
		"(\\r?\\n--? {0,2}|[^,-]{1,48})DEK-Info: [A-Z0-9-]{6,20},"
		"[A-Fa-f0-9]{16})"},
	{"pem-private-key-in-base64", "Private key in PEM, in base64 once more",
		"\\bLS0tLS1CRUdJTi(BQUklWQVRF|BSU0EgUFJJVkFUR|BFQyBQUklWQVRF|"
		"BPUEVOU1NIIFBSSVZBVE|BFTkNSWVBURUQgUFJJVkFUR)[A-Za-z0-9+/]{20,5000}={0,2}"},
	{"pgp-private-key", "OpenPGP private key",
		"-{5}BEGIN PGP PRIVATE KEY BLOCK-{5}([[:blank:]\rM]|\\\\[nr]|$)"},
	{"putty-private-key", "PuTTY private key",
		"PuTTY-User-Key-File-[123]: (ecdsa|ssh)-[a-z0-9-]{3,24}"
		"([[:blank:]\r]|(\\\\r)?\\\\nEncryption|$)"},
	{"rails-master-key", "Rails master key",
		"RAILS_MASTER_KEY['\"]?[[:blank:]]{0,8}[:=][[:blank:]]{0,8}['\"]?[a-f0-9]{32}"
		"\\b"},
	{"rails-secret-key-base", "Rails secret key",
		"(secret_key_base|SECRET_KEY_BASE)['\"]?[[:blank:]]{0,8}(:|=|=>)[[:blank:]]{0,8}"
		"['\"]?[a-f0-9]{128}\\b"},
	{"signify-secret-key", "Secret key of signify or minisign",
		"\\bRWR(CSwAAA|TY0Iy)[A-Za-z0-9+/]{120,210}={0,2}"},
	{"symfony-app-secret", "Symfony application secret", "\\bAPP_SECRET=['\"]?[a-f0-9]{32}\\b"},
	{"wireguard-private-key", "WireGuard private key",
		"\\bPrivateKey[[:blank:]]{0,8}=[[:blank:]]{0,8}[A-Za-z0-9+/]{42}"
		"[AEIMQUYcgkosw048]="},
	{"wordpress-salt", "WordPress authentication key or salt",
		"define\\([[:blank:]]{0,4}['\"](AUTH|LOGGED_IN|NONCE|SECURE_AUTH)_(KEY|SALT)"
		"['\"],[[:blank:]]{0,12}['\"][^'\"]{64}['\"]"},
};

const struct rule_family rules_keys = {
	.name = "keys",
	.title = "keys and files that hold them",
	.rules = rules,
	.count = sizeof(rules) / sizeof(rules[0]),
};
