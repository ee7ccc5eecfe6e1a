/* SPDX-License-Identifier: MIT */
/*
 * A file of YARA rules compiled, with the files that it includes, each beside
 * the one that includes it. These are read as files of rules are, with the same
 * limits.
 */
#ifndef PINION_TOOLS_SCAN_YARA_COMPILE_H
#define PINION_TOOLS_SCAN_YARA_COMPILE_H

#include "tools/scan/yara_rules.h"

#if defined(HAVE_YARA)
/*
 * Of reader->rules->yara->sources, whose index is the name of the namespace.
 * Returns 0; -EINVAL after remarks; or -ENOMEM.
 */
int yara_compile_file(const struct rules_reader *reader, YR_COMPILER *compiler, size_t index);
#endif

#endif
