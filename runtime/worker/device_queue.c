/* SPDX-License-Identifier: MIT */
/*
 * Decides when a transfer may start: it pays the rates, draws credit of the
 * device, and queues on the worker where either is missing.
 *
 * submit.c asks before it makes an entry, complete.c reports each end. The
 * worker's loop asks for queued transfers that may start now; timers and kicks
 * from other threads make it ask. request.h, "waiting for a device", has the
 * protocol.
 *
 * Invariant: rates are paid before credit is drawn, so a transfer that must not
 * start yet never holds credit that another worker could use.
 */
#include "runtime/base/check.h"
#include "runtime/worker/device_stall.h"
#include "runtime/worker/metrics.h"
#include "runtime/worker/request.h"
#include "runtime/worker/wake.h"

enum {
	/* For each check of an interval this number of requests are timed. */
	TIMED_PER_LOOK = 2,
};

static void kick(struct pin_worker *worker, struct pin_worker *waker)
{
	pin_store_release_u32(&worker->kicked, 1); /* [DEVICE-1] */
	pin_wake_worker(worker, waker);
}

static void granted(struct pin_holding *holding)
{
	struct pin_account *account = PIN_CONTAINER_OF(holding, struct pin_account, holding);

	kick(account->worker, NULL);
}

void pin_device_queue_init(struct pin_worker *worker)
{
	pin_lines_init(&worker->device_queue.lines);
	for (uint32_t i = 0; i < PIN_ACCOUNTS; i++) {
		struct pin_account *account = &worker->device_queue.accounts[i];

		account->worker = worker;
		account->timer.owner_kind = PIN_TASK_DEVICE_QUEUE;
		account->look_ends = PIN_ACCOUNT_ENDS_MIN;
		pin_device_waiters_init(&account->device_waiters);
		pin_holding_init(&account->holding, granted);
	}
}

void pin_device_queue_kick_all(struct pin_shared *shared)
{
	for (uint32_t i = 0; i < shared->worker_count; i++) {
		kick(&shared->workers[i], pin_worker_current());
	}
}

/* ---- accounts ---- */

/* NULL: it has none yet. */
static inline struct pin_account *known_account(struct pin_worker *worker, uint64_t device)
{
	struct pin_device_queue *device_queue = &worker->device_queue;

	for (uint32_t i = 0; i < device_queue->account_count; i++) {
		if (PIN_LIKELY(device_queue->accounts[i].device == device)) {
			return &device_queue->accounts[i];
		}
	}
	return NULL;
}

static inline struct pin_account *find_account(struct pin_worker *worker, uint64_t device)
{
	struct pin_account *account = known_account(worker, device);

	return PIN_LIKELY(account != NULL) ? account : pin_device_account_open(worker, device);
}

/* ---- rates ---- */

static void note_blocked(struct pin_worker *worker, struct pin_account *account, uint64_t due_ns)
{
	uint64_t now_ns = worker->shared->host->now_ns();

	if (account->blocked_ns == 0) {
		account->blocked_ns = now_ns;
		pin_meter_add(&account->throttled, 1);
	}
	if (pin_timer_is_armed(&account->timer)) {
		if (account->timer.due_ns == due_ns) {
			return;
		}
		pin_timers_cancel(&worker->deadlines, &account->timer);
	}
	pin_timers_insert(&worker->deadlines, &account->timer, due_ns);
}

static void note_unblocked(struct pin_worker *worker, struct pin_account *account)
{
	if (PIN_UNLIKELY(account->blocked_ns != 0)) {
		uint64_t now_ns = worker->shared->host->now_ns();

		PIN_DCHECK(now_ns >= account->blocked_ns);
		pin_meter_add(&account->throttled_ns, now_ns - account->blocked_ns);
		account->blocked_ns = 0;
		pin_timers_cancel(&worker->deadlines, &account->timer);
	}
}

/* Rates that come or go meanwhile may hold a request or not: relaxed. */
static inline bool has_rates(const struct pin_worker *worker, const struct pin_account *account)
{
	const struct pin_limiter *common = &worker->shared->disks.limiter;
	const struct pin_limiter *own = &account->disk->limiter;

	return pin_load_relaxed_u32(&common->is_on) != 0 || pin_load_relaxed_u32(&own->is_on) != 0;
}

