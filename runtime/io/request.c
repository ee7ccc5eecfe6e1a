/* SPDX-License-Identifier: MIT */
/*
 * The functions that the rows of io/operation.h name for operations without
 * data, and the way of a request into a ring and back.
 *
 * worker/submit.c asks for entries here, worker/complete.c passes completions
 * in; transfer.c is the counterpart for reads and writes.
 *
 * Invariant: an entry is made from the request alone, so it can be made again
 * after an interrupt.
 */
#include "runtime/io/request.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/io/file.h"
#include "runtime/io/in_flight.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

_Static_assert(sizeof(struct pin_request) <= sizeof(((struct pinion_request *)0)->private_),
	"a request's private part fits");
_Static_assert(_Alignof(struct pinion_request) >= 8, "the ring's own tags are no addresses");

struct operation {
	/* 0, or why it cannot be submitted. */
	int (*check)(const struct pinion_request *request, struct pin_refusal *why);
	void (*prepare)(
		struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request);
	bool is_whole;
	uint32_t needs;
	/*
	 * Asked about all else. True: it has to be submitted once more. False:
	 * it is over, with what *result is then.
	 */
	bool (*goes_on)(struct pin_ring *ring, struct pinion_request *request, int64_t *result);
};

/* For operations that are done whole or not at all. */
static bool goes_on_if_interrupted(
	struct pin_ring *ring, struct pinion_request *request, int64_t *result)
{
	return pin_request_may_retry(ring->meter, request, *result);
}

static int check_file(const struct pinion_request *request, struct pin_refusal *why)
{
	return request->file != NULL ? 0 : pin_refuse(why, -EINVAL, "file is NULL");
}

static int check_nothing(const struct pinion_request *request, struct pin_refusal *why)
{
	(void)request;
	(void)why;
	return 0;
}

static void prepare_nop(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request)
{
	(void)ring;
	(void)request;
	io_uring_prep_nop(sqe);
}

static void prepare_fsync(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request)
{
	(void)ring;
	io_uring_prep_fsync(sqe, request->file->fd, 0);
}

static void prepare_fdatasync(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request)
{
	(void)ring;
	io_uring_prep_fsync(sqe, request->file->fd, IORING_FSYNC_DATASYNC);
}

/*
 * Offset and length of fallocate(2): the end must be within what a file can be.
 */
static int check_allocate(const struct pinion_request *request, struct pin_refusal *why)
{
	unsigned long long offset = request->offset_bytes;
	unsigned long long length = request->length_bytes;

	if (request->file == NULL) {
		return pin_refuse(why, -EINVAL, "file is NULL");
	}
	if (length == 0 || length > INT64_MAX) {
		return pin_refuse(
			why, -EINVAL, "length_bytes is %llu, not 1 to 9223372036854775807", length);
	}
	if (offset > INT64_MAX - length) {
		return pin_refuse(why, -EINVAL,
			"offset_bytes is %llu and length_bytes %llu: they end after "
			"9223372036854775807",
			offset, length);
	}
	if (request->flags > INT32_MAX) {
		return pin_refuse(
			why, -EINVAL, "flags is 0x%x, more than 0x7fffffff", request->flags);
	}
	return 0;
}

static void prepare_allocate(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request)
{
	(void)ring;
	io_uring_prep_fallocate(sqe, request->file->fd, (int)request->flags,
		(off_t)request->offset_bytes, (off_t)request->length_bytes);
}

static int check_open(const struct pinion_request *request, struct pin_refusal *why)
{
	struct pinion_file_options options;

	if (request->file == NULL) {
		return pin_refuse(why, -EINVAL, "file is NULL");
	}
	if (request->path == NULL) {
		return pin_refuse(why, -EINVAL, "path is NULL");
	}
	return pin_file_options_accept(&options, request->options, why);
}

static PIN_COLD _Noreturn void report_changed(
	const struct pin_ring *ring, const struct pinion_request *request)
{
	pin_check_misused(ring->log, PIN_REQUEST_CHANGED, (const void *)request);
}

