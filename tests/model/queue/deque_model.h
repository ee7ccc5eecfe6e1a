/* SPDX-License-Identifier: MIT */
/*
 * What deque.c does not show: the claim of several elements in one step, which
 * is right in FIFO order only.
 */
#ifndef MODEL_DEQUE_MODEL_H
#define MODEL_DEQUE_MODEL_H

#include "runtime/queue/deque.h"

uint32_t model_deque_steal_half(
	struct pin_deque *from, struct pin_deque *to, struct pin_link **out_link);

#endif
