/* SPDX-License-Identifier: MIT */
/*
 * Goal: a request that is refused for what it says is explained to the log
 * hook at debug level, in exact words, from outside, in a batch and on a
 * worker; a pipe and a socket that were filled in by hand are refused; nothing
 * is said where nothing is wrong or a request is in flight.
 * Method: one mistake after the other, and the message compared.
 */
#include "runtime/io/request.h"
#include "tests/support/requests.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

enum { LIMIT_SECONDS = 60, PAGE = 4096 };

static struct pinion_runtime *runtime;
static struct pinion_file file = {
	.memory_align_bytes = 512, .offset_align_bytes = 4096, .way = PINION_WAY_DIRECT};
static uint8_t memory[2 * PAGE] __attribute__((aligned(PAGE)));
static char message[512];
static uint32_t message_count;

static void note(void *arg, enum pinion_log_level level, const char *text)
{
	(void)arg;
	if (level == PINION_LOG_DEBUG && strstr(text, " refused: ") != NULL) {
		snprintf(message, sizeof(message), "%s", text);
		message_count++;
	}
}

static int ended(struct pinion_task *task)
{
	(void)task;
	return 0;
}

static struct pinion_request begin(uint16_t op)
{
	return (struct pinion_request){
		.task.run = ended, .op = op, .file = &file, .bytes = memory, .length_bytes = PAGE};
}

static void expect_words(const char *words)
{
	if (message_count != 1 || strcmp(message, words) != 0) {
		expect_true(words, false);
		printf("  got %u messages, the last: %s\n", message_count, message);
	}
	message_count = 0;
	message[0] = '\0';
}

static void expect_refused(struct pinion_request request, int error, const char *words)
{
	expect_number(words, error, pinion_request_submit(runtime, &request));
	expect_words(words);
}

static void check_transfers(void)
{
	struct pinion_file by_hand = {.fd = 0};
	struct pinion_request request = begin(PINION_OP_READ);
	char words[256];

	request.task.run = NULL;
	expect_refused(request, -EINVAL, "request refused: task.run is NULL");
	request.task.run = ended;
	request.task.flags = PINION_TASK_HIGH | PINION_TASK_LOW;
	expect_refused(request, -EINVAL,
		"request refused: task.flags is 0x6, neither PINION_TASK_HIGH nor _LOW nor 0, with "
		"or without _MANDATORY");
	request.task.flags = 8;
	expect_refused(request, -EINVAL,
		"request refused: task.flags is 0x8, neither PINION_TASK_HIGH nor _LOW nor 0, with "
		"or without _MANDATORY");
	snprintf(words, sizeof(words), "request refused: op is %d, not 0 to %d",
		PIN_OP_PUBLIC_COUNT, PIN_OP_PUBLIC_COUNT - 1);
	expect_refused(begin(PIN_OP_PUBLIC_COUNT), -EINVAL, words);
	request = begin(PINION_OP_WRITE);
	request.file = NULL;
	expect_refused(request, -EINVAL, "request refused: file is NULL");
	request = begin(PINION_OP_READ);
	request.length_bytes = 0;
	expect_refused(request, -EINVAL,
		"request refused: length_bytes is 0, not 1 to 9223372036854775807");
	request.length_bytes = PAGE;
	request.offset_bytes = INT64_MAX - 10;
	expect_refused(request, -EINVAL,
		"request refused: offset_bytes is 9223372036854775797 and length_bytes 4096: they "
		"end after 9223372036854775807");
	request.offset_bytes = 100;
	expect_refused(request, -EINVAL,
		"request refused: offset_bytes is 100, not a multiple of the file's "
		"offset_align_bytes, 4096");
	request.offset_bytes = 0;
	request.length_bytes = 4097;
	expect_refused(request, -EINVAL,
		"request refused: length_bytes is 4097, not a multiple of the file's "
		"offset_align_bytes, 4096");
	request.length_bytes = PAGE;
	request.bytes = NULL;
	expect_refused(request, -EINVAL, "request refused: bytes is NULL");
	request.op = PINION_OP_WRITE;
	expect_refused(request, -EINVAL, "request refused: bytes is NULL");
	request.bytes = memory + 3;
	snprintf(words, sizeof(words),
		"request refused: bytes is %p, not a multiple of the file's memory_align_bytes, "
		"512",
		(void *)(memory + 3));
	expect_refused(request, -EINVAL, words);
	request = begin(PINION_OP_READ);
	request.file = &by_hand;
	expect_refused(request, -EINVAL,
		"request refused: file->memory_align_bytes is 0, not a power of two: make the file "
		"by pinion_file_from_fd()");
	by_hand.memory_align_bytes = 1;
	expect_refused(request, -EINVAL,
		"request refused: file->offset_align_bytes is 0, not a power of two: make the file "
		"by pinion_file_from_fd()");
}

