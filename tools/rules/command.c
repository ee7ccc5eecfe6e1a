/* SPDX-License-Identifier: MIT */
/*
 * `pinion rules`: lists, checks, explains and tries the rules of a scan.
 */
#include "tools/commands.h"
#include "tools/output.h"
#include "tools/report.h"
#include "tools/rules/dropped.h"
#include "tools/rules/explain.h"
#include "tools/scan/compile_limit.h"
#include "tools/scan/patterns.h"
#include "tools/spelling.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	OPTION_RULES,
	OPTION_BUILTIN,
	OPTION_EXAMPLES,
	OPTION_STRICT,
	OPTION_YARA_DEFINE,
	OPTION_COUNT,
};

static const struct option_spec rules_options[OPTION_COUNT] = {
	[OPTION_RULES] = {0, "rules", "FILE", "the rules in FILE, in place of the built-in ones",
		"As pinion scan has it. May be given several times."},
	[OPTION_BUILTIN] = {0, "builtin", NULL, "with --rules: the built-in rules as well", NULL},
	[OPTION_EXAMPLES] = {0, "include-examples", NULL,
		"test: report well-known examples and test keys", NULL},
	[OPTION_STRICT] = {0, "strict-rules", NULL, "parts that are not supported are errors",
		NULL},
	[OPTION_YARA_DEFINE] = {YARA_SPEC_DEFINE},
};

struct job {
	struct scan_patterns patterns;
	const char **files; /* of --rules */
	char *const *operands;
	int operand_count;
};

struct verb {
	const char *name;
	const char *arguments; /* NULL: none */
	int (*run)(const struct job *job);
};

static bool load(const struct scan_patterns *patterns, struct rules *rules)
{
	bool is_loaded = scan_rules_load(patterns, scan_rules_matcher(patterns), rules);

	compile_limit_end();
	return is_loaded;
}

static int list_rules(const struct job *job)
{
	struct output_text text = {0};
	struct rules rules = {0};
	int status = EXIT_STATUS_TROUBLE;
	size_t width = 0;

	if (load(&job->patterns, &rules)) {
		for (uint32_t i = 0; i < rules_total(&rules); i++) {
			size_t length = strlen(rules.items[i].id);

			width = length > width ? length : width;
		}
		for (uint32_t i = 0; i < rules_total(&rules); i++) {
			rules_append_line(&text, &rules.items[i], width + 2);
		}
		status = output_print(&text) ? EXIT_STATUS_CLEAN : EXIT_STATUS_TROUBLE;
	}
	rules_free(&rules);
	return status;
}

/* From how many bytes on matches are not found. */
static void append_cuts(struct output_text *text, const struct rules *rules)
{
	uint32_t least = UINT32_MAX;
	uint32_t count = 0;

	for (uint32_t i = 0; i < rules->count; i++) {
		if (rules_are_cut(&rules->items[i])) {
			uint32_t width = rules->items[i].max_width;

			least = width < least ? width : least;
			count++;
		}
	}
	if (count > 0) {
		output_text_format(text,
			"; %u of them: matches longer than %u bytes%s are not found", count, least,
			count > 1 ? ", or more," : "");
	}
}

/* One file on its own: the worse of its status and that so far. */
static int check_file(const struct job *job, const char *file, struct output_text *text)
{
	struct scan_patterns patterns = job->patterns;
	struct rules rules = {0};
	int status = EXIT_STATUS_TROUBLE;

	patterns.files = &file;
	patterns.file_count = 1;
	patterns.names_all = true;
	if (load(&patterns, &rules)) {
		status = rules.unsupported_count > 0 ? EXIT_STATUS_FOUND : EXIT_STATUS_CLEAN;
		output_text_escaped(text, file, strlen(file), true);
		output_text_format(text, ": %u rules", rules_total(&rules));
		if (rules.unsupported_count > 0) {
			output_text_format(text, ", %u part%s not supported",
				rules.unsupported_count, rules.unsupported_count == 1 ? "" : "s");
		}
		append_cuts(text, &rules);
		output_text_string(text, "\n");
	}
	rules_free(&rules);
	return status;
}

