/* SPDX-License-Identifier: MIT */
/*
 * Admissions: from a place to a spawned job, and back.
 */
#include "runtime/core/admission.h"
#include "runtime/base/check.h"
#include "runtime/core/runtime.h"
#include "runtime/core/runtime_state.h"
#include "runtime/core/task.h"

#include <errno.h>
#include <string.h>

#define JOB_FLAGS ((uint32_t)PINION_TASK_MANDATORY | (uint32_t)PIN_TASK_LANES)
#define ADMISSION_FLAGS ((uint32_t)PINION_ADMISSION_EVICT)

/* What `take` leaves in a value. */
enum {
	VALUE_ANSWER, /* enum pin_places_answer */
	VALUE_WORD,   /* of the places, by which it was given */
};

/* Jobs that want to come in together. */
struct request {
	struct pinion_job *first; /* the others are chained to it */
	uint32_t count;
	uint32_t lane; /* the lowest of theirs */
	uint64_t amount;
};

static struct pin_admission *own(struct pinion_admission *admission)
{
	return (struct pin_admission *)(void *)admission->private_;
}

static struct pin_job_entry *entry_of(struct pinion_job *job)
{
	return (struct pin_job_entry *)(void *)job->private_;
}

static struct pin_admission *admission_of(struct pin_admission_lane *lane)
{
	return PIN_CONTAINER_OF(lane - lane->index, struct pin_admission, lanes);
}

static bool evicts(const struct pin_admission *self)
{
	return (self->flags & PINION_ADMISSION_EVICT) != 0;
}

/* ---- jobs that have not begun, under the lock ---- */

static void enlist(struct pin_admission *self, struct pin_job_entry *entry)
{
	struct pin_admission_lane *lane = &self->lanes[entry->lane];

	entry->state = PIN_JOB_LISTED;
	entry->newer = NULL;
	entry->older = lane->newest;
	if (lane->newest != NULL) {
		lane->newest->newer = entry;
	}
	lane->newest = entry;
	lane->listed_count++;
}

static void delist(
	struct pin_admission *self, struct pin_job_entry *entry, enum pin_job_state state)
{
	struct pin_admission_lane *lane = &self->lanes[entry->lane];

	PIN_CHECK(entry->state == PIN_JOB_LISTED && lane->listed_count > 0);
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
}

/* Has the newest of the lowest lanes make room; the places are watched. */
static bool evict(struct pin_admission *self, uint32_t above_lane, uint64_t amount, uint64_t word)
{
	uint32_t needed =
		pin_places_total(word) + pin_places_total(amount) - self->places.max_total;
	uint32_t listed = 0;
	uint64_t given = 0;

	for (uint32_t i = above_lane + 1; i < PINION_LANES; i++) {
		listed += self->lanes[i].listed_count;
	}
	if (listed < needed || self->evicted_queued + needed > self->places.max_total) {
		return false;
	}
	self->evicted_queued += needed;
	for (uint32_t i = PINION_LANES - 1; i > above_lane && needed > 0; i--) {
		while (needed > 0 && self->lanes[i].newest != NULL) {
			delist(self, self->lanes[i].newest, PIN_JOB_EVICTED);
			given += pin_places_amount(i, 1);
			needed--;
			/* Relaxed: a figure. */
			pin_fetch_add_relaxed_u64(&self->evicted[i], 1);
		}
	}
	pin_places_exchange(&self->places, given, amount);
	return true;
}

/* ---- places, under the lock ---- */

/* Whether the oldest of a higher lane waits for nothing but the total. */
static bool is_held_back(const struct pin_admission *self, uint32_t lane)
{
	uint64_t word = pin_places_word(&self->places);

	for (uint32_t i = 0; i < lane; i++) {
		const struct pin_waiter *oldest = self->lanes[i].waiters.oldest;

		if (oldest != NULL &&
			pin_places_fit(&self->places, word, oldest->demand) == PIN_PLACES_FULL) {
			return true;
		}
	}
	return false;
}

