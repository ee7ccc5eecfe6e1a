/* SPDX-License-Identifier: MIT */
/*
 * Limits of the process's control groups: memory, CPU quota, threads; and the
 * words for the limit that was reached.
 *
 * Read when a runtime is created or a thread cannot be started; both versions
 * of cgroups, and each group up to the root of the tree that is visible.
 */
#include "runtime/host/cgroup.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fields of a line of mountinfo that matter here; pointers into the line. */
struct mount {
	char *group; /* the group of the mount point */
	char *point;
	bool is_v2;
};

static FILE *open_below(const char *root, const char *path)
{
	char *full = NULL;
	FILE *file = NULL;

	PIN_DCHECK(path[0] == '/');
	if (asprintf(&full, "%s%s", root, path) >= 0) {
		file = fopen(full, "re");
		free(full);
	}
	return file;
}

/* True when `list`, separated by commas, has the item `name`. */
static bool list_has(const char *list, const char *name)
{
	size_t length = strlen(name);

	PIN_DCHECK(length > 0);
	for (const char *item = list; item != NULL; item = strchr(item, ',')) {
		item += *item == ',';
		if (strncmp(item, name, length) == 0 &&
			(item[length] == ',' || item[length] == '\0')) {
			return true;
		}
	}
	return false;
}

/* mountinfo writes spaces and the like as \ooo. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from != '\0'; to++) {
		PIN_DCHECK(to <= from);
		if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] >= '0' &&
			from[2] <= '7' && from[3] >= '0' && from[3] <= '7') {
			*to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

/*
 * Takes a line of mountinfo apart, in place: ID PARENT DEVICE GROUP POINT
 * OPTIONS [TAG…] - TYPE SOURCE SUPER-OPTIONS. False for a mount that is no
 * hierarchy with that controller.
 */
static bool mount_parse(char *line, const char *controller, struct mount *out_mount)
{
	char *separator = strstr(line, " - ");
	char *save = NULL;
	char *fields[6] = {NULL};
	const char *type;
	const char *super_options;

	if (separator == NULL) {
		return false;
	}
	*separator = '\0';
	for (uint32_t i = 0; i < 6; i++) {
		fields[i] = strtok_r(i == 0 ? line : NULL, " ", &save);
		if (fields[i] == NULL) {
			return false;
		}
	}
	type = strtok_r(separator + 3, " \n", &save);
	if (type == NULL || strtok_r(NULL, " \n", &save) == NULL) {
		return false;
	}
	super_options = strtok_r(NULL, " \n", &save);
	out_mount->group = fields[3];
	out_mount->point = fields[4];
	out_mount->is_v2 = strcmp(type, "cgroup2") == 0;
	unescape(out_mount->group);
	unescape(out_mount->point);
	return out_mount->is_v2 ||
		(strcmp(type, "cgroup") == 0 && super_options != NULL &&
			list_has(super_options, controller));
}

/*
 * The path of this process's group in that hierarchy, for the caller to free,
 * or NULL. A line reads ID:CONTROLLERS:PATH, for version 2 "0::PATH".
 */
static char *group_of_process(const char *root, const char *controller, bool is_v2)
{
	FILE *file = open_below(root, "/proc/self/cgroup");
	char *line = NULL;
	char *group = NULL;
	size_t capacity = 0;

	while (file != NULL && group == NULL && getline(&line, &capacity, file) > 0) {
		char *controllers = strchr(line, ':');
		char *path = controllers == NULL ? NULL : strchr(controllers + 1, ':');

		if (path == NULL) {
			continue;
		}
		*path++ = '\0';
		controllers++;
		path[strcspn(path, "\n")] = '\0';
		if (is_v2 ? controllers[0] == '\0' : list_has(controllers, controller)) {
			group = strdup(path);
		}
	}
	free(line);
	if (file != NULL) {
		fclose(file);
	}
	return group;
}

/* The part of `group` below the group of the mount point; "" at worst. */
static const char *group_below_mount(const char *group, const char *mount_group)
{
	size_t length = strlen(mount_group);

	if (strstr(group, "/..") != NULL) {
		return "";
	}
	if (length == 1 && mount_group[0] == '/') {
		return group[1] == '\0' ? "" : group;
	}
	if (strncmp(group, mount_group, length) == 0 &&
		(group[length] == '/' || group[length] == '\0')) {
		return group + length;
	}
	return "";
}

