/* SPDX-License-Identifier: MIT */
/*
 * Files of YARA rules.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tools/scan/yara_rules.h"

#include "tools/growing.h"
#include "tools/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ID_BYTES = 128, REASON_BYTES = 512, ERRORS_MAX = 20 };

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
/* A file that another one includes: by which name, and where it is. */
struct include {
	char *name;
	char *path;
};

/* A file of the command line that libyara reads. */
struct compiling {
	const struct rules_reader *reader;
	const char *file;
	uint32_t error_count;
	uint32_t warning_count;
	uint32_t first_line; /* of the first warning */
	char first[REASON_BYTES];
	struct include *includes; /* in the order in which they were read */
	size_t include_count;
	size_t include_capacity;
	char missing[REASON_BYTES]; /* why an include fails; empty: none does */
};

/*
 * libyara knows files by the names that they are included by. The last of a
 * name is meant: it refuses one that is included while another is being read.
 */
static const char *path_of(const struct compiling *compiling, const char *name)
{
	for (size_t i = compiling->include_count; name != NULL && i > 0; i--) {
		if (strcmp(compiling->includes[i - 1].name, name) == 0) {
			return compiling->includes[i - 1].path;
		}
	}
	return compiling->file;
}

static void on_message(int level, const char *file_name, int line, const YR_RULE *rule,
	const char *message, void *user_data)
{
	struct compiling *compiling = user_data;
	const char *file = path_of(compiling, file_name);
	bool is_unknown = strncmp(message, "undefined identifier", 20) == 0;
	char reason[REASON_BYTES + 64];

	(void)rule;
	snprintf(reason, sizeof(reason), "%s%s",
		compiling->missing[0] != '\0' ? compiling->missing : message,
		is_unknown ? "; pinion has no external variables" : "");
	if (level != YARA_ERROR_LEVEL_ERROR) {
		if (compiling->warning_count++ == 0) {
			compiling->first_line = (uint32_t)line;
			snprintf(compiling->first, sizeof(compiling->first), "%s", message);
		}
		return;
	}
	compiling->missing[0] = '\0';
	if (compiling->error_count++ < ERRORS_MAX) {
		compiling->reader->remark(RULES_REMARK_ERROR, file, (uint32_t)line, reason);
	}
}

/* Seen from the file that includes it; "-" there is no standard input. */
static char *beside(const char *from, const char *name)
{
	const char *slash = strrchr(from, '/');
	char *path;
	int length;

	if (name[0] == '/') {
		return strdup(name);
	}
	length = slash == NULL ? asprintf(&path, "./%s", name)
			       : asprintf(&path, "%.*s/%s", (int)(slash - from), from, name);
	return length < 0 ? NULL : path;
}

/* NULL: no memory. */
static const char *add_include(struct compiling *compiling, const char *name, const char *from)
{
	struct include *includes = growing_make_room(compiling->includes, compiling->include_count,
		&compiling->include_capacity, sizeof(*includes));
	struct include include = {.name = strdup(name), .path = beside(from, name)};

	compiling->includes = includes != NULL ? includes : compiling->includes;
	if (includes == NULL || include.name == NULL || include.path == NULL) {
		free(include.name);
		free(include.path);
		return NULL;
	}
	includes[compiling->include_count++] = include;
	return include.path;
}

static const char *on_include(
	const char *name, const char *from, const char *name_space, void *user_data)
{
	struct compiling *compiling = user_data;
	struct rules_source source = {.file = NULL};
	char reason[RULES_SOURCE_REASON_BYTES] = "";
	int error = -ENOMEM;

	(void)name_space;
	if (compiling->reader->has_one_file) {
		snprintf(compiling->missing, sizeof(compiling->missing),
			"includes %s, whose changes --checkpoint would not see", name);
		return NULL;
	}
	source.file = add_include(compiling, name, path_of(compiling, from));
	if (source.file != NULL) {
		error = rules_source_read(compiling->reader, &source, reason);
	}
	if (error != 0) {
		snprintf(compiling->missing, sizeof(compiling->missing), "cannot include %s: %s",
			name, reason[0] != '\0' ? reason : report_reason(error));
		free(source.bytes);
		return NULL;
	}
	return source.bytes;
}

static void on_include_free(const char *bytes, void *user_data)
{
	(void)user_data;
	free((char *)(uintptr_t)bytes);
}