/* Of a lane; a closed one answers at once. */
static bool take(void *arg, uint64_t demand, struct pin_waiters_value *out_value)
{
	struct pin_admission_lane *lane = arg;
	struct pin_admission *self = admission_of(lane);
	enum pin_places_answer answer = PIN_PLACES_WATCHED;
	uint64_t word = pin_places_word(&self->places);

	if (pin_places_is_closed(&self->places) || !is_held_back(self, lane->index)) {
		answer = pin_places_take_or_watch(&self->places, demand, &word);
	}
	if (answer == PIN_PLACES_FULL && evicts(self) && evict(self, lane->index, demand, word)) {
		answer = PIN_PLACES_ROOM;
	}
	out_value->words[VALUE_ANSWER] = answer;
	out_value->words[VALUE_WORD] = word;
	return answer == PIN_PLACES_ROOM || answer == PIN_PLACES_CLOSED;
}

/* Of those who drain. */
static bool take_end(void *arg, uint64_t demand, struct pin_waiters_value *out_value)
{
	const struct pin_admission *self = arg;

	(void)demand;
	(void)out_value;
	return pin_places_total(pin_places_word(&self->places)) == 0 && self->evicted_queued == 0;
}

static void lock(struct pin_admission *self)
{
	pin_waiters_lock(&self->lanes[0].waiters);
}

static void unlock(struct pin_admission *self)
{
	pin_waiters_unlock(&self->lanes[0].waiters);
}

/* It may be gone afterwards, if it is closed. */
static void serve_unlock(struct pin_admission *self)
{
	const struct pin_host *host = self->lanes[0].waiters.host;
	struct pin_waiters_served served = {0};
	bool has_waiters = false;

	for (uint32_t i = 0; i < PINION_LANES; i++) {
		pin_waiters_pop_served(&self->lanes[i].waiters, &served);
		has_waiters |= self->lanes[i].waiters.oldest != NULL;
	}
	if (!has_waiters) {
		pin_places_unwatch(&self->places);
	}
	if (pin_places_is_closed(&self->places)) {
		pin_waiters_pop_served(&self->drained, &served);
	}
	unlock(self);
	pin_waiters_tell(host, &served);
}

/* Likewise. */
static void leave(struct pin_admission *self, uint64_t amount)
{
	if (!pin_places_give(&self->places, amount)) {
		lock(self);
		pin_places_give_locked(&self->places, amount);
		serve_unlock(self);
	}
}

/* ---- a job's end ---- */

static void note_time(struct pin_admission *self, uint64_t began_ns)
{
	uint64_t sample_ns = pin_host_linux.now_ns() - began_ns;
	uint64_t mean_ns = pin_load_relaxed_u64(&self->job_ns);

	/* Relaxed: two at once may lose a sample. */
	pin_store_relaxed_u64(
		&self->job_ns, mean_ns == 0 ? sample_ns : (9 * mean_ns + sample_ns) / 10);
}

/* The job may be gone; the admission may be afterwards. */
static void end_job(struct pin_admission *self, uint32_t lane, uint64_t began_ns, int result)
{
	note_time(self, began_ns);
	if (result < 0) {
		/* Relaxed: a figure. */
		pin_fetch_add_relaxed_u64(&self->failed, 1);
	}
	pin_fetch_sub_acq_rel_u32(&self->running, 1);
	leave(self, pin_places_amount(lane, 1));
}

/* False: it was evicted, and has no place any more. */
static bool claim(struct pin_admission *self, struct pin_job_entry *entry)
{
	bool is_claimed = true;

	if (evicts(self)) {
		lock(self);
		is_claimed = entry->state != PIN_JOB_EVICTED;
		if (entry->state == PIN_JOB_LISTED) {
			delist(self, entry, PIN_JOB_UNLISTED);
		}
		unlock(self);
	}
	return is_claimed;
}

static void cancel_evicted(struct pin_admission *self, struct pinion_job *job)
{
	if (job->cancel != NULL) {
		job->cancel(job, -EAGAIN);
	}
	lock(self);
	PIN_CHECK(self->evicted_queued > 0);
	self->evicted_queued--;
	serve_unlock(self);
}

static int run_job(struct pinion_task *task)
{
	struct pinion_job *job = PIN_CONTAINER_OF(task, struct pinion_job, task);
	struct pin_job_entry *entry = entry_of(job);
	struct pin_admission *self = entry->admission;
	uint32_t lane = entry->lane;
	uint64_t began_ns;
	int rc;

	if (!claim(self, entry)) {
		cancel_evicted(self, job);
		return 0;
	}
	began_ns = pin_host_linux.now_ns();
	entry->began_ns = began_ns;
	/* Relaxed: a figure. */
	pin_fetch_add_relaxed_u32(&self->running, 1);
	rc = job->run(job);
	if (rc == PINION_JOB_GOES_ON) {
		/* It may have ended by now, and the admission too. */
		return 0;
	}
	end_job(self, lane, began_ns, rc);
	return rc;
}

