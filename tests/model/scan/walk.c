/* SPDX-License-Identifier: MIT */
/*
 * Goal: a walk by tasks visits each entry once, on the caller's thread; the
 * caller is not left asleep ([WALK-1]), a parked task is spawned again, and no
 * task touches the walk when it has been freed.
 * Method: the real scan/walk_tasks.c, walk_list.c and walk_tree.c on the
 * model's heap, over a tree of letters in place of a file system. A block has
 * room for two entries of a directory, so that tasks are parked.
 */
#define PIN_WALK_LIST_BYTES 256u

#include "runtime/base/check.h"
#include "runtime/host/long_path.h"
#include "runtime/scan/walk_tasks.h"
#include "runtime/task/entry.h"
#include "tests/model/api/runtime_model.h"
#include "tests/model/explorer.h"
#include "tests/model/heap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pinion/budget.h>
#include <pinion/walk.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- a tree in place of a file system ---- */

enum { FDS = 4 };

/* Directories are capitals. */
struct folder {
	const char *path;
	const char *entries;
};

static const struct folder *folders;
static const struct folder *open_folders[FDS];
static bool is_listed[FDS];
static uint32_t fds_max;

static int open_folder(const char *path)
{
	for (int fd = 0; fd < FDS; fd++) {
		if (open_folders[fd] != NULL) {
			continue;
		}
		if ((uint32_t)fd >= fds_max) {
			return -EMFILE;
		}
		for (const struct folder *folder = folders; folder->path != NULL; folder++) {
			if (strcmp(folder->path, path) == 0) {
				open_folders[fd] = folder;
				is_listed[fd] = false;
				return fd;
			}
		}
		model_fail("%s is opened", path);
	}
	return -EMFILE;
}

int pin_open_long(const char *path, int flags)
{
	(void)flags;
	return open_folder(path);
}

int pin_beneath_open(int directory_fd, const char *path, int flags)
{
	(void)flags;
	MODEL_CHECK(directory_fd == 0);
	return open_folder(path);
}

bool pin_beneath_loops(int directory_fd, const char *path)
{
	(void)directory_fd;
	model_fail("%s is no link", path);
}

struct list_record {
	uint64_t inode;
	int64_t offset;
	uint16_t record_bytes;
	uint8_t type;
	char name[5];
};

/* getdents64(2): all at once, then nothing. */
static long list_folder(int fd, void *list)
{
	struct list_record *records = list;
	const char *entries = open_folders[fd]->entries;
	long count = 0;

	model_point();
	for (; !is_listed[fd] && entries[count] != '\0'; count++) {
		records[count] = (struct list_record){
			.record_bytes = sizeof(*records),
			.type = entries[count] < 'a' ? DT_DIR : DT_REG,
			.name = {entries[count]},
		};
	}
	is_listed[fd] = true;
	return count * (long)sizeof(*records);
}

static int close_folder(int fd)
{
	MODEL_CHECK(open_folders[fd] != NULL);
	open_folders[fd] = NULL;
	return 0;
}

static int status_of(int fd, struct stat *out_status)
{
	*out_status = (struct stat){.st_ino = (ino_t)(open_folders[fd] - folders) + 1};
	return 0;
}

#define syscall(number, fd, list, bytes) list_folder(fd, list)
#define close(fd) close_folder(fd)
#define fstat(fd, status) status_of(fd, status)

#include "runtime/scan/anchor.c"
#include "runtime/scan/walk_ignore.c"
#include "runtime/scan/walk_list.c"
#include "runtime/scan/walk_part.c"
#include "runtime/scan/walk_path.c"
#include "runtime/scan/walk_tree.c"
#include "runtime/scan/walk_visit.c"

/* ---- no ignore files ---- */

const char *const pin_ignore_names[PIN_IGNORE_FILES];

int pin_ignore_read(const struct pin_host *host, const struct pin_ignore_level *above,
	int directory_fd, size_t names_start, struct pin_ignore_level **out_level,
	struct pin_ignore_errors *out_errors)
{
	(void)host;
	(void)above;
	(void)directory_fd;
	(void)names_start;
	(void)out_level;
	(void)out_errors;
	model_fail("ignore files are read");
}

uint32_t pin_walk_filter_path(
	const struct pin_walk_filter *filter, const struct pin_ignore_path *path)
{
	(void)filter;
	model_fail("%s is filtered", path->bytes);
}

uint32_t pin_walk_filter_status(struct pin_walk_filter *filter, const struct stat *status)
{
	(void)filter;
	(void)status;
	model_fail("a status is filtered");
}

void pin_ignore_level_free(const struct pin_host *host, struct pin_ignore_level *level)
{
	(void)host;
	(void)level;
	model_fail("there are no ignore files");
}

bool pin_ignore_hides(const struct pin_ignore_level *level, const char *path, size_t path_bytes,
	size_t name_bytes, bool is_directory)
{
	(void)level;
	(void)path_bytes;
	(void)name_bytes;
	(void)is_directory;
	model_fail("%s is hidden", path);
}

bool pin_ignore_has_failed(const struct pin_ignore_errors *errors, const char *name)
{
	(void)errors;
	model_fail("%s is an ignore file", name);
}

/* ---- the source, which mutants spoil ---- */

static int acquire_wait(struct pinion_budget *budget, const uint64_t *amounts, uint64_t deadline_ns,
	const char *site)
{
	if (model_is_spoilt(MODEL_SKIP, site, "pinion_budget_acquire_wait")) {
		return 0;
	}
	return pinion_budget_acquire_wait(budget, amounts, deadline_ns);
}

