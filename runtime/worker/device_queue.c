/* SPDX-License-Identifier: MIT */
/*
 * Line-ups, and what moves them on.
 */
#include "runtime/base/check.h"
#include "runtime/worker/request.h"
#include "runtime/worker/wake.h"

enum {
	/*
	 * Ends until a worker checks whether an interval is over: as many as
	 * come in LOOK_GAP_NS, since reading the clock takes 25 ns, and there
	 * are reads that are over in 700.
	 */
	LOOK_ENDS_MIN = 16,
	LOOK_ENDS_MAX = 64,
	LOOK_GAP_NS = 100 * 1000,
	/* For each check this number of requests are timed. */
	TIMED_PER_LOOK = 2,
};

static void nudge(struct pin_worker *worker, struct pin_worker *waker)
{
	pin_store_release_u32(&worker->nudged, 1); /* [THROTTLE-1] */
	pin_wake_worker(worker, waker);
}

static void granted(struct pin_holding *holding)
{
	struct pin_ledger *ledger = PIN_CONTAINER_OF(holding, struct pin_ledger, holding);

	nudge(ledger->worker, NULL);
}

void pin_throttle_init(struct pin_worker *worker)
{
	pin_lines_init(&worker->throttle.lines);
	for (uint32_t i = 0; i < PIN_LEDGERS; i++) {
		struct pin_ledger *ledger = &worker->throttle.ledgers[i];

		ledger->worker = worker;
		ledger->timer.owner_kind = PIN_TASK_TOLL;
		ledger->look_ends = LOOK_ENDS_MIN;
		pin_lineup_init(&ledger->lineup);
		pin_holding_init(&ledger->holding, granted);
	}
}

void pin_throttle_nudge_all(struct pin_shared *shared)
{
	for (uint32_t i = 0; i < shared->worker_count; i++) {
		nudge(&shared->workers[i], pin_worker_current());
	}
}

/* ---- ledgers ---- */

static struct pin_ledger *open_ledger(struct pin_worker *worker, uint64_t device)
{
	struct pin_shared *shared = worker->shared;
	struct pin_throttle *throttle = &worker->throttle;
	struct pin_ledger *ledger;
	uint32_t place;

	if (throttle->ledger_count == PIN_LEDGERS) {
		/* Of all further devices. */
		return &throttle->ledgers[PIN_LEDGERS - 1];
	}
	ledger = &throttle->ledgers[throttle->ledger_count];
	throttle->ledger_count++;
	ledger->device = device;
	ledger->disk = pin_disks_find(&shared->disks, shared->host, &shared->tuning, device);
	ledger->is_polled =
		ledger->disk->is_polled || shared->tuning.polled == PINION_POLLED_ALWAYS;
	place = (uint32_t)(ledger->disk - shared->disks.disks) + 1;
	pin_store_release_u32(&ledger->disk_place, place); /* [DISK-2] */
	return ledger;
}

/* NULL: it has none yet. */
static inline struct pin_ledger *known_ledger(struct pin_worker *worker, uint64_t device)
{
	struct pin_throttle *throttle = &worker->throttle;

	for (uint32_t i = 0; i < throttle->ledger_count; i++) {
		if (PIN_LIKELY(throttle->ledgers[i].device == device)) {
			return &throttle->ledgers[i];
		}
	}
	return NULL;
}

static inline struct pin_ledger *find_ledger(struct pin_worker *worker, uint64_t device)
{
	struct pin_ledger *ledger = known_ledger(worker, device);

	return PIN_LIKELY(ledger != NULL) ? ledger : open_ledger(worker, device);
}

static void add_ledger(struct pin_disk_sums *sums, const struct pin_ledger *ledger)
{
	sums->requests += pin_meter_read(&ledger->requests);
	sums->units += pin_meter_read(&ledger->units);
	sums->bytes += pin_meter_read(&ledger->bytes);
	sums->waited += pin_meter_read(&ledger->waited);
	sums->throttled += pin_meter_read(&ledger->throttled);
	sums->throttled_ns += pin_meter_read(&ledger->throttled_ns);
	sums->latency_ns += pin_meter_read(&ledger->latency_ns);
	sums->timed += pin_meter_read(&ledger->timed);
}

