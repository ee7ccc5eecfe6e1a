/* SPDX-License-Identifier: MIT */
/*
 * Goal: a request that waits for a peer ends once: by a cancel of it or of its
 * file, its deadline, a stop; a drain ends it if it has no deadline, and lets
 * an answer go out that there is room for. Meanwhile its worker runs tasks and
 * other requests, with and without a ring, and sleeps when there are none.
 * Without a ring it needs a descriptor, or says so. A draining worker checks
 * its requests again when one got an entry in the ring, and at no other time.
 * Method: requests on sockets whose peers do nothing, or do it late; where room
 * in the ring is short the test reads the worker's own counts in its tasks.
 */
#include "runtime/worker/request.h"
#include "tests/support/requests.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

enum {
	LIMIT_SECONDS = 60,
	KINDS = 4,
	ROUNDS = 50,
	BYTES = 4 << 20,
	MANY = 400, /* many times the entries of its ring */
};

static struct pinion_runtime *runtime;
static struct pinion_file listener;
static struct pinion_file pair[2];
static struct requests_one ones[KINDS];
static uint8_t bytes[KINDS][BYTES];

static void open_all(int flags)
{
	struct sockaddr_un any = {.sun_family = AF_UNIX};
	int fds[2];

	listener =
		(struct pinion_file){.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0)};
	/* The kernel chooses a name that no file has. */
	expect_ready(
		"bind", bind(listener.fd, (struct sockaddr *)&any, sizeof(any.sun_family)) == 0);
	expect_ready("listen", listen(listener.fd, 8) == 0);
	expect_ready("pair", socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0, fds) == 0);
	pair[0] = (struct pinion_file){.fd = fds[0]};
	pair[1] = (struct pinion_file){.fd = fds[1]};
}

static void close_all(void)
{
	close(listener.fd);
	close(pair[0].fd);
	close(pair[1].fd);
}

/* An accept, a receive, a send of more than there is room for, a poll. */
static struct pinion_request *begin(uint32_t kind)
{
	static const uint16_t ops[KINDS] = {
		PINION_OP_ACCEPT, PINION_OP_RECV, PINION_OP_SEND, PINION_OP_POLL};
	struct pinion_request *request = requests_begin(&ones[kind], ops[kind]);

	request->file = ops[kind] == PINION_OP_ACCEPT ? &listener : &pair[0];
	if (ops[kind] == PINION_OP_RECV || ops[kind] == PINION_OP_SEND) {
		request->bytes = bytes[kind];
		request->length_bytes = BYTES;
		request->flags = MSG_WAITALL;
	} else if (ops[kind] == PINION_OP_POLL) {
		request->flags = POLLIN;
	}
	return request;
}

static void submit(struct pinion_request *request)
{
	expect_number("submit", 0, pinion_request_submit(runtime, request));
}

static void nop(void)
{
	struct requests_one one;

	requests_begin(&one, PINION_OP_NOP);
	expect_number("nop", 0, requests_do(runtime, &one));
}

static void expect_end(uint32_t kind, int error)
{
	const struct pinion_request *request = &ones[kind].request;

	expect_number("result", error, requests_await(&ones[kind]));
	if (request->op == PINION_OP_SEND) {
		expect_true("a part", request->done_bytes > 0 && request->done_bytes < BYTES);
	} else {
		expect_number("nothing", 0, (long long)request->done_bytes);
	}
}

static void check_cancels(void)
{
	for (uint32_t i = 0; i < KINDS; i++) {
		submit(begin(i));
		nop();
		expect_number("it waits", 0, pin_load_acquire_u32(&ones[i].entered));
		expect_number("cancel", 0, pinion_request_cancel(runtime, &ones[i].request));
		expect_end(i, -ECANCELED);
	}
}

