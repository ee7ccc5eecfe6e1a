/* SPDX-License-Identifier: MIT */
/*
 * The real sched/deque.c, its slots on the model's heap, and its way to steal
 * in FIFO order laid open for a twin that uses it in LIFO order.
 */
#include "tests/model/deque_model.h"
#include "tests/model/heap.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

static void *zeroed(size_t count, size_t bytes)
{
	return memset(model_aligned_alloc(alignof(max_align_t), count * bytes), 0, count * bytes);
}

#define calloc zeroed
#define free model_free

#include "runtime/sched/deque.c"

uint32_t model_deque_steal_half(
	struct pin_deque *from, struct pin_deque *to, struct pin_link **out_link)
{
	return steal_half(from, to, out_link);
}
