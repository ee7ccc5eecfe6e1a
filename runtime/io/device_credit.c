/* SPDX-License-Identifier: MIT */
/*
 * Credit of one device: the word that all workers share, and the part that each
 * worker holds.
 *
 * worker/device_queue.c takes credit before a transfer starts and returns it at
 * the end; device_credit.h has the rules of sharing.
 *
 * Invariant: the sum of all holdings is the amount in the shared word, and a
 * worker never uses more than it holds.
 */
#include "runtime/io/device_credit.h"
#include "runtime/base/check.h"

#include <stddef.h>

enum {
	/*
	 * Of the limit: kept unused by all together; for workers that have too
	 * little.
	 */
	KEEP_PART = 8,
	RESERVE_PART = 8,
};

static uint64_t without_workers(uint64_t amount)
{
	return amount & (PIN_CREDIT_WORKER - 1);
}

static uint32_t min(uint32_t first, uint32_t second)
{
	return first < second ? first : second;
}

/* What `wanted` has beyond `amount`, in each part. */
static uint64_t excess(uint64_t wanted, uint64_t amount)
{
	uint32_t count = pin_credit_count(wanted);
	uint32_t pages = pin_credit_pages(wanted);

	count -= min(count, pin_credit_count(amount));
	pages -= min(pages, pin_credit_pages(amount));
	return pin_credit_amount(count, pages);
}

static bool fits(uint64_t limit, uint64_t taken, uint64_t amount)
{
	return (uint64_t)pin_credit_count(taken) + pin_credit_count(amount) <=
		pin_credit_count(limit) &&
		(uint64_t)pin_credit_pages(taken) + pin_credit_pages(amount) <=
		pin_credit_pages(limit);
}

static uint64_t cut_cost(const struct pin_credit *credit, uint64_t amount)
{
	uint64_t max = pin_load_relaxed_u64(&credit->cost_max);

	PIN_DCHECK(pin_credit_count(amount) == 1); /* of one request */
	return pin_credit_amount(
		pin_credit_count(amount), min(pin_credit_pages(amount), pin_credit_pages(max)));
}

/* For the oldest that is queued; under the waiters' lock. */
static bool grant(void *arg, uint64_t demand, struct pin_waiters_value *out_value)
{
	struct pin_credit *credit = arg;
	uint64_t taken = pin_load_relaxed_u64(&credit->taken);
	uint64_t limit = pin_load_relaxed_u64(&credit->limit);
	uint64_t amount = cut_cost(credit, demand);

	do {
		if (!fits(limit, taken, amount)) {
			return false;
		}
	} while (!pin_cas_acq_rel_u64(&credit->taken, &taken, taken + amount));
	out_value->words[0] = amount;
	return true;
}

/*
 * Derives from a new limit how much a worker may keep unused, and how much
 * stays for workers below their share. A limit that a user has set is exact:
 * nothing is kept back.
 */
void pin_credit_set(struct pin_credit *credit, uint64_t count, uint64_t pages, bool is_exact)
{
	uint32_t workers = credit->worker_count;
	uint32_t counts = count < PIN_CREDIT_COUNT_MAX ? (uint32_t)count : PIN_CREDIT_COUNT_MAX;
	uint32_t sheets = pages < PIN_CREDIT_PAGES_MAX ? (uint32_t)pages : PIN_CREDIT_PAGES_MAX;
	uint64_t keep =
		pin_credit_amount(counts / KEEP_PART / workers, sheets / KEEP_PART / workers);
	uint64_t reserve = pin_credit_amount(counts / RESERVE_PART, sheets / RESERVE_PART);

	PIN_CHECK(counts > 0);
	PIN_CHECK(sheets > 0);
	PIN_DCHECK(pin_credit_covers(pin_credit_amount(counts, sheets), reserve));
	/* Below that a large request could starve beside the kept credit. */
	is_exact = is_exact || sheets < 2 * KEEP_PART;
	keep = is_exact ? 0 : keep;
	pin_store_relaxed_u64(&credit->keep, keep);
	pin_store_relaxed_u64(&credit->spare_max,
		is_exact || workers > 1
			? keep
			: pin_credit_amount(PIN_CREDIT_COUNT_MAX, PIN_CREDIT_PAGES_MAX));
	pin_store_relaxed_u64(&credit->reserve, is_exact || workers == 1 ? 0 : reserve);
	pin_store_relaxed_u64(
		&credit->cost_max, pin_credit_amount(counts, is_exact ? sheets : sheets / 2));
	pin_store_relaxed_u64(&credit->limit, pin_credit_amount(counts, sheets));
}

