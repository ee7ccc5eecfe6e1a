/* SPDX-License-Identifier: MIT */
/*
 * Static probes: places at which perf(1), bpftrace(8) or SystemTap may observe
 * a running program, by names that stay; also a program that was not built for
 * it or has no symbols.
 *
 * A probe is one instruction that does nothing, and a note in the file that
 * says where it is and where its values are then. Without a tracer it costs
 * that instruction: nothing is computed for it, as the values are in memory or
 * registers anyway. So arguments are plain: no calls, no locals of their own.
 * Built without <sys/sdt.h> there are none, and they cost nothing at all.
 *
 * Names and values are in pinion_runtime(3), where they are promised.
 */
#ifndef PIN_WORKER_PROBES_H
#define PIN_WORKER_PROBES_H

/* Macros, since a name becomes part of the note. */
#if defined(HAVE_SYS_SDT_H)
#include <sys/sdt.h>
#define PIN_TRACE1(name, a) DTRACE_PROBE1(pinion, name, a)
#define PIN_TRACE2(name, a, b) DTRACE_PROBE2(pinion, name, a, b)
#define PIN_TRACE3(name, a, b, c) DTRACE_PROBE3(pinion, name, a, b, c)
#else
#define PIN_TRACE1(name, a) ((void)sizeof(a))
#define PIN_TRACE2(name, a, b) ((void)sizeof(a), (void)sizeof(b))
#define PIN_TRACE3(name, a, b, c) ((void)sizeof(a), (void)sizeof(b), (void)sizeof(c))
#endif

#endif
