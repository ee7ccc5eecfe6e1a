/* SPDX-License-Identifier: MIT */
/*
 * The operations of requests: one row for each.
 *
 * From the rows come the count of the public operations, the table by which
 * entries are made (io/request.c), what a worker without io_uring does instead
 * (io/sync_ring.c), and what tests, stress and simulator iterate. A row with a
 * column too few, out of the order of enum pinion_op, or without one of its
 * functions does not compile.
 *
 * Properties of operations that the rest of the library needs are traits, so
 * that no code compares operations by name.
 *
 * Two rules for what a row names: (1) `prepare` neither blocks nor has effects,
 * since an entry may be prepared again: after an interrupt, on another ring, or
 * as a call. (2) Every `execute` may block, so a worker leaves the search
 * before it calls one, or others would rely on it: ring polls do so by
 * themselves, all other callers use pin_requests_carry_out().
 */
#ifndef PIN_IO_OPERATION_H
#define PIN_IO_OPERATION_H

#include "runtime/base/base.h"
#include "runtime/host/kernel.h"

#include <pinion/request.h>

/*
 * OP(set, name, prefix of the name, needs, traits, opcode, check, prepare,
 * goes_on, execute). `set` is passed through; only the library submits
 * operations with the prefix PIN.
 *
 * needs: a bit of enum pinion_io_feature, 0, or PIN_NEEDS_NO_RING. Where a ring
 * lacks it the worker carries the operation out by a call instead.
 * opcode, execute: of its entry, and that entry as a call; of an operation with
 * several kinds of entries the plainest (sync_ring.c has the others).
 */
