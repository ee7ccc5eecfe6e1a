/* SPDX-License-Identifier: MIT */
/*
 * A metrics page that pinion top watches: its last two snapshots, and whether
 * its process lives.
 *
 * Everything comes from the page and from /proc. The page may be a hostile
 * process's: the reader of the library has checked its places, but no value in
 * it, and any of them may be missing.
 */
#ifndef PINION_TOOLS_TOP_PAGE_H
#define PINION_TOOLS_TOP_PAGE_H

#include "tools/top/process.h"

#include <pinion/metrics.h>
#include <stdbool.h>
#include <stdint.h>

/* The values of a worker that the table shows. */
enum top_value {
	/* Counts. */
	TOP_TASKS,
	TOP_REQUESTS,
	TOP_READ_BYTES,
	TOP_WRITE_BYTES,
	TOP_BUSY_NS,
	TOP_PARKS_FUTEX,
	TOP_PARKS_RING,
	TOP_STEALS,
	TOP_RING_ENTERS,
	TOP_SHORT,
	TOP_AGAIN,
	TOP_INTERRUPTED,
	/* The state of now. */
	TOP_PLACE,
	TOP_QUEUE_DEPTH,
	TOP_IN_FLIGHT,
	TOP_CLOCK_NS,
	TOP_VALUES,
};

/* The values that it keeps some readings of. */
enum top_series {
	TOP_SERIES_QUEUE,    /* tasks in all queues */
	TOP_SERIES_REQUESTS, /* a second */
	TOP_SERIES_CPU,	     /* 1: one CPU */
	TOP_SERIES,
};

/* Counters that stay where they are in a sound process. */
enum top_alarm {
	TOP_ALARM_STALLS,
	TOP_ALARM_STARVED_LANES,
	TOP_ALARM_DEVICE_STALLS,
	TOP_ALARMS,
};

enum {
	TOP_DEVICES_MAX = 64, /* the rest is not shown */
	TOP_READINGS = 30,
};

/* A value that the page does not have. */
#define TOP_MISSING UINT64_MAX

enum top_state {
	TOP_ALIVE,
	TOP_ENDED, /* the process lives, its runtime was destroyed */
	TOP_DEAD,
};

/* The newest last; negative: unknown. */
struct top_readings {
	double values[TOP_READINGS];
	uint32_t count;
};

struct top_page {
	struct pinion_metrics *metrics;
	struct pinion_metrics_info info;
	const char *path;	    /* of a file; NULL: of a process */
	struct top_process process; /* pid 0: not to be seen from here */
	uint64_t last_pid;	    /* the last that was seen, or the page's own */
	bool has_process;	    /* it was alive at the last reading */
	enum top_state state;
	uint64_t gone_ns; /* on CLOCK_MONOTONIC: first seen not alive; 0: alive */
	bool is_replaced; /* another file has its name now */
	bool is_lost;	  /* the last snapshot failed, and a line was printed */
	uint64_t last_life_unix_ns;
	uint64_t alive_ns; /* on CLOCK_MONOTONIC: when it was last seen alive */
	/* Of the last snapshot, and of the former or the beginning. */
	uint64_t read_ns; /* on CLOCK_MONOTONIC; of the dead: the last write */
	uint64_t before_ns;
	uint64_t read_unix_ns;
	uint32_t reads;
	bool is_all;	    /* there is none before: rates are since the beginning */
	double cpu_share;   /* 1: one CPU; negative: not known */
	double wait_share;  /* of its threads' waits for a CPU: the same */
	double io_wq_share; /* of the CPU time of io-wq's threads: the same */
	uint64_t cpu_before_ns;
	bool has_threads; /* the kernel says what follows */
	struct top_threads threads;
	uint64_t cpu_read_ns; /* on CLOCK_BOOTTIME */
	struct top_readings series[TOP_SERIES];
	uint64_t alarms[TOP_ALARMS]; /* TOP_MISSING: the page has none */
	uint64_t alarms_grown[TOP_ALARMS];
	uint64_t alarms_now[TOP_ALARMS]; /* how many last at this moment */
	int rows[TOP_VALUES];		 /* of the page's table */
	uint64_t *values;		 /* a worker after the other */
	uint64_t *before;
};

/*
 * Takes over `metrics`, which was opened by `path` or is the page of `pid`.
 * False: no memory; then the caller keeps it.
 */
bool top_page_init(
	struct top_page *page, struct pinion_metrics *metrics, const char *path, int pid);
void top_page_fini(struct top_page *page);

/* Takes a snapshot. False: it is lost, with a line where the log goes. */
bool top_page_read(struct top_page *page);

/* A value of a worker as of the snapshot, or TOP_MISSING. */
uint64_t top_page_value(const struct top_page *page, uint32_t worker, enum top_value value);

/* Its growth per second since the snapshot before; negative: unknown. */
double top_page_rate(const struct top_page *page, uint32_t worker, enum top_value value);

/* Of all workers; negative: unknown of any. */
double top_page_rate_sum(const struct top_page *page, enum top_value value);

/* Its name in the table of the page. */
const char *top_page_alarm_name(enum top_alarm alarm);

/* A value of the runtime's or a device's, or TOP_MISSING. */
uint64_t top_page_single(const struct top_page *page, enum pinion_metrics_scope scope,
	const char *name, uint32_t copy);

/* How many devices the page shows. */
uint32_t top_page_devices(const struct top_page *page);

/* The age of the runtime, of a dead process's: when it died. */
uint64_t top_page_age_ns(const struct top_page *page);

#endif