/* From the process's group up to the mount point. */
static void visit_mount(const char *root, const char *controller, const struct mount *mount,
	pin_cgroup_visit_fn visit, void *arg)
{
	char *group = group_of_process(root, controller, mount->is_v2);
	char *directory = NULL;

	if (group == NULL) {
		return;
	}
	if (asprintf(&directory, "%s%s", mount->point, group_below_mount(group, mount->group)) <
		0) {
		free(group);
		return;
	}
	for (size_t top = strlen(mount->point);;) {
		struct pin_cgroup visited = {
			.root = root,
			.directory = directory,
			.is_v2 = mount->is_v2,
		};

		visit(arg, &visited);
		if (strlen(directory) <= top) {
			break;
		}
		*strrchr(directory, '/') = '\0';
		PIN_CHECK(strlen(directory) >= top); /* never above the mount point */
	}
	free(directory);
	free(group);
}

/*
 * Visits the process's group and those above it, in each mounted tree that has
 * the controller. Without /proc it visits none, which means no limit.
 */
void pin_cgroup_visit(
	const char *root, const char *controller, pin_cgroup_visit_fn visit, void *arg)
{
	int saved_errno = errno;
	FILE *file = open_below(root, "/proc/self/mountinfo");
	char *line = NULL;
	size_t capacity = 0;

	PIN_CHECK(visit != NULL);
	while (file != NULL && getline(&line, &capacity, file) > 0) {
		struct mount mount;

		if (mount_parse(line, controller, &mount)) {
			visit_mount(root, controller, &mount, visit, arg);
		}
	}
	free(line);
	if (file != NULL) {
		fclose(file);
	}
	errno = saved_errno;
}

FILE *pin_cgroup_open(const struct pin_cgroup *group, const char *name)
{
	char *path = NULL;
	FILE *file;

	PIN_DCHECK(strchr(name, '/') == NULL); /* of this group */
	if (asprintf(&path, "%s/%s", group->directory, name) < 0) {
		return NULL;
	}
	file = open_below(group->root, path);
	free(path);
	return file;
}

/* ---- memory ---- */

/*
 * Reading limit, use and page cache of each group; the two versions have other
 * names for them, and their own word for "no limit".
 */

/* Version 1 says "none" by a number close to 2^63. */
#define NO_LIMIT_V1 (UINT64_C(1) << 62)

struct names {
	const char *limit;
	const char *use;
	/* In memory.stat, with all groups below. */
	const char *cache[2];
};

static const struct names names_v1 = {
	.limit = "memory.limit_in_bytes",
	.use = "memory.usage_in_bytes",
	.cache = {"total_inactive_file", "total_active_file"},
};
static const struct names names_v2 = {
	.limit = "memory.max",
	.use = "memory.current",
	.cache = {"inactive_file", "active_file"},
};

/* UINT64_MAX if it is no number, as "max". */
static uint64_t read_number(const struct pin_cgroup *group, const char *name)
{
	unsigned long long number;
	uint64_t result = UINT64_MAX;
	FILE *file = pin_cgroup_open(group, name);

	if (file != NULL) {
		if (fscanf(file, "%llu", &number) == 1) {
			result = number;
		}
		fclose(file);
	}
	return result;
}

static uint64_t read_cache(const struct pin_cgroup *group, const struct names *names)
{
	char name[64];
	unsigned long long number;
	uint64_t sum = 0;
	FILE *file = pin_cgroup_open(group, "memory.stat");

	while (file != NULL && fscanf(file, "%63s %llu", name, &number) == 2) {
		for (size_t i = 0; i < PIN_ARRAY_COUNT(names->cache); i++) {
			sum += strcmp(name, names->cache[i]) == 0 ? number : 0;
		}
	}
	if (file != NULL) {
		fclose(file);
	}
	return sum;
}

/*
 * The group that leaves the least free memory counts. Page cache counts as
 * free, since the kernel gives it up.
 */