static void check_cancel_of_file(void)
{
	struct requests_one all;

	submit(begin(0));
	submit(begin(1));
	submit(begin(3));
	requests_begin(&all, PINION_OP_CANCEL)->file = &pair[0];
	expect_number("of one socket", 2, requests_do(runtime, &all));
	expect_end(1, -ECANCELED);
	expect_end(3, -ECANCELED);
	expect_number("not the other's", 0, pin_load_acquire_u32(&ones[0].entered));
	expect_number("cancel", 0, pinion_request_cancel(runtime, &ones[0].request));
	expect_end(0, -ECANCELED);
}

static void check_deadlines(void)
{
	for (uint32_t i = 0; i < KINDS; i++) {
		if (i == 2) {
			continue; /* its part is on the way by now */
		}
		begin(i)->deadline_ns = pinion_clock_now_ns() + 1000000;
		submit(&ones[i].request);
		expect_end(i, -ETIME);
		expect_true("not early", pinion_clock_now_ns() >= ones[i].request.deadline_ns);
		begin(i)->deadline_ns = 1;
		submit(&ones[i].request);
		expect_end(i, -ETIME);
	}
}

static void check_early_ends(uint32_t io_level, int flags)
{
	open_all(flags);
	/* Of one worker: a request behind others comes after their begin. */
	runtime = runtimes_start(1, io_level);
	check_cancels();
	close_all();
	open_all(flags);
	check_cancel_of_file();
	check_deadlines();
	for (uint32_t i = 0; i < KINDS; i++) {
		submit(begin(i));
	}
	expect_number("stop", 0, pinion_runtime_stop(runtime));
	for (uint32_t i = 0; i < KINDS; i++) {
		expect_number("stopped", -ECANCELED, requests_await(&ones[i]));
	}
	pinion_runtime_destroy(runtime);
	close_all();
}

/* ---- drains ---- */

static void check_drain(uint32_t io_level, int flags)
{
	open_all(flags);
	runtime = runtimes_start(2, io_level);
	for (uint32_t i = 0; i < KINDS; i++) {
		submit(begin(i));
	}
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	for (uint32_t i = 0; i < KINDS; i++) {
		expect_end(i, -ECANCELED);
	}
	pinion_runtime_destroy(runtime);
	close_all();
}

static struct requests_one many[MANY];

/* More than there is room for: ends of the first make room for others. */
static void check_crowded_drain(uint32_t io_level)
{
	struct pinion_config config;

	open_all(0);
	runtimes_config(&config, 1, io_level);
	runtimes_tuning.ring_entries = 8;
	expect_ready("runtime", pinion_runtime_create(&config, &runtime) == 0);
	for (uint32_t i = 0; i < MANY; i++) {
		requests_begin(&many[i], PINION_OP_ACCEPT)->file = &listener;
		submit(&many[i].request);
	}
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	for (uint32_t i = 0; i < MANY; i++) {
		expect_number("drained", -ECANCELED, requests_await(&many[i]));
	}
	pinion_runtime_destroy(runtime);
	close_all();
}

/* ---- what makes a drain check its requests again ---- */

static struct pin_atomic_u32 runs;
static uint32_t begun_count;
static uint64_t moves;
static uint64_t moved;
static bool has_waiter;

static void run_in_worker(pinion_task_fn run)
{
	struct pinion_task task = {.run = run};

	pin_store_release_u32(&runs, 0);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	tasks_await(&runs, 1);
}

/* With deadlines, so that a drain leaves them alone. */
static int fill_ring(struct pinion_task *task)
{
	int rc = 0;

	(void)task;
	for (begun_count = 0; begun_count < MANY && rc == 0; begun_count += rc == 0) {
		requests_begin_transfer(
			&many[begun_count], PINION_OP_RECV, &pair[0], &bytes[0][begun_count], 0, 1)
			->deadline_ns = UINT64_MAX;
		rc = pinion_request_submit(runtime, &many[begun_count].request);
	}
	expect_number("full", -EAGAIN, rc);
	moves = pin_requests_moves(pin_worker_current());
	tasks_signal(&runs);
	return 0;
}

