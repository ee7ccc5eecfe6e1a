/* SPDX-License-Identifier: MIT */
/*
 * A finding as it is shown, and lists of them.
 */
#ifndef PINION_TOOLS_SCAN_FINDING_H
#define PINION_TOOLS_SCAN_FINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FINDING_CONTEXT = 512 };

struct finding {
	uint64_t start; /* absolute offsets; the match is [start, end) */
	uint64_t end;
	/* The secret within the match: of a plain rule all of it. */
	uint64_t secret_start;
	uint64_t secret_end;
	uint32_t rule;
	/*
	 * The first bytes of the match, for a redacted excerpt; all zero when
	 * they are not known (a rule without a longest match).
	 */
	uint8_t head[4];
	/*
	 * Bytes of the file from before the match to after it, at most
	 * FINDING_CONTEXT on each side. NULL: not kept; of plain rules they
	 * are where rules->keeps_text is set. Valid while it is shown.
	 */
	uint8_t *text;
	uint64_t text_start; /* offset of text[0] in the file */
	uint32_t text_bytes;
	uint32_t string; /* of a YARA rule: yara_rules_string(); 0: it has none */
	/* Its commit may have it: rule_subject.is_of_allowed_commit. */
	bool is_of_allowed_commit;
};

/* A growable list, the owner of its findings' texts. Zero-initialise. */
struct finding_list {
	struct finding *items;
	size_t count;
	size_t capacity;
};

/* Takes over `item->text`, which is malloc'ed, unless it fails: -ENOMEM. */
int finding_list_add(struct finding_list *list, const struct finding *item);

/* By start, then end, then rule: the order in which findings are shown. */
void finding_list_sort(struct finding_list *list);

/* Removes the first ones, and frees their texts. */
void finding_list_drop(struct finding_list *list, size_t count);

void finding_list_free(struct finding_list *list);

#endif
