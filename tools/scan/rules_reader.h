/* SPDX-License-Identifier: MIT */
/*
 * Reading files of rules: pinion's own lists, TOML as gitleaks and betterleaks
 * have it, and rules of YARA (yara_rules.h). The bytes decide which: the first
 * line that is neither empty nor a comment is a table or an assignment of TOML,
 * or the name ends in .toml; it begins a rule of YARA, or the name ends in .yar
 * or .yara.
 *
 * The files are a stranger's, as far as that goes: each has a size it may not
 * exceed, a pipe that brings nothing is given up, and a file of bytes that are
 * no text is refused by its first ones.
 */
#ifndef PINION_TOOLS_SCAN_RULES_READER_H
#define PINION_TOOLS_SCAN_RULES_READER_H

#include "tools/scan/rule_memory.h"
#include "tools/scan/rules.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum rules_remark {
	RULES_REMARK_ERROR,	  /* the rules are not what the file says */
	RULES_REMARK_UNSUPPORTED, /* pinion does without it */
	RULES_REMARK_NOTE,	  /* by design, for the reader to know */
};

struct yara_defines; /* yara_defines.h */

/* Called for each remark; `line` is 0 when it is about the whole file. */
typedef void (*rules_remark_fn)(
	enum rules_remark remark, const char *file, uint32_t line, const char *reason);

/* How files are read. All but the last field are inputs. */
struct rules_reader {
	struct rules *rules;
	rules_remark_fn remark;
	bool is_strict;	    /* unsupported parts are errors */
	bool names_all;	    /* not the first RULES_UNSUPPORTED_MAX of a file alone */
	bool with_examples; /* of the built-in set, where a file extends it */
	bool has_one_file;  /* YARA's includes are errors */
	const struct yara_defines *yara_defines; /* NULL: none */
	uint64_t silence_ns_max;		 /* of a pipe; 0: no limit */
	/* Rules that would ask a service about a secret. */
	uint32_t validated_count;
};

enum { RULES_UNSUPPORTED_MAX = 20 };

/*
 * Reads a file of either kind, and adds its rules. Remarks on all that is bad
 * in it, and ends at the first rule or byte beyond a limit. Returns 0; -EINVAL
 * after a remark; or another negative errno.
 */
int rules_reader_add(struct rules_reader *reader, const char *file);

/* ---- the steps of that ---- */

/* A file in memory. Zero-initialise. */
struct rules_source {
	const char *file; /* valid as long as the rules */
	char *bytes;	  /* NUL-terminated */
	size_t length;
	dev_t device; /* which file it is; loops are found by that */
	ino_t inode;
	/* The file that extends this one; NULL: a file of the command line. */
	const struct rules_source *parent;
	uint32_t depth;
};

enum { RULES_SOURCE_REASON_BYTES = 160 };

/*
 * Returns 0; -EINVAL with a reason; or another negative errno. `bytes` is to be
 * freed in any case.
 */
int rules_source_read(const struct rules_reader *reader, struct rules_source *source,
	char out_reason[RULES_SOURCE_REASON_BYTES]);

bool rules_source_is_toml(const struct rules_source *source);

/* As rules_reader_add(), of a file in memory. */
int rules_read_lines(struct rules_reader *reader, const struct rules_source *source);
int rules_read_toml(struct rules_reader *reader, const struct rules_source *source);

/* Whether output may hold this id as it is. */
bool rules_is_id(const char *id, size_t length);
extern const char rules_id_reason[];

#endif
