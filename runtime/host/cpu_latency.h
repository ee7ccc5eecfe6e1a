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
 * It is the idle driver that heeds it. Where there is none, as on some virtual
 * machines, idle CPUs halt whatever was asked for, and the kernel does not say.
 *
 * Called once per runtime, on any thread.
 *
 * Source: of the kernel's documents power/pm_qos_interface.
 */
#ifndef PIN_HOST_CPU_LATENCY_H
#define PIN_HOST_CPU_LATENCY_H

#include <stdbool.h>
#include <stdint.h>

/* Of sysfs: the idle driver's name, or "none". */
#define PIN_CPU_IDLE_DRIVER "/sys/devices/system/cpu/cpuidle/current_driver"

/*
 * Returns the descriptor, or what open(2) or write(2) failed with; -EOPNOTSUPP:
 * there is nobody to heed it.
 */
int pin_cpu_latency_ask(uint32_t latency_us);

/* `path`: PIN_CPU_IDLE_DRIVER. Also true where that cannot be found out. */
bool pin_cpu_latency_is_heeded(const char *path);

void pin_cpu_latency_drop(int fd);

#endif