void pin_credit_init(struct pin_credit *credit, const struct pin_host *host, uint32_t worker_count)
{
	PIN_CHECK(worker_count > 0);
	PIN_CHECK(worker_count <= UINT64_MAX / PIN_CREDIT_WORKER); /* as many as `taken` counts */
	*credit = (struct pin_credit){.worker_count = worker_count};
	pin_waiters_init(&credit->waiters, host, grant, credit, PIN_WAITERS_EVEN);
	pin_credit_set(credit, PIN_CREDIT_COUNT_MAX, PIN_CREDIT_PAGES_MAX, false);
}

void pin_credit_serve(struct pin_credit *credit)
{
	if (pin_waiters_any(&credit->waiters)) { /* [CREDIT-1] */
		pin_waiters_serve(&credit->waiters);
	}
}

/* ---- holdings ---- */

static void tell(struct pin_waiter *waiter)
{
	struct pin_holding *holding = PIN_CONTAINER_OF(waiter, struct pin_holding, waiter);

	PIN_DCHECK(holding->is_queued);			/* until it collects this */
	pin_store_release_u32(&holding->is_granted, 1); /* [CREDIT-2] */
	holding->granted(holding);
}

void pin_holding_init(struct pin_holding *holding, void (*granted)(struct pin_holding *holding))
{
	*holding = (struct pin_holding){.target = UINT64_MAX, .granted = granted};
}

/* Of the credit there is, divided among those who use it. */
static uint64_t share_of(const struct pin_credit *credit)
{
	uint32_t workers = pin_credit_workers(pin_load_relaxed_u64(&credit->taken));
	uint64_t limit = pin_load_relaxed_u64(&credit->limit);

	workers = workers == 0 ? 1 : workers;
	return pin_credit_amount(
		pin_credit_count(limit) / workers, pin_credit_pages(limit) / workers);
}

static uint64_t join(struct pin_holding *holding)
{
	uint64_t worker = holding->is_counted ? 0 : PIN_CREDIT_WORKER;

	holding->is_counted = true;
	return worker;
}

/* The limit has changed: comes down as all others do. */
static void note_limit(const struct pin_credit *credit, struct pin_holding *holding)
{
	uint64_t limit = pin_load_relaxed_u64(&credit->limit);
	uint64_t old = holding->limit_seen;
	uint32_t count = pin_credit_count(holding->held);
	uint32_t pages = pin_credit_pages(holding->held);

	holding->limit_seen = limit;
	holding->target = UINT64_MAX;
	if (old == 0 || pin_credit_covers(limit, old)) {
		return;
	}
	if (pin_credit_count(limit) < pin_credit_count(old)) {
		count = (uint32_t)((uint64_t)count * pin_credit_count(limit) /
			pin_credit_count(old));
	}
	if (pin_credit_pages(limit) < pin_credit_pages(old)) {
		pages = (uint32_t)((uint64_t)pages * pin_credit_pages(limit) /
			pin_credit_pages(old));
	}
	holding->target = pin_credit_amount(count, pages);
	PIN_DCHECK(pin_credit_covers(holding->held, holding->target)); /* it comes down */
}

/*
 * Also takes the worker out of the count of users when it holds nothing more,
 * which raises the share of the others.
 */
