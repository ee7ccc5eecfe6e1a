/* SPDX-License-Identifier: MIT */
/*
 * /proc/self/mountinfo says where hierarchies are mounted and which of their
 * groups stands at the mount point; /proc/self/cgroup says in which group this
 * process is. In a container the two may disagree, the group lying outside of
 * what is mounted: then the mount point is the best there is, and it is right,
 * since it shows the container's own group.
 */
#include "runtime/host/quota.h"
#include "runtime/base/check.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fields of a line of mountinfo that matter here; pointers into the line. */
struct mount {
	char *group; /* the group that stands at the mount point */
	char *point;
	bool is_v2;
};

static FILE *open_below(const char *root, const char *path)
{
	char *full = NULL;
	FILE *file = NULL;

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

	for (const char *item = list; item != NULL; item = strchr(item, ',')) {
		item += *item == ',';
		if (strncmp(item, name, length) == 0 &&
			(item[length] == ',' || item[length] == '\0')) {
			return true;
		}
	}
	return false;
}

/* Spaces and the like stand in mountinfo as \ooo. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from != '\0'; to++) {
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
 * OPTIONS [TAG…] - TYPE SOURCE SUPER-OPTIONS. False for what is no hierarchy
 * with a CPU controller.
 */
static bool mount_parse(char *line, struct mount *out_mount)
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
			list_has(super_options, "cpu"));
}

/*
 * The path of this process's group in that hierarchy, for the caller to free,
 * or NULL. A line reads ID:CONTROLLERS:PATH, for version 2 "0::PATH".
 */
static char *group_of_process(const char *root, bool is_v2)
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
		if (is_v2 ? controllers[0] == '\0' : list_has(controllers, "cpu")) {
			group = strdup(path);
		}
	}
	free(line);
	if (file != NULL) {
		fclose(file);
	}
	return group;
}

/* "150000 100000" or "max 100000". */
static uint64_t read_v2(const char *root, const char *directory)
{
	unsigned long long quota_us = 0;
	unsigned long long period_us = 0;
	char *path = NULL;
	FILE *file;

	if (asprintf(&path, "%s/cpu.max", directory) < 0) {
		return 0;
	}
	file = open_below(root, path);
	free(path);
	if (file != NULL) {
		if (fscanf(file, "%llu %llu", &quota_us, &period_us) != 2) {
			period_us = 0;
		}
		fclose(file);
	}
	return period_us == 0 ? 0 : quota_us * 1000 / period_us + (quota_us == 0);
}

static long long read_v1_number(const char *root, const char *directory, const char *name)
{
	long long number = -1;
	char *path = NULL;
	FILE *file;

	if (asprintf(&path, "%s/%s", directory, name) < 0) {
		return -1;
	}
	file = open_below(root, path);
	free(path);
	if (file != NULL) {
		if (fscanf(file, "%lld", &number) != 1) {
			number = -1;
		}
		fclose(file);
	}
	return number;
}

/* A quota of -1 means none. */
static uint64_t read_v1(const char *root, const char *directory)
{
	long long quota_us = read_v1_number(root, directory, "cpu.cfs_quota_us");
	long long period_us = read_v1_number(root, directory, "cpu.cfs_period_us");

	if (quota_us <= 0 || period_us <= 0) {
		return 0;
	}
	return (uint64_t)quota_us * 1000 / (uint64_t)period_us;
}

/* What of `group` lies below the group at the mount point; "" at worst. */
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

/* The smallest quota from the process's group up to the mount point. */
static uint64_t smallest_in(const char *root, const struct mount *mount)
{
	char *group = group_of_process(root, mount->is_v2);
	char *directory = NULL;
	uint64_t smallest = 0;

	if (group == NULL) {
		return 0;
	}
	if (asprintf(&directory, "%s%s", mount->point, group_below_mount(group, mount->group)) <
		0) {
		free(group);
		return 0;
	}
	for (size_t top = strlen(mount->point);;) {
		uint64_t quota = mount->is_v2 ? read_v2(root, directory) : read_v1(root, directory);

		if (quota != 0 && (smallest == 0 || quota < smallest)) {
			smallest = quota;
		}
		if (strlen(directory) <= top) {
			break;
		}
		*strrchr(directory, '/') = '\0';
	}
	free(directory);
	free(group);
	return smallest;
}

uint32_t pin_quota_millicpus(const char *root)
{
	int saved_errno = errno;
	FILE *file = open_below(root, "/proc/self/mountinfo");
	uint64_t smallest = 0;
	char *line = NULL;
	size_t capacity = 0;

	while (file != NULL && getline(&line, &capacity, file) > 0) {
		struct mount mount;
		uint64_t quota;

		if (!mount_parse(line, &mount)) {
			continue;
		}
		quota = smallest_in(root, &mount);
		if (quota != 0 && (smallest == 0 || quota < smallest)) {
			smallest = quota;
		}
	}
	free(line);
	if (file != NULL) {
		fclose(file);
	}
	errno = saved_errno;
	return smallest > UINT32_MAX ? 0 : (uint32_t)smallest;
}
