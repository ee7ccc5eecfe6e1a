/* SPDX-License-Identifier: MIT */
/*
 * PCRE2 over parts of a file.
 */
#include "tools/scan/confirm.h"

#include <stdlib.h>

void confirm_regex_destroy(struct confirm_regex *regex)
{
	free(regex);
}
