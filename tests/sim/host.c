/* SPDX-License-Identifier: MIT */
/*
 * The host seam in the simulated world; it takes the place of host/linux.c.
 *
 * Mappings are kept and handed out again in later runs, since fresh pages are
 * the dearest part of a short run.
 */
#include "runtime/host/host.h"
#include "runtime/base/base.h"
#include "runtime/host/heap.h"
#include "runtime/worker/watchdog.h"
#include "tests/sim/device.h"
#include "tests/sim/disk.h"
#include "tests/sim/host.h"
#include "tests/sim/world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAPPINGS_MAX = SIM_WORKERS_MAX };

struct mapping {
	void *memory;
	size_t bytes;
	bool is_used;
};

static struct mapping mappings[MAPPINGS_MAX];
static struct sim_faults faults;

static bool is_worker[WORLD_THREADS_MAX];

void host_begin(const struct sim_faults *given)
{
	faults = *given;
	memset(is_worker, 0, sizeof(is_worker));
}

void host_end(void)
{
	for (uint32_t i = 0; i < MAPPINGS_MAX; i++) {
		WORLD_CHECK(!mappings[i].is_used);
	}
}

static uint64_t sim_now_ns(void)
{
	world_point();
	return world_now_ns();
}

static int sim_futex_wait(struct pin_atomic_u32 *word, uint32_t expected, uint64_t deadline_ns)
{
	world_point();
	device_thread_enters_kernel();
	if (word->value != expected) {
		world_event("futex has changed", expected, word->value);
		return 0;
	}
	if (world_chance(faults.spurious)) {
		world_event("futex ends by itself", expected, 0);
		return 0;
	}
	world_event("futex sleeps", expected, 0);
	if (!world_sleep(WORLD_FUTEX, word, NULL, NULL, deadline_ns)) {
		world_event("futex times out", expected, 0);
		return -ETIMEDOUT;
	}
	world_event("futex wakes", expected, 0);
	return 0;
}

static void sim_futex_wake(struct pin_atomic_u32 *word, uint32_t count)
{
	world_point();
	device_thread_enters_kernel();
	world_event("wakes a futex", count, 0);
	world_wake_on(word, count);
}

/* Memory here is sequentially consistent. */
static bool sim_fence_all(void)
{
	return true;
}

static void sim_yield(void)
{
	device_thread_enters_kernel();
	world_yield();
}

bool host_is_worker(uint32_t thread)
{
	return is_worker[thread];
}

static int sim_thread_start(
	pthread_t *out_thread, size_t stack_bytes, void *(*entry)(void *), void *arg)
{
	static const char *const names[SIM_WORKERS_MAX + 1] = {"", "worker 0", "worker 1",
		"worker 2", "worker 3", "worker 4", "worker 5", "worker 6", "worker 7"};
	uint32_t number = world_thread_count();
	const char *name = number <= SIM_WORKERS_MAX ? names[number] : "new worker";

	(void)stack_bytes;
	world_point();
	if (world_chance(faults.no_thread)) {
		return -EAGAIN;
	}
	if (entry == pin_watchdog_main) {
		*out_thread = (pthread_t)world_thread_start("watchdog", entry, arg);
		return 0;
	}
	WORLD_CHECK(number < WORLD_THREADS_MAX);
	is_worker[number] = true;
	*out_thread = (pthread_t)world_thread_start(name, entry, arg);
	return 0;
}

static void sim_thread_join(pthread_t thread)
{
	world_thread_join((uint32_t)thread);
}

/* Nothing that it does could be interrupted. */
static void sim_thread_call(void (*fn)(void *arg), void *arg)
{
	fn(arg);
}

static void sim_thread_sleep_exactly(void)
{
}

static int sim_thread_make_way(uint32_t niceness)
{
	(void)niceness;
	return 0;
}

static int sim_thread_bind(const uint32_t *cpu_indices, uint32_t count)
{
	(void)cpu_indices;
	(void)count;
	return 0;
}

static int sim_thread_rebind(const uint32_t *cpu_indices, uint32_t count)
{
	(void)cpu_indices;
	(void)count;
	return 0;
}

static int sim_ring_bind_helpers(int fd, uint32_t node_index)
{
	(void)fd;
	(void)node_index;
	return 0;
}

/* What rings hold there, they give back as they end. */
static bool sim_locked_await(uint64_t bytes, uint32_t *tries)
{
	(void)bytes;
	(void)tries;
	return false;
}

