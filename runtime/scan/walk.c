/* SPDX-License-Identifier: MIT */
/*
 * The walk's public calls, and the walk by the thread that calls them.
 *
 * A directory is listed to its end, then the next that waits is entered:
 * the first subdirectory of the one just listed, if it has any (walk_tree.h).
 *
 * Runs on the caller's thread; see pinion/walk.h for the contract.
 *
 * Invariant: a walk may fail only for want of memory or by the visitor's wish;
 * every other failure is an entry of its own.
 */
#include "runtime/scan/walk.h"
#include "runtime/base/check.h"
#include "runtime/base/versioned.h"
#include "runtime/host/long_path.h"
#include "runtime/scan/walk_list.h"
#include "runtime/scan/walk_sorted.h"
#include "runtime/scan/walk_tasks.h"
#include "runtime/worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the root ---- */

static int visit(const struct pin_walk *walk, const struct pin_walk_path *path,
	enum pinion_walk_kind kind, int error, uint32_t mode)
{
	struct pin_walk_sight sight = {.kind = kind, .mode = mode, .error = error};

	return pin_walk_visit(walk, path, &sight);
}

/*
 * Reads the ignore files above the root, and visits those that failed; they
 * have absolute paths.
 */
static int read_above(struct pin_walk *walk, const char *root, uid_t owner)
{
	struct pin_walk_path path = {.bytes = NULL};
	struct pin_ignore_errors errors;
	size_t path_bytes;
	int rc = pin_ignore_begin(&walk->ignore, walk->host, root, owner);
	int more = 1;

	while (rc == 0 && (more = pin_ignore_read_above(&walk->ignore, &path_bytes, &errors)) > 0) {
		for (size_t i = 0; rc == 0 && i < PIN_IGNORE_FILES; i++) {
			const char *name = pin_ignore_names[i];

			/* Another walk of the root has visited it. */
			if (errors.of[i] == 0 || walk->part != NULL) {
				continue;
			}
			rc = pin_walk_path_set(walk, &path, walk->ignore.root, path_bytes);
			rc = rc == 0 ? pin_walk_path_add(walk, &path, name, strlen(name)) : rc;
			rc = rc == 0 ? visit(walk, &path, PINION_WALK_ERROR, errors.of[i], 0) : rc;
		}
	}
	pin_walk_path_free(walk, &path);
	return rc == 0 ? more : rc;
}

/* Visits a root that is no directory; else *out_directory is the root. */
static int start(struct pin_walk *walk, const struct pin_walk_path *root,
	struct pin_directory **out_directory)
{
	struct stat status;
	/* O_PATH looks without opening: a FIFO would block, a device act. */
	int fd = pin_open_long(root->bytes, O_PATH | O_CLOEXEC);
	int error = fd < 0 ? fd : 0;
	int rc = 0;

	*out_directory = NULL;
	if (fd >= 0) {
		error = fstat(fd, &status) == 0 ? 0 : -errno;
		close(fd);
	}
	if (error == 0 && walk->part != NULL && !S_ISDIR(status.st_mode)) {
		error = -ENOTDIR;
	}
	if (error != 0) {
		return visit(walk, root, PINION_WALK_ERROR, error, 0);
	}
	if (S_ISREG(status.st_mode)) {
		return visit(walk, root, PINION_WALK_FILE, 0, 0);
	}
	if (!S_ISDIR(status.st_mode)) {
		return visit(
			walk, root, PINION_WALK_SPECIAL, 0, (uint32_t)(status.st_mode & S_IFMT));
	}
	if (walk->has_ignores) {
		rc = read_above(walk, root->bytes, status.st_uid);
	}
	if (rc == 0) {
		*out_directory = pin_directory_create(walk, NULL, root->bytes, root->length);
		rc = *out_directory == NULL ? -ENOMEM : 0;
	}
	return rc;
}

/* ---- by one thread ---- */

/* The open directory to its end; its subdirectories wait then. */
static int list_all(struct pin_walker *walker)
{
	enum pin_listing_state state;

	do {
		struct pin_names *names;

		state = pin_walker_list(walker);
		PIN_CHECK(state != PIN_LISTING_FULL); /* it fills no block */
		names = state == PIN_LISTING_READ ? pin_walker_take_names(walker) : NULL;
		if (names != NULL) {
			pin_walk_add_names(walker->walk, walker->directory, names);
		}
	} while (state == PIN_LISTING_READ && walker->rc == 0);
	return walker->rc;
}

/*
 * A tree may have many directories without an entry to visit, so a cancel is
 * looked for before each.
 */
