/* SPDX-License-Identifier: MIT */
/*
 * The limits in force, and the thread that follows targets (throttle.h).
 *
 * The thread exists only where there is a target, or a limits file, which may
 * bring one. The thread of signals.c loads the file, changes the limits under
 * the lock and wakes the thread; both set rates under the lock.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tools/throttle.h"

#include "tools/pace.h"
#include "tools/report.h"
#include "tools/signals.h"

#include <dirent.h>
#include <errno.h>
#include <pinion/limit.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	IO_PRIORITY_OF_PROCESS = 1,
	IO_LEVEL_MASK = (1 << 13) - 1, /* the level within its class */
	/* Listings of the threads until all were seen. */
	LISTINGS_MAX = 8,
	PATH_BYTES = 4096,
};

/* A scan below it would never end; a higher start does harm at first. */
#define RATE_MIN UINT64_C(4000000)
#define RATE_START UINT64_C(16000000)
/* More than a device does. */
#define RATE_MAX UINT64_C(64000000000)

/* Sums since the runtime was created, and of the kernel. */
struct sums {
	uint64_t now_ns;
	uint64_t bytes;
	uint64_t timed;
	uint64_t slow;
	uint64_t throttled;
	uint64_t stalled_ns[2]; /* of the machine, of the control group */
};

/* What threads are to have; LIMITS_AS_STARTED: left alone. */
struct priorities {
	int32_t nice;
	int32_t io_priority;
};

static const struct scanning_options *options;
static int started_nice;
static int32_t started_io;
static struct priorities has_set = {LIMITS_AS_STARTED, LIMITS_AS_STARTED};
static char group_path[PATH_BYTES]; /* io.pressure of the own control group; "": none */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Under the lock. */
static struct limits limits;
static struct pinion_runtime *runtime; /* NULL: none has begun, or it has ended */
static struct pinion_limits in_force;  /* of the runtime */
static struct pace pace;
static struct pace_latency latency;
static struct pace_pressure pressures[2];
static struct sums before;
static bool is_paced; /* there is a target, so that the pace sets the rate */
static bool is_ending;
static uint64_t slow_sum;
static uint64_t timed_sum;

static pthread_cond_t changed; /* of throttle_prepare() on */
static pthread_t thread;
static bool has_thread;

/* ---- priorities ---- */

static void report_nice(int32_t nice, int error)
{
	int32_t present = has_set.nice == LIMITS_AS_STARTED ? started_nice : has_set.nice;

	if ((error == EACCES || error == EPERM) && nice < present) {
		report_line("--nice: cannot set %d: %s; the niceness is %d, and a lower one needs "
			    "CAP_SYS_NICE",
			nice, report_reason(error), present);
	} else {
		report_line("--nice: cannot set %d: %s", nice, report_reason(error));
	}
}

static void report_io_priority(int32_t io_priority, int error)
{
	if (io_priority == LIMITS_IDLE) {
		report_line("--ioprio: cannot set idle: %s", report_reason(error));
	} else {
		report_line("--ioprio: cannot set %d: %s", io_priority & IO_LEVEL_MASK,
			report_reason(error));
	}
}

/* False: it has been reported. A thread that has ended meanwhile needs none. */
static bool set_thread(pid_t thread_id, const struct priorities *wanted)
{
	if (wanted->nice != LIMITS_AS_STARTED &&
		setpriority(PRIO_PROCESS, (id_t)thread_id, wanted->nice) != 0 && errno != ESRCH) {
		report_nice(wanted->nice, errno);
		return false;
	}
	if (wanted->io_priority != LIMITS_AS_STARTED &&
		syscall(SYS_ioprio_set, IO_PRIORITY_OF_PROCESS, thread_id, wanted->io_priority) !=
			0 &&
		errno != ESRCH) {
		report_io_priority(wanted->io_priority, errno);
		return false;
	}
	return true;
}

