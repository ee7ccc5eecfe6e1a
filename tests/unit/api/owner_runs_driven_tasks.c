/* SPDX-License-Identifier: MIT */
/*
 * Goal: a driven runtime starts no thread and binds none; its tasks run in
 * pinion_runtime_poll() on its creator's thread alone, at most as many as were
 * asked for, each once, and the call returns how many; its descriptor is
 * readable while there is something to run, whatever it comes from: spawns of
 * this thread or another, completions, timers, cancels, a task's own spawns;
 * and is not when nothing is left. A wait ends by the first of these, by its
 * timeout, or by a signal. Hooks run there, too; a task that panics ends alone.
 * With and without a ring, at the levels that differ in how it completes. G11.
 * Method: poll(2) on the descriptor, without waiting, before and after each
 * call; then a loop that sleeps on it, so that a lost wake would never end.
 */
#include "tests/support/driven.h"
#include "tests/support/requests.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>

enum {
	LIMIT_SECONDS = 60,
	TASKS = 100,
	BYTES = 16,
};

#define FAR_NS (UINT64_C(3600) * 1000 * 1000 * 1000)

static struct pinion_runtime *runtime;
static pthread_t owner;
static int run_counts[TASKS];
static int ran_count;
static int cancel_count;

struct numbered {
	struct pinion_task task;
	int number;
};

static struct numbered tasks[TASKS];

static int run_numbered(struct pinion_task *task)
{
	struct numbered *numbered = PIN_CONTAINER_OF(task, struct numbered, task);

	expect_true("on its owner", pthread_equal(owner, pthread_self()));
	expect_number("as its worker", 0, pinion_worker_index(runtime));
	run_counts[numbered->number]++;
	ran_count++;
	return 0;
}

static void cancel_numbered(struct pinion_task *task)
{
	(void)task;
	cancel_count++;
}

static struct pinion_task *number_task(int number)
{
	tasks[number] = (struct numbered){
		.task = {.run = run_numbered, .cancel = cancel_numbered}, .number = number};
	return &tasks[number].task;
}

static void spawn_numbered(int number)
{
	expect_number("spawn", 0, pinion_task_spawn(runtime, number_task(number)));
}

static int poll_now(uint32_t max_tasks)
{
	return pinion_runtime_poll(runtime, max_tasks, 0);
}

/* ---- the descriptor and the limit ---- */

static void check_beginning(size_t threads_before)
{
	int fd = pinion_runtime_fd(runtime);

	expect_true("a descriptor", fd >= 0);
	expect_number("closed on exec", FD_CLOEXEC, fcntl(fd, F_GETFD));
	/* Helpers of an earlier ring may have left meanwhile. */
	expect_true("no thread", runtimes_count_threads() <= threads_before);
	expect_number("one worker", 1, pinion_runtime_worker_count(runtime));
	expect_number("not bound", 0, runtimes_info(runtime).workers_bound);
	expect_number("no worker now", -ENOENT, pinion_worker_index(runtime));
	expect_true("readable at first", driven_is_readable(runtime));
	driven_expect_idle("at first", runtime);
	driven_expect_idle("and again", runtime);
}

static void check_limit(void)
{
	errno = ENOTTY;
	ran_count = 0;
	memset(run_counts, 0, sizeof(run_counts));
	for (int i = 0; i < TASKS; i++) {
		spawn_numbered(i);
		expect_true("readable", driven_is_readable(runtime));
	}
	expect_number("none has run", 0, ran_count);
	expect_number("one", 1, poll_now(1));
	expect_number("one has run", 1, ran_count);
	expect_true("readable for the rest", driven_is_readable(runtime));
	expect_number("two", 2, poll_now(2));
	expect_number("some", 60, poll_now(60));
	expect_true("readable for the others", driven_is_readable(runtime));
	expect_number("the others", TASKS - 63, poll_now(DRIVEN_ALL));
	driven_expect_idle("after all", runtime);
	for (int i = 0; i < TASKS; i++) {
		expect_number("each once", 1, run_counts[i]);
	}
	expect_number("errno is the program's", ENOTTY, errno);
}

/* As many as the limit says, of a task that is never over. */
static int respawn(struct pinion_task *task)
{
	ran_count++;
	return ran_count < 1500 ? pinion_task_respawn(runtime, task) : 0;
}

