/* SPDX-License-Identifier: MIT */
/*
 * Descriptors as words.
 */
#include "tests/model/event_model.h"
#include "tests/model/explorer.h"

#include <string.h>

enum { EVENTS_MAX = 4 };

static struct {
	uint32_t tokens;
	uint32_t edges;
	bool is_open;
} events[EVENTS_MAX];

void model_events_begin(void)
{
	memset(events, 0, sizeof(events));
}

void model_events_end(void)
{
	for (uint32_t i = 0; i < EVENTS_MAX; i++) {
		MODEL_CHECK(!events[i].is_open);
	}
}

static void check_open(int fd)
{
	if (fd < 0 || fd >= EVENTS_MAX || !events[fd].is_open) {
		model_fail("descriptor %d is used, which is closed", fd);
	}
}

/* No number twice, so that a use after its close is noticed. */
int model_event_create(void)
{
	for (int fd = 0; fd < EVENTS_MAX; fd++) {
		if (!events[fd].is_open && events[fd].edges == 0) {
			events[fd].is_open = true;
			return fd;
		}
	}
	model_fail("more than %d descriptors", EVENTS_MAX);
}

void model_event_raise(int fd)
{
	model_point();
	check_open(fd);
	events[fd].tokens++;
	events[fd].edges++;
	model_event(__func__, "raise", &events[fd], events[fd].tokens);
	MODEL_CHECK(events[fd].tokens == 1);
}

/* SKIP: it is taken for granted that there is a token. */
bool model_event_clear(int fd)
{
	bool is_there;

	model_point();
	check_open(fd);
	is_there = events[fd].tokens > 0;
	events[fd].tokens = 0;
	model_event(__func__, is_there ? "clear" : "not there", &events[fd], 0);
	return is_there || model_is_spoilt(MODEL_SKIP, __func__, "look");
}

void model_event_close(int fd)
{
	model_point();
	check_open(fd);
	events[fd].is_open = false;
	model_event(__func__, "close", &events[fd], 0);
}

bool model_event_is_readable(const void *fd)
{
	return events[*(const int *)fd].tokens > 0;
}

uint32_t model_event_edges(int fd)
{
	return events[fd].edges;
}