static void forget_includes(struct compiling *compiling)
{
	for (size_t i = 0; i < compiling->include_count; i++) {
		free(compiling->includes[i].name);
		free(compiling->includes[i].path);
	}
	free(compiling->includes);
}

static void note_warnings(const struct compiling *compiling)
{
	char reason[REASON_BYTES + 64];

	if (compiling->warning_count > 0) {
		snprintf(reason, sizeof(reason), "%s%s (%u warning%s of libyara)", compiling->first,
			compiling->warning_count > 1 ? ", …" : "", compiling->warning_count,
			compiling->warning_count > 1 ? "s" : "");
		compiling->reader->remark(
			RULES_REMARK_NOTE, compiling->file, compiling->first_line, reason);
	}
}

static int compile_file(const struct rules_reader *reader, YR_COMPILER *compiler, size_t index)
{
	struct yara_source *source = &reader->rules->yara->sources[index];
	struct compiling compiling = {.reader = reader, .file = source->file};
	char name_space[24];
	FILE *stream;

	if (source->length == 0) {
		return 0;
	}
	stream = fmemopen(source->bytes, source->length, "r");
	if (stream == NULL) {
		return -ENOMEM;
	}
	snprintf(name_space, sizeof(name_space), "%zu", index);
	yara_library.yr_compiler_set_callback(compiler, on_message, &compiling);
	yara_library.yr_compiler_set_include_callback(
		compiler, on_include, on_include_free, &compiling);
	if (yara_library.yr_compiler_add_file(compiler, stream, name_space, source->file) != 0 &&
		compiling.error_count == 0) {
		reader->remark(
			RULES_REMARK_ERROR, source->file, 0, "libyara cannot compile the rules");
		compiling.error_count = 1;
	}
	fclose(stream);
	if (compiling.error_count == 0) {
		note_warnings(&compiling);
	}
	forget_includes(&compiling);
	return compiling.error_count == 0 ? 0 : -EINVAL;
}

/* ---- the list of rules ---- */

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

static const char *file_of(const struct yara_rules *yara, const YR_RULE *rule)
{
	return yara->sources[strtoul(rule->ns->name, NULL, 10)].file;
}

static void write_id(const char *file, const char *name, char out_id[ID_BYTES + 1])
{
	const char *slash = strrchr(file, '/');
	const char *stem = slash != NULL ? slash + 1 : file;
	const char *dot = strrchr(stem, '.');
	int length = dot != NULL && dot != stem ? (int)(dot - stem) : (int)strlen(stem);
	int room = ID_BYTES - 1 - (int)strlen(name);

	length = length > room ? room : length;
	if (length <= 0) {
		snprintf(out_id, ID_BYTES + 1, "%s", name);
		return;
	}
	snprintf(out_id, ID_BYTES + 1, "%.*s:%s", length, stem, name);
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
	const char *file = file_of(rules->yara, rule);
	char id[ID_BYTES + 1];
	int error;

	snprintf(id, sizeof(id), "%s", rule->identifier);
	if (is_repeated(names, rule->identifier)) {
		write_id(file, rule->identifier, id);
	}
	error = rules_add_yara(rules, id, description_of(rule), file);
	if (error == -E2BIG) {
		char reason[RULES_REASON_BYTES];

		rules_limit_reason(rules, 0, reason);
		reader->remark(RULES_REMARK_ERROR, file, 0, reason);
		return -EINVAL;
	}
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

static int check_count(const struct rules_reader *reader)
{
	if (reader->rules->yara_count == 0) {
		reader->remark(RULES_REMARK_ERROR, reader->rules->yara->sources[0].file, 0,
			"has no rules");
		return -EINVAL;
	}
	return 0;
}

int yara_rules_compile(const struct rules_reader *reader)
{
	struct yara_rules *yara = reader->rules->yara;
	YR_COMPILER *compiler = NULL;
	int error = 0;

	yara->is_initialised = yara_library.yr_initialize() == ERROR_SUCCESS;
	if (!yara->is_initialised || yara_library.yr_compiler_create(&compiler) != ERROR_SUCCESS) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < yara->source_count && error == 0; i++) {
		error = compile_file(reader, compiler, i);
	}
	if (error == 0 &&
		yara_library.yr_compiler_get_rules(compiler, &yara->compiled) != ERROR_SUCCESS) {
		error = -ENOMEM;
	}
	yara_library.yr_compiler_destroy(compiler);
	if (error == 0) {
		error = list_rules(reader);
	}
	return error == 0 ? check_count(reader) : error;
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
