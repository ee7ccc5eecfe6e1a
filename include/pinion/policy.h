/* SPDX-License-Identifier: MIT */
/* The values of fields of a configuration, and of its tuning. */
#ifndef PINION_POLICY_H
#define PINION_POLICY_H

#include <pinion/version.h>
#include <stdint.h>

PINION_BEGIN_DECLS

/*
 * How workers do I/O. The last four are steps below `ring`: rings as the named
 * kernel has them, without later features, on any newer kernel; for tests and
 * to avoid a fault of a kernel. All levels that say "ring" mean io_uring or an
 * error from pinion_runtime_create.
 */
enum pinion_io_level {
	PINION_IO_AUTO = 0,	    /* io_uring where it can be had, else the fallback */
	PINION_IO_FALLBACK = 1,	    /* pread in the worker, never io_uring */
	PINION_IO_RING = 2,	    /* all that this kernel has */
	PINION_IO_RING_BASIC = 3,   /* Linux 5.15: no set-up flags */
	PINION_IO_RING_COOP = 4,    /* 5.19: completions do not interrupt */
	PINION_IO_RING_DEFER = 5,   /* 6.1: completions when the worker asks */
	PINION_IO_RING_MESSAGE = 6, /* 6.13: wakes by message */
};

/*
 * Features that a runtime can do without (`io_without`), whatever the kernel
 * has; with the version that brought them.
 */
enum pinion_io_feature {
	PINION_IO_EXT_ARG = 1 << 0, /* 5.11; no ring without it */
	PINION_IO_OPENAT = 1 << 1,  /* 5.6; no ring without it */
	PINION_IO_REGISTERED_BUFFERS = 1 << 2,
	PINION_IO_REGISTERED_RING = 1 << 3,   /* 5.18 */
	PINION_IO_COOP_TASKRUN = 1 << 4,      /* 5.19 */
	PINION_IO_SINGLE_ISSUER = 1 << 5,     /* 6.0; no DEFER_TASKRUN without it */
	PINION_IO_DEFER_TASKRUN = 1 << 6,     /* 6.1 */
	PINION_IO_STATX_DIOALIGN = 1 << 7,    /* 6.1 */
	PINION_IO_CACHESTAT = 1 << 8,	      /* 6.5 */
	PINION_IO_CLONE_BUFFERS = 1 << 9,     /* 6.12 */
	PINION_IO_SEND_MSG_RING = 1 << 10,    /* 6.13 */
	PINION_IO_NO_IOWAIT = 1 << 11,	      /* 6.15 */
	PINION_IO_DONTCACHE = 1 << 12,	      /* 6.14 */
	PINION_IO_REGISTERED_FILES = 1 << 13, /* 5.19 */
	PINION_IO_NVME_COMMANDS = 1 << 14,    /* 5.19 */
	PINION_IO_NO_SQARRAY = 1 << 15,	      /* 6.6 */
	PINION_IO_RENAMEAT = 1 << 16,	      /* 5.11; and unlinkat */
	PINION_IO_LINKAT = 1 << 17,	      /* 5.15; and mkdirat, symlinkat */
	PINION_IO_SHUTDOWN = 1 << 18,	      /* 5.11 */
	PINION_IO_SOCKET = 1 << 19,	      /* 5.19 */
};

/* Value of `cpu_latency_us`: no limit, as without the field. */
#define PINION_CPU_LATENCY_ANY UINT64_C(2000000000)

/* Which threads may submit to a worker's ring, and reap it. */
enum pinion_ring_sharing {
	/* The worker alone: the fastest. Requests of a stalled worker wait. */
	PINION_RING_OWN = 0,
	/*
	 * Other workers as well, while a task blocks or computes for long
	 * there: for programs that cannot avoid such tasks. Requests then end,
	 * and their tasks run, on any worker, in the order of tasks; requests
	 * on memory of pinion_buffer_acquire() still on their own. Costs
	 * SINGLE_ISSUER, DEFER_TASKRUN and COOP_TASKRUN: the kernel interrupts
	 * a worker for its completions, so that system calls of tasks which
	 * signal(7) lists as never restarted may fail with EINTR.
	 */
	PINION_RING_SHARED = 1,
};

