/* SPDX-License-Identifier: MIT */
/*
 * A list by index: there are as many as windows are searched at a time.
 */
#include "tools/scan/early_windows.h"

#include <errno.h>
#include <stdlib.h>

void early_windows_free(struct early_window *window)
{
	candidates_free(&window->yield.found);
	snippets_free(&window->yield.snippets);
	free(window);
}

int early_windows_add(struct early_window **list, const struct pinion_window *window,
	const struct engine_yield *yield)
{
	struct early_window *kept = calloc(1, sizeof(*kept));
	struct early_window **place = list;

	if (kept == NULL) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < yield->found.count; i++) {
		if (candidates_add(&kept->yield.found, &yield->found.items[i]) != 0) {
			early_windows_free(kept);
			return -ENOMEM;
		}
	}
	if (snippets_add_all(&kept->yield.snippets, &yield->snippets) != 0) {
		early_windows_free(kept);
		return -ENOMEM;
	}
	kept->index = window->index;
	kept->yield.complete_to = yield->complete_to;
	while (*place != NULL && (*place)->index < kept->index) {
		place = &(*place)->next;
	}
	kept->next = *place;
	*place = kept;
	return 0;
}

struct early_window *early_windows_take(struct early_window **list, uint64_t next_index, bool all)
{
	struct early_window *window = *list;

	if (window == NULL || (!all && window->index != next_index)) {
		return NULL;
	}
	*list = window->next;
	return window;
}
