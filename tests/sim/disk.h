/* SPDX-License-Identifier: MIT */
/*
 * The simulated disk: one file whose bytes follow from their offset, so that a
 * reader can check its buffer. Written bytes must be the same again, and the
 * disk remembers which blocks were written.
 *
 * The same bytes are to be had as an NVMe namespace, a few blocks at a time.
 *
 * A request completes after a time of its own, so completions come in any
 * order; as the fault plan says, it is late, short, interrupted, or fails.
 *
 * Checked here: requests are of this file, aligned as it asks.
 */
#ifndef SIM_DISK_H
#define SIM_DISK_H

#include "tests/sim/case.h"

#include <liburing.h>

struct nvme_uring_cmd;
struct pinion_file;

#define DISK_FD 2000
#define DISK_NAMESPACE_FD 2001
#define DISK_NAMESPACE_ID 7u
#define DISK_SOCKET_FD 2002
#define DISK_NEW_SOCKET_FD 2003
#define DISK_COMMAND_BLOCKS 3u
#define DISK_FILE_BYTES (UINT64_C(1) << 20)
#define DISK_BLOCK_BYTES 512u

void disk_begin(const struct sim_faults *faults);
void disk_open(struct pinion_file *file);
/* The same bytes as a namespace, which is read by commands. */
void disk_open_namespace(struct pinion_file *file);

/* How long the next request takes. */
uint64_t disk_latency_ns(void);
/* Whether it never ends by itself. */
bool disk_is_hung(void);
/* When the peer of a socket does something, which may be never. */
uint64_t disk_peer_ns(void);
/* It waits for a peer. */
bool disk_waits(uint8_t opcode);
/* Carries a request out now; its result. */
int32_t disk_execute(const struct io_uring_sqe *sqe);

/* Whether that is an entry of one of the operations. */
bool disk_takes(uint8_t opcode);
/* The same for a command: 0 or its status, which is positive. */
int32_t disk_execute_command(const struct nvme_uring_cmd *command);

/* Makes bytes what the file holds at that offset. */
void disk_fill(uint8_t *bytes, uint64_t offset_bytes, uint32_t length_bytes);
/* Whether all of it was written since disk_begin(). */
bool disk_was_written(uint64_t offset_bytes, uint32_t length_bytes);

/* Whether bytes are what the file holds at that offset. */
bool disk_holds(const uint8_t *bytes, uint64_t offset_bytes, uint32_t length_bytes);

#endif
