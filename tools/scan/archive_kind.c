/* SPDX-License-Identifier: MIT */
/*
 * Magic numbers; of tar without one the checksum of its first header.
 */
#include "tools/scan/archive_kind.h"

#include <string.h>
#include <strings.h>

enum {
	TAR_HEADER_BYTES = 512,
	TAR_SUM_AT = 148,
	TAR_SUM_BYTES = 8,
	TAR_MAGIC_AT = 257,
};

static const struct {
	enum archive_kind kind;
	uint16_t at;
	uint16_t length;
	const char *bytes;
} magics[] = {
	{ARCHIVE_KIND_COMPRESSED, 0, 3, "\x1f\x8b\x08"},     /* gzip */
	{ARCHIVE_KIND_COMPRESSED, 0, 6, "\3757zXZ\0"},	     /* xz */
	{ARCHIVE_KIND_COMPRESSED, 0, 4, "\x28\xb5\x2f\xfd"}, /* zstd */
	{ARCHIVE_KIND_COMPRESSED, 0, 4, "\x04\x22\x4d\x18"}, /* lz4 */
	{ARCHIVE_KIND_COMPRESSED, 0, 5, "LZIP\1"},
	{ARCHIVE_KIND_COMPRESSED, 0, 3, "\x1f\x9d\x90"}, /* compress */
	{ARCHIVE_KIND_STREAM, 0, 4, "\xed\xab\xee\xdb"}, /* rpm */
	{ARCHIVE_KIND_STREAM, TAR_MAGIC_AT, 5, "ustar"},
	{ARCHIVE_KIND_STREAM, 0, 8, "!<arch>\n"},      /* ar, deb */
	{ARCHIVE_KIND_SEEKING, 0, 4, "PK\3\4"},	       /* zip */
	{ARCHIVE_KIND_SEEKING, 0, 4, "PK\5\6"},	       /* an empty one */
	{ARCHIVE_KIND_SEEKING, 0, 8, "PK\7\10PK\3\4"}, /* a part of one */
	{ARCHIVE_KIND_SEEKING, 0, 6, "7z\xbc\xaf\x27\x1c"},
};

/* A digit after "BZh", and the start of a block or of the end. */
static bool is_bzip2(const uint8_t *bytes, size_t length)
{
	return length >= 10 && memcmp(bytes, "BZh", 3) == 0 && bytes[3] >= '1' && bytes[3] <= '9' &&
		(memcmp(bytes + 4, "1AY&SY", 6) == 0 ||
			memcmp(bytes + 4, "\x17\x72\x45\x38\x50\x90", 6) == 0);
}

/* A header of digits alone: text that begins so is no archive. */
static bool is_cpio(const uint8_t *bytes, size_t length)
{
	enum { NEW_BYTES = 110, OLD_BYTES = 76 };
	static const char digits[] = "0123456789ABCDEFabcdef";
	bool is_new = length >= NEW_BYTES &&
		(memcmp(bytes, "070701", 6) == 0 || memcmp(bytes, "070702", 6) == 0);
	bool is_old = length >= OLD_BYTES && memcmp(bytes, "070707", 6) == 0;

	if (!is_new && !is_old) {
		return false;
	}
	for (size_t i = 0; i < (is_new ? NEW_BYTES : OLD_BYTES); i++) {
		if (memchr(digits, bytes[i], is_new ? sizeof(digits) - 1 : 8) == NULL) {
			return false;
		}
	}
	return true;
}

/* The sum of the header's bytes, with spaces in place of the sum itself. */
static bool has_tar_sum(const uint8_t *bytes, size_t length)
{
	unsigned long sum = 0;
	unsigned long written = 0;
	size_t digits = 0;

	if (length < TAR_HEADER_BYTES || bytes[0] == 0) {
		return false;
	}
	for (size_t i = TAR_SUM_AT; i < TAR_SUM_AT + TAR_SUM_BYTES; i++) {
		if (bytes[i] >= '0' && bytes[i] <= '7') {
			written = written * 8 + (unsigned long)(bytes[i] - '0');
			digits++;
		} else if (digits > 0 || bytes[i] != ' ') {
			break;
		}
	}
	if (digits < 4) {
		return false;
	}
	for (size_t i = 0; i < TAR_HEADER_BYTES; i++) {
		bool is_sum = i >= TAR_SUM_AT && i < TAR_SUM_AT + TAR_SUM_BYTES;

		sum += is_sum ? ' ' : bytes[i];
	}
	return sum == written;
}

enum archive_kind archive_kind_of(const uint8_t *bytes, size_t length)
{
	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++) {
		size_t end = (size_t)magics[i].at + magics[i].length;

		if (length >= end &&
			memcmp(bytes + magics[i].at, magics[i].bytes, magics[i].length) == 0) {
			return magics[i].kind;
		}
	}
	if (is_bzip2(bytes, length)) {
		return ARCHIVE_KIND_COMPRESSED;
	}
	return is_cpio(bytes, length) || has_tar_sum(bytes, length) ? ARCHIVE_KIND_STREAM
								    : ARCHIVE_KIND_NONE;
}

size_t archive_kind_inner_name(const char *path, size_t path_bytes, const char **out_name)
{
	static const char *const suffixes[] = {".gz", ".bz2", ".xz", ".zst", ".lz4", ".lz", ".Z"};
	size_t start = path_bytes;

	while (start > 0 && path[start - 1] != '/' && path[start - 1] != '!') {
		start--;
	}
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		size_t length = strlen(suffixes[i]);

		if (path_bytes - start > length &&
			strncasecmp(path + path_bytes - length, suffixes[i], length) == 0) {
			*out_name = path + start;
			return path_bytes - start - length;
		}
	}
	return 0;
}
