/* SPDX-License-Identifier: MIT */
/*
 * Admissions: limits on the jobs that a runtime has at once, with waiters in
 * order and evictions.
 *
 * Any thread admits jobs; workers run them (admission_job.c) and give their
 * slots back. The counts are one word (admission_slots.c), the waiters of all
 * lanes share one lock.
 *
 * Invariant: no limit is ever exceeded, and a slot that becomes free goes to a
 * waiter before it goes to a newcomer.
 */
#include "runtime/task/admission.h"
#include "runtime/base/check.h"
#include "runtime/base/versioned.h"
#include "runtime/task/entry.h"

#include <errno.h>
#include <string.h>

#define ADMISSION_FLAGS ((uint32_t)PINION_ADMISSION_EVICT)

static struct pin_admission *admission_of(struct pin_admission_lane *lane)
{
	PIN_DCHECK(lane->index < PINION_LANES);
	return PIN_CONTAINER_OF(lane - lane->index, struct pin_admission, lanes);
}

/* ---- jobs that have not begun, under the lock ---- */

/*
 * The list has the jobs that may be evicted, newest first: those that have not
 * begun.
 */
void pin_admission_enlist(struct pin_admission *self, struct pin_job_entry *entry)
{
	struct pin_admission_lane *lane = &self->lanes[entry->lane];

	PIN_DCHECK(entry->state != PIN_JOB_LISTED);
	PIN_DCHECK(entry->admission == self);
	PIN_DCHECK(lane->newest == NULL || lane->newest->newer == NULL);
	PIN_DCHECK((lane->listed_count == 0) == (lane->newest == NULL));
	entry->state = PIN_JOB_LISTED;
	entry->newer = NULL;
	entry->older = lane->newest;
	if (lane->newest != NULL) {
		lane->newest->newer = entry;
	}
	lane->newest = entry;
	lane->listed_count++;
}

/*
 * The job begins, was evicted or was cancelled; the list is doubly linked since
 * that may be any of them.
 */
void pin_admission_delist(
	struct pin_admission *self, struct pin_job_entry *entry, enum pin_job_state state)
{
	struct pin_admission_lane *lane = &self->lanes[entry->lane];

	PIN_CHECK(entry->state == PIN_JOB_LISTED && lane->listed_count > 0);
	PIN_DCHECK(state != PIN_JOB_LISTED && entry->admission == self);
	PIN_DCHECK(entry->older == NULL || entry->older->newer == entry);
	PIN_DCHECK(entry->newer == NULL ? lane->newest == entry : entry->newer->older == entry);
	entry->state = state;
	if (entry->older != NULL) {
		entry->older->newer = entry->newer;
	}
	if (entry->newer != NULL) {
		entry->newer->older = entry->older;
	} else {
		lane->newest = entry->older;
	}
	lane->listed_count--;
	PIN_DCHECK((lane->listed_count == 0) == (lane->newest == NULL));
}

/*
 * The newest of the lowest lanes give their slots to the newcomers, one for
 * one at most: where limits were lowered, the excess stays. The slots are
 * watched.
 */
static bool evict(struct pin_admission *self, uint32_t above_lane, uint64_t amount, uint64_t word)
{
	uint32_t max_total = pin_permits_max_total(&self->permits);
	uint32_t wanted = pin_permits_total(amount);
	uint32_t needed = pin_permits_total(word) + wanted - max_total;
	uint32_t listed = 0;
	uint64_t given = 0;

	PIN_DCHECK(wanted > 0 && pin_permits_total(word) + wanted > max_total);
	needed = needed < wanted ? needed : wanted;
	for (uint32_t i = above_lane + 1; i < PINION_LANES; i++) {
		listed += self->lanes[i].listed_count;
	}
	if (listed < needed || self->evicted_queued + needed > max_total) {
		return false;
	}
	self->evicted_queued += needed;
	for (uint32_t i = PINION_LANES - 1; i > above_lane && needed > 0; i--) {
		while (needed > 0 && self->lanes[i].newest != NULL) {
			pin_admission_delist(self, self->lanes[i].newest, PIN_JOB_EVICTED);
			given += pin_permits_amount(i, 1);
			needed--;
			/* Relaxed: a figure. */
			pin_fetch_add_relaxed_u64(&self->evicted[i], 1);
		}
	}
	PIN_CHECK(needed == 0 && pin_permits_total(given) <= wanted);
	PIN_DCHECK(self->evicted_queued <= max_total);
	pin_permits_exchange(&self->permits, given, amount);
	return true;
}