static int look_at_moves(struct pinion_task *task)
{
	(void)task;
	has_waiter = !pin_request_list_is_empty(&pin_worker_current()->waiting);
	moved = pin_requests_moves(pin_worker_current()) - moves;
	tasks_signal(&runs);
	return 0;
}

/* The end of one is reaped in a task, and the waiter goes on after that. */
static int make_room(struct pinion_task *task)
{
	struct pin_worker *worker = pin_worker_current();

	(void)task;
	expect_number("a waiter moves nothing", 0, (long long)(pin_requests_moves(worker) - moves));
	expect_number("by call", 1, write(pair[1].fd, "x", 1));
	while (pin_ring_room(&worker->ring) == 0) {
		(void)pinion_worker_should_yield(runtime);
	}
	moved = pin_requests_moves(worker) - moves;
	tasks_signal(&runs);
	return 0;
}

static void check_moves(void)
{
	struct pinion_config config;

	open_all(0);
	runtimes_config(&config, 1, PINION_IO_AUTO);
	runtimes_tuning.ring_entries = 8;
	expect_ready("runtime", pinion_runtime_create(&config, &runtime) == 0);
	run_in_worker(fill_ring);
	submit(begin(0));
	do {
		run_in_worker(look_at_moves);
	} while (!has_waiter);
	run_in_worker(make_room);
	expect_number("an end is none", 0, (long long)moved);
	do {
		run_in_worker(look_at_moves);
	} while (has_waiter);
	expect_true("an entry is one", moved > 0);
	close(pair[1].fd);
	pair[1].fd = -1;
	for (uint32_t i = 0; i < begun_count; i++) {
		expect_true("one byte, or the end", requests_await(&many[i]) >= 0);
	}
	moves += moved;
	nop();
	run_in_worker(look_at_moves);
	expect_number("others are none", 0, (long long)moved);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_end(0, -ECANCELED);
	pinion_runtime_destroy(runtime);
	close_all();
}

/* Its task sends an answer, and waits for the next question. */
static struct requests_one answer;
static struct requests_one question;
static int answer_rc;
static int question_rc;

static int answer_and_ask(struct pinion_task *task)
{
	(void)task;
	requests_begin_transfer(&answer, PINION_OP_SEND, &pair[0], bytes[0], 0, 100);
	answer_rc = pinion_request_submit(runtime, &answer.request);
	requests_begin_transfer(&question, PINION_OP_RECV, &pair[0], bytes[1], 0, 100);
	question_rc = pinion_request_submit(runtime, &question.request);
	return 0;
}

static int drained_wait(struct pinion_task *task)
{
	struct tasks_hold *hold = PIN_CONTAINER_OF(task, struct tasks_hold, task);

	tasks_signal(&hold->has_begun);
	while (pinion_runtime_is_accepting(runtime)) {
		sched_yield();
	}
	return answer_and_ask(task);
}

static void *drain(void *arg)
{
	expect_number("drain", 0, pinion_runtime_drain(arg));
	return NULL;
}

/* A request with a deadline has its time, and its bytes may come. */
static void check_late(uint32_t io_level, int flags)
{
	struct tasks_hold hold = {.task.run = drained_wait};
	struct pinion_request *request;
	pthread_t thread;

	open_all(flags);
	runtime = runtimes_start(1, io_level);
	request = begin(0);
	submit(request);
	request = begin(3);
	request->file = &pair[1];
	request->flags = POLLIN;
	request->deadline_ns = UINT64_MAX;
	submit(request);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &hold.task));
	tasks_await(&hold.has_begun, 1);
	expect_ready("thread", pthread_create(&thread, NULL, drain, runtime) == 0);
	/* The answer is what it waits for. */
	expect_number("poll", POLLIN, requests_await(&ones[3]));
	pthread_join(thread, NULL);
	expect_number("submit", 0, answer_rc);
	expect_number("submit", 0, question_rc);
	expect_number("the answer", 100, requests_await(&answer));
	expect_number("which has come", 100, recv(pair[1].fd, bytes[2], BYTES, MSG_DONTWAIT));
	expect_number("the question", -ECANCELED, requests_await(&question));
	expect_end(0, -ECANCELED);
	pinion_runtime_destroy(runtime);
	close_all();
}

