/* SPDX-License-Identifier: MIT */
/*
 * The option parser. getopt_long(3) is not used because it keeps its own
 * table beside the help text; here both come from struct option_spec.
 *
 * Operands are moved to the front of argv as they are met, so options may
 * follow them; the slots overwritten are those already read.
 */
#include "tools/options.h"

#include "tools/output.h"
#include "tools/report.h"
#include "tools/spelling.h"

#include <errno.h>
#include <pinion/config.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
	/* Column at which the texts of -h begin. */
	HELP_COLUMN = 30,
	HELP_WIDTH = 80,
};

/* More than any option takes. */
static const uint64_t SECONDS_MOST = 10000000000;
/* 100 years. */
static const uint64_t PERIOD_NS_MAX = 3155760000000000000;

/* Length of an option's name in an argument, which may go on with "=VALUE". */
static size_t name_length(const char *argument)
{
	return strcspn(argument, "=");
}

static bool is_optional(const struct option_spec *spec)
{
	return spec->argument != NULL && spec->argument[0] == '[';
}

static const char *nearest_name(const struct command *command, const char *argument)
{
	char word[64];
	struct spelling spelling = {.word = word};
	size_t length = name_length(argument);

	/* No option is that long. */
	if (length >= sizeof(word)) {
		return NULL;
	}
	memcpy(word, argument, length);
	word[length] = '\0';
	for (uint32_t i = 0; i < command->option_count; i++) {
		const char *known = command->options[i].name;

		if (known == NULL) {
			continue;
		}
		/* An abbreviation is meant for what it begins. */
		if (length >= 3 && strncmp(word, known, length) == 0) {
			return known;
		}
		spelling_offer(&spelling, known);
	}
	spelling_offer(&spelling, "help");
	return spelling.nearest;
}

static void append_spaces(struct output_text *text, size_t from, size_t to)
{
	for (size_t column = from; column < to; column++) {
		output_text_append(text, " ", 1);
	}
}

/* Columns a UTF-8 text takes: all of ours are one column wide. */
static size_t text_columns(const char *text, size_t length)
{
	size_t count = 0;

	for (size_t i = 0; i < length; i++) {
		count += ((unsigned char)text[i] & 0xc0) != 0x80;
	}
	return count;
}

/* Appends words wrapped at HELP_WIDTH, each line from `indent` on. */
static void append_wrapped(struct output_text *text, const char *words, size_t indent)
{
	size_t column = indent;

	while (*words != '\0') {
		size_t length = strcspn(words, " \n");
		size_t columns = text_columns(words, length);

		if (column > indent && column + 1 + columns > HELP_WIDTH) {
			output_text_append(text, "\n", 1);
			append_spaces(text, 0, indent);
			column = indent;
		}
		if (column > indent) {
			output_text_append(text, " ", 1);
			column++;
		}
		output_text_append(text, words, length);
		column += columns;
		words += length;
		if (*words == '\n') {
			output_text_append(text, "\n", 1);
			append_spaces(text, 0, words[1] == '\n' || words[1] == '\0' ? 0 : indent);
			column = indent;
		}
		if (*words != '\0') {
			words++;
		}
	}
	output_text_append(text, "\n", 1);
}

static void append_option(struct output_text *text, const struct option_spec *spec, bool full)
{
	char letter[5] = {'-', spec->letter, ',', ' ', '\0'};
	size_t start = text->length;
	size_t columns;

	output_text_string(text, "  ");
	if (spec->letter != 0 && spec->name == NULL) {
		letter[2] = '\0';
	}
	output_text_string(text, spec->letter != 0 ? letter : "    ");
	if (spec->name != NULL) {
		output_text_string(text, "--");
		output_text_string(text, spec->name);
	}
	if (spec->argument != NULL) {
		const char *between = spec->name != NULL ? "=" : " ";

		output_text_string(text, is_optional(spec) ? "" : between);
		output_text_string(text, spec->argument);
	}
	columns = text->failed ? 0 : text_columns(text->bytes + start, text->length - start);
	if (columns + 2 > HELP_COLUMN) {
		output_text_append(text, "\n", 1);
		columns = 0;
	}
	append_spaces(text, columns, HELP_COLUMN);
	append_wrapped(text, spec->brief, HELP_COLUMN);
	if (full && spec->detail != NULL) {
		append_spaces(text, 0, HELP_COLUMN);
		append_wrapped(text, spec->detail, HELP_COLUMN);
	}
}

