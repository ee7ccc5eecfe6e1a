/* SPDX-License-Identifier: MIT */
/*
 * Futures: one value, set once under the lock of its waiters, which are all
 * served then.
 *
 * Any thread sets it. Its last receiver may free it, so the setter does not
 * touch it after the lock is released, unless it was detached.
 */
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/task/entry.h"
#include "runtime/task/internal.h"

#include <errno.h>
#include <string.h>

static bool take(void *arg, uint64_t demand, struct pin_waiters_value *out_value)
{
	const struct pin_future *future = arg;

	(void)demand;
	(void)out_value;
	PIN_DCHECK(future->error <= 0 && (future->is_done || future->error == 0));
	return future->is_done;
}

/* Under the lock: of a future that is done each wait is over at once. */
static __attribute__((unused)) bool is_sound(const struct pin_future *future)
{
	return future->error <= 0 && (future->is_done || future->error == 0) &&
		(!future->is_done || future->waiters.oldest == NULL);
}

void pinion_future_init(struct pinion_future *future, struct pinion_runtime *runtime)
{
	struct pin_future *self = pin_future_of(future);

	memset(future, 0, sizeof(*future));
	self->runtime = runtime;
	pin_waiters_init(&self->waiters, &pin_host_linux, take, self, PIN_WAITERS_LOCKED);
	PIN_DCHECK(is_sound(self) && !self->is_done);
}

/*
 * The first call decides; later ones return -EALREADY. The release function
 * runs without the lock, since it may free the future.
 */
static int complete(struct pinion_future *future, const void *value, size_t size_bytes, int error)
{
	struct pin_future *self = pin_future_of(future);
	pinion_future_release_fn release;
	bool was_done;

	PIN_DCHECK(size_bytes <= PINION_FUTURE_BYTES && error <= 0);
	PIN_DCHECK(error == 0 || size_bytes == 0);
	pin_waiters_lock(&self->waiters);
	PIN_DCHECK(is_sound(self));
	was_done = self->is_done;
	release = was_done ? NULL : self->release;
	if (!was_done) {
		if (size_bytes > 0) {
			memcpy(self->value, value, size_bytes);
		}
		self->error = error;
		self->is_done = true;
	}
	/* It may be gone afterwards, unless it is detached. */
	pin_waiters_serve_unlock(&self->waiters);
	if (release != NULL) {
		release(future);
	}
	return was_done ? -EALREADY : 0;
}

int pinion_future_set(struct pinion_future *future, const void *value, size_t size_bytes)
{
	if (size_bytes > PINION_FUTURE_BYTES || (value == NULL && size_bytes > 0)) {
		return -EINVAL;
	}
	return complete(future, value, size_bytes, 0);
}

int pinion_future_fail(struct pinion_future *future, int error)
{
	return error < 0 ? complete(future, NULL, 0, error) : -EINVAL;
}

int pinion_future_get(struct pinion_future *future, void *out_value, size_t size_bytes)
{
	struct pin_future *self = pin_future_of(future);
	size_t copied_bytes = size_bytes < PINION_FUTURE_BYTES ? size_bytes : PINION_FUTURE_BYTES;
	int rc = -EAGAIN;

	pin_waiters_lock(&self->waiters);
	PIN_DCHECK(is_sound(self));
	if (self->is_done) {
		rc = self->error;
	}
	if (rc == 0 && copied_bytes > 0) {
		memcpy(out_value, self->value, copied_bytes);
		memset((uint8_t *)out_value + copied_bytes, 0, size_bytes - copied_bytes);
	}
	pin_waiters_unlock(&self->waiters);
	return rc;
}

int pinion_future_wait(struct pinion_future *future, uint64_t deadline_ns)
{
	struct pin_future *self = pin_future_of(future);
	struct pin_waiter waiter;

	pin_waiter_init(&waiter, 0, NULL);
	return pin_runtime_wait(self->runtime, &self->waiters, &waiter, deadline_ns);
}

int pinion_future_wait_async(
	struct pinion_runtime *runtime, struct pinion_future *future, struct pinion_wait *wait)
{
	struct pin_wait_aim aim = {.waiters = &pin_future_of(future)->waiters};

	return pin_runtime_await(runtime, wait, &aim);
}

static void call(struct pin_waiter *waiter)
{
	struct pinion_future_callback *callback = PIN_CONTAINER_OF(
		(uint64_t *)(void *)waiter, struct pinion_future_callback, private_);

	/* Its future is done, and it in no queue: the struct is the user's. */
	PIN_DCHECK(!waiter->is_queued);
	callback->done(callback);
}

int pinion_future_call(struct pinion_future_callback *callback)
{
	struct pin_waiter *waiter = (struct pin_waiter *)(void *)callback->private_;

	if (callback->done == NULL || callback->future == NULL) {
		return -EINVAL;
	}
	pin_waiter_init(waiter, 0, call);
	/* The last touch of both: it may be done, and called, in here. */
	pin_waiters_enter(&pin_future_of(callback->future)->waiters, waiter);
	return 0;
}

/*
 * Hands the memory over to the setter: from now on `release` frees it. That
 * excludes waiters, which would read it later.
 */
int pinion_future_detach(struct pinion_future *future, pinion_future_release_fn release)
{
	struct pin_future *self = pin_future_of(future);
	bool is_done;
	int rc = 0;

	if (release == NULL) {
		return -EINVAL;
	}
	pin_waiters_lock(&self->waiters);
	PIN_DCHECK(is_sound(self));
	is_done = self->is_done;
	if (self->release != NULL) {
		rc = -EALREADY;
	} else if (self->waiters.oldest != NULL) {
		rc = -EBUSY;
	} else {
		self->release = release;
	}
	pin_waiters_unlock(&self->waiters);
	if (rc == 0 && is_done) {
		release(future);
	}
	return rc;
}