/*
 * A part of a request is short enough for both rates, but whole blocks of its
 * file: then all workers together hold a 50th of a second's bytes.
 */
static uint8_t part_cut_of(const struct pin_worker *worker, const struct pin_account *account,
	const struct pinion_request *request)
{
	uint64_t most = pin_load_relaxed_u64(&worker->shared->disks.limiter.part_bytes);
	uint64_t own = pin_load_relaxed_u64(&account->disk->limiter.part_bytes);
	uint32_t align = request->file->offset_align_bytes > request->file->memory_align_bytes
		? request->file->offset_align_bytes
		: request->file->memory_align_bytes;
	uint32_t least = align > PIN_REQUEST_PART_BYTES_MIN ? align : PIN_REQUEST_PART_BYTES_MIN;
	uint8_t cut = 0;

	most = most == 0 || (own != 0 && own < most) ? own : most;
	while (most != 0 && PIN_REQUEST_PART_BYTES >> cut > most &&
		PIN_REQUEST_PART_BYTES >> cut > least) {
		cut++;
	}
	return cut;
}

/*
 * Pays the runtime's and the device's rate for the request's next part, both or
 * neither: an amount that only one of them allows stays unspent.
 */
static PIN_APART bool pay_rates(
	struct pin_worker *worker, struct pin_account *account, struct pinion_request *request)
{
	struct pin_shared *shared = worker->shared;
	struct pin_request_cost *cost = &pin_request_of(request)->cost;
	struct pin_limiter *common = &shared->disks.limiter;
	struct pin_limiter *own = &account->disk->limiter;
	uint64_t done_bytes = pin_request_of(request)->resume_bytes;
	uint64_t amounts[PIN_LIMITED_KINDS];
	uint64_t due_ns;
	uint64_t own_due_ns;

	PIN_DCHECK(!cost->is_paid);
	PIN_DCHECK(done_bytes <= request->length_bytes);
	cost->part_cut = part_cut_of(worker, account, request);
	amounts[PIN_LIMITED_BYTES] = pin_request_part(request, done_bytes);
	amounts[PIN_LIMITED_REQUESTS] = done_bytes == 0 ? 1 : 0;
	due_ns = pin_limiter_due(common, shared->host, &worker->device_queue.allowance, amounts);
	own_due_ns = pin_limiter_due(own, shared->host, &account->allowance, amounts);
	due_ns = own_due_ns > due_ns ? own_due_ns : due_ns;
	if (due_ns != 0) {
		note_blocked(worker, account, due_ns);
		return false;
	}
	note_unblocked(worker, account);
	pin_limiter_spend(&worker->device_queue.allowance, amounts);
	pin_limiter_spend(&account->allowance, amounts);
	cost->is_paid = true;
	return true;
}

/* False: not yet, and a timer is armed. */
static inline bool pay(
	struct pin_worker *worker, struct pin_account *account, struct pinion_request *request)
{
	struct pin_request_cost *cost = &pin_request_of(request)->cost;

	if (cost->is_paid) {
		return true;
	}
	/* Reservations are void by the time there are rates: [LIMIT-1]. */
	if (PIN_UNLIKELY(has_rates(worker, account))) {
		return pay_rates(worker, account, request);
	}
	note_unblocked(worker, account);
	cost->part_cut = 0;
	cost->is_paid = true;
	return true;
}

/* ---- credit ---- */

static inline uint32_t pages_of(struct pinion_request *request)
{
	uint32_t part_bytes = pin_request_part(request, pin_request_of(request)->resume_bytes);

	return (part_bytes + PIN_PAGE_BYTES - 1) / PIN_PAGE_BYTES;
}

/* The device's own, else the runtime's; 0: none is slow. */
static inline uint64_t slow_ns_of(
	const struct pin_worker *worker, const struct pin_account *account)
{
	uint64_t own_ns = pin_load_relaxed_u64(&account->disk->limiter.slow_ns);

	return own_ns != 0 ? own_ns : pin_load_relaxed_u64(&worker->shared->disks.limiter.slow_ns);
}

