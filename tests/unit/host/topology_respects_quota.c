/* SPDX-License-Identifier: MIT */
/*
 * Goal: the smallest CPU quota between the process and the root of its cgroup
 * hierarchy is found, in both versions, and caps the number of workers.
 * Method: recorded /proc and cgroup trees in tests/fixtures/cgroup.
 */
#include "runtime/host/cgroup.h"
#include "runtime/host/topology.h"
#include "tests/support/expect.h"

#include <stdint.h>

static void check_fixture(const char *name, uint32_t expected)
{
	const char *top = getenv("top_srcdir");
	char root[4000];

	snprintf(root, sizeof(root), "%s/tests/fixtures/cgroup/%s", top == NULL ? "." : top, name);
	expect_number(name, expected, pin_quota_millicpus(root));
}

static void check_workers(uint32_t places, uint32_t millicpus, uint32_t expected)
{
	struct pin_topology topology = {
		.place_count = places,
		.quota_millicpus = millicpus,
	};
	char what[64];

	snprintf(what, sizeof(what), "workers of %u places, %u millicpus", places, millicpus);
	expect_number(what, expected, pin_topology_default_workers(&topology));
}

int main(void)
{
	check_fixture("v2_parent_is_tighter", 1500);
	check_fixture("v2_own_group_is_tighter", 250);
	check_fixture("v2_container", 2000);
	check_fixture("v2_outside_of_the_mount", 3000);
	check_fixture("v2_without_quota", 0);
	check_fixture("v1_container", 2500);
	check_fixture("v1_without_quota", 0);
	check_fixture("v1_and_v2", 750);
	check_fixture("odd_mount_point", 4000);
	check_fixture("no_such_machine", 0);

	check_workers(8, 0, 8);
	check_workers(8, 1, 1);
	check_workers(8, 1000, 1);
	check_workers(8, 1001, 2);
	check_workers(8, 7999, 8);
	check_workers(8, 64000, 8);
	check_workers(1, UINT32_MAX, 1);
	return expect_status();
}
