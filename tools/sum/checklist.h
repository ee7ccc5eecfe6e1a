/* SPDX-License-Identifier: MIT */
/*
 * Lines of checksum lists, written and read as sha256sum (coreutils 9.1),
 * b3sum and xxhsum do:
 *
 *   HEX  PATH            GNU; "*" instead of the second space: binary mode
 *   HEX PATH             BSD reversed; never mixed with the form above
 *   TAG (PATH) = HEX     BSD
 *   XXH3_HEX  PATH       xxhsum 0.8.2 and later
 *
 * A leading backslash says that in PATH newline, carriage return and
 * backslash are written \n, \r and \\. xxhsum before 0.8.2 escapes nothing, so
 * a name with a newline breaks its own lists; there we write what its later
 * versions and coreutils write.
 */
#ifndef PINION_TOOLS_SUM_CHECKLIST_H
#define PINION_TOOLS_SUM_CHECKLIST_H

#include "tools/output_text.h"
#include "tools/sum/digest.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How lines are written. */
struct checklist_style {
	bool is_tagged; /* BSD form, whatever the algorithm's own form is */
	bool is_nul;	/* lines end in NUL and nothing is escaped */
	bool is_shown;	/* to a person: escaped although lines end in NUL */
};

/* Appends one line with its end. */
void checklist_append_line(struct output_text *text, const struct digest_algorithm *algorithm,
	const uint8_t *digest, const char *path, struct checklist_style style);

/* Appends "PATH: VERDICT\n", the path escaped if it has a newline. */
void checklist_append_verdict(struct output_text *text, const char *path, const char *verdict);

enum checklist_kind {
	CHECKLIST_ENTRY = 0, /* a path and what its digest should be */
	CHECKLIST_BLANK = 1, /* empty, or a comment */
	CHECKLIST_BAD = 2,   /* improperly formatted */
};

enum checklist_gap {
	CHECKLIST_GAP_UNKNOWN = 0,
	CHECKLIST_GAP_TWO = 1, /* HEX  PATH */
	CHECKLIST_GAP_ONE = 2, /* HEX PATH */
};

/* A list while it is read. Zero-initialise but for `only`. */
struct checklist {
	/*
	 * The algorithm of every line; NULL: what tag and length say, 64 digits
	 * sha256, 40 sha1, 32 xxh3-128. Lines of b3sum and md5sum have as many
	 * as these, so they need it named here; so do 16 digits, xxh3-64, which
	 * without a tag are XXH64 to xxhsum.
	 */
	const struct digest_algorithm *only;
	/* Once settled it stays, or a path with a leading space could hide. */
	enum checklist_gap gap;
	/* Of the last untagged line whose length several algorithms have. */
	const struct digest_algorithm *guessed;
};

struct checklist_entry {
	const struct digest_algorithm *algorithm;
	uint8_t digest[DIGEST_BYTES_MAX];
	char *path; /* inside the line, unescaped, NUL-terminated */
};

/* Parses a line without its newline, in place. */
enum checklist_kind checklist_parse(
	struct checklist *list, char *line, size_t length, struct checklist_entry *out_entry);

#endif