/* ---- slots, under the lock ---- */

/* Whether the oldest of a higher lane waits for nothing but the total. */
static bool is_held_back(const struct pin_admission *self, uint32_t lane)
{
	uint64_t word = pin_permits_word(&self->permits);

	PIN_DCHECK(lane < PINION_LANES);
	for (uint32_t i = 0; i < lane; i++) {
		const struct pin_waiter *oldest = self->lanes[i].waiters.oldest;

		if (oldest != NULL &&
			pin_permits_fit(&self->permits, word, oldest->demand) == PIN_PERMITS_FULL) {
			return true;
		}
	}
	return false;
}

static bool wants_too_many(const struct pin_admission *self, uint64_t demand)
{
	return pin_permits_fit(&self->permits, 0, demand) != PIN_PERMITS_ROOM;
}

/* Of a lane; a closed one answers at once, and limits that were lowered. */
static bool take(void *arg, uint64_t demand, struct pin_waiters_value *out_value)
{
	struct pin_admission_lane *lane = arg;
	struct pin_admission *self = admission_of(lane);
	enum pin_permits_answer answer = PIN_PERMITS_WATCHED;
	uint64_t word = pin_permits_word(&self->permits);
	bool is_closed = pin_permits_is_closed(&self->permits);

	PIN_DCHECK(pin_permits_total(demand) > 0);
	if (!is_closed && wants_too_many(self, demand)) {
		answer = PIN_PERMITS_TOO_MANY;
	} else if (is_closed || !is_held_back(self, lane->index)) {
		answer = pin_permits_take_or_watch(&self->permits, demand, &word);
	}
	if (answer == PIN_PERMITS_FULL && pin_admission_evicts(self) &&
		evict(self, lane->index, demand, word)) {
		answer = PIN_PERMITS_ROOM;
	}
	out_value->words[PIN_ADMISSION_ANSWER] = answer;
	out_value->words[PIN_ADMISSION_WORD] = word;
	return answer == PIN_PERMITS_ROOM || answer == PIN_PERMITS_CLOSED ||
		answer == PIN_PERMITS_TOO_MANY;
}

/* As take(), of a wait that new limits end, wherever in its queue it is. */
static bool end_too_many(void *arg, uint64_t demand, struct pin_waiters_value *out_value)
{
	struct pin_admission *self = admission_of(arg);

	PIN_DCHECK(pin_permits_total(demand) > 0);
	if (!wants_too_many(self, demand)) {
		return false;
	}
	out_value->words[PIN_ADMISSION_ANSWER] = PIN_PERMITS_TOO_MANY;
	out_value->words[PIN_ADMISSION_WORD] = pin_permits_word(&self->permits);
	return true;
}

/* Of those who drain. */
static bool take_end(void *arg, uint64_t demand, struct pin_waiters_value *out_value)
{
	const struct pin_admission *self = arg;

	(void)demand;
	(void)out_value;
	return pin_permits_total(pin_permits_word(&self->permits)) == 0 &&
		!pin_admission_has_evicted(self);
}

void pin_admission_lock(struct pin_admission *self)
{
	pin_waiters_lock(&self->lanes[0].waiters);
}

void pin_admission_unlock(struct pin_admission *self)
{
	pin_waiters_unlock(&self->lanes[0].waiters);
}