/* They were accepted at the submit, and are read anew. */
static void accept_again(const struct pin_ring *ring, const struct pinion_request *request,
	const struct pinion_file_options *given, struct pinion_file_options *options)
{
	if (pin_file_options_accept(options, given, NULL) != 0) {
		pin_check_misused(ring->log, PIN_REQUEST_OPTIONS_CHANGED, (const void *)request);
	}
}

static void prepare_open(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request)
{
	struct open_how *how = &pin_request_of(request)->how;
	struct pinion_file_options options;

	accept_again(ring, request, request->options, &options);
	*how = pin_file_open_how(&options);
	if (how->resolve != 0) {
		io_uring_prep_openat2(sqe, options.directory_fd, request->path, how);
	} else {
		io_uring_prep_openat(sqe, options.directory_fd, request->path, (int)how->flags,
			(mode_t)how->mode);
	}
}

/*
 * A FIFO to be written that no process reads, and a socket, end like a block
 * device without a medium: the kernel says ENXIO of each, and does not say of
 * which.
 */
static bool open_goes_on(struct pin_ring *ring, struct pinion_request *request, int64_t *result)
{
	struct pinion_file_options options;

	if (*result == -ENXIO) {
		accept_again(ring, request, request->options, &options);
		if (pin_file_check_path(&options, request->path) == -ENOTSUP) {
			*result = -ENOTSUP;
		}
	}
	return pin_request_may_retry(ring->meter, request, *result);
}

static int check_open_plain(const struct pinion_request *request, struct pin_refusal *why)
{
	return request->path != NULL ? 0 : pin_refuse(why, -EINVAL, "path is NULL");
}

static void prepare_open_plain(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request)
{
	const struct pinion_file_options *options = request->options;
	struct open_how *how = &pin_request_of(request)->how;

	(void)ring;
	if (options == NULL) {
		io_uring_prep_openat(sqe, AT_FDCWD, request->path, (int)request->flags, 0);
		return;
	}
	*how = (struct open_how){.flags = request->flags, .resolve = options->resolve};
	io_uring_prep_openat2(sqe, options->directory_fd, request->path, how);
}

/* Where a path starts, and nothing that only an open would heed. */
static int check_directory(const struct pinion_file_options *given, struct pin_refusal *why)
{
	struct pinion_file_options options;
	int rc = pin_file_options_accept(&options, given, why);

	if (rc == 0 && options.resolve != 0) {
		return pin_refuse(why, -EINVAL,
			"options->resolve is 0x%llx, not 0: only opens heed it",
			(unsigned long long)options.resolve);
	}
	return rc;
}

static int check_statx(const struct pinion_request *request, struct pin_refusal *why)
{
	if (request->status == NULL) {
		return pin_refuse(why, -EINVAL, "status is NULL");
	}
	if (request->path == NULL && request->file == NULL) {
		return pin_refuse(why, -EINVAL, "path and file are NULL");
	}
	return check_directory(request->options, why);
}

static void prepare_statx(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request)
{
	struct pinion_file_options options;
	int flags = AT_EMPTY_PATH;
	int fd;

	accept_again(ring, request, request->options, &options);
	if (request->path != NULL) {
		fd = options.directory_fd;
		flags = (options.flags & PINION_FILE_NO_FOLLOW) != 0 ? AT_SYMLINK_NOFOLLOW : 0;
	} else {
		fd = request->file->fd;
	}
	io_uring_prep_statx(sqe, fd, request->path != NULL ? request->path : "", flags,
		request->flags, request->status);
}

static void prepare_close(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request)
{
	(void)ring;
	io_uring_prep_close(sqe, request->file->fd);
}