/* Ledgers are opened one after the other: no open one follows a closed one. */
static void add_worker(
	struct pin_disk_sums *sums, const struct pin_worker *worker, const struct pin_disk *disk)
{
	for (uint32_t i = 0; i < PIN_LEDGERS; i++) {
		const struct pin_ledger *ledger = &worker->throttle.ledgers[i];
		uint32_t place = pin_load_acquire_u32(&ledger->disk_place); /* [DISK-2] */

		if (place == 0) {
			return;
		}
		if (&worker->shared->disks.disks[place - 1] == disk) {
			add_ledger(sums, ledger);
		}
	}
}

struct pin_disk_sums pin_throttle_sums(const struct pin_shared *shared, const struct pin_disk *disk)
{
	struct pin_disk_sums sums = {0};

	for (uint32_t i = 0; i < shared->worker_count; i++) {
		add_worker(&sums, &shared->workers[i], disk);
	}
	return sums;
}

/* At the pace since the last check. */
static uint32_t ends_within_gap(const struct pin_ledger *ledger, uint64_t now_ns)
{
	uint64_t elapsed_ns = now_ns - ledger->look_ns + 1;
	uint64_t ends = (uint64_t)ledger->look_ends * LOOK_GAP_NS / elapsed_ns;

	if (ends > LOOK_ENDS_MAX) {
		return LOOK_ENDS_MAX;
	}
	return ends < LOOK_ENDS_MIN ? LOOK_ENDS_MIN : (uint32_t)ends;
}

static PIN_APART void look_at_disk(struct pin_worker *worker, struct pin_ledger *ledger)
{
	struct pin_shared *shared = worker->shared;
	uint64_t now_ns = shared->host->now_ns();
	struct pin_disk_sums sums;

	ledger->ends_since_look = 0;
	ledger->look_ends = ends_within_gap(ledger, now_ns);
	ledger->look_ns = now_ns;
	if (pin_disk_is_look_due(ledger->disk, now_ns)) {
		sums = pin_throttle_sums(shared, ledger->disk);
		if (pin_disk_learn(&shared->disks, ledger->disk, shared->host, &shared->tuning,
			    now_ns, &sums)) {
			pin_throttle_nudge_all(shared);
		}
	}
}

/* ---- rates ---- */

static void note_blocked(struct pin_worker *worker, struct pin_ledger *ledger, uint64_t due_ns)
{
	uint64_t now_ns = worker->shared->host->now_ns();

	if (ledger->blocked_ns == 0) {
		ledger->blocked_ns = now_ns;
		pin_meter_add(&ledger->throttled, 1);
	}
	if (pin_timer_is_armed(&ledger->timer)) {
		if (ledger->timer.due_ns == due_ns) {
			return;
		}
		pin_timers_cancel(&worker->deadlines, &ledger->timer);
	}
	pin_timers_insert(&worker->deadlines, &ledger->timer, due_ns);
}

static void note_unblocked(struct pin_worker *worker, struct pin_ledger *ledger)
{
	if (PIN_UNLIKELY(ledger->blocked_ns != 0)) {
		uint64_t now_ns = worker->shared->host->now_ns();

		pin_meter_add(&ledger->throttled_ns, now_ns - ledger->blocked_ns);
		ledger->blocked_ns = 0;
		pin_timers_cancel(&worker->deadlines, &ledger->timer);
	}
}

/* Rates that come or go meanwhile may hold a request or not: relaxed. */
static inline bool has_rates(const struct pin_worker *worker, const struct pin_ledger *ledger)
{
	const struct pin_limiter *common = &worker->shared->disks.limiter;
	const struct pin_limiter *own = &ledger->disk->limiter;

	return pin_load_relaxed_u32(&common->is_on) != 0 || pin_load_relaxed_u32(&own->is_on) != 0;
}

