/* SPDX-License-Identifier: MIT */
/*
 * git, run as a process of its own: its command lines, its environment, and
 * what it says when it fails.
 *
 * A repository may be an attacker's. Only plumbing is run, which runs no hook
 * and no program that the repository's configuration names: no pager, no
 * fsmonitor, no filter, no signature check, no fetch of objects that are
 * missing, whatever protocol the configuration allows. Replacements of objects
 * and grafts are not heeded, since they would hide commits.
 *
 * Context: the first thread starts them, since a child has its parent's CPUs,
 * and a worker is bound to its own. Their ends come when their pipes close.
 */
#ifndef PINION_TOOLS_SCAN_GIT_PROCESS_H
#define PINION_TOOLS_SCAN_GIT_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A repository as it was named, and the environment to ask git about it. */
struct git_place {
	const char *path;
	const char **environment; /* its strings are not its own */
};

/*
 * 0 or -ENOMEM. Variables that lead git elsewhere (GIT_DIR and its like) count
 * for "." alone, as a hook has them.
 */
int git_place_init(struct git_place *place, const char *path);
void git_place_fini(struct git_place *place);

struct git_process {
	const char *what; /* its first argument */
	pid_t pid;	  /* 0: none runs */
	int in_fd;	  /* -1: none */
	int out_fd;
	int error_fd; /* a file in memory */
};

enum {
	GIT_INPUT_NONE = -1, /* reads nothing */
	GIT_INPUT_PIPE = -2, /* reads process->in_fd's other end */
};

enum { GIT_ARGUMENTS_MAX = 24 };

/*
 * Starts git with `arguments`, up to a NULL. `input` is one of the enum, or a
 * descriptor that is closed here. False: a line says why not.
 */
bool git_process_start(const struct git_place *place, const char *const *arguments, int input,
	struct git_process *out_process);

/* Closes the pipe that it reads. */
void git_process_close_input(struct git_process *process);

/*
 * Closes its pipes and waits for its end. False: it failed, and a line has
 * git's own reason, if `is_told`. Accepts a process that was never started.
 */
bool git_process_end(const struct git_place *place, struct git_process *process, bool is_told);

/*
 * Reads its output to its end, as a string that is to be freed. 0 or a negative
 * errno; -EFBIG: it is longer than `bytes_max`.
 */
int git_process_read(
	struct git_process *process, size_t bytes_max, char **out_text, size_t *out_length);

/*
 * Reads all that git writes for these arguments, up to `bytes_max`, as a string
 * that is to be freed. NULL: a line says why.
 */
char *git_read(const struct git_place *place, const char *const *arguments, size_t bytes_max,
	size_t *out_length);

#endif
