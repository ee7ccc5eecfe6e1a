/* SPDX-License-Identifier: MIT */
/*
 * An intrusive singly linked FIFO list: links live in the elements, so
 * queueing allocates nothing. Not thread-safe.
 */
#ifndef PIN_BASE_LIST_H
#define PIN_BASE_LIST_H

#include "runtime/base/check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pin_link {
	struct pin_link *next;
};

struct pin_list {
	struct pin_link *head;
	struct pin_link *tail;
};

/* 0 if it is empty: several can be ORed into one test. */
static inline uintptr_t pin_list_bits(const struct pin_list *list)
{
	const struct pin_link *head = list->head;

	return (uintptr_t)head;
}

static inline bool pin_list_is_empty(const struct pin_list *list)
{
	return list->head == NULL;
}

static inline bool pin_list_has_several(const struct pin_list *list)
{
	return list->head != NULL && list->head->next != NULL;
}

static inline void pin_list_push(struct pin_list *list, struct pin_link *link)
{
	PIN_DCHECK(list->head == NULL || list->tail->next == NULL);
	PIN_DCHECK(list->head == NULL || list->tail != link); /* it is there already */
	link->next = NULL;
	if (list->head == NULL) {
		list->head = link;
	} else {
		list->tail->next = link;
	}
	list->tail = link;
}

static inline struct pin_link *pin_list_pop(struct pin_list *list)
{
	struct pin_link *link = list->head;

	if (link != NULL) {
		PIN_DCHECK(link != list->tail || link->next == NULL);
		list->head = link->next;
	}
	return link;
}

/* Moves all of `from` to the end of `to` and leaves `from` empty. */
static inline void pin_list_append(struct pin_list *to, struct pin_list *from)
{
	PIN_DCHECK(to != from);
	if (from->head == NULL) {
		return;
	}
	PIN_DCHECK(from->tail->next == NULL);
	PIN_DCHECK(to->head == NULL || to->tail->next == NULL);
	if (to->head == NULL) {
		to->head = from->head;
	} else {
		to->tail->next = from->head;
	}
	to->tail = from->tail;
	from->head = NULL;
}

#endif
