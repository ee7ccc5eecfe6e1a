/* SPDX-License-Identifier: MIT */
/*
 * A request: one operation on a file or a socket. It is a struct in the
 * caller's memory that embeds a task; when the operation completes, that task
 * becomes ready and runs as any other.
 */
#ifndef PINION_REQUEST_H
#define PINION_REQUEST_H

#include <pinion/buffer.h>
#include <pinion/file.h>

PINION_BEGIN_DECLS

/*
 * The operation of a request, the fields that it takes besides `task`, `op` and
 * `deadline_ns`, and its result on success. A zeroed request reads.
 */
enum pinion_op {
	/*
	 * file, bytes, offset_bytes, length_bytes, io_priority. Bytes read:
	 * fewer than asked for only where the file ends.
	 */
	PINION_OP_READ = 0,
	/*
	 * The same. length_bytes: a write is done whole or fails. Past the
	 * cache the length is a multiple of the file's alignment as well; for a
	 * tail that is not, write the whole block and then cut the file with
	 * pinion_file_resize().
	 */
	PINION_OP_WRITE = 1,
	PINION_OP_FSYNC = 2,	 /* file. 0: data and size are on the disk */
	PINION_OP_FDATASYNC = 3, /* file. 0: the data, and what reading it needs */
	/*
	 * file, offset_bytes, length_bytes, flags: FALLOC_FL_* of fallocate(2).
	 * 0.
	 */
	PINION_OP_ALLOCATE = 4,
	/*
	 * path, options, file: as pinion_file_open_with(), which fills `file`;
	 * NULL options: for reading. Paths are shorter than PATH_MAX. 0. If it
	 * fails once it is submitted, `file->fd` is -1.
	 */
	PINION_OP_OPEN = 5,
	/*
	 * status, flags: the STATX_* mask. Of `path`, or of `file` where that
	 * is NULL; of `options`, which may be NULL, directory_fd and
	 * PINION_FILE_NO_FOLLOW count, and `resolve` is refused. 0.
	 */
	PINION_OP_STATX = 6,
	/*
	 * file. 0. The descriptor is closed whatever the result is, except for
	 * -ECANCELED and -ETIME: then the file is as it was.
	 */
	PINION_OP_CLOSE = 7,
	PINION_OP_NOP = 8,     /* 0, after a round trip through the ring */
	PINION_OP_TIMEOUT = 9, /* -ETIME, when deadline_ns has come */
	/*
	 * file, or NULL for all: cancels, as pinion_request_cancel(), every
	 * request on that very struct that was submitted before this one, on
	 * all workers, one after the other. Result: how many it cancelled; each
	 * of them ends for itself, before or after this one. Has no deadline,
	 * and cannot be cancelled.
	 */
	PINION_OP_CANCEL = 10,
	/*
	 * path, options, new_path, new_options, flags: RENAME_* of
	 * renameat2(2). Of both options here and below, which may be NULL,
	 * directory_fd counts, and `resolve` is refused. 0.
	 */
	PINION_OP_RENAME = 11,
	PINION_OP_UNLINK = 12, /* path, options, flags: 0 or AT_REMOVEDIR. 0 */
	PINION_OP_MKDIR = 13,  /* path, options, flags: its mode, less the umask. 0 */
	/* path, options, new_path, new_options, flags: of linkat(2). 0. */
	PINION_OP_LINK = 14,
	/* path: what the link is to say; new_path, new_options. 0. */
	PINION_OP_SYMLINK = 15,
	/*
	 * READ and WRITE of memory in several places: file, vector,
	 * vector_count, offset_bytes, length_bytes, io_priority. length_bytes
	 * is the sum of all iov_len, and may be 0. Each element is aligned as
	 * the file asks. The elements are moved in their order. A transfer that
	 * the kernel did in part goes on where it ended, also within an
	 * element, so the results are those of READ and WRITE.
	 */
	PINION_OP_READV = 16,
	PINION_OP_WRITEV = 17,
	/*
	 * Of the `file` of POLL and of those on sockets only `fd` counts: a
	 * zeroed struct with a descriptor in it will do. See below for their
	 * ends.
	 *
	 * POLL: file, flags: the events of poll(2), such as POLLIN. The events
	 * that have come, POLLERR, POLLHUP and POLLRDHUP among them.
	 */
	PINION_OP_POLL = 18,
	/*
	 * file, which listens; address, length_bytes: room for the peer's, or
	 * NULL and 0; flags: 0 or SOCK_NONBLOCK. The new descriptor, which
	 * programs that are executed do not get; done_bytes: how long the
	 * peer's address is.
	 */
	PINION_OP_ACCEPT = 19,
	PINION_OP_CONNECT = 20, /* file, address, length_bytes: its size. 0 */
	/*
	 * file, bytes, length_bytes (0 to 0x7ffff000), flags: MSG_*. Bytes
	 * received, fewer than asked for when no more were there; 0: the peer
	 * sends no more. MSG_WAITALL on a stream: all, unless it ends before.
	 */
	PINION_OP_RECV = 21,
	/*
	 * The same. Bytes sent, which may be fewer; MSG_WAITALL on a stream:
	 * all. Never raises SIGPIPE: -EPIPE.
	 */
	PINION_OP_SEND = 22,
	PINION_OP_SHUTDOWN = 23, /* file, flags: SHUT_RD, SHUT_WR, SHUT_RDWR. 0 */
	/*
	 * socket, flags: its type, SOCK_STREAM say, with or without
	 * SOCK_NONBLOCK. The new descriptor, which programs that are executed
	 * do not get.
	 */
	PINION_OP_SOCKET = 24,
	/*
	 * file, message, flags: MSG_*, without MSG_WAITALL. As sendmsg(2), with
	 * the results of SEND. The message and all that it names stay in place,
	 * and unchanged, until `task.run` is entered.
	 */
	PINION_OP_SENDMSG = 25,
	/*
	 * The same, as recvmsg(2), which fills the message, with the results of
	 * RECV. Programs that are executed do not get descriptors that come.
	 */
	PINION_OP_RECVMSG = 26,
	/*
	 * file, offset_bytes, length_bytes, flags: an advice of
	 * posix_fadvise(2). Here and below a length is less than 4 GiB; 0: to
	 * the end, but for MADVISE. 0.
	 */
	PINION_OP_FADVISE = 27,
	PINION_OP_MADVISE = 28, /* bytes, length_bytes, flags: an advice of madvise(2). 0 */
	/*
	 * file, offset_bytes, length_bytes, flags: of sync_file_range(2). 0.
	 * Not a promise that the data is on the disk: FDATASYNC is.
	 */
	PINION_OP_SYNC_FILE_RANGE = 29,
};