/* Returns the number of threads; negative: it has been reported. */
static int set_listed(const struct priorities *wanted)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *entry;
	int count = 0;
	bool is_set = true;

	if (tasks == NULL) {
		return set_thread(0, wanted) ? 1 : -1;
	}
	while (is_set && (entry = readdir(tasks)) != NULL) {
		long thread_id = strtol(entry->d_name, NULL, 10);

		if (thread_id > 0) {
			is_set = set_thread((pid_t)thread_id, wanted);
			count++;
		}
	}
	closedir(tasks);
	return is_set ? count : -1;
}

/*
 * Without an I/O priority of its own a thread's follows its niceness, and
 * ioprio_get(2) returns that.
 */
static int32_t started_io_priority(void)
{
	long got = syscall(SYS_ioprio_get, IO_PRIORITY_OF_PROCESS, 0);
	long of_nice = limits_best_effort((started_nice + 20) / 5);

	return got < 0 || got == of_nice ? 0 : (int32_t)got;
}

/*
 * Threads inherit the priorities of the thread that starts them. So a listing
 * as long as the last has missed none but those of threads that
 * have been set.
 */
static bool set_priorities(const struct limits *next)
{
	struct priorities wanted = {.nice = next->nice, .io_priority = next->io_priority};
	int count = 0;

	if (wanted.nice == LIMITS_AS_STARTED && has_set.nice != LIMITS_AS_STARTED) {
		wanted.nice = started_nice;
	}
	if (wanted.io_priority == LIMITS_AS_STARTED && has_set.io_priority != LIMITS_AS_STARTED) {
		wanted.io_priority = started_io;
	}
	for (int i = 0; i < LISTINGS_MAX; i++) {
		int listed = set_listed(&wanted);

		if (listed < 0) {
			return false;
		}
		if (listed == count) {
			break;
		}
		count = listed;
	}
	has_set = wanted;
	return true;
}

/* ---- pressure ---- */

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=123", in microseconds. */
static bool read_pressure(const char *path, uint64_t *out_ns)
{
	FILE *file = fopen(path, "re");
	unsigned long long total_us;
	bool is_read;

	if (file == NULL) {
		return false;
	}
	is_read = fscanf(file, "some %*s %*s %*s total=%llu", &total_us) == 1;
	fclose(file);
	if (is_read) {
		*out_ns = total_us * 1000;
	}
	return is_read;
}

/* Where cgroup2 is mounted, and by the line "0::/path" our place in it. */
static void find_group(void)
{
	static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	char line[PATH_BYTES / 2];
	FILE *file = fopen("/proc/self/cgroup", "re");
	uint64_t ignored;

	group_path[0] = '\0';
	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "0::", 3) != 0) {
			continue;
		}
		for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
			snprintf(group_path, sizeof(group_path), "%s%s/io.pressure", roots[i],
				strcmp(line + 3, "/") == 0 ? "" : line + 3);
			if (read_pressure(group_path, &ignored)) {
				break;
			}
			group_path[0] = '\0';
		}
	}
	if (file != NULL) {
		fclose(file);
	}
}

static const char *const machine_path = "/proc/pressure/io";

static bool check_pressure(const struct limits *wanted)
{
	uint64_t ignored;

	if (wanted->pressure_ppm == 0 || read_pressure(machine_path, &ignored)) {
		return true;
	}
	report_line("--psi-target: this kernel has no %s; it may need psi=1 on its command line",
		machine_path);
	return false;
}

/* ---- rates ---- */

static struct sums sum_up(void)
{
	struct sums sums = {.now_ns = scanning_ns_now()};
	struct pinion_device_stats device;

	for (uint32_t i = 0; pinion_device_get_stats(runtime, i, &device, sizeof(device)) == 0;
		i++) {
		sums.bytes += device.bytes;
		sums.timed += device.timed;
		sums.slow += device.slow;
		sums.throttled += device.throttled;
	}
	if (limits.pressure_ppm != 0) {
		(void)read_pressure(machine_path, &sums.stalled_ns[0]);
		if (group_path[0] != '\0') {
			(void)read_pressure(group_path, &sums.stalled_ns[1]);
		}
	}
	return sums;
}

