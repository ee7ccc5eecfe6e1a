/* SPDX-License-Identifier: MIT */
/*
 * Atomics with the memory order in the name.
 *
 * The only file that includes <stdatomic.h>, so that every atomic access of
 * the library passes one seam: a model build defines PIN_ATOMIC_MODEL and
 * supplies runtime/base/atomic.h's operations from tests/model, where each is
 * a scheduling point of an interleaving explorer.
 *
 * Shared fields are declared with the types below; a plain access to them does
 * not compile, because each is a struct around its value.
 */
#ifndef PIN_BASE_ATOMIC_H
#define PIN_BASE_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

#ifdef PIN_ATOMIC_MODEL
#include "tests/model/atomic_model.h"
#else

#include <stdatomic.h>

struct pin_atomic_u32 {
	_Atomic uint32_t value;
};

struct pin_atomic_u64 {
	_Atomic uint64_t value;
};

#define PIN_ATOMIC_DEFINE(suffix, type, scalar) \
	static inline scalar pin_load_relaxed_##suffix(const type *atomic) \
	{ \
		return atomic_load_explicit(&atomic->value, memory_order_relaxed); \
	} \
	static inline scalar pin_load_acquire_##suffix(const type *atomic) \
	{ \
		return atomic_load_explicit(&atomic->value, memory_order_acquire); \
	} \
	static inline void pin_store_relaxed_##suffix(type *atomic, scalar value) \
	{ \
		atomic_store_explicit(&atomic->value, value, memory_order_relaxed); \
	} \
	static inline void pin_store_release_##suffix(type *atomic, scalar value) \
	{ \
		atomic_store_explicit(&atomic->value, value, memory_order_release); \
	} \
	static inline scalar pin_exchange_acq_rel_##suffix(type *atomic, scalar value) \
	{ \
		return atomic_exchange_explicit(&atomic->value, value, memory_order_acq_rel); \
	} \
	static inline scalar pin_exchange_seq_cst_##suffix(type *atomic, scalar value) \
	{ \
		return atomic_exchange_explicit(&atomic->value, value, memory_order_seq_cst); \
	} \
	static inline bool pin_cas_acquire_##suffix(type *atomic, scalar *expected, scalar value) \
	{ \
		return atomic_compare_exchange_strong_explicit(&atomic->value, expected, value, \
			memory_order_acquire, memory_order_relaxed); \
	} \
	static inline bool pin_cas_acq_rel_##suffix(type *atomic, scalar *expected, scalar value) \
	{ \
		return atomic_compare_exchange_strong_explicit(&atomic->value, expected, value, \
			memory_order_acq_rel, memory_order_relaxed); \
	} \
	static inline bool pin_cas_seq_cst_##suffix(type *atomic, scalar *expected, scalar value) \
	{ \
		return atomic_compare_exchange_strong_explicit(&atomic->value, expected, value, \
			memory_order_seq_cst, memory_order_relaxed); \
	} \
	static inline scalar pin_fetch_add_relaxed_##suffix(type *atomic, scalar value) \
	{ \
		return atomic_fetch_add_explicit(&atomic->value, value, memory_order_relaxed); \
	} \
	static inline scalar pin_fetch_add_acq_rel_##suffix(type *atomic, scalar value) \
	{ \
		return atomic_fetch_add_explicit(&atomic->value, value, memory_order_acq_rel); \
	} \
	static inline scalar pin_fetch_add_seq_cst_##suffix(type *atomic, scalar value) \
	{ \
		return atomic_fetch_add_explicit(&atomic->value, value, memory_order_seq_cst); \
	} \
	static inline scalar pin_fetch_sub_acq_rel_##suffix(type *atomic, scalar value) \
	{ \
		return atomic_fetch_sub_explicit(&atomic->value, value, memory_order_acq_rel); \
	} \
	static inline scalar pin_fetch_sub_seq_cst_##suffix(type *atomic, scalar value) \
	{ \
		return atomic_fetch_sub_explicit(&atomic->value, value, memory_order_seq_cst); \
	} \
	static inline scalar pin_fetch_or_seq_cst_##suffix(type *atomic, scalar value) \
	{ \
		return atomic_fetch_or_explicit(&atomic->value, value, memory_order_seq_cst); \
	} \
	static inline scalar pin_fetch_and_seq_cst_##suffix(type *atomic, scalar value) \
	{ \
		return atomic_fetch_and_explicit(&atomic->value, value, memory_order_seq_cst); \
	}

PIN_ATOMIC_DEFINE(u32, struct pin_atomic_u32, uint32_t)
PIN_ATOMIC_DEFINE(u64, struct pin_atomic_u64, uint64_t)

static inline void pin_fence_seq_cst(void)
{
	atomic_thread_fence(memory_order_seq_cst);
}

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PIN_ATOMIC_IS_WATCHED
#endif
#elif defined(__SANITIZE_THREAD__)
#define PIN_ATOMIC_IS_WATCHED
#endif

/*
 * Adds, by the only thread that writes the word: no locked instruction. On
 * x86-64, where each store is a release, it is a single instruction; compilers
 * would make three of a load and a store.
 */
static inline void pin_add_own_release_u64(struct pin_atomic_u64 *atomic, uint64_t amount)
{
#if defined(__x86_64__) && !defined(PIN_ATOMIC_IS_WATCHED)
	uint64_t *word = (uint64_t *)(void *)&atomic->value;

	__asm__ volatile("addq %1, %0" : "+m"(*word) : "er"(amount) : "memory", "cc");
#else
	pin_store_release_u64(atomic, pin_load_relaxed_u64(atomic) + amount);
#endif
}

/*
 * Holds the compiler only. A full fence together with the host's fence_all on
 * the other side, which makes every other thread pass one.
 */
static inline void pin_fence_light(void)
{
	atomic_signal_fence(memory_order_seq_cst);
}

#endif

#ifdef PIN_ATOMIC_MODEL
static inline void pin_add_own_release_u64(struct pin_atomic_u64 *atomic, uint64_t amount)
{
	pin_store_release_u64(atomic, pin_load_relaxed_u64(atomic) + amount);
}
#endif

#endif