static void give_back(struct pin_credit *credit, struct pin_holding *holding, uint64_t amount)
{
	uint64_t before;

	PIN_CHECK(pin_credit_covers(holding->held, amount));
	PIN_DCHECK(pin_credit_covers(holding->held - amount, holding->used));
	holding->held -= amount;
	if (holding->held == 0 && !holding->is_queued && holding->is_counted) {
		holding->is_counted = false;
		amount += PIN_CREDIT_WORKER;
	}
	if (amount == 0) {
		return;
	}
	before = pin_fetch_sub_acq_rel_u64(&credit->taken, amount);
	PIN_CHECK(before >= amount);
	if (pin_waiters_any(&credit->waiters)) { /* [CREDIT-1] */
		pin_waiters_serve(&credit->waiters);
	}
}

/* Unused; as much of it as is beyond `kept`. */
static uint64_t spare_beyond(const struct pin_holding *holding, uint64_t kept)
{
	PIN_DCHECK(pin_credit_covers(holding->held, holding->used));
	return excess(holding->held - holding->used, kept);
}

/* Unused; as much of it as it has too much under a lower limit. */
static uint64_t spare_beyond_target(const struct pin_holding *holding)
{
	uint64_t spare = holding->held - holding->used;
	uint64_t over = excess(holding->held, holding->target);

	PIN_DCHECK(holding->target != UINT64_MAX);
	PIN_DCHECK(pin_credit_covers(holding->held, holding->used)); /* invariant 2 */
	return pin_credit_amount(min(pin_credit_count(spare), pin_credit_count(over)),
		min(pin_credit_pages(spare), pin_credit_pages(over)));
}

/*
 * Returned credit is given back only above a threshold: so not each end gives.
 */
static uint64_t spare_to_give(const struct pin_credit *credit, const struct pin_holding *holding)
{
	uint64_t max = pin_load_relaxed_u64(&credit->spare_max);
	uint64_t half = pin_credit_amount(pin_credit_count(max) - pin_credit_count(max) / 2,
		pin_credit_pages(max) - pin_credit_pages(max) / 2);

	return spare_beyond(holding, max) == 0 ? 0 : spare_beyond(holding, half);
}

/* The larger of two, in each part. */
static uint64_t either(uint64_t first, uint64_t second)
{
	return first + excess(second, first);
}

/*
 * Returns credit that this worker should not keep: all of the unused part while
 * another worker waits, else the part beyond a lowered target or beyond its
 * usual stock.
 */
void pin_credit_settle(struct pin_credit *credit, struct pin_holding *holding, bool is_wanted)
{
	uint64_t amount = 0;

	PIN_DCHECK(pin_credit_covers(holding->held, holding->used)); /* invariant 2 */
	if (holding->limit_seen != pin_load_relaxed_u64(&credit->limit)) {
		note_limit(credit, holding);
	}
	if (holding->target != UINT64_MAX) {
		amount = spare_beyond_target(holding);
	}
	if (pin_load_relaxed_u32(&credit->waiters.count) != 0) {
		amount = spare_beyond(holding, 0);
	} else if (!is_wanted) {
		amount = either(amount, spare_to_give(credit, holding));
	} else if (holding->target == UINT64_MAX) {
		return;
	}
	give_back(credit, holding, amount);
	if (holding->target != UINT64_MAX && pin_credit_covers(holding->target, holding->held)) {
		holding->target = UINT64_MAX;
	}
}

/* Whether it may have that without more than its share. */
static bool is_poor(
	const struct pin_credit *credit, const struct pin_holding *holding, uint64_t need)
{
	return pin_credit_covers(share_of(credit), holding->held + need);
}

/*
 * Uses held credit first, which writes no shared word. Else it draws the
 * missing amount and some stock in one compare-and-swap, unless others wait.
 */
