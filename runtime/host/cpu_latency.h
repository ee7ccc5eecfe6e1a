/* SPDX-License-Identifier: MIT */
/*
 * How long an idle CPU may take to run again, as asked of the kernel.
 *
 * A CPU with nothing to run sleeps, the deeper the longer, and what wakes it
 * has to wait: a microsecond or two from the shallowest state, some hundred
 * from the deepest, and on a virtual machine until its host has started it
 * again. The kernel heeds the smallest time that anybody asks for, for all
 * CPUs, as long as the descriptor is open. 0: idle CPUs stay awake, polling.
 *
 * Called once per runtime, on any thread.
 *
 * Source: of the kernel's documents power/pm_qos_interface.
 */
#ifndef PIN_HOST_CPU_LATENCY_H
#define PIN_HOST_CPU_LATENCY_H

#include <stdint.h>

/* Returns the descriptor, or what open(2) or write(2) failed with. */
int pin_cpu_latency_ask(uint32_t latency_us);

void pin_cpu_latency_drop(int fd);

#endif
