/* SPDX-License-Identifier: MIT */
/*
 * A tree that is added to a scan: the walk's entries become files of it.
 *
 * Runs on the adding thread. Files are opened beneath the tree's root, which
 * the last of them closes; deep ones beneath an anchor (anchor.h).
 */
#include "runtime/scan/scan.h"
#include "runtime/base/check.h"
#include "runtime/host/heap.h"
#include "runtime/host/long_path.h"
#include "runtime/scan/anchor.h"
#include "runtime/scan/extent_order.h"
#include "runtime/scan/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pinion/walk.h>
#include <string.h>

struct tree {
	struct pinion_scan *scan;
	struct pin_scan_root *root; /* NULL: no file below it was found yet */
	size_t root_bytes;
	struct pin_anchor anchor;
	struct pin_scan_root *deep;    /* the anchor, for files; NULL: none */
	uint64_t deep_moves;	       /* of the anchor then */
	struct pin_extent_batch batch; /* of files that wait, by extent */
	bool shares;		       /* files may be left to others */
};

/*
 * Waits until one more root may be open. Roots are closed by the last of their
 * files, so with all slots here none is open.
 */
static void await_root(struct pinion_scan *scan)
{
	if (pin_load_acquire_u32(&scan->root_count) < scan->roots_max) { /* [ROOT-1] */
		return;
	}
	PIN_DCHECK(scan->roots_max > 0);
	pin_scan_await_reports(scan);
	PIN_CHECK(pin_load_acquire_u32(&scan->root_count) == 0);
}

/* Files are opened below it by the part of their path from `names_start` on. */
static int create_root(
	struct tree *tree, int directory_fd, size_t names_start, struct pin_scan_root **out_root)
{
	const struct pin_host *host = tree->scan->host;
	struct pin_scan_root *root = pin_heap_zeroed(host, PIN_HEAP_ALIGN, 1, sizeof(*root));

	if (root == NULL) {
		return -ENOMEM;
	}
	root->options.directory_fd = fcntl(directory_fd, F_DUPFD_CLOEXEC, 0);
	if (root->options.directory_fd < 0) {
		int error = -errno;

		pin_heap_release(host, root, PIN_HEAP_ALIGN, 1, sizeof(*root));
		return error;
	}
	root->options.resolve = PIN_BENEATH_RESOLVE;
	root->names_start = names_start;
	pin_store_relaxed_u32(&root->users, 1);
	pin_fetch_add_acq_rel_u32(&tree->scan->root_count, 1);
	*out_root = root;
	return 0;
}

/* Keeps the root open for the first file found below it. */
static int keep_root(struct tree *tree, const struct pinion_walk_entry *entry)
{
	if (entry->root_fd < 0 || tree->root != NULL) {
		return 0;
	}
	/* Below the root there is a name, and it ends where the path does. */
	PIN_DCHECK(entry->beneath > entry->path && *entry->beneath != '\0');
	PIN_DCHECK(entry->beneath < entry->path + entry->path_bytes);
	await_root(tree->scan);
	return create_root(
		tree, entry->root_fd, (size_t)(entry->beneath - entry->path), &tree->root);
}

static void drop_deep(struct tree *tree)
{
	if (tree->deep != NULL) {
		pin_scan_release_root(tree->scan, tree->deep, 1);
		tree->deep = NULL;
	}
}

/*
 * What the entry is opened beneath: a deep one, the anchor (anchor.h). It may
 * be the root as well, where the roots that may be open are used up.
 */
static struct pin_scan_root *choose_root(struct tree *tree, const struct pinion_walk_entry *entry)
{
	struct pinion_scan *scan = tree->scan;
	size_t names_start;
	size_t start;
	int fd;

