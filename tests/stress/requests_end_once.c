/* SPDX-License-Identifier: MIT */
/*
 * Goal: each request ends once, with a result that its cancels and its deadline
 * allow, while threads outside submit, cancel what others submitted, and cancel
 * all of a file; then the runtime is stopped in the middle of it. Of all
 * operations that users have. G2.
 * Method: real threads, each with some requests that it submits again and again
 * as soon as they have ended; random choices depend on the seed alone, meetings
 * of threads do not. Rings and fallback in turn.
 */
#include "runtime/io/operation.h"
#include "tests/support/random.h"
#include "tests/support/requests.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

enum {
	THREADS = 3,
	REQUESTS = 12, /* of each thread */
	ROUNDS = 1500,
	WORKERS = 3,
	BLOCK = 4096,
	FILE_BYTES = 64 * BLOCK,
	DEADLINE_NS_MAX = 200 * 1000,
	LIMIT_SECONDS = 60,
};

#if defined(__SANITIZE_THREAD__)
/*
 * The ring opens and closes descriptors without the calls that ThreadSanitizer
 * watches, so it takes a number that is used again for the same file.
 */
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
	return "race_top:close$\nrace_top:fstat$\n";
}
#endif

struct slot {
	struct requests_one one;
	struct pin_atomic_u32 submitted_count;
	struct pinion_file opened; /* by it, or for it to close */
	struct iovec vector[2];	   /* of its bytes, the second half first */
	struct iovec piece;	   /* of its message: its bytes */
	struct msghdr message;
	uint8_t bytes[BLOCK] __attribute__((aligned(BLOCK)));
};

struct submitter {
	pthread_t thread;
	uint64_t seed;
	uint32_t index;
	uint32_t round_count;
};

static struct pinion_runtime *runtime;
static struct pinion_file file;
static struct slot slots[THREADS][REQUESTS];
static struct pin_atomic_u32 wrong_count;
/* Of each end requests receive and send, so one may fill up. */
static struct pinion_file pair[2];
static struct pinion_file shut[2]; /* for SHUTDOWN alone */
static struct pinion_file listener;
static struct sockaddr_un place;
static socklen_t place_bytes = sizeof(place);

static void note_wrong(bool is_wrong)
{
	if (is_wrong) {
		pin_fetch_add_acq_rel_u32(&wrong_count, 1);
	}
}

/* Names that few share, which are there at times and at times are not. */
static const char *path_of(uint16_t op)
{
	switch (op) {
	case PINION_OP_STATX:
		return NULL;
	case PINION_OP_RENAME:
		return "linked";
	case PINION_OP_UNLINK:
		return "moved";
	case PINION_OP_MKDIR:
		return "made";
	default:
		return "file";
	}
}

/* Where it is of sockets, or of memory that is in pieces. */
static void prepare_socket(struct slot *slot, uint32_t number)
{
	struct pinion_request *request = &slot->one.request;

	slot->piece = (struct iovec){slot->bytes, BLOCK};
	slot->message = (struct msghdr){.msg_iov = &slot->piece, .msg_iovlen = 1};
	switch (request->op) {
	case PINION_OP_POLL:
	case PINION_OP_RECV:
	case PINION_OP_SEND:
		request->file = &pair[number % 2];
		break;
	case PINION_OP_SENDMSG:
	case PINION_OP_RECVMSG:
		request->file = &pair[number % 2];
		request->message = &slot->message;
		break;
	case PINION_OP_ACCEPT:
		request->file = &listener;
		break;
	case PINION_OP_CONNECT:
		slot->opened.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		request->file = &slot->opened;
		request->address = (struct sockaddr *)&place;
		request->length_bytes = place_bytes;
		break;
	case PINION_OP_SHUTDOWN:
		request->file = &shut[0];
		break;
	case PINION_OP_SOCKET:
		request->flags = SOCK_STREAM;
		break;
	default:
		break;
	}
}

/* Its operation stays the same for ever: others may cancel it at any time. */
static void prepare(struct slot *slot, uint32_t number)
{
	static struct statx status[THREADS * REQUESTS];
	uint16_t op = (uint16_t)(number % PIN_OP_PUBLIC_COUNT);
	bool has_own_file = op == PINION_OP_OPEN || op == PINION_OP_CLOSE;
	struct pinion_request *request = requests_begin(&slot->one, op);

	pin_store_release_u32(&slot->submitted_count, 0);
	slot->opened.fd = -1;
	request->file = has_own_file ? &slot->opened : &file;
	request->path = path_of(op);
	request->new_path = op == PINION_OP_RENAME ? "moved" : "linked";
	request->bytes = slot->bytes;
	request->length_bytes = BLOCK;
	request->flags = op == PINION_OP_MKDIR ? 0755 : 0;
	if (pin_request_has(request, PIN_OP_GATHERS)) {
		slot->vector[0] = (struct iovec){slot->bytes + BLOCK / 2, BLOCK / 2};
		slot->vector[1] = (struct iovec){slot->bytes, BLOCK / 2};
		request->vector = slot->vector;
		request->vector_count = 2;
	}
	request->status = &status[number];
	prepare_socket(slot, number);
}