static void expect_vector(const struct iovec *vector, uint32_t count, uint64_t length_bytes,
	uint64_t offset_bytes, const char *words)
{
	struct pinion_request request = begin(PINION_OP_WRITEV);

	request.vector = vector;
	request.vector_count = count;
	request.length_bytes = length_bytes;
	request.offset_bytes = offset_bytes;
	expect_refused(request, -EINVAL, words);
}

static void check_sockets(void)
{
	static struct pinion_file socket_file = {.fd = 0};
	static struct msghdr message_head = {.msg_iovlen = 1025};
	struct pinion_request request = {.task.run = ended, .op = PINION_OP_RECV};

	request.bytes = memory;
	expect_refused(request, -EINVAL, "request refused: file is NULL");
	request.file = &socket_file;
	request.length_bytes = UINT64_C(0x7ffff001);
	expect_refused(request, -EINVAL,
		"request refused: length_bytes is 2147479553, not 0 to 2147479552");
	request.length_bytes = 1;
	request.flags = UINT32_C(1) << 31;
	expect_refused(
		request, -EINVAL, "request refused: flags is 0x80000000, more than 0x7fffffff");
	request.flags = 0;
	request.bytes = NULL;
	expect_refused(request, -EINVAL, "request refused: bytes is NULL");
	request.op = PINION_OP_SEND;
	expect_refused(request, -EINVAL, "request refused: bytes is NULL");
	request.op = PINION_OP_CONNECT;
	expect_refused(request, -EINVAL, "request refused: address is NULL");
	request.op = PINION_OP_ACCEPT;
	expect_refused(
		request, -EINVAL, "request refused: address is NULL, and length_bytes 1, not 0");
	request.length_bytes = 0;
	request.flags = SOCK_NONBLOCK | 1;
	expect_refused(request, -EINVAL, "request refused: flags is 0x801: 0x1 is unknown");
	request.op = PINION_OP_POLL;
	request.flags = 0x8001;
	expect_refused(request, -EINVAL, "request refused: flags is 0x8001: 0x8000 is unknown");
	request.op = PINION_OP_SENDMSG;
	request.flags = 0;
	expect_refused(request, -EINVAL, "request refused: message is NULL");
	request.message = &message_head;
	expect_refused(
		request, -EINVAL, "request refused: message->msg_iovlen is 1025, not 0 to 1024");
	request.op = PINION_OP_RECVMSG;
	message_head.msg_iovlen = 1;
	expect_refused(request, -EINVAL, "request refused: message->msg_iov is NULL");
	message_head.msg_iovlen = 0;
	request.flags = MSG_WAITALL;
	expect_refused(request, -EINVAL, "request refused: flags is 0x100: 0x100 is unknown");
	request.op = PINION_OP_SHUTDOWN;
	request.flags = 3;
	expect_refused(request, -EINVAL,
		"request refused: flags is 3, none of SHUT_RD, SHUT_WR, SHUT_RDWR");
	request.flags = SHUT_RDWR;
	request.file = NULL;
	expect_refused(request, -EINVAL, "request refused: file is NULL");
}

static void check_advice(void)
{
	struct pinion_request request = begin(PINION_OP_FADVISE);

	request.length_bytes = UINT64_C(1) << 32;
	expect_refused(request, -EINVAL,
		"request refused: length_bytes is 4294967296, not 0 to 4294967295");
	request.length_bytes = 0;
	request.flags = UINT32_C(1) << 31;
	expect_refused(
		request, -EINVAL, "request refused: flags is 0x80000000, more than 0x7fffffff");
	request.op = PINION_OP_SYNC_FILE_RANGE;
	request.offset_bytes = INT64_MAX;
	expect_refused(request, -EINVAL,
		"request refused: offset_bytes is 9223372036854775807, not 0 to "
		"9223372032559808512");
	request.file = NULL;
	request.offset_bytes = 0;
	expect_refused(request, -EINVAL, "request refused: file is NULL");
	request.op = PINION_OP_MADVISE;
	request.bytes = NULL;
	expect_refused(request, -EINVAL, "request refused: bytes is NULL");
}

