/* SPDX-License-Identifier: MIT */
/*
 * The value of an expression for a finding. A value may be unknown, and what
 * follows from it is then unknown as well, unless the other parts decide.
 */
#include "tools/scan/expression.h"

#include "tools/scan/byte_pairs.h"
#include "tools/scan/expression_tree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* All texts that an evaluation makes; more are unknown. */
	SCRATCH_BYTES_MAX = 64 << 10,
};

struct value {
	bool is_known;
	bool is_nil;
	bool truth;
	double number;
	struct expression_text text;
};

struct evaluation {
	const struct rule_subject *subject;
	expression_search_fn search;
	void *search_arg;
	struct rule_memory memory;
	size_t memory_bytes;
	/* Values of bindings that are evaluated already. */
	struct value values[EXPRESSION_BINDINGS_MAX];
	uint32_t evaluated; /* a bit for each */
};

_Static_assert(EXPRESSION_BINDINGS_MAX <= 32, "a bit for each binding");

static const struct value unknown = {0};

static struct value of_truth(bool truth)
{
	return (struct value){.is_known = true, .truth = truth};
}

static struct value of_number(double number)
{
	return (struct value){.is_known = true, .number = number};
}

static struct value of_text(const void *bytes, size_t length)
{
	return (struct value){
		.is_known = true, .text = {bytes != NULL ? bytes : "", bytes != NULL ? length : 0}};
}

static struct value evaluate(struct evaluation *evaluation, const struct expression_node *node);

static bool is_true(const struct value *value)
{
	return value->is_known && value->truth;
}

static bool is_false(const struct value *value)
{
	return value->is_known && !value->is_nil && !value->truth;
}

/* A text for a result, NULL: it would be too much. */
static char *take(struct evaluation *evaluation, size_t bytes)
{
	if (bytes > SCRATCH_BYTES_MAX - evaluation->memory_bytes) {
		return NULL;
	}
	evaluation->memory_bytes += bytes;
	return rule_memory_take(&evaluation->memory, bytes + 1);
}

static double entropy_of(const struct expression_text *text)
{
	uint32_t counts[256] = {0};
	double entropy = 0;

	for (size_t i = 0; i < text->length; i++) {
		counts[(uint8_t)text->bytes[i]]++;
	}
	for (int i = 0; i < 256; i++) {
		if (counts[i] != 0) {
			double share = counts[i] / (double)text->length;

			entropy -= share * log2(share);
		}
	}
	return entropy;
}

/*
 * Where the match is in the lines of the match, which are all of the fragment
 * that is kept. SIZE_MAX: it is not within them.
 */
static size_t match_offset(const struct rule_subject *subject)
{
	if (subject->line == NULL || subject->match < subject->line ||
		subject->match + subject->match_bytes > subject->line + subject->line_bytes) {
		return SIZE_MAX;
	}
	return (size_t)(subject->match - subject->line);
}

static struct value offset_field(const struct rule_subject *subject, enum expression_field field)
{
	size_t start = match_offset(subject);

	if (start == SIZE_MAX) {
		return unknown;
	}
	if (field == EXPRESSION_FIELD_MATCH_START) {
		return of_number((double)start);
	}
	if (field == EXPRESSION_FIELD_MATCH_END) {
		return of_number((double)(start + subject->match_bytes));
	}
	return of_number(field == EXPRESSION_FIELD_LINE_START ? 0 : (double)subject->line_bytes);
}

static struct value field_value(const struct rule_subject *subject, enum expression_field field)
{
	switch (field) {
	case EXPRESSION_FIELD_SECRET:
		return of_text(subject->secret, subject->secret_bytes);
	case EXPRESSION_FIELD_MATCH:
		return of_text(subject->match, subject->match_bytes);
	case EXPRESSION_FIELD_LINE:
	case EXPRESSION_FIELD_FRAGMENT:
		return of_text(subject->line, subject->line_bytes);
	case EXPRESSION_FIELD_RULE_ID:
		return of_text(
			subject->rule_id, subject->rule_id == NULL ? 0 : strlen(subject->rule_id));
	case EXPRESSION_FIELD_PATH:
		return of_text(subject->path, subject->path_bytes);
	case EXPRESSION_FIELD_MATCH_START:
	case EXPRESSION_FIELD_MATCH_END:
	case EXPRESSION_FIELD_LINE_START:
	case EXPRESSION_FIELD_LINE_END:
		break;
	}
	return offset_field(subject, field);
}