/* It has ended, or never began. */
static void prepare_again(struct slot *slot, struct random_source *random)
{
	struct pinion_request *request = &slot->one.request;

	request->offset_bytes = random_below(random, FILE_BYTES / BLOCK) * BLOCK;
	request->deadline_ns = 0;
	if (request->op == PINION_OP_SOCKET) {
		request->socket = (struct pinion_socket){.domain = AF_UNIX};
	}
	if (request->op == PINION_OP_TIMEOUT || pin_request_has(request, PIN_OP_WAITS_FOR_PEER) ||
		(request->op != PINION_OP_CANCEL && random_below(random, 4) == 0)) {
		request->deadline_ns =
			pinion_clock_now_ns() + random_below(random, DEADLINE_NS_MAX);
	}
	if (pin_request_has(request, PIN_OP_MOVES) && !pin_request_has(request, PIN_OP_READS)) {
		memset(slot->bytes, (int)(request->offset_bytes / BLOCK), BLOCK);
	} else if (request->op == PINION_OP_OPEN) {
		pinion_file_close(&slot->opened);
	} else if (request->op == PINION_OP_CLOSE && slot->opened.fd < 0) {
		note_wrong(pinion_file_open(&slot->opened, "file", PINION_DIRECT_NEVER) != 0);
	}
}

static void check_result(const struct slot *slot)
{
	const struct pinion_request *request = &slot->one.request;
	uint8_t expected = (uint8_t)(request->offset_bytes / BLOCK);
	int64_t result = request->result;

	switch (request->op) {
	case PINION_OP_READ:
	case PINION_OP_WRITE:
	case PINION_OP_READV:
	case PINION_OP_WRITEV:
		note_wrong(result == BLOCK &&
			(slot->bytes[0] != expected || slot->bytes[BLOCK - 1] != expected));
		note_wrong(result >= 0 && result != BLOCK);
		break;
	case PINION_OP_ALLOCATE:
		note_wrong(result > 0);
		if (result == -EOPNOTSUPP) {
			return;
		}
		break;
	case PINION_OP_TIMEOUT:
		note_wrong(result >= 0);
		break;
	case PINION_OP_ACCEPT:
	case PINION_OP_SOCKET:
		if (result >= 0) {
			close((int)result);
			return;
		}
		break;
	case PINION_OP_CONNECT:
		note_wrong(result > 0);
		if (result == -EISCONN || result == -EAGAIN || result == -ECONNRESET) {
			return;
		}
		break;
	case PINION_OP_POLL:
	case PINION_OP_RECV:
	case PINION_OP_SEND:
	case PINION_OP_SENDMSG:
	case PINION_OP_RECVMSG:
		note_wrong(result == 0 || result > BLOCK);
		break;
	case PINION_OP_CANCEL:
		note_wrong(result < 0);
		break;
	case PINION_OP_RENAME:
	case PINION_OP_UNLINK:
	case PINION_OP_MKDIR:
	case PINION_OP_LINK:
	case PINION_OP_SYMLINK:
		note_wrong(result > 0);
		if (result == -ENOENT || result == -EEXIST) {
			return;
		}
		break;
	default:
		note_wrong(result > 0);
		break;
	}
	note_wrong(result < 0 && result != -ECANCELED && result != -ETIME);
	note_wrong(result == -ETIME && pinion_clock_now_ns() < request->deadline_ns);
}

/* False: the runtime takes no more. */
static bool submit_again(struct slot *slot, struct random_source *random)
{
	struct pinion_request *request = &slot->one.request;
	uint32_t count = pin_load_acquire_u32(&slot->submitted_count);
	int rc;

	/* The others of this thread are in flight meanwhile. */
	tasks_await(&slot->one.entered, count);
	if (count > 0) {
		check_result(slot);
	}
	prepare_again(slot, random);
	pin_store_release_u32(&slot->submitted_count, count + 1);
	rc = pinion_request_submit(runtime, request);
	if (rc < 0) {
		note_wrong(rc != -ESHUTDOWN);
		pin_store_release_u32(&slot->submitted_count, count);
		return false;
	}
	return true;
}

