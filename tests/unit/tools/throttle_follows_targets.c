/* SPDX-License-Identifier: MIT */
/*
 * Goal: a target that a limits file brings while a command works is followed
 * from then on; limits that are in force are not set again, as each worker is
 * woken for that; a file that is loaded again leaves the pace where it is; the
 * pace is never above another limit; reads that were slow before a fall, or
 * before a file was loaded, are forgotten, so they cause no second one.
 * Pressure of the machine counts, and that of the own control group, each by
 * itself.
 * Method: the throttle's own thread, whose ticks the test hands out one by one:
 * the linker leads its waits, its clock, its calls of the library and the files
 * that it opens by name to the functions below. Rates are worked out by hand
 * from tools/pace.h.
 */
#include "tests/support/expect.h"
#include "tests/support/scratch.h"
#include "tools/signals.h"
#include "tools/throttle.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define START_RATE 16000000
#define TICK_NS UINT64_C(100000000)

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint32_t waits;	 /* begun, for a change of the limits */
	uint32_t begun;	 /* waits for a tick */
	uint32_t handed; /* ticks */
	uint32_t taken;
	bool is_over;
} ticks = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* Under the throttle's lock, or while its thread waits. */
static struct pinion_device_stats device;
static uint64_t rate;
static uint64_t slow_ns;
static uint32_t set_count;
static void (*reload)(void);

/* Of the machine and of the group; the kernel's files have sums in us. */
static uint64_t stalled_us[2] = {5000000, 7000000};
static uint64_t stall_us[2]; /* to be added in each tick */

/* ---- what the linker asks for ---- */

int __real_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);
int __wrap_pthread_cond_timedwait(
	pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until);
int __wrap_pinion_device_get_stats(const struct pinion_runtime *runtime, uint32_t index,
	struct pinion_device_stats *out_stats, size_t size);
int __wrap_pinion_runtime_set_limits(
	struct pinion_runtime *runtime, const struct pinion_limits *limits);
uint64_t __wrap_scanning_ns_now(void);
void __wrap_signals_on_reload(void (*function)(void));
FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);

/* The throttle's lock is held until it waits, so that no signal is missed. */
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
	pthread_mutex_lock(&ticks.lock);
	ticks.waits++;
	pthread_cond_broadcast(&ticks.changed);
	pthread_mutex_unlock(&ticks.lock);
	return __real_pthread_cond_wait(condition, mutex);
}

int __wrap_pthread_cond_timedwait(
	pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until)
{
	(void)condition;
	(void)until;
	pthread_mutex_unlock(mutex);
	pthread_mutex_lock(&ticks.lock);
	ticks.begun++;
	pthread_cond_broadcast(&ticks.changed);
	while (ticks.taken == ticks.handed && !ticks.is_over) {
		__real_pthread_cond_wait(&ticks.changed, &ticks.lock);
	}
	ticks.taken = ticks.handed;
	pthread_mutex_unlock(&ticks.lock);
	pthread_mutex_lock(mutex);
	return ETIMEDOUT;
}

int __wrap_pinion_device_get_stats(const struct pinion_runtime *runtime, uint32_t index,
	struct pinion_device_stats *out_stats, size_t size)
{
	(void)runtime;
	expect_number("size", sizeof(*out_stats), (long long)size);
	if (index > 0) {
		return -ENOENT;
	}
	/* All that is allowed is read, and more is wanted. */
	device.bytes += START_RATE * 100;
	device.throttled++;
	*out_stats = device;
	return 0;
}

int __wrap_pinion_runtime_set_limits(
	struct pinion_runtime *runtime, const struct pinion_limits *limits)
{
	(void)runtime;
	rate = limits->bytes_per_second;
	slow_ns = limits->slow_ns;
	set_count++;
	return 0;
}

uint64_t __wrap_scanning_ns_now(void)
{
	static uint64_t now_ns;

	now_ns += TICK_NS;
	return now_ns;
}

void __wrap_signals_on_reload(void (*function)(void))
{
	reload = function;
}

static FILE *open_pressure(int index)
{
	static char texts[2][128];

	stalled_us[index] += stall_us[index];
	snprintf(texts[index], sizeof(texts[index]),
		"some avg10=1.00 avg60=2.00 avg300=3.00 total=%llu\n"
		"full avg10=1.00 avg60=2.00 avg300=3.00 total=9\n",
		(unsigned long long)stalled_us[index]);
	return fmemopen(texts[index], strlen(texts[index]), "r");
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	static char groups[] = "7:cpuset:/other\n0::/box\n";

	if (strcmp(path, "/proc/pressure/io") == 0) {
		return open_pressure(0);
	}
	if (strcmp(path, "/sys/fs/cgroup/box/io.pressure") == 0) {
		return open_pressure(1);
	}
	if (strcmp(path, "/proc/self/cgroup") == 0) {
		return fmemopen(groups, strlen(groups), "r");
	}
	return __real_fopen(path, mode);
}

/* ---- the test ---- */

static void await(const uint32_t *count, uint32_t wanted)
{
	pthread_mutex_lock(&ticks.lock);
	while (*count < wanted) {
		__real_pthread_cond_wait(&ticks.changed, &ticks.lock);
	}
	pthread_mutex_unlock(&ticks.lock);
}