static void check_endless_task(void)
{
	struct pinion_task task = {.run = respawn};

	ran_count = 0;
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	expect_number("so many", 1000, poll_now(1000));
	expect_number("have run", 1000, ran_count);
	expect_number("and the rest", 500, poll_now(1000));
	driven_expect_idle("it is over", runtime);
}

/* ---- from elsewhere ---- */

static void *spawn_elsewhere(void *arg)
{
	(void)arg;
	/* It sleeps, or is between calls, which is the same to others. */
	while (runtimes_counters(runtime).parked_ring != 1) {
		sched_yield();
	}
	spawn_numbered(0);
	return NULL;
}

static void check_other_threads(bool waits_in_call)
{
	pthread_t thread;

	ran_count = 0;
	expect_ready("thread", pthread_create(&thread, NULL, spawn_elsewhere, NULL) == 0);
	if (waits_in_call) {
		expect_number("woken", 1, pinion_runtime_poll(runtime, DRIVEN_ALL, -1));
	} else {
		driven_run(runtime, 1);
	}
	pthread_join(thread, NULL);
	expect_number("it has run", 1, ran_count);
	driven_expect_idle("after the other thread", runtime);
}

/* ---- time ---- */

static void check_timers(void)
{
	struct pinion_timer far = {.task = {.run = respawn, .cancel = cancel_numbered}};
	uint64_t now_ns = pinion_clock_now_ns();

	cancel_count = 0;
	expect_number("far", 0, pinion_timer_start(runtime, &far, now_ns + FAR_NS));
	expect_number("it is armed", 0, poll_now(DRIVEN_ALL));
	driven_expect_idle("it is far", runtime);
	expect_number("cancel", 0, pinion_timer_cancel(runtime, &far));
	driven_run(runtime, 1);
	expect_number("cancelled", 1, cancel_count);
	driven_expect_idle("no timer is left", runtime);
}

static void check_due_timers(bool waits_in_call)
{
	struct pinion_timer timer = {.task = {.run = respawn}};

	ran_count = 1500; /* so that it does not */
	for (uint64_t delay_ns = 1; delay_ns <= 4000000; delay_ns *= 200) {
		uint64_t deadline_ns = pinion_clock_now_ns() + delay_ns;

		expect_number("start", 0, pinion_timer_start(runtime, &timer, deadline_ns));
		if (waits_in_call) {
			expect_number("due", 1, pinion_runtime_poll(runtime, DRIVEN_ALL, -1));
		} else {
			driven_run(runtime, 1);
		}
		expect_true("not early", pinion_clock_now_ns() >= deadline_ns);
	}
	driven_expect_idle("after timers", runtime);
}

static void check_timeouts(void)
{
	expect_number("nothing in a while", 0, pinion_runtime_poll(runtime, 1, 1000));
	expect_number("nor in a while", 0, pinion_runtime_poll(runtime, DRIVEN_ALL, 3000000));
	spawn_numbered(0);
	expect_number("at once", 1, pinion_runtime_poll(runtime, 1, INT64_MAX));
}

static struct pin_atomic_u32 has_returned;

static void note_signal(int number)
{
	(void)number;
}

/* Until it has returned: the first may come before it sleeps. */
static void *interrupt(void *arg)
{
	(void)arg;
	while (pin_load_acquire_u32(&has_returned) == 0) {
		pthread_kill(owner, SIGUSR1);
		sched_yield();
	}
	return NULL;
}

static void check_signals(void)
{
	struct sigaction action = {.sa_handler = note_signal, .sa_flags = SA_RESTART};
	pthread_t thread;

	expect_ready("sigaction", sigaction(SIGUSR1, &action, NULL) == 0);
	driven_expect_idle("before a signal", runtime);
	pin_store_release_u32(&has_returned, 0);
	expect_ready("thread", pthread_create(&thread, NULL, interrupt, NULL) == 0);
	expect_number("a signal", 0, pinion_runtime_poll(runtime, DRIVEN_ALL, -1));
	pin_store_release_u32(&has_returned, 1);
	pthread_join(thread, NULL);
	driven_expect_idle("after signals", runtime);
}

/* ---- requests ---- */

static uint8_t received[3][BYTES];

static void begin_receive(struct requests_one *one, struct pinion_file *file, uint8_t *bytes)
{
	requests_begin_transfer(one, PINION_OP_RECV, file, bytes, 0, BYTES);
	expect_number("submit", 0, pinion_request_submit(runtime, &one->request));
}

