/* SPDX-License-Identifier: MIT */
/*
 * Reading a metrics page of this process, and values of it. For one source file
 * of a program.
 */
#ifndef PIN_TESTS_SUPPORT_METRICS_H
#define PIN_TESTS_SUPPORT_METRICS_H

#include "runtime/base/base.h"
#include "tests/support/expect.h"

#include <errno.h>
#include <pinion/log.h>
#include <pinion/metrics.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

static char said[512];

static inline void note(void *arg, enum pinion_log_level level, const char *message)
{
	(void)arg;
	(void)level;
	snprintf(said, sizeof(said), "%s", message);
}

static inline struct pinion_metrics *open_own(uint32_t index)
{
	struct pinion_metrics *metrics = NULL;

	said[0] = '\0';
	expect_number("open", 0, pinion_metrics_open_pid(getpid(), index, note, NULL, &metrics));
	expect_text("without a line", "", said);
	return metrics;
}

/* A writer that has lost its CPU in a part leaves it torn for a while. */
static inline void take_snapshot(struct pinion_metrics *metrics)
{
	int rc;

	while ((rc = pinion_metrics_snapshot(metrics)) == -EAGAIN) {
		sched_yield();
	}
	expect_number("snapshot", 0, rc);
}

/* The number of a row, remembered by the address of its name. */
static inline int find_row(const struct pinion_metrics *metrics, const char *name)
{
	static struct {
		const char *name;
		int number;
	} rows[256];
	size_t slot = (size_t)(uintptr_t)name / 8 % PIN_ARRAY_COUNT(rows);

	if (rows[slot].name != name) {
		rows[slot].name = name;
		rows[slot].number =
			pinion_metrics_find(metrics, name, PINION_METRICS_WORKER, UINT32_MAX);
	}
	return rows[slot].number;
}

static inline uint64_t worker_value(
	const struct pinion_metrics *metrics, const char *name, uint32_t worker)
{
	uint64_t value = UINT64_MAX;
	int number = find_row(metrics, name);

	expect_true(name, number >= 0);
	expect_number(name, 0, pinion_metrics_read(metrics, (uint32_t)number, worker, &value));
	return value;
}

#endif
