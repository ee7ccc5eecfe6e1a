/* SPDX-License-Identifier: MIT */
/*
 * Shards by number, and the environments of job arrays that number them.
 */
#include "tools/sharding.h"

#include "tools/options.h"
#include "tools/report.h"

#include <ctype.h>
#include <errno.h>
#include <pinion/walk.h>
#include <stdlib.h>
#include <string.h>

/* The index of a task, of Slurm, a Kubernetes Indexed Job, PBS and Torque. */
static const char *const variables[] = {
	"SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX", "PBS_ARRAY_INDEX", "PBS_ARRAYID"};

/* A number and no more, which ends at `end`. */
static bool read_number(const char *text, const char *end, uint64_t *out_number)
{
	char *stop;

	errno = 0;
	*out_number = strtoull(text, &stop, 10);
	return isdigit((unsigned char)text[0]) && errno == 0 && stop == end;
}

bool sharding_read(const char *text, struct sharding *out_sharding)
{
	const char *slash = strchr(text, '/');
	uint64_t index;
	uint64_t count;

	if (slash == NULL || !read_number(text, slash, &index) ||
		!read_number(slash + 1, text + strlen(text), &count) ||
		count > SHARDING_COUNT_MAX || index >= count) {
		return false;
	}
	*out_sharding = (struct sharding){(uint32_t)index, (uint32_t)count};
	return true;
}

static bool parse_environment(struct sharding *sharding, const char *value)
{
	const char *text = NULL;
	const char *name = NULL;
	uint64_t count;
	uint64_t index;

	if (!options_count("shard-from-env", value, 1, SHARDING_COUNT_MAX, &count)) {
		return false;
	}
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]) && text == NULL; i++) {
		name = variables[i];
		text = getenv(name);
	}
	if (text == NULL) {
		report_line("--shard-from-env: none of SLURM_ARRAY_TASK_ID, JOB_COMPLETION_INDEX, "
			    "PBS_ARRAY_INDEX, PBS_ARRAYID is set: start it in a job array, or give "
			    "--shard=K/N");
		return false;
	}
	if (!read_number(text, text + strlen(text), &index) || index >= count) {
		report_line("--shard-from-env: %s is %s, not 0 to %llu: number the array from 0",
			name, text, (unsigned long long)count - 1);
		return false;
	}
	*sharding = (struct sharding){(uint32_t)index, (uint32_t)count};
	return true;
}

bool sharding_parse(struct sharding *sharding, const char *value, bool is_from_environment)
{
	if (is_from_environment) {
		return parse_environment(sharding, value);
	}
	if (!sharding_read(value, sharding)) {
		report_line("--shard: %s is no K/N, K from 0 to N - 1, N to %d: 0/4, 1/4, 2/4 and "
			    "3/4 are all of 4",
			value, SHARDING_COUNT_MAX);
		return false;
	}
	return true;
}

bool sharding_leaves_out(const struct sharding *sharding, const char *path)
{
	return sharding->count > 1 &&
		pinion_walk_shard(path, strlen(path), sharding->count) != sharding->index;
}
