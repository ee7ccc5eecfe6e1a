/* SPDX-License-Identifier: MIT */
/*
 * The subject `walk`: what an entry of a directory tree costs. The floor opens
 * each directory by name from its parent and lists it, as `d_type` says which
 * they are; it knows nothing of paths, loops or how deep a tree may be.
 *
 * Unless a tree is named, one is made, in a folder that is removed again.
 */
#include "tools/bench/tasks.h"
#include "tools/report.h"
#include "tools/signals.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pinion/pinion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	/* The tree that is made: folders of folders of files. */
	TREE_OUTER = 8,
	TREE_INNER = 16,
	TREE_FILES = 32,
	LIST_BYTES = 64 << 10, /* as ours */
	/* The floor recurses, with a descriptor and a list for each level. */
	DEPTH_MAX = 64,
};

struct walk {
	const char *root;
	char *own_root; /* made by us, NULL: named by the user */
	uint64_t entry_count;
	uint8_t *lists; /* DEPTH_MAX of LIST_BYTES */
};

/* ---- ours ---- */

static int visit(void *arg, const struct pinion_walk_entry *entry)
{
	struct walk *walk = arg;

	(void)entry;
	walk->entry_count++;
	return signals_interrupted() ? -ECANCELED : 0;
}

static int run_ours(struct walk *walk)
{
	int rc = pinion_walk(walk->root, visit, walk);

	if (rc != 0 && rc != -ECANCELED) {
		report_path(walk->root, report_reason(rc));
	}
	return rc;
}

/* ---- the floor ---- */

struct list_entry {
	uint64_t inode;
	int64_t offset;
	uint16_t record_bytes;
	uint8_t type;
	char name[];
};

static int list_folder(struct walk *walk, int directory_fd, uint32_t depth);

static int enter_folder(struct walk *walk, int parent_fd, const char *name, uint32_t depth)
{
	int fd;
	int rc;

	if (depth == DEPTH_MAX) {
		return -ENAMETOOLONG;
	}
	fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		/* Ours reports it as an entry, and goes on. */
		walk->entry_count++;
		return 0;
	}
	rc = list_folder(walk, fd, depth);
	close(fd);
	return rc;
}

static int see_entry(
	struct walk *walk, int directory_fd, const struct list_entry *entry, uint32_t depth)
{
	if (entry->type != DT_DIR) {
		walk->entry_count++;
		return 0;
	}
	if (strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0) {
		return 0;
	}
	return enter_folder(walk, directory_fd, entry->name, depth + 1);
}

static int list_folder(struct walk *walk, int directory_fd, uint32_t depth)
{
	uint8_t *list = &walk->lists[(size_t)depth * LIST_BYTES];
	int rc = 0;

	for (;;) {
		long length = syscall(SYS_getdents64, directory_fd, list, LIST_BYTES);

		if (length <= 0) {
			return length == 0 ? 0 : -errno;
		}
		for (long at = 0; rc == 0 && at < length;) {
			const struct list_entry *entry = (const void *)&list[at];

			rc = see_entry(walk, directory_fd, entry, depth);
			at += entry->record_bytes;
		}
		if (rc != 0 || signals_interrupted()) {
			return rc != 0 ? rc : -ECANCELED;
		}
	}
}

static int run_floor(struct walk *walk)
{
	int rc = enter_folder(walk, AT_FDCWD, walk->root, 0);

	if (rc == -ENAMETOOLONG) {
		report_line("walk: the floor cannot go deeper than %d folders", DEPTH_MAX);
	} else if (rc != 0 && rc != -ECANCELED) {
		report_path(walk->root, report_reason(rc));
	}
	return rc;
}

/* ---- the subject ---- */

static int walk_run(void *state, enum bench_side side, struct samples *out_figures)
{
	struct walk *walk = state;
	uint64_t start_ns = bench_now_ns();
	int rc;

	walk->entry_count = 0;
	rc = side == BENCH_OURS ? run_ours(walk) : run_floor(walk);
	if (rc == 0 && walk->entry_count == 0) {
		report_path(walk->root, "holds no files");
		return -ENOENT;
	}
	return rc != 0 ? rc
		       : samples_add(out_figures,
				 (double)(bench_now_ns() - start_ns) / (double)walk->entry_count);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place)
{
	(void)status;
	(void)type;
	(void)place;
	return remove(path);
}