static void keep_tightest(void *arg, const struct pin_cgroup *group)
{
	struct pin_memlimit *tightest = arg;
	const struct names *names = group->is_v2 ? &names_v2 : &names_v1;
	uint64_t limit = read_number(group, names->limit);
	uint64_t used;
	uint64_t cache;

	if (limit >= NO_LIMIT_V1) {
		return;
	}
	used = read_number(group, names->use);
	if (used == UINT64_MAX) {
		used = 0;
	}
	cache = read_cache(group, names);
	used -= cache < used ? cache : used;
	PIN_DCHECK(tightest->free_bytes <= tightest->limit_bytes);
	if (limit - (used < limit ? used : limit) < tightest->free_bytes) {
		tightest->limit_bytes = limit;
		tightest->free_bytes = limit - (used < limit ? used : limit);
		snprintf(tightest->path, sizeof(tightest->path), "%s/%s", group->directory,
			names->limit);
	}
}

void pin_memlimit_find(const char *root, struct pin_memlimit *out_limit)
{
	*out_limit = (struct pin_memlimit){
		.limit_bytes = UINT64_MAX,
		.free_bytes = UINT64_MAX,
	};
	pin_cgroup_visit(root, "memory", keep_tightest, out_limit);
	PIN_CHECK(out_limit->free_bytes <= out_limit->limit_bytes);
	PIN_CHECK((out_limit->limit_bytes == UINT64_MAX) == (out_limit->path[0] == '\0'));
}

void pin_memlimit_lower_to_machine(const char *root, struct pin_memlimit *limit)
{
	static const char *const names[] = {
		"MemTotal:", "MemAvailable:", "SwapTotal:", "SwapFree:"};
	unsigned long long bytes[PIN_ARRAY_COUNT(names)] = {0};
	int saved_errno = errno;
	FILE *file = open_below(root, "/proc/meminfo");
	char line[256];
	uint64_t total;
	uint64_t free_bytes;

	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		for (size_t i = 0; i < PIN_ARRAY_COUNT(names); i++) {
			size_t length = strlen(names[i]);
			unsigned long long kib;

			if (strncmp(line, names[i], length) == 0 &&
				sscanf(line + length, "%llu", &kib) == 1) {
				bytes[i] = kib << 10;
			}
		}
	}
	if (file != NULL) {
		fclose(file);
	}
	errno = saved_errno;
	total = bytes[0] + bytes[2];
	free_bytes = bytes[1] + bytes[3];
	if (bytes[0] == 0 || bytes[1] == 0 || free_bytes > total ||
		free_bytes >= limit->free_bytes) {
		return;
	}
	*limit = (struct pin_memlimit){.limit_bytes = total,
		.free_bytes = free_bytes,
		.path = "the memory of this machine",
		.is_machine = true};
}

/* ---- CPU quota ---- */

/*
 * The smallest quota of the groups this process is in.
 */

/* "150000 100000" or "max 100000". */
static uint64_t read_v2(const struct pin_cgroup *group)
{
	unsigned long long quota_us = 0;
	unsigned long long period_us = 0;
	FILE *file = pin_cgroup_open(group, "cpu.max");

	if (file != NULL) {
		if (fscanf(file, "%llu %llu", &quota_us, &period_us) != 2) {
			period_us = 0;
		}
		fclose(file);
	}
	return period_us == 0 ? 0 : quota_us * 1000 / period_us + (quota_us == 0);
}

static long long read_v1_number(const struct pin_cgroup *group, const char *name)
{
	long long number = -1;
	FILE *file = pin_cgroup_open(group, name);

	if (file != NULL) {
		if (fscanf(file, "%lld", &number) != 1) {
			number = -1;
		}
		fclose(file);
	}
	return number;
}

/* A quota of -1 means none. */
static uint64_t read_v1(const struct pin_cgroup *group)
{
	long long quota_us = read_v1_number(group, "cpu.cfs_quota_us");
	long long period_us = read_v1_number(group, "cpu.cfs_period_us");

	if (quota_us <= 0 || period_us <= 0) {
		return 0;
	}
	return (uint64_t)quota_us * 1000 / (uint64_t)period_us;
}

static void keep_smallest(void *arg, const struct pin_cgroup *group)
{
	uint64_t *smallest = arg;
	uint64_t quota = group->is_v2 ? read_v2(group) : read_v1(group);

	if (quota != 0 && (*smallest == 0 || quota < *smallest)) {
		*smallest = quota;
	}
	PIN_DCHECK(quota == 0 || (*smallest > 0 && *smallest <= quota));
}

