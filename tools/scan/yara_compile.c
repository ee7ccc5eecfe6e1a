/* SPDX-License-Identifier: MIT */
/*
 * libyara's compiler asks for included files, and names the mistake.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tools/scan/yara_compile.h"

#if defined(HAVE_YARA)
#include "tools/growing.h"
#include "tools/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REASON_BYTES = 512, MESSAGE_BYTES = REASON_BYTES + 64, ERRORS_MAX = 20 };

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
 * name is meant: it refuses a file that is included while another is being
 * read.
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

static void write_reason(
	const struct compiling *compiling, const char *message, char out_reason[MESSAGE_BYTES])
{
	static const char unknown[] = "undefined identifier \"";
	const char *name = message + sizeof(unknown) - 1;

	if (compiling->missing[0] != '\0') {
		snprintf(out_reason, MESSAGE_BYTES, "%s", compiling->missing);
	} else if (strncmp(message, unknown, sizeof(unknown) - 1) == 0) {
		snprintf(out_reason, MESSAGE_BYTES,
			"%.200s; --yara-define=%.*s=VALUE defines an external "
			"variable, `import` a module",
			message, (int)strcspn(name, "\""), name);
	} else {
		snprintf(out_reason, MESSAGE_BYTES, "%s", message);
	}
}

static void on_message(int level, const char *file_name, int line, const YR_RULE *rule,
	const char *message, void *user_data)
{
	struct compiling *compiling = user_data;
	const char *file = path_of(compiling, file_name);
	char reason[MESSAGE_BYTES];

	(void)rule;
	write_reason(compiling, message, reason);
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

int yara_compile_file(const struct rules_reader *reader, YR_COMPILER *compiler, size_t index)
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
#endif
