/* SPDX-License-Identifier: MIT */
/*
 * Admission from outside, at once or when there is room.
 */
#include "runtime/base/check.h"
#include "runtime/worker/lane.h"

/* ---- refusals ---- */

/* As far as the fields go. */
static uint32_t saturate(uint64_t count)
{
	return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

static void tell_full(const struct pin_shared *shared, enum pinion_lane lane, uint64_t waiting,
	struct pinion_full *out_full)
{
	if (out_full != NULL) {
		*out_full = (struct pinion_full){
			.current = saturate(waiting),
			.max = saturate(shared->queue_limit.limit),
			.lane = (uint32_t)lane,
		};
	}
}

/* Relaxed: a figure. */
static int refuse(struct pin_shared *shared, uint32_t count)
{
	pin_fetch_add_relaxed_u64(&shared->queue_limit.refused, count);
	return -EAGAIN;
}

/* ---- the normal lane ---- */

/* The end of the queue limit as it is now; false: `count` more do not fit. */
static bool renew_queue_limit(
	struct pin_shared *shared, uint32_t count, struct pinion_full *out_full)
{
	struct pin_queue_limit_view view = {
		.admitted = pin_gate_admitted(&shared->gate),
		.popped = pin_injector_popped(&shared->injector),
	};
	uint64_t waiting;

	for (uint32_t i = 0; i < shared->worker_count; i++) {
		view.pushed_inside +=
			pin_meter_read(&shared->workers[i].meter.tasks_shared); /* [QLIMIT-1] */
	}
	if (pin_queue_limit_renew(&shared->queue_limit, &view, count, &waiting)) {
		return true;
	}
	tell_full(shared, PINION_LANE_NORMAL, waiting, out_full);
	return false;
}

PIN_APART int pin_room_admit_anew(
	struct pin_shared *shared, uint32_t count, struct pinion_full *out_full)
{
	bool ever_fits = count <= shared->queue_limit.limit;

	while (renew_queue_limit(shared, count, ever_fits ? out_full : NULL)) {
		switch (pin_room_try(shared, count)) {
		case PIN_GATE_ADMITTED:
			return 0;
		case PIN_GATE_CLOSED:
			return -ESHUTDOWN;
		case PIN_GATE_FULL:
			break;
		}
	}
	return ever_fits ? refuse(shared, count) : -EINVAL;
}

/* ---- any lanes ---- */

static bool claim_places(struct pin_shared *shared, enum pinion_lane lane,
	const struct pin_room_counts *counts, struct pinion_full *out_full)
{
	uint64_t waiting;

	if (counts->of[lane] == 0 ||
		pin_lane_queue_claim(&shared->lanes[lane], counts->of[lane],
			shared->queue_limit.limit, &waiting)) {
		return true;
	}
	tell_full(shared, lane, waiting, out_full);
	return false;
}

static void undo_permits(
	struct pin_shared *shared, enum pinion_lane lane, const struct pin_room_counts *counts)
{
	if (counts->of[lane] > 0) {
		pin_lane_queue_undo(&shared->lanes[lane], counts->of[lane]);
	}
}

/* Whether those of normal fit, to spare the other lanes' claims. */
static bool has_normal_room(struct pin_shared *shared, uint32_t count, struct pinion_full *out_full)
{
	return count == 0 ||
		pin_gate_admitted(&shared->gate) + count <=
		pin_queue_limit_end(&shared->queue_limit) ||
		renew_queue_limit(shared, count, out_full);
}

/* Tasks whose places are claimed; the end is for those of normal alone. */
static int admit_claimed(struct pin_shared *shared, const struct pin_room_counts *counts,
	struct pinion_full *out_full)
{
	uint32_t normal_count = counts->of[PINION_LANE_NORMAL];
	uint32_t others_count = pin_room_others(counts);

	do {
		uint64_t end = normal_count == 0
			? UINT64_MAX
			: pin_queue_limit_end(&shared->queue_limit) + others_count;

		switch (pin_gate_admit_until(&shared->gate, normal_count + others_count, end)) {
		case PIN_GATE_ADMITTED:
			return 0;
		case PIN_GATE_CLOSED:
			return -ESHUTDOWN;
		case PIN_GATE_FULL:
			break;
		}
	} while (renew_queue_limit(shared, normal_count, out_full));
	return -EAGAIN;
}

/*
 * Places in the queue of each lane, then the gate. Low comes last: a claim that
 * is given back makes the tasks that wait there look younger.
 */
static int claim_and_admit(struct pin_shared *shared, const struct pin_room_counts *counts,
	struct pinion_full *out_full)
{
	int rc = -EAGAIN;

	if (!has_normal_room(shared, counts->of[PINION_LANE_NORMAL], out_full) ||
		!claim_places(shared, PINION_LANE_HIGH, counts, out_full)) {
		return rc;
	}
	if (claim_places(shared, PINION_LANE_LOW, counts, out_full)) {
		rc = admit_claimed(shared, counts, out_full);
		if (rc == 0) {
			return 0;
		}
		undo_permits(shared, PINION_LANE_LOW, counts);
	}
	undo_permits(shared, PINION_LANE_HIGH, counts);
	return rc;
}

int pin_room_admit_lanes(struct pin_shared *shared, const struct pin_room_counts *counts,
	struct pinion_full *out_full)
{
	int rc;

	if (!pin_gate_is_open(&shared->gate)) {
		return -ESHUTDOWN;
	}
	for (uint32_t lane = 0; lane < PIN_LANES; lane++) {
		if (counts->of[lane] > shared->queue_limit.limit) {
			return -EINVAL;
		}
	}
	rc = claim_and_admit(shared, counts, out_full);
	if (rc != 0) {
		/* Its claims may have delayed another's admission. */
		pin_room_tell(shared, PINION_LANE_HIGH);
		pin_room_tell(shared, PINION_LANE_LOW);
	}
	return rc == -EAGAIN
		? refuse(shared, counts->of[PINION_LANE_NORMAL] + pin_room_others(counts))
		: rc;
}

void pin_room_undo(struct pin_shared *shared, enum pinion_lane lane)
{
	if (lane != PINION_LANE_NORMAL) {
		pin_lane_queue_undo(&shared->lanes[lane], 1);
		pin_room_tell(shared, lane);
	}
}

void pin_room_note_elsewhere(struct pin_shared *shared, uint32_t count)
{
	pin_queue_limit_note_elsewhere(&shared->queue_limit, count);
	pin_room_tell(shared, PINION_LANE_NORMAL);
}

/* ---- waiters ---- */

/* Under the waiters' lock: one task of the lane is admitted for a waiter. */
static bool take(void *arg, uint64_t demand, struct pin_waiters_value *out_value)
{
	const struct pin_room *room = arg;
	struct pin_room_counts counts = {0};
	int rc = -ESHUTDOWN;

	PIN_CHECK(demand == 1);
	if (pin_gate_is_open(&room->shared->gate)) {
		counts.of[room->lane] = 1;
		rc = claim_and_admit(room->shared, &counts, NULL);
	}
	out_value->words[PIN_ROOM_ANSWER] = (uint64_t)(int64_t)rc;
	return rc != -EAGAIN;
}

void pin_room_init(struct pin_shared *shared)
{
	for (uint32_t lane = 0; lane < PIN_LANES; lane++) {
		struct pin_room *room = &shared->rooms[lane];

		room->shared = shared;
		room->lane = lane;
		pin_waiters_init(
			&room->waiters, shared->host, take, room, PIN_WAITERS_RELEASE_LIGHT);
	}
}

PIN_APART void pin_room_serve(struct pin_shared *shared, enum pinion_lane lane)
{
	pin_waiters_serve(&shared->rooms[lane].waiters);
}

void pin_room_close(struct pin_shared *shared)
{
	for (uint32_t lane = 0; lane < PIN_LANES; lane++) {
		pin_room_tell(shared, lane);
	}
}
