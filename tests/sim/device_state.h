/* SPDX-License-Identifier: MIT */
/*
 * State of the simulated kernel side of io_uring, shared by its files; device.h
 * describes its behaviour.
 */
#ifndef SIM_DEVICE_STATE_H
#define SIM_DEVICE_STATE_H

#include "runtime/base/base.h"
#include "runtime/host/block_device.h"
#include "tests/sim/device.h"
#include "tests/sim/world.h"

enum {
	TABLE_MAX = 64,
	RINGS_MAX = 3 * SIM_WORKERS_MAX, /* each has a polled and a command ring as well */
	RING_FD = 1000,
	REGISTERED_FD = 500,
	EVENT_FD = 3000,
	OPERATIONS_MAX = 256,
	BACKLOG_MAX = 512,
};

enum ring_kind { RING_DEFERRED, RING_COOPERATIVE, RING_PLAIN, RING_KINDS };

/* What becomes of rings and of requests that are to be polled. */
enum polling { POLLING_WORKS, POLLING_NO_RING, POLLING_REFUSED, POLLING_AT_TIMES, POLLING_KINDS };

/* What becomes of command rings and of the commands on them. */
enum commanding {
	COMMANDS_WORK,
	COMMANDS_NO_RING,
	COMMANDS_REFUSED,  /* by this driver */
	COMMANDS_AT_TIMES, /* as of a kernel that takes not all of them */
	COMMANDS_KINDS,
};

struct operation {
	struct io_uring_sqe sqe;
	struct nvme_uring_cmd command; /* of a 128-byte entry */
	uint64_t due_ns;	       /* 0: free */
	bool is_cancelled;
};

struct ring {
	bool is_open;
	enum ring_kind kind; /* as it was set up */
	bool is_polled;
	bool is_sqe128; /* entries and completions of twice the size */
	bool has_no_sqarray;
	bool has_owner;
	uint32_t owner;
	bool is_registered;	       /* in its owner's table of rings */
	struct iovec table[TABLE_MAX]; /* of registered buffers; empty ones are zeroed */
	uint32_t table_count;	       /* 0: there is none */
	/* What liburing points into. */
	uint32_t sq_head;
	uint32_t sq_tail;
	uint32_t sq_mask;
	uint32_t sq_entries;
	uint32_t sq_flags;
	uint32_t sq_dropped;
	uint32_t *sq_array;
	struct io_uring_sqe *sqes;
	uint32_t cq_head;
	uint32_t cq_tail;
	uint32_t cq_mask;
	uint32_t cq_entries;
	uint32_t cq_flags;
	uint32_t cq_overflow;
	struct io_uring_cqe *cqes;
	/* In flight, and done but not yet in the queue. */
	struct operation operations[OPERATIONS_MAX];
	uint32_t operation_count;
	struct io_uring_cqe backlog[BACKLOG_MAX];
	uint32_t backlog_count;
	/* Its multishot poll of an eventfd. */
	bool is_polling;
	int poll_fd;
	uint64_t poll_user_data;
	/* Its poll of a command ring, which ends with the first completion. */
	bool is_watching;
	uint32_t watched; /* its index */
	uint64_t watch_user_data;
};

struct device {
	struct sim_faults faults;
	enum ring_kind kind; /* the most that it knows */
	bool shares_rings;   /* any thread may enter any of them */
	enum polling polling;
	bool takes_commands; /* or says so */
	enum commanding commanding;
	bool has_ring;
	bool has_message;
	bool has_registered_ring;
	bool has_names; /* operations on names, as Linux 5.15 */
	bool has_no_sqarray;
	struct ring rings[RINGS_MAX];
	uint32_t ring_count;
	uint64_t event_counts[RINGS_MAX];
	bool event_is_open[RINGS_MAX];
	uint32_t event_count;
	uint64_t next_ns;
};

extern struct device device;

static inline uint32_t index_of(const struct ring *ring)
{
	return (uint32_t)(ring - device.rings);
}

static inline struct ring *ring_of(int fd, bool by_table)
{
	uint32_t index = (uint32_t)(fd - (by_table ? REGISTERED_FD : RING_FD));

	WORLD_CHECK(index < device.ring_count && device.rings[index].is_open);
	/* The table is of one thread. */
	WORLD_CHECK(!by_table || (device.rings[index].is_registered && !device.shares_rings));
	return &device.rings[index];
}

/* Only a shared ring is open to any thread. */
static inline void own(struct ring *ring)
{
	if (device.shares_rings) {
		return;
	}
	if (!ring->has_owner) {
		ring->has_owner = true;
		ring->owner = world_thread_current();
	}
	WORLD_CHECK(ring->owner == world_thread_current());
}

static inline uint32_t cq_ready(const struct ring *ring)
{
	return ring->cq_tail - ring->cq_head;
}

static inline bool is_request(uint64_t user_data)
{
	/* The ring's own tags are small; requests are addresses. */
	return user_data > 4096;
}

/* ---- device.c ---- */

/*
 * One more completion, for an enter that asks or at once, as the ring's kind
 * is.
 */
void device_complete(struct ring *ring, uint64_t user_data, int32_t result, uint32_t flags);
/* At most count_max of the waiting ones into its queue. */
void device_hand_over(struct ring *ring, uint32_t count_max);
/* When something is due may have changed. */
void device_find_next(void);

/* ---- device_submit.c ---- */

/* Takes at most to_submit entries; returns how many. */
uint32_t device_submit(struct ring *ring, uint32_t to_submit);
/* Its eventfd was written. */
void device_poll_fires(struct ring *ring);

#endif
