/* SPDX-License-Identifier: MIT */
/*
 * Internals shared by the files that carry out the public headers, a section
 * each: configuration, pools, resize, runtime.
 */
#ifndef PIN_API_INTERNAL_H
#define PIN_API_INTERNAL_H

#include "runtime/base/log.h"
#include "runtime/host/host.h"
#include "runtime/host/process.h"
#include "runtime/memory/pool.h"
#include "runtime/task/entry.h"
#include "runtime/worker/wait.h"

#include <pinion/config.h>
#include <pinion/metrics.h>
#include <pinion/pool.h>
#include <stddef.h>

/* ---- config ---- */

/*
 * Defaults and validation of a runtime's configuration.
 */

/*
 * Copies what the caller gave, and its tuning, into structs of this library's
 * size and checks them. -E2BIG, -EINVAL as pinion_runtime_create(); the log
 * names the field. `tuning` of *out_config is NULL.
 */
int pin_config_accept(struct pinion_config *out_config, struct pinion_tuning *out_tuning,
	const struct pinion_config *given);

/* Where messages go; also of a struct of an older program. */
static inline struct pin_log pin_config_log(const struct pinion_config *config)
{
	struct pin_log log = {.fn = config->log, .arg = config->log_arg};

	if (config->size >= sizeof(*config)) {
		log.record = config->log_record;
		log.dropped = config->log_dropped;
	}
	pin_log_init(&log);
	return log;
}

/* Fills in what an accepted configuration left to the library. */
void pin_config_complete(struct pinion_config *config, uint32_t default_worker_count);

/* ---- config: its fields ---- */

/*
 * The table of fields, for environment.c. A `source` is the field or variable
 * that a value came from, which messages name.
 */

/* Which struct a field is in. */
enum pin_config_part {
	PIN_CONFIG_IN_config,
	PIN_CONFIG_IN_tuning,
};

enum {
	PIN_CONFIG_TEXT_SHOWN = 64, /* of a text that is refused; the rest has room */
};

struct pin_config_field {
	const char *name;
	const char *variable; /* in the environment, or NULL */
	enum pin_config_part part;
	size_t offset;
	size_t bytes; /* of the member: 4 or 8 */
	uint64_t standard;
	uint64_t min;
	uint64_t max;
	uint64_t multiple;	  /* of which the value must be one; 1: any */
	const char *const *words; /* the values' names in the environment; NULL: numbers */
	bool is_set;		  /* the first word is the empty set, the others a bit each */
	bool is_size;		  /* bytes: in the environment also 64K, 10MB (api/size.c) */
};

/* A configuration and its tuning, together. */
struct pin_config_parts {
	struct pinion_config *config;
	struct pinion_tuning *tuning;
};

const struct pin_config_field *pin_config_fields(size_t *out_count);

/* Variables that are not in it. */
extern const char pin_lanes_variable[];
extern const char pin_seed_variable[];
extern const char pin_metrics_variable[];

/* 0 or -EINVAL; the log says why. */
int pin_config_check_field(const struct pin_log *log, const struct pin_config_field *field,
	uint64_t value, const char *source);
int pin_config_check_path(const struct pin_log *log, const char *path, const char *source);

void pin_config_write_field(
	const struct pin_config_parts *parts, const struct pin_config_field *field, uint64_t value);

/* -EINVAL, with a line about that mistake in a text of lanes. */
int pin_config_refuse_lanes(
	const struct pin_log *log, const char *text, const char *fault, const char *source);

/* ---- pool config ---- */

/*
 * Defaults, validation and sizes of a pool's configuration.
 */

/* Bytes of one buffer with its headroom. */
static inline uint64_t pin_pool_config_stride(const struct pinion_pool_config *config)
{
	return (uint64_t)config->headroom_bytes + config->buffer_bytes;
}

/*
 * Copies the caller's struct into a struct of this library's size, checks it
 * and fills in the fields left to the library. `runtime_workers` is 0 without a
 * runtime. Errors as pinion_pool_create(); the log names the field.
 */
int pin_pool_config_accept(struct pinion_pool_config *out_config,
	const struct pinion_pool_config *given, uint32_t runtime_workers,
	const struct pin_log *log);

/* ---- pool ---- */

