/* SPDX-License-Identifier: MIT */
/*
 * Credentials that open nothing: those that issuers print in their own
 * documentation, keys of their test modes, and placeholders, such as words or
 * rows of the same letter. They are in every tutorial and test, so a scan
 * leaves them out unless it is asked for them.
 */
#ifndef PINION_TOOLS_SCAN_EXAMPLES_H
#define PINION_TOOLS_SCAN_EXAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether what the built-in rule of that name found is an example. */
bool examples_include(const char *rule_id, const uint8_t *bytes, size_t length);

#endif
