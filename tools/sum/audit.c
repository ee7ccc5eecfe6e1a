/* SPDX-License-Identifier: MIT */
/*
 * The paths of the lists, sorted, and a walk that looks each file up.
 */
#include "tools/sum/audit.h"

#include "tools/growing.h"
#include "tools/report.h"
#include "tools/signals.h"

#include <errno.h>
#include <pinion/walk.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Appends the parts of a path to a text that has room for them. */
static char *append_parts(char *end, const char *path)
{
	while (*path != '\0') {
		size_t length = strcspn(path, "/");

		if (length > 0 && !(length == 1 && path[0] == '.')) {
			*end++ = '/';
			memcpy(end, path, length);
			end += length;
		}
		path += length + strspn(path + length, "/");
	}
	*end = '\0';
	return end;
}

/* The path as it is compared, malloc'ed, or NULL. */
static char *comparable(struct audit *audit, const char *path)
{
	char *text;
	char *end;

	if (audit->folder == NULL) {
		/* In a deleted folder all paths stay relative. */
		audit->folder = getcwd(NULL, 0);
		if (audit->folder == NULL) {
			audit->folder = strdup("");
		}
		if (audit->folder == NULL) {
			return NULL;
		}
	}
	text = malloc(strlen(audit->folder) + strlen(path) + 3);
	if (text == NULL) {
		return NULL;
	}
	end = append_parts(text, path[0] == '/' ? "" : audit->folder);
	append_parts(end, path);
	return text;
}

int audit_add(struct audit *audit, const char *path)
{
	char *text = comparable(audit, path);
	char **paths;

	if (text == NULL) {
		return -ENOMEM;
	}
	paths = growing_make_room(audit->paths, audit->count, &audit->capacity, sizeof(*paths));
	if (paths == NULL) {
		free(text);
		return -ENOMEM;
	}
	audit->paths = paths;
	audit->paths[audit->count++] = text;
	audit->is_sorted = false;
	return 0;
}

static int compare_paths(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

static int is_named(struct audit *audit, const char *path, bool *out_is_named)
{
	char *text = comparable(audit, path);

	if (text == NULL) {
		return -ENOMEM;
	}
	*out_is_named = audit->count > 0 &&
		bsearch(&text, audit->paths, audit->count, sizeof(*audit->paths), compare_paths) !=
			NULL;
	free(text);
	return 0;
}

/* By its identity, since lists are few and named in any way. */
static bool is_list(const struct audit_search *search, const char *path)
{
	struct stat file;
	struct stat list;

	if (stat(path, &file) != 0) {
		return false;
	}
	for (int i = 0; i < search->list_count; i++) {
		if (strcmp(search->lists[i], "-") != 0 && stat(search->lists[i], &list) == 0 &&
			list.st_dev == file.st_dev && list.st_ino == file.st_ino) {
			return true;
		}
	}
	return false;
}

struct visit {
	struct audit *audit;
	struct audit_search *search;
	int error; /* the first of a path that could not be searched */
};

static int visit_entry(void *arg, const struct pinion_walk_entry *entry)
{
	struct visit *visit = arg;
	bool is_known = true;
	int error = 0;

	if (signals_interrupted()) {
		return -ECANCELED;
	}
	if (entry->kind == PINION_WALK_ERROR) {
		report_path(entry->path, report_reason(entry->error));
		visit->error = visit->error == 0 ? entry->error : visit->error;
	} else if (entry->kind == PINION_WALK_FILE) {
		error = is_named(visit->audit, entry->path, &is_known);
	}
	if (error == 0 && !is_known && !is_list(visit->search, entry->path)) {
		visit->search->new_count++;
		visit->search->report(visit->search->arg, entry->path);
	}
	return error;
}

int audit_search(struct audit *audit, const char *root, struct audit_search *search)
{
	struct visit visit = {.audit = audit, .search = search};
	struct pinion_walk_config config;
	int error;

	if (!audit->is_sorted && audit->count > 0) {
		qsort(audit->paths, audit->count, sizeof(*audit->paths), compare_paths);
		audit->is_sorted = true;
	}
	pinion_walk_config_init(&config);
	config.skip_ignored = search->skip_ignored;
	error = pinion_walk_with(root, &config, visit_entry, &visit);
	if (error != 0 && error != -ECANCELED) {
		report_path(root, report_reason(error));
	}
	return error != 0 ? error : visit.error;
}

void audit_fini(struct audit *audit)
{
	for (size_t i = 0; i < audit->count; i++) {
		free(audit->paths[i]);
	}
	free(audit->paths);
	free(audit->folder);
	*audit = (struct audit){0};
}
