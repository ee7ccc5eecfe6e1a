/* SPDX-License-Identifier: MIT */
/*
 * The contents of runtime/base/atomic.h in a model build: the same types and
 * operations, each reported to the explorer together with the name of its
 * function, by which a mutant can spoil it. The programs of the other engine,
 * Relacy, are the only ones in C++.
 */
#ifndef MODEL_ATOMIC_MODEL_H
#define MODEL_ATOMIC_MODEL_H

#ifdef __cplusplus
#include "tests/model/relacy/atomics.h"
#else

#include "tests/model/memory.h"

struct pin_atomic_u32 {
	uint32_t value;
};

struct pin_atomic_u64 {
	uint64_t value;
};

#define MODEL_DEFINE(suffix, type, scalar) \
	static inline scalar model_load_##suffix( \
		const type *atomic, enum model_order order, const char *site) \
	{ \
		return (scalar)model_load(&atomic->value, sizeof(scalar), order, site); \
	} \
	static inline void model_store_##suffix( \
		type *atomic, scalar value, enum model_order order, const char *site) \
	{ \
		model_store(&atomic->value, sizeof(scalar), value, order, site); \
	} \
	static inline scalar model_update_##suffix(type *atomic, enum model_update update, \
		scalar operand, enum model_order order, const char *site) \
	{ \
		return (scalar)model_update( \
			&atomic->value, sizeof(scalar), update, operand, order, site); \
	} \
	static inline bool model_cas_##suffix(type *atomic, scalar *expected, scalar value, \
		enum model_order order, const char *site) \
	{ \
		uint64_t wide = *expected; \
		bool is_done = \
			model_cas(&atomic->value, sizeof(scalar), &wide, value, order, site); \
\
		*expected = (scalar)wide; \
		return is_done; \
	}

MODEL_DEFINE(u32, struct pin_atomic_u32, uint32_t)
MODEL_DEFINE(u64, struct pin_atomic_u64, uint64_t)

#define pin_load_relaxed_u32(atomic) model_load_u32(atomic, MODEL_ORDER_RELAXED, __func__)
#define pin_load_acquire_u32(atomic) model_load_u32(atomic, MODEL_ORDER_ACQUIRE, __func__)
#define pin_store_relaxed_u32(atomic, value) \
	model_store_u32(atomic, value, MODEL_ORDER_RELAXED, __func__)
#define pin_store_release_u32(atomic, value) \
	model_store_u32(atomic, value, MODEL_ORDER_RELEASE, __func__)
#define pin_exchange_acq_rel_u32(atomic, value) \
	model_update_u32(atomic, MODEL_EXCHANGE, value, MODEL_ORDER_ACQ_REL, __func__)
#define pin_exchange_seq_cst_u32(atomic, value) \
	model_update_u32(atomic, MODEL_EXCHANGE, value, MODEL_ORDER_SEQ_CST, __func__)
#define pin_fetch_add_relaxed_u32(atomic, value) \
	model_update_u32(atomic, MODEL_ADD, value, MODEL_ORDER_RELAXED, __func__)
#define pin_fetch_add_acq_rel_u32(atomic, value) \
	model_update_u32(atomic, MODEL_ADD, value, MODEL_ORDER_ACQ_REL, __func__)
#define pin_fetch_add_seq_cst_u32(atomic, value) \
	model_update_u32(atomic, MODEL_ADD, value, MODEL_ORDER_SEQ_CST, __func__)
#define pin_fetch_sub_acq_rel_u32(atomic, value) \
	model_update_u32(atomic, MODEL_SUB, value, MODEL_ORDER_ACQ_REL, __func__)
#define pin_fetch_sub_seq_cst_u32(atomic, value) \
	model_update_u32(atomic, MODEL_SUB, value, MODEL_ORDER_SEQ_CST, __func__)
#define pin_fetch_or_seq_cst_u32(atomic, value) \
	model_update_u32(atomic, MODEL_OR, value, MODEL_ORDER_SEQ_CST, __func__)
#define pin_fetch_and_seq_cst_u32(atomic, value) \
	model_update_u32(atomic, MODEL_AND, value, MODEL_ORDER_SEQ_CST, __func__)
#define pin_cas_acquire_u32(atomic, expected, value) \
	model_cas_u32(atomic, expected, value, MODEL_ORDER_ACQUIRE, __func__)
#define pin_cas_acq_rel_u32(atomic, expected, value) \
	model_cas_u32(atomic, expected, value, MODEL_ORDER_ACQ_REL, __func__)
#define pin_cas_seq_cst_u32(atomic, expected, value) \
	model_cas_u32(atomic, expected, value, MODEL_ORDER_SEQ_CST, __func__)

#define pin_load_relaxed_u64(atomic) model_load_u64(atomic, MODEL_ORDER_RELAXED, __func__)
#define pin_load_acquire_u64(atomic) model_load_u64(atomic, MODEL_ORDER_ACQUIRE, __func__)
#define pin_store_relaxed_u64(atomic, value) \
	model_store_u64(atomic, value, MODEL_ORDER_RELAXED, __func__)
#define pin_store_release_u64(atomic, value) \
	model_store_u64(atomic, value, MODEL_ORDER_RELEASE, __func__)
#define pin_exchange_acq_rel_u64(atomic, value) \
	model_update_u64(atomic, MODEL_EXCHANGE, value, MODEL_ORDER_ACQ_REL, __func__)
#define pin_exchange_seq_cst_u64(atomic, value) \
	model_update_u64(atomic, MODEL_EXCHANGE, value, MODEL_ORDER_SEQ_CST, __func__)
#define pin_fetch_add_relaxed_u64(atomic, value) \
	model_update_u64(atomic, MODEL_ADD, value, MODEL_ORDER_RELAXED, __func__)
#define pin_fetch_add_acq_rel_u64(atomic, value) \
	model_update_u64(atomic, MODEL_ADD, value, MODEL_ORDER_ACQ_REL, __func__)
#define pin_fetch_add_seq_cst_u64(atomic, value) \
	model_update_u64(atomic, MODEL_ADD, value, MODEL_ORDER_SEQ_CST, __func__)
#define pin_fetch_sub_acq_rel_u64(atomic, value) \
	model_update_u64(atomic, MODEL_SUB, value, MODEL_ORDER_ACQ_REL, __func__)
#define pin_fetch_sub_seq_cst_u64(atomic, value) \
	model_update_u64(atomic, MODEL_SUB, value, MODEL_ORDER_SEQ_CST, __func__)
#define pin_fetch_or_seq_cst_u64(atomic, value) \
	model_update_u64(atomic, MODEL_OR, value, MODEL_ORDER_SEQ_CST, __func__)
#define pin_fetch_and_seq_cst_u64(atomic, value) \
	model_update_u64(atomic, MODEL_AND, value, MODEL_ORDER_SEQ_CST, __func__)
#define pin_cas_acquire_u64(atomic, expected, value) \
	model_cas_u64(atomic, expected, value, MODEL_ORDER_ACQUIRE, __func__)
#define pin_cas_acq_rel_u64(atomic, expected, value) \
	model_cas_u64(atomic, expected, value, MODEL_ORDER_ACQ_REL, __func__)
#define pin_cas_seq_cst_u64(atomic, expected, value) \
	model_cas_u64(atomic, expected, value, MODEL_ORDER_SEQ_CST, __func__)

#define pin_fence_seq_cst() model_fence(__func__)
#define pin_fence_light() ((void)0)

#endif

#endif