/* Each that is to be timed, so that some are for each check. */
static inline bool is_timed(const struct pin_account *account, uint32_t start_count)
{
	return start_count * TIMED_PER_LOOK >= account->look_ends;
}

static PIN_INLINE bool draw(
	struct pin_worker *worker, struct pin_account *account, struct pinion_request *request)
{
	struct pin_request_cost *cost = &pin_request_of(request)->cost;
	uint64_t amount;

	PIN_DCHECK(cost->is_paid); /* what rates hold back keeps no credit from others */
	if (PIN_UNLIKELY(!pin_credit_use(
		    &account->disk->credit, &account->holding, pages_of(request), &amount))) {
		return false;
	}
	cost->pages = (uint16_t)pin_credit_pages(amount);
	/* For transfers timed by parts, waits would be counted too. */
	account->starts_since_timed += pin_request_of(request)->resume_bytes == 0;
	if (is_timed(account, account->starts_since_timed) || slow_ns_of(worker, account) != 0) {
		account->starts_since_timed = 0;
		cost->started_ns = worker->shared->host->now_ns();
	}
	return true;
}

/* ---- device wait queues ---- */

static bool may_start(
	struct pin_worker *worker, struct pin_account *account, struct pinion_request *request)
{
	return pay(worker, account, request) && draw(worker, account, request);
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
	struct pin_worker *worker, struct pin_account *account, struct pinion_request *request)
{
	struct pin_request *private = pin_request_of(request);

	PIN_DCHECK(!private->cost.is_queued && !private->is_waiting);
	private->cost.is_queued = true;
	private->is_waiting = true;
	if (has_stopping_clock(private)) {
		stop_clock(worker, request);
	}
	pin_device_waiters_push(&account->device_waiters, &worker->device_queue.lines, request);
	worker->device_queue.queued++;
}

/* `is_counted`: among those that a rate keeps. */
static void line_up(struct pin_worker *worker, struct pin_account *account,
	struct pinion_request *request, bool is_counted)
{
	struct pin_request *private = pin_request_of(request);

	push(worker, account, request);
	if (private->cost.is_paid) {
		pin_meter_add(&account->waited, 1);
		pin_credit_await(&account->disk->credit, &account->holding, pages_of(request));
	} else if (!is_counted) {
		/* Whatever keeps the first of them. */
		pin_meter_add(account->blocked_ns == 0 ? &account->waited : &account->throttled, 1);
	}
}

bool pin_device_queue_has_rates(struct pin_worker *worker, const struct pinion_request *request)
{
	return has_rates(worker, find_account(worker, request->file->device));
}

/* A rate that comes or goes meanwhile counts or not: relaxed. */
static bool limits_bytes(const struct pin_limiter *limiter)
{
	return pin_load_relaxed_u64(&limiter->part_bytes) != 0;
}

bool pin_device_queue_limits_bytes(struct pin_worker *worker, const struct pinion_file *file)
{
	const struct pin_disks *disks = &worker->shared->disks;
	/* Acquire: disks before it are whole, see pin_disks_find(). */
	uint32_t count = pin_load_acquire_u32(&disks->count);

	bool is_any = pin_disks_have_early_limits(disks);

	if (limits_bytes(&disks->limiter)) {
		return true;
	}
	for (uint32_t i = 0; i < count && !is_any; i++) {
		is_any = limits_bytes(&disks->disks[i].limiter);
	}
	/* No account is opened where no device has limits of its own. */
	return is_any && limits_bytes(&find_account(worker, file->device)->disk->limiter);
}

static inline uint8_t place_of(const struct pin_worker *worker, const struct pin_account *account)
{
	PIN_DCHECK((size_t)(account - worker->device_queue.accounts) <
		worker->device_queue.account_count);
	return (uint8_t)(account - worker->device_queue.accounts + 1);
}