/* Returns when the thread waits for the next one. */
static void expect_tick(const char *what, uint64_t expected)
{
	uint32_t begun;

	pthread_mutex_lock(&ticks.lock);
	begun = ticks.begun;
	ticks.handed++;
	pthread_cond_broadcast(&ticks.changed);
	pthread_mutex_unlock(&ticks.lock);
	await(&ticks.begun, begun + 1);
	expect_number(what, (long long)expected, (long long)rate);
}

static void write_limits(const char *line)
{
	FILE *stream = fopen("limits", "we");

	expect_ready("limits", stream != NULL && fputs(line, stream) >= 0 && fclose(stream) == 0);
}

/* Its thread waits for a change; the first step comes at once. */
static void check_target_comes(void)
{
	await(&ticks.waits, 1);
	expect_number("nothing to set at the start", 0, set_count);
	expect_number("no rate", 0, (long long)rate);
	write_limits("latency-target=1ms\n");
	reload();
	await(&ticks.begun, 1);
	expect_number("set by the file, and a step", 2, set_count);
	expect_number("a step up", START_RATE + START_RATE / 8 + 1, (long long)rate);
}

static void check_pace_stays(void)
{
	expect_tick("a step up", 20250002);
	expect_tick("a step up", 22781253);
	write_limits("latency-target=2ms\n");
	reload();
	expect_number("the pace is as it was", 22781253, (long long)rate);
	expect_number("and the target is in force", 2000000, (long long)slow_ns);
	expect_tick("a step up", 25628910);
}

static void check_pace_is_limited(void)
{
	write_limits("latency-target=2ms\nbwlimit=20000000\n");
	reload();
	expect_number("the limit", 20000000, (long long)rate);
	expect_tick("still", 20000000);
	write_limits("latency-target=2ms\nbwlimit=1000000\n");
	reload();
	expect_number("below the least of a pace", 1000000, (long long)rate);
	write_limits("latency-target=2ms\n");
	reload();
	expect_number("from there, its least", 4000000, (long long)rate);
	for (long long wanted = 4000000; wanted < 20000000;) {
		wanted += wanted / 8 + 1;
		expect_tick("a step up", (uint64_t)wanted);
	}
}

static void check_fall_forgets(void)
{
	device.timed += 100;
	device.slow += 50;
	expect_tick("half", 10403170);
	/* Reports that are ignored; then no read was slow, nor any timed. */
	expect_tick("ignored", 10403170);
	expect_tick("ignored", 10403170);
	expect_tick("ignored", 10403170);
	expect_tick("a sixteenth up", 11053369);
	expect_tick("a sixteenth up", 11744205);
}

/* A tick of 100 ms in which tasks waited for so long. */
static void expect_stalled_tick(
	const char *what, uint64_t machine_us, uint64_t group_us, uint64_t expected)
{
	stall_us[0] = machine_us;
	stall_us[1] = group_us;
	expect_tick(what, expected);
	stall_us[0] = 0;
	stall_us[1] = 0;
}

/* The target is a tenth of the time. Each has an average of its own. */
static void check_pressure_counts(void)
{
	write_limits("psi-target=10\n");
	reload();
	expect_stalled_tick("half, for the group", 0, 30000, 5872102);
	expect_stalled_tick("ignored", 0, 0, 5872102);
	expect_stalled_tick("ignored", 0, 0, 5872102);
	expect_stalled_tick("ignored", 0, 0, 5872102);
	expect_stalled_tick("a sixteenth up", 10000, 10000, 6239109);
	expect_stalled_tick("a sixteenth up", 10000, 10000, 6629054);
	expect_stalled_tick("a sixteenth up", 10000, 10000, 7043370);
	expect_stalled_tick("a sixteenth up", 10000, 10000, 7483581);
	expect_stalled_tick("a sixteenth up", 10000, 10000, 7951305);
	expect_stalled_tick("a sixteenth up", 10000, 10000, 8448262);
	expect_stalled_tick("half, for the machine", 90000, 0, 4224131);
}

/* Slow reads before and after it are few, but together too many. */
static void check_load_forgets(void)
{
	write_limits("latency-target=2ms\n");
	reload();
	expect_tick("ignored", 4224131);
	expect_tick("ignored", 4224131);
	expect_tick("ignored", 4224131);
	device.timed += 310;
	device.slow += 4;
	expect_tick("a sixteenth up", 4488140);
	write_limits("latency-target=3ms\n");
	reload();
	device.timed += 110;
	device.slow += 2;
	expect_tick("a sixteenth up", 4768649);
}

int main(void)
{
	struct scanning_options options = {.limits = LIMITS_NONE, .limits_file = "limits"};
	/* It is named only. */
	struct pinion_runtime *runtime = (struct pinion_runtime *)&options;

	alarm(300);
	scratch_enter("throttle_follows_targets");
	write_limits("");
	expect_ready("prepare", throttle_prepare(&options));
	expect_ready("a reload", reload != NULL);
	throttle_begin(runtime);
	check_target_comes();
	check_pace_stays();
	check_pace_is_limited();
	check_fall_forgets();
	check_pressure_counts();
	check_load_forgets();
	pthread_mutex_lock(&ticks.lock);
	ticks.is_over = true;
	pthread_cond_broadcast(&ticks.changed);
	pthread_mutex_unlock(&ticks.lock);
	throttle_end();
	scratch_leave();
	return expect_status();
}