#define PIN_OPERATIONS(OP, set) \
	OP(set, READ, PINION, 0, PIN_OP_MOVES | PIN_OP_READS, IORING_OP_READ, pin_transfer_check, \
		pin_transfer_prepare_read, pin_transfer_read_goes_on, execute_read) \
	OP(set, WRITE, PINION, 0, PIN_OP_MOVES, IORING_OP_WRITE, pin_transfer_check, \
		pin_transfer_prepare_write, pin_transfer_write_goes_on, execute_write) \
	OP(set, FSYNC, PINION, 0, PIN_OP_IS_WHOLE, IORING_OP_FSYNC, check_file, prepare_fsync, \
		goes_on_if_interrupted, execute_fsync) \
	OP(set, FDATASYNC, PINION, 0, PIN_OP_IS_WHOLE, IORING_OP_FSYNC, check_file, \
		prepare_fdatasync, goes_on_if_interrupted, execute_fsync) \
	OP(set, ALLOCATE, PINION, 0, PIN_OP_IS_WHOLE, IORING_OP_FALLOCATE, check_allocate, \
		prepare_allocate, goes_on_if_interrupted, execute_fallocate) \
	OP(set, OPEN, PINION, 0, PIN_OP_IS_WHOLE | PIN_OP_OPENS, IORING_OP_OPENAT, check_open, \
		prepare_open, open_goes_on, execute_openat) \
	OP(set, STATX, PINION, 0, PIN_OP_IS_WHOLE | PIN_OP_LOOKS, IORING_OP_STATX, check_statx, \
		prepare_statx, goes_on_if_interrupted, execute_statx) \
	OP(set, CLOSE, PINION, 0, 0, IORING_OP_CLOSE, check_file, prepare_close, close_goes_on, \
		execute_close) \
	OP(set, NOP, PINION, 0, PIN_OP_IS_WHOLE, IORING_OP_NOP, check_nothing, prepare_nop, \
		goes_on_if_interrupted, execute_nop) \
	OP(set, TIMEOUT, PINION, PIN_NEEDS_NO_RING, PIN_OP_WAITS, IORING_OP_LAST, check_timeout, \
		prepare_none, goes_on_if_interrupted, execute_nop) \
	OP(set, CANCEL, PINION, PIN_NEEDS_NO_RING, PIN_OP_TRAVELS, IORING_OP_LAST, check_cancel, \
		prepare_none, goes_on_if_interrupted, execute_nop) \
	OP(set, RENAME, PINION, PINION_IO_RENAMEAT, PIN_OP_IS_WHOLE, IORING_OP_RENAMEAT, \
		check_rename, prepare_rename, goes_on_if_interrupted, execute_renameat) \
	OP(set, UNLINK, PINION, PINION_IO_RENAMEAT, PIN_OP_IS_WHOLE, IORING_OP_UNLINKAT, \
		check_unlink, prepare_unlink, goes_on_if_interrupted, execute_unlinkat) \
	OP(set, MKDIR, PINION, PINION_IO_LINKAT, PIN_OP_IS_WHOLE, IORING_OP_MKDIRAT, check_mkdir, \
		prepare_mkdir, goes_on_if_interrupted, execute_mkdirat) \
	OP(set, LINK, PINION, PINION_IO_LINKAT, PIN_OP_IS_WHOLE, IORING_OP_LINKAT, check_link, \
		prepare_link, goes_on_if_interrupted, execute_linkat) \
	OP(set, SYMLINK, PINION, PINION_IO_LINKAT, PIN_OP_IS_WHOLE, IORING_OP_SYMLINKAT, \
		check_symlink, prepare_symlink, goes_on_if_interrupted, execute_symlinkat) \
	OP(set, READV, PINION, 0, PIN_OP_MOVES | PIN_OP_READS | PIN_OP_GATHERS, IORING_OP_READV, \
		pin_vector_check, pin_vector_prepare_read, pin_transfer_read_goes_on, \
		execute_readv) \
	OP(set, WRITEV, PINION, 0, PIN_OP_MOVES | PIN_OP_GATHERS, IORING_OP_WRITEV, \
		pin_vector_check, pin_vector_prepare_write, pin_transfer_write_goes_on, \
		execute_writev) \
	OP(set, POLL, PINION, 0, PIN_OP_IS_WHOLE | PIN_OP_WAITS_FOR_PEER, IORING_OP_POLL_ADD, \
		pin_socket_check_poll, pin_socket_prepare_poll, goes_on_if_interrupted, \
		execute_poll) \
	OP(set, ACCEPT, PINION, 0, PIN_OP_WAITS_FOR_PEER | PIN_OP_FILLS, IORING_OP_ACCEPT, \
		pin_socket_check_accept, pin_socket_prepare_accept, pin_socket_accept_goes_on, \
		execute_accept) \
	OP(set, CONNECT, PINION, 0, PIN_OP_WAITS_FOR_PEER | PIN_OP_TAKES, IORING_OP_CONNECT, \
		pin_socket_check_connect, pin_socket_prepare_connect, pin_socket_connect_goes_on, \
		execute_connect) \
	OP(set, RECV, PINION, 0, PIN_OP_WAITS_FOR_PEER | PIN_OP_FILLS, IORING_OP_RECV, \
		pin_socket_check_bytes, pin_socket_prepare_recv, pin_socket_recv_goes_on, \
		execute_recv) \
	OP(set, SEND, PINION, 0, PIN_OP_WAITS_FOR_PEER | PIN_OP_TAKES, IORING_OP_SEND, \
		pin_socket_check_bytes, pin_socket_prepare_send, pin_socket_send_goes_on, \
		execute_send) \
	OP(set, SHUTDOWN, PINION, PINION_IO_SHUTDOWN, PIN_OP_IS_WHOLE, IORING_OP_SHUTDOWN, \
		pin_socket_check_shutdown, pin_socket_prepare_shutdown, goes_on_if_interrupted, \
		execute_shutdown) \
	OP(set, SOCKET, PINION, PINION_IO_SOCKET, PIN_OP_IS_WHOLE, IORING_OP_SOCKET, \
		check_nothing, pin_socket_prepare_new, goes_on_if_interrupted, execute_socket) \
	OP(set, SENDMSG, PINION, 0, PIN_OP_WAITS_FOR_PEER | PIN_OP_TAKES | PIN_OP_HAS_MESSAGE, \
		IORING_OP_SENDMSG, pin_socket_check_message, pin_socket_prepare_sendmsg, \
		pin_socket_sendmsg_goes_on, execute_sendmsg) \
	OP(set, RECVMSG, PINION, 0, PIN_OP_WAITS_FOR_PEER | PIN_OP_FILLS | PIN_OP_HAS_MESSAGE, \
		IORING_OP_RECVMSG, pin_socket_check_message, pin_socket_prepare_recvmsg, \
		pin_socket_recvmsg_goes_on, execute_recvmsg) \
	OP(set, FADVISE, PINION, 0, PIN_OP_IS_WHOLE, IORING_OP_FADVISE, check_range, \
		prepare_fadvise, goes_on_if_interrupted, execute_fadvise) \
	OP(set, MADVISE, PINION, 0, PIN_OP_IS_WHOLE, IORING_OP_MADVISE, check_madvise, \
		prepare_madvise, goes_on_if_interrupted, execute_madvise) \
	OP(set, SYNC_FILE_RANGE, PINION, 0, PIN_OP_IS_WHOLE, IORING_OP_SYNC_FILE_RANGE, \
		check_range, prepare_sync_file_range, goes_on_if_interrupted, \
		execute_sync_file_range) \
	OP(set, OPEN_PLAIN, PIN, 0, PIN_OP_IS_WHOLE | PIN_OP_STAYS, IORING_OP_OPENAT, \
		check_open_plain, prepare_open_plain, goes_on_if_interrupted, execute_openat)

/* What no ring has: the operation never gets to one, and has no entry. */
#define PIN_NEEDS_NO_RING (UINT32_C(1) << 31)