/* Notifies also those that `served` has already. */
static void serve_unlock(struct pin_admission *self, struct pin_waiters_served *served)
{
	const struct pin_host *host = self->lanes[0].waiters.host;
	bool has_waiters = false;

	for (uint32_t i = 0; i < PINION_LANES; i++) {
		pin_waiters_pop_served(&self->lanes[i].waiters, served);
		has_waiters |= self->lanes[i].waiters.oldest != NULL;
	}
	if (!has_waiters) {
		pin_permits_unwatch(&self->permits);
	}
	if (pin_permits_is_closed(&self->permits)) {
		PIN_DCHECK(!has_waiters); /* the close has answered them */
		pin_waiters_pop_served(&self->drained, served);
	}
	pin_admission_unlock(self);
	pin_waiters_tell(host, served);
}

void pin_admission_serve_unlock(struct pin_admission *self)
{
	struct pin_waiters_served served = {0};

	serve_unlock(self, &served);
}

void pin_admission_leave(struct pin_admission *self, uint64_t amount)
{
	PIN_DCHECK(pin_permits_total(amount) > 0);
	if (!pin_permits_give(&self->permits, amount)) {
		pin_admission_lock(self);
		pin_permits_give_locked(&self->permits, amount);
		pin_admission_serve_unlock(self);
	}
}

/* ---- beginning and end ---- */

/* Reserved fields must be 0, so that later versions can give them a meaning. */
static int check_limits(const struct pinion_admission_limits *limits)
{
	uint32_t reserved = 0;

	for (uint32_t i = 0; i < PIN_ARRAY_COUNT(limits->reserved); i++) {
		reserved |= limits->reserved[i];
	}
	for (uint32_t i = 0; i < PINION_LANES; i++) {
		if (limits->max_tasks[i] > PINION_ADMISSION_TASKS) {
			return -EINVAL;
		}
	}
	return reserved != 0 || (limits->flags & ~ADMISSION_FLAGS) != 0 ||
			limits->max_tasks_total > PINION_LANES * PINION_ADMISSION_TASKS
		? -EINVAL
		: 0;
}

/* Open limits are those of the runtime's configuration, then the highest. */
static void complete_limits(
	struct pinion_admission_limits *limits, const struct pinion_tuning *tuning)
{
	const uint32_t configured[PINION_LANES] = {
		tuning->max_tasks_high, tuning->max_tasks_normal, tuning->max_tasks_low};
	uint32_t sum = 0;

	for (uint32_t i = 0; i < PINION_LANES; i++) {
		if (limits->max_tasks[i] == 0) {
			limits->max_tasks[i] =
				configured[i] != 0 ? configured[i] : PINION_ADMISSION_TASKS;
		}
	}
	if (limits->max_tasks_total == 0) {
		limits->max_tasks_total = tuning->max_tasks_total;
	}
	for (uint32_t i = 0; i < PINION_LANES; i++) {
		PIN_DCHECK(limits->max_tasks[i] > 0);
		sum += limits->max_tasks[i];
	}
	if (limits->max_tasks_total == 0) {
		limits->max_tasks_total = sum;
	}
	PIN_DCHECK(limits->max_tasks_total > 0);
}

/*
 * The waiters of all lanes and of a drain share the first lane's lock, so that
 * one release can serve any of them.
 */
