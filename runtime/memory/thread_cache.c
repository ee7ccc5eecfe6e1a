/* SPDX-License-Identifier: MIT */
#include "runtime/memory/pool.h"

_Thread_local struct pin_recent pin_recent PIN_TLS_INITIAL;

void pin_recent_forget(void)
{
	pin_recent.number = 0;
	pin_recent.without = 0;
}