static PIN_APART bool pay_rates(
	struct pin_worker *worker, struct pin_ledger *ledger, struct pinion_request *request)
{
	struct pin_shared *shared = worker->shared;
	struct pin_request_toll *toll = &pin_request_of(request)->toll;
	struct pin_limiter *common = &shared->disks.limiter;
	struct pin_limiter *own = &ledger->disk->limiter;
	uint64_t done_bytes = pin_request_of(request)->resume_bytes;
	const uint64_t amounts[PIN_LIMITED_KINDS] = {
		[PIN_LIMITED_BYTES] = pin_request_part(request->length_bytes, done_bytes),
		[PIN_LIMITED_REQUESTS] = done_bytes == 0 ? 1 : 0,
	};
	uint64_t due_ns;
	uint64_t own_due_ns;

	due_ns = pin_limiter_due(common, shared->host, &worker->throttle.allowance, amounts);
	own_due_ns = pin_limiter_due(own, shared->host, &ledger->allowance, amounts);
	due_ns = own_due_ns > due_ns ? own_due_ns : due_ns;
	if (due_ns != 0) {
		note_blocked(worker, ledger, due_ns);
		return false;
	}
	note_unblocked(worker, ledger);
	pin_limiter_spend(&worker->throttle.allowance, amounts);
	pin_limiter_spend(&ledger->allowance, amounts);
	toll->is_paid = true;
	return true;
}

/* False: not yet, and a timer is armed. */
static inline bool pay(
	struct pin_worker *worker, struct pin_ledger *ledger, struct pinion_request *request)
{
	struct pin_request_toll *toll = &pin_request_of(request)->toll;

	if (toll->is_paid) {
		return true;
	}
	/* Reservations are void by the time there are rates: [LIMIT-1]. */
	if (PIN_UNLIKELY(has_rates(worker, ledger))) {
		return pay_rates(worker, ledger, request);
	}
	note_unblocked(worker, ledger);
	toll->is_paid = true;
	return true;
}

/* ---- credit ---- */

static inline uint32_t pages_of(struct pinion_request *request)
{
	uint32_t part_bytes =
		pin_request_part(request->length_bytes, pin_request_of(request)->resume_bytes);

	return (part_bytes + PIN_PAGE_BYTES - 1) / PIN_PAGE_BYTES;
}

/* Each that is to be timed, so that some are for each check. */
static inline bool is_timed(const struct pin_ledger *ledger, uint32_t start_count)
{
	return start_count * TIMED_PER_LOOK >= ledger->look_ends;
}

static PIN_INLINE bool draw(
	struct pin_worker *worker, struct pin_ledger *ledger, struct pinion_request *request)
{
	struct pin_request_toll *toll = &pin_request_of(request)->toll;
	uint64_t amount;

	if (PIN_UNLIKELY(!pin_credit_use(
		    &ledger->disk->credit, &ledger->holding, pages_of(request), &amount))) {
		return false;
	}
	toll->pages = pin_credit_pages(amount);
	/* For transfers timed by parts, waits would be counted too. */
	ledger->starts_since_timed += pin_request_of(request)->resume_bytes == 0;
	if (is_timed(ledger, ledger->starts_since_timed)) {
		ledger->starts_since_timed = 0;
		toll->started_ns = worker->shared->host->now_ns();
	}
	return true;
}

/* ---- line-ups ---- */

static bool may_start(
	struct pin_worker *worker, struct pin_ledger *ledger, struct pinion_request *request)
{
	return pay(worker, ledger, request) && draw(worker, ledger, request);
}

/* For a transfer whose time in the queue does not count: worker/request.h. */
static PIN_APART void stop_clock(struct pin_worker *worker, struct pinion_request *request)
{
	uint64_t now_ns = worker->shared->host->now_ns();

	pin_timers_cancel(&worker->deadlines, &pin_request_of(request)->deadline);
	request->deadline_ns = request->deadline_ns > now_ns ? request->deadline_ns - now_ns : 0;
}

