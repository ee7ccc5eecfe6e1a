/* SPDX-License-Identifier: MIT */
/*
 * Finds the logs of earlier runs by their names, and checks that they are of
 * the run that goes on.
 */
#include "tools/mpi/rank_logs.h"

#include "tools/output_text.h"
#include "tools/report.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	/* In a second. */
	LOCK_TRIES = 100,
	/* Descriptors of the runtime, of MPI and of a few files. */
	DESCRIPTORS_BESIDE = 64,
};

/* A log by its name: FILE.K or FILE.earlier.J. */
struct name {
	bool is_earlier;
	uint64_t number;
	char *path;
};

struct names {
	struct name *items;
	uint32_t count;
	uint32_t capacity;
};

static const char earlier[] = ".earlier.";
static const char *file_of_first;

static void names_free(struct names *names)
{
	for (uint32_t i = 0; i < names->count; i++) {
		free(names->items[i].path);
	}
	free(names->items);
}

/* Digits and no more; no sign, and no leading zero. */
static bool read_number(const char *text, uint64_t *out_number)
{
	size_t digits = strspn(text, "0123456789");

	*out_number = strtoull(text, NULL, 10);
	return digits > 0 && digits < 19 && text[digits] == '\0' && (digits == 1 || *text != '0');
}

/* The end of a log's name, after FILE. */
static bool read_name(const char *rest, struct name *out_name)
{
	*out_name = (struct name){.is_earlier = strncmp(rest, earlier, strlen(earlier)) == 0};
	if (out_name->is_earlier) {
		return read_number(rest + strlen(earlier), &out_name->number);
	}
	return rest[0] == '.' && read_number(rest + 1, &out_name->number);
}

static int compare_names(const void *left_item, const void *right_item)
{
	const struct name *left = left_item;
	const struct name *right = right_item;

	if (left->is_earlier != right->is_earlier) {
		return left->is_earlier ? -1 : 1;
	}
	return (left->number > right->number) - (left->number < right->number);
}

static int names_add(struct names *names, const char *file, const char *rest, struct name name)
{
	if (names->count == names->capacity) {
		uint32_t capacity = names->capacity == 0 ? 16 : 2 * names->capacity;
		struct name *items = realloc(names->items, capacity * sizeof(*items));

		if (items == NULL) {
			return -ENOMEM;
		}
		names->items = items;
		names->capacity = capacity;
	}
	if (asprintf(&name.path, "%s%s", file, rest) < 0) {
		return -ENOMEM;
	}
	names->items[names->count++] = name;
	return 0;
}

/* NULL: there is none any more, or it cannot be read, and *out_error is set. */
static const struct dirent *next_entry(DIR *folder, int *out_error)
{
	const struct dirent *entry;

	errno = 0;
	entry = readdir(folder);
	if (entry == NULL) {
		*out_error = -errno;
	}
	return entry;
}

/* Those of its folder, the oldest first. */
static int names_find(struct names *names, const char *file)
{
	char *folder_of = strdup(file);
	char *base_of = strdup(file);
	DIR *folder = NULL;
	const struct dirent *entry;
	int rc = folder_of == NULL || base_of == NULL ? -ENOMEM : 0;

	if (rc == 0) {
		folder = opendir(dirname(folder_of));
		rc = folder == NULL ? -errno : 0;
	}
	while (rc == 0 && (entry = next_entry(folder, &rc)) != NULL) {
		const char *base = basename(base_of);
		size_t bytes = strlen(base);
		struct name name;

		if (strncmp(entry->d_name, base, bytes) == 0 &&
			read_name(entry->d_name + bytes, &name)) {
			rc = names_add(names, file, entry->d_name + bytes, name);
		}
	}
	if (folder != NULL) {
		closedir(folder);
	}
	free(folder_of);
	free(base_of);
	if (rc != 0) {
		report_path(file, report_reason(rc));
	} else if (names->count > 1) {
		qsort(names->items, names->count, sizeof(*names->items), compare_names);
	}
	return rc;
}

/* Both without links; a folder is below itself. */
static bool is_below(const char *folder, const char *above)
{
	size_t bytes = strlen(above);

	bytes -= bytes > 0 && above[bytes - 1] == '/' ? 1 : 0;
	return strncmp(folder, above, bytes) == 0 &&
		(folder[bytes] == '/' || folder[bytes] == '\0');
}