static PIN_APART bool admit(struct pin_worker *worker, struct pinion_request *request)
{
	struct pin_account *account = find_account(worker, request->file->device);
	bool is_first = pin_device_waiters_lets_pass(&account->device_waiters, request);
	bool was_blocked = account->blocked_ns != 0;

	pin_request_of(request)->cost.account_place = place_of(worker, account);
	if (PIN_LIKELY(is_first) && may_start(worker, account, request)) {
		pin_device_waiters_note_start(&account->device_waiters, request);
		/* It may have taken off the timer of those that it passes. */
		worker->device_queue.must_look |= account->device_waiters.count > 0;
		return true;
	}
	line_up(worker, account, request, is_first && !was_blocked);
	return false;
}

/*
 * The usual case: nothing waits or is limited, there is credit, and it is not
 * timed. False: nothing is taken, and admit() decides.
 */
static PIN_INLINE bool admit_at_once(struct pin_worker *worker, struct pinion_request *request)
{
	struct pin_account *account = known_account(worker, request->file->device);
	struct pin_request_cost *cost = &pin_request_of(request)->cost;
	uint32_t pages = pages_of(request);

	if (PIN_UNLIKELY(account == NULL || account->device_waiters.count != 0 ||
		    has_rates(worker, account) || account->blocked_ns != 0 ||
		    is_timed(account, account->starts_since_timed + 1))) {
		return false;
	}
	cost->account_place = place_of(worker, account);
	if (PIN_UNLIKELY(!pin_credit_use_held(&account->holding, pin_credit_amount(1, pages)))) {
		return false;
	}
	account->starts_since_timed++;
	cost->is_paid = true;
	cost->pages = (uint16_t)pages;
	return true;
}

/* No calls but the last: none needs registers saved where it goes at once. */
bool pin_device_queue_admit(struct pin_worker *worker, struct pinion_request *request)
{
	PIN_CHECK(pin_request_of(request)->resume_bytes == 0);
	return PIN_LIKELY(admit_at_once(worker, request)) || admit(worker, request);
}

/* A worker waits for the credit just given back, or has to check it. */
static void call_worker(struct pin_worker *worker, struct pin_worker *taker)
{
	PIN_DCHECK(pin_worker_is_current(taker));
	if (taker == worker) {
		worker->device_queue.must_look = true;
	} else {
		kick(worker, taker);
	}
}

bool pin_device_queue_owes_part(const struct pin_worker *worker, struct pinion_request *request)
{
	uint32_t place = pin_request_of(request)->cost.account_place;

	return place != 0 && has_rates(worker, &worker->device_queue.accounts[place - 1]);
}

void pin_device_queue_defer_part(
	struct pin_worker *worker, struct pin_worker *taker, struct pinion_request *request)
{
	struct pin_request_cost *cost = &pin_request_of(request)->cost;
	struct pin_account *account = &worker->device_queue.accounts[cost->account_place - 1];

	PIN_DCHECK(cost->account_place != 0 && cost->is_paid);
	pin_credit_end(&account->disk->credit, &account->holding, pin_credit_amount(1, cost->pages),
		account->device_waiters.count > 0);
	cost->is_paid = false;
	cost->started_ns = 0;
	push(worker, account, request);
	call_worker(worker, taker);
}

/*
 * The first queued transfer of a device, if it may start now. If it may not,
 * the event that it waits for makes the worker check again: a timer for a rate,
 * a grant for credit.
 */
static struct pinion_request *next_of(struct pin_worker *worker, struct pin_account *account)
{
	struct pinion_request *request =
		pin_device_waiters_first(&account->device_waiters, &worker->device_queue.lines);

	if (request == NULL) {
		return NULL;
	}
	if (!pay(worker, account, request)) {
		/* Credit granted to the last one is not kept until then. */
		pin_credit_settle(&account->disk->credit, &account->holding, false);
		return NULL;
	}
	if (!draw(worker, account, request)) {
		pin_credit_await(&account->disk->credit, &account->holding, pages_of(request));
		return NULL;
	}
	PIN_CHECK(worker->device_queue.queued > 0);
	PIN_DCHECK(pin_request_of(request)->cost.is_queued);
	pin_device_waiters_pop(&account->device_waiters);
	worker->device_queue.queued--;
	pin_request_of(request)->cost.is_queued = false;
	pin_request_of(request)->is_waiting = false;
	if (has_stopping_clock(pin_request_of(request))) {
		restart_clock(worker, request);
	}
	if (account->device_waiters.count == 0) {
		pin_credit_leave(&account->disk->credit, &account->holding);
	}
	return request;
}

