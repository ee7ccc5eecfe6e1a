/* SPDX-License-Identifier: MIT */
/*
 * The simulated kernel side of io_uring: rings in memory as liburing lays them
 * out, and the operations the library uses; what a read does is the disk's.
 *
 * Each run has one of three kinds of ring: completions wait for their owner's
 * enter (DEFER_TASKRUN), for any system call of its owner (COOP_TASKRUN), or
 * not at all. Waiting ones show as the task-run flag. A kernel may also have no
 * io_uring, and either kind of doorbell.
 *
 * A ring of 128-byte entries takes commands (IORING_OP_URING_CMD) and nothing
 * else; another ring may watch it with a poll, and no thread waits in it.
 *
 * Checked here: no overflow of either queue, reads into and writes from
 * registered memory stay in it, one thread enters a ring, no doorbell of a
 * freed ring, nothing in flight and nothing registered when a ring is freed.
 */
#ifndef SIM_DEVICE_H
#define SIM_DEVICE_H

#include "runtime/host/kernel.h"
#include "tests/sim/case.h"

void device_begin(const struct sim_faults *faults);
/* From now on any thread may enter any ring. */
void device_share_rings(void);
/* Rings may be polled: or set up and not work, or not even that. */
void device_poll(void);
/* Rings may take commands: all of them, some, or none; or surely none. */
void device_take_commands(bool takes_none);
/* Nothing of the run is left: no ring, no eventfd. */
void device_end(void);

/* When something will complete. */
uint64_t device_next_ns(void);
void device_advance(uint64_t now_ns);

void device_probe(struct pin_kernel *kernel);

/* The calling thread enters the kernel otherwise than by io_uring_enter. */
void device_thread_enters_kernel(void);
/* Completions of requests that a thread which sleeps elsewhere does not see. */
uint32_t device_unseen_count(const struct io_uring *ring);

/* Pages that the program gives back: nothing may use them. */
void device_check_unused(const uint8_t *memory, size_t bytes);

/* ---- as their system calls ---- */

int device_ring_setup(struct io_uring *ring, uint32_t entries, struct io_uring_params *params);
void device_ring_exit(struct io_uring *ring);
int device_ring_enter(int fd, uint32_t to_submit, uint32_t min_complete, uint32_t flags,
	void *argument, size_t argument_bytes);
int device_ring_register(int fd, uint32_t opcode, const void *argument, uint32_t count);
int device_update_buffers(int fd, const struct io_uring_rsrc_update2 *update);
int device_eventfd(void);
ssize_t device_eventfd_write(int fd, const void *bytes, size_t length);
void device_eventfd_close(int fd);
bool device_eventfd_is_raised(int fd);
/* Whether it was. */
bool device_eventfd_clear(int fd);

#endif