bool options_help(const struct command *command, bool full)
{
	static const struct option_spec help = {
		'h', "help", NULL, "this text; -h: in short, --help: all of it", NULL};
	struct output_text text = {0};

	output_text_string(&text, "usage: pinion ");
	output_text_string(&text, command->name);
	output_text_string(&text, " ");
	output_text_string(&text, command->arguments);
	output_text_string(&text, "\n");
	append_wrapped(&text, command->brief, 0);
	output_text_string(&text, "\n");
	for (uint32_t i = 0; i < command->option_count; i++) {
		append_option(&text, &command->options[i], full);
	}
	append_option(&text, &help, full);
	if (full && command->detail != NULL) {
		output_text_string(&text, "\n");
		append_wrapped(&text, command->detail, 0);
	}
	return output_print(&text);
}

static int help_requested(const struct option_parser *parser, bool full)
{
	return options_help(parser->command, full) ? OPTIONS_HELP : OPTIONS_ERROR;
}

static int parse_long(struct option_parser *parser, const char *argument, const char **out_value)
{
	const struct command *command = parser->command;
	size_t length = name_length(argument);
	const char *value = argument[length] == '=' ? argument + length + 1 : NULL;
	const char *nearest;

	for (uint32_t i = 0; i < command->option_count; i++) {
		const struct option_spec *spec = &command->options[i];

		if (spec->name == NULL || strlen(spec->name) != length ||
			memcmp(spec->name, argument, length) != 0) {
			continue;
		}
		if (spec->argument == NULL && value != NULL) {
			report_line("--%s takes no value", spec->name);
			return OPTIONS_ERROR;
		}
		if (spec->argument != NULL && value == NULL && !is_optional(spec)) {
			if (parser->position >= parser->argc) {
				report_line("--%s needs a value: --%s=%s", spec->name, spec->name,
					spec->argument);
				return OPTIONS_ERROR;
			}
			value = parser->argv[parser->position++];
		}
		*out_value = value;
		return (int)i;
	}
	if (strcmp(argument, "help") == 0) {
		return help_requested(parser, true);
	}
	nearest = nearest_name(command, argument);
	if (nearest != NULL) {
		report_line("unknown option --%.*s (did you mean --%s?)", (int)length, argument,
			nearest);
	} else {
		report_line("unknown option --%.*s (see pinion %s --help)", (int)length, argument,
			command->name);
	}
	return OPTIONS_ERROR;
}

/*
 * The cluster is the rest of the argument, after the dash and the letters
 * already read.
 */
static int parse_letter(struct option_parser *parser, const char **out_value)
{
	const struct command *command = parser->command;
	char letter = *parser->cluster++;

	for (uint32_t i = 0; i < command->option_count; i++) {
		const struct option_spec *spec = &command->options[i];

		if (spec->letter != letter) {
			continue;
		}
		*out_value = NULL;
		if (spec->argument != NULL && !is_optional(spec)) {
			if (*parser->cluster != '\0') {
				*out_value = parser->cluster;
			} else if (parser->position < parser->argc) {
				*out_value = parser->argv[parser->position++];
			} else {
				report_line("-%c needs a value: -%c %s", letter, letter,
					spec->argument);
				return OPTIONS_ERROR;
			}
			parser->cluster = NULL;
		}
		return (int)i;
	}
	if (letter == 'h') {
		return help_requested(parser, false);
	}
	report_line("unknown option -%c (see pinion %s -h)", letter, command->name);
	return OPTIONS_ERROR;
}

int options_next(struct option_parser *parser, const char **out_value)
{
	*out_value = NULL;
	if (parser->position == 0) {
		parser->position = 1;
	}
	if (parser->cluster != NULL && *parser->cluster != '\0') {
		return parse_letter(parser, out_value);
	}
	while (parser->position < parser->argc) {
		char *argument = parser->argv[parser->position++];

		/* A lone dash is an operand: stdin. */
		if (parser->only_operands || argument[0] != '-' || argument[1] == '\0') {
			parser->argv[++parser->operand_count] = argument;
		} else if (argument[1] != '-') {
			parser->cluster = argument + 1;
			return parse_letter(parser, out_value);
		} else if (argument[2] == '\0') {
			parser->only_operands = true;
		} else {
			return parse_long(parser, argument + 2, out_value);
		}
	}
	return OPTIONS_END;
}

/*
 * Digits only: no sign, spaces or octal. Returns where they end, or NULL. More
 * than fits becomes the most that does.
 */
static const char *parse_digits(const char *text, uint64_t *out_number)
{
	uint64_t number = 0;
	const char *position = text;

	for (; *position >= '0' && *position <= '9'; position++) {
		uint64_t digit = (uint64_t)(*position - '0');

		number = number > (UINT64_MAX - digit) / 10 ? UINT64_MAX : number * 10 + digit;
	}
	*out_number = number;
	return position == text ? NULL : position;
}

/* Operands, which are called in capitals, have none. */
static const char *dashes(const char *name)
{
	return name[0] >= 'A' && name[0] <= 'Z' ? "" : "--";
}