int pinion_admission_init(struct pinion_admission *admission, struct pinion_runtime *runtime,
	const struct pinion_admission_limits *limits)
{
	struct pin_admission *self = pin_admission_of(admission);
	struct pinion_admission_limits chosen = {0};

	if (limits != NULL) {
		chosen = *limits;
	}
	if (runtime == NULL || check_limits(&chosen) != 0) {
		return -EINVAL;
	}
	complete_limits(&chosen, &runtime->shared.tuning);
	memset(admission, 0, sizeof(*admission));
	self->runtime = runtime;
	self->flags = chosen.flags;
	for (uint32_t i = 0; i < PINION_LANES; i++) {
		struct pin_admission_lane *lane = &self->lanes[i];

		lane->index = i;
		pin_waiters_init(&lane->waiters, &pin_host_linux, take, lane, PIN_WAITERS_LOCKED);
		if (i > 0) {
			pin_waiters_share_lock(&lane->waiters, &self->lanes[0].waiters);
		}
	}
	pin_waiters_init(&self->drained, &pin_host_linux, take_end, self, PIN_WAITERS_LOCKED);
	pin_waiters_share_lock(&self->drained, &self->lanes[0].waiters);
	PIN_DCHECK(self->lanes[PINION_LANES - 1].waiters.lock == self->drained.lock);
	pin_permits_init(&self->permits, chosen.max_tasks, chosen.max_tasks_total);
	return 0;
}

/*
 * Higher limits serve waiters at once. Waiters that want more than the new
 * limits ever allow end with -EINVAL.
 */
int pinion_admission_set_limits(
	struct pinion_admission *admission, const struct pinion_admission_limits *limits)
{
	struct pin_admission *self = pin_admission_of(admission);
	struct pinion_admission_limits chosen = {.flags = self->flags};
	struct pin_waiters_served served = {0};

	if (pin_runtime_is_foreign(self->runtime)) {
		return -ECHILD;
	}
	if (limits != NULL) {
		chosen = *limits;
	}
	if (check_limits(&chosen) != 0 || chosen.flags != self->flags) {
		return -EINVAL;
	}
	complete_limits(&chosen, &self->runtime->shared.tuning);
	pin_admission_lock(self);
	pin_permits_set_max(&self->permits, chosen.max_tasks, chosen.max_tasks_total);
	for (uint32_t i = 0; i < PINION_LANES; i++) {
		pin_waiters_pop_ended(&self->lanes[i].waiters, end_too_many, &served);
	}
	serve_unlock(self, &served);
	return 0;
}

void pinion_admission_close(struct pinion_admission *admission)
{
	struct pin_admission *self = pin_admission_of(admission);

	/* In a child the lock may never be free. */
	if (pin_runtime_is_foreign(self->runtime)) {
		return;
	}
	pin_admission_lock(self);
	pin_permits_close(&self->permits);
	pin_admission_serve_unlock(self);
}

int pinion_admission_drain(struct pinion_admission *admission, uint64_t deadline_ns)
{
	struct pin_admission *self = pin_admission_of(admission);
	struct pin_waiter waiter;

	pinion_admission_close(admission);
	pin_waiter_init(&waiter, 0, NULL);
	return pin_runtime_wait(self->runtime, &self->drained, &waiter, deadline_ns);
}

/* Each figure is exact for itself; they are read one after the other. */
void pinion_admission_get_stats(const struct pinion_admission *admission,
	struct pinion_admission_stats *out_stats, size_t size)
{
	const struct pin_admission *self = (const void *)admission->private_;
	struct pinion_admission_stats counters = {
		.running = pin_load_relaxed_u32(&self->running),
		.failed = pin_load_relaxed_u64(&self->failed),
		.job_ns = pin_load_relaxed_u64(&self->job_ns),
		.cancelled = pin_load_relaxed_u64(&self->cancelled),
		.timed_out = pin_load_relaxed_u64(&self->timed_out),
	};
	uint64_t word = pin_permits_word(&self->permits);

	/* Relaxed: figures. */
	for (uint32_t i = 0; i < PINION_LANES; i++) {
		counters.current[i] = pin_permits_count(word, i);
		counters.refused[i] = pin_load_relaxed_u64(&self->refused[i]);
		counters.evicted[i] = pin_load_relaxed_u64(&self->evicted[i]);
	}
	pin_sized_give(out_stats, size, &counters, sizeof(counters));
}