static void walk_stop(void *state)
{
	struct walk *walk = state;

	if (walk->own_root != NULL &&
		nftw(walk->own_root, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0) {
		report_path(walk->own_root, report_reason(errno));
	}
	free(walk->own_root);
	free(walk->lists);
	free(walk);
}

static int make_files(const char *folder)
{
	char path[1280];

	for (int i = 0; i < TREE_FILES; i++) {
		int fd;

		snprintf(path, sizeof(path), "%s/file-%02d", folder, i);
		fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
		if (fd < 0) {
			return -errno;
		}
		close(fd);
	}
	return signals_interrupted() ? -ECANCELED : 0;
}

static int make_folders(const char *root)
{
	char path[1152];
	int rc = 0;

	for (int outer = 0; rc == 0 && outer < TREE_OUTER; outer++) {
		snprintf(path, sizeof(path), "%s/outer-%d", root, outer);
		rc = mkdir(path, 0700) == 0 ? 0 : -errno;
		for (int inner = 0; rc == 0 && inner < TREE_INNER; inner++) {
			snprintf(path, sizeof(path), "%s/outer-%d/inner-%02d", root, outer, inner);
			rc = mkdir(path, 0700) == 0 ? make_files(path) : -errno;
		}
	}
	return rc;
}

static int make_tree(struct walk *walk, const char *directory)
{
	char *path;
	int rc;

	if (strlen(directory) > 1024 || asprintf(&path, "%s/.pinion-bench-XXXXXX", directory) < 0) {
		report_line("%s", report_reason(ENAMETOOLONG));
		return -ENAMETOOLONG;
	}
	if (mkdtemp(path) == NULL) {
		rc = -errno;
		free(path);
		report_path(directory, report_reason(rc));
		return rc;
	}
	walk->own_root = path;
	walk->root = path;
	rc = make_folders(path);
	if (rc != 0 && rc != -ECANCELED) {
		report_path(directory, report_reason(rc));
	}
	return rc;
}

/* Ours would report what it cannot enter as an entry, and go on. */
static int check_tree(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = fd < 0 ? -errno : 0;

	if (fd >= 0) {
		close(fd);
	} else {
		report_path(path, report_reason(rc));
	}
	return rc;
}

/*
 * No worker takes part, but a reader of the samples may want to know of rings.
 */
static int find_facts(const struct bench *bench, struct bench_setting *out_setting)
{
	struct pinion_runtime *runtime;
	int rc = bench_start_workers(bench, 1, out_setting, &runtime);

	if (rc == 0) {
		pinion_runtime_destroy(runtime);
	}
	return rc;
}

static int walk_start(struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	struct walk *walk = bench_allocate(sizeof(*walk));
	int rc;

	if (walk == NULL) {
		return -ENOMEM;
	}
	rc = find_facts(bench, out_setting);
	walk->lists = rc == 0 ? bench_allocate((size_t)DEPTH_MAX * LIST_BYTES) : NULL;
	if (rc == 0 && walk->lists == NULL) {
		rc = -ENOMEM;
	}
	if (rc == 0 && bench->options->tree == NULL) {
		rc = make_tree(walk, bench->options->directory);
	} else if (rc == 0) {
		walk->root = bench->options->tree;
		rc = check_tree(walk->root);
	}
	if (rc != 0) {
		walk_stop(walk);
		return rc;
	}
	snprintf(out_setting->text, sizeof(out_setting->text), "%s",
		walk->own_root == NULL ? "the tree named" : "4096 files in 128 folders");
	*out_state = walk;
	return 0;
}

_Static_assert(TREE_OUTER *TREE_INNER == 128 && TREE_FILES * 128 == 4096, "what it says");

const struct bench_subject bench_walk = {
	.name = "walk",
	.unit = "ns",
	.brief = "an entry of a directory tree, against a loop of getdents64(2)",
	.sides = {[BENCH_OURS] = "pinion_walk", [BENCH_FLOOR] = "openat+getdents64"},
	.start = walk_start,
	.run = walk_run,
	.stop = walk_stop,
};