static struct value binding(struct evaluation *evaluation, const struct expression_node *node)
{
	uint32_t bit = UINT32_C(1) << node->slot;

	if ((evaluation->evaluated & bit) == 0) {
		evaluation->values[node->slot] = evaluate(evaluation, node->a);
		evaluation->evaluated |= bit;
	}
	return evaluation->values[node->slot];
}

/* A chain of `and` or `or`; `decisive` is the value of a part that decides. */
static struct value chain(
	struct evaluation *evaluation, const struct expression_node *node, bool decisive)
{
	const struct expression_node *rest = node;
	bool is_known = true;

	for (;;) {
		bool is_last = rest->op != node->op;
		struct value value = evaluate(evaluation, is_last ? rest : rest->a);

		if (decisive ? is_true(&value) : is_false(&value)) {
			return of_truth(decisive);
		}
		is_known = is_known && value.is_known && !value.is_nil;
		if (is_last) {
			return is_known ? of_truth(!decisive) : unknown;
		}
		rest = rest->b;
	}
}

static int compare_texts(const struct expression_text *a, const struct expression_text *b)
{
	size_t length = a->length < b->length ? a->length : b->length;
	int order = length == 0 ? 0 : memcmp(a->bytes, b->bytes, length);

	return order != 0 ? order : (a->length > b->length) - (a->length < b->length);
}

static struct value comparison(struct evaluation *evaluation, const struct expression_node *node)
{
	struct value a = evaluate(evaluation, node->a);
	struct value b = evaluate(evaluation, node->b);
	/* A value that is known and not nil has the type of either side. */
	enum expression_type type = node->a->type == EXPRESSION_ANY ? node->b->type : node->a->type;
	int order;

	if (!a.is_known || !b.is_known) {
		return unknown;
	}
	if (a.is_nil || b.is_nil) {
		return of_truth(node->op == EXPRESSION_EQUAL && a.is_nil && b.is_nil);
	}
	if (type == EXPRESSION_NUMBER) {
		order = (a.number > b.number) - (a.number < b.number);
	} else if (type == EXPRESSION_BOOL) {
		order = a.truth - b.truth;
	} else {
		order = compare_texts(&a.text, &b.text);
	}
	if (node->op == EXPRESSION_EQUAL) {
		return of_truth(order == 0);
	}
	return of_truth(node->op == EXPRESSION_LESS ? order < 0 : order <= 0);
}

static struct value in_list(const struct expression_node *node, const struct expression_text *text)
{
	for (uint32_t i = 0; i < node->item_count; i++) {
		if (compare_texts(&node->items[i], text) == 0) {
			return of_truth(true);
		}
	}
	return of_truth(false);
}

static bool contains(const struct expression_text *text, const struct expression_text *part)
{
	return memmem(text->bytes, text->length, part->bytes, part->length) != NULL;
}

static struct value change_case(
	struct evaluation *evaluation, const struct expression_text *text, bool is_upper)
{
	char *bytes = take(evaluation, text->length);

	for (size_t i = 0; bytes != NULL && i < text->length; i++) {
		char byte = text->bytes[i];
		bool changes = is_upper ? byte >= 'a' && byte <= 'z' : byte >= 'A' && byte <= 'Z';

		bytes[i] = (char)(changes ? byte ^ 0x20 : byte);
	}
	return bytes == NULL ? unknown : of_text(bytes, text->length);
}

static bool may_contain(const struct byte_pairs *pairs, const struct expression_text *part)
{
	const uint8_t *bytes = (const uint8_t *)part->bytes;
	size_t length = part->length;

	return length < 2 ||
		(byte_pairs_have(pairs, bytes[0], bytes[1]) &&
			byte_pairs_have(pairs, bytes[length - 2], bytes[length - 1]));
}

static struct value contains_any(struct evaluation *evaluation, const struct expression_node *node,
	const struct expression_text *text)
{
	struct value lower = change_case(evaluation, text, false);
	struct byte_pairs pairs = {{0}};
	bool has_pairs = lower.is_known && node->item_count >= BYTE_PAIRS_WORDS_MIN;

	for (size_t i = 1; has_pairs && i < lower.text.length; i++) {
		byte_pairs_add(
			&pairs, (uint8_t)lower.text.bytes[i - 1], (uint8_t)lower.text.bytes[i]);
	}
	for (uint32_t i = 0; lower.is_known && i < node->item_count; i++) {
		if ((!has_pairs || may_contain(&pairs, &node->items[i])) &&
			contains(&lower.text, &node->items[i])) {
			return of_truth(true);
		}
	}
	return lower.is_known ? of_truth(false) : unknown;
}