static void *submit_many(void *arg)
{
	struct submitter *submitter = arg;
	struct random_source random;

	random.state = submitter->seed + submitter->index;
	for (uint32_t i = 0; i < submitter->round_count; i++) {
		struct slot *own = &slots[submitter->index][random_below(&random, REQUESTS)];
		struct slot *any =
			&slots[random_below(&random, THREADS)][random_below(&random, REQUESTS)];

		if (!submit_again(own, &random)) {
			break;
		}
		if (random_below(&random, 3) == 0) {
			int rc = pinion_request_cancel(runtime, &any->one.request);

			note_wrong(rc != 0 && rc != -EALREADY);
		}
	}
	return NULL;
}

static void run_once(uint64_t seed, uint32_t io_level, uint32_t round_count, bool is_stop)
{
	struct submitter submitters[THREADS];

	runtime = runtimes_start(WORKERS, io_level);
	for (uint32_t i = 0; i < THREADS; i++) {
		for (uint32_t j = 0; j < REQUESTS; j++) {
			prepare(&slots[i][j], i * REQUESTS + j);
		}
	}
	for (uint32_t i = 0; i < THREADS; i++) {
		submitters[i] =
			(struct submitter){.seed = seed, .index = i, .round_count = round_count};
		expect_ready("thread",
			pthread_create(&submitters[i].thread, NULL, submit_many, &submitters[i]) ==
				0);
	}
	if (is_stop) {
		tasks_await(&slots[0][1].one.entered, 3);
		expect_number("stop", 0, pinion_runtime_stop(runtime));
	}
	for (uint32_t i = 0; i < THREADS; i++) {
		pthread_join(submitters[i].thread, NULL);
	}
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	for (uint32_t i = 0; i < THREADS * REQUESTS; i++) {
		struct slot *slot = &slots[i / REQUESTS][i % REQUESTS];

		expect_number("entered as often as submitted",
			pin_load_acquire_u32(&slot->submitted_count),
			pin_load_acquire_u32(&slot->one.entered));
		pinion_file_close(&slot->opened);
	}
	expect_number("wrong", 0, pin_load_acquire_u32(&wrong_count));
	pinion_runtime_destroy(runtime);
}

static void open_pair(struct pinion_file files[2])
{
	int fds[2];

	expect_ready("pair", socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	files[0] = (struct pinion_file){.fd = fds[0]};
	files[1] = (struct pinion_file){.fd = fds[1]};
}

static void open_sockets(void)
{
	open_pair(pair);
	open_pair(shut);
	place.sun_family = AF_UNIX;
	listener.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	/* The kernel chooses a name that no file has. */
	expect_ready("listener",
		bind(listener.fd, (struct sockaddr *)&place, sizeof(place.sun_family)) == 0 &&
			listen(listener.fd, 2) == 0 &&
			getsockname(listener.fd, (struct sockaddr *)&place, &place_bytes) == 0);
}

static void close_sockets(void)
{
	for (int i = 0; i < 2; i++) {
		close(pair[i].fd);
		close(shut[i].fd);
	}
	close(listener.fd);
}

int main(void)
{
	struct random_source random;
	uint64_t seed = random_begin(&random);
	uint32_t count = tasks_iterations(1);
	static uint8_t content[FILE_BYTES];
	struct pinion_file_options options;
	int fd;

	runtimes_watchdog(count > 1 ? 3600 : LIMIT_SECONDS);
	scratch_enter("requests_end_once");
	for (uint32_t i = 0; i < FILE_BYTES; i++) {
		content[i] = (uint8_t)(i / BLOCK);
	}
	fd = open("file", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	expect_ready("file", fd >= 0 && write(fd, content, FILE_BYTES) == FILE_BYTES);
	close(fd);
	pinion_file_options_init(&options);
	options.flags = PINION_FILE_READ | PINION_FILE_WRITE;
	options.direct = PINION_DIRECT_NEVER;
	expect_number("open", 0, pinion_file_open_with(&file, "file", &options));
	open_sockets();
	for (uint32_t i = 0; i < count && expect_failure_count == 0; i++) {
		run_once(seed + i, PINION_IO_AUTO, ROUNDS, false);
		run_once(seed + i, PINION_IO_AUTO, ROUNDS, true);
		run_once(seed + i, PINION_IO_FALLBACK, ROUNDS, i % 2 == 0);
	}
	pinion_file_close(&file);
	close_sockets();
	scratch_leave();
	return expect_status();
}