static PIN_APART void restart_clock(struct pin_worker *worker, struct pinion_request *request)
{
	request->deadline_ns += worker->shared->host->now_ns();
	pin_timers_insert(
		&worker->deadlines, &pin_request_of(request)->deadline, request->deadline_ns);
}

static inline bool has_stopping_clock(const struct pin_request *private)
{
	return PIN_UNLIKELY(private->stops_clock) && private->is_timed && private->ended_by == 0;
}

static void push(
	struct pin_worker *worker, struct pin_ledger *ledger, struct pinion_request *request)
{
	struct pin_request *private = pin_request_of(request);

	PIN_DCHECK(!private->toll.is_lined_up && !private->is_waiting);
	private->toll.is_lined_up = true;
	private->is_waiting = true;
	if (has_stopping_clock(private)) {
		stop_clock(worker, request);
	}
	pin_lineup_push(&ledger->lineup, &worker->throttle.lines, request);
	worker->throttle.lined_up++;
}

static void line_up(
	struct pin_worker *worker, struct pin_ledger *ledger, struct pinion_request *request)
{
	struct pin_request *private = pin_request_of(request);

	push(worker, ledger, request);
	if (private->toll.is_paid) {
		pin_meter_add(&ledger->waited, 1);
		pin_credit_await(&ledger->disk->credit, &ledger->holding, pages_of(request));
	} else if (ledger->lineup.count > 1) {
		/* Whatever keeps the first of them. */
		pin_meter_add(ledger->blocked_ns == 0 ? &ledger->waited : &ledger->throttled, 1);
	}
}

bool pin_throttle_has_rates(struct pin_worker *worker, const struct pinion_request *request)
{
	return has_rates(worker, find_ledger(worker, request->file->device));
}

static inline uint8_t place_of(const struct pin_worker *worker, const struct pin_ledger *ledger)
{
	return (uint8_t)(ledger - worker->throttle.ledgers + 1);
}

static PIN_APART bool admit(struct pin_worker *worker, struct pinion_request *request)
{
	struct pin_ledger *ledger = find_ledger(worker, request->file->device);

	pin_request_of(request)->toll.ledger_place = place_of(worker, ledger);
	if (PIN_LIKELY(ledger->lineup.count == 0) && may_start(worker, ledger, request)) {
		return true;
	}
	line_up(worker, ledger, request);
	return false;
}

/*
 * As most are: nothing waits or is limited, there is credit, and it is not
 * timed. False: nothing has changed.
 */
static PIN_INLINE bool admit_at_once(struct pin_worker *worker, struct pinion_request *request)
{
	struct pin_ledger *ledger = known_ledger(worker, request->file->device);
	struct pin_request_toll *toll = &pin_request_of(request)->toll;
	uint32_t pages = pages_of(request);

	if (PIN_UNLIKELY(ledger == NULL || ledger->lineup.count != 0 || has_rates(worker, ledger) ||
		    ledger->blocked_ns != 0 || is_timed(ledger, ledger->starts_since_timed + 1) ||
		    !pin_credit_use_held(&ledger->holding, pin_credit_amount(1, pages)))) {
		return false;
	}
	ledger->starts_since_timed++;
	toll->ledger_place = place_of(worker, ledger);
	toll->is_paid = true;
	toll->pages = pages;
	return true;
}

/* No calls but the last: none needs registers saved where it goes at once. */
bool pin_throttle_admit(struct pin_worker *worker, struct pinion_request *request)
{
	PIN_CHECK(pin_request_of(request)->resume_bytes == 0);
	return PIN_LIKELY(admit_at_once(worker, request)) || admit(worker, request);
}

/* A worker waits for the credit just given back, or has to check it. */
static void call_worker(struct pin_worker *worker, struct pin_worker *taker)
{
	if (taker == worker) {
		worker->throttle.must_look = true;
	} else {
		nudge(worker, taker);
	}
}

