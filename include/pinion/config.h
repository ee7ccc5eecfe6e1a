/* SPDX-License-Identifier: MIT */
/*
 * The configuration of a runtime: the fields that most programs set. The rest
 * is in struct pinion_tuning (tuning.h). Each field has a default that suits an
 * ordinary machine; pinion_config_init() writes them all, so a program can
 * print them before it starts anything.
 */
#ifndef PINION_CONFIG_H
#define PINION_CONFIG_H

#include <pinion/hooks.h>
#include <pinion/log.h>
#include <pinion/policy.h>
#include <pinion/tuning.h>
#include <stddef.h>
#include <stdint.h>

PINION_BEGIN_DECLS

/*
 * Shape: size-versioned; only ever appended to. Initialise with
 * pinion_config_init(), then change fields.
 * Owns: nothing; `log_arg` and `hook_arg` stay the caller's and must outlive
 * the runtime. `lanes` and `tuning` are read during creation only.
 * Since: 0.1
 */
struct pinion_config {
	/*
	 * Bytes of this struct the caller knows. Set by pinion_config_init().
	 */
	uint32_t size;

	/*
	 * Number of workers, 0 … 4096. 0: one for each physical core that this
	 * process may use, but no more than its cgroup CPU quota, rounded up.
	 * More workers than allowed CPUs are legal; they share CPUs and are not
	 * bound. Default 0. Environment: PINION_WORKER_COUNT.
	 */
	uint32_t worker_count;

	/*
	 * One of enum pinion_bind: the CPUs that each worker is bound to. Cores
	 * that other runtimes of this process use are chosen last, also to find
	 * a node. Workers are not bound while a CPU quota below the number of
	 * allowed CPUs is in force, since the kernel would then throttle one
	 * core while others idle. The library owns the affinity of workers that
	 * it has bound: when the kernel moves a worker because its CPU went
	 * offline, or another program moves it, the worker is bound again
	 * within 100 ms of running tasks (`workers_rebound` counts). To set
	 * affinity from outside, choose none. Default core. Environment:
	 * PINION_BIND_WORKERS.
	 */
	uint32_t bind_workers;

	/*
	 * One of enum pinion_io_level. Default auto. Environment:
	 * PINION_IO_LEVEL.
	 */
	uint32_t io_level;

	/*
	 * Size of each worker's arena: `buffer_count` large and
	 * `small_buffer_count` small buffers, each count 1 … 65536, each size a
	 * multiple of 4096 bytes up to 256 MiB. Defaults: 1 MiB, and 48 of
	 * 64 KiB. A `buffer_count` of 0, the default, means 28 buffers and an
	 * equal share of 32 more, but for all workers together at most 1/64 of
	 * the machine's memory and 512 MiB, and 4 buffers at least. Memory is
	 * taken as buffers are used: `buffer_rest_ms` of the tuning.
	 * Environment: PINION_BUFFER_BYTES, PINION_BUFFER_COUNT,
	 * PINION_SMALL_BUFFER_BYTES, PINION_SMALL_BUFFER_COUNT.
	 * Source: docs/decisions/memory.md, "A worker has 28 large buffers and
	 * a share of 32".
	 */
	uint32_t buffer_bytes;
	uint32_t buffer_count;
	uint32_t small_buffer_bytes;
	uint32_t small_buffer_count;

	/*
	 * Bytes of each worker's arena that are set aside for pools created
	 * later, 0 … 64 GiB, a multiple of 4096. They are mapped, placed and
	 * touched with the rest of the arena. Headroom is not included: a
	 * sixteenth more is set aside for it, which is 4096 bytes in front of
	 * each 64 KiB. A pool with more headroom than that takes the rest out
	 * of these bytes. Default 0. Environment: PINION_POOL_BYTES.
	 */
	uint64_t pool_bytes;

