/* SPDX-License-Identifier: MIT */
/*
 * External variables of YARA rules, as --yara-define gives them.
 *
 * The value decides on the type, as in `yara -d`: digits are an integer, digits
 * with one point among them a float, each perhaps after a minus sign; `true`
 * and `false` are booleans, and all else is a string.
 */
#ifndef PINION_TOOLS_SCAN_YARA_DEFINES_H
#define PINION_TOOLS_SCAN_YARA_DEFINES_H

#include "tools/scan/yara_library.h"

#include <stdbool.h>
#include <stdint.h>

#define YARA_SPEC_DEFINE \
	0, "yara-define", "NAME=VALUE", "the external variable NAME of YARA rules", \
		"VALUE is an integer, a number with a point, true, false, or else a string. May " \
		"be given several times."

enum yara_define_type {
	YARA_DEFINE_INTEGER,
	YARA_DEFINE_FLOAT,
	YARA_DEFINE_BOOLEAN,
	YARA_DEFINE_STRING,
};

struct yara_define {
	const char *text; /* NAME=VALUE, as it was given */
	char *name;
	const char *value; /* within `text` */
	enum yara_define_type type;
	int64_t integer; /* also of a boolean: 0 or 1 */
	double number;
};

/* Zero-initialise. */
struct yara_defines {
	struct yara_define *items;
	uint32_t count;
};

/*
 * Adds NAME=VALUE, which has to outlive the list. False: it is bad, or NAME is
 * there already, or no memory, which is reported.
 */
bool yara_defines_parse(struct yara_defines *defines, const char *text);
void yara_defines_fini(struct yara_defines *defines);

#if defined(HAVE_YARA)
/* Before the first file. Returns 0 or -ENOMEM. */
int yara_defines_apply(const struct yara_defines *defines, YR_COMPILER *compiler);
#endif

#endif