struct iovec;  /* of sys/uio.h */
struct msghdr; /* of sys/socket.h */
struct sockaddr;
struct statx;

/* The first and the last argument of socket(2). */
struct pinion_socket {
	int32_t domain; /* AF_UNIX, AF_INET, AF_INET6 */
	int32_t protocol;
};

/*
 * Shape: embeddable; set `task.run` and the inputs, zero the rest.
 * Owns: the caller's memory; the struct and all it points to must stay in place
 * from submit until `task.run` is entered, which happens exactly once, also
 * when the request is cancelled and when the runtime is stopped. `task.cancel`
 * is never called. From then on the struct may be freed or submitted anew.
 * Since: 0.1
 */
struct pinion_request {
	struct pinion_task task;
	/* Inputs. */
	struct pinion_file *file;
	union {
		uint8_t *bytes; /* memory of the data, aligned as the file asks */
		/*
		 * Of READV and WRITEV. The library makes no copy: the array and
		 * the memory that it names stay in place, and the array
		 * unchanged, until `task.run` is entered.
		 */
		const struct iovec *vector;
		struct sockaddr *address; /* CONNECT reads it, ACCEPT fills it */
		struct msghdr *message;	  /* of SENDMSG and RECVMSG */
	};
	union {
		uint64_t offset_bytes;	     /* a multiple of the file's offset alignment */
		struct pinion_socket socket; /* of SOCKET */
	};
	/*
	 * Also a multiple of it; to read or write 1 … 2^63 - 1, and no further
	 * than that. The library splits more than 64 MiB into parts, and does
	 * one after the other.
	 */
	uint64_t length_bytes;
	uint16_t op; /* enum pinion_op */
	/*
	 * Of reads and writes, as ioprio_set(2) has it, class << 13 | level; 0:
	 * that of the lane (`io_priority_low` of the tuning), or else of the
	 * thread. Commands to an NVMe namespace have none.
	 */
	uint16_t io_priority;
	uint32_t flags; /* as the operation says */
	/*
	 * Output: as the operation says, or a negative errno. Valid from the
	 * entry of `task.run`.
	 */
	int64_t result;
	/*
	 * On pinion_clock_now_ns()'s clock; 0: none. When it has come the
	 * request is cancelled, with -ETIME as its result.
	 */
	uint64_t deadline_ns;
	/*
	 * Output: bytes that were read or written, received or sent, from the
	 * first on, also when the result is an error.
	 */
	uint64_t done_bytes;
	const char *path;
	const struct pinion_file_options *options;
	struct statx *status;
	const char *new_path;
	const struct pinion_file_options *new_options; /* where new_path starts */
	uint32_t vector_count;			       /* of `vector`, 0 to IOV_MAX (1024) */
	uint32_t reserved;
	uint64_t private_[14];
};

