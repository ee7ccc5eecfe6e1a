/* SPDX-License-Identifier: MIT */
/*
 * The real sched/deque.c, its way to steal in FIFO order laid open for a twin
 * that uses it in LIFO order.
 */
#include "tests/model/deque_model.h"

#include "runtime/sched/deque.c"

uint32_t model_deque_steal_half(
	struct pin_deque *from, struct pin_deque *to, struct pin_link **out_link)
{
	return steal_half(from, to, out_link);
}