static struct value search_regexes(struct evaluation *evaluation,
	const struct expression_node *node, const struct expression_text *text)
{
	size_t start = 0;
	size_t end = 0;
	int found = node->regexes == NULL
		? 0
		: evaluation->search(evaluation->search_arg, &node->regexes->list, text->bytes,
			  text->length, &start, &end);

	if (found < 0) {
		return unknown;
	}
	if (node->op == EXPRESSION_MATCHES_ANY) {
		return of_truth(found != 0);
	}
	return found != 0 ? of_text(text->bytes + start, end - start) : of_text("", 0);
}

static struct value trim(const struct expression_text *text)
{
	static const char blanks[] = " \t\n\v\f\r";
	size_t start = 0;
	size_t end = text->length;

	while (start < end && memchr(blanks, text->bytes[start], sizeof(blanks) - 1) != NULL) {
		start++;
	}
	while (end > start && memchr(blanks, text->bytes[end - 1], sizeof(blanks) - 1) != NULL) {
		end--;
	}
	return of_text(text->bytes + start, end - start);
}

/* Characters, as Go counts them in valid UTF-8. */
static struct value length_of(const struct expression_text *text)
{
	size_t count = 0;

	for (size_t i = 0; i < text->length; i++) {
		count += ((uint8_t)text->bytes[i] & 0xc0) != 0x80;
	}
	return of_number((double)count);
}

/* What takes one text, or a text and something that is constant. */
static struct value of_one_text(struct evaluation *evaluation, const struct expression_node *node)
{
	struct value value = evaluate(evaluation, node->a);

	if (!value.is_known) {
		return unknown;
	}
	if (value.is_nil) {
		value = of_text("", 0);
	}
	switch ((int)node->op) {
	case EXPRESSION_IN:
		return in_list(node, &value.text);
	case EXPRESSION_CONTAINS_ANY:
		return contains_any(evaluation, node, &value.text);
	case EXPRESSION_ENTROPY:
		return of_number(entropy_of(&value.text));
	case EXPRESSION_LENGTH:
		return length_of(&value.text);
	case EXPRESSION_LOWER:
	case EXPRESSION_UPPER:
		return change_case(evaluation, &value.text, node->op == EXPRESSION_UPPER);
	case EXPRESSION_TRIM:
		return trim(&value.text);
	default:
		return search_regexes(evaluation, node, &value.text);
	}
}

static struct value concatenate(struct evaluation *evaluation, const struct expression_text *a,
	const struct expression_text *b)
{
	char *bytes = take(evaluation, a->length + b->length);

	if (bytes == NULL) {
		return unknown;
	}
	memcpy(bytes, a->bytes, a->length);
	memcpy(bytes + a->length, b->bytes, b->length);
	return of_text(bytes, a->length + b->length);
}

static struct value of_two_texts(struct evaluation *evaluation, const struct expression_node *node)
{
	struct value a = evaluate(evaluation, node->a);
	struct value b = evaluate(evaluation, node->b);

	if (!a.is_known || !b.is_known || a.is_nil || b.is_nil) {
		return unknown;
	}
	if (node->op == EXPRESSION_CONCATENATE) {
		return concatenate(evaluation, &a.text, &b.text);
	}
	if (node->op == EXPRESSION_CONTAINS) {
		return of_truth(contains(&a.text, &b.text));
	}
	if (b.text.length > a.text.length) {
		return of_truth(false);
	}
	return of_truth(b.text.length == 0 ||
		memcmp(a.text.bytes +
				(node->op == EXPRESSION_ENDS ? a.text.length - b.text.length : 0),
			b.text.bytes, b.text.length) == 0);
}

static struct value calculate(struct evaluation *evaluation, const struct expression_node *node)
{
	struct value a = evaluate(evaluation, node->a);
	struct value b = evaluate(evaluation, node->b);

	if (!a.is_known || !b.is_known || a.is_nil || b.is_nil) {
		return unknown;
	}
	switch ((int)node->op) {
	case EXPRESSION_ADD:
		return of_number(a.number + b.number);
	case EXPRESSION_SUBTRACT:
		return of_number(a.number - b.number);
	case EXPRESSION_MULTIPLY:
		return of_number(a.number * b.number);
	case EXPRESSION_DIVIDE:
		return of_number(a.number / b.number);
	case EXPRESSION_MIN:
		return of_number(a.number < b.number ? a.number : b.number);
	case EXPRESSION_MAX:
		return of_number(a.number > b.number ? a.number : b.number);
	default:
		return of_number(fabs(a.number));
	}
}

