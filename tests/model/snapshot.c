/* SPDX-License-Identifier: MIT */
/*
 * A stack of states, each a list of pieces of memory with their contents.
 */
#include "tests/model/snapshot.h"

#include <link.h>
#include <stdlib.h>
#include <string.h>

enum {
	STATES_MAX = 64,
	EXCLUDED_MAX = 16,
	ALIGN = 16,
};

/* By the linker: the program's static variables. */
extern uint8_t __data_start[], _end[];

struct piece {
	uint8_t *address;
	size_t bytes;
};

struct state {
	uint32_t position;
	uint32_t asked;
	uint8_t *contents; /* pieces, each followed by its bytes */
	size_t used;
	size_t capacity;
};

static struct {
	struct state states[STATES_MAX];
	uint32_t count;
	struct piece excluded[EXCLUDED_MAX]; /* by address */
	uint32_t excluded_count;
	struct piece own_locals; /* thread-local variables */
	bool is_ready;
} snapshots;

void snapshot_exclude(const void *address, size_t bytes)
{
	uint32_t i = snapshots.excluded_count;

	if (i == EXCLUDED_MAX) {
		abort();
	}
	while (i > 0 && snapshots.excluded[i - 1].address > (const uint8_t *)address) {
		snapshots.excluded[i] = snapshots.excluded[i - 1];
		i--;
	}
	snapshots.excluded[i] = (struct piece){(uint8_t *)(uintptr_t)address, bytes};
	snapshots.excluded_count++;
}

/* The program's own is the first that the loader lists. */
static int note_own_locals(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	(void)bytes;
	(void)arg;
	for (uint32_t i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type == PT_TLS) {
			snapshots.own_locals =
				(struct piece){info->dlpi_tls_data, info->dlpi_phdr[i].p_memsz};
		}
	}
	return 1;
}

/* What no owner has excluded. */
static void add_statics(void)
{
	uint8_t *from = __data_start;

	for (uint32_t i = 0; i < snapshots.excluded_count; i++) {
		const struct piece *excluded = &snapshots.excluded[i];

		snapshot_add(from, (size_t)(excluded->address - from));
		from = excluded->address + excluded->bytes;
	}
	snapshot_add(from, (size_t)(_end - from));
}

void snapshot_begin(uint32_t position, uint32_t asked)
{
	struct state *state;

	if (!snapshots.is_ready) {
		snapshot_exclude(&snapshots, sizeof(snapshots));
		dl_iterate_phdr(note_own_locals, NULL);
		snapshots.is_ready = true;
	}
	while (snapshots.count > 0 && snapshots.states[snapshots.count - 1].position >= position) {
		snapshots.count--;
	}
	if (snapshots.count == STATES_MAX) {
		snapshots.count--;
	}
	state = &snapshots.states[snapshots.count];
	state->position = position;
	state->asked = asked;
	state->used = 0;
	snapshots.count++;
	add_statics();
	snapshot_add(snapshots.own_locals.address, snapshots.own_locals.bytes);
}

void snapshot_add(void *address, size_t bytes)
{
	struct state *state = &snapshots.states[snapshots.count - 1];
	struct piece piece = {address, bytes};
	size_t needed = state->used + sizeof(piece) + (bytes + ALIGN - 1) / ALIGN * ALIGN;

	if (bytes == 0) {
		return;
	}
	if (needed > state->capacity) {
		state->capacity = 2 * needed;
		state->contents = realloc(state->contents, state->capacity);
		if (state->contents == NULL) {
			abort();
		}
	}
	memcpy(state->contents + state->used, &piece, sizeof(piece));
	memcpy(state->contents + state->used + sizeof(piece), address, bytes);
	state->used = needed;
}

bool snapshot_restore(uint32_t depth, uint32_t *out_position, uint32_t *out_asked)
{
	const struct state *state;

	while (snapshots.count > 0 && snapshots.states[snapshots.count - 1].position >= depth) {
		snapshots.count--;
	}
	if (snapshots.count == 0) {
		return false;
	}
	state = &snapshots.states[snapshots.count - 1];
	for (size_t at = 0; at < state->used;) {
		struct piece piece;

		memcpy(&piece, state->contents + at, sizeof(piece));
		memcpy(piece.address, state->contents + at + sizeof(piece), piece.bytes);
		at += sizeof(piece) + (piece.bytes + ALIGN - 1) / ALIGN * ALIGN;
	}
	*out_position = state->position;
	*out_asked = state->asked;
	return true;
}
