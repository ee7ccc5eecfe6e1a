/* SPDX-License-Identifier: MIT */
/*
 * Built-in rules: tokens of code hosts, package registries, builds and the
 * tools that deploy.
 */
#include "tools/scan/builtin/families.h"

static const struct rule_builtin rules[] = {
	{"artifactory-api-key", "JFrog Artifactory API key", "\\bAKCp[A-Za-z0-9]{69}\\b"},
	{"artifactory-reference-token", "JFrog Artifactory reference token",
		"\\bcmVmdGtu[A-Za-z0-9]{56}\\b"},
	{"atlassian-access-token", "Bitbucket access token of a repository, project or workspace",
		"\\bATCTT3xFfG[FN][A-Za-z0-9_=-]{150,200}"},
	{"atlassian-api-token", "Atlassian API token", "\\bATATT3xFfGF0[A-Za-z0-9_=-]{160,200}"},
	{"bitbucket-app-password", "Bitbucket app password", "\\bATBB[A-Za-z0-9]{32}\\b"},
	{"buildkite-token", "Buildkite API or agent token",
		"\\bbk(aa|aj|ct|pt|ua)_[A-Za-z0-9_-]{40,100}"},
	{"circleci-token", "CircleCI API token",
		"\\bCCIP(AT|RJ)_[A-Za-z0-9]{20,24}_[a-f0-9]{40}\\b"},
	{"clojars-token", "Clojars deploy token", "\\bCLOJARS_[a-z0-9]{60}\\b"},
	{"crates-io-token", "crates.io API token", "\"cio[A-Za-z0-9]{32}\""},
	{"docker-token", "Docker Hub access token", "\\bdckr_[op]at_[A-Za-z0-9_-]{27,32}"},
	{"github-fine-grained-token", "GitHub fine-grained personal access token",
		"\\bgithub_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}\\b"},
	{"github-token", "GitHub token: personal, OAuth, app, refresh",
		"\\bgh[oprsu]_[A-Za-z0-9]{36,251}\\b"},
	{"gitlab-runner-registration-token", "GitLab runner registration token",
		"\\bGR1348941[A-Za-z0-9_-]{20}"},
	{"gitlab-token", "GitLab token: personal, deploy, runner, job, agent, feed …",
		"\\bgl(agent|cbt|dt|ffct|ft|imt|oas|pat|ptt|rt|soat|wt)-[A-Za-z0-9_-]{20,64}"},
	{"npm-config-auth", "npm registry token in .npmrc", ":_authToken=" RULE_UUID "\\b"},
	{"npm-config-password", "npm registry password in .npmrc",
		":_password=\"?[A-Za-z0-9+/]{8,200}={0,2}"},
	{"npm-token", "npm access token", "\\bnpm_[A-Za-z0-9]{36}\\b"},
	{"nuget-api-key", "NuGet API key", "\\boy2[a-z0-9]{43}\\b"},
	{"nuget-config-password", "NuGet source password in nuget.config",
		"\"ClearTextPassword\" value=\"[^\"%$]{4,100}\""},
	{"octopus-deploy-key", "Octopus Deploy API key", "\\bAPI-[A-Z0-9]{25,32}\\b"},
	{"postman-api-key", "Postman API key", "\\bPMAK-[a-f0-9]{24}-[a-f0-9]{34}\\b"},
	{"pulumi-token", "Pulumi access token", "\\bpul-[a-f0-9]{40}\\b"},
	{"pypi-test-token", "TestPyPI API token",
		"\\bpypi-AgENdGVzdC5weXBpLm9yZ[A-Za-z0-9_-]{50,400}"},
	{"pypi-token", "PyPI API token", "\\bpypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,400}"},
	{"rubygems-api-key", "RubyGems API key", "\\brubygems_[a-f0-9]{48}\\b"},
	{"sonarqube-token", "SonarQube or SonarCloud token", "\\bsq[apu]_[a-f0-9]{40}\\b"},
	{"sourcegraph-token", "Sourcegraph access token",
		"\\bsgp_([a-f0-9]{16}_|local_)?[a-f0-9]{40}\\b"},
	{"teamcity-token", "TeamCity access token",
		"\\beyJ0eXAiOiAiVENWMiJ9\\.[A-Za-z0-9_-]{36}\\.[A-Za-z0-9_-]{48}"},
	{"terraform-cloud-token", "HCP Terraform API token",
		"\\b[A-Za-z0-9]{14}\\.atlasv1\\.[A-Za-z0-9_=-]{60,80}"},
	{"weblate-token", "Weblate user or project token", "\\bwl[pu]_[A-Za-z0-9]{36}\\b"},
};

const struct rule_family rules_code = {
	.name = "code",
	.title = "code hosting, packages and builds",
	.rules = rules,
	.count = sizeof(rules) / sizeof(rules[0]),
};
