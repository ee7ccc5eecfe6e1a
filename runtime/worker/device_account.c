/* SPDX-License-Identifier: MIT */
/*
 * A worker's accounts with devices: opens them, and sums them over all workers,
 * for those who show them and for the search for a device's depth.
 *
 * device_queue.c books requests in them, and looks now and then whether an
 * interval of the search is over.
 *
 * Invariant: a worker opens its accounts one after the other and closes none,
 * so any thread reads those that it finds open.
 */
#include "runtime/base/check.h"
#include "runtime/worker/request.h"

enum {
	/* See PIN_ACCOUNT_ENDS_MIN. */
	LOOK_ENDS_MAX = 64,
	LOOK_GAP_NS = 100 * 1000,
};

/*
 * Accounts are few and never closed; all devices beyond them share the last
 * one.
 */
struct pin_account *pin_device_account_open(struct pin_worker *worker, uint64_t device)
{
	struct pin_shared *shared = worker->shared;
	struct pin_device_queue *device_queue = &worker->device_queue;
	struct pin_account *account;
	uint32_t place;

	PIN_DCHECK(pin_worker_is_current(worker));
	if (device_queue->account_count == PIN_ACCOUNTS) {
		/* Of all further devices. */
		return &device_queue->accounts[PIN_ACCOUNTS - 1];
	}
	account = &device_queue->accounts[device_queue->account_count];
	device_queue->account_count++;
	account->device = device;
	account->disk = pin_disks_find(&shared->disks, shared->host, &shared->tuning, device);
	account->is_polled =
		account->disk->is_polled || shared->tuning.polled == PINION_POLLED_ALWAYS;
	place = (uint32_t)(account->disk - shared->disks.disks) + 1;
	PIN_CHECK(place >= 1 && place <= PIN_DISKS);	    /* 0 is an account that is not open */
	pin_store_release_u32(&account->disk_place, place); /* [DISK-2] */
	return account;
}

static void add_account(struct pin_disk_sums *sums, const struct pin_account *account)
{
	sums->requests += pin_meter_read(&account->requests);
	sums->units += pin_meter_read(&account->units);
	sums->bytes += pin_meter_read(&account->bytes);
	sums->waited += pin_meter_read(&account->waited);
	sums->throttled += pin_meter_read(&account->throttled);
	sums->throttled_ns += pin_meter_read(&account->throttled_ns);
	sums->latency_ns += pin_meter_read(&account->latency_ns);
	sums->timed += pin_meter_read(&account->timed);
	sums->slow += pin_meter_read(&account->slow);
}

/* Accounts are opened one after the other: no open one follows a closed one. */
static void add_worker(
	struct pin_disk_sums *sums, const struct pin_worker *worker, const struct pin_disk *disk)
{
	for (uint32_t i = 0; i < PIN_ACCOUNTS; i++) {
		const struct pin_account *account = &worker->device_queue.accounts[i];
		uint32_t place = pin_load_acquire_u32(&account->disk_place); /* [DISK-2] */

		if (place == 0) {
			return;
		}
		PIN_DCHECK(place <= PIN_DISKS);
		if (&worker->shared->disks.disks[place - 1] == disk) {
			add_account(sums, account);
		}
	}
}

struct pin_disk_sums pin_device_account_sums(
	const struct pin_shared *shared, const struct pin_disk *disk)
{
	struct pin_disk_sums sums = {0};

	for (uint32_t i = 0; i < shared->worker_count; i++) {
		add_worker(&sums, &shared->workers[i], disk);
	}
	return sums;
}

/* At the pace since the last check. */
static uint32_t ends_within_gap(const struct pin_account *account, uint64_t now_ns)
{
	uint64_t elapsed_ns = now_ns - account->look_ns + 1;
	uint64_t ends = (uint64_t)account->look_ends * LOOK_GAP_NS / elapsed_ns;

	PIN_DCHECK(now_ns >= account->look_ns);
	if (ends > LOOK_ENDS_MAX) {
		return LOOK_ENDS_MAX;
	}
	return ends < PIN_ACCOUNT_ENDS_MIN ? PIN_ACCOUNT_ENDS_MIN : (uint32_t)ends;
}

PIN_APART void pin_device_account_look(struct pin_worker *worker, struct pin_account *account)
{
	struct pin_shared *shared = worker->shared;
	uint64_t now_ns = shared->host->now_ns();
	struct pin_disk_sums sums;

	PIN_DCHECK(account->disk != NULL);
	account->ends_since_look = 0;
	account->look_ends = ends_within_gap(account, now_ns);
	account->look_ns = now_ns;
	if (pin_disk_is_look_due(account->disk, now_ns)) {
		sums = pin_device_account_sums(shared, account->disk);
		if (pin_disk_learn(&shared->disks, account->disk, shared->host, &shared->tuning,
			    now_ns, &sums)) {
			pin_device_queue_kick_all(shared);
		}
	}
}
