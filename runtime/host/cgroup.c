/* SPDX-License-Identifier: MIT */
/*
 * From mountinfo and cgroup to the directories of groups.
 */
#include "runtime/host/cgroup.h"
#include "runtime/base/check.h"

#include <errno.h>
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
 * that may have the controller.
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
	}
	free(directory);
	free(group);
}

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

	if (asprintf(&path, "%s/%s", group->directory, name) < 0) {
		return NULL;
	}
	file = open_below(group->root, path);
	free(path);
	return file;
}