static int run(struct pin_walker *walker, struct pin_directory *directory)
{
	struct pin_walk *walk = walker->walk;
	int rc = 0;

	while (rc == 0 && directory != NULL) {
		if (pin_walk_is_cancelled(walk)) {
			pin_directory_release(walk, directory);
			return -ECANCELED;
		}
		rc = pin_walker_open(walker, directory) == PIN_LISTING_READ ? list_all(walker)
									    : walker->rc;
		if (walker->listing != NULL) {
			pin_walker_close(walker);
		}
		if (rc == 0) {
			rc = pin_walk_take_directory(walk, &directory);
		}
	}
	return rc;
}

/* The root, which is taken over, and all below it. */
static int walk_alone(struct pin_walk *walk, struct pin_directory *root)
{
	struct pin_walker walker = {.walk = walk};
	int rc = run(&walker, root);

	pin_walker_fini(&walker);
	pin_walk_drop_names(walk);
	return rc;
}

static int walk_by(
	struct pin_walk *walk, const struct pin_walk_means *means, struct pin_directory *root)
{
	if (walk->is_sorted) {
		return pin_walk_sorted(walk, root, means->waiting_bytes_max);
	}
	return means->runtime == NULL ? walk_alone(walk, root)
				      : pin_walk_by_tasks(walk, means, root);
}

static int walk_root(struct pin_walk *walk, const struct pin_walk_means *means, const char *root)
{
	struct pin_walk_path path = {.bytes = NULL};
	struct pin_directory *directory = NULL;
	int rc = pin_walk_path_set(walk, &path, root, strlen(root));

	if (rc == 0) {
		walk->root_bytes = path.length;
		/* As paths are joined. */
		walk->names_start = path.length;
		if (path.length > 0 && root[path.length - 1] != '/') {
			walk->names_start++;
		}
		rc = start(walk, &path, &directory);
	}
	pin_walk_path_free(walk, &path);
	if (rc == 0 && directory != NULL) {
		rc = walk_by(walk, means, directory);
	}
	if (walk->root_fd >= 0) {
		close(walk->root_fd);
	}
	pin_ignore_fini(&walk->ignore);
	return rc;
}

/* ---- the calls ---- */

void pinion_walk_config_init_sized(struct pinion_walk_config *config, uint32_t size)
{
	struct pinion_walk_config full = {.size = size};

	pin_sized_give(config, size, &full, sizeof(full));
}

/* The caller's options, or every default. */
static int accept_config(struct pinion_walk_config *out, const struct pinion_walk_config *config)
{
	int rc;

	pinion_walk_config_init(out);
	if (config == NULL) {
		return 0;
	}
	if (config->size < sizeof(*out)) {
		return -EINVAL;
	}
	rc = pin_sized_take(out, sizeof(*out), config, config->size);
	return rc == 0 &&
			(out->skip_ignored > 1 || out->follow_links > 1 ||
				out->order > PINION_WALK_BY_PATH)
		? -EINVAL
		: rc;
}

int pin_walk(const struct pin_walk_means *means, const char *root,
	const struct pinion_walk_config *config, pinion_walk_fn visit_entry, void *arg)
{
	struct pin_walk walk = {
		.host = means->host,
		.is_cancelled = means->is_cancelled,
		.visit = visit_entry,
		.arg = arg,
		.root_fd = -1,
		.has_ignores = config->skip_ignored != 0,
		.follows = config->follow_links != 0,
		.is_sorted = config->order == PINION_WALK_BY_PATH,
		.has_no_anchors = means->has_no_anchors,
		.filter = means->filter,
		.part = means->part,
		.share = means->share,
		.share_arg = means->share_arg,
	};
	int saved_errno = errno;
	int rc = walk_root(&walk, means, root);

	errno = saved_errno;
	return rc;
}

int pinion_walk_with(const char *root, const struct pinion_walk_config *config,
	pinion_walk_fn visit_entry, void *arg)
{
	struct pinion_walk_config complete;
	struct pin_walk_means means = {.host = &pin_host_linux};
	int rc = accept_config(&complete, config);

	if (rc == 0 && complete.runtime != NULL && pin_worker_of_thread() != NULL) {
		rc = -EDEADLK;
	}
	if (rc == 0) {
		rc = pin_walk_filter_create(means.host, complete.filter, &means.filter);
	}
	if (rc == 0) {
		means.runtime = complete.runtime;
		rc = pin_walk(&means, root, &complete, visit_entry, arg);
	}
	pin_walk_filter_destroy(means.filter);
	return rc;
}

int pinion_walk(const char *root, pinion_walk_fn visit_entry, void *arg)
{
	return pinion_walk_with(root, NULL, visit_entry, arg);
}
