/* SPDX-License-Identifier: MIT */
/*
 * The real queue/deque.c, its way to steal in FIFO order laid open for a mutant
 * that uses it in LIFO order, and a thief that tries once to release its claim.
 */
#include "tests/model/queue/deque_model.h"
#include "tests/model/explorer.h"

/* SKIP: a failed compare-and-swap is not repeated. */
static bool cas(struct pin_atomic_u64 *atomic, uint64_t *expected, uint64_t value, const char *site)
{
	bool is_done = model_cas_u64(atomic, expected, value, MODEL_ORDER_SEQ_CST, site);

	return is_done || model_is_spoilt(MODEL_SKIP, site, "pin_cas_seq_cst_u64");
}

#undef pin_cas_seq_cst_u64
#define pin_cas_seq_cst_u64(atomic, expected, value) cas(atomic, expected, value, __func__)
#include "runtime/queue/deque.c"

uint32_t model_deque_steal_half(
	struct pin_deque *from, struct pin_deque *to, struct pin_link **out_link)
{
	return steal_half(from, to, out_link);
}
