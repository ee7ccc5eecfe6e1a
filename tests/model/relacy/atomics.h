/* SPDX-License-Identifier: MIT */
/*
 * What runtime/base/atomic.h consists of in a program of Relacy's: the same
 * types and operations on top of rl::atomic, each with the order of its name.
 * C++, and so are the product's sources that such a program includes; what C++
 * does not know of them is defined here.
 *
 * Every operation knows the function it is in, by which a mutant can spoil it,
 * and Relacy's history shows it.
 */
#ifndef MODEL_RELACY_ATOMICS_H
#define MODEL_RELACY_ATOMICS_H

/* Relacy gives these names other meanings, so their headers come first. */
#include <errno.h>
#include <liburing.h>
#include <pthread.h>
#include <stdlib.h>

#include <relacy/relacy.hpp>

/* … and the product's sources use some of them as they were. */
#undef assert
#undef calloc
#undef delete
#undef errno
#undef free
#undef malloc
#undef memory_order_acq_rel
#undef memory_order_acquire
#undef memory_order_consume
#undef memory_order_relaxed
#undef memory_order_release
#undef memory_order_seq_cst
#undef new
#undef realloc

#define _Noreturn [[noreturn]]
#define _Static_assert static_assert

#include "tests/model/explorer.h"

/* ---- plain memory ---- */

/*
 * A plain field whose races are reported. The build puts the pointers of
 * runtime/base/list.h into it.
 */
template <typename T> struct model_plain {
	rl::var<T> value;

	model_plain() : value(T())
	{
	}
	model_plain(T initial) : value(initial)
	{
	}
	model_plain(const model_plain &other) : value(static_cast<T>(other))
	{
	}
	model_plain &operator=(const model_plain &other)
	{
		return *this = static_cast<T>(other);
	}
	model_plain &operator=(T wanted)
	{
		value(RL_INFO) = wanted;
		return *this;
	}
	operator T() const
	{
		return value(RL_INFO);
	}
	T operator->() const
	{
		return value(RL_INFO);
	}
};

/* The heap: an array of what it is assigned to, whose atomics are made. */
struct model_array {
	size_t count;

	template <typename T> operator T *() const
	{
		return rl::new_arr_impl<T>(count, RL_INFO);
	}
};

#define calloc(count, bytes) (model_array{(count) + 0 * (bytes)})
#define free(memory) rl::delete_arr_impl(memory, RL_INFO)

/* ---- atomics ---- */

static inline bool model_has_acquire(rl::memory_order order)
{
	return order == rl::mo_acquire || order == rl::mo_acq_rel || order == rl::mo_seq_cst;
}

static inline bool model_has_release(rl::memory_order order)
{
	return order == rl::mo_release || order == rl::mo_acq_rel || order == rl::mo_seq_cst;
}

/* RELAXED: no order is left. A relaxed operation has none to lose. */
static inline rl::memory_order model_order_at(rl::memory_order order, const rl::debug_info &site)
{
	return order != rl::mo_relaxed && model_is_spoilt(MODEL_RELAXED, site.func_, NULL)
		? rl::mo_relaxed
		: order;
}

template <typename T> struct model_atomic {
	mutable rl::atomic<T> value;

	/* As calloc() and initialisers leave it. */
	model_atomic() : value(0)
	{
	}
	model_atomic(const model_atomic &other) : value(other.value.debug_value())
	{
	}
	model_atomic &operator=(const model_atomic &other)
	{
		value.store(other.value.debug_value(), rl::mo_relaxed, RL_INFO);
		return *this;
	}

	/* SKIP: it sees nothing. */
	T load(rl::memory_order order, const rl::debug_info &site) const
	{
		if (model_is_spoilt(MODEL_SKIP, site.func_, NULL)) {
			return 0;
		}
		return value.load(model_order_at(order, site), site);
	}

	void store(T wanted, rl::memory_order order, const rl::debug_info &site)
	{
		value.store(wanted, model_order_at(order, site), site);
	}

	T exchange(T wanted, rl::memory_order order, const rl::debug_info &site)
	{
		return is_torn(site) ? torn(wanted, 0, 0, order, site)
				     : value.exchange(wanted, model_order_at(order, site), site);
	}

	T add(T count, rl::memory_order order, const rl::debug_info &site)
	{
		return is_torn(site) ? torn(count, ~T(0), 0, order, site)
				     : value.fetch_add(count, model_order_at(order, site), site);
	}

	T set(T bits, rl::memory_order order, const rl::debug_info &site)
	{
		return is_torn(site) ? torn(0, ~bits, bits, order, site)
				     : value.fetch_or(bits, model_order_at(order, site), site);
	}

	T mask(T bits, rl::memory_order order, const rl::debug_info &site)
	{
		return is_torn(site) ? torn(0, bits, 0, order, site)
				     : value.fetch_and(bits, model_order_at(order, site), site);
	}

	/* NO_COMPARE: whatever it finds, it writes. */
	bool cas(T *expected, T wanted, rl::memory_order order, const rl::debug_info &site)
	{
		if (model_is_spoilt(MODEL_NO_COMPARE, site.func_, NULL)) {
			value.exchange(wanted, order, site);
			return true;
		}
		if (is_torn(site)) {
			T found = value.load(load_half(order), site);
			bool is_expected = found == *expected;

			*expected = found;
			if (is_expected) {
				value.store(wanted, store_half(order), site);
			}
			return is_expected;
		}
		return value.compare_exchange(rl::bool_t<false>(), *expected, wanted,
			model_order_at(order, site), rl::mo_relaxed, site);
	}

	/* As a futex does; never before, between the check and the sleep. */
	void sleep_while(T expected, const rl::debug_info &site)
	{
		rl::ctx().sched();
		if (value.debug_value() == expected) {
			value.wait(rl::ctx(), false, true, site);
		}
	}

	void wake(uint32_t count, const rl::debug_info &site)
	{
		rl::ctx().sched();
		value.wake(rl::ctx(), static_cast<rl::thread_id_t>(count), site);
	}

	static rl::memory_order load_half(rl::memory_order order)
	{
		return model_has_acquire(order) ? rl::mo_acquire : rl::mo_relaxed;
	}

	static rl::memory_order store_half(rl::memory_order order)
	{
		return model_has_release(order) ? rl::mo_release : rl::mo_relaxed;
	}

	static bool is_torn(const rl::debug_info &site)
	{
		return model_is_spoilt(MODEL_TORN, site.func_, NULL);
	}

	/* TORN: a load, then a store of ((found & kept) | bits) + added. */
	T torn(T added, T kept, T bits, rl::memory_order order, const rl::debug_info &site)
	{
		T found = value.load(load_half(order), site);

		value.store(((found & kept) | bits) + added, store_half(order), site);
		return found;
	}
};