/*
 * One end of a range: counted from the end if negative, and within the text.
 * False: unknown.
 */
static bool slice_bound(struct evaluation *evaluation, const struct expression_node *node,
	size_t length, size_t absent, size_t *out_bound)
{
	struct value value;

	*out_bound = absent;
	if (node == NULL) {
		return true;
	}
	value = evaluate(evaluation, node);
	if (!value.is_known || value.is_nil || isnan(value.number)) {
		return false;
	}
	if (value.number < 0) {
		value.number += (double)length;
	}
	*out_bound = value.number <= 0		 ? 0
		: value.number >= (double)length ? length
						 : (size_t)value.number;
	return true;
}

static struct value slice(struct evaluation *evaluation, const struct expression_node *node)
{
	struct value text = evaluate(evaluation, node->a);
	size_t start;
	size_t end;

	if (!text.is_known || text.is_nil ||
		!slice_bound(evaluation, node->b, text.text.length, 0, &start) ||
		!slice_bound(evaluation, node->c, text.text.length, text.text.length, &end)) {
		return unknown;
	}
	return of_text(text.text.bytes + start, end > start ? end - start : 0);
}

static struct value constant(const struct expression_node *node)
{
	return (struct value){
		.is_known = true, .truth = node->truth, .number = node->number, .text = node->text};
}

/* What decides which of its parts count. */
static struct value choose(struct evaluation *evaluation, const struct expression_node *node)
{
	struct value value = evaluate(evaluation, node->a);

	if (node->op == EXPRESSION_NOT) {
		return value.is_known && !value.is_nil ? of_truth(!value.truth) : unknown;
	}
	if (node->op == EXPRESSION_COALESCE) {
		return value.is_known && value.is_nil ? evaluate(evaluation, node->b) : value;
	}
	if (!value.is_known || value.is_nil) {
		return unknown;
	}
	return evaluate(evaluation, value.truth ? node->b : node->c);
}

static struct value evaluate(struct evaluation *evaluation, const struct expression_node *node)
{
	switch (node->op) {
	case EXPRESSION_UNKNOWN:
		return unknown;
	case EXPRESSION_CONSTANT:
		return constant(node);
	case EXPRESSION_NIL:
		return (struct value){.is_known = true, .is_nil = true};
	case EXPRESSION_FIELD:
		return field_value(evaluation->subject, node->field);
	case EXPRESSION_BINDING:
		return binding(evaluation, node);
	case EXPRESSION_AND:
	case EXPRESSION_OR:
		return chain(evaluation, node, node->op == EXPRESSION_OR);
	case EXPRESSION_NOT:
	case EXPRESSION_CHOOSE:
	case EXPRESSION_COALESCE:
		return choose(evaluation, node);
	case EXPRESSION_EQUAL:
	case EXPRESSION_LESS:
	case EXPRESSION_LESS_OR_EQUAL:
		return comparison(evaluation, node);
	case EXPRESSION_CONTAINS:
	case EXPRESSION_STARTS:
	case EXPRESSION_ENDS:
	case EXPRESSION_CONCATENATE:
		return of_two_texts(evaluation, node);
	case EXPRESSION_IN:
	case EXPRESSION_MATCHES_ANY:
	case EXPRESSION_FIND_MATCH:
	case EXPRESSION_CONTAINS_ANY:
	case EXPRESSION_ENTROPY:
	case EXPRESSION_LENGTH:
	case EXPRESSION_LOWER:
	case EXPRESSION_UPPER:
	case EXPRESSION_TRIM:
		return of_one_text(evaluation, node);
	case EXPRESSION_SLICE:
		return slice(evaluation, node);
	case EXPRESSION_ADD:
	case EXPRESSION_SUBTRACT:
	case EXPRESSION_MULTIPLY:
	case EXPRESSION_DIVIDE:
	case EXPRESSION_MIN:
	case EXPRESSION_MAX:
	case EXPRESSION_ABSOLUTE:
		return calculate(evaluation, node);
	}
	return unknown;
}

bool expression_is_true(const struct expression *expression, const struct rule_subject *subject,
	expression_search_fn search, void *search_arg)
{
	struct evaluation evaluation = {
		.subject = subject, .search = search, .search_arg = search_arg};
	struct value value = evaluate(&evaluation, expression->root);

	rule_memory_free(&evaluation.memory);
	return is_true(&value);
}
