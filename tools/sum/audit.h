/* SPDX-License-Identifier: MIT */
/*
 * `pinion sum -c --audit=DIR`: which files below a directory no list names.
 *
 * Paths are compared as text, once "//" and "/./" are single slashes and
 * relative ones begin with the current directory; so a path that leads to its
 * file through "..", or through a symbolic link, names another file here.
 */
#ifndef PINION_TOOLS_SUM_AUDIT_H
#define PINION_TOOLS_SUM_AUDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The paths that the lists name. All zero: none yet. One thread at a time. */
struct audit {
	char *folder; /* the current one; NULL: not known yet */
	char **paths;
	size_t count;
	size_t capacity;
	bool is_sorted;
};

/* Returns 0 or -ENOMEM. */
int audit_add(struct audit *audit, const char *path);

struct audit_search {
	char *const *lists; /* files that are never reported; "-" is none */
	int list_count;
	bool skip_ignored;
	void (*report)(void *arg, const char *path); /* in the order of the walk */
	void *arg;
	uint64_t new_count; /* out: reported so far */
};

/*
 * Reports each file below `root` that audit_add() was not called for. Returns
 * 0, or a negative errno: -ECANCELED after a signal; otherwise some of `root`
 * could not be searched, which has a line on stderr.
 */
int audit_search(struct audit *audit, const char *root, struct audit_search *search);

void audit_fini(struct audit *audit);

#endif