/* Two of one socket, which wait together, and one of another. */
static void check_sockets(void)
{
	struct requests_one one[3];
	struct pinion_file files[2];
	int fds[4];

	expect_ready("pair", socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	expect_ready("pair", socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds + 2) == 0);
	files[0] = (struct pinion_file){.fd = fds[0]};
	files[1] = (struct pinion_file){.fd = fds[2]};
	for (int i = 0; i < 3; i++) {
		begin_receive(&one[i], &files[i / 2], received[i]);
		expect_true("to be begun", driven_is_readable(runtime));
	}
	expect_number("begun", 0, poll_now(DRIVEN_ALL));
	driven_expect_idle("all wait", runtime);
	expect_number("a byte", 1, write(fds[1], "a", 1));
	driven_run(runtime, 1);
	driven_expect_idle("two wait", runtime);
	expect_number("the other socket", 1, write(fds[3], "c", 1));
	driven_run(runtime, 1);
	expect_number("its result", 1, one[2].request.result);
	expect_number("its byte", 'c', received[2][0]);
	driven_expect_idle("one waits", runtime);
	expect_number("a byte", 1, write(fds[1], "b", 1));
	driven_run(runtime, 1);
	expect_number("both", 2, one[0].request.result + one[1].request.result);
	expect_number("their bytes", 'a' + 'b', received[0][0] + received[1][0]);
	driven_expect_idle("none waits", runtime);
	expect_number("for nobody", 1, write(fds[1], "d", 1));
	driven_expect_idle("nobody waits", runtime);
	/* What is there already ends at once. */
	begin_receive(&one[0], &files[0], received[0]);
	driven_run(runtime, 1);
	expect_number("its byte", 'd', received[0][0]);
	begin_receive(&one[0], &files[0], received[0]);
	expect_number("begun", 0, poll_now(DRIVEN_ALL));
	expect_number("cancel", 0, pinion_request_cancel(runtime, &one[0].request));
	driven_run(runtime, 1);
	expect_number("cancelled", -ECANCELED, one[0].request.result);
	expect_number("for nobody", 1, write(fds[1], "e", 1));
	driven_expect_idle("nobody waits", runtime);
	for (int i = 0; i < 4; i++) {
		close(fds[i]);
	}
}

static void begin_poll(struct requests_one *one, struct pinion_file *file, uint32_t events)
{
	struct pinion_request *request = requests_begin(one, PINION_OP_POLL);

	request->file = file;
	request->flags = events;
	expect_number("submit", 0, pinion_request_submit(runtime, request));
}

