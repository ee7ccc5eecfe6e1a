/* SPDX-License-Identifier: MIT */
/*
 * Memory that other processes read: an anonymous file that they find among this
 * process's descriptors, or a file with a name, which stays when the process is
 * killed.
 *
 * The anonymous file, "pinion-metrics" in /proc/PID/fd, is sealed: it can
 * neither be cut nor grown, nor written by any new mapping or call, so a reader
 * can do it no harm. Users who may trace the process may read it: the same
 * user, and root. It goes with the last descriptor, so a process that is killed
 * leaves no file.
 *
 * The named file has mode 0600. It is made beside its name and renamed when it
 * is whole, so a reader never finds half of it, and a reader of the file that
 * it replaces keeps that. All of its blocks are taken at once: a full disk is
 * an error here and never a signal later.
 *
 * A child has the descriptor until it execs, but no mapping, so it cannot write
 * its parent's page.
 *
 * Called once per runtime, on any thread.
 *
 * Source: memfd_create(2), fcntl(2) "File sealing".
 */
#ifndef PIN_HOST_SHARED_PAGE_H
#define PIN_HOST_SHARED_PAGE_H

#include <stddef.h>
#include <stdint.h>

/* As /proc/PID/fd shows it: "/memfd:pinion-metrics (deleted)". */
#define PIN_SHARED_PAGE_NAME "pinion-metrics"

struct pin_shared_page {
	void *memory; /* NULL: there is none */
	size_t bytes;
	int fd;
	char *draft; /* the name until it is shown; NULL: it is, or has none */
};

/* Bytes of a mark. */
enum { PIN_SHARED_PAGE_MARK = 8 };

/*
 * Makes a zeroed one of `bytes`, a multiple of 4096; `path` NULL: anonymous. A
 * negative errno, and the call that failed: then there is nothing. -EEXIST: at
 * `path` is something else than an empty file or one that begins with `mark`.
 */
int pin_shared_page_create(struct pin_shared_page *page, size_t bytes, const char *path,
	const char *mark, const char **out_call);

/*
 * When it is filled: seals it, or gives it its name. As above, but the memory
 * stays, which then no other process finds.
 */
int pin_shared_page_show(struct pin_shared_page *page, const char *path, const char **out_call);

/* Also of none, and again. The file with a name stays. */
void pin_shared_page_destroy(struct pin_shared_page *page);

/* ---- who writes it ---- */

enum { PIN_BOOT_ID_BYTES = 40 };

/* The kernel's id of this boot, or "". */
void pin_boot_id_read(char out_id[PIN_BOOT_ID_BYTES]);

/* When a process began, in ticks; 0: unknown. `pid` 0: this process. */
uint64_t pin_process_start(int pid);

/* Nanoseconds since 1970. */
uint64_t pin_unix_now_ns(void);

#endif
