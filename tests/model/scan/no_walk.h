/* SPDX-License-Identifier: MIT */
/*
 * What models of a scan have in place of its walk, and of files beneath a
 * directory: their files come one by one. Included by one source of a program.
 */
#ifndef PIN_MODEL_NO_WALK_H
#define PIN_MODEL_NO_WALK_H

#include "runtime/host/long_path.h"
#include "runtime/scan/scan.h"
#include "runtime/scan/walk.h"
#include "tests/model/explorer.h"

#include <pinion/scan.h>
#include <pinion/walk.h>

int pin_beneath_check(const char *path)
{
	model_fail("%s is added beneath a directory", path);
}

void pinion_walk_config_init_sized(struct pinion_walk_config *config, uint32_t size)
{
	*config = (struct pinion_walk_config){.size = size};
}

int pin_walk(const struct pin_walk_means *means, const char *path,
	const struct pinion_walk_config *config, pinion_walk_fn visit_entry, void *arg)
{
	(void)means;
	(void)path;
	(void)config;
	(void)visit_entry;
	(void)arg;
	return 0;
}

int pin_walk_filter_create(const struct pin_host *host, const struct pinion_walk_filter *given,
	struct pin_walk_filter **out_filter)
{
	(void)host;
	MODEL_CHECK(given == NULL);
	*out_filter = NULL;
	return 0;
}

void pin_walk_filter_destroy(struct pin_walk_filter *filter)
{
	MODEL_CHECK(filter == NULL);
}

static int ignore_window(
	void *arg, struct pinion_scan_file *file, const struct pinion_window *window)
{
	(void)arg;
	(void)file;
	(void)window;
	return 0;
}

#endif
