/* SPDX-License-Identifier: MIT */
/*
 * Goal: each call of a driven runtime that cannot be is refused with its error,
 * and changes nothing: of a runtime that is none, of a limit out of range, on
 * another thread, in a task or a hook of it or of any other runtime, in a
 * forked child, after its end; its end by another thread; and its creation with
 * more than one worker, as a thread pool, on a worker, and without descriptors.
 * G11.
 * Method: each of them, then that the runtime works as before.
 */
#include "tests/support/child.h"
#include "tests/support/driven.h"
#include "tests/support/tasks.h"

#include <errno.h>
#include <pinion/thread_pool.h>

enum {
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *runtime;
static struct pinion_runtime *other; /* driven as well, by the same thread */
static struct pinion_runtime *ordinary;
static int run_count;

static int count(struct pinion_task *task)
{
	(void)task;
	run_count++;
	return 0;
}

static void expect_working(struct pinion_runtime *driven)
{
	struct pinion_task task = {.run = count};

	run_count = 0;
	expect_number("spawn", 0, pinion_task_spawn(driven, &task));
	expect_number("it works", 1, pinion_runtime_poll(driven, 1, 0));
	expect_number("it has run", 1, run_count);
}

static void check_arguments(void)
{
	expect_number("no descriptor", -EINVAL, pinion_runtime_fd(ordinary));
	expect_number("no call", -EINVAL, pinion_runtime_poll(ordinary, 1, 0));
	expect_number("no task", -EINVAL, pinion_runtime_poll(runtime, 0, 0));
	expect_number("too many", -EINVAL, pinion_runtime_poll(runtime, UINT32_C(1) << 31, 0));
	expect_number("the most", 0, pinion_runtime_poll(runtime, INT32_MAX, 0));
	expect_working(runtime);
}

/* ---- threads ---- */

static void *call_all(void *arg)
{
	(void)arg;
	expect_true("its descriptor", pinion_runtime_fd(runtime) >= 0);
	expect_number("poll", -EPERM, pinion_runtime_poll(runtime, 1, 0));
	expect_number("drain", -EPERM, pinion_runtime_drain(runtime));
	expect_number("join", -EPERM, pinion_runtime_join(runtime));
	expect_number("stop", -EPERM, pinion_runtime_stop(runtime));
	expect_number("stop_until", -EPERM, pinion_runtime_stop_until(runtime, 0));
	expect_number("destroy", -EPERM, pinion_runtime_destroy(runtime));
	return NULL;
}

static void check_threads(void)
{
	pthread_t thread;

	runtimes_log[0] = '\0';
	expect_ready("thread", pthread_create(&thread, NULL, call_all, NULL) == 0);
	pthread_join(thread, NULL);
	expect_text("a line",
		"pinion_runtime_destroy() was called on another thread than the one that created "
		"the runtime with is_driven, and has done nothing\n",
		runtimes_log);
	expect_true("it accepts", pinion_runtime_is_accepting(runtime));
	expect_working(runtime);
}

/* ---- workers ---- */

static int create_driven(void)
{
	struct pinion_runtime *created = NULL;
	struct pinion_config config;
	int rc;

	driven_config(&config, PINION_IO_FALLBACK);
	rc = pinion_runtime_create(&config, &created);
	if (rc == 0) {
		pinion_runtime_destroy(created);
	}
	return rc;
}

static struct pin_atomic_u32 has_tried;

static int try_all(struct pinion_task *task)
{
	(void)task;
	expect_number("poll of it", -EDEADLK, pinion_runtime_poll(runtime, 1, 0));
	expect_number("poll of another", -EDEADLK, pinion_runtime_poll(other, 1, -1));
	expect_number("drain", -EDEADLK, pinion_runtime_drain(runtime));
	expect_number("destroy", -EDEADLK, pinion_runtime_destroy(other));
	expect_number("create", -EDEADLK, create_driven());
	tasks_signal(&has_tried);
	return 0;
}

static void try_in_hook(void *arg, uint32_t worker_index, void *context)
{
	(void)arg;
	(void)worker_index;
	(void)context;
	(void)try_all(NULL);
}

static void check_workers(void)
{
	struct pinion_task task = {.run = try_all};
	struct pinion_runtime *hooked = NULL;
	struct pinion_config config;

	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	expect_number("in its task", 1, pinion_runtime_poll(runtime, 1, 0));
	expect_number("spawn", 0, pinion_task_spawn(ordinary, &task));
	tasks_await(&has_tried, 2);
	driven_config(&config, PINION_IO_FALLBACK);
	config.before_park = try_in_hook;
	expect_number("create", 0, pinion_runtime_create(&config, &hooked));
	expect_number("in a hook", 0, pinion_runtime_poll(hooked, 1, 0));
	expect_number("tried", 3, pin_load_acquire_u32(&has_tried));
	expect_number("destroy", 0, pinion_runtime_destroy(hooked));
	expect_working(runtime);
	expect_working(other);
}

/* ---- a forked child ---- */

static int call_in_child(void *arg)
{
	(void)arg;
	expect_number("descriptor", -ECHILD, pinion_runtime_fd(runtime));
	expect_number("poll", -ECHILD, pinion_runtime_poll(runtime, 1, 0));
	expect_number("drain", -ECHILD, pinion_runtime_drain(runtime));
	return expect_status();
}

static void check_child(void)
{
	expect_number("in a child", 0, child_run(call_in_child, NULL, NULL, 0));
	expect_working(runtime);
}

/* ---- creation ---- */

static void expect_refusal(const struct pinion_config *config, int error, const char *line)
{
	struct pinion_runtime *created = NULL;

	runtimes_log[0] = '\0';
	expect_number(line, error, pinion_runtime_create(config, &created));
	if (strncmp(runtimes_log, line, strlen(line)) != 0) {
		expect_text("a line", line, runtimes_log);
	}
	expect_true("nothing", created == NULL);
}

static void check_workers_of_creation(void)
{
	struct pinion_thread_pool_sizes sizes = {0, 0, 1};
	struct pinion_runtime *created = NULL;
	struct pinion_config config;

	driven_config(&config, PINION_IO_FALLBACK);
	config.worker_count = 2;
	expect_refusal(&config, -EINVAL,
		"is_driven: a runtime whose worker is its creator's thread has 1 worker, not 2: ");
	config.worker_count = 0;
	config.lanes = "h:1,hnl";
	expect_refusal(&config, -EINVAL,
		"is_driven: a runtime whose worker is its creator's thread has 1 worker, not 2: ");
	config.worker_count = 1;
	config.lanes = "hnl:1";
	expect_number("one worker", 0, pinion_runtime_create(&config, &created));
	expect_working(created);
	expect_number("destroy", 0, pinion_runtime_destroy(created));
	config.is_driven = 2;
	expect_refusal(&config, -EINVAL, "is_driven: 2 is out of range, it must be 0 to 1\n");
	pinion_thread_pool_config_init(&config);
	config.log = runtimes_note;
	config.is_driven = 1;
	created = NULL;
	runtimes_log[0] = '\0';
	expect_number(
		"as a thread pool", -EINVAL, pinion_thread_pool_create(&config, &sizes, &created));
	expect_text("a line", "is_driven: a thread pool has threads of its own: leave it 0\n",
		runtimes_log);
}

/* With room for so many descriptors more; it takes three without a ring. */
static void check_descriptors(void)
{
	struct rlimit before;
	int next_fd = dup(0);

	expect_ready("descriptor", next_fd >= 0 && getrlimit(RLIMIT_NOFILE, &before) == 0);
	close(next_fd);
	for (int room = 0; room <= 2; room++) {
		struct rlimit few = {(rlim_t)(next_fd + room), before.rlim_max};
		struct pinion_runtime *created = NULL;
		struct pinion_config config;

		driven_config(&config, PINION_IO_FALLBACK);
		runtimes_tuning.metrics_page = 0;
		expect_ready("limit", setrlimit(RLIMIT_NOFILE, &few) == 0);
		expect_number(
			"without descriptors", -EMFILE, pinion_runtime_create(&config, &created));
		expect_ready("limit", setrlimit(RLIMIT_NOFILE, &before) == 0);
		if (room < 2) {
			expect_text("a line",
				"no descriptor for an embedder's loop: Too many open files: raise "
				"`ulimit -n`\n",
				runtimes_log);
		}
		expect_number("none is left open", next_fd, dup(0));
		close(next_fd);
	}
}

/* What after_start of a driven worker refuses ends its creation. */
static int refuse_start(void *arg, uint32_t worker_index, void **out_context)
{
	(void)arg;
	(void)worker_index;
	(void)out_context;
	return -ENOTTY;
}

static void check_hook(void)
{
	struct pinion_runtime *created = NULL;
	struct pinion_config config;

	driven_config(&config, PINION_IO_AUTO);
	config.after_start = refuse_start;
	expect_number("refused", -ENOTTY, pinion_runtime_create(&config, &created));
	expect_number("no worker", -ENOENT, pinion_worker_index(runtime));
	expect_working(runtime);
}

/* ---- the end ---- */

static void check_end(void)
{
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_number("ended", -ESHUTDOWN, pinion_runtime_poll(runtime, 1, -1));
	expect_true("its descriptor", pinion_runtime_fd(runtime) >= 0);
	expect_number("destroy", 0, pinion_runtime_destroy(runtime));
	expect_number("destroy", 0, pinion_runtime_destroy(other));
	expect_number("destroy", 0, pinion_runtime_destroy(ordinary));
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	runtime = driven_start(PINION_IO_AUTO);
	other = driven_start(PINION_IO_FALLBACK);
	check_child();
	check_workers_of_creation();
	check_descriptors();
	ordinary = runtimes_start(1, PINION_IO_AUTO);
	check_arguments();
	check_threads();
	check_workers();
	check_hook();
	check_end();
	return expect_status();
}
