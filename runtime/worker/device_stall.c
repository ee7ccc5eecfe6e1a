/* SPDX-License-Identifier: MIT */
/*
 * Looks for devices that complete nothing, and asks the workers for the request
 * that has waited longest.
 *
 * Sections say whose thread they are on: the watchdog's, or a worker's.
 *
 * Invariant: each stall of a device is counted, and named, once: by the worker
 * that takes the question, or by the watchdog that takes it back. Only a
 * device that was named goes on.
 */
#include "runtime/worker/device_stall.h"
#include "runtime/base/check.h"
#include "runtime/host/thread_state.h"
#include "runtime/worker/events.h"
#include "runtime/worker/request.h"
#include "runtime/worker/stall_time.h"
#include "runtime/worker/worker.h"

#include <sys/sysmacros.h>

/* ---- by the worker ---- */

/* Bits of the devices in which it has requests. */
static uint32_t find_devices(const struct pin_worker *worker)
{
	const struct pin_device_queue *queue = &worker->device_queue;
	uint32_t devices = 0;

	_Static_assert(PIN_DISKS <= 32, "a bit for each");
	PIN_DCHECK(queue->account_count <= PIN_ACCOUNTS);
	for (uint32_t i = 0; i < queue->account_count; i++) {
		const struct pin_account *account = &queue->accounts[i];

		/* 0: of files that are none, such as pipes. */
		if (account->device != 0 && pin_credit_count(account->holding.used) > 0) {
			devices |= UINT32_C(1) << (account->disk - worker->shared->disks.disks);
		}
	}
	return devices;
}

void pin_device_stall_note_used(struct pin_worker *worker)
{
	uint32_t devices = find_devices(worker);

	/* Relaxed: a hint for the next check. */
	if (pin_load_relaxed_u32(&worker->devices_used) != devices) {
		pin_store_relaxed_u32(&worker->devices_used, devices);
	}
}

/* The oldest that is in this device; NULL: none is. */
static const struct pinion_request *find_oldest(const struct pin_worker *worker, uint32_t place)
{
	for (struct pin_request_link *link = worker->in_flight.next; link != &worker->in_flight;
		link = link->next) {
		struct pin_request *private = PIN_CONTAINER_OF(link, struct pin_request, link);
		struct pinion_request *request = pin_request_of_link(private);
		const struct pin_account *account;

		if (!pin_request_has(request, PIN_OP_MOVES) || private->cost.account_place == 0) {
			continue;
		}
		PIN_DCHECK(private->cost.account_place <= worker->device_queue.account_count);
		account = &worker->device_queue.accounts[private->cost.account_place - 1];
		if (account->disk - worker->shared->disks.disks == (ptrdiff_t)place) {
			return request;
		}
	}
	return NULL;
}

/* By either; `request`: of its worker's, or NULL. */
static void say_of_device(const struct pin_shared *shared, uint32_t place,
	const struct pinion_request *request, const char *file)
{
	const struct pin_disk *disk = &shared->disks.disks[place];
	unsigned long long waited_ms =
		(unsigned long long)shared->tuning.stall_ms * PIN_STALL_TIMES;

	PIN_CHECK(place < PIN_DISKS); /* an index */
	pin_event_stall(shared, PIN_STALLED_DEVICE, place,
		pin_stall_limit_ns(shared) * PIN_STALL_TIMES, disk->device);
	if (request == NULL) {
		pin_log(&shared->log, PINION_LOG_WARN,
			"device %u:%u: none of its requests has completed for more than %llu ms",
			major(disk->device), minor(disk->device), waited_ms);
		return;
	}
	pin_log(&shared->log, PINION_LOG_WARN,
		"device %u:%u: none of its requests has completed for more than %llu ms; the "
		"oldest is a %s of %s at offset %llu",
		major(disk->device), minor(disk->device), waited_ms,
		pin_request_has(request, PIN_OP_READS) ? "read" : "write", file,
		(unsigned long long)request->offset_bytes);
}

/* After its line, so that the line of its end comes after that. */
static void note_named(struct pin_shared *shared, uint32_t place)
{
	PIN_DCHECK(place < PIN_DISKS); /* a bit of 32 */
	pin_fetch_or_seq_cst_u32(&shared->stalls.devices_now, UINT32_C(1) << place); /* [STALL-3] */
}

static bool take_question(struct pin_shared *shared, uint32_t place)
{
	uint32_t asked = place + 1;

	PIN_DCHECK(place < PIN_DISKS);				      /* 0 is no question */
	return pin_cas_seq_cst_u32(&shared->stalls.asked, &asked, 0); /* [STALL-2] */
}