bool rank_logs_are_apart(const char *file, char *const *paths, int path_count)
{
	char *copy = strdup(file);
	char *folder = copy == NULL ? NULL : realpath(dirname(copy), NULL);
	bool are_apart = true;

	/* Where there is no such folder the open of the log says so. */
	for (int i = 0; i < path_count && folder != NULL && are_apart; i++) {
		char *path = realpath(paths[i], NULL);

		if (path != NULL && is_below(folder, path)) {
			report_line("%s is below %s: ranks would read each other's logs; choose "
				    "another folder",
				file, paths[i]);
			are_apart = false;
		}
		free(path);
	}
	free(folder);
	free(copy);
	return are_apart;
}

/* ---- one log ---- */

/*
 * Another run may still write it: its process holds the lock, which NFS gives
 * to none that cannot write.
 */
static int check_free(const char *path)
{
	static const struct timespec pause = {.tv_nsec = 1000000000 / LOCK_TRIES};
	int fd = open(path, O_RDWR | O_CLOEXEC);
	int rc = fd < 0 ? -errno : -EWOULDBLOCK;

	/* A process that was killed has the lock until it is gone. */
	for (int i = 0; i < LOCK_TRIES && rc == -EWOULDBLOCK; i++) {
		if (i > 0) {
			nanosleep(&pause, NULL);
		}
		rc = flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : -errno;
	}
	rc = rc == -EWOULDBLOCK ? -EBUSY : rc;
	if (fd >= 0) {
		close(fd);
	}
	if (rc != 0) {
		report_path(path,
			rc == -EBUSY ? "a rank of another run writes it: wait until it has ended"
				     : report_reason(rc));
	}
	return rc;
}

static int check_facts(const struct pinion_checkpoint *log, const char *path,
	const struct pinion_checkpoint_fact *facts, uint32_t fact_count)
{
	for (uint32_t i = 0; i + 1 < fact_count; i++) {
		const char *value = pinion_checkpoint_fact_value(log, facts[i].name);

		if (value == NULL || strcmp(value, facts[i].value) != 0) {
			report_line("%s is of another run: its %s: %s; now: %s", path,
				facts[i].name, value == NULL ? "(none)" : value, facts[i].value);
			return -ESTALE;
		}
	}
	return 0;
}

/* *out_log is NULL of a log that a crash has left without its facts. */
static int open_one(const char *path, uint32_t flags, const struct pinion_checkpoint_fact *facts,
	uint32_t fact_count, struct pinion_checkpoint **out_log)
{
	struct pinion_checkpoint_config config;
	struct stat status;
	int rc;

	*out_log = NULL;
	if (stat(path, &status) == 0 && status.st_size == 0) {
		return 0;
	}
	pinion_checkpoint_config_init(&config);
	config.flags = PINION_CHECKPOINT_READ | (flags & PINION_CHECKPOINT_SALVAGE);
	config.log = report_checkpoint_log;
	rc = pinion_checkpoint_open(path, &config, out_log);
	if (rc == -ENODATA) {
		return 0;
	}
	rc = rc < 0 ? rc : check_facts(*out_log, path, facts, fact_count);
	if (rc == -ENOMEM) {
		report_path(path, report_reason(rc));
	}
	return rc;
}

/* ---- all ---- */

/* Others are of this run, and begun before this rank has come so far. */
static bool is_opened(const struct name *name, bool is_first)
{
	return is_first || name->is_earlier;
}

/* A descriptor for each log, as long as this rank looks files up in them. */
static int allow_descriptors(const struct names *names, bool is_first)
{
	rlim_t wanted = DESCRIPTORS_BESIDE;
	struct rlimit limit;

	for (uint32_t i = 0; i < names->count; i++) {
		wanted += is_opened(&names->items[i], is_first) ? 1 : 0;
	}
	if (wanted == DESCRIPTORS_BESIDE || getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
		limit.rlim_cur >= wanted) {
		return 0;
	}
	if (limit.rlim_max < wanted) {
		report_line("`ulimit -n` is %llu, and %llu descriptors are needed for the logs of "
			    "earlier runs; raise it: ulimit -n %llu",
			(unsigned long long)limit.rlim_max, (unsigned long long)wanted,
			(unsigned long long)wanted);
		return -EMFILE;
	}
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &limit) == 0 ? 0 : -errno;
}

