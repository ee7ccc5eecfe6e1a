/* SPDX-License-Identifier: MIT */
/*
 * Lines in a circle.
 */
#include "runtime/io/device.h"
#include "runtime/base/check.h"

void pin_lines_init(struct pin_lines *lines)
{
	lines->free = NULL;
	for (uint32_t i = PIN_LINES; i > 0; i--) {
		struct pin_line *line = &lines->lines[i - 1];

		line->next = lines->free;
		lines->free = line;
	}
}

void pin_lineup_init(struct pin_lineup *lineup)
{
	*lineup = (struct pin_lineup){.last = NULL};
}

/* Behind all others. */
static void join(struct pin_lineup *lineup, struct pin_line *line, const struct pinion_file *file)
{
	line->file = file;
	pin_flight_list_init(&line->requests);
	if (lineup->last == NULL) {
		line->next = line;
	} else {
		line->next = lineup->last->next;
		lineup->last->next = line;
	}
	lineup->last = line;
}

static struct pin_line *find(struct pin_lineup *lineup, const struct pinion_file *file)
{
	struct pin_line *line = lineup->last;

	if (line == NULL) {
		return NULL;
	}
	do {
		if (line->file == file) {
			return line;
		}
		line = line->next;
	} while (line != lineup->last);
	return NULL;
}

static struct pin_line *find_or_join(
	struct pin_lineup *lineup, struct pin_lines *lines, const struct pinion_file *file)
{
	struct pin_line *line = find(lineup, file);

	if (line != NULL) {
		return line;
	}
	line = lines->free;
	if (line != NULL) {
		lines->free = line->next;
		join(lineup, line, file);
		return line;
	}
	line = find(lineup, NULL);
	if (line == NULL) {
		line = &lineup->rest;
		join(lineup, line, NULL);
	}
	return line;
}

void pin_lineup_push(
	struct pin_lineup *lineup, struct pin_lines *lines, struct pinion_request *request)
{
	struct pin_line *line = find_or_join(lineup, lines, request->file);

	pin_flight_list_push(&line->requests, &pin_request_of(request)->link);
	lineup->count++;
}

/* The one that has its turn, which is empty. */
static void dissolve(struct pin_lineup *lineup, struct pin_lines *lines)
{
	struct pin_line *line = lineup->last->next;

	if (line == lineup->last) {
		lineup->last = NULL;
	} else {
		lineup->last->next = line->next;
	}
	if (line != &lineup->rest) {
		line->next = lines->free;
		lines->free = line;
	}
}

struct pinion_request *pin_lineup_first(struct pin_lineup *lineup, struct pin_lines *lines)
{
	while (lineup->last != NULL) {
		struct pin_line *line = lineup->last->next;

		if (!pin_flight_list_is_empty(&line->requests)) {
			struct pin_request *private =
				PIN_CONTAINER_OF(line->requests.next, struct pin_request, link);

			return pin_flight_request(private);
		}
		dissolve(lineup, lines);
	}
	PIN_CHECK(lineup->count == 0);
	return NULL;
}

void pin_lineup_pop(struct pin_lineup *lineup)
{
	struct pin_line *line = lineup->last->next;

	PIN_CHECK(!pin_flight_list_is_empty(&line->requests));
	pin_flight_list_remove(line->requests.next);
	lineup->count--;
	lineup->last = line;
}