static int check_rules(const struct job *job)
{
	struct output_text text = {0};
	int status = EXIT_STATUS_CLEAN;

	for (int i = 0; i < job->operand_count; i++) {
		int file_status = check_file(job, job->operands[i], &text);

		status = file_status > status ? file_status : status;
	}
	return output_print(&text) ? status : EXIT_STATUS_TROUBLE;
}

/* Says that there is no such rule, and what its id may have been. */
static void report_missing(const struct rules *rules, const char *id)
{
	struct spelling spelling = {.word = id};

	for (uint32_t i = 0; i < rules_total(rules); i++) {
		spelling_offer(&spelling, rules->items[i].id);
	}
	if (spelling.nearest != NULL) {
		report_line("there is no rule %s (did you mean %s?)", id, spelling.nearest);
	} else {
		report_line("there is no rule %s (see pinion rules list)", id);
	}
}

static int explain_rules(const struct job *job)
{
	struct output_text text = {0};
	struct rules rules = {0};
	bool is_ok = load(&job->patterns, &rules);

	for (int i = 0; is_ok && i < job->operand_count; i++) {
		bool is_found = false;

		for (uint32_t k = 0; k < rules_total(&rules); k++) {
			if (strcmp(rules.items[k].id, job->operands[i]) == 0) {
				output_text_string(&text, text.length > 0 ? "\n" : "");
				rules_append_explanation(&text, &rules.items[k]);
				is_found = true;
			}
		}
		if (!is_found) {
			report_missing(&rules, job->operands[i]);
			is_ok = false;
		}
	}
	rules_free(&rules);
	return output_print(&text) && is_ok ? EXIT_STATUS_CLEAN : EXIT_STATUS_TROUBLE;
}

/* Matches that filters drop; a scan shows the findings alone. */
static bool show_dropped(const struct job *job)
{
	struct scan_patterns patterns = job->patterns;
	struct output_text text = {0};
	struct rules rules = {0};
	bool is_ok;

	patterns.is_silent = true; /* the scan has said all that there is to say */
	is_ok = load(&patterns, &rules);
	for (int i = 0; is_ok && i < job->operand_count; i++) {
		is_ok = rules_append_dropped(&text, &rules, job->operands[i]);
	}
	rules_free(&rules);
	return output_print(&text) && is_ok;
}

/* A scan of the files with these rules. */
static int test_rules(const struct job *job)
{
	const struct yara_defines *defines = &job->patterns.yara_defines;
	size_t count = 2 * ((size_t)job->patterns.file_count + defines->count) +
		(size_t)job->operand_count + 8;
	char **arguments = calloc(count, sizeof(*arguments));
	int used = 0;
	int status;

	if (arguments == NULL) {
		report_line("%s", report_reason(ENOMEM));
		return EXIT_STATUS_TROUBLE;
	}
	arguments[used++] = (char *)"scan";
	arguments[used++] = (char *)"--byte-offset";
	for (uint32_t i = 0; i < job->patterns.file_count; i++) {
		arguments[used++] = (char *)"--rules";
		arguments[used++] = (char *)job->files[i];
	}
	for (uint32_t i = 0; i < defines->count; i++) {
		arguments[used++] = (char *)"--yara-define";
		arguments[used++] = (char *)defines->items[i].text;
	}
	if (job->patterns.with_builtin) {
		arguments[used++] = (char *)"--builtin";
	}
	if (job->patterns.with_examples) {
		arguments[used++] = (char *)"--include-examples";
	}
	if (job->patterns.is_strict) {
		arguments[used++] = (char *)"--strict-rules";
	}
	arguments[used++] = (char *)"--";
	for (int i = 0; i < job->operand_count; i++) {
		arguments[used++] = job->operands[i];
	}
	status = scan_command.run(&scan_command, used, arguments);
	free(arguments);
	if (status == EXIT_STATUS_TROUBLE || status == EXIT_STATUS_STOPPED) {
		return status;
	}
	return show_dropped(job) ? status : EXIT_STATUS_TROUBLE;
}