static void *sim_map(size_t bytes, enum pin_page_kind kind)
{
	world_point();
	if (kind != PIN_PAGES_SMALL) {
		return NULL;
	}
	for (uint32_t i = 0; i < MAPPINGS_MAX; i++) {
		struct mapping *mapping = &mappings[i];

		if (mapping->memory == NULL) {
			mapping->memory = aligned_alloc(PIN_PAGE_BYTES, bytes);
			mapping->bytes = bytes;
			WORLD_CHECK(mapping->memory != NULL);
		}
		if (!mapping->is_used && mapping->bytes == bytes) {
			mapping->is_used = true;
			return mapping->memory;
		}
	}
	world_fail("more mappings than workers");
}

static void sim_unmap(void *memory, size_t bytes)
{
	for (uint32_t i = 0; i < MAPPINGS_MAX; i++) {
		struct mapping *mapping = &mappings[i];

		if (mapping->memory == memory && mapping->is_used && mapping->bytes == bytes) {
			mapping->is_used = false;
			return;
		}
	}
	world_fail("an unmap of memory that was never mapped");
}

/* ---- descriptors ---- */

enum { READY_PER_MILLE = 60 };

static void sim_event_raise(int fd)
{
	uint64_t one = 1;

	(void)device_eventfd_write(fd, &one, sizeof(one));
}

static bool is_raised(const void *arg)
{
	return device_eventfd_is_raised(*(const int *)arg);
}

/* The doorbell, or sockets; how many are ready. */
static int look_at(struct pollfd *descriptors, uint32_t count, bool is_any_due)
{
	uint32_t due = is_any_due ? (uint32_t)world_random(count) : UINT32_MAX;
	int ready = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct pollfd *descriptor = &descriptors[i];
		bool is_socket = descriptor->fd == DISK_SOCKET_FD;
		bool is_ready = is_socket ? i == due || world_chance(READY_PER_MILLE)
					  : device_eventfd_is_raised(descriptor->fd);

		descriptor->revents = is_ready ? POLLIN : 0;
		ready += is_ready ? 1 : 0;
	}
	return ready;
}

/* The first, when it sleeps, is the doorbell. */
static int sim_descriptors_wait(struct pollfd *descriptors, uint32_t count, uint64_t deadline_ns)
{
	uint64_t peer_ns = disk_peer_ns();
	int ready;

	world_point();
	device_thread_enters_kernel();
	ready = look_at(descriptors, count, false);
	if (ready > 0 || deadline_ns == 0) {
		return ready;
	}
	if (world_chance(faults.spurious)) {
		return -EINTR;
	}
	world_event("polls descriptors", count, 0);
	world_sleep(WORLD_RING, NULL, is_raised, &descriptors[0].fd,
		peer_ns < deadline_ns ? peer_ns : deadline_ns);
	world_event("has polled descriptors", count, 0);
	return look_at(descriptors, count, peer_ns <= world_now_ns());
}

static bool sim_fd_is_scarce(int fd)
{
	(void)fd;
	return false;
}

const struct pin_host pin_host_linux = {
	.now_ns = sim_now_ns,
	.futex_wait = sim_futex_wait,
	.futex_wake = sim_futex_wake,
	.yield = sim_yield,
	.event_create = device_eventfd,
	.event_raise = sim_event_raise,
	.event_clear = device_eventfd_clear,
	.event_close = device_eventfd_close,
	.descriptors_wait = sim_descriptors_wait,
	.fence_all = sim_fence_all,
	.thread_start = sim_thread_start,
	.thread_join = sim_thread_join,
	.thread_call = sim_thread_call,
	.thread_sleep_exactly = sim_thread_sleep_exactly,
	.thread_make_way = sim_thread_make_way,
	.thread_bind = sim_thread_bind,
	.thread_rebind = sim_thread_rebind,
	.ring_bind_helpers = sim_ring_bind_helpers,
	.map = sim_map,
	.unmap = sim_unmap,
	.heap = {.allocate = pin_heap_system_allocate, .release = pin_heap_system_release},
	.heap_zeroed = pin_heap_system_zeroed,
	.fd_is_scarce = sim_fd_is_scarce,
	.ring_setup = device_ring_setup,
	.ring_exit = device_ring_exit,
	.ring_enter = device_ring_enter,
	.ring_register = device_ring_register,
	.locked_await = sim_locked_await,
};
