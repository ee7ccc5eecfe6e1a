/* SPDX-License-Identifier: MIT */
/*
 * CRC32C, the checksum of records that a crash may tear.
 *
 * Source: RFC 3720, appendix B.4 (test vectors).
 */
#ifndef PIN_BASE_CRC32C_H
#define PIN_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Goes on from `crc`, which is 0 at first. */
uint32_t pin_crc32c(uint32_t crc, const void *bytes, size_t length);

#endif