bool pin_credit_take(struct pin_credit *credit, struct pin_holding *holding, uint64_t *amount)
{
	uint64_t limit = pin_load_relaxed_u64(&credit->limit);
	uint64_t taken = pin_load_relaxed_u64(&credit->taken);
	uint64_t keep = pin_load_relaxed_u64(&credit->keep);
	uint64_t reserve = pin_load_relaxed_u64(&credit->reserve);
	uint64_t wanted;
	uint64_t need;

	if (holding->limit_seen != limit) {
		note_limit(credit, holding);
	}
	if (holding->used == 0 || pin_credit_covers(holding->target, holding->held)) {
		holding->target = UINT64_MAX;
	}
	*amount = cut_cost(credit, *amount);
	wanted = holding->used + *amount;
	need = excess(wanted, holding->held);
	if (need != 0) {
		uint64_t more;

		if (pin_load_relaxed_u32(&credit->waiters.count) != 0 ||
			holding->target != UINT64_MAX) {
			return false;
		}
		reserve = is_poor(credit, holding, need) ? 0 : reserve;
		do {
			if (!fits(limit - reserve, taken, need)) {
				return false;
			}
			more = fits(limit - reserve, taken, need + keep) ? need + keep : need;
		} while (!pin_cas_acq_rel_u64(&credit->taken, &taken,
			taken + more + (holding->is_counted ? 0 : PIN_CREDIT_WORKER)));
		holding->is_counted = true;
		holding->held += more;
	}
	PIN_DCHECK(pin_credit_covers(holding->held, wanted));
	holding->used = wanted;
	return true;
}

/*
 * Joins the queue, unless the completions of this worker's own requests will
 * bring its share anyway.
 */
void pin_credit_await(struct pin_credit *credit, struct pin_holding *holding, uint32_t pages)
{
	uint64_t cost = cut_cost(credit, pin_credit_amount(1, pages));
	uint64_t worker;

	if (holding->is_queued ||
		(holding->used != 0 &&
			!pin_credit_covers(share_of(credit), holding->used + cost))) {
		return;
	}
	worker = join(holding);
	if (worker != 0) {
		pin_fetch_add_acq_rel_u64(&credit->taken, worker);
	}
	PIN_DCHECK(holding->is_counted);
	holding->is_queued = true;
	/* No worker waits while it holds a part that others wait for. */
	give_back(credit, holding, holding->held - holding->used);
	PIN_DCHECK(holding->held == holding->used);
	pin_store_relaxed_u32(&holding->is_granted, 0);
	pin_waiter_init(&holding->waiter, cost, tell);
	pin_waiters_enter(&credit->waiters, &holding->waiter); /* [CREDIT-1] */
}

bool pin_credit_collect(struct pin_holding *holding)
{
	if (!holding->is_queued ||
		pin_load_acquire_u32(&holding->is_granted) == 0) { /* [CREDIT-2] */
		return false;
	}
	PIN_CHECK(!holding->waiter.is_queued); /* [CREDIT-2] */
	PIN_DCHECK(holding->is_counted);
	holding->is_queued = false;
	holding->held += without_workers(holding->waiter.value.words[0]);
	PIN_DCHECK(pin_credit_covers(holding->held, holding->used)); /* invariant 2 */
	return true;
}

void pin_credit_leave(struct pin_credit *credit, struct pin_holding *holding)
{
	/* Credit granted meanwhile is collected at its notification. */
	if (holding->is_queued && pin_waiter_withdraw(&holding->waiter)) {
		holding->is_queued = false;
	}
	pin_credit_settle(credit, holding, false);
}

bool pin_credit_give_up(struct pin_credit *credit, struct pin_holding *holding)
{
	if (holding->is_queued) {
		return false;
	}
	PIN_CHECK(holding->used == 0);
	give_back(credit, holding, holding->held);
	PIN_DCHECK(holding->held == 0);
	PIN_DCHECK(!holding->is_counted); /* it takes part no more */
	return true;
}
