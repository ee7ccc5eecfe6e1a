/* SPDX-License-Identifier: MIT */
/*
 * A folder of the user's own for results that are costly to make again:
 * $XDG_CACHE_HOME/pinion or ~/.cache/pinion.
 *
 * Entries are trusted as though this program had just made them, so they have
 * to be this user's own:
 *
 *   1. The folder is opened without following a link, and belongs to the user,
 *      without access for others; so do its files. No option names it, and a
 *      program with another user's privileges has none.
 *   2. Each entry ends in a keyed digest (HMAC-SHA-256) of its name and its
 *      bytes. The key is random, in a file of the folder. An entry that is
 *      damaged, cut short, renamed, or another user's is ignored, and written
 *      anew by the next cache_folder_write().
 *   3. Entries are written whole beside their place and renamed, so that
 *      programs that run at the same time see one or the other.
 *
 * All entries together take at most CACHE_FOLDER_BYTES_MAX; the oldest go.
 * Nothing here is an error: without the folder results are made again. Debug
 * lines of the log (PINION_LOG=scan=debug) say why.
 *
 * Built without OpenSSL there is no such folder.
 */
#ifndef PINION_TOOLS_SCAN_CACHE_FOLDER_H
#define PINION_TOOLS_SCAN_CACHE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	CACHE_NAME_BYTES = 32,
	CACHE_ENTRY_BYTES_MAX = 64 << 20,
	CACHE_FOLDER_BYTES_MAX = 256 << 20,
};

/* An entry's name: a digest of all that its bytes were made from. */
struct cache_name {
	uint8_t bytes[CACHE_NAME_BYTES];
};

/* What a name is made from, part by part. */
struct cache_naming {
	void *state; /* NULL: there is no folder */
};

void cache_naming_begin(struct cache_naming *naming);
/* A part that cannot run together with its neighbours. */
void cache_naming_add(struct cache_naming *naming, const void *bytes, size_t length);
/* False: there is no name. Frees the state in either case. */
bool cache_naming_end(struct cache_naming *naming, struct cache_name *out_name);

/* The entry's bytes, malloc'ed; NULL: there is none that may be used. */
uint8_t *cache_folder_read(const struct cache_name *name, size_t *out_length);

void cache_folder_write(const struct cache_name *name, const uint8_t *bytes, size_t length);

#endif
