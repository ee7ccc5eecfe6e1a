/* SPDX-License-Identifier: MIT */
/*
 * Stalled devices: those that have completed no request for ten times
 * `stall_ms`. Each is named in the log, once, with the file and offset of its
 * oldest request.
 *
 * Only its worker knows which file that request is for. So the watchdog
 * (stall.h) stores the question in `asked` and kicks the workers; the worker
 * that finds such a request takes the question, counts, and names it. If no
 * worker has answered by the next check but one, since all are in long tasks,
 * the watchdog takes the question back and names the device alone.
 *
 *     watchdog                            worker
 *     a  asked := device (release)        1  finds its kick
 *     b  kicks: [DEVICE-1]                2  has a request there:
 *     c  a check later: asked -> 0,           asked -> 0, names it
 *        names the device
 *
 * [STALL-2] c against 2: each is a compare-and-swap from the same question, so
 * exactly one of them names it.
 * [STALL-3] the namer sets the device's bit in `devices_now` (RMW) after its
 * line -> the watchdog, which has found that the device goes on, loads it
 * (acquire) before it says so, and clears the bit. While the question is open
 * it takes that back instead, and neither line is written; while a worker is
 * about to name the device it waits for its next check.
 */
#ifndef PIN_WORKER_DEVICE_STALL_H
#define PIN_WORKER_DEVICE_STALL_H

#include "runtime/worker/state.h"

/*
 * By the worker, before it sleeps and now and then: which devices have requests
 * of its own. With the lock of its ring, if that is shared.
 */
void pin_device_stall_note_used(struct pin_worker *worker);

/* Step 2, by a worker that was kicked. With that lock. */
void pin_device_stall_answer(struct pin_worker *worker);

static inline bool pin_device_stall_is_asked(const struct pin_worker *worker)
{
	return PIN_UNLIKELY(pin_load_acquire_u32(&worker->shared->stalls.asked) != 0);
}

/* By the watchdog, at all devices. */
void pin_device_stall_look(struct pin_shared *shared, const struct pin_stall_look_times *times);

#endif