/* Interrupted or not, Linux has closed it; to try again might hit another's. */
static bool close_goes_on(struct pin_ring *ring, struct pinion_request *request, int64_t *result)
{
	(void)ring;
	if (*result == -EINTR && pin_request_of(request)->ended_by != 0) {
		*result = -ECANCELED;
	}
	if (*result != -ECANCELED) {
		request->file->fd = -1;
		pin_file_forget(request->file);
	}
	return false;
}

static int check_timeout(const struct pinion_request *request, struct pin_refusal *why)
{
	return request->deadline_ns != 0 ? 0 : pin_refuse(why, -EINVAL, "deadline_ns is 0");
}

static int check_cancel(const struct pinion_request *request, struct pin_refusal *why)
{
	return request->deadline_ns == 0
		? 0
		: pin_refuse(why, -EINVAL, "deadline_ns is %llu, not 0: a cancel has none",
			  (unsigned long long)request->deadline_ns);
}

/* ---- operations on names ---- */

static int check_name(const struct pinion_request *request, struct pin_refusal *why)
{
	if (request->path == NULL) {
		return pin_refuse(why, -EINVAL, "path is NULL");
	}
	return check_directory(request->options, why);
}

/* The checks of options name them `options`. */
static void name_new_options(struct pin_refusal *why)
{
	struct pin_refusal given = *why;

	(void)pin_refuse(why, -EINVAL, "new_%s", given.text);
}

static int check_new_name(const struct pinion_request *request, struct pin_refusal *why)
{
	int rc;

	if (request->new_path == NULL) {
		return pin_refuse(why, -EINVAL, "new_path is NULL");
	}
	rc = check_directory(request->new_options, why);
	if (rc < 0 && why != NULL) {
		name_new_options(why);
	}
	return rc;
}

/* The kernel would refuse the others as well, but without a word. */
static int check_bits(const struct pinion_request *request, uint32_t known, struct pin_refusal *why)
{
	uint32_t unknown = request->flags & ~known;

	return unknown == 0 ? 0
			    : pin_refuse(why, -EINVAL, "flags is 0x%x: 0x%x is unknown",
				      request->flags, unknown);
}

static int check_both(const struct pinion_request *request, uint32_t known, struct pin_refusal *why)
{
	int rc = check_name(request, why);

	rc = rc == 0 ? check_new_name(request, why) : rc;
	return rc == 0 ? check_bits(request, known, why) : rc;
}

static int check_rename(const struct pinion_request *request, struct pin_refusal *why)
{
	uint32_t known = RENAME_NOREPLACE | RENAME_EXCHANGE | RENAME_WHITEOUT;
	int rc = check_both(request, known, why);

	if (rc == 0 && (request->flags & RENAME_EXCHANGE) != 0 &&
		request->flags != RENAME_EXCHANGE) {
		return pin_refuse(why, -EINVAL, "flags is 0x%x: RENAME_EXCHANGE with another",
			request->flags);
	}
	return rc;
}

static int check_link(const struct pinion_request *request, struct pin_refusal *why)
{
	return check_both(request, AT_SYMLINK_FOLLOW | AT_EMPTY_PATH, why);
}

static int check_unlink(const struct pinion_request *request, struct pin_refusal *why)
{
	int rc = check_name(request, why);

	return rc == 0 ? check_bits(request, AT_REMOVEDIR, why) : rc;
}

/* `path` is a text and starts nowhere. */
static int check_symlink(const struct pinion_request *request, struct pin_refusal *why)
{
	return request->path != NULL ? check_new_name(request, why)
				     : pin_refuse(why, -EINVAL, "path is NULL");
}

static int check_mkdir(const struct pinion_request *request, struct pin_refusal *why)
{
	return request->flags <= 07777
		? check_name(request, why)
		: pin_refuse(why, -EINVAL, "flags is 0%o, more than 07777", request->flags);
}

static int directory_of(const struct pin_ring *ring, const struct pinion_request *request,
	const struct pinion_file_options *given)
{
	struct pinion_file_options options;

	accept_again(ring, request, given, &options);
	return options.directory_fd;
}