uint32_t pin_quota_millicpus(const char *root)
{
	uint64_t smallest = 0;

	pin_cgroup_visit(root, "cpu", keep_smallest, &smallest);
	return smallest > UINT32_MAX ? 0 : (uint32_t)smallest;
}

/* ---- limits of threads ---- */

/* From limits and their use to the limit that is reached. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "runtime/host/cgroup.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static size_t default_stack_bytes(void)
{
	pthread_attr_t attributes;
	size_t bytes = 0;

	if (pthread_getattr_default_np(&attributes) == 0) {
		pthread_attr_getstacksize(&attributes, &bytes);
		pthread_attr_destroy(&attributes);
	}
	return bytes;
}

/*
 * A size of this process, in bytes; 0: not known. VmPeak rather than VmSize,
 * which may be less than at the failure, when another thread has given back
 * some meanwhile; of data there is no peak.
 */
static unsigned long long read_status(const char *name)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	size_t length = strlen(name);
	unsigned long long kib = 0;

	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		if (strncmp(line, name, length) == 0 &&
			sscanf(line + length, ": %llu", &kib) == 1) {
			break;
		}
	}
	if (file != NULL) {
		fclose(file);
	}
	return kib << 10;
}

static long long read_count(const struct pin_cgroup *group, const char *name)
{
	FILE *file = pin_cgroup_open(group, name);
	long long number = -1;

	if (file != NULL) {
		/* "max" is no number. */
		if (fscanf(file, "%lld", &number) != 1) {
			number = -1;
		}
		fclose(file);
	}
	return number;
}

static void find_reached(void *arg, const struct pin_cgroup *group)
{
	long long *reached = arg;
	long long max = read_count(group, "pids.max");

	if (max >= 0 && read_count(group, "pids.current") >= max) {
		*reached = max;
	}
}

/*
 * pthread_create() says EAGAIN for four different limits; this finds the
 * reached one and says how to raise it.
 */
void pin_threadlimit_hint_at(
	const char *root, int error, size_t stack_bytes, char *out, size_t size)
{
	size_t stack = stack_bytes > 0 ? stack_bytes : default_stack_bytes();
	struct rlimit space = {.rlim_cur = RLIM_INFINITY};
	struct rlimit data = {.rlim_cur = RLIM_INFINITY};
	struct rlimit processes = {.rlim_cur = RLIM_INFINITY};
	long long reached = -1;

	PIN_CHECK(error < 0);
	PIN_CHECK(size > 0);
	if (error != -EAGAIN) {
		snprintf(out, size, "%s", strerror(-error));
		return;
	}
	getrlimit(RLIMIT_AS, &space);
	getrlimit(RLIMIT_DATA, &data);
	getrlimit(RLIMIT_NPROC, &processes);
	if (space.rlim_cur != RLIM_INFINITY && read_status("VmPeak") + stack > space.rlim_cur) {
		snprintf(out, size,
			"its stack of %zu KiB does not fit below `ulimit -v` %llu; raise that "
			"(LimitAS= in the systemd unit)",
			stack >> 10, (unsigned long long)space.rlim_cur >> 10);
		return;
	}
	if (data.rlim_cur != RLIM_INFINITY && read_status("VmData") + stack > data.rlim_cur) {
		snprintf(out, size,
			"its stack of %zu KiB does not fit below `ulimit -d` %llu; raise that "
			"(LimitDATA= in the systemd unit)",
			stack >> 10, (unsigned long long)data.rlim_cur >> 10);
		return;
	}
	pin_cgroup_visit(root, "pids", find_reached, &reached);
	if (reached >= 0) {
		snprintf(out, size,
			"the cgroup has reached its pids.max of %lld; raise that (TasksMax= in the "
			"systemd unit)",
			reached);
	} else if (processes.rlim_cur != RLIM_INFINITY) {
		snprintf(out, size,
			"the user has reached `ulimit -u` %llu; raise that (LimitNPROC= in the "
			"systemd unit)",
			(unsigned long long)processes.rlim_cur);
	} else {
		snprintf(out, size,
			"the system has no thread left; raise sysctl kernel.threads-max and "
			"kernel.pid_max");
	}
}

void pin_threadlimit_hint(int error, size_t stack_bytes, char *out, size_t size)
{
	pin_threadlimit_hint_at("", error, stack_bytes, out, size);
}