static const struct verb verbs[] = {
	{"list", NULL, list_rules},
	{"check", "FILE", check_rules},
	{"explain", "ID", explain_rules},
	{"test", "FILE", test_rules},
};
enum { VERB_COUNT = sizeof(verbs) / sizeof(verbs[0]) };

static const struct verb *find_verb(const char *name)
{
	for (int i = 0; i < VERB_COUNT; i++) {
		if (name != NULL && strcmp(verbs[i].name, name) == 0) {
			return &verbs[i];
		}
	}
	report_line("%s%s%s: list, check, explain or test are what it does",
		name != NULL ? "'" : "nothing to do", name != NULL ? name : "",
		name != NULL ? "' is not known" : "");
	return NULL;
}

static int run_verb(struct job *job)
{
	const struct verb *verb = find_verb(job->operand_count > 0 ? job->operands[0] : NULL);

	if (verb == NULL) {
		return EXIT_STATUS_TROUBLE;
	}
	job->operands++;
	job->operand_count--;
	if (verb->arguments == NULL && job->operand_count > 0) {
		report_line("%s takes no operands", verb->name);
		return EXIT_STATUS_TROUBLE;
	}
	if (verb->arguments != NULL && job->operand_count == 0) {
		report_line("%s needs more: pinion rules %s %s", verb->name, verb->name,
			verb->arguments);
		return EXIT_STATUS_TROUBLE;
	}
	if (verb->run == check_rules && job->patterns.file_count > 0) {
		report_line("check names its files without --rules");
		return EXIT_STATUS_TROUBLE;
	}
	return verb->run(job);
}

static bool take_option(struct job *job, int option, const char *value)
{
	switch (option) {
	case OPTION_RULES:
		if (!options_append(&job->files, &job->patterns.file_count, value)) {
			return false;
		}
		job->patterns.files = job->files;
		return true;
	case OPTION_BUILTIN:
		job->patterns.with_builtin = true;
		return true;
	case OPTION_EXAMPLES:
		job->patterns.with_examples = true;
		return true;
	case OPTION_YARA_DEFINE:
		return yara_defines_parse(&job->patterns.yara_defines, value);
	default:
		job->patterns.is_strict = true;
		return true;
	}
}

static int rules_run(const struct command *command, int argc, char **argv)
{
	struct option_parser parser = {.command = command, .argc = argc, .argv = argv};
	struct job job = {.patterns = SCAN_PATTERNS_STANDARD};
	int status = EXIT_STATUS_TROUBLE;
	const char *value;
	int option;

	while ((option = options_next(&parser, &value)) >= 0) {
		if (!take_option(&job, option, value)) {
			option = OPTIONS_ERROR;
			break;
		}
	}
	if (option == OPTIONS_HELP) {
		status = EXIT_STATUS_CLEAN;
	} else if (option == OPTIONS_END) {
		job.operands = argv + 1;
		job.operand_count = parser.operand_count;
		status = run_verb(&job);
	}
	free(job.files);
	yara_defines_fini(&job.patterns.yara_defines);
	return status;
}

const struct command rules_command = {
	.name = "rules",
	.arguments = "[OPTION]… list | check FILE… | explain ID… | test FILE…",
	.brief = "list, check, explain and try the rules of a scan",
	.detail =
		"list: the built-in rules, or those of --rules: their ids, descriptions, tags.\n\n"
		"check: reads files of rules, names all that is wrong with them or not supported, "
		"and counts the rules of each.\n\n"
		"explain: a rule in words: its pattern, its filters, the rules it needs.\n\n"
		"test: the findings in files, with their offsets in bytes, and matches that are no "
		"findings, with the reason.\n\n"
		"Exit status: 0 done, test: nothing found; 1 test: something found, check: parts "
		"that are not supported; 2 trouble, also bad rules or usage.",
	.options = rules_options,
	.option_count = OPTION_COUNT,
	.run = rules_run,
};
