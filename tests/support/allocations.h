/* SPDX-License-Identifier: MIT */
/*
 * Counts what allocates, frees or maps memory, on all threads, while a test
 * says so: malloc and its kin are the program's own, and pass each call on. A
 * sanitizer has its own malloc; then there is nothing to count.
 *
 * Included by one file of a program.
 */
#ifndef PIN_TESTS_SUPPORT_ALLOCATIONS_H
#define PIN_TESTS_SUPPORT_ALLOCATIONS_H

#include "tests/support/expect.h"

#include "runtime/base/atomic.h"

#include <errno.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct pin_atomic_u32 allocations_are_counted;
static struct pin_atomic_u32 allocations_count;

static inline void allocations_begin(void)
{
	pin_store_release_u32(&allocations_count, 0);
	pin_store_release_u32(&allocations_are_counted, 1);
}

static inline void allocations_expect_none(void)
{
	pin_store_release_u32(&allocations_are_counted, 0);
	expect_number(
		"calls that allocate, free or map", 0, pin_load_acquire_u32(&allocations_count));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define ALLOCATIONS_CAN_COUNT true

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *memory);

static inline void allocations_note(void)
{
	if (pin_load_acquire_u32(&allocations_are_counted) != 0) {
		pin_fetch_add_acq_rel_u32(&allocations_count, 1);
	}
}

void *malloc(size_t size)
{
	allocations_note();
	return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	allocations_note();
	return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
	allocations_note();
	return __libc_realloc(memory, size);
}

void *memalign(size_t align, size_t size)
{
	allocations_note();
	return __libc_memalign(align, size);
}

void *aligned_alloc(size_t align, size_t size)
{
	allocations_note();
	return __libc_memalign(align, size);
}

int posix_memalign(void **out_memory, size_t align, size_t size)
{
	allocations_note();
	*out_memory = __libc_memalign(align, size);
	return *out_memory != NULL ? 0 : ENOMEM;
}

void free(void *memory)
{
	allocations_note();
	__libc_free(memory);
}

void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
	allocations_note();
	return (void *)syscall(SYS_mmap, address, length, protection, flags, fd, offset);
}

int munmap(void *address, size_t length)
{
	allocations_note();
	return (int)syscall(SYS_munmap, address, length);
}

/* A planted call is counted. */
static inline void allocations_check_counting(void)
{
	void *volatile memory;

	allocations_begin();
	memory = malloc(1);
	free(memory);
	expect_number(
		"calls of a planted malloc and free", 2, pin_load_acquire_u32(&allocations_count));
	pin_store_release_u32(&allocations_are_counted, 0);
}
#else
#define ALLOCATIONS_CAN_COUNT false

static inline void allocations_check_counting(void)
{
}
#endif

#endif