static void cancel_job(struct pinion_task *task)
{
	struct pinion_job *job = PIN_CONTAINER_OF(task, struct pinion_job, task);
	struct pin_admission *self = entry_of(job)->admission;
	uint32_t lane = entry_of(job)->lane;

	if (!claim(self, entry_of(job))) {
		cancel_evicted(self, job);
		return;
	}
	if (job->cancel != NULL) {
		job->cancel(job, -ECANCELED);
	}
	leave(self, pin_places_amount(lane, 1));
}

void pinion_job_end(struct pinion_job *job, int result)
{
	struct pin_job_entry *entry = entry_of(job);

	end_job(entry->admission, entry->lane, entry->began_ns, result);
}

/* ---- jobs that want to come in ---- */

static bool is_job(const struct pinion_job *job)
{
	return job != NULL && job->run != NULL && (job->task.flags & ~JOB_FLAGS) == 0 &&
		(job->task.flags & PIN_TASK_LANES) != PIN_TASK_LANES;
}

static int check_request(struct pin_admission *self, struct pinion_job *const *jobs, uint32_t count,
	struct request *out_request)
{
	uint32_t counts[PINION_LANES] = {0};

	if (pin_runtime_is_foreign(self->runtime)) {
		return -ECHILD;
	}
	*out_request = (struct request){.count = count};
	if (count > self->places.max_total) {
		return -EINVAL;
	}
	for (uint32_t i = 0; i < count; i++) {
		if (!is_job(jobs[i])) {
			return -EINVAL;
		}
		counts[pin_task_lane(&jobs[i]->task)]++;
	}
	for (uint32_t i = 0; i < PINION_LANES; i++) {
		if (counts[i] > self->places.max[i]) {
			return -EINVAL;
		}
		out_request->amount += pin_places_amount(i, counts[i]);
		out_request->lane = counts[i] > 0 ? i : out_request->lane;
	}
	return 0;
}

/* From here on the jobs are written to. */
static void chain(
	struct pin_admission *self, struct pinion_job *const *jobs, struct request *request)
{
	for (uint32_t i = request->count; i > 0; i--) {
		struct pinion_job *job = jobs[i - 1];

		job->task.run = run_job;
		job->task.cancel = cancel_job;
		*entry_of(job) = (struct pin_job_entry){
			.admission = self,
			.lane = pin_task_lane(&job->task),
			.chained = request->first,
		};
		request->first = job;
	}
}

/* Places for all of them in the runtime, or for none. */
static int reserve(struct pinion_runtime *runtime, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		int rc = pin_runtime_reserve(runtime);

		if (rc != 0) {
			while (i-- > 0) {
				pin_runtime_forgo(runtime);
			}
			return rc;
		}
	}
	return 0;
}

static void enlist_chain(struct pin_admission *self, struct pinion_job *job)
{
	lock(self);
	for (; job != NULL; job = entry_of(job)->chained) {
		if ((job->task.flags & PINION_TASK_MANDATORY) == 0) {
			enlist(self, entry_of(job));
		}
	}
	unlock(self);
}

/* Jobs that have their places: into the runtime, or out again. */
static int launch(struct pin_admission *self, const struct request *request)
{
	struct pinion_runtime *runtime = self->runtime;
	struct pinion_job *job = request->first;
	int rc = reserve(runtime, request->count);

	if (rc != 0) {
		leave(self, request->amount);
		return rc;
	}
	if (evicts(self)) {
		enlist_chain(self, job);
	}
	while (job != NULL) {
		struct pinion_job *next = entry_of(job)->chained;

		/* The last touch; after the last one, of the admission too. */
		pin_runtime_spawn_reserved(runtime, &job->task);
		job = next;
	}
	return 0;
}

static int end_of(enum pin_places_answer answer)
{
	switch (answer) {
	case PIN_PLACES_ROOM:
		return 0;
	case PIN_PLACES_CLOSED:
		return -ESHUTDOWN;
	case PIN_PLACES_LANE_FULL:
	case PIN_PLACES_FULL:
	case PIN_PLACES_WATCHED:
		break;
	}
	return -EAGAIN;
}

/* ---- at once ---- */

