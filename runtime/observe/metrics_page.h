/* SPDX-License-Identifier: MIT */
/*
 * The metrics page: counts, state and histograms of a runtime as words in one
 * piece of memory, for readers that must not disturb the workers: another
 * thread, another process, or a person who looks at the file of a process that
 * has died.
 *
 *     header     what it is, whose, and where the parts are
 *     fields     a table: name, unit, kind and place of each value
 *     runtime    sequence, values of the runtime and of devices, histograms
 *     slots      one for each worker: sequence, its counts and its state
 *
 * A part is read by its sequence (observe/seqlock.h), so all of its values are
 * of one instant. A worker copies its counts into its slot between two tasks,
 * at most every 10 ms, and before it sleeps, at most every millisecond;
 * counting itself never touches the page. If it sleeps with work that it has
 * not published it wakes once for that, within 10 ms. The worker that holds the
 * lock writes the runtime's part: at the same time, if no other does; so does
 * the watchdog, where it has news of stalls. `place`
 * in a slot is written by itself, when the worker falls asleep and when it gets
 * up.
 *
 * Readers find values by their names in the table, so that old readers read
 * newer pages: pinion-metrics(5) has the format.
 *
 * Values come in the structs below: the page knows no worker. On the worker,
 * unless said otherwise.
 */
#ifndef PIN_OBSERVE_METRICS_PAGE_H
#define PIN_OBSERVE_METRICS_PAGE_H

#include "runtime/base/log.h"
#include "runtime/host/host.h"
#include "runtime/host/shared_page.h"
#include "runtime/observe/counts.h"
#include "runtime/observe/timings.h"

enum {
	PIN_PAGE_BYTES_MAX = 256 << 10,
	PIN_PAGE_VERSION = 1,
	/* Words of a slot before its counts. */
	PIN_SLOT_SEQUENCE = 0,
	PIN_SLOT_PLACE = 1,
	PIN_SLOT_PUBLISHED = 2,
	PIN_SLOT_COUNTS = 3,
	/* After the counts and the depth of the queue; and four words on. */
	PIN_SLOT_IN_FLIGHT = PIN_SLOT_COUNTS + PIN_COUNTS + 1,
	PIN_SLOT_CLOCK = PIN_SLOT_IN_FLIGHT + 4,
};

/* "pinionMP" in memory, if byte order is little. */
#define PIN_PAGE_MAGIC UINT64_C(0x504d6e6f696e6970)

enum pin_page_kind_of_value {
	PIN_PAGE_COUNTER = 1,
	PIN_PAGE_GAUGE = 2,
	PIN_PAGE_HISTOGRAM = 3, /* count, sum, then the buckets */
};

enum pin_page_scope {
	PIN_PAGE_RUNTIME = 1, /* in the runtime's part */
	PIN_PAGE_WORKER = 2,  /* in each slot */
	PIN_PAGE_DEVICE = 3,  /* in the runtime's part, for each device */
};

/* A row of the table; places are in words. */
struct pin_page_field {
	char name[32];
	char unit[8]; /* "", "ns", "bytes" */
	uint16_t kind;
	uint16_t scope;
	uint32_t lane;	 /* enum pinion_lane, or UINT32_MAX: of none */
	uint32_t at;	 /* from the start of its part */
	uint32_t words;	 /* of each copy */
	uint32_t copies; /* in the part: of devices */
	uint32_t stride; /* from copy to copy */
};

/* All places and sizes are in words of 8 bytes, but for `field_bytes`. */
struct pin_page_header {
	struct pin_atomic_u64 magic; /* written last */
	uint32_t version;
	uint32_t header_words;
	uint64_t word_count; /* of all */
	uint32_t field_count;
	uint32_t field_bytes;
	uint64_t fields_at;
	uint64_t runtime_at;
	uint64_t runtime_words;
	uint64_t slots_at;
	uint64_t slot_words;
	uint32_t slot_count;
	uint32_t worker_count; /* those beyond the slots are not shown */
	struct pin_page_owner owner;
};

_Static_assert(sizeof(struct pin_page_field) == 64, "as documented");
_Static_assert(sizeof(struct pin_page_header) == 192, "as documented");

/* Of all pools of a runtime. */
struct pin_shown_pools {
	uint64_t count;
	uint64_t buffers;
	uint64_t exhausted;
	uint64_t false_nulls;
	uint64_t waits;
	uint64_t wait_ns;
};