/*
 * Where nothing is queued, granted credit goes on to others, and so does kept
 * credit beyond a new limit: for a long time no other event may come that gives
 * it back. [LIMIT-1]
 */
static void collect(struct pin_account *account)
{
	(void)pin_credit_collect(&account->holding);
	if (account->device_waiters.count == 0) {
		pin_credit_leave(&account->disk->credit, &account->holding);
	}
}

static void take_kick(struct pin_worker *worker)
{
	struct pin_device_queue *device_queue = &worker->device_queue;

	device_queue->must_look = true;
	if (pin_load_relaxed_u32(&worker->kicked) == 0) {
		return;
	}
	pin_exchange_acq_rel_u32(&worker->kicked, 0); /* [DEVICE-1] */
	if (pin_device_stall_is_asked(worker)) {
		pin_device_stall_answer(worker);
	}
	for (uint32_t i = 0; i < device_queue->account_count; i++) {
		collect(&device_queue->accounts[i]);
	}
}

/* Of the next device in turn that has one, or an urgent one, that may start. */
static struct pinion_request *next_of_devices(struct pin_worker *worker, bool is_urgent)
{
	struct pin_device_queue *device_queue = &worker->device_queue;
	uint32_t count = device_queue->account_count;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t index = (device_queue->turn + i) % count;
		struct pin_account *account = &device_queue->accounts[index];
		struct pinion_request *request =
			is_urgent && !pin_device_waiters_has_urgent(&account->device_waiters)
			? NULL
			: next_of(worker, account);

		if (request != NULL) {
			device_queue->turn = (index + 1) % count;
			return request;
		}
	}
	return NULL;
}

/*
 * All devices draw from a rate of the runtime, and the first would leave
 * nothing to the others: they take turns, and those with urgent transfers come
 * before, a row of them at most.
 */
static struct pinion_request *next_under_rate(struct pin_worker *worker)
{
	struct pin_device_queue *device_queue = &worker->device_queue;
	struct pinion_request *request = NULL;

	PIN_DCHECK(device_queue->passed_count <= PIN_PASSED_MAX);
	if (device_queue->passed_count < PIN_PASSED_MAX) {
		request = next_of_devices(worker, true);
	}
	if (request != NULL) {
		device_queue->passed_count++;
		return request;
	}
	request = next_of_devices(worker, false);
	if (request != NULL) {
		device_queue->passed_count = 0;
	}
	return request;
}

struct pinion_request *pin_device_queue_next(struct pin_worker *worker)
{
	struct pin_device_queue *device_queue = &worker->device_queue;

	take_kick(worker);
	/* A rate that comes or goes meanwhile counts from the next time on. */
	if (device_queue->account_count > 1 &&
		PIN_UNLIKELY(pin_load_relaxed_u32(&worker->shared->disks.limiter.is_on) != 0)) {
		struct pinion_request *request = next_under_rate(worker);

		device_queue->must_look = request != NULL;
		return request;
	}
	for (uint32_t i = 0; i < device_queue->account_count; i++) {
		struct pinion_request *request = next_of(worker, &device_queue->accounts[i]);

		if (request != NULL) {
			return request;
		}
	}
	device_queue->must_look = false;
	return NULL;
}

static void leave_device_waiters(
	struct pin_worker *worker, struct pin_account *account, struct pinion_request *request)
{
	PIN_CHECK(worker->device_queue.queued > 0);
	PIN_DCHECK(account->device_waiters.count > 0);
	pin_device_waiters_note_left(&account->device_waiters, request);
	worker->device_queue.queued--;
	if (account->device_waiters.count == 0) {
		note_unblocked(worker, account);
		pin_credit_leave(&account->disk->credit, &account->holding);
	} else {
		/* Another may be the first. */
		worker->device_queue.must_look = true;
	}
}