	/*
	 * Which workers serve which lanes (lane.h), and in which order: worker
	 * classes with a comma between them. A class is some of the letters h,
	 * n (or m) and l, and a number of workers, which the last class may
	 * leave out: "h:1,hn:2,hnl". Workers are numbered through the classes.
	 * There may be 4 classes; each lane must be served by one of them. The
	 * numbers add up to `worker_count`, or must agree with it. NULL or "":
	 * all workers serve all lanes, "hnl". Default NULL. Environment:
	 * PINION_LANES; its text is used in place, so create the runtime before
	 * you change the environment.
	 */
	const char *lanes;

	/* Receives messages; NULL: they are dropped. Default NULL. */
	pinion_log_fn log;
	void *log_arg;

	/*
	 * Hooks of each worker, any of them NULL, with `hook_arg` as their
	 * first argument. `before_park` is called when the worker has nothing
	 * to run and is about to sleep; it may still find work after that, and
	 * what the hook spawns runs first. `before_stop` is the last call on
	 * the thread, when all tasks are over. `on_tick` is called at
	 * intervals: `tick_interval_ms` of the tuning. Defaults NULL.
	 */
	pinion_after_start_fn after_start;
	pinion_worker_hook_fn before_park;
	pinion_worker_hook_fn before_stop;
	pinion_worker_hook_fn on_tick;
	void *hook_arg;

	/* The other fields. NULL: each has its default. Default NULL. */
	const struct pinion_tuning *tuning;

	/*
	 * Receives messages instead of `log`, with `log_arg` as well: each with
	 * the component that it is from. NULL: `log` does. Of a message that
	 * repeats itself 20 lines are sent in a second, then how many were left
	 * out; so with `log`. Debug messages have no limit. Default NULL.
	 */
	pinion_log_record_fn log_record;

	/*
	 * Levels that the library does not send, and does not format, eight
	 * bits for each component, as pinion_log_limit() (log.h) sets them.
	 * Default 0: it sends all.
	 */
	uint64_t log_dropped;

	/*
	 * 1: the runtime starts no thread. Its one worker is the thread that
	 * creates it, whenever that calls pinion_runtime_poll(): for a program
	 * with an event loop of its own. `worker_count` is 0 or 1, and `lanes`
	 * name one worker; `bind_workers`, `spin_iters`, `park_timeout_us`,
	 * `stall_ms`, `cq_stall_us`, `watchdog_us` and `stack_bytes` have no
	 * effect. Default 0.
	 */
	uint32_t is_driven;

	uint32_t reserved; /* 0 */
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
 * Lets users of a program configure it: overwrites fields from the PINION_*
 * variables named here and in tuning.h. Values for struct pinion_tuning go to
 * `tuning`, and `config->tuning` is set to it. With a `tuning` of NULL those
 * variables have no effect, and each that is set is a warning to `config->log`.
 *
 * The library reads the environment here and nowhere else, besides
 * pinion_thread_pool_sizes_from_env(). Fields of bytes take sizes, "10MB", as
 * pinion_config_parse_size() reads them. A PINION_* variable that no call reads
 * is a warning to `config->log`, with the name nearest to it: once in a
 * process, by the first call that has a log.
 *
 * Shape: `config` and `tuning` were initialised.
 * Owns: `tuning` stays in place until the runtime is created.
 * Errors: -EINVAL: a variable has a value outside its field's range; the
 * message sent to `config->log` names it. Fields before it are already set.
 * Context: any thread; not while another thread changes the environment.
 * Since: 0.1
 */
PINION_API int pinion_config_from_env(struct pinion_config *config, struct pinion_tuning *tuning);

/*
 * Reads a number of bytes as those variables take it: digits, and perhaps K, M,
 * G or T (powers of 1024; KiB is K), KB, MB, GB or TB (powers of 1000), or B
 * (bytes), in letters of either case, with no space in between. "10MB" is
 * 10000000.
 *
 * Context: any thread; never blocks.
 * Errors: -EINVAL: the text is no such number. -ERANGE: it does not fit 64
 * bits.
 * Since: 0.1
 */
PINION_API int pinion_config_parse_size(const char *text, uint64_t *out_bytes);

PINION_END_DECLS

#endif