struct pin_atomic_u32 : model_atomic<uint32_t> {};
struct pin_atomic_u64 : model_atomic<uint64_t> {};

#define pin_load_relaxed_u32(atomic) (atomic)->load(rl::mo_relaxed, RL_INFO)
#define pin_load_acquire_u32(atomic) (atomic)->load(rl::mo_acquire, RL_INFO)
#define pin_store_relaxed_u32(atomic, value) (atomic)->store(value, rl::mo_relaxed, RL_INFO)
#define pin_store_release_u32(atomic, value) (atomic)->store(value, rl::mo_release, RL_INFO)
#define pin_exchange_acq_rel_u32(atomic, value) (atomic)->exchange(value, rl::mo_acq_rel, RL_INFO)
#define pin_exchange_seq_cst_u32(atomic, value) (atomic)->exchange(value, rl::mo_seq_cst, RL_INFO)
#define pin_cas_acquire_u32(atomic, expected, value) \
	(atomic)->cas(expected, value, rl::mo_acquire, RL_INFO)
#define pin_cas_acq_rel_u32(atomic, expected, value) \
	(atomic)->cas(expected, value, rl::mo_acq_rel, RL_INFO)
#define pin_cas_seq_cst_u32(atomic, expected, value) \
	(atomic)->cas(expected, value, rl::mo_seq_cst, RL_INFO)
#define pin_fetch_or_seq_cst_u32(atomic, value) (atomic)->set(value, rl::mo_seq_cst, RL_INFO)
#define pin_fetch_and_seq_cst_u32(atomic, value) (atomic)->mask(value, rl::mo_seq_cst, RL_INFO)

#define pin_load_relaxed_u64 pin_load_relaxed_u32
#define pin_load_acquire_u64 pin_load_acquire_u32
#define pin_store_relaxed_u64 pin_store_relaxed_u32
#define pin_store_release_u64 pin_store_release_u32
#define pin_exchange_acq_rel_u64 pin_exchange_acq_rel_u32
#define pin_exchange_seq_cst_u64 pin_exchange_seq_cst_u32
#define pin_cas_acquire_u64 pin_cas_acquire_u32
#define pin_cas_acq_rel_u64 pin_cas_acq_rel_u32
#define pin_cas_seq_cst_u64 pin_cas_seq_cst_u32
#define pin_fetch_add_acq_rel_u64(atomic, value) (atomic)->add(value, rl::mo_acq_rel, RL_INFO)
#define pin_fetch_add_seq_cst_u64(atomic, value) (atomic)->add(value, rl::mo_seq_cst, RL_INFO)
#define pin_fetch_or_seq_cst_u64 pin_fetch_or_seq_cst_u32
#define pin_fetch_and_seq_cst_u64 pin_fetch_and_seq_cst_u32

static inline void model_fence_at(const rl::debug_info &site)
{
	if (!model_is_spoilt(MODEL_DROP_FENCE, site.func_, NULL)) {
		rl::atomic_thread_fence(rl::mo_seq_cst, site);
	}
}

#define pin_fence_seq_cst() model_fence_at(RL_INFO)
#define pin_fence_light() ((void)0)

#endif