/* Of which devices workers poll for completions, instead of interrupts. */
enum pinion_polled {
	PINION_POLLED_NEVER = 0,
	/*
	 * Devices that have queues for it, as NVMe drives have with
	 * nvme.poll_queues=n: /sys/block/X/queue/io_poll is 1.
	 */
	PINION_POLLED_AUTO = 1,
	/*
	 * Any device, until it refuses: also where sysfs has no answer, as for
	 * file systems on several devices. A kernel that does not refuse polls
	 * in vain for completions that come by interrupt.
	 */
	PINION_POLLED_ALWAYS = 2,
};

/* Which CPUs the kernel may run a worker on. */
enum pinion_bind {
	PINION_BIND_NONE = 0, /* those of the thread that creates the runtime */
	PINION_BIND_CORE = 1, /* one CPU of its core; with `use_smt` its own */
	/*
	 * All allowed CPUs of its NUMA node: its memory stays near, and the
	 * kernel may move it away from other programs that use a core.
	 */
	PINION_BIND_NODE = 2,
};

/* In which order a worker runs the tasks in its own queue. */
enum pinion_queue_order {
	/*
	 * Oldest first, after the task spawned last (`lifo_polls`); others
	 * steal the older half. After the queue was full (`queue_tasks`) newest
	 * first until a quarter is left, so that trees of tasks stay narrow,
	 * with the oldest in between, one in 1024 at least. The last part needs
	 * membarrier(2).
	 */
	PINION_QUEUE_FIFO = 0,
	/*
	 * Newest first; others steal the oldest, one at a time. For trees of
	 * tasks (fork and join) of which as few as can be are to exist at once.
	 */
	PINION_QUEUE_LIFO = 1,
};

/* Whether a worker without work in its own lanes helps others. */
enum pinion_assist {
	PINION_ASSIST_OFF = 0,	/* it waits */
	PINION_ASSIST_IDLE = 1, /* it takes a task of another lane */
};

/* The effect of a failed task on the other tasks. */
enum pinion_fault_policy {
	PINION_FAULT_ISOLATE = 0,   /* nothing */
	PINION_FAULT_FAIL_FAST = 1, /* as if pinion_runtime_stop() had been called */
};

/*
 * The priority of a lane's reads and writes for the kernel's I/O scheduler,
 * where that considers it: the best-effort class from its highest level to its
 * lowest, or the idle class, which may wait as long as there is any other I/O.
 * There is no real-time class: it would delay all other I/O of the machine, and
 * needs a privilege. A request can still ask for it itself.
 */
enum pinion_io_priority {
	PINION_IO_PRIORITY_NONE = 0, /* that of the worker's thread */
	PINION_IO_PRIORITY_BE0 = 1,
	PINION_IO_PRIORITY_BE1 = 2,
	PINION_IO_PRIORITY_BE2 = 3,
	PINION_IO_PRIORITY_BE3 = 4,
	PINION_IO_PRIORITY_BE4 = 5, /* of a thread that was never given one */
	PINION_IO_PRIORITY_BE5 = 6,
	PINION_IO_PRIORITY_BE6 = 7,
	PINION_IO_PRIORITY_BE7 = 8,
	PINION_IO_PRIORITY_IDLE = 9,
};

/* Which sleeping worker is woken for work that any may do. */
enum pinion_wake_policy {
	PINION_WAKE_NEAR = 0,	/* same L3 as the waker, same node, any; then lowest */
	PINION_WAKE_LOWEST = 1, /* lowest index, so that few workers stay busy */
	PINION_WAKE_ROTATE = 2, /* the next in turn, so that all take part */
};

PINION_END_DECLS

#endif