static inline void book(struct pin_account *account, const struct pinion_request *request)
{
	pin_meter_add(&account->requests, 1);
	pin_meter_add(&account->units, pin_depth_units(request->length_bytes));
	pin_meter_add(&account->bytes, request->length_bytes);
	account->ends_since_look++;
}

static void charge_account(struct pin_worker *worker, struct pin_account *account,
	struct pinion_request *request, const struct pin_request_cost *cost)
{
	book(account, request);
	if (PIN_UNLIKELY(cost->started_ns != 0)) {
		uint64_t now_ns = worker->shared->host->now_ns();
		uint64_t took_ns = now_ns - cost->started_ns;
		uint64_t slow_ns = slow_ns_of(worker, account);

		pin_meter_add(&account->latency_ns, took_ns);
		pin_meter_add(&account->timed, 1);
		pin_meter_add(&account->slow, slow_ns != 0 && took_ns > slow_ns);
		pin_metrics_note_request(worker,
			(uint32_t)(account->disk - worker->shared->disks.disks), request, now_ns,
			took_ns);
	}
	if (PIN_UNLIKELY(account->ends_since_look >= account->look_ends)) {
		pin_device_account_look(worker, account);
	}
}

/*
 * Gives back the credit of a transfer that ends. If transfers of this worker
 * wait for the same device, the worker is called to look at its queue.
 */
static PIN_APART void end_admitted(
	struct pin_worker *worker, struct pin_worker *taker, struct pinion_request *request)
{
	struct pin_request_cost *cost = &pin_request_of(request)->cost;
	struct pin_account *account = &worker->device_queue.accounts[cost->account_place - 1];
	bool is_wanted;

	PIN_DCHECK(cost->account_place <= worker->device_queue.account_count);
	if (PIN_UNLIKELY(cost->is_queued)) {
		leave_device_waiters(worker, account, request);
		if (pin_request_of(request)->resume_bytes != 0) {
			/* Between two parts: the device has had some of it. */
			charge_account(worker, account, request, cost);
		}
		return;
	}
	is_wanted = account->device_waiters.count > 0;
	pin_credit_end(&account->disk->credit, &account->holding, pin_credit_amount(1, cost->pages),
		is_wanted);
	if (PIN_UNLIKELY(is_wanted)) {
		call_worker(worker, taker);
	}
	charge_account(worker, account, request, cost);
}

/*
 * The usual end: nothing waits for its credit, which is kept, it was not timed,
 * and no check is due. False: nothing has changed.
 */
static PIN_INLINE bool end_at_once(struct pin_worker *worker, struct pinion_request *request)
{
	const struct pin_request_cost *cost = &pin_request_of(request)->cost;
	struct pin_account *account = &worker->device_queue.accounts[cost->account_place - 1];

	PIN_DCHECK(cost->account_place != 0);
	if (PIN_UNLIKELY(cost->is_queued || account->device_waiters.count != 0 ||
		    cost->started_ns != 0 || account->ends_since_look + 1 >= account->look_ends ||
		    !pin_credit_end_held(&account->disk->credit, &account->holding,
			    pin_credit_amount(1, cost->pages)))) {
		return false;
	}
	book(account, request);
	return true;
}

/* No calls but the last, as pin_device_queue_admit(). */
void pin_device_queue_end(
	struct pin_worker *worker, struct pin_worker *taker, struct pinion_request *request)
{
	if (PIN_UNLIKELY(!end_at_once(worker, request))) {
		end_admitted(worker, taker, request);
	}
}

bool pin_device_queue_give_up(struct pin_worker *worker)
{
	struct pin_device_queue *device_queue = &worker->device_queue;
	bool is_over = true;

	PIN_DCHECK(device_queue->queued == 0);
	for (uint32_t i = 0; i < device_queue->account_count; i++) {
		struct pin_account *account = &device_queue->accounts[i];

		is_over &= pin_credit_give_up(&account->disk->credit, &account->holding);
	}
	return is_over;
}

void pin_device_queue_expire(struct pin_worker *worker, struct pin_timer *timer)
{
	(void)timer; /* and is out of the wheel: the first is looked at anew */
	PIN_DCHECK(!pin_timer_is_armed(timer));
	worker->device_queue.must_look = true;
}