/*
 * Starts a request: on the calling worker's ring or, from any other thread, on
 * the ring of one of the workers in turn, or of another worker if the first is
 * stalled in a task. `task.run` is entered on the worker whose ring it is; with
 * `ring_sharing` on any worker, except for transfers of
 * pinion_buffer_acquire()'s memory. The submission reaches the kernel at the
 * end of the worker's loop, together with others.
 *
 * Memory from pinion_buffer_acquire() is registered with the ring of its
 * worker, which saves the kernel work; other memory works as well, and is
 * counted in `unregistered_reads` and `unregistered_writes`.
 *
 * The library continues an operation that was interrupted (EINTR), would block
 * (EAGAIN), or was done in part, as long as it makes progress: after 64
 * attempts in a row without a byte it ends with the last error, or with -EIO
 * where there was none. Every other result of the kernel is passed through.
 * Sectors that a drive cannot read give -EIO through the page cache; past it
 * they give the error of the block layer, -ENODATA for most drives. There the
 * error may belong to a neighbour, so the library tries once more after -EIO,
 * -ENODATA, -EREMOTEIO and -EILSEQ. XFS may answer -EIO past the cache to a
 * read that continues after the end of a file that grows; it carries out a read
 * that ends there, rounded up. -ECANCELED is also the result of requests in
 * flight when the runtime is stopped. -EFAULT: the memory is a buffer of a pool
 * that was free at the submission; a message names its last holder, and no byte
 * was read or written.
 *
 * The worker carries out reads and writes of files on FUSE before its call
 * returns, since a ring may deliver wrong bytes there after a short transfer:
 * that call blocks. It carries out READV of an NVMe namespace in the same way,
 * one command after the other.
 *
 * READV and WRITEV use the memory of their elements as memory that is not
 * registered, also where it is from pinion_buffer_acquire() or a pool. The
 * library does not look such buffers up: it does not notice one that is free,
 * and with `ring_sharing` it enters the task on any worker. READV is never
 * copied from the page cache at once (`cached_reads`).
 *
 * Without io_uring the worker itself carries requests out, some at a time, and
 * runs nothing else meanwhile. It cannot cancel an operation that it has begun.
 * The same holds, before its call returns, for operations that this kernel's
 * rings lack: before Linux 5.15 those on names, RENAME to SYMLINK, before 5.11
 * SHUTDOWN, before 5.19 SOCKET.
 *
 * POLL, ACCEPT, CONNECT, RECV, SEND, SENDMSG and RECVMSG wait for a peer, and
 * perhaps for ever: a drain of the runtime ends those without a deadline, with
 * -ECANCELED, after the kernel has tried each; bytes that come then may stay in
 * the socket. They wait even if the descriptor has O_NONBLOCK; with
 * MSG_DONTWAIT they end with -EAGAIN. So do, after 64 attempts, those for which
 * poll(2) has no event: see pinion_request(3). Each that waits takes an entry
 * of its worker's ring (`ring_entries` of the tuning). Without io_uring they
 * wait as well, in poll(2), while the worker runs tasks; ACCEPT then sets
 * O_NONBLOCK on its `file`. After a cancel or a deadline a connection may be
 * half made, and a message half sent: close the socket. An ACCEPT or SOCKET
 * that was cancelled may still result in a descriptor.
 *
 * Owns: on failure the request stays with the caller, untouched.
 * Context: any thread; never blocks or allocates.
 * Errors: -EINVAL: an unknown operation or flag, misaligned for this file, a
 * length out of range, or a missing input; a message at debug level names the
 * field, its value, and the range. -ESPIPE: a read or write of a pipe or
 * socket, by a file filled in by hand; it would wait for its full length.
 * -E2BIG: of `options`, as pinion_file_open_with(). -EBUSY: the request is in
 * flight, its task waits to be run, or it was not zeroed; the library does not
 * notice that two threads submit a request at the same instant. -EAGAIN: on a
 * worker only, if its ring is full: wait for a completion and try again; other
 * threads' requests queue. -ESHUTDOWN, -ECHILD: as pinion_task_spawn(); on a
 * worker, only when the runtime is being stopped.
 * Since: 0.1
 */