/* ---- meanwhile ---- */

static int count_run(struct pinion_task *task)
{
	(void)task;
	return 0;
}

static void check_others(uint32_t io_level)
{
	struct pinion_runtime_stats before;
	struct pinion_runtime_stats after;
	struct pinion_task task = {.run = count_run};

	open_all(0);
	runtime = runtimes_start(1, io_level);
	submit(begin(0));
	submit(begin(1));
	nop();
	before = runtimes_counters(runtime);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		struct requests_one timeout;

		nop();
		requests_begin(&timeout, PINION_OP_TIMEOUT)->deadline_ns =
			pinion_clock_now_ns() + 100000;
		expect_number("timeout", -ETIME, requests_do(runtime, &timeout));
		expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
		nop();
	}
	after = runtimes_counters(runtime);
	expect_true("it sleeps where both are waited for",
		after.parks_ring - before.parks_ring >= ROUNDS / 2);
	expect_number("and nowhere else", 0, (long long)(after.parks_futex - before.parks_futex));
	expect_number("by call", 3, write(pair[1].fd, "abc", 3));
	close(pair[1].fd);
	expect_number("bytes", 3, requests_await(&ones[1]));
	expect_true("these", memcmp(bytes[1], "abc", 3) == 0);
	pair[1].fd = -1;
	runtimes_finish(runtime, 3 + 3 * ROUNDS);
	expect_end(0, -ECANCELED);
	close_all();
}

/* Without a ring the first wait makes the doorbell. */
static void check_no_descriptor(void)
{
	struct rlimit before;
	struct rlimit none;

	open_all(0);
	runtime = runtimes_start(1, PINION_IO_FALLBACK);
	getrlimit(RLIMIT_NOFILE, &before);
	none = before;
	none.rlim_cur = 0;
	expect_ready("limit", setrlimit(RLIMIT_NOFILE, &none) == 0);
	submit(begin(1));
	expect_end(1, -EMFILE);
	expect_ready("limit", setrlimit(RLIMIT_NOFILE, &before) == 0);
	submit(begin(1));
	nop();
	nop(); /* its poll has begun before this one */
	expect_number("then it waits", 0, pin_load_acquire_u32(&ones[1].entered));
	/* And ends when one call may no longer ask for its descriptor. */
	none.rlim_cur = 1;
	expect_ready("limit", setrlimit(RLIMIT_NOFILE, &none) == 0);
	nop();
	expect_end(1, -EMFILE);
	expect_ready("limit", setrlimit(RLIMIT_NOFILE, &before) == 0);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	pinion_runtime_destroy(runtime);
	close_all();
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	for (int flags = 0; flags <= SOCK_NONBLOCK; flags += SOCK_NONBLOCK) {
		check_early_ends(PINION_IO_AUTO, flags);
		check_early_ends(PINION_IO_FALLBACK, flags);
		check_drain(PINION_IO_AUTO, flags);
		check_drain(PINION_IO_FALLBACK, flags);
		check_late(PINION_IO_AUTO, flags);
		check_late(PINION_IO_FALLBACK, flags);
	}
	check_moves();
	check_crowded_drain(PINION_IO_AUTO);
	check_crowded_drain(PINION_IO_FALLBACK);
	check_others(PINION_IO_AUTO);
	check_others(PINION_IO_FALLBACK);
	check_no_descriptor();
	return expect_status();
}