bool pin_throttle_owes_part(const struct pin_worker *worker, struct pinion_request *request)
{
	uint32_t place = pin_request_of(request)->toll.ledger_place;

	return place != 0 && has_rates(worker, &worker->throttle.ledgers[place - 1]);
}

void pin_throttle_defer_part(
	struct pin_worker *worker, struct pin_worker *taker, struct pinion_request *request)
{
	struct pin_request_toll *toll = &pin_request_of(request)->toll;
	struct pin_ledger *ledger = &worker->throttle.ledgers[toll->ledger_place - 1];

	pin_credit_end(&ledger->disk->credit, &ledger->holding, pin_credit_amount(1, toll->pages),
		ledger->lineup.count > 0);
	PIN_DCHECK(toll->ledger_place != 0 && toll->is_paid);
	toll->is_paid = false;
	toll->started_ns = 0;
	push(worker, ledger, request);
	call_worker(worker, taker);
}

static struct pinion_request *next_of(struct pin_worker *worker, struct pin_ledger *ledger)
{
	struct pinion_request *request = pin_lineup_first(&ledger->lineup, &worker->throttle.lines);

	if (request == NULL) {
		return NULL;
	}
	if (!pay(worker, ledger, request)) {
		/* Credit granted to the last one is not kept until then. */
		pin_credit_settle(&ledger->disk->credit, &ledger->holding, false);
		return NULL;
	}
	if (!draw(worker, ledger, request)) {
		pin_credit_await(&ledger->disk->credit, &ledger->holding, pages_of(request));
		return NULL;
	}
	PIN_CHECK(worker->throttle.lined_up > 0);
	PIN_DCHECK(pin_request_of(request)->toll.is_lined_up);
	pin_lineup_pop(&ledger->lineup);
	worker->throttle.lined_up--;
	pin_request_of(request)->toll.is_lined_up = false;
	pin_request_of(request)->is_waiting = false;
	if (has_stopping_clock(pin_request_of(request))) {
		restart_clock(worker, request);
	}
	if (ledger->lineup.count == 0) {
		pin_credit_leave(&ledger->disk->credit, &ledger->holding);
	}
	return request;
}

/*
 * Where nothing is queued, granted credit goes on to others, and so does kept
 * credit beyond a new limit: nothing else may come here for a long time that
 * would give it back. [LIMIT-1]
 */
static void collect(struct pin_ledger *ledger)
{
	(void)pin_credit_collect(&ledger->holding);
	if (ledger->lineup.count == 0) {
		pin_credit_leave(&ledger->disk->credit, &ledger->holding);
	}
}

static void take_nudge(struct pin_worker *worker)
{
	struct pin_throttle *throttle = &worker->throttle;

	throttle->must_look = true;
	if (pin_load_relaxed_u32(&worker->nudged) == 0) {
		return;
	}
	pin_exchange_acq_rel_u32(&worker->nudged, 0); /* [THROTTLE-1] */
	for (uint32_t i = 0; i < throttle->ledger_count; i++) {
		collect(&throttle->ledgers[i]);
	}
}

struct pinion_request *pin_throttle_next(struct pin_worker *worker)
{
	struct pin_throttle *throttle = &worker->throttle;

	take_nudge(worker);
	for (uint32_t i = 0; i < throttle->ledger_count; i++) {
		struct pinion_request *request = next_of(worker, &throttle->ledgers[i]);

		if (request != NULL) {
			return request;
		}
	}
	throttle->must_look = false;
	return NULL;
}

static void leave_lineup(struct pin_worker *worker, struct pin_ledger *ledger)
{
	PIN_CHECK(worker->throttle.lined_up > 0);
	PIN_DCHECK(ledger->lineup.count > 0);
	pin_lineup_note_left(&ledger->lineup);
	worker->throttle.lined_up--;
	if (ledger->lineup.count == 0) {
		note_unblocked(worker, ledger);
		pin_credit_leave(&ledger->disk->credit, &ledger->holding);
	} else {
		/* Another may be the first. */
		worker->throttle.must_look = true;
	}
}