/* Of one descriptor, for events of their own. */
static void check_polls(uint32_t first_events, uint32_t last_events)
{
	bool is_input_first = first_events == POLLIN;
	struct pinion_request *input;
	struct pinion_request *never;
	struct requests_one one[2];
	struct pinion_file file;
	int fds[2];

	expect_ready("pair", socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	file = (struct pinion_file){.fd = fds[0]};
	input = &one[is_input_first ? 0 : 1].request;
	never = &one[is_input_first ? 1 : 0].request;
	begin_poll(&one[0], &file, first_events);
	begin_poll(&one[1], &file, last_events);
	expect_number("begun", 0, poll_now(DRIVEN_ALL));
	driven_expect_idle("both wait", runtime);
	expect_number("a byte", 1, write(fds[1], "a", 1));
	driven_run(runtime, 1);
	expect_number("input", POLLIN, input->result);
	driven_expect_idle("the other waits", runtime);
	expect_number("cancel", 0, pinion_request_cancel(runtime, never));
	driven_run(runtime, 1);
	expect_number("never", -ECANCELED, never->result);
	driven_expect_idle("none waits", runtime);
	close(fds[0]);
	close(fds[1]);
}

static void *write_elsewhere(void *arg)
{
	const int *fd = arg;

	while (runtimes_counters(runtime).parked_ring != 1) {
		sched_yield();
	}
	expect_number("a byte", 1, write(*fd, "a", 1));
	return NULL;
}

/* Within a call, which the completion interrupts at the lower levels. */
static void check_wait_for_socket(void)
{
	struct requests_one one;
	struct pinion_file file;
	pthread_t thread;
	int fds[2];

	expect_ready("pair", socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	file = (struct pinion_file){.fd = fds[0]};
	begin_receive(&one, &file, received[0]);
	expect_number("begun", 0, poll_now(DRIVEN_ALL));
	expect_ready("thread", pthread_create(&thread, NULL, write_elsewhere, &fds[1]) == 0);
	expect_number("received", 1, pinion_runtime_poll(runtime, DRIVEN_ALL, -1));
	pthread_join(thread, NULL);
	expect_number("a byte", 1, one.request.result);
	close(fds[0]);
	close(fds[1]);
}

/* A file that is not cached, or is: its reads end in either case. */
static void check_files(void)
{
	struct pinion_file file = {0};
	struct requests_one one;
	uint8_t *bytes = aligned_alloc(4096, 4096);

	expect_ready("memory", bytes != NULL);
	requests_begin(&one, PINION_OP_OPEN)->path = "/proc/self/exe";
	one.request.file = &file;
	expect_number("open", 0, pinion_request_submit(runtime, &one.request));
	driven_run(runtime, 1);
	expect_number("opened", 0, one.request.result);
	requests_begin_transfer(&one, PINION_OP_READ, &file, bytes, 0, 4096);
	expect_number("read", 0, pinion_request_submit(runtime, &one.request));
	expect_number("waited for", 1, pinion_runtime_poll(runtime, DRIVEN_ALL, -1));
	expect_number("all of it", 4096, one.request.result);
	expect_true("an executable", memcmp(bytes, "\177ELF", 4) == 0);
	requests_begin(&one, PINION_OP_CLOSE)->file = &file;
	expect_number("close", 0, pinion_request_submit(runtime, &one.request));
	driven_run(runtime, 1);
	free(bytes);
}

/* ---- faults ---- */

static int panic(struct pinion_task *task)
{
	(void)task;
	pinion_task_panic(-EIO, "as planned");
}

static void check_faults(void)
{
	struct pinion_task first = {.run = panic};
	struct pinion_task last = {.run = panic};
	int state_before;
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state_before);
	ran_count = 0;
	expect_number("spawn", 0, pinion_task_spawn(runtime, &first));
	spawn_numbered(0);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &last));
	expect_number("a panic", 1, poll_now(1));
	expect_true("readable", driven_is_readable(runtime));
	expect_number("the others", 2, poll_now(DRIVEN_ALL));
	expect_number("one of them", 1, ran_count);
	expect_number("failed", 2, (long long)runtimes_counters(runtime).tasks_failed);
	driven_expect_idle("after panics", runtime);
	pthread_setcancelstate(state_before, &state);
	expect_number("it can be cancelled", PTHREAD_CANCEL_ENABLE, state);
}

/* ---- ends ---- */

static int spawn_another(struct pinion_task *task)
{
	(void)task;
	ran_count++;
	return pinion_task_spawn(runtime, number_task(ran_count));
}

static void check_drain(void)
{
	struct pinion_task task = {.run = spawn_another};
	struct pinion_timer timer = {.task = {.run = spawn_another}};

	ran_count = 0;
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	expect_number(
		"start", 0, pinion_timer_start(runtime, &timer, pinion_clock_now_ns() + 1000000));
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_number("all have run", 4, ran_count);
	expect_true("readable for good", driven_is_readable(runtime));
	expect_number("ended", -ESHUTDOWN, poll_now(1));
	expect_true("readable for good", driven_is_readable(runtime));
	expect_number("again", 0, pinion_runtime_drain(runtime));
	expect_number("and by a stop", 0, pinion_runtime_stop_until(runtime, 0));
	expect_number("too late", -ESHUTDOWN, pinion_task_spawn(runtime, &task));
	expect_number("destroy", 0, pinion_runtime_destroy(runtime));
}