	/* NULL: the entry is the root itself, or links are followed. */
	if (tree->root == NULL || scan->walk_means.has_no_anchors) {
		return tree->root;
	}
	names_start = tree->root->names_start;
	fd = pin_anchor_reach(scan->host, &tree->anchor, entry->root_fd, entry->beneath,
		entry->path_bytes - names_start, &start);
	if (start == 0) {
		return tree->root;
	}
	if (tree->deep != NULL && tree->deep_moves == tree->anchor.moves) {
		return tree->deep;
	}
	drop_deep(tree);
	if (pin_load_acquire_u32(&scan->root_count) >= scan->roots_max || /* [ROOT-1] */
		create_root(tree, fd, names_start + start, &tree->deep) != 0) {
		return tree->root;
	}
	tree->deep_moves = tree->anchor.moves;
	return tree->deep;
}

/* The root itself was named by the user. */
static bool is_below(const struct tree *tree, const struct pinion_walk_entry *entry)
{
	return entry->path_bytes > tree->root_bytes;
}

/* A file that there is no memory for is reported, and the walk goes on. */
static int add_file(struct tree *tree, const struct pinion_walk_entry *entry)
{
	struct pin_scan_root *root = choose_root(tree, entry);
	enum pin_slot_origin origin = is_below(tree, entry) ? PIN_SLOT_FOUND : PIN_SLOT_EXAMINED;
	int rc;

	if (tree->scan->config.walk_order == PINION_SCAN_WALK_BY_EXTENT) {
		rc = pin_extent_batch_take(
			&tree->batch, tree->scan, entry->path, entry->path_bytes, root, origin);
	} else {
		rc = pin_scan_add(tree->scan, entry->path, entry->path_bytes, root, origin);
	}
	return rc == -ENOMEM ? 0 : rc;
}

/* Of a file below the root: to another scan. */
static bool is_left(const struct tree *tree, const struct pinion_walk_entry *entry)
{
	const struct pinion_scan *scan = tree->scan;
	size_t start = tree->root_bytes;

	if (!is_below(tree, entry)) {
		return false;
	}
	start += start > 0 && entry->path[start - 1] != '/' ? 1 : 0;
	return scan->config.share(scan->arg, entry->path + start, entry->path_bytes - start, false);
}

/* It was deleted or renamed since its directory was listed. */
static bool has_vanished(const struct tree *tree, const struct pinion_walk_entry *entry)
{
	return entry->error == -ENOENT && is_below(tree, entry);
}

/*
 * The walk's entries on the adding thread: files get a slot, which may wait;
 * all else is reported at once.
 */
static int visit(void *arg, const struct pinion_walk_entry *entry)
{
	struct tree *tree = arg;
	struct pinion_scan *scan = tree->scan;
	struct pinion_scan_file file = {.path = entry->path, .path_bytes = entry->path_bytes};
	int rc;

	PIN_DCHECK(entry->error <= 0 && entry->path[entry->path_bytes] == '\0');
	switch (entry->kind) {
	case PINION_WALK_FILE:
		if (tree->shares && is_left(tree, entry)) {
			break;
		}
		rc = keep_root(tree, entry);
		if (rc != 0) {
			pin_scan_report_path(
				scan, entry->path, entry->path_bytes, PINION_SCAN_FAILED, rc);
			break;
		}
		return add_file(tree, entry);
	case PINION_WALK_SYMLINK:
		pin_scan_report_path(scan, entry->path, entry->path_bytes,
			entry->error < 0 ? PINION_SCAN_FAILED : PINION_SCAN_SKIPPED, entry->error);
		break;
	case PINION_WALK_SPECIAL:
		if (!is_below(tree, entry)) {
			/* Named, so it may be a device that is read. */
			rc = pin_scan_add(
				scan, entry->path, entry->path_bytes, NULL, PIN_SLOT_GIVEN);
			return rc == -ENOMEM ? 0 : rc;
		}
		file.mode = entry->mode;
		pin_scan_report_unread(scan, &file, PINION_SCAN_SKIPPED, -ENOTSUP);
		break;
	case PINION_WALK_ERROR:
		pin_scan_report_path(scan, entry->path, entry->path_bytes,
			has_vanished(tree, entry) ? PINION_SCAN_SKIPPED : PINION_SCAN_FAILED,
			entry->error);
		break;
	case PINION_WALK_IGNORED:
		file.reason = entry->reason;
		pin_scan_report_unread(scan, &file, PINION_SCAN_IGNORED, 0);
		break;
	}
	return pin_scan_is_cancelled(scan) ? -ECANCELED : 0;
}

