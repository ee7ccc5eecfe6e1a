/* SPDX-License-Identifier: MIT */
/*
 * External variables: parsed here, stored by libyara.
 */
#include "tools/scan/yara_defines.h"

#include "tools/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES_MAX = 128 };

static bool is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

static bool is_name(const char *name, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		bool is_letter = (name[i] >= 'a' && name[i] <= 'z') ||
			(name[i] >= 'A' && name[i] <= 'Z') || name[i] == '_';

		if (!is_letter && (i == 0 || !is_digit(name[i]))) {
			return false;
		}
	}
	return length > 0 && length <= NAME_BYTES_MAX;
}

static enum yara_define_type type_of(const char *value)
{
	const char *digits = value[0] == '-' ? value + 1 : value;
	size_t length = strspn(digits, "0123456789");

	if (strcmp(value, "true") == 0 || strcmp(value, "false") == 0) {
		return YARA_DEFINE_BOOLEAN;
	}
	if (length > 0 && digits[length] == '\0') {
		return YARA_DEFINE_INTEGER;
	}
	if (length > 0 && digits[length] == '.' &&
		digits[length + 1 + strspn(digits + length + 1, "0123456789")] == '\0') {
		return YARA_DEFINE_FLOAT;
	}
	return YARA_DEFINE_STRING;
}

/* False: reported. */
static bool parse_value(struct yara_define *define)
{
	define->type = type_of(define->value);
	errno = 0;
	switch (define->type) {
	case YARA_DEFINE_INTEGER:
		define->integer = strtoll(define->value, NULL, 10);
		break;
	case YARA_DEFINE_FLOAT:
		define->number = strtod(define->value, NULL);
		break;
	case YARA_DEFINE_BOOLEAN:
		define->integer = define->value[0] == 't';
		break;
	case YARA_DEFINE_STRING:
	default:
		break;
	}
	if (errno == ERANGE) {
		report_line("--yara-define: %s is beyond the numbers of YARA, which have 64 bits",
			define->text);
		return false;
	}
	return true;
}

static bool is_defined(const struct yara_defines *defines, const char *name, size_t length)
{
	for (uint32_t i = 0; i < defines->count; i++) {
		if (strlen(defines->items[i].name) == length &&
			memcmp(defines->items[i].name, name, length) == 0) {
			return true;
		}
	}
	return false;
}

bool yara_defines_parse(struct yara_defines *defines, const char *text)
{
	const char *equals = strchr(text, '=');
	size_t length = equals == NULL ? 0 : (size_t)(equals - text);
	struct yara_define define = {.text = text};
	struct yara_define *items;

	if (!is_name(text, length)) {
		report_line("--yara-define: '%s' is not NAME=VALUE, with a NAME of letters, digits "
			    "and _",
			text);
		return false;
	}
	if (is_defined(defines, text, length)) {
		report_line("--yara-define: %.*s is defined twice", (int)length, text);
		return false;
	}
	define.value = equals + 1;
	if (!parse_value(&define)) {
		return false;
	}
	items = realloc(defines->items, ((size_t)defines->count + 1) * sizeof(*items));
	defines->items = items != NULL ? items : defines->items;
	define.name = items != NULL ? strndup(text, length) : NULL;
	if (define.name == NULL) {
		report_line("%s", report_reason(ENOMEM));
		return false;
	}
	items[defines->count++] = define;
	return true;
}

void yara_defines_fini(struct yara_defines *defines)
{
	for (uint32_t i = 0; i < defines->count; i++) {
		free(defines->items[i].name);
	}
	free(defines->items);
	*defines = (struct yara_defines){.items = NULL};
}

#if defined(HAVE_YARA)
static int apply(const struct yara_define *define, YR_COMPILER *compiler)
{
	switch (define->type) {
	case YARA_DEFINE_INTEGER:
		return yara_library.yr_compiler_define_integer_variable(
			compiler, define->name, define->integer);
	case YARA_DEFINE_FLOAT:
		return yara_library.yr_compiler_define_float_variable(
			compiler, define->name, define->number);
	case YARA_DEFINE_BOOLEAN:
		return yara_library.yr_compiler_define_boolean_variable(
			compiler, define->name, (int)define->integer);
	case YARA_DEFINE_STRING:
	default:
		return yara_library.yr_compiler_define_string_variable(
			compiler, define->name, define->value);
	}
}

/* Names and values are good, and no name is there twice. */
int yara_defines_apply(const struct yara_defines *defines, YR_COMPILER *compiler)
{
	for (uint32_t i = 0; defines != NULL && i < defines->count; i++) {
		if (apply(&defines->items[i], compiler) != ERROR_SUCCESS) {
			return -ENOMEM;
		}
	}
	return 0;
}
#endif