static void check_vectors(void)
{
	struct iovec vector[] = {{memory, PAGE}, {memory + PAGE, PAGE}};
	struct pinion_file by_hand = {.memory_align_bytes = 3};
	struct pinion_request request = begin(PINION_OP_READV);
	char words[256];

	expect_vector(
		vector, 1025, PAGE, 0, "request refused: vector_count is 1025, not 0 to 1024");
	expect_vector(NULL, 1, PAGE, 0, "request refused: vector is NULL");
	expect_vector(vector, 2, PAGE, 0,
		"request refused: length_bytes is 4096, not the sum of the vector's iov_len, 8192");
	expect_vector(vector, 2, 2 * PAGE, 512,
		"request refused: offset_bytes is 512, not a multiple of the file's "
		"offset_align_bytes, 4096");
	expect_vector(vector, 2, 2 * PAGE, INT64_MAX - 2 * PAGE + 1 + PAGE,
		"request refused: offset_bytes is 9223372036854771712 and length_bytes 8192: they "
		"end after 9223372036854775807");
	/* 2^64 wraps to an end at 4096. */
	expect_vector(vector, 2, 2 * PAGE, UINT64_MAX - PAGE + 1,
		"request refused: offset_bytes is 18446744073709547520 and length_bytes 8192: they "
		"end after 9223372036854775807");
	vector[1].iov_base = NULL;
	expect_vector(vector, 2, 2 * PAGE, 0, "request refused: vector[1].iov_base is NULL");
	vector[1].iov_base = memory + PAGE + 8;
	snprintf(words, sizeof(words),
		"request refused: vector[1].iov_base is %p, not a multiple of the file's "
		"memory_align_bytes, 512",
		(void *)(memory + PAGE + 8));
	expect_vector(vector, 2, 2 * PAGE, 0, words);
	vector[1] = (struct iovec){memory, 512};
	expect_vector(vector, 2, PAGE + 512, 0,
		"request refused: vector[1].iov_len is 512, not a multiple of the file's "
		"offset_align_bytes, 4096");
	vector[1].iov_len = (size_t)INT64_MAX - PAGE + 1;
	expect_vector(vector, 2, (uint64_t)INT64_MAX + 1, 0,
		"request refused: vector[1].iov_len is 9223372036854771712: with the 4096 bytes "
		"before it more than 9223372036854775807");
	request.file = NULL;
	expect_refused(request, -EINVAL, "request refused: file is NULL");
	request.file = &by_hand;
	expect_refused(request, -EINVAL,
		"request refused: file->memory_align_bytes is 3, not a power of two: make the file "
		"by pinion_file_from_fd()");
}

