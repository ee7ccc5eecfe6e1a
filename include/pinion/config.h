/* SPDX-License-Identifier: MIT */
/*
 * Everything a runtime can be told at creation. Each field has a default that
 * suits an ordinary machine; pinion_config_init() writes them all, so they can
 * be printed before anything is started.
 */
#ifndef PINION_CONFIG_H
#define PINION_CONFIG_H

#include <pinion/log.h>
#include <stdint.h>

PINION_BEGIN_DECLS

/* How workers do I/O. */
enum pinion_io_level {
	PINION_IO_AUTO = 0,	/* io_uring where it can be had, else the fallback */
	PINION_IO_FALLBACK = 1, /* pread in the worker, never io_uring */
	PINION_IO_RING = 2,	/* io_uring or an error from pinion_runtime_create */
};

/*
 * Shape: size-versioned; only ever appended to. Initialise with
 * pinion_config_init(), then set what should differ.
 * Owns: nothing but `log_arg`, which stays the caller's and must outlive the
 * runtime.
 * Since: 0.1
 */
struct pinion_config {
	/*
	 * Bytes of this struct the caller knows. Set by pinion_config_init().
	 */
	uint32_t size;

	/*
	 * Workers, 0 … 4096. 0: one per physical core this process may use, and
	 * no more than its cgroup CPU quota, rounded up. More than the allowed
	 * CPUs is legal; such workers share CPUs and are not bound.
	 * Default 0. Environment: PINION_WORKERS.
	 */
	uint32_t worker_count;

	/*
	 * One worker per hardware thread instead of per core: 0 or 1. Default
	 * 0.
	 */
	uint32_t use_smt;

	/*
	 * Bind each worker to its core: 0 or 1. Never done while a CPU quota
	 * smaller than the allowed CPUs is in force, since the kernel would
	 * then throttle one core while others idle. Default 1. Environment:
	 * PINION_BIND.
	 */
	uint32_t bind_workers;

	/*
	 * Submission queue entries per ring, 8 … 32768, power of two. Default
	 * 256.
	 */
	uint32_t ring_entries;

	/*
	 * Threads the kernel may add per ring for what would block (opening
	 * cold files), 1 … 1024. Default 16: enough to keep a disk's queue
	 * filled with inode reads, far below what an uncapped ring may start.
	 * Source: docs/DECISIONS.md, "io-wq is capped".
	 */
	uint32_t ring_helper_count;

	/*
	 * Task polls per loop before completions are looked at, 1 … 65535.
	 * Default 128.
	 */
	uint32_t budget_polls;

	/*
	 * Microseconds per loop before completions are looked at, 1 … 1000000.
	 * Default 500.
	 */
	uint32_t budget_us;

	/*
	 * The arena of each worker: `buffer_count` large and
	 * `small_buffer_count` small buffers, each count 1 … 65536, each size a
	 * multiple of 4096 bytes up to 256 MiB. Defaults: 1 MiB and 48 of
	 * 64 KiB. A `buffer_count` of 0, the default, means 28 and a share of
	 * 32 more that all workers divide: some 32 MiB for each worker, and
	 * 32 MiB once.
	 * Source: docs/DECISIONS.md, "Large buffers".
	 */
	uint32_t buffer_bytes;
	uint32_t buffer_count;
	uint32_t small_buffer_bytes;
	uint32_t small_buffer_count;

	/*
	 * One of enum pinion_io_level. Default auto. Environment:
	 * PINION_IO_LEVEL.
	 */
	uint32_t io_level;

	/* Zero. Keeps the pointers below aligned. */
	uint32_t reserved;

	/* Receives messages; NULL: they are dropped. Default NULL. */
	pinion_log_fn log;
	void *log_arg;
};

/*
 * Writes every default. Call it as pinion_config_init(&config): the macro
 * passes the size this program was compiled with.
 *
 * Context: any thread; never blocks.
 * Since: 0.1
 */
PINION_API void pinion_config_init_sized(struct pinion_config *config, uint32_t size);
#define pinion_config_init(config) \
	pinion_config_init_sized((config), (uint32_t)sizeof(struct pinion_config))

/*
 * Overwrites fields from the PINION_* variables named above. The library reads
 * the environment here and nowhere else.
 *
 * Errors: -EINVAL: a variable has a value outside its field's range; the
 * message sent to `config->log` names it. Fields before it are already set.
 * Context: any thread; not while another thread changes the environment.
 * Since: 0.1
 */
PINION_API int pinion_config_from_env(struct pinion_config *config);

PINION_END_DECLS

#endif