void pin_device_stall_answer(struct pin_worker *worker)
{
	struct pin_shared *shared = worker->shared;
	uint32_t asked = pin_load_acquire_u32(&shared->stalls.asked); /* [DEVICE-1] */
	const struct pinion_request *request;
	char file[PIN_THREAD_WHERE_BYTES - 128];

	pin_device_stall_note_used(worker);
	if (asked == 0) {
		return;
	}
	request = find_oldest(worker, asked - 1);
	if (request == NULL || !take_question(shared, asked - 1)) {
		return;
	}
	PIN_DCHECK(request->file != NULL); /* of what moves bytes it was checked */
	pin_descriptor_describe(request->file->fd, file, sizeof(file));
	pin_stall_note_found(shared, PIN_STALL_OF_DEVICE);
	say_of_device(shared, asked - 1, request, file);
	note_named(shared, asked - 1);
}

/* ---- by the watchdog ---- */

static bool is_device_used(const struct pin_shared *shared, uint32_t place)
{
	PIN_DCHECK(place < PIN_DISKS); /* a bit of 32 */
	for (uint32_t i = 0; i < shared->worker_count; i++) {
		if ((pin_load_relaxed_u32(&shared->workers[i].devices_used) >> place & 1) != 0) {
			return true;
		}
	}
	return false;
}

/* One question at a time: while another is open, this one waits. */
static bool ask(struct pin_shared *shared, uint32_t place)
{
	struct pin_stalls *stalls = &shared->stalls;

	if (pin_load_relaxed_u32(&stalls->asked) != 0) { /* [STALL-2] */
		return false;
	}
	stalls->looks_asked = 0;
	pin_store_release_u32(&stalls->asked, place + 1); /* [DEVICE-1] */
	pin_device_queue_kick_all(shared);
	return true;
}

/* No worker has answered: those with requests there are in long tasks. */
static void take_back(struct pin_shared *shared)
{
	struct pin_stalls *stalls = &shared->stalls;
	uint32_t asked = pin_load_relaxed_u32(&stalls->asked);

	if (asked == 0 || ++stalls->looks_asked < PIN_STALL_LOOKS ||
		!take_question(shared, asked - 1)) {
		return;
	}
	if (is_device_used(shared, asked - 1)) {
		pin_stall_note_found(shared, PIN_STALL_OF_DEVICE);
		say_of_device(shared, asked - 1, NULL, "");
		note_named(shared, asked - 1);
		stalls->has_news = true;
	} else {
		stalls->disks[asked - 1].is_seen = false;
	}
}

/*
 * Requests complete again. False: a worker is about to name it, and the end is
 * for the next check.
 */
static bool end_stall(
	struct pin_shared *shared, uint32_t place, const struct pin_stall_look_times *times)
{
	struct pin_stalls *stalls = &shared->stalls;
	const struct pin_disk *disk = &shared->disks.disks[place];
	uint32_t bit = UINT32_C(1) << place;

	PIN_DCHECK(stalls->disks[place].is_told);
	if (take_question(shared, place)) {
		/* It was not named, so it does not go on. */
		return true;
	}
	if ((pin_load_acquire_u32(&stalls->devices_now) & bit) == 0) { /* [STALL-3] */
		return false;
	}
	pin_fetch_and_seq_cst_u32(&stalls->devices_now, ~bit);
	stalls->has_news = true;
	pin_log(&shared->log, PINION_LOG_INFO,
		"device %u:%u goes on: no request of it completed for %llu ms", major(disk->device),
		minor(disk->device), pin_stall_lasted_ms(&stalls->disks[place], times));
	return true;
}

static void look_at_device(
	struct pin_shared *shared, uint32_t place, const struct pin_stall_look_times *times)
{
	struct pin_stall *stall = &shared->stalls.disks[place];
	const struct pin_disk *disk = &shared->disks.disks[place];
	bool is_so = is_device_used(shared, place);
	uint64_t signs =
		is_so || stall->is_told ? pin_device_account_sums(shared, disk).requests : 0;

	if (is_so) {
		shared->stalls.is_quiet = false;
	}
	if (pin_stall_is_over(stall, is_so, signs) && !end_stall(shared, place, times)) {
		shared->stalls.is_quiet = false;
		return;
	}
	if (pin_stall_lasted_ns(stall, is_so, signs, times) >=
			pin_stall_limit_ns(shared) * PIN_STALL_TIMES &&
		!stall->is_told) {
		stall->is_told = ask(shared, place);
	}
}

void pin_device_stall_look(struct pin_shared *shared, const struct pin_stall_look_times *times)
{
	uint32_t count = pin_load_acquire_u32(&shared->disks.count); /* [DISK-1] */

	/* Without rings a worker is in each of its requests itself. */
	if (shared->is_fallback) {
		return;
	}
	take_back(shared);
	for (uint32_t i = 0; i < count; i++) {
		look_at_device(shared, i, times);
	}
}
