/* SPDX-License-Identifier: MIT */
/*
 * The commands of the program, each defined in command.c of the folder of its
 * name, or in the file of its name.
 */
#ifndef PINION_TOOLS_COMMANDS_H
#define PINION_TOOLS_COMMANDS_H

#include "tools/options.h"

extern const struct command bench_command;
extern const struct command doctor_command;
extern const struct command merge_command;
extern const struct command rules_command;
extern const struct command scan_command;
extern const struct command sum_command;
extern const struct command top_command;
extern const struct command trace_command;

#endif