#define pinion_budget_acquire_wait(budget, amounts, deadline_ns) \
	acquire_wait(budget, amounts, deadline_ns, __func__)
#define pinion_budget_release(budget, amounts) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pinion_budget_release") \
			? (void)0 \
			: (pinion_budget_release)(budget, amounts))
#define pin_runtime_spawn_reserved(runtime, task) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_runtime_spawn_reserved") \
			? (void)0 \
			: (pin_runtime_spawn_reserved)(runtime, task))
#include "runtime/scan/walk_caller.c"
#include "runtime/scan/walk_shared.c"
#include "runtime/scan/walk_tasks.c"

/* ---- cases ---- */

static struct pin_atomic_u32 is_cancelled;
static char visited[16];
static uint32_t visit_count;
static uint32_t cancel_at; /* 0: never */

static int note_visit(void *arg, const struct pinion_walk_entry *entry)
{
	(void)arg;
	MODEL_CHECK(model_thread_current() == 0);
	MODEL_CHECK(entry->kind == PINION_WALK_FILE && visit_count < sizeof(visited));
	MODEL_CHECK(memchr(visited, entry->path[entry->path_bytes - 1], visit_count) == NULL);
	visited[visit_count++] = entry->path[entry->path_bytes - 1];
	if (visit_count == cancel_at) {
		pin_store_release_u32(&is_cancelled, 1);
	}
	return 0;
}

static void run(const struct folder *tree, uint32_t worker_count, uint32_t wanted_count)
{
	struct pinion_runtime *runtime;
	struct pin_walk walk = {
		.host = &pin_host_linux,
		.is_cancelled = &is_cancelled,
		.visit = note_visit,
		.root_fd = -1,
		.root_bytes = 1,
		.names_start = 2,
	};
	struct pin_walk_means means = {
		.host = &pin_host_linux,
		.open_max = FDS,
		.block_bytes = PIN_WALK_BLOCK_BYTES_MIN,
	};
	struct pin_directory *root;
	int rc;

	folders = tree;
	memset(open_folders, 0, sizeof(open_folders));
	visit_count = 0;
	pin_store_relaxed_u32(&is_cancelled, 0);
	model_quiet_begin();
	runtime = model_runtime_begin(worker_count, PIN_DOORBELL_MESSAGE, model_settle);
	root = pin_directory_create(&walk, NULL, "R", 1);
	model_quiet_end();
	means.runtime = runtime;
	rc = pin_walk_by_tasks(&walk, &means, root);
	MODEL_CHECK(cancel_at == 0 ? rc == 0 : rc == 0 || rc == -ECANCELED);
	MODEL_CHECK(rc != 0 || visit_count == wanted_count);
	close_folder(walk.root_fd);
	for (uint32_t fd = 0; fd < FDS; fd++) {
		MODEL_CHECK(open_folders[fd] == NULL);
	}
	model_runtime_end(runtime);
}

static const struct folder two[] = {{"R", "aAB"}, {"A", "b"}, {"B", "c"}, {.path = NULL}};

/* More files than a block has room for. */
static const struct folder full[] = {{"R", "AB"}, {"A", "abcdefgh"}, {"B", "i"}, {.path = NULL}};

static const struct folder deep[] = {
	{"R", "AB"}, {"A", "aC"}, {"B", "b"}, {"A/C", "c"}, {.path = NULL}};

static void run_two(void)
{
	fds_max = FDS;
	cancel_at = 0;
	run(two, 1, 3);
}

static void run_two_workers(void)
{
	fds_max = FDS;
	cancel_at = 0;
	run(two, 2, 3);
}

static void run_full(void)
{
	fds_max = FDS;
	cancel_at = 0;
	run(full, 1, 9);
}

static void run_deep(void)
{
	fds_max = FDS;
	cancel_at = 0;
	run(deep, 1, 3);
}

/* One for the root, one for another. */
static void run_few_descriptors(void)
{
	fds_max = 2;
	cancel_at = 0;
	run(two, 1, 3);
}

static void run_cancelled(void)
{
	fds_max = FDS;
	cancel_at = 1;
	run(two, 1, 3);
}

static const struct model_mutant mutants[] = {
	{"the caller is not called", {MODEL_SKIP, "pin_walk_unlock", "pinion_budget_release"}},
	{"the caller does not await the tasks",
		{MODEL_SKIP, "await_tasks", "pinion_budget_acquire_wait"}},
	{"a task is not spawned", {MODEL_SKIP, "spawn_shared", "pin_runtime_spawn_reserved"}},
	{.name = NULL},
};

static const struct model_mutant full_mutants[] = {
	{"a parked task is not spawned again",
		{MODEL_SKIP, "spawn_shared", "pin_runtime_spawn_reserved"}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"two", run_two, 2, 1, 0, mutants, NULL},
	{"full", run_full, 2, 0, 0, full_mutants, NULL},
	{"deep", run_deep, 2, 0, 0, NULL, NULL},
	{"few_descriptors", run_few_descriptors, 2, 0, 0, NULL, NULL},
	{"cancelled", run_cancelled, 2, 0, 0, NULL, NULL},
	{"two_workers", run_two_workers, 2, 0, 0, NULL, NULL},
};

int main(void)
{
	model_runtime_register();
	return model_main("scan_walk", cases, PIN_ARRAY_COUNT(cases));
}