static int open_all(struct rank_logs *logs, const struct names *names, uint32_t flags,
	bool is_first, const struct pinion_checkpoint_fact *facts, uint32_t fact_count)
{
	int rc = allow_descriptors(names, is_first);

	if (rc < 0) {
		return rc;
	}
	logs->logs = calloc(names->count + 1, sizeof(struct pinion_checkpoint *));
	if (logs->logs == NULL) {
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < names->count && rc == 0; i++) {
		const struct name *name = &names->items[i];

		if (!is_opened(name, is_first)) {
			continue;
		}
		rc = is_first ? check_free(name->path) : 0;
		rc = rc < 0 ? rc : open_one(name->path, flags, facts, fact_count, &logs->logs[i]);
		logs->count = i + 1;
	}
	return rc;
}

/* Open logs stay open under their new names. */
static int rename_all(const struct names *names, const char *file)
{
	uint64_t next = 0;

	for (uint32_t i = 0; i < names->count; i++) {
		const struct name *name = &names->items[i];
		char *path;
		int rc;

		if (name->is_earlier) {
			next = name->number + 1;
			continue;
		}
		if (asprintf(&path, "%s%s%llu", file, earlier, (unsigned long long)next++) < 0) {
			return -ENOMEM;
		}
		rc = rename(name->path, path) == 0 ? 0 : -errno;
		free(path);
		if (rc != 0) {
			report_path(name->path, report_reason(rc));
			return rc;
		}
	}
	return 0;
}

/* Of the folder of a path, by following links. */
static bool look_at_folder(const char *path, struct stat *out_status)
{
	char *copy = strdup(path);
	bool is_there = copy != NULL && stat(dirname(copy), out_status) == 0;

	free(copy);
	return is_there;
}

static int note_place(struct rank_logs *logs, const char *file)
{
	const char *slash = strrchr(file, '/');
	struct stat folder;

	if (!look_at_folder(file, &folder)) {
		int rc = -errno;

		report_path(file, report_reason(rc));
		return rc;
	}
	logs->device = folder.st_dev;
	logs->inode = folder.st_ino;
	logs->base = strdup(slash == NULL ? file : slash + 1);
	return logs->base == NULL ? -ENOMEM : 0;
}

bool rank_logs_have(const struct rank_logs *logs, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash == NULL ? path : slash + 1;
	size_t bytes = logs->base == NULL ? 0 : strlen(logs->base);
	struct stat folder;
	struct name ignored;

	return bytes > 0 && strncmp(name, logs->base, bytes) == 0 &&
		read_name(name + bytes, &ignored) && look_at_folder(path, &folder) &&
		folder.st_dev == logs->device && folder.st_ino == logs->inode;
}

int rank_logs_open(struct rank_logs *logs, const char *file, bool is_first, uint32_t flags,
	const struct pinion_checkpoint_fact *facts, uint32_t fact_count)
{
	struct names names = {.count = 0};
	int rc = names_find(&names, file);

	if (rc == 0 && names.count > RANK_LOGS_MAX) {
		report_line("%s: %u logs are too many", file, names.count);
		rc = -EMFILE;
	}
	if (rc == 0 && is_first && (flags & PINION_CHECKPOINT_RESUME) == 0 && names.count > 0) {
		report_line("%s is there: go on with --resume, or name another log",
			names.items[0].path);
		rc = -EEXIST;
	}
	if (rc == 0) {
		rc = open_all(logs, &names, flags, is_first, facts, fact_count);
	}
	if (rc == 0 && is_first) {
		rc = rename_all(&names, file);
		file_of_first = file;
	}
	names_free(&names);
	return rc < 0 ? rc : note_place(logs, file);
}

void rank_logs_close(struct rank_logs *logs)
{
	for (uint32_t i = 0; i < logs->count; i++) {
		(void)pinion_checkpoint_close(logs->logs[i], 0);
	}
	free(logs->logs);
	free(logs->base);
	*logs = (struct rank_logs){.count = 0};
}

void rank_logs_remove_earlier(void)
{
	struct names names = {.count = 0};

	if (file_of_first != NULL) {
		(void)names_find(&names, file_of_first);
	}
	for (uint32_t i = 0; i < names.count; i++) {
		if (names.items[i].is_earlier) {
			(void)unlink(names.items[i].path);
		}
	}
	names_free(&names);
}