static inline void book(struct pin_ledger *ledger, const struct pinion_request *request)
{
	pin_meter_add(&ledger->requests, 1);
	pin_meter_add(&ledger->units, pin_depth_units(request->length_bytes));
	pin_meter_add(&ledger->bytes, request->length_bytes);
	ledger->ends_since_look++;
}

static void account(struct pin_worker *worker, struct pin_ledger *ledger,
	const struct pinion_request *request, const struct pin_request_toll *toll)
{
	book(ledger, request);
	if (PIN_UNLIKELY(toll->started_ns != 0)) {
		pin_meter_add(
			&ledger->latency_ns, worker->shared->host->now_ns() - toll->started_ns);
		pin_meter_add(&ledger->timed, 1);
	}
	if (PIN_UNLIKELY(ledger->ends_since_look >= ledger->look_ends)) {
		look_at_disk(worker, ledger);
	}
}

static PIN_APART void end_admitted(
	struct pin_worker *worker, struct pin_worker *taker, struct pinion_request *request)
{
	struct pin_request_toll *toll = &pin_request_of(request)->toll;
	struct pin_ledger *ledger = &worker->throttle.ledgers[toll->ledger_place - 1];
	bool is_wanted;

	PIN_DCHECK(toll->ledger_place <= worker->throttle.ledger_count);
	if (PIN_UNLIKELY(toll->is_lined_up)) {
		leave_lineup(worker, ledger);
		if (pin_request_of(request)->resume_bytes != 0) {
			/* Between two parts: the device has had some of it. */
			account(worker, ledger, request, toll);
		}
		return;
	}
	is_wanted = ledger->lineup.count > 0;
	pin_credit_end(&ledger->disk->credit, &ledger->holding, pin_credit_amount(1, toll->pages),
		is_wanted);
	if (PIN_UNLIKELY(is_wanted)) {
		call_worker(worker, taker);
	}
	account(worker, ledger, request, toll);
}

/*
 * As most do: nothing waits for its credit, which is kept, it was not timed,
 * and no check is due. False: nothing has changed.
 */
static PIN_INLINE bool end_at_once(struct pin_worker *worker, struct pinion_request *request)
{
	const struct pin_request_toll *toll = &pin_request_of(request)->toll;
	struct pin_ledger *ledger = &worker->throttle.ledgers[toll->ledger_place - 1];

	if (PIN_UNLIKELY(toll->is_lined_up || ledger->lineup.count != 0 || toll->started_ns != 0 ||
		    ledger->ends_since_look + 1 >= ledger->look_ends ||
		    !pin_credit_end_held(&ledger->disk->credit, &ledger->holding,
			    pin_credit_amount(1, toll->pages)))) {
		return false;
	}
	book(ledger, request);
	return true;
}

/* No calls but the last, as pin_throttle_admit(). */
void pin_throttle_end_admitted(
	struct pin_worker *worker, struct pin_worker *taker, struct pinion_request *request)
{
	if (PIN_UNLIKELY(!end_at_once(worker, request))) {
		end_admitted(worker, taker, request);
	}
}

bool pin_throttle_give_up(struct pin_worker *worker)
{
	struct pin_throttle *throttle = &worker->throttle;
	bool is_over = true;

	for (uint32_t i = 0; i < throttle->ledger_count; i++) {
		struct pin_ledger *ledger = &throttle->ledgers[i];

		is_over &= pin_credit_give_up(&ledger->disk->credit, &ledger->holding);
	}
	return is_over;
}

void pin_throttle_expire(struct pin_worker *worker, struct pin_timer *timer)
{
	(void)timer; /* and is out of the wheel: the first is looked at anew */
	worker->throttle.must_look = true;
}
