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
 * an error here and never a signal later. Its writer has it locked by flock(2)
 * as long as it lives, so a second writer leaves it alone and takes the next
 * name, with .1 at its end; the kernel unlocks the file of a dead one. Where
 * files cannot be locked the last writer has the name.
 *
 * A child of fork(2) keeps neither the mapping nor the descriptor: it cannot
 * write to its parent's page, and the lock ends with the parent. Only a child
 * of a raw clone(2) has the descriptor until it execs.
 *
 * Called once per runtime, on any thread.
 *
 * Source: memfd_create(2), fcntl(2) "File sealing".
 */
#ifndef PIN_HOST_SHARED_PAGE_H
#define PIN_HOST_SHARED_PAGE_H

#include "runtime/base/atomic.h"

#include <stddef.h>
#include <stdint.h>

/* As /proc/PID/fd shows it: "/memfd:pinion-metrics (deleted)". */
#define PIN_SHARED_PAGE_NAME "pinion-metrics"

enum {
	PIN_SHARED_PAGE_MARK = 8, /* bytes of a mark */
	/* Names that a file may get: FILE, FILE.1 and so on. */
	PIN_SHARED_PAGE_NAMES = 16,
};

struct pin_shared_page {
	void *memory; /* NULL: there is none */
	size_t bytes;
	int fd;
	struct pin_shared_page *next; /* [lock:fork] of those with a descriptor */
	char *draft;		      /* the name until it is shown, else NULL */
	uint32_t number;	      /* of the name that it got: 0, or N of .N */
	char mark[PIN_SHARED_PAGE_MARK];
};

/*
 * Makes a zeroed page of `bytes`, a multiple of 4096; `path` NULL: anonymous.
 * On failure returns a negative errno, names the call that failed, and leaves
 * no file. -EEXIST: `path` names something that is neither an empty file nor a
 * file that begins with `mark`.
 */
int pin_shared_page_create(struct pin_shared_page *page, size_t bytes, const char *path,
	const char *mark, const char **out_call);

/*
 * Makes a zeroed anonymous page, which /proc/PID/fd shows as "/memfd:LABEL
 * (deleted)". As above.
 */
int pin_shared_page_create_unnamed(
	struct pin_shared_page *page, size_t bytes, const char *label, const char **out_call);

/*
 * Called when the page is filled: seals it, or gives its file the first name
 * that no living writer has. Errors as above, but the memory stays; other
 * processes do not find it then. -EBUSY: living writers have all the names.
 */
int pin_shared_page_show(struct pin_shared_page *page, const char *path, const char **out_call);

/* May be called twice, or without a page. A file with a name stays. */
void pin_shared_page_destroy(struct pin_shared_page *page);

/* ---- who writes it ---- */

enum pin_page_state {
	PIN_PAGE_LIVES = 1,
	PIN_PAGE_ENDED = 2, /* the runtime was destroyed */
};

enum { PIN_BOOT_ID_BYTES = 40 };

/* The end of the header of each kind of page; its layout is documented. */
struct pin_page_owner {
	uint64_t pid;		/* in the namespace of the process */
	uint64_t process_start; /* field 22 of /proc/PID/stat; 0: unknown */
	uint64_t created_ns;	/* on CLOCK_MONOTONIC */
	uint64_t created_unix_ns;
	struct pin_atomic_u64 state;	 /* enum pin_page_state */
	char boot_id[PIN_BOOT_ID_BYTES]; /* the kernel's, or "" */
	char program[16];
	char library[16]; /* its version */
};

/* Describes this process, as alive; before the page gets its mark. */
void pin_page_owner_write(struct pin_page_owner *owner, uint64_t now_ns);

/* When a process began, in ticks; 0: unknown. `pid` 0: this process. */
uint64_t pin_process_start(int pid);

/*
 * The number of a process in its own namespace of them, which is 1 in many
 * containers; 0: unknown.
 */
uint64_t pin_process_inner_pid(int pid);

/* Nanoseconds since 1970. */
uint64_t pin_unix_now_ns(void);

#endif
