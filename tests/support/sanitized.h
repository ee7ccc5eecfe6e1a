/* SPDX-License-Identifier: MIT */
/*
 * Whether this build is one under AddressSanitizer or ThreadSanitizer, in which
 * a program takes some ten times as long and stacks cannot be changed at will.
 */
#ifndef PIN_TESTS_SUPPORT_SANITIZED_H
#define PIN_TESTS_SUPPORT_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED_BUILD true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED_BUILD true
#endif
#endif
#ifndef SANITIZED_BUILD
#define SANITIZED_BUILD false
#endif

#endif
