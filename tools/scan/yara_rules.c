/* SPDX-License-Identifier: MIT */
/*
 * Files of YARA rules.
 */
#include "tools/scan/yara_rules.h"

#include "tools/growing.h"
#include "tools/scan/yara_compile.h"
#include "tools/scan/yara_defines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ID_BYTES = 128, REASON_BYTES = 512 };

static bool ends_in(const char *name, const char *suffix)
{
	size_t length = strlen(name);
	size_t suffix_length = strlen(suffix);

	return length > suffix_length && strcmp(name + length - suffix_length, suffix) == 0;
}

/* Blanks and comments; both kinds of list have others. */
static const char *skip_comments(const char *at)
{
	for (;;) {
		at += strspn(at, " \t\r\n");
		if (at[0] == '/' && at[1] == '/') {
			at += strcspn(at, "\n");
		} else if (at[0] == '/' && at[1] == '*') {
			const char *end = strstr(at, "*/");

			at = end == NULL ? at + strlen(at) : end + 2;
		} else {
			return at;
		}
	}
}

bool yara_rules_are_in(const struct rules_source *source)
{
	static const char *const words[] = {"rule ", "private rule ", "global rule ",
		"private global rule ", "global private rule ", "import \"", "include \""};
	const char *first;

	if (ends_in(source->file, ".yar") || ends_in(source->file, ".yara")) {
		return true;
	}
	first = skip_comments(source->bytes);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strncmp(first, words[i], strlen(words[i])) == 0) {
			return true;
		}
	}
	return false;
}

int yara_rules_keep(const struct rules_reader *reader, struct rules_source *source)
{
	struct yara_rules *yara = reader->rules->yara;
	struct yara_source *sources;
	const char *why;
	char reason[REASON_BYTES];

	if (!yara_library_load(&why)) {
		snprintf(reason, sizeof(reason), "YARA rules need libyara: %s", why);
		reader->remark(RULES_REMARK_ERROR, source->file, 0, reason);
		return -EINVAL;
	}
	if (yara == NULL) {
		yara = calloc(1, sizeof(*yara));
		reader->rules->yara = yara;
	}
	sources = yara == NULL ? NULL
			       : growing_make_room(yara->sources, yara->source_count,
					 &yara->source_capacity, sizeof(*sources));
	if (sources == NULL) {
		return -ENOMEM;
	}
	yara->sources = sources;
	sources[yara->source_count++] = (struct yara_source){
		.file = source->file, .bytes = source->bytes, .length = source->length};
	source->bytes = NULL;
	return 0;
}