struct pin_metrics_page {
	struct pin_lock lock;	      /* rank 7; of the runtime's part */
	struct pin_shown_pools pools; /* [lock:lock] as they were seen last */
	/* [const] after start */
	struct pin_atomic_u64 *words; /* [W:workers, see above R:any] the page */
	struct pin_shared_page page;  /* which they are in, unless in the heap */
	struct pin_timings *timings;  /* of each worker */
	size_t word_count;
	size_t runtime_at;
	size_t slots_at;
	uint32_t slot_count;
	uint32_t worker_count;
};

/* Of a new page. */
struct pin_page_setup {
	const struct pin_host *host;
	const struct pin_log *log;
	uint32_t worker_count;
	bool is_shared;	  /* with other processes */
	const char *path; /* of the file that is to show it, or NULL */
};

/* What a slot shows beside its time. */
struct pin_shown_worker {
	struct pinion_worker_stats stats;
	struct pinion_worker_info info;
	uint64_t clock_ns;
};

/* Of a runtime; in the order of their rows in the table. */
struct pin_shown_runtime {
	uint64_t spawned_outside;
	uint64_t spawns_refused;
	uint64_t watchdog_found_work;
	uint64_t cq_stalls;
	uint64_t cq_stall_ns;
	uint64_t queue_depth; /* of all workers' own queues */
	uint64_t injector_depth;
	uint64_t high_depth;
	uint64_t low_depth;
	uint64_t searching;
	uint64_t device_count; /* of all, also of those that are not shown */
	uint64_t stalls;
	uint64_t stall_ns;
	uint64_t device_stalls;
	uint64_t starved_lanes;
	struct pin_shown_pools pools;
	/* At this moment. */
	uint64_t tasks_stalled;
	uint64_t devices_stalled;
	uint64_t lanes_starving;
};

/* Of a device; in the order of their rows in the table. */
struct pin_shown_device {
	uint64_t device;
	uint64_t depth_count;
	uint64_t taken_count;
	uint64_t requests;
	uint64_t bytes;
	uint64_t waited;
	uint64_t throttled;
	uint64_t throttled_ns;
	uint64_t latency_sum_ns;
	uint64_t timed;
	uint64_t slow;
};

/*
 * Before any worker starts, by the runtime's creator. -ENOMEM, and nothing is
 * to be destroyed. A page that others cannot see is no error: the log says why.
 */
int pin_metrics_page_create(
	const struct pin_page_setup *setup, struct pin_metrics_page **out_metrics);

/* The share of one worker. */
void pin_metrics_page_join(
	struct pin_metrics_page *metrics, uint32_t worker_index, struct pin_observed *out_observed);

/* When all workers are gone; NULL does nothing. Any thread. */
void pin_metrics_page_destroy(struct pin_metrics_page *metrics, const struct pin_host *host);

/* A worker's values into its slot, if it has one. */
void pin_metrics_page_write_slot(
	const struct pin_observed *observed, const struct pin_shown_worker *shown, uint64_t now_ns);

/*
 * The runtime's values, those of its first devices, and the times that the
 * worker has gathered, or NULL. By the holder of the lock.
 */
void pin_metrics_page_write_runtime(struct pin_metrics_page *metrics,
	const struct pin_shown_runtime *runtime, const struct pin_shown_device *devices,
	struct pin_timings *gathered, uint64_t now_ns);

/* Where the worker is: it falls asleep, or has got up. */
static inline void pin_metrics_page_set_place(
	const struct pin_observed *observed, enum pinion_worker_place place)
{
	if (observed->slot != NULL) {
		/*
		 * Release -> the fence after a reader's copy [SEQLOCK-1]: its
		 * next copy has the requests in flight that go with the place.
		 */
		pin_store_release_u64(&observed->slot[PIN_SLOT_PLACE], place);
	}
}

/* A histogram of the runtime. Any thread. False: not now. */
bool pin_metrics_page_read_histogram(const struct pin_metrics_page *metrics, uint32_t index,
	struct pinion_histogram *out_histogram);

/* The rows of the table. Any thread. */
uint32_t pin_metrics_page_field_count(void);
void pin_metrics_page_write_fields(struct pin_page_field *fields);

#endif