/*
 * A pool as users have it: the buffers (memory/pool.h), their memory, those who
 * wait for one (worker/wait.h), and which cache is the calling thread's.
 *
 * A worker's cache has its worker's number, if the pool was made with its
 * runtime. Another thread is attached: the caches taken are marked in
 * `attached`, and the thread keeps a short list of its pools in thread-local
 * memory, by a number that no two pools of a process share, as a later pool may
 * have the address of a pool that the thread forgot to leave.
 *
 * [BUFFERS-1] detach flushes its magazine, then clears its mark (release) ->
 * attach sets it (CAS, acquire): two owners of one magazine see what each did.
 */

struct pinion_pool {
	struct pin_pool pool;
	/* [const] */
	struct pinion_runtime *runtime; /* NULL: none */
	struct pin_arena arena;		/* without a runtime: its memory */
	struct pin_pool_region *regions;
	uint64_t number;
	bool has_short_way; /* nothing is to be done with a buffer between uses */
	uint64_t mapped_bytes;
	uint32_t worker_count;
	uint32_t forked;		 /* pin_forked_now() of its process */
	struct pin_atomic_u32 *attached; /* [W:any R:any] 1: the cache is taken */
	/* [W:any R:any] */
	struct pin_atomic_u32 owners;
	struct pin_atomic_u32 is_closed;
	struct pin_waiters waiters PIN_CACHE_ALIGNED;
	/* [W:any R:any] how long they waited, as struct pinion_histogram */
	struct pin_atomic_u64 waits[PINION_HISTOGRAM_BUCKETS];
	struct pin_atomic_u64 shown_ns; /* [W:waiters R:waiters] on the page */
	/* [const] for its beginning and its end */
	uint32_t cache_count;
	const struct pin_host *host;
	struct pin_host own_host; /* with an allocator of the embedder's */
	struct pin_live live;
};

/* Gets one for the oldest who waits; for pin_waiters_init(). */
bool pin_buffers_take(void *arg, uint64_t demand, struct pin_waiters_value *out_value);

/* ---- resize ---- */

/*
 * More workers, or fewer, while a runtime runs.
 *
 * All the workers there may ever be have their places from the beginning: in
 * the arrays, in the orders of search and wake. So nothing that other threads
 * read changes its place; an absent worker has no work, sleeps in no set and
 * has no thread (loop/retire.c). Of each class the first workers are there,
 * and of the last class always one, the fallback worker.
 *
 * One resize at a time, and none beside the end of the runtime: it holds the
 * lock that joins the threads from its first change until those that leave have
 * left, and does not wait for it, as only the end of the runtime could have it.
 * First come the new ones, of which each may fail, then go the others.
 */

/*
 * `counts` of each class, at most those of its lane plan, at least 1 of the
 * last. Sleeps until those that leave have ended what they have to. -EBUSY:
 * another resize is under way. -ESHUTDOWN: the runtime is drained or stopped,
 * or about to be. -EDEADLK: on a worker thread of any runtime. Those of
 * starting a worker. After an error nothing has changed.
 */
int pin_runtime_resize(struct pinion_runtime *runtime, const uint32_t *counts);

/* ---- runtime ---- */

/*
 * A runtime's creation and its workers' threads, for thread pools and resizing.
 */

/*
 * As pinion_runtime_create(), with only `serving_counts` workers of each class
 * of `config->lanes` at first. NULL: all, and for good.
 */
int pin_runtime_create(const struct pinion_config *config, const uint32_t *serving_counts,
	struct pinion_runtime **out_runtime);

/*
 * For a worker that is OUT, and whose thread was joined, if it has had one:
 * with `life`. The error of starting it.
 */
int pin_runtime_start_worker(struct pin_worker *worker);

/* For a worker on its way OUT, with `life`, too. */
void pin_runtime_join_worker(struct pin_worker *worker);

/*
 * The end of all threads, and of the memory: once each, the first with `life`,
 * or by a creation that fails.
 */
void pin_runtime_join_threads(struct pin_shared *shared);
void pin_runtime_free(struct pinion_runtime *runtime);

/* ---- trace ---- */

/*
 * Makes the trace that the tuning asks for, if it does, before any worker
 * starts, and ends it when all are gone. -ENOMEM.
 */
int pin_events_start(struct pin_shared *shared);
void pin_events_stop(struct pin_shared *shared);

/* ---- metrics ---- */

struct pinion_metrics;

/*
 * Opens the page that `fd` has; `name` is for messages. Owns `fd`, also when it
 * fails. Errors and lines as pinion_metrics_open().
 */
int pin_metrics_take(
	int fd, const char *name, const struct pin_log *log, struct pinion_metrics **out_metrics);

/* Of the page's file; 0: unknown. */
unsigned long long pin_metrics_inode(const struct pinion_metrics *metrics);

#endif