static bool is_in_force(const struct pinion_limits *rates)
{
	return rates->depth_count == in_force.depth_count &&
		rates->depth_bytes == in_force.depth_bytes &&
		rates->bytes_per_second == in_force.bytes_per_second &&
		rates->requests_per_second == in_force.requests_per_second &&
		rates->slow_ns == in_force.slow_ns;
}

/* Only others than there are: each worker is woken for them. */
static void set_rates(void)
{
	struct pinion_limits rates;
	int error;

	limits_rates(&limits, &options->tuning, is_paced ? pace.rate : 0, &rates);
	if (is_in_force(&rates)) {
		return;
	}
	error = pinion_runtime_set_limits(runtime, &rates);
	if (error != 0) {
		report_line("cannot set limits: %s", report_reason(error));
	} else {
		in_force = rates;
	}
}

static void forget(void)
{
	latency = (struct pace_latency){0};
	memset(pressures, 0, sizeof(pressures));
}

/* A rate above another limit would climb without any effect. */
static void limit_pace(void)
{
	uint64_t bytes = limits_bytes(&limits, &options->tuning);

	bytes = bytes != 0 && bytes < RATE_MAX ? bytes : RATE_MAX;
	pace_limit(&pace, bytes < RATE_MIN ? bytes : RATE_MIN, bytes);
}

/* The limits are others, or the runtime is. */
static void apply(void)
{
	bool had_pace = is_paced;

	is_paced = limits_has_target(&limits);
	if (is_paced && !had_pace) {
		const struct pace_options range = {
			.min = RATE_MIN, .start = RATE_START, .max = RATE_MAX};

		pace_init(&pace, &range);
	}
	if (is_paced) {
		limit_pace();
	}
	if (runtime != NULL) {
		forget();
		before = sum_up();
		set_rates();
	}
}

static enum pace_verdict worse(enum pace_verdict a, enum pace_verdict b)
{
	return a > b ? a : b;
}

static enum pace_verdict judge(const struct sums *now)
{
	uint64_t elapsed_ns = now->now_ns - before.now_ns;
	enum pace_verdict verdict = PACE_WITHIN;

	if (limits.latency_ns != 0) {
		verdict =
			pace_latency(&latency, now->timed - before.timed, now->slow - before.slow);
	}
	for (int i = 0; i < 2 && limits.pressure_ppm != 0; i++) {
		verdict = worse(verdict,
			pace_pressure(&pressures[i], now->stalled_ns[i] - before.stalled_ns[i],
				elapsed_ns, limits.pressure_ppm));
	}
	return verdict;
}

static void step(void)
{
	struct sums now = sum_up();
	uint64_t elapsed_ns = now.now_ns - before.now_ns;
	uint64_t rate = pace.rate;
	enum pace_verdict verdict;
	struct pace_report report;

	if (elapsed_ns == 0) {
		return;
	}
	verdict = judge(&now);
	report = (struct pace_report){
		.is_over = verdict != PACE_WITHIN,
		.is_far_over = verdict == PACE_FAR_OVER,
		.is_used = now.throttled > before.throttled,
		.bytes_per_second =
			(uint64_t)((double)(now.bytes - before.bytes) * 1e9 / (double)elapsed_ns),
	};
	timed_sum += now.timed - before.timed;
	slow_sum += now.slow - before.slow;
	before = now;
	if (pace_step(&pace, &report) != rate) {
		if (pace.rate < rate) {
			forget();
		}
		set_rates();
	}
}

static void await_tick(void)
{
	struct timespec until;

	if (!is_paced || runtime == NULL) {
		pthread_cond_wait(&changed, &lock);
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)PACE_TICK_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	/* It may wake early: a report has its own time. */
	pthread_cond_timedwait(&changed, &lock, &until);
}

