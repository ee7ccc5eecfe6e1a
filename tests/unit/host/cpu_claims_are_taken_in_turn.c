/* SPDX-License-Identifier: MIT */
/*
 * Goal: runtimes side by side are bound to cores that no other runtime has, as
 * long as there are any (W21); a runtime that ends leaves its own to the next;
 * one as large as the machine has them all; an unbound runtime takes none.
 * Method: runtimes of one worker each, whose thread says which CPU it is bound
 * to; the table alone, for more cores than this machine has.
 */
#include "runtime/base/base.h"
#include "runtime/host/process.h"
#include "tests/support/expect.h"
#include "tests/support/sanitized.h"

#include <pinion/pinion.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PLACES = 4 };

static void fill(struct pin_cpu_place places[PLACES])
{
	for (uint32_t i = 0; i < PLACES; i++) {
		places[i] = (struct pin_cpu_place){.cpu_index = 2 * i, .core_index = i};
	}
}

static void expect_order(const char *what, const char *expected, const struct pin_cpu_place *places)
{
	char order[PLACES + 1] = {0};

	for (uint32_t i = 0; i < PLACES; i++) {
		order[i] = (char)('0' + places[i].core_index);
	}
	expect_text(what, expected, order);
}

static void check_table(void)
{
	struct pin_cpu_place places[PLACES];
	const struct pin_cpu_place odd = {.core_index = UINT32_MAX};

	fill(places);
	pin_cpu_claims_sort(places, PLACES);
	expect_order("nothing is taken", "0123", places);
	pin_cpu_claims_take(&places[0]);
	pin_cpu_claims_take(&places[1]);
	pin_cpu_claims_take(&places[1]);
	pin_cpu_claims_sort(places, PLACES);
	expect_order("taken cores come last", "2301", places);
	fill(places);
	pin_cpu_claims_leave(&places[0]);
	pin_cpu_claims_leave(&places[1]);
	pin_cpu_claims_sort(places, PLACES);
	expect_order("one is left", "0231", places);
	pin_cpu_claims_forget();
	fill(places);
	pin_cpu_claims_sort(places, PLACES);
	expect_order("forgotten", "0123", places);
	pin_cpu_claims_take(&odd);
	pin_cpu_claims_leave(&odd);
}

/* ---- real ones ---- */

static int tell_cpus(void *arg)
{
	cpu_set_t *cpus = arg;

	return sched_getaffinity(0, sizeof(*cpus), cpus) == 0 ? 0 : -1;
}

static struct pinion_runtime *start(uint32_t worker_count, uint32_t bind_workers)
{
	struct pinion_runtime *runtime;
	struct pinion_config config;

	pinion_config_init(&config);
	config.worker_count = worker_count;
	config.bind_workers = bind_workers;
	config.buffer_count = 1;
	config.small_buffer_count = 1;
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
	return runtime;
}

/* Of a runtime with one worker; -1: it is not bound. */
static int cpu_of(struct pinion_runtime *runtime)
{
	cpu_set_t cpus;
	int result;

	expect_number("execute", 0, pinion_call_run(runtime, tell_cpus, &cpus, &result));
	expect_number("affinity", 0, result);
	if (CPU_COUNT(&cpus) != 1) {
		return -1;
	}
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &cpus)) {
			return (int)cpu;
		}
	}
	return -1;
}

static void check_in_child(int expected_cpu)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		struct pinion_runtime *runtime = start(1, 1);

		expect_number("a child's first", expected_cpu, cpu_of(runtime));
		pinion_runtime_destroy(runtime);
		_exit(expect_status());
	}
	expect_number("child", child, waitpid(child, &status, 0));
	expect_number("child ended well", 0, status);
}

static void check_runtimes(void)
{
	struct pinion_runtime *first = start(1, 1);
	struct pinion_runtime *loose = start(1, 0);
	struct pinion_runtime *second = start(1, 1);
	int first_cpu = cpu_of(first);
	int second_cpu = cpu_of(second);
	struct pinion_runtime *third;

	expect_true("bound", first_cpu >= 0 && second_cpu >= 0);
	expect_true("apart", first_cpu != second_cpu);
	expect_true("not bound", cpu_of(loose) != first_cpu);
	if (!SANITIZED_BUILD) { /* ThreadSanitizer allows no threads in a child */
		check_in_child(first_cpu);
	}
	pinion_runtime_destroy(first);
	third = start(1, 1);
	expect_number("the place that was left", first_cpu, cpu_of(third));
	pinion_runtime_destroy(second);
	pinion_runtime_destroy(loose);
	pinion_runtime_destroy(third);
}

int main(void)
{
	struct pinion_machine machine = {0};

	check_table();
	expect_number("probe", 0, pinion_machine_probe(&machine, sizeof(machine)));
	if (machine.core_count < 2 || machine.quota_millicpus != 0) {
		printf("not tried with runtimes: fewer than two cores, or a quota\n");
		return expect_status();
	}
	check_runtimes();
	return expect_status();
}
