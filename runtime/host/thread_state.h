/* SPDX-License-Identifier: MIT */
/*
 * What another thread of this process does at the moment: whether it runs, or
 * sleeps in a system call, in which one, and on which file.
 *
 * The kernel shows it in /proc/self/task, without a stop of that thread and
 * without rights that a process lacks. For messages: the next instant it may
 * do something else.
 *
 * Any thread; some microseconds of system calls.
 */
#ifndef PIN_HOST_THREAD_STATE_H
#define PIN_HOST_THREAD_STATE_H

#include <stddef.h>
#include <stdint.h>

enum pin_thread_doing {
	PIN_THREAD_UNKNOWN = 0, /* /proc does not say */
	PIN_THREAD_RUNS,	/* on a CPU, or waits for one */
	PIN_THREAD_SLEEPS,	/* in a system call, or for a page */
};

enum { PIN_THREAD_WHERE_BYTES = 320 };

struct pin_thread_state {
	enum pin_thread_doing doing;
	uint64_t cpu_ns;   /* that it has used; UINT64_MAX: not known */
	uint64_t delay_ns; /* that it has waited for a CPU, if that is known */
	/*
	 * "pread64 of /dir/file at offset 4096"; empty unless it sleeps in a
	 * call that /proc shows.
	 */
	char where[PIN_THREAD_WHERE_BYTES];
};

/* Of the calling thread, as /proc/self/task names it. */
uint32_t pin_thread_number(void);

void pin_thread_look(uint32_t thread_number, struct pin_thread_state *out_state);

/* The path of an open file, or "descriptor 7". Does not ask its file system. */
void pin_descriptor_describe(int fd, char *out, size_t bytes);

/*
 * The thread under whose number /proc shows the memory and the descriptors of a
 * process: its main thread, or another thread if that has ended.
 */
int pin_process_thread(int pid);

#endif
