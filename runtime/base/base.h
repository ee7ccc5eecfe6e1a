/* SPDX-License-Identifier: MIT */
/*
 * Sizes, alignment and the few macros everything else leans on.
 */
#ifndef PIN_BASE_BASE_H
#define PIN_BASE_BASE_H

#include "runtime/base/check.h"

#include <stddef.h>
#include <stdint.h>

/* Two 64-byte lines: adjacent-line prefetchers make neighbours share fate. */
#define PIN_CACHE_LINE 128
#define PIN_CACHE_ALIGNED __attribute__((aligned(PIN_CACHE_LINE)))

#define PIN_PAGE_BYTES 4096u
#define PIN_HUGE_PAGE_BYTES (2u << 20)

#define PIN_CONTAINER_OF(pointer, type, member) \
	((type *)(void *)((char *)(pointer)-offsetof(type, member)))

#define PIN_ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define PIN_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define PIN_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/*
 * How the compiler places a function relative to the hot path that calls it.
 * APART: it stays one, so that the path does not save registers for it; it may
 * be called often. COLD: hardly ever called, so it is placed far from the path,
 * and the branch to it counts as not taken. INLINE: part of the path, though
 * others call it as well.
 */
#define PIN_APART __attribute__((noinline))
#define PIN_COLD __attribute__((cold))
#define PIN_INLINE inline __attribute__((always_inline))

/* Thread-local without a call in a shared library; a few bytes at most. */
#define PIN_TLS_INITIAL __attribute__((tls_model("initial-exec")))

/* A moment for the other hardware thread of a core; what spins calls it. */
static inline void pin_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
	__asm__ volatile("yield");
#endif
}

/* Asks for a line that is soon read, and does not wait for it. */
static inline void pin_prefetch(const void *address)
{
	__builtin_prefetch(address, 0);
}

/* The same for a line that is soon written to. */
static inline void pin_prefetch_write(const void *address)
{
#if defined(__x86_64__)
	/* The builtin asks for reading, unless newer CPUs are meant. */
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)address));
#else
	__builtin_prefetch(address, 1);
#endif
}

static inline int pin_is_power_of_two(uint64_t value)
{
	return value != 0 && (value & (value - 1)) == 0;
}

/* `align` is a power of two. */
static inline uint64_t pin_round_up(uint64_t value, uint64_t align)
{
	PIN_DCHECK(pin_is_power_of_two(align));
	PIN_DCHECK(value <= UINT64_MAX - (align - 1));
	return (value + align - 1) & ~(align - 1);
}

static inline uint64_t pin_round_down(uint64_t value, uint64_t align)
{
	PIN_DCHECK(pin_is_power_of_two(align));
	return value & ~(align - 1);
}

static inline uint64_t pin_min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* 0 where the parts are more: counts that were read one after the other. */
static inline uint64_t pin_rest_u64(uint64_t whole, uint64_t parts)
{
	return whole > parts ? whole - parts : 0;
}

static inline uint32_t pin_min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* ---- sanitizers ---- */

#if defined(__SANITIZE_ADDRESS__)
#define PIN_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PIN_ASAN 1
#endif
#endif

#if defined(__SANITIZE_THREAD__)
#define PIN_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PIN_TSAN 1
#endif
#endif

/*
 * Marks for AddressSanitizer in its builds: memory that no code may touch for
 * now. Elsewhere these do nothing.
 */

#ifdef PIN_ASAN
#include <sanitizer/asan_interface.h>
#define PIN_ASAN_POISON(address, bytes) ASAN_POISON_MEMORY_REGION(address, bytes)
#define PIN_ASAN_UNPOISON(address, bytes) ASAN_UNPOISON_MEMORY_REGION(address, bytes)
#else
#define PIN_ASAN_POISON(address, bytes) ((void)(address), (void)(bytes))
#define PIN_ASAN_UNPOISON(address, bytes) ((void)(address), (void)(bytes))
#endif

/* ---- range ---- */

/*
 * A range of indices, from `first` up to but not including `end`.
 */

struct pin_range {
	uint32_t first;
	uint32_t end;
};

static inline uint32_t pin_range_count(struct pin_range range)
{
	PIN_DCHECK(range.first <= range.end);
	return range.end - range.first;
}

#endif