enum pin_op_trait {
	PIN_OP_MOVES = 1 << 0,	  /* bytes of a file, part after part; its device has its limits */
	PIN_OP_READS = 1 << 1,	  /* of these, those that fill their memory */
	PIN_OP_LOOKS = 1 << 2,	  /* fills `status` */
	PIN_OP_OPENS = 1 << 3,	  /* ends with a descriptor, of which its task makes `file` */
	PIN_OP_STAYS = 1 << 4,	  /* its task runs on its worker, whatever `ring_sharing` says */
	PIN_OP_WAITS = 1 << 5,	  /* for its deadline and nothing else */
	PIN_OP_TRAVELS = 1 << 6,  /* from worker to worker; nothing ends it early */
	PIN_OP_IS_WHOLE = 1 << 7, /* what succeeds is over, with that result */
	PIN_OP_GATHERS = 1 << 8,  /* its memory is what `vector` names, and not `bytes` */
	/*
	 * For what another does, so without a bound in time; tells no device.
	 */
	PIN_OP_WAITS_FOR_PEER = 1 << 9,
	/* Of those, the kernel writes to, or reads, the memory of `bytes`, */
	PIN_OP_FILLS = 1 << 10,
	PIN_OP_TAKES = 1 << 11,
	PIN_OP_HAS_MESSAGE = 1 << 12, /* or of `message` */
};

enum pin_op_place {
#define PIN_OP_PLACE(set, name, ...) PIN_OP_PLACE_##name,
	PIN_OPERATIONS(PIN_OP_PLACE, 0)
#undef PIN_OP_PLACE
		PIN_OP_COUNT,
};

enum {
	/*
	 * As PINION_OP_OPEN for a path from the working folder, `flags` are
	 * open(2)'s. The descriptor, as it is. Of `options`, which may be NULL,
	 * directory_fd and resolve count.
	 */
	PIN_OP_OPEN_PLAIN = PIN_OP_PLACE_OPEN_PLAIN,
};

#define PIN_OP_IS_PLACED(set, name, prefix, ...) \
	_Static_assert((int)prefix##_OP_##name == (int)PIN_OP_PLACE_##name, \
		"rows are in the order of enum pinion_op, the library's own last");
PIN_OPERATIONS(PIN_OP_IS_PLACED, 0)
#undef PIN_OP_IS_PLACED

/* The public operations come first: their number. */
enum {
	PIN_OP_PUBLIC_PINION = 1,
	PIN_OP_PUBLIC_PIN = 0,
#define PIN_OP_PLUS_PUBLIC(set, name, prefix, ...) +PIN_OP_PUBLIC_##prefix
	PIN_OP_PUBLIC_COUNT = 0 PIN_OPERATIONS(PIN_OP_PLUS_PUBLIC, 0),
#undef PIN_OP_PLUS_PUBLIC
};

_Static_assert(PIN_OP_COUNT <= 32, "a bit for each in a set");

/* The set of operations with one of these traits; a constant. */
#define PIN_OPS_WITH(traits) (UINT32_C(0) PIN_OPERATIONS(PIN_OP_OR_MEMBER, traits))
#define PIN_OP_OR_MEMBER(set, name, prefix, needs, traits, ...) \
	| (((traits) & (set)) != 0 ? UINT32_C(1) << PIN_OP_PLACE_##name : 0)

/* Those bits in which the operations of a set differ from each other. */
static PIN_INLINE uint16_t pin_op_differences(uint32_t set)
{
#define PIN_OP_DIFFER(bit, with) ((set & (with)) != 0 && (set & ~(with)) != 0 ? 1 << (bit) : 0)
	return PIN_OP_DIFFER(0, 0xaaaaaaaa) | PIN_OP_DIFFER(1, 0xcccccccc) |
		PIN_OP_DIFFER(2, 0xf0f0f0f0) | PIN_OP_DIFFER(3, 0xff00ff00) |
		PIN_OP_DIFFER(4, 0xffff0000);
#undef PIN_OP_DIFFER
}

/*
 * `set` is a constant, so that of this one comparison is left, or two. One, if
 * the set has each operation with its common bits: 0 and 1; 0, 1, 16 and 17.
 */
static PIN_INLINE bool pin_op_is_in(uint16_t op, uint32_t set)
{
	uint16_t free_bits = pin_op_differences(set);

	if (__builtin_popcount(set) == 1 << __builtin_popcount(free_bits)) {
		return (op & (uint16_t)~free_bits) == ((uint16_t)__builtin_ctz(set) & ~free_bits);
	}
	if ((set & (set + 1)) == 0) {
		return op <= (uint16_t)(31 - __builtin_clz(set));
	}
	return op < PIN_OP_COUNT && (set >> op & 1) != 0;
}

/* Those that read into one piece of memory: copies and commands do no more. */
#define PIN_OPS_READING_BYTES (PIN_OPS_WITH(PIN_OP_READS) & ~PIN_OPS_WITH(PIN_OP_GATHERS))

/* Whether a request's operation has one of these traits. */
#define pin_request_has(request, traits) pin_op_is_in((request)->op, PIN_OPS_WITH(traits))

#endif
