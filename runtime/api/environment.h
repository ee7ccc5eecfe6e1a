/* SPDX-License-Identifier: MIT */
/*
 * Variables that begin with PINION_ and that nobody reads: a misspelt one would
 * else do nothing, and nobody would know.
 *
 * Elsewhere: which variables the configuration has, and their values, is
 * config.c's.
 */
#ifndef PIN_API_ENVIRONMENT_H
#define PIN_API_ENVIRONMENT_H

#include "runtime/base/log.h"

#include <stddef.h>

/*
 * Warns of each, in a line with the name that is nearest to it, of `names` and
 * of those that others read. Once in a process, the first time that there is a
 * log. Context: any thread; not while another changes the environment.
 */
void pin_environment_warn(const struct pin_log *log, const char *const *names, size_t count);

#endif