bool options_count(
	const char *name, const char *text, uint64_t min, uint64_t max, uint64_t *out_count)
{
	uint64_t number;
	const char *end = parse_digits(text, &number);

	if (end == NULL || *end != '\0') {
		report_line("%s%s: '%s' is not a number from %llu to %llu", dashes(name), name,
			text, (unsigned long long)min, (unsigned long long)max);
		return false;
	}
	if (number < min || number > max) {
		report_line("%s%s: %s is not between %llu and %llu", dashes(name), name, text,
			(unsigned long long)min, (unsigned long long)max);
		return false;
	}
	*out_count = number;
	return true;
}

/* Whole or as 0.05: where the text goes on, NULL: it is no number. */
static const char *parse_seconds(const char *text, uint64_t *out_ns)
{
	uint64_t whole;
	uint64_t digit_ns = 100000000u;
	const char *end = parse_digits(text, &whole);

	if (end == NULL) {
		return NULL;
	}
	/* More is out of every range, and would not fit. */
	whole = whole < SECONDS_MOST ? whole : SECONDS_MOST;
	*out_ns = whole * 1000000000u;
	if (*end == '.') {
		/* Digits after the ninth are ignored. */
		for (end++; *end >= '0' && *end <= '9'; end++) {
			*out_ns += (uint64_t)(*end - '0') * digit_ns;
			digit_ns /= 10;
		}
	}
	return end;
}

bool options_duration(
	const char *name, const char *text, uint64_t min_ns, uint64_t max_ns, uint64_t *out_ns)
{
	uint64_t number_ns;
	const char *end = parse_seconds(text, &number_ns);

	if (end == NULL || *end != '\0') {
		report_line("%s%s: '%s' is not a number of seconds", dashes(name), name, text);
		return false;
	}
	if (number_ns < min_ns || number_ns > max_ns) {
		report_line("%s%s: %s is not between %g and %g seconds", dashes(name), name, text,
			(double)min_ns / 1e9, (double)max_ns / 1e9);
		return false;
	}
	*out_ns = number_ns;
	return true;
}

bool options_period(const char *name, const char *text, uint64_t *out_ns)
{
	static const struct {
		const char *unit;
		uint64_t seconds;
	} units[] = {{"", 1}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}, {"w", 604800}};
	uint64_t number_ns;
	const char *end = parse_seconds(text, &number_ns);

	for (size_t i = 0; end != NULL && i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].unit) != 0) {
			continue;
		}
		if (number_ns > PERIOD_NS_MAX / units[i].seconds) {
			report_line("%s%s: %s is more than 100 years", dashes(name), name, text);
			return false;
		}
		*out_ns = number_ns * units[i].seconds;
		return true;
	}
	report_line("%s%s: '%s' is no time: give a number with s, m, h, d or w, such as 30d",
		dashes(name), name, text);
	return false;
}

/* A number of bytes as options_size() takes it, in the largest unit. */
static void format_size(char out[24], uint64_t bytes)
{
	static const char letters[] = "KMGT";
	int unit = -1;

	while (letters[unit + 1] != '\0' && bytes != 0 && bytes % 1024 == 0) {
		bytes /= 1024;
		unit++;
	}
	snprintf(out, 24, unit < 0 ? "%llu" : "%llu%c", (unsigned long long)bytes,
		unit < 0 ? 0 : letters[unit]);
}

bool options_size(
	const char *name, const char *text, uint64_t min, uint64_t max, uint64_t *out_bytes)
{
	uint64_t bytes = 0;
	int error = pinion_config_parse_size(text, &bytes);

	if (error == -EINVAL) {
		report_line(
			"--%s: '%s' is not a size (examples: 65536, 64K, 1M, 10MB)", name, text);
		return false;
	}
	if (error != 0 || bytes < min || bytes > max) {
		char least[24];
		char most[24];

		format_size(least, min);
		format_size(most, max);
		report_line("--%s: %s is not between %s and %s", name, text, least, most);
		return false;
	}
	*out_bytes = bytes;
	return true;
}

int options_choice(const char *name, const char *text, const char *const *choices)
{
	struct output_text list = {0};

	for (int i = 0; choices[i] != NULL; i++) {
		if (strcmp(choices[i], text) == 0) {
			output_text_free(&list);
			return i;
		}
		output_text_string(&list, i == 0 ? "" : ", ");
		output_text_string(&list, choices[i]);
	}
	output_text_append(&list, "", 1);
	report_line("--%s: '%s' is not one of: %s", name, text, list.failed ? "…" : list.bytes);
	output_text_free(&list);
	return -1;
}

bool options_append(const char ***list, uint32_t *count, const char *value)
{
	const char **grown = realloc(*list, (*count + 1) * sizeof(*grown));

	if (grown == NULL) {
		report_line("%s", report_reason(ENOMEM));
		return false;
	}
	grown[(*count)++] = value;
	*list = grown;
	return true;
}
