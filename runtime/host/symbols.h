/* SPDX-License-Identifier: MIT */
/*
 * Names of functions by their addresses, of this process or another one: from
 * /proc/PID/maps and the symbol tables of the files that it names. So static
 * functions have names too, unless the file was stripped.
 *
 * Readers of traces call it, on any one thread, and what names a task in the
 * log, so that all messages give a function the same name; it takes
 * milliseconds. Not by dladdr(3): that does not know static functions, and
 * waits for the loader's lock, which a caller of dlopen(3) or dlclose(3) holds
 * for as long as constructors and destructors run, and these may wait for a
 * worker.
 *
 * Invariant: nothing in a file is trusted: every place is checked against its
 * size, and a file that is none of ours gives no name. The files and the bytes
 * of their tables that are read are bounded, for a process whatever it maps:
 * functions beyond are named by their addresses.
 */
#ifndef PIN_HOST_SYMBOLS_H
#define PIN_HOST_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

struct pin_symbols;

/* Bytes of a name. */
enum { PIN_SYMBOL_BYTES = 96 };

/* -ENOMEM; -ESRCH, -EACCES: the process cannot be read. */
int pin_symbols_open(int pid, struct pin_symbols **out_symbols);

/* Accepts NULL. */
void pin_symbols_close(struct pin_symbols *symbols);

/*
 * Writes "function", "file+0x12ab" where the file has no name for it, or
 * "0x7f12ab" where no file has it. `symbols` may be NULL.
 */
void pin_symbols_name(
	struct pin_symbols *symbols, uint64_t address, char out_name[PIN_SYMBOL_BYTES]);

/*
 * The same of this process; a name is kept for a second, in which the log may
 * ask for it again and again. Any thread.
 */
void pin_symbols_name_own(uint64_t address, char out_name[PIN_SYMBOL_BYTES]);

#endif