/* Past the lock, unless what it protects has a say. */
static enum pin_places_answer take_now(
	struct pin_admission *self, const struct request *request, uint64_t *out_word)
{
	struct pin_waiter waiter;
	enum pin_places_answer answer = PIN_PLACES_WATCHED;

	if (!evicts(self)) {
		answer = pin_places_take(&self->places, request->amount, out_word);
	}
	if (answer != PIN_PLACES_WATCHED) {
		return answer;
	}
	pin_waiter_init(&waiter, request->amount, NULL);
	waiter.value.words[VALUE_ANSWER] = PIN_PLACES_WATCHED;
	waiter.value.words[VALUE_WORD] = pin_places_word(&self->places);
	pin_waiters_try(&self->lanes[request->lane].waiters, &waiter);
	*out_word = waiter.value.words[VALUE_WORD];
	return (enum pin_places_answer)waiter.value.words[VALUE_ANSWER];
}

static uint64_t estimate_us(const struct pin_admission *self, uint32_t lane, uint64_t word)
{
	uint32_t running = pin_load_relaxed_u32(&self->running);
	uint32_t worker_count = pinion_runtime_worker_count(self->runtime);
	uint64_t job_ns = pin_load_relaxed_u64(&self->job_ns);
	uint64_t ahead = 0;

	for (uint32_t i = 0; i <= lane; i++) {
		ahead += pin_places_count(word, i);
	}
	/* More run at once than there are workers where jobs go on by I/O. */
	return ahead * job_ns / (running > worker_count ? running : worker_count) / 1000;
}

static void tell_full(const struct pin_admission *self, const struct request *request,
	enum pin_places_answer answer, uint64_t word, struct pinion_full *out_full)
{
	const struct pin_places *places = &self->places;
	uint32_t lane = request->lane;

	if (answer == PIN_PLACES_WATCHED) {
		/* There may be room, but not for those who come last. */
		answer = pin_places_fit(places, word, request->amount);
	}
	/* Of several lanes the one that has none. */
	for (uint32_t i = 0; i < PINION_LANES && answer == PIN_PLACES_LANE_FULL; i++) {
		uint32_t count = pin_places_count(request->amount, i);

		if (count > 0 && pin_places_count(word, i) + count > places->max[i]) {
			lane = i;
		}
	}
	*out_full = (struct pinion_full){
		.current = pin_places_count(word, lane),
		.max = places->max[lane],
		.estimated_wait_us = estimate_us(self, request->lane, word),
		.lane = lane,
	};
	if (answer == PIN_PLACES_FULL) {
		out_full->current = pin_places_total(word);
		out_full->max = places->max_total;
		out_full->lane = PINION_LANES;
	}
}

int pinion_admission_spawn(struct pinion_admission *admission, struct pinion_job *const *jobs,
	uint32_t count, struct pinion_full *out_full)
{
	struct pin_admission *self = own(admission);
	struct request request;
	enum pin_places_answer answer;
	uint64_t word;
	int rc = check_request(self, jobs, count, &request);

	if (rc != 0 || count == 0) {
		return rc;
	}
	answer = take_now(self, &request, &word);
	rc = end_of(answer);
	if (rc == 0) {
		chain(self, jobs, &request);
		return launch(self, &request);
	}
	if (rc == -EAGAIN) {
		/* Relaxed: a figure. */
		pin_fetch_add_relaxed_u64(&self->refused[request.lane], 1);
		if (out_full != NULL) {
			tell_full(self, &request, answer, word, out_full);
		}
	}
	return rc;
}

/* ---- later ---- */

int pinion_admission_spawn_wait(struct pinion_admission *admission, struct pinion_job *const *jobs,
	uint32_t count, uint64_t deadline_ns)
{
	struct pin_admission *self = own(admission);
	struct request request;
	struct pin_waiter waiter;
	int rc = check_request(self, jobs, count, &request);

	if (rc != 0 || count == 0) {
		return rc;
	}
	pin_waiter_init(&waiter, request.amount, NULL);
	rc = pin_runtime_wait(
		self->runtime, &self->lanes[request.lane].waiters, &waiter, deadline_ns);
	if (rc == 0) {
		rc = end_of((enum pin_places_answer)waiter.value.words[VALUE_ANSWER]);
	}
	if (rc != 0) {
		return rc;
	}
	chain(self, jobs, &request);
	return launch(self, &request);
}