static void check_stop(uint32_t io_level)
{
	struct requests_one one;
	struct pinion_file file;
	int fds[2];

	runtime = driven_start(io_level);
	expect_ready("pair", socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	file = (struct pinion_file){.fd = fds[0]};
	begin_receive(&one, &file, received[0]);
	expect_number("begun", 0, poll_now(1));
	cancel_count = 0;
	ran_count = 0;
	spawn_numbered(0);
	spawn_numbered(1);
	expect_number("stop", 0, pinion_runtime_stop(runtime));
	expect_number("cancelled", 2, cancel_count);
	expect_number("none has run", 0, ran_count);
	expect_number("nor received", -ECANCELED, one.request.result);
	expect_number("destroy", 0, pinion_runtime_destroy(runtime));
	close(fds[0]);
	close(fds[1]);
}

/* The first failure ends all, within a call. */
static void check_failure(uint32_t io_level)
{
	struct pinion_task task = {.run = panic};
	struct pinion_config config;

	driven_config(&config, io_level);
	runtimes_tuning.fault_policy = PINION_FAULT_FAIL_FAST;
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	expect_number("a panic", 1, poll_now(DRIVEN_ALL));
	expect_number("ended", -ESHUTDOWN, pinion_runtime_poll(runtime, DRIVEN_ALL, -1));
	expect_true("readable for good", driven_is_readable(runtime));
	expect_number("its failure", -EIO, pinion_runtime_join(runtime));
	expect_number("destroy", 0, pinion_runtime_destroy(runtime));
}

/* ---- hooks ---- */

static int starts, parks, stops;

static int note_start(void *arg, uint32_t worker_index, void **out_context)
{
	(void)worker_index;
	expect_true("on its owner", pthread_equal(owner, pthread_self()));
	*out_context = arg;
	starts++;
	return 0;
}

static void note_park(void *arg, uint32_t worker_index, void *context)
{
	(void)worker_index;
	expect_true("its context", arg == context);
	parks++;
}

static void note_stop(void *arg, uint32_t worker_index, void *context)
{
	(void)worker_index;
	expect_true("its context", arg == context);
	expect_true("on its owner", pthread_equal(owner, pthread_self()));
	stops++;
}

static void check_hooks(uint32_t io_level)
{
	struct pinion_config config;

	driven_config(&config, io_level);
	config.after_start = note_start;
	config.before_park = note_park;
	config.before_stop = note_stop;
	config.hook_arg = &config;
	starts = parks = stops = 0;
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
	expect_number("started", 1, starts);
	expect_number("not asleep", 0, parks);
	driven_expect_idle("with hooks", runtime);
	expect_number("asleep", 1, parks);
	expect_number("not stopped", 0, stops);
	expect_number("destroy", 0, pinion_runtime_destroy(runtime));
	expect_number("stopped", 1, stops);
}

/* Stalls are watched by default, but of no thread of the embedder's. */
static void check_defaults(uint32_t io_level)
{
	size_t threads = runtimes_count_threads();
	struct pinion_config config;

	driven_config(&config, io_level);
	config.tuning = NULL;
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
	expect_true("no thread watches", runtimes_count_threads() <= threads);
	expect_number("destroy", 0, pinion_runtime_destroy(runtime));
}

static void check(uint32_t io_level)
{
	size_t threads = runtimes_count_threads();
	size_t descriptors = runtimes_count_entries("/proc/self/fd");
	int slack_ns = prctl(PR_GET_TIMERSLACK);
	struct pinion_config config;
	int rc;

	driven_config(&config, io_level);
	rc = pinion_runtime_create(&config, &runtime);
	if (rc < 0 && io_level > PINION_IO_RING) {
		printf("level %u is not there: %s", io_level, runtimes_log);
		return;
	}
	expect_number("create", 0, rc);
	expect_number("its sleeps are as they were", slack_ns, prctl(PR_GET_TIMERSLACK));
	check_beginning(threads);
	check_limit();
	check_endless_task();
	check_other_threads(false);
	check_other_threads(true);
	check_timers();
	check_due_timers(false);
	check_due_timers(true);
	check_timeouts();
	check_signals();
	check_sockets();
	check_polls(POLLIN, POLLPRI);
	check_polls(POLLPRI, POLLIN);
	check_wait_for_socket();
	check_files();
	check_faults();
	check_drain();
	check_stop(io_level);
	check_failure(io_level);
	check_hooks(io_level);
	check_defaults(io_level);
	expect_number("descriptors", (long long)descriptors,
		(long long)runtimes_count_entries("/proc/self/fd"));
}

static void *do_nothing(void *arg)
{
	return arg;
}

int main(void)
{
	pthread_t first;

	runtimes_watchdog(LIMIT_SECONDS);
	owner = pthread_self();
	/* ThreadSanitizer starts one of its own with the first. */
	expect_ready("thread", pthread_create(&first, NULL, do_nothing, NULL) == 0);
	pthread_join(first, NULL);
	check(PINION_IO_AUTO);
	check(PINION_IO_FALLBACK);
	/* Where a completion interrupts the owner's system calls. */
	check(PINION_IO_RING_BASIC);
	check(PINION_IO_RING_COOP);
	return expect_status();
}
