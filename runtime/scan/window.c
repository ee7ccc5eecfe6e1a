/* SPDX-License-Identifier: MIT */
/*
 * Cuts a file into windows: the next claim, with its overlap, alignment and
 * holes.
 *
 * file_reader_track.c calls it under the reader's lock; pure arithmetic but for
 * the search for holes.
 */
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/scan/file_reader.h"

#include <errno.h>
#include <unistd.h>

enum {
	/*
	 * Buffers begin at a page, so a read at a multiple of this is copied
	 * to an address that is alike in its low bits. AMD's Zen 3 and 4 copy
	 * six times as slow where the target's are up to 31 ahead of the
	 * source's, as an overlap of a few bytes would have it.
	 */
	COPY_ALIGN_BYTES = 64,
};

/*
 * Where the hole that holds [from, start] ends, or `start` when there is none.
 */
static uint64_t hole_end(const struct pin_window_plan *plan, uint64_t from, uint64_t start)
{
	off_t found = lseek(plan->fd, (off_t)from, SEEK_DATA);
	uint64_t data;
	PIN_DCHECK(from <= start && start < plan->size_bytes);

	if (found < 0) {
		return errno == ENXIO ? plan->size_bytes : start;
	}
	data = (uint64_t)found;
	if (data >= plan->size_bytes) {
		return plan->size_bytes;
	}
	data = pin_round_down(data, PIN_PAGE_BYTES);
	return data > start ? data : start;
}

static bool claim_hole(struct pin_window_plan *plan, struct pin_window_claim *claim)
{
	uint64_t margin = pin_round_up(plan->overlap_bytes, PIN_PAGE_BYTES);
	uint64_t end;

	if (margin == 0) {
		margin = PIN_PAGE_BYTES;
	}
	if (claim->start < margin) {
		return false;
	}
	end = hole_end(plan, claim->start - margin, claim->start);
	if (end == claim->start) {
		return false;
	}
	PIN_DCHECK(end > claim->start && end <= plan->size_bytes);
	/* Invariant 2, of the window after the hole. */
	PIN_DCHECK(end % PIN_PAGE_BYTES == 0 || end == plan->size_bytes);
	claim->is_hole = true;
	claim->base = claim->start;
	claim->end = end;
	return true;
}

static void claim_data(const struct pin_window_plan *plan, struct pin_window_claim *claim)
{
	uint64_t prefix = plan->overlap_bytes < claim->start ? plan->overlap_bytes : claim->start;
	uint64_t offset_align = plan->align_bytes;
	uint64_t read_end;

	PIN_DCHECK(plan->window_bytes > 0 && plan->window_bytes % PIN_PAGE_BYTES == 0);
	PIN_DCHECK(pin_is_power_of_two(plan->align_bytes) && plan->align_bytes <= PIN_PAGE_BYTES);

	claim->end = claim->start + plan->window_bytes;
	if (!plan->is_unsized && claim->end > plan->size_bytes) {
		claim->end = plan->size_bytes;
	}
	claim->base = claim->start - prefix;
	if (offset_align < COPY_ALIGN_BYTES && !plan->is_unsized) {
		offset_align = COPY_ALIGN_BYTES;
	}
	claim->read_offset = pin_round_down(claim->base, offset_align);
	read_end = pin_round_up(claim->end, plan->align_bytes);
	PIN_DCHECK(claim->read_offset <= claim->base && claim->base <= claim->start);
	PIN_DCHECK(claim->start < claim->end && claim->end <= read_end);
	PIN_CHECK(read_end - claim->read_offset <= pin_window_buffer_bytes(plan)); /* invariant 3 */
	claim->read_bytes = (uint32_t)(read_end - claim->read_offset);
}

bool pin_window_next(struct pin_window_plan *plan, struct pin_window_claim *out_claim)
{
	struct pin_window_claim claim = {.index = plan->next_index, .start = plan->cursor};

	if (plan->is_finished || (!plan->is_unsized && plan->cursor >= plan->size_bytes)) {
		return false;
	}
	PIN_CHECK(claim.start % PIN_PAGE_BYTES == 0); /* invariant 2 */
	PIN_DCHECK(!plan->find_holes || !plan->is_unsized);
	if (!plan->find_holes || !claim_hole(plan, &claim)) {
		claim_data(plan, &claim);
	}
	claim.is_last = !plan->is_unsized && claim.end == plan->size_bytes;
	plan->cursor = claim.end; /* invariant 1 */
	plan->next_index++;
	*out_claim = claim;
	return true;
}

void pin_window_advance(struct pin_window_plan *plan, struct pin_window_claim *claim, uint64_t end)
{
	PIN_CHECK(plan->is_unsized && end <= claim->end);
	PIN_DCHECK(claim->end == plan->cursor && !plan->is_finished); /* one claim at a time */
	if (end < claim->start) {
		end = claim->start;
	}
	if (end < claim->end) {
		claim->end = end;
		claim->is_last = true;
		plan->is_finished = true;
	}
}

uint64_t pin_window_buffer_bytes(const struct pin_window_plan *plan)
{
	uint64_t overlap_bytes = pin_round_up(plan->overlap_bytes, PIN_PAGE_BYTES);

	/* A claim has 32 bits for the bytes of its read. */
	PIN_DCHECK(overlap_bytes + plan->window_bytes <= UINT32_MAX);
	/* A file that is one window has no prefix anywhere. */
	if (!plan->is_unsized && plan->size_bytes <= plan->window_bytes) {
		return pin_round_up(plan->size_bytes, PIN_PAGE_BYTES);
	}
	return overlap_bytes + plan->window_bytes;
}