/* On the worker that has waited. */
static int32_t finish(void *target, const struct pin_waiters_value *value)
{
	struct pinion_job *first = target;
	struct request request = {.first = first};
	int rc = end_of((enum pin_places_answer)value->words[VALUE_ANSWER]);

	if (rc != 0) {
		return rc;
	}
	for (struct pinion_job *job = first; job != NULL; job = entry_of(job)->chained) {
		request.count++;
		request.amount += pin_places_amount(entry_of(job)->lane, 1);
	}
	return launch(entry_of(first)->admission, &request);
}

int pinion_admission_spawn_await(struct pinion_runtime *runtime, struct pinion_admission *admission,
	struct pinion_job *const *jobs, uint32_t count, struct pinion_wait *wait)
{
	struct pin_admission *self = own(admission);
	struct pin_wait_aim aim = {.finish = finish};
	struct request request;
	int rc = check_request(self, jobs, count, &request);

	if (rc != 0 || count == 0) {
		return rc != 0 ? rc : -EINVAL;
	}
	chain(self, jobs, &request);
	aim.waiters = &self->lanes[request.lane].waiters;
	aim.demand = request.amount;
	aim.target = request.first;
	return pin_runtime_await(runtime, wait, &aim);
}

/* ---- beginning and end ---- */

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

int pinion_admission_init(struct pinion_admission *admission, struct pinion_runtime *runtime,
	const struct pinion_admission_limits *limits)
{
	struct pin_admission *self = own(admission);
	struct pinion_admission_limits chosen = {0};
	uint32_t sum = 0;

	if (limits != NULL) {
		chosen = *limits;
	}
	if (runtime == NULL || check_limits(&chosen) != 0) {
		return -EINVAL;
	}
	memset(admission, 0, sizeof(*admission));
	self->runtime = runtime;
	self->flags = chosen.flags;
	for (uint32_t i = 0; i < PINION_LANES; i++) {
		struct pin_admission_lane *lane = &self->lanes[i];

		if (chosen.max_tasks[i] == 0) {
			chosen.max_tasks[i] = PINION_ADMISSION_TASKS;
		}
		sum += chosen.max_tasks[i];
		lane->index = i;
		pin_waiters_init(&lane->waiters, &pin_host_linux, take, lane, PIN_WAITERS_LOCKED);
		if (i > 0) {
			pin_waiters_share_lock(&lane->waiters, &self->lanes[0].waiters);
		}
	}
	pin_waiters_init(&self->drained, &pin_host_linux, take_end, self, PIN_WAITERS_LOCKED);
	pin_waiters_share_lock(&self->drained, &self->lanes[0].waiters);
	pin_places_init(&self->places, chosen.max_tasks,
		chosen.max_tasks_total != 0 ? chosen.max_tasks_total : sum);
	return 0;
}

void pinion_admission_close(struct pinion_admission *admission)
{
	struct pin_admission *self = own(admission);

	/* In a child the lock may never be free. */
	if (pin_runtime_is_foreign(self->runtime)) {
		return;
	}
	lock(self);
	pin_places_close(&self->places);
	serve_unlock(self);
}

int pinion_admission_drain(struct pinion_admission *admission, uint64_t deadline_ns)
{
	struct pin_admission *self = own(admission);
	struct pin_waiter waiter;

	pinion_admission_close(admission);
	pin_waiter_init(&waiter, 0, NULL);
	return pin_runtime_wait(self->runtime, &self->drained, &waiter, deadline_ns);
}

void pinion_admission_counters(const struct pinion_admission *admission,
	struct pinion_admission_counters *out_counters, size_t size)
{
	const struct pin_admission *self = (const void *)admission->private_;
	struct pinion_admission_counters counters = {
		.running = pin_load_relaxed_u32(&self->running),
		.failed = pin_load_relaxed_u64(&self->failed),
		.job_ns = pin_load_relaxed_u64(&self->job_ns),
	};
	uint64_t word = pin_places_word(&self->places);

	/* Relaxed: figures. */
	for (uint32_t i = 0; i < PINION_LANES; i++) {
		counters.current[i] = pin_places_count(word, i);
		counters.refused[i] = pin_load_relaxed_u64(&self->refused[i]);
		counters.evicted[i] = pin_load_relaxed_u64(&self->evicted[i]);
	}
	memset(out_counters, 0, size);
	memcpy(out_counters, &counters, size < sizeof(counters) ? size : sizeof(counters));
}