#if defined(HAVE_YARA)
static int compare_names(const void *left, const void *right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* The names of rules that are shown, sorted. */
struct names {
	const char **items;
	size_t count;
};

static bool is_repeated(const struct names *names, const char *name)
{
	const char **place =
		bsearch(&name, names->items, names->count, sizeof(*names->items), compare_names);
	size_t index = (size_t)(place - names->items);

	return (index > 0 && strcmp(names->items[index - 1], name) == 0) ||
		(index + 1 < names->count && strcmp(names->items[index + 1], name) == 0);
}

static size_t source_of(const YR_RULE *rule)
{
	return strtoul(rule->ns->name, NULL, 10);
}

/* The part of a path that stands for the file in ids. */
static const char *stem_of(const char *file, int *out_length)
{
	const char *slash = strrchr(file, '/');
	const char *stem = slash != NULL ? slash + 1 : file;
	const char *dot = strrchr(stem, '.');

	*out_length = dot != NULL && dot != stem ? (int)(dot - stem) : (int)strlen(stem);
	return stem;
}

/* Another file has the same, in another folder perhaps. */
static bool shares_stem(const struct yara_rules *yara, size_t index)
{
	int length;
	const char *stem = stem_of(yara->sources[index].file, &length);

	for (size_t i = 0; i < yara->source_count; i++) {
		int other_length;
		const char *other = stem_of(yara->sources[i].file, &other_length);

		if (i != index && other_length == length &&
			memcmp(other, stem, (size_t)length) == 0) {
			return true;
		}
	}
	return false;
}

static void write_id(
	const struct yara_rules *yara, size_t index, const char *name, char out_id[ID_BYTES + 1])
{
	char number[24] = "";
	int length;
	const char *stem = stem_of(yara->sources[index].file, &length);
	int room;

	if (shares_stem(yara, index)) {
		snprintf(number, sizeof(number), ".%zu", index + 1);
	}
	room = ID_BYTES - 1 - (int)strlen(name) - (int)strlen(number);
	length = length > room ? room : length;
	if (length <= 0) {
		snprintf(out_id, ID_BYTES + 1, "%s", name);
		return;
	}
	snprintf(out_id, ID_BYTES + 1, "%.*s%s:%s", length, stem, number, name);
	for (int i = 0; i < length; i++) {
		out_id[i] = rules_is_id(out_id + i, 1) ? out_id[i] : '_';
	}
}

static const char *description_of(const YR_RULE *rule)
{
	YR_META *meta;

	yr_rule_metas_foreach(rule, meta)
	{
		if (meta->type == META_TYPE_STRING &&
			strcmp(meta->identifier, "description") == 0) {
			return meta->string;
		}
	}
	return NULL;
}

static int add_rule(
	const struct rules_reader *reader, const YR_RULE *rule, const struct names *names)
{
	struct rules *rules = reader->rules;
	size_t index = source_of(rule);
	const char *file = rules->yara->sources[index].file;
	char id[ID_BYTES + 1];
	int error;

	snprintf(id, sizeof(id), "%s", rule->identifier);
	if (is_repeated(names, rule->identifier)) {
		write_id(rules->yara, index, rule->identifier, id);
	}
	error = rules_add_yara(rules, id, description_of(rule), file);
	if (error == -E2BIG) {
		char reason[RULES_REASON_BYTES];

		rules_limit_reason(rules, 0, reason);
		reader->remark(RULES_REMARK_ERROR, file, 0, reason);
		return -EINVAL;
	}
	rules->yara->sources[index].rule_count++;
	return error;
}

static int add_rules(const struct rules_reader *reader, uint32_t count, const struct names *names)
{
	struct yara_rules *yara = reader->rules->yara;
	int error = 0;

	for (uint32_t i = 0; i < count && error == 0; i++) {
		yara->indices[i] = UINT32_MAX;
		if (!RULE_IS_PRIVATE(&yara->first[i])) {
			yara->indices[i] = rules_total(reader->rules);
			error = add_rule(reader, &yara->first[i], names);
		}
	}
	return error;
}

static int list_rules(const struct rules_reader *reader)
{
	struct yara_rules *yara = reader->rules->yara;
	struct names names = {.count = 0};
	uint32_t count = 0;
	YR_RULE *rule;
	int error = -ENOMEM;

	yr_rules_foreach(yara->compiled, rule)
	{
		yara->first = count++ == 0 ? rule : yara->first;
	}
	names.items = calloc((size_t)count + 1, sizeof(*names.items));
	yara->indices = calloc((size_t)count + 1, sizeof(*yara->indices));
	if (names.items != NULL && yara->indices != NULL) {
		for (uint32_t i = 0; i < count; i++) {
			if (!RULE_IS_PRIVATE(&yara->first[i])) {
				names.items[names.count++] = yara->first[i].identifier;
			}
		}
		qsort(names.items, names.count, sizeof(*names.items), compare_names);
		error = add_rules(reader, count, &names);
	}
	free(names.items);
	return error;
}

/* Of private rules alone nothing is shown: other files do not see them. */
static int check_counts(const struct rules_reader *reader)
{
	const struct yara_rules *yara = reader->rules->yara;
	int error = 0;

	for (size_t i = 0; i < yara->source_count; i++) {
		if (yara->sources[i].rule_count == 0) {
			reader->remark(
				RULES_REMARK_ERROR, yara->sources[i].file, 0, "has no rules");
			error = -EINVAL;
		}
	}
	return error;
}

/* Of a match its place is all that is asked for, and a file may have many. */
static bool initialise(struct yara_rules *yara)
{
	uint32_t match_bytes = 0;

	yara->is_initialised = yara_library.yr_initialize() == ERROR_SUCCESS;
	return yara->is_initialised &&
		yara_library.yr_set_configuration(YR_CONFIG_MAX_MATCH_DATA, &match_bytes) ==
		ERROR_SUCCESS;
}

int yara_rules_compile(const struct rules_reader *reader)
{
	struct yara_rules *yara = reader->rules->yara;
	YR_COMPILER *compiler = NULL;
	int error = 0;

	if (!initialise(yara) || yara_library.yr_compiler_create(&compiler) != ERROR_SUCCESS) {
		return -ENOMEM;
	}
	error = yara_defines_apply(reader->yara_defines, compiler);
	for (size_t i = 0; i < yara->source_count && error == 0; i++) {
		error = yara_compile_file(reader, compiler, i);
	}
	if (error == 0 &&
		yara_library.yr_compiler_get_rules(compiler, &yara->compiled) != ERROR_SUCCESS) {
		error = -ENOMEM;
	}
	yara_library.yr_compiler_destroy(compiler);
	if (error == 0) {
		error = list_rules(reader);
	}
	return error == 0 ? check_counts(reader) : error;
}

const char *yara_rules_string(const struct yara_rules *yara, uint32_t number)
{
	return number == 0 ? NULL : yara->compiled->strings_table[number - 1].identifier;
}

static void destroy_compiled(struct yara_rules *yara)
{
	if (yara->compiled != NULL) {
		yara_library.yr_rules_destroy(yara->compiled);
	}
	if (yara->is_initialised) {
		yara_library.yr_finalize();
	}
	free(yara->indices);
}
#else
int yara_rules_compile(const struct rules_reader *reader)
{
	(void)reader;
	return -EINVAL;
}

const char *yara_rules_string(const struct yara_rules *yara, uint32_t number)
{
	(void)yara;
	(void)number;
	return NULL;
}

static void destroy_compiled(struct yara_rules *yara)
{
	(void)yara;
}
#endif

void yara_rules_destroy(struct yara_rules *yara)
{
	if (yara == NULL) {
		return;
	}
	destroy_compiled(yara);
	for (size_t i = 0; i < yara->source_count; i++) {
		free(yara->sources[i].bytes);
	}
	free(yara->sources);
	free(yara);
}
