/* SPDX-License-Identifier: MIT */
/*
 * A YR_SCANNER of libyara.
 */
#include "tools/scan/yara_scanner.h"

#include "tools/scan/yara_rules.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#if defined(HAVE_YARA)
static const uint64_t ns_per_s = 1000000000;

struct yara_scanner {
	const struct rules *rules;
	YR_SCANNER *scanner;
	/* Of the search under way: */
	const uint8_t *bytes;
	size_t length;
	struct candidates *found;
	struct yara_trouble *trouble;
};

static int add(struct yara_scanner *scanner, struct candidate *candidate)
{
	size_t length = (size_t)(candidate->end - candidate->start);

	if (length > 0) {
		memcpy(candidate->head, scanner->bytes + candidate->start,
			length < sizeof(candidate->head) ? length : sizeof(candidate->head));
	}
	return candidates_add(scanner->found, candidate);
}

/*
 * Matches come by their offsets; beyond the limit one is enough. libyara has
 * them at addresses that are not aligned.
 */
static int take_string(
	struct yara_scanner *scanner, YR_SCAN_CONTEXT *context, YR_STRING *string, uint32_t rule)
{
	uint64_t max = scanner->rules->findings_max;
	uint64_t count = 0;
	const YR_MATCH *next = context->matches[string->idx].head;
	int error = 0;

	while (next != NULL && error == 0 && (max == 0 || count <= max)) {
		struct candidate candidate = {.rule = rule, .string = string->idx + 1};
		YR_MATCH match;

		memcpy(&match, next, sizeof(match));
		next = match.next;
		candidate.start = (uint64_t)(match.base + match.offset);
		candidate.end = candidate.start + (uint64_t)match.match_length;
		if (!match.is_private && candidate.end <= scanner->length) {
			error = add(scanner, &candidate);
			count++;
		}
	}
	return error;
}

static uint32_t index_of(const struct yara_scanner *scanner, const YR_RULE *rule)
{
	return scanner->rules->yara->indices[rule - scanner->rules->yara->first];
}

static int take_rule(struct yara_scanner *scanner, YR_SCAN_CONTEXT *context, YR_RULE *rule)
{
	uint32_t index = index_of(scanner, rule);
	size_t count_before = scanner->found->count;
	YR_STRING *string;
	int error = 0;

	if (index == UINT32_MAX) {
		return 0;
	}
	yr_rule_strings_foreach(rule, string)
	{
		error = error == 0 ? take_string(scanner, context, string, index) : error;
	}
	if (error == 0 && scanner->found->count == count_before) {
		struct candidate whole = {.end = scanner->length > 0 ? 1 : 0, .rule = index};

		error = add(scanner, &whole);
	}
	return error;
}

static int on_message(YR_SCAN_CONTEXT *context, int message, void *message_data, void *user_data)
{
	struct yara_scanner *scanner = user_data;

	if (message == CALLBACK_MSG_RULE_MATCHING) {
		return take_rule(scanner, context, message_data) == 0 ? CALLBACK_CONTINUE
								      : CALLBACK_ERROR;
	}
	if (message == CALLBACK_MSG_TOO_MANY_MATCHES) {
		const YR_STRING *string = message_data;

		scanner->trouble->crowded =
			scanner->rules->yara->first[string->rule_idx].identifier;
	}
	return CALLBACK_CONTINUE;
}

int yara_scanner_create(
	const struct rules *rules, uint64_t timeout_ns, struct yara_scanner **out_scanner)
{
	struct yara_scanner *scanner = calloc(1, sizeof(*scanner));
	uint64_t seconds = (timeout_ns + ns_per_s - 1) / ns_per_s;

	if (scanner == NULL) {
		return -ENOMEM;
	}
	scanner->rules = rules;
	if (yara_library.yr_scanner_create(rules->yara->compiled, &scanner->scanner) !=
		ERROR_SUCCESS) {
		free(scanner);
		return -ENOMEM;
	}
	yara_library.yr_scanner_set_callback(scanner->scanner, on_message, scanner);
	/* The bytes are in memory: no signal has to be caught. */
	yara_library.yr_scanner_set_flags(
		scanner->scanner, SCAN_FLAGS_REPORT_RULES_MATCHING | SCAN_FLAGS_NO_TRYCATCH);
	yara_library.yr_scanner_set_timeout(
		scanner->scanner, seconds > INT_MAX ? INT_MAX : (int)seconds);
	*out_scanner = scanner;
	return 0;
}

void yara_scanner_destroy(struct yara_scanner *scanner)
{
	if (scanner != NULL) {
		yara_library.yr_scanner_destroy(scanner->scanner);
		free(scanner);
	}
}

int yara_scanner_search(struct yara_scanner *scanner, const uint8_t *bytes, size_t length,
	struct candidates *found, struct yara_trouble *out_trouble)
{
	found->count = 0;
	scanner->bytes = bytes;
	scanner->length = length;
	scanner->found = found;
	scanner->trouble = out_trouble;
	out_trouble->code = yara_library.yr_scanner_scan_mem(scanner->scanner, bytes, length);
	switch (out_trouble->code) {
	case ERROR_SUCCESS:
		return 0;
	case ERROR_SCAN_TIMEOUT:
		return -ETIME;
	case ERROR_INSUFFICIENT_MEMORY:
	case ERROR_CALLBACK_ERROR:
		return -ENOMEM;
	default:
		return -EIO;
	}
}
#else
int yara_scanner_create(
	const struct rules *rules, uint64_t timeout_ns, struct yara_scanner **out_scanner)
{
	(void)rules;
	(void)timeout_ns;
	(void)out_scanner;
	return -EOPNOTSUPP;
}

void yara_scanner_destroy(struct yara_scanner *scanner)
{
	(void)scanner;
}

int yara_scanner_search(struct yara_scanner *scanner, const uint8_t *bytes, size_t length,
	struct candidates *found, struct yara_trouble *out_trouble)
{
	(void)scanner;
	(void)bytes;
	(void)length;
	(void)found;
	(void)out_trouble;
	return -EOPNOTSUPP;
}
#endif
