/* SPDX-License-Identifier: MIT */
/*
 * Windows of a file that came before their turn: a list that a caller fills
 * with what an engine found in them, and takes them from in file order. It owns
 * copies of the candidates and snippets, since a yield is used again. The
 * caller's lock guards the list.
 */
#ifndef PINION_TOOLS_SCAN_EARLY_WINDOWS_H
#define PINION_TOOLS_SCAN_EARLY_WINDOWS_H

#include "tools/scan/engine.h"

#include <stdbool.h>

struct early_window {
	struct early_window *next;
	uint64_t index;
	struct engine_yield yield;
};

/* Keeps a copy of the yield, at the place of the window's index. -ENOMEM. */
int early_windows_add(struct early_window **list, const struct pinion_window *window,
	const struct engine_yield *yield);

/*
 * Removes the first window, which is then the caller's, if its index is
 * `next_index`, or, with `all`, whatever it is. NULL: there is none such.
 */
struct early_window *early_windows_take(struct early_window **list, uint64_t next_index, bool all);

/* Frees a window that was taken. */
void early_windows_free(struct early_window *window);

#endif