static void prepare_rename(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request)
{
	io_uring_prep_renameat(sqe, directory_of(ring, request, request->options), request->path,
		directory_of(ring, request, request->new_options), request->new_path,
		request->flags);
}

static void prepare_unlink(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request)
{
	io_uring_prep_unlinkat(sqe, directory_of(ring, request, request->options), request->path,
		(int)request->flags);
}

static void prepare_mkdir(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request)
{
	io_uring_prep_mkdirat(sqe, directory_of(ring, request, request->options), request->path,
		(mode_t)request->flags);
}

static void prepare_link(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request)
{
	io_uring_prep_linkat(sqe, directory_of(ring, request, request->options), request->path,
		directory_of(ring, request, request->new_options), request->new_path,
		(int)request->flags);
}

static void prepare_symlink(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request)
{
	io_uring_prep_symlinkat(sqe, request->path,
		directory_of(ring, request, request->new_options), request->new_path);
}

/* ---- the table ---- */

/* Of what never gets to a ring; there it was changed in flight. */
static void prepare_none(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request)
{
	(void)sqe;
	report_changed(ring, request);
}

static const struct operation operations[] = {
#define ROW(set, name, prefix, needs, traits, opcode, check, prepare, goes_on, execute) \
	[PIN_OP_PLACE_##name] = {check, prepare, ((traits)&PIN_OP_IS_WHOLE) != 0, needs, goes_on},
	PIN_OPERATIONS(ROW, 0)
#undef ROW
};

_Static_assert(PIN_ARRAY_COUNT(operations) == PIN_OP_COUNT, "a row for each operation");

/* The compiler warns of a member of the enumeration that has no row. */
static bool is_public(enum pinion_op op)
{
	switch (op) {
#define PINION_CASE(name) case PINION_OP_##name:
#define PIN_CASE(name)
#define CASE(set, name, prefix, ...) prefix##_CASE(name)
		PIN_OPERATIONS(CASE, 0)
#undef CASE
#undef PIN_CASE
#undef PINION_CASE
		return true;
	}
	return false;
}

/* ---- between the worker and the ring ---- */

/* No bit that is unknown, and one lane at most. */
static PIN_INLINE bool has_task_flags(const struct pinion_request *request)
{
	_Static_assert(PINION_TASK_MANDATORY == 1 && PINION_TASK_HIGH == 2 && PINION_TASK_LOW == 4,
		"higher values have an unknown bit or both lanes");
	return request->task.flags <= (PINION_TASK_LOW | PINION_TASK_MANDATORY);
}

int pin_request_check(const struct pinion_request *request)
{
	if (request->task.run == NULL || request->op >= PIN_OP_COUNT || !has_task_flags(request)) {
		return -EINVAL;
	}
	return operations[request->op].check(request, NULL);
}

int pin_request_explain(const struct pinion_request *request, struct pin_refusal *why)
{
	if (!is_public((enum pinion_op)request->op)) {
		return pin_refuse(why, -EINVAL, "op is %u, not 0 to %d", request->op,
			PIN_OP_PUBLIC_COUNT - 1);
	}
	if (request->task.run == NULL) {
		return pin_refuse(why, -EINVAL, "task.run is NULL");
	}
	if (!has_task_flags(request)) {
		return pin_refuse(why, -EINVAL,
			"task.flags is 0x%x, neither PINION_TASK_HIGH nor _LOW nor 0, "
			"with or without _MANDATORY",
			request->task.flags);
	}
	return operations[request->op].check(request, why);
}

static PIN_INLINE void submit_rest(struct pin_ring *ring, struct pinion_request *request)
{
	struct io_uring_sqe *sqe = pin_ring_entry_again(ring);

	/* The one field that liburing leaves alone, so it may come first. */
	sqe->user_data = (uint64_t)(uintptr_t)request;
	operations[request->op].prepare(ring, sqe, request);
	PIN_DCHECK(sqe->user_data == (uint64_t)(uintptr_t)request);
	PIN_DCHECK(sqe->user_data > PIN_RING_TAG_WATCH); /* no tag of the ring's own */
	pin_in_flight_begin(request);
}

/* The part of it that a command is to read now, or reads. */
static uint32_t command_length(struct pinion_request *request)
{
	uint64_t done = pin_request_of(request)->resume_bytes;

	return pin_command_length(request->file, request->offset_bytes + done,
		pin_request_part(request->length_bytes, done));
}

static void submit_command(struct pin_ring *ring, struct pinion_request *request)
{
	struct io_uring_sqe *sqe = pin_ring_wide_entry(ring);
	uint64_t done = pin_request_of(request)->resume_bytes;
	uint8_t *bytes = request->bytes + done;
	uint32_t length = command_length(request);
	int index = pin_ring_registered_index(ring, bytes, length);

	pin_command_prepare(sqe, request->file, bytes, request->offset_bytes + done, length, index);
	if (index < 0) {
		pin_meter_add(&ring->meter->unregistered_reads, 1);
	}
	sqe->user_data = (uint64_t)(uintptr_t)request;
	pin_in_flight_begin(request);
}

bool pin_request_submit_command(struct pin_ring *ring, struct pinion_request *request)
{
	if (!pin_op_is_in(request->op, PIN_OPS_READING_BYTES) || pin_ring_room(ring) == 0 ||
		command_length(request) == 0) {
		return false;
	}
	PIN_DCHECK(ring->is_wide);
	submit_command(ring, request);
	return true;
}

bool pin_request_is_beyond(const struct pin_ring *ring, const struct pinion_request *request)
{
	return (operations[request->op].needs & ring->lacks) != 0;
}

/* Of a large one, or of any where calls are bounded: they may be due now. */
static PIN_APART void note_gathered(struct pin_ring *ring, const struct pinion_request *request)
{
	PIN_DCHECK(request->length_bytes >= ring->noted_bytes);
	if (ring->is_bounded &&
		pin_submit_bound_add(&ring->bound, pin_request_part(request->length_bytes, 0))) {
		pin_ring_submit(ring);
	} else if (request->length_bytes >= PIN_RING_LARGE_BYTES && request->file != NULL &&
		request->file->is_direct) {
		pin_ring_submit_pair(ring);
	}
}

bool pin_request_submit(struct pin_ring *ring, struct pinion_request *request)
{
	PIN_DCHECK(!ring->is_wide); /* its entries have another size */
	if (PIN_UNLIKELY(!pin_ring_has_room(ring, 1) || pin_request_is_beyond(ring, request))) {
		return false;
	}
	submit_rest(ring, request);
	if (PIN_UNLIKELY(request->length_bytes >= ring->noted_bytes)) {
		note_gathered(ring, request);
	}
	return true;
}

/* Of what is done whole, or not at all. */
static void carry_out_whole(struct pin_ring *ring, struct pinion_request *request)
{
	const struct operation *operation = &operations[request->op];
	struct io_uring_sqe sqe;
	int64_t result;

	do {
		operation->prepare(ring, &sqe, request);
		result = pin_fallback_execute(&sqe);
	} while (
		(result < 0 || !operation->is_whole) && operation->goes_on(ring, request, &result));
	request->result = result;
}

bool pin_request_carry_out(struct pin_ring *ring, struct pinion_request *request)
{
	if (pin_request_moves_bytes(request)) {
		return pin_transfer_carry_out(ring, request);
	}
	carry_out_whole(ring, request);
	return true;
}

void pin_request_abandon(struct pin_ring *ring, struct pinion_request *request)
{
	PIN_CHECK(pin_request_of(request)->ended_by != 0);
	PIN_DCHECK(ring->is_fallback || ring->in_flight > 0);
	pin_ring_cancel(ring, (uint64_t)(uintptr_t)request);
}

/* Kernel threads that work for a ring are cancelled by a signal. */
static bool is_cancelled(int64_t result)
{
	return result == -ECANCELED || result == -EINTR || result == -EAGAIN;
}

/*
 * The kernel's own codes for a call that a signal interrupted (ERESTARTSYS,
 * ERESTARTNOINTR, ERESTARTNOHAND, ERESTART_RESTARTBLOCK). No user should see
 * them; a read that its helper thread gave up in Linux 6.1 shows the first.
 */
static int32_t without_restarts(int32_t error)
{
	return error == -512 || error == -513 || error == -514 || error == -516 ? -EINTR : error;
}

static void submit_again(struct pin_ring *ring, struct pinion_request *request)
{
	if (PIN_UNLIKELY(ring->is_wide)) {
		submit_command(ring, request);
	} else {
		submit_rest(ring, request);
	}
}

/* Of a transfer that goes on: not an attempt that is made once more. */
static bool is_between_parts(struct pinion_request *request)
{
	struct pin_request *private = pin_request_of(request);

	return pin_request_moves_bytes(request) && private->resume_bytes != 0 &&
		private->resume_bytes % PIN_REQUEST_PART_BYTES == 0 && private->stall_count == 0;
}

/* In an enter of its own: the kernel makes it one with no other. */
static PIN_APART void submit_alone(struct pin_ring *ring, struct pinion_request *request)
{
	pin_ring_submit(ring);
	submit_again(ring, request);
	pin_ring_submit(ring);
}

static void go_on(struct pin_ring *ring, struct pinion_request *request)
{
	if (PIN_UNLIKELY(is_between_parts(request)) && ring->ask_part != NULL &&
		!ring->ask_part(ring->ask_arg, request)) {
		return;
	}
	submit_again(ring, request);
}

/* Asks the operation whether that is its end. */
static PIN_APART struct pinion_request *end_or_go_on(
	struct pin_ring *ring, struct pinion_request *request, int32_t completed)
{
	struct pin_request *private = pin_request_of(request);
	int64_t result = without_restarts(completed);

	PIN_DCHECK(private->ended_by == 0 || private->ended_by == -ECANCELED ||
		private->ended_by == -ETIME);
	if (operations[request->op].goes_on(ring, request, &result)) {
		if (PIN_UNLIKELY(private->ended_by != 0)) {
			result = private->ended_by;
		} else if (pin_request_is_of_sectors(completed)) {
			submit_alone(ring, request);
			return NULL;
		} else {
			go_on(ring, request);
			return NULL;
		}
	} else if (PIN_UNLIKELY(private->ended_by != 0) && is_cancelled(result)) {
		result = private->ended_by;
	}
	request->result = result;
	return request;
}

/* There is nothing to be asked. */
static PIN_INLINE bool ends_at_once(
	struct pin_ring *ring, struct pinion_request *request, int32_t result)
{
	return pin_request_moves_bytes(request) ? pin_transfer_ends_whole(ring, request, result)
						: result >= 0 && operations[request->op].is_whole;
}

struct pinion_request *pin_request_complete(
	struct pin_ring *ring, uint64_t user_data, int32_t result)
{
	struct pinion_request *request = (struct pinion_request *)(uintptr_t)user_data;

	if (PIN_UNLIKELY(request == NULL || request->op >= PIN_OP_COUNT)) {
		report_changed(ring, request);
	}
	pin_in_flight_end(request);
	if (PIN_UNLIKELY(!ends_at_once(ring, request, result))) {
		return end_or_go_on(ring, request, result);
	}
	request->result = result;
	return request;
}

struct pinion_request *pin_request_complete_command(
	struct pin_ring *ring, uint64_t user_data, int32_t result)
{
	struct pinion_request *request = (struct pinion_request *)(uintptr_t)user_data;

	PIN_DCHECK(ring->is_wide);
	return pin_request_complete(
		ring, user_data, pin_command_result(result, command_length(request)));
}