static void *follow_targets(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&lock);
	while (!is_ending) {
		await_tick();
		if (!is_ending && is_paced && runtime != NULL) {
			step();
		}
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* ---- start, change, end ---- */

/* The options, then the file. False: something is wrong, and is reported. */
static bool load(struct limits *out)
{
	struct limits loaded = options->limits;

	if (options->limits_file != NULL && !limits_load(&loaded, options->limits_file)) {
		return false;
	}
	if (!check_pressure(&loaded)) {
		return false;
	}
	*out = loaded;
	return true;
}

/* By the thread of signals.c. */
static void reload(void)
{
	struct limits loaded;

	if (!load(&loaded) || !set_priorities(&loaded)) {
		report_line("the limits stay as they were");
		return;
	}
	pthread_mutex_lock(&lock);
	limits = loaded;
	apply();
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&lock);
	report_note("limits are loaded from %s", options->limits_file);
}

static void init_condition(void)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&changed, &attributes);
	pthread_condattr_destroy(&attributes);
}

static uint32_t count_workers(const struct scanning_options *given)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);

	if (given->runtime.worker_count != 0) {
		return given->runtime.worker_count;
	}
	return online > 0 ? (uint32_t)online : 1;
}

bool throttle_prepare(struct scanning_options *given)
{
	options = given;
	started_nice = getpriority(PRIO_PROCESS, 0);
	started_io = started_io_priority();
	init_condition();
	find_group();
	/* First: the file may be changed from the moment it is read. */
	if (options->limits_file != NULL) {
		signals_on_reload(reload);
	}
	if (!load(&limits) || !set_priorities(&limits)) {
		return false;
	}
	if (given->window_bytes == 0) {
		given->window_bytes = limits_window_bytes(&limits, count_workers(given),
			limits_has_target(&limits) || options->limits_file != NULL);
	}
	return true;
}

bool throttle_has_rate(void)
{
	struct pinion_limits rates;

	pthread_mutex_lock(&lock);
	limits_rates(&limits, &options->tuning, 0, &rates);
	pthread_mutex_unlock(&lock);
	return rates.bytes_per_second != 0 || rates.requests_per_second != 0 ||
		limits_has_target(&limits);
}

void throttle_begin(struct pinion_runtime *begun)
{
	bool needs_thread;

	pthread_mutex_lock(&lock);
	runtime = begun;
	/* As it was created. */
	limits_rates(&(struct limits)LIMITS_NONE, &options->tuning, 0, &in_force);
	is_ending = false;
	is_paced = false;
	apply();
	needs_thread = is_paced || options->limits_file != NULL;
	pthread_mutex_unlock(&lock);
	if (!needs_thread) {
		return;
	}
	has_thread = pthread_create(&thread, NULL, follow_targets, NULL) == 0;
	if (!has_thread) {
		report_line("cannot start a thread: the rate stays where it is, and targets are "
			    "not followed");
	}
}

void throttle_end(void)
{
	pthread_mutex_lock(&lock);
	runtime = NULL;
	is_ending = true;
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&lock);
	if (has_thread) {
		pthread_join(thread, NULL);
		has_thread = false;
	}
}

bool throttle_get_targets(struct throttle_targets *out)
{
	bool is_there;

	pthread_mutex_lock(&lock);
	is_there = is_paced;
	*out = (struct throttle_targets){
		.bytes_per_second = pace.rate,
		.halved = pace.fall_count,
		.slow = slow_sum,
		.timed = timed_sum,
		.has_latency = limits.latency_ns != 0,
	};
	pthread_mutex_unlock(&lock);
	return is_there;
}

void throttle_report(void)
{
	struct throttle_targets targets;

	if (!throttle_get_targets(&targets)) {
		return;
	}
	report_note("targets: %.1f MB/s at the end, halved %llu times",
		(double)targets.bytes_per_second / 1e6, (unsigned long long)targets.halved);
	if (targets.has_latency) {
		report_note("%llu of %llu reads were slower than --latency-target",
			(unsigned long long)targets.slow, (unsigned long long)targets.timed);
	}
}
