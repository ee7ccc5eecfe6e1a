/* SPDX-License-Identifier: MIT */
/*
 * SIGINT, SIGTERM and SIGHUP end a command early: the first one cancels its
 * work; reads that have not ended 4 s later (a device that hangs, a pipe
 * without a writer) are abandoned and the process ends with status 3. A second
 * one, half a second later or more, ends the process at once; those before are
 * part of the first, as timeout(1) sends two. SIGQUIT ends it at once, with a
 * core dump. SIGUSR1 prints a line of progress where a command counts it
 * (progress.h), and never ends a process. A file that is written meanwhile may
 * take longer (signals_begin_file()). A signal that was ignored when the
 * program started (nohup, a shell's background job) stays ignored.
 *
 * All calls but signals_interrupted() are for the main thread.
 */
#ifndef PINION_TOOLS_SIGNALS_H
#define PINION_TOOLS_SIGNALS_H

#include <pinion/scan.h>
#include <stdbool.h>

/* First of all in main(): SIGUSR1 ends nothing. */
void signals_init(void);

/*
 * From now on SIGHUP ends no command: it calls this, on a thread of its own,
 * once a signal is noticed. Before the calls below, and before the process has
 * other threads.
 */
void signals_on_reload(void (*reload)(void));

/* From now on a signal is noticed, and cancels `scan`. */
void signals_watch(struct pinion_scan *scan);

/*
 * From now on a signal is noticed, but cancels nothing: for the time before,
 * between and after scans. The one watched so far may be destroyed afterwards.
 */
void signals_hold(void);

/*
 * Signals do again what they did before the first of the calls above. Once one
 * has come they do nothing more: the process is about to end.
 */
void signals_release(void);

/*
 * From now on a file is written that `name` stands for in messages: until
 * signals_end_file() and 4 s beyond, the first signal ends nothing by itself,
 * and a second one says that the file is not written. The string stays until
 * signals_end_file().
 */
void signals_begin_file(const char *name);
void signals_end_file(void);

/*
 * The same of a draft, which make() creates and may name: a signal that ends
 * the process removes it, and comes before it is there or after make() has
 * returned. Returns what make() does; negative: there is no draft.
 */
int signals_begin_draft(const char *name, const char *draft, int (*make)(void *arg), void *arg);

/* True once a signal has come. */
bool signals_interrupted(void);

/* Readable once a signal has come, for poll(2). -1 where none is noticed. */
int signals_fd(void);

#endif
