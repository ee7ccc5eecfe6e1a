/* SPDX-License-Identifier: MIT */
/*
 * Goal: `cpu_latency_us` is asked of the kernel from a runtime's creation to
 * its destruction, nothing is without it, and where the kernel refuses, or has
 * no idle driver to heed it, that is said and the runtime works all the same.
 * WP-17.
 * Method: the kernel shows the value in force, the smallest of all requests, to
 * processes that may ask; a child without root's rights may not. Files stand
 * for drivers that this machine has not.
 */
#include "runtime/base/base.h"
#include "runtime/host/host.h"
#include "tests/support/child.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"

#include <fcntl.h>
#include <sched.h>

enum {
	LIMIT_SECONDS = 60,
	/* Used by no other program. */
	LATENCY_US = 7,
	NOBODY = 65534,
};

static const char path[] = "/dev/cpu_dma_latency";

static int heeded(void)
{
	int32_t number = -1;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	expect_ready(path, fd >= 0 && read(fd, &number, sizeof(number)) == sizeof(number));
	close(fd);
	return number;
}

static uint64_t asked(const struct pinion_runtime *runtime)
{
	struct pinion_runtime_info facts;

	pinion_runtime_get_info(runtime, &facts, sizeof(facts));
	return facts.cpu_latency_us;
}

static struct pinion_runtime *create(uint64_t latency_us)
{
	struct pinion_runtime *runtime;
	struct pinion_config config;

	runtimes_config(&config, 1, PINION_IO_AUTO);
	expect_true("by default nothing is asked for",
		runtimes_tuning.cpu_latency_us == PINION_CPU_LATENCY_ANY);
	runtimes_tuning.cpu_latency_us = latency_us;
	expect_ready(runtimes_log, pinion_runtime_create(&config, &runtime) == 0);
	return runtime;
}

static bool is_said(void)
{
	return strstr(runtimes_log, "of cpu_latency_us to run again: /dev/cpu_dma_latency: ") !=
		NULL;
}

static void check_without(void)
{
	struct pinion_runtime *runtime = create(PINION_CPU_LATENCY_ANY);

	expect_true("nothing was asked for", asked(runtime) == PINION_CPU_LATENCY_ANY);
	expect_true("nor is it said", !is_said());
	pinion_runtime_destroy(runtime);
}

/* Other programs may ask meanwhile, for less. */
static void check_granted(void)
{
	struct pinion_runtime *first = create(LATENCY_US);
	struct pinion_runtime *second = create(LATENCY_US);

	expect_number("the fact", LATENCY_US, (long long)asked(first));
	expect_true("nothing is said", !is_said());
	pinion_runtime_destroy(first);
	expect_number("drain", 0, pinion_runtime_drain(second));
	expect_true("as long as there is one", heeded() <= LATENCY_US);
	pinion_runtime_destroy(second);
	while (heeded() <= LATENCY_US) {
		sched_yield();
	}
}

static int be_refused(void *arg)
{
	struct pinion_runtime *runtime;

	(void)arg;
	if (geteuid() == 0 && setresuid(NOBODY, NOBODY, NOBODY) != 0) {
		return 77;
	}
	runtime = create(LATENCY_US);
	expect_true("it is said", is_said());
	expect_true("the fact", asked(runtime) == PINION_CPU_LATENCY_ANY);
	expect_number("it works", 0, pinion_runtime_join(runtime));
	pinion_runtime_destroy(runtime);
	return expect_status();
}

static void check_refused(void)
{
	int code = child_code(child_run(be_refused, NULL, NULL, 0));

	if (code == 77) {
		puts("root's rights cannot be given up");
		return;
	}
	expect_number("where it is refused", 0, code);
}

static void check_drivers(void)
{
	scratch_file("haltpoll", "haltpoll\n");
	scratch_file("nonesuch", "nonesuch\n");
	scratch_file("none", "none\n");
	expect_true("haltpoll heeds it", pin_cpu_latency_is_heeded("haltpoll"));
	expect_true("any name is a driver's", pin_cpu_latency_is_heeded("nonesuch"));
	expect_true("but none", !pin_cpu_latency_is_heeded("none"));
	expect_true("any of them", pin_cpu_latency_is_heeded("missing"));
}

/* This machine, should it have none. */
static void check_unheeded(void)
{
	struct pinion_runtime *runtime = create(LATENCY_US);

	expect_true("it is said", is_said() && strstr(runtimes_log, "no idle driver") != NULL);
	expect_true("the fact", asked(runtime) == PINION_CPU_LATENCY_ANY);
	expect_number("it works", 0, pinion_runtime_join(runtime));
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("cpu-latency");
	check_drivers();
	if (geteuid() == 0 || access(path, W_OK) != 0) {
		check_refused();
	}
	check_without();
	if (access(path, R_OK | W_OK) == 0 && pin_cpu_latency_is_heeded(PIN_CPU_IDLE_DRIVER)) {
		check_granted();
	} else if (access(path, R_OK | W_OK) == 0) {
		check_unheeded();
	} else {
		puts("whether it is heeded was not tried: no access to /dev/cpu_dma_latency");
	}
	scratch_leave();
	return expect_status();
}