static void check_streams(void)
{
	int ends[2];
	int pair[2];
	struct pinion_file by_hand = {.memory_align_bytes = 1, .offset_align_bytes = 1};
	struct pinion_request request = begin(PINION_OP_READ);
	char words[256];

	expect_ready("pipe", pipe(ends) == 0);
	expect_ready("sockets", socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	request.file = &by_hand;
	by_hand.fd = ends[0];
	snprintf(words, sizeof(words),
		"request refused: file->fd is %d, a pipe: a read of it would wait for its full "
		"length",
		ends[0]);
	expect_refused(request, -ESPIPE, words);
	request.op = PINION_OP_READV;
	request.vector = &(struct iovec){memory, PAGE};
	request.vector_count = 1;
	expect_refused(request, -ESPIPE, words);
	request = begin(PINION_OP_READ);
	request.file = &by_hand;
	by_hand.fd = pair[0];
	snprintf(words, sizeof(words),
		"request refused: file->fd is %d, a socket: a read of it would wait for its full "
		"length",
		pair[0]);
	expect_refused(request, -ESPIPE, words);
	request.op = PINION_OP_WRITE;
	by_hand.fd = ends[1];
	snprintf(words, sizeof(words),
		"request refused: file->fd is %d, a pipe: a write to it would wait for its full "
		"length",
		ends[1]);
	expect_refused(request, -ESPIPE, words);
	for (int i = 0; i < 2; i++) {
		close(ends[i]);
		close(pair[i]);
	}
}

static void expect_options(
	uint32_t flags, uint32_t direct, uint32_t mode, uint32_t reserved, const char *words)
{
	struct pinion_request request = begin(PINION_OP_OPEN);
	struct pinion_file_options options;

	pinion_file_options_init(&options);
	options.flags = flags;
	options.direct = direct;
	options.mode = mode;
	options.reserved = reserved;
	request.path = "file";
	request.options = &options;
	expect_refused(request, -EINVAL, words);
}

static void check_options(void)
{
	struct {
		struct pinion_file_options options;
		uint64_t newer;
	} larger = {.newer = 1};
	struct pinion_request request = begin(PINION_OP_OPEN);
	char words[256];

	expect_refused(request, -EINVAL, "request refused: path is NULL");
	request.path = "file";
	request.file = NULL;
	expect_refused(request, -EINVAL, "request refused: file is NULL");
	expect_options(1025, 0, 0, 0, "request refused: options->flags is 0x401: 0x400 is unknown");
	expect_options(0, 0, 0, 0,
		"request refused: options->flags is 0x0: neither PINION_FILE_READ nor _WRITE");
	expect_options(17, 0, 0, 0,
		"request refused: options->flags is 0x11: PINION_FILE_TRUNCATE without _WRITE");
	expect_options(9, 0, 0, 0,
		"request refused: options->flags is 0x9: PINION_FILE_EXCLUSIVE without _CREATE");
	expect_options(1, 99, 0, 0, "request refused: options->direct is 99, not 0 to 2");
	expect_options(
		1, 0, 010000, 0, "request refused: options->mode is 010000, more than 07777");
	expect_options(1, 0, 0, 1, "request refused: options->reserved is 1, not 0");
	pinion_file_options_init(&larger.options);
	request = begin(PINION_OP_OPEN);
	request.path = "file";
	request.options = &larger.options;
	larger.options.size = 2;
	expect_refused(request, -EINVAL,
		"request refused: options->size is 2: call pinion_file_options_init() first");
	larger.options.size = sizeof(larger);
	snprintf(words, sizeof(words),
		"request refused: options->size is %zu, and a field that this library does not "
		"know is set",
		sizeof(larger));
	expect_refused(request, -E2BIG, words);
}

/* `request` has both names. */
static void check_flags_of_names(struct pinion_request request)
{
	request.flags = 8;
	expect_refused(request, -EINVAL, "request refused: flags is 0x8: 0x8 is unknown");
	request.flags = RENAME_EXCHANGE | RENAME_NOREPLACE;
	expect_refused(
		request, -EINVAL, "request refused: flags is 0x3: RENAME_EXCHANGE with another");
	request.op = PINION_OP_UNLINK;
	request.flags = AT_REMOVEDIR | AT_SYMLINK_FOLLOW;
	expect_refused(request, -EINVAL, "request refused: flags is 0x600: 0x400 is unknown");
	request.op = PINION_OP_LINK;
	expect_refused(request, -EINVAL, "request refused: flags is 0x600: 0x200 is unknown");
}

/* What the link is to say starts nowhere: `options` are not read at all. */
static void check_symlink(void)
{
	struct pinion_file_options options = {.size = 1};
	struct pinion_request request = begin(PINION_OP_SYMLINK);

	request.options = &options;
	expect_refused(request, -EINVAL, "request refused: path is NULL");
	request.path = "text";
	expect_refused(request, -EINVAL, "request refused: new_path is NULL");
	request.new_path = "new";
	expect_number("options are not read", 0, pin_request_check(&request));
	request.new_options = &options;
	expect_refused(request, -EINVAL,
		"request refused: new_options->size is 1: call pinion_file_options_init() first");
}

static void check_others(void)
{
	struct pinion_request request = begin(PINION_OP_READV);
	struct pinion_file_options options;

	request.length_bytes = 0;
	request.offset_bytes = (uint64_t)INT64_MAX + 1;
	expect_refused(request, -EINVAL,
		"request refused: offset_bytes is 9223372036854775808 and length_bytes 0: they end "
		"after 9223372036854775807");
	request = begin(PINION_OP_ALLOCATE);
	request.flags = 1u << 31;
	expect_refused(
		request, -EINVAL, "request refused: flags is 0x80000000, more than 0x7fffffff");
	request.length_bytes = 0;
	expect_refused(request, -EINVAL,
		"request refused: length_bytes is 0, not 1 to 9223372036854775807");
	request.length_bytes = 2;
	request.offset_bytes = INT64_MAX - 1;
	expect_refused(request, -EINVAL,
		"request refused: offset_bytes is 9223372036854775806 and length_bytes 2: they end "
		"after 9223372036854775807");
	request.file = NULL;
	expect_refused(request, -EINVAL, "request refused: file is NULL");
	request = begin(PINION_OP_FSYNC);
	request.file = NULL;
	expect_refused(request, -EINVAL, "request refused: file is NULL");
	request = begin(PINION_OP_STATX);
	expect_refused(request, -EINVAL, "request refused: status is NULL");
	request.status = (struct statx *)(void *)memory;
	request.file = NULL;
	expect_refused(request, -EINVAL, "request refused: path and file are NULL");
	pinion_file_options_init(&options);
	options.resolve = RESOLVE_BENEATH;
	request.path = "file";
	request.options = &options;
	expect_refused(request, -EINVAL,
		"request refused: options->resolve is 0x8, not 0: only opens heed it");
	request = begin(PINION_OP_RENAME);
	expect_refused(request, -EINVAL, "request refused: path is NULL");
	request.path = "old";
	expect_refused(request, -EINVAL, "request refused: new_path is NULL");
	request.new_path = "new";
	check_flags_of_names(request);
	request.new_options = &options;
	expect_refused(request, -EINVAL,
		"request refused: new_options->resolve is 0x8, not 0: only opens heed it");
	request.options = &options;
	expect_refused(request, -EINVAL,
		"request refused: options->resolve is 0x8, not 0: only opens heed it");
	request = begin(PINION_OP_MKDIR);
	request.path = "new";
	request.flags = 010000;
	expect_refused(request, -EINVAL, "request refused: flags is 010000, more than 07777");
	request = begin(PINION_OP_TIMEOUT);
	expect_refused(request, -EINVAL, "request refused: deadline_ns is 0");
	request = begin(PINION_OP_CANCEL);
	request.deadline_ns = 5;
	expect_refused(
		request, -EINVAL, "request refused: deadline_ns is 5, not 0: a cancel has none");
	expect_number("no request", -EINVAL, pinion_request_submit(runtime, NULL));
	expect_words("request refused: it is NULL");
}

static void submit_wrong_batch(void)
{
	struct pinion_request good = begin(PINION_OP_NOP);
	struct pinion_request wrong = begin(PINION_OP_TIMEOUT);
	struct pinion_request *batch[3] = {&good, &wrong, &good};

	expect_number("batch", -EINVAL, pinion_request_submit_batch(runtime, batch, 3));
	expect_words("request 2 of 3 refused: deadline_ns is 0");
	batch[1] = &good;
	expect_number("twice", -EBUSY, pinion_request_submit_batch(runtime, batch, 2));
	expect_number("nothing is said of that", 0, message_count);
	batch[2] = NULL;
	batch[1] = NULL;
	expect_number("none", -EINVAL, pinion_request_submit_batch(runtime, batch, 3));
	expect_words("request 2 of 3 refused: it is NULL");
}

static struct pin_atomic_u32 done;

static int on_worker(struct pinion_task *task)
{
	char words[80];

	(void)task;
	expect_refused(begin(PINION_OP_TIMEOUT), -EINVAL, "request refused: deadline_ns is 0");
	snprintf(words, sizeof(words), "request refused: op is %d, not 0 to %d",
		PIN_OP_PUBLIC_COUNT, PIN_OP_PUBLIC_COUNT - 1);
	expect_refused(begin(PIN_OP_PUBLIC_COUNT), -EINVAL, words);
	submit_wrong_batch();
	tasks_signal(&done);
	return 0;
}

int main(void)
{
	struct pinion_task task = {.run = on_worker};
	struct pinion_config config;

	runtimes_watchdog(LIMIT_SECONDS);
	runtimes_config(&config, 1, PINION_IO_AUTO);
	config.log = note;
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
	message_count = 0;
	check_transfers();
	check_sockets();
	check_advice();
	check_vectors();
	check_streams();
	check_options();
	check_others();
	check_symlink();
	submit_wrong_batch();
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	tasks_await(&done, 1);
	pinion_runtime_destroy(runtime);
	return expect_status();
}
