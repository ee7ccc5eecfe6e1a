/* SPDX-License-Identifier: MIT */
/*
 * `pinion completions SHELL`: a script that completes command lines, made from
 * the tables of options.
 */
#ifndef PINION_TOOLS_COMPLETIONS_H
#define PINION_TOOLS_COMPLETIONS_H

#include "tools/options.h"

/* `shell` is bash, zsh or fish, or NULL: not said. Returns an exit status. */
int completions_print(const char *shell, const struct command *const *commands, int count);

#endif