/* `means` are the scan's, or those with a part. */
static int add_tree(struct pinion_scan *scan, const struct pin_walk_means *means, const char *path)
{
	struct tree tree = {.scan = scan, .root_bytes = strlen(path)};
	struct pinion_walk_config config;
	int rc;

	tree.shares =
		scan->config.share != NULL && (means->part == NULL || means->part->names == NULL);
	pinion_walk_config_init(&config);
	config.skip_ignored = scan->config.skip_ignored;
	config.follow_links = scan->config.follow_links;
	config.order = scan->config.walk_order == PINION_SCAN_WALK_BY_PATH ? PINION_WALK_BY_PATH
									   : PINION_WALK_LISTED;
	tree.shares = tree.shares && config.order == PINION_WALK_LISTED;
	rc = pin_walk(means, path, &config, visit, &tree);
	if (pin_extent_batch_send(&tree.batch, scan) == -ECANCELED) {
		rc = rc != 0 ? rc : -ECANCELED;
	}
	if (rc == -ENOMEM) {
		/* The walk's own: what it had not reached is not known. */
		pin_scan_report_path(scan, path, tree.root_bytes, PINION_SCAN_FAILED, rc);
	}
	pin_extent_batch_fini(&tree.batch, scan->host);
	pin_scan_send_batch(scan);
	drop_deep(&tree);
	pin_anchor_fini(scan->host, &tree.anchor);
	if (tree.root != NULL) {
		pin_scan_release_root(scan, tree.root, 1);
	}
	return rc;
}

int pinion_scan_add_tree(struct pinion_scan *scan, const char *path)
{
	int rc = pin_scan_refuse_worker(scan, "added to");
	struct pin_walk_means means;

	if (rc != 0) {
		return rc;
	}
	means = scan->walk_means;
	means.share = scan->config.share;
	means.share_arg = scan->arg;
	return add_tree(scan, &means, path);
}

/*
 * A name as a directory has it, other than itself and its parent. Longer ones
 * are in no file system, nor fit a list of the walk.
 */
static bool is_name(const char *name, size_t bytes)
{
	return bytes > 0 && bytes < PATH_MAX && memchr(name, '/', bytes) == NULL &&
		(name[0] != '.' || (bytes > 1 && (bytes > 2 || name[1] != '.')));
}

/* Names with a slash between them, or none; counts them. */
static bool is_way(const char *way, size_t *out_depth)
{
	*out_depth = 0;
	while (*way != '\0' || *out_depth > 0) {
		size_t bytes = strcspn(way, "/");

		if (!is_name(way, bytes)) {
			return false;
		}
		(*out_depth)++;
		if (way[bytes] == '\0') {
			break;
		}
		way += bytes + 1;
	}
	return true;
}

/* Names with a NUL after each. */
static bool are_names(const char *names, size_t bytes)
{
	if (bytes > 0 && names[bytes - 1] != '\0') {
		return false;
	}
	for (size_t at = 0; at < bytes; at += strlen(names + at) + 1) {
		if (!is_name(names + at, strlen(names + at))) {
			return false;
		}
	}
	return true;
}

int pinion_scan_add_part(struct pinion_scan *scan, const struct pinion_scan_part *given)
{
	struct pin_walk_part part = {
		.directory = given->directory,
		.names = given->names,
		.names_bytes = given->names == NULL ? 0 : given->names_bytes,
	};
	int rc = pin_scan_refuse_worker(scan, "added to");
	struct pin_walk_means means;

	if (rc != 0) {
		return rc;
	}
	if (scan->config.walk_order == PINION_SCAN_WALK_BY_PATH ||
		!is_way(part.directory, &part.depth) || !are_names(part.names, part.names_bytes)) {
		return -EINVAL;
	}
	means = scan->walk_means;
	means.part = &part;
	means.share = scan->config.share;
	means.share_arg = scan->arg;
	if (part.names != NULL) {
		means.runtime = NULL; /* nothing to list at once */
	}
	return add_tree(scan, &means, given->root);
}
