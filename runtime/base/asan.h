/* SPDX-License-Identifier: MIT */
/*
 * What AddressSanitizer is told in its builds: memory that nobody may touch for
 * now. Elsewhere these do nothing.
 */
#ifndef PIN_BASE_ASAN_H
#define PIN_BASE_ASAN_H

#if defined(__SANITIZE_ADDRESS__)
#define PIN_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PIN_ASAN 1
#endif
#endif

#ifdef PIN_ASAN
#include <sanitizer/asan_interface.h>
#define PIN_ASAN_POISON(address, bytes) ASAN_POISON_MEMORY_REGION(address, bytes)
#define PIN_ASAN_UNPOISON(address, bytes) ASAN_UNPOISON_MEMORY_REGION(address, bytes)
#else
#define PIN_ASAN_POISON(address, bytes) ((void)(address), (void)(bytes))
#define PIN_ASAN_UNPOISON(address, bytes) ((void)(address), (void)(bytes))
#endif

#endif
