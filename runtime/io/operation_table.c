/* SPDX-License-Identifier: MIT */
/*
 * The table of operations, from the rows of io/operation.h, and the functions
 * that they name for operations without data; request.c has the checks of
 * reads and writes, transfer.c their entries.
 *
 * request.c calls them: `check` at the submission, `prepare` for each entry,
 * `goes_on` at a completion that may not be the end.
 *
 * Invariant: an entry is made from the request alone, so it can be made again
 * after an interrupt.
 */
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/io/file.h"
#include "runtime/io/request.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

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
 * device without a medium: the kernel returns ENXIO for each, and does not say
 * for which.
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

/* Where a path starts; options that only an open uses are refused. */
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

/* An entry has 32 bits for the length of these. */
static int check_short(const struct pinion_request *request, struct pin_refusal *why)
{
	if (request->length_bytes > UINT32_MAX) {
		return pin_refuse(why, -EINVAL, "length_bytes is %llu, not 0 to 4294967295",
			(unsigned long long)request->length_bytes);
	}
	if (request->flags > INT32_MAX) {
		return pin_refuse(
			why, -EINVAL, "flags is 0x%x, more than 0x7fffffff", request->flags);
	}
	return 0;
}

static int check_range(const struct pinion_request *request, struct pin_refusal *why)
{
	if (request->offset_bytes > INT64_MAX - UINT32_MAX) {
		return pin_refuse(why, -EINVAL,
			"offset_bytes is %llu, not 0 to 9223372032559808512",
			(unsigned long long)request->offset_bytes);
	}
	return request->file != NULL ? check_short(request, why)
				     : pin_refuse(why, -EINVAL, "file is NULL");
}

static int check_madvise(const struct pinion_request *request, struct pin_refusal *why)
{
	return request->bytes != NULL ? check_short(request, why)
				      : pin_refuse(why, -EINVAL, "bytes is NULL");
}

static void prepare_fadvise(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request)
{
	(void)ring;
	io_uring_prep_fadvise(sqe, request->file->fd, request->offset_bytes,
		(off_t)request->length_bytes, (int)request->flags);
}

static void prepare_madvise(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request)
{
	(void)ring;
	io_uring_prep_madvise(
		sqe, request->bytes, (off_t)request->length_bytes, (int)request->flags);
}

static void prepare_sync_file_range(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request)
{
	(void)ring;
	io_uring_prep_sync_file_range(sqe, request->file->fd, (unsigned)request->length_bytes,
		request->offset_bytes, (int)request->flags);
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

	PIN_DCHECK(strncmp(given.text, "options", strlen("options")) == 0);
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
	pin_request_report_changed(ring, request);
}

const struct pin_operation pin_operations[PIN_OP_COUNT] = {
#define ROW(set, name, prefix, needs, traits, opcode, check, prepare, goes_on, execute) \
	[PIN_OP_PLACE_##name] = {check, prepare, ((traits)&PIN_OP_IS_WHOLE) != 0, needs, goes_on},
	PIN_OPERATIONS(ROW, 0)
#undef ROW
};
