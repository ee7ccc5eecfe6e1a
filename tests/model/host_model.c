/* SPDX-License-Identifier: MIT */
/*
 * The host seam in a model build: threads are the explorer's, futexes put them
 * to sleep, time stops until no thread can go on. A sleep that ends for no
 * reason has reached its deadline, if it has one, and the clock shows it then.
 * It takes the place of host/linux.c.
 *
 * A futex compares with the newest value, as the kernel does under its lock,
 * but orders nothing for its caller; the protocols must not need that.
 */
#include "runtime/host/host.h"
#include "tests/model/api/runtime_model.h"
#include "tests/model/event_model.h"
#include "tests/model/explorer.h"
#include "tests/model/heap.h"
#include "tests/model/memory.h"

#include <errno.h>

static uint64_t model_now_ns(void)
{
	return model_clock_ns();
}

static int model_futex_wait(struct pin_atomic_u32 *word, uint32_t expected, uint64_t deadline_ns)
{
	bool has_deadline = deadline_ns != PIN_NO_DEADLINE;

	model_point();
	if (model_is_freed(word)) {
		model_fail("a futex wait on freed memory");
	}
	if (word->value != expected && !model_is_spoilt(MODEL_NO_COMPARE, __func__, NULL)) {
		model_event(__func__, "changed", word, word->value);
		return 0;
	}
	if (model_choose(MODEL_SPURIOUS, 2) == 1) {
		model_event(__func__, "for no reason", word, word->value);
		if (has_deadline) {
			model_clock_reach(deadline_ns);
			return -ETIMEDOUT;
		}
		return 0;
	}
	model_event(__func__, "sleep", word, word->value);
	if (!model_sleep_on(word, has_deadline)) {
		model_event(__func__, "timed out", word, word->value);
		return -ETIMEDOUT;
	}
	model_event(__func__, "woken", word, word->value);
	return 0;
}

/* On freed memory too: the kernel takes the address for a name only. */
static void model_futex_wake(struct pin_atomic_u32 *word, uint32_t count)
{
	model_point();
	model_event(__func__, "wake", word, count);
	model_wake_on(word, count);
}

bool model_has_no_fence;

/* At one moment: what others do before and after it is explored. */
static bool model_fence_all(void)
{
	if (model_has_no_fence) {
		return false;
	}
	model_point();
	if (!model_is_spoilt(MODEL_DROP_FENCE, __func__, NULL)) {
		memory_settle(model_thread_count());
	}
	model_event(__func__, "fence", NULL, 0);
	return true;
}

static void *(*entries[MODEL_THREADS_MAX])(void *);
static void *arguments[MODEL_THREADS_MAX];

static void run_entry(void *arg)
{
	uint32_t thread = model_thread_current();

	(void)arg;
	entries[thread](arguments[thread]);
}

static int model_thread_begin(
	pthread_t *out_thread, size_t stack_bytes, void *(*entry)(void *), void *arg)
{
	uint32_t thread = model_thread_start("worker", run_entry, NULL);

	(void)stack_bytes;
	entries[thread] = entry;
	arguments[thread] = arg;
	*out_thread = (pthread_t)thread;
	return 0;
}

static void model_thread_finish(pthread_t thread)
{
	model_thread_join((uint32_t)thread);
}

static void model_thread_sleep_exactly(void)
{
}

static int model_thread_make_way(uint32_t niceness)
{
	(void)niceness;
	return 0;
}

static int model_thread_bind(const uint32_t *cpu_indices, uint32_t count)
{
	(void)cpu_indices;
	(void)count;
	return 0;
}

static int model_thread_rebind(const uint32_t *cpu_indices, uint32_t count)
{
	(void)cpu_indices;
	(void)count;
	return 0;
}

static int model_ring_bind_helpers(int fd, uint32_t node_index)
{
	(void)fd;
	(void)node_index;
	return 0;
}

static void *model_allocate(void *arg, size_t align, size_t bytes)
{
	(void)arg;
	return model_aligned_alloc(align, bytes);
}

static void model_release(void *arg, void *memory, size_t align, size_t bytes)
{
	(void)arg;
	(void)align;
	(void)bytes;
	model_free(memory);
}

const struct pin_host pin_host_linux = {
	.now_ns = model_now_ns,
	.futex_wait = model_futex_wait,
	.futex_wake = model_futex_wake,
	.yield = model_yield,
	.event_create = model_event_create,
	.event_raise = model_event_raise,
	.event_clear = model_event_clear,
	.event_close = model_event_close,
	.fence_all = model_fence_all,
	.thread_start = model_thread_begin,
	.thread_join = model_thread_finish,
	.thread_sleep_exactly = model_thread_sleep_exactly,
	.thread_make_way = model_thread_make_way,
	.thread_bind = model_thread_bind,
	.thread_rebind = model_thread_rebind,
	.heap = {.allocate = model_allocate, .release = model_release},
	.ring_bind_helpers = model_ring_bind_helpers,
	.ring_register = model_ring_register,
};