PINION_API int pinion_request_submit(
	struct pinion_runtime *runtime, struct pinion_request *request);

/*
 * Starts `count` requests on one worker, in order, all of them or none. From
 * outside it costs one admission and at most one wake; if that worker is
 * stalled in a task, other workers begin the requests.
 *
 * Owns: on failure every request stays with the caller, untouched.
 * Errors: as pinion_request_submit(), for any of the requests. -EAGAIN: there
 * is no room for all. -EBUSY: also for a request that is in the batch twice. 0
 * requests are fine.
 * Since: 0.1
 */
PINION_API int pinion_request_submit_batch(
	struct pinion_runtime *runtime, struct pinion_request *const *requests, uint32_t count);

/*
 * Asks for the end of a request. `task.run` is entered all the same, once, with
 * -ECANCELED, or with the true result if that came first; a write may have been
 * done in part (`done_bytes`). The memory is the kernel's until then, and a
 * device that hangs keeps it: an operation in the device ends when the device
 * ends it, and a stop of the runtime waits for that too, except
 * pinion_runtime_stop_until(). Polled requests (`polled` of the tuning) never
 * end early, nor does a command to an NVMe namespace.
 *
 * The call may come at any time, also while the call that submits the request
 * has not returned yet: it ends the request, or finds that the request is not
 * in flight, and then does nothing.
 *
 * Owns: the caller makes sure that, until this returns, the request's `run` has
 * not freed it.
 * Context: any thread; never blocks or allocates; O(1), without io_uring
 * O(requests queued on that worker).
 * Errors: -EALREADY: the request is not in flight, or was cancelled before.
 * -ECHILD: as pinion_task_spawn().
 * Since: 0.1
 */
PINION_API int pinion_request_cancel(
	struct pinion_runtime *runtime, struct pinion_request *request);

PINION_END_DECLS

#endif
