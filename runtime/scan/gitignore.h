/* SPDX-License-Identifier: MIT */
/*
 * The rules of one directory's ignore files: lines of gitignore(5), in the
 * order in which they stand; the last that matches decides.
 *
 * A line is sorted out once, into what kind of pattern it is, so that asking
 * for a name is a comparison for most: `name`, `*.suffix` and `path/to/name`
 * need no wildcards looked at. Texts are kept as they were read, rules say
 * where in them their patterns are.
 *
 * Used by the thread that walks; knows nothing of files.
 */
#ifndef PIN_SCAN_GITIGNORE_H
#define PIN_SCAN_GITIGNORE_H

#include "runtime/host/host.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A longer line names no path that Linux takes at once: PATH_MAX. */
enum { PIN_IGNORE_LINE_BYTES_MAX = 4096 };

struct pin_ignore_rule;

/* All zero but for the host, whose heap it is: none. */
struct pin_ignore_rules {
	const struct pin_host *host;
	char *text;
	size_t text_bytes;
	size_t text_capacity;
	struct pin_ignore_rule *items;
	size_t count;
	size_t capacity;
};

enum pin_ignore_verdict {
	PIN_IGNORE_SILENT, /* no rule is about it */
	PIN_IGNORE_HIDES,
	PIN_IGNORE_SHOWS, /* by a line that begins with `!` */
};

/* A path below the directory whose rules these are. */
struct pin_ignore_path {
	const char *bytes;
	size_t path_bytes;
	size_t name_bytes; /* its last part */
	bool is_directory;
};

/*
 * Room for the text of one more file; NULL: no memory. All texts together are
 * below 4 GiB.
 */
char *pin_ignore_rules_reserve(struct pin_ignore_rules *rules, size_t bytes);

/*
 * Takes over `bytes` bytes which have been written to what was reserved last.
 * -EILSEQ: they are no text, there is a NUL. -EFBIG: a line is too long.
 * -ENOMEM. Then none of it counts.
 */
int pin_ignore_rules_add(struct pin_ignore_rules *rules, size_t bytes);

enum pin_ignore_verdict pin_ignore_rules_decide(
	const struct pin_ignore_rules *rules, const struct pin_ignore_path *path);

/* Gives back what was reserved and has not come to anything. */
void pin_ignore_rules_trim(struct pin_ignore_rules *rules);

void pin_ignore_rules_fini(struct pin_ignore_rules *rules);

#endif
