/* SPDX-License-Identifier: MIT */
/*
 * From a JSON value to a case: tables of names, places and largest values.
 */
#include "tests/sim/case.h"
#include "runtime/base/base.h"
#include "tests/sim/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	TEXT_BYTES_MAX = 64 * 1024,
	PER_MILLE_MAX = 900,
	US_MAX = 1000 * 1000,
};

/* A number: its name, its place in its struct, its range. */
struct field {
	const char *name;
	size_t offset;
	uint32_t min;
	uint32_t max;
};

#define CASE(name, min, max) \
	{ \
#name, offsetof(struct sim_case, name), min, max \
	}
#define PROGRAM(name, max) \
	{ \
#name, offsetof(struct sim_program, name), 0, max \
	}
#define SOURCE(name, max) \
	{ \
#name, offsetof(struct sim_source, name), 0, max \
	}
#define FAULT(name, max) \
	{ \
#name, offsetof(struct sim_faults, name), 0, max \
	}

static const struct field case_fields[] = {
	CASE(workers, 1, SIM_WORKERS_MAX),
	CASE(ring_entries, 8, 64),
	CASE(end_us, 0, US_MAX),
	CASE(age_limit_us, 1, US_MAX),
	CASE(sleeper_limit_us, 0, US_MAX),
	CASE(task_ns, 0, US_MAX),
	CASE(rings_wait, 0, 1),
	CASE(lane_floor, 0, 65535),
	CASE(low_max_wait_ms, 0, 1000),
	CASE(assist, 0, 1),
	CASE(assist_reserve, 0, SIM_WORKERS_MAX),
	CASE(ring_sharing, 0, 1),
	CASE(resizes, 0, 6),
	CASE(depth, 0, 64),
	CASE(limits, 0, 16),
	CASE(no_rings, 0, 1),
	CASE(polled, 0, 2),
	CASE(commands, 0, 2),
	CASE(park_timeout_us, 0, US_MAX),
	CASE(spawn_wake_us, 0, US_MAX),
	CASE(stall_ms, 0, 1000),
	{.name = NULL},
};

static const struct field program_fields[] = {
	PROGRAM(burn_us, US_MAX),
	PROGRAM(hold_us, US_MAX),
	PROGRAM(joins, 1),
	PROGRAM(reads, 64),
	PROGRAM(read_bytes, 4096),
	PROGRAM(write_percent, 100),
	PROGRAM(other_percent, 100),
	PROGRAM(deadline_percent, 100),
	PROGRAM(deadline_us, US_MAX),
	PROGRAM(cancel_percent, 100),
	PROGRAM(children, 1024),
	PROGRAM(shared_percent, 100),
	PROGRAM(high_percent, 100),
	PROGRAM(low_percent, 100),
	PROGRAM(urgent_percent, 100),
	{.name = NULL},
};

static const struct field source_fields[] = {
	SOURCE(tasks, 1024),
	SOURCE(pause_us, US_MAX),
	SOURCE(requests, 1024),
	SOURCE(cancels, 1024),
	{.name = NULL},
};

static const struct field fault_fields[] = {
	FAULT(late, PER_MILLE_MAX),
	FAULT(hung, PER_MILLE_MAX),
	FAULT(short_read, PER_MILLE_MAX),
	FAULT(io_error, PER_MILLE_MAX),
	FAULT(interrupted, PER_MILLE_MAX / 2),
	FAULT(enter_fails, PER_MILLE_MAX),
	FAULT(enter_short, PER_MILLE_MAX),
	FAULT(cancel_misses, PER_MILLE_MAX),
	FAULT(doorbell_fails, PER_MILLE_MAX),
	FAULT(poll_ends, PER_MILLE_MAX),
	FAULT(spurious, PER_MILLE_MAX),
	FAULT(stall, 100 * 1000),
	FAULT(no_ring, PER_MILLE_MAX),
	FAULT(no_ring_memory, PER_MILLE_MAX),
	FAULT(no_locked_memory, PER_MILLE_MAX),
	FAULT(no_thread, PER_MILLE_MAX),
	FAULT(late_us, US_MAX),
	FAULT(stall_us, US_MAX),
	{.name = NULL},
};

struct reader {
	const char *path;
	struct sim_case *test;
};

static bool complain(const struct reader *reader, const struct json *value, const char *what)
{
	printf("%s:%u: %s: %s\n", reader->path, value->line, value->name, what);
	return false;
}

/* False when no field has that name, or the value does not fit. */
static bool read_number(const struct reader *reader, const struct json *value,
	const struct field *fields, void *out)
{
	for (const struct field *field = fields; field->name != NULL; field++) {
		if (strcmp(field->name, value->name) != 0) {
			continue;
		}
		if (value->kind != JSON_NUMBER || value->number < field->min ||
			value->number > field->max) {
			return complain(reader, value, "out of range");
		}
		*(uint32_t *)(void *)((char *)out + field->offset) = value->number;
		return true;
	}
	return complain(reader, value, "unknown");
}

static const struct sim_program *find_program(const struct sim_case *test, const char *name)
{
	for (uint32_t i = 0; i < test->program_count; i++) {
		if (strcmp(test->programs[i].name, name) == 0) {
			return &test->programs[i];
		}
	}
	return NULL;
}

static bool read_program_name(
	const struct reader *reader, const struct json *value, const struct sim_program **out)
{
	*out = value->kind == JSON_STRING ? find_program(reader->test, value->text) : NULL;
	return *out != NULL || complain(reader, value, "no program above has this name");
}

/* Whether they are good worker classes is the product's to say. */
static bool read_lanes(const struct reader *reader, const struct json *value)
{
	char *lanes = reader->test->lanes;

	if (value->kind != JSON_STRING || strlen(value->text) >= SIM_LANES_BYTES) {
		return complain(reader, value, "not a short string");
	}
	memcpy(lanes, value->text, strlen(value->text) + 1);
	return true;
}

static bool read_program(const struct reader *reader, const struct json *value)
{
	struct sim_program *program = &reader->test->programs[reader->test->program_count];

	if (value->kind != JSON_OBJECT || reader->test->program_count == SIM_PROGRAMS_MAX) {
		return complain(reader, value, "not a program, or too many");
	}
	for (const struct json *member = value->children; member; member = member->next) {
		if (strcmp(member->name, "name") == 0) {
			if (member->kind != JSON_STRING ||
				strlen(member->text) >= sizeof(program->name)) {
				return complain(reader, member, "not a short string");
			}
			memcpy(program->name, member->text, strlen(member->text) + 1);
		} else if (strcmp(member->name, "spawns") == 0) {
			if (!read_program_name(reader, member, &program->spawns)) {
				return false;
			}
		} else if (!read_number(reader, member, program_fields, program)) {
			return false;
		}
	}
	if ((program->children > 0 && program->spawns == NULL) ||
		(program->reads > 0 && program->read_bytes < 512)) {
		return complain(reader, value, "children need \"spawns\", reads \"read_bytes\"");
	}
	reader->test->program_count++;
	return true;
}

static bool read_source(const struct reader *reader, const struct json *value)
{
	struct sim_source *source = &reader->test->sources[reader->test->source_count];

	if (value->kind != JSON_OBJECT || reader->test->source_count == SIM_SOURCES_MAX) {
		return complain(reader, value, "not a thread, or too many");
	}
	for (const struct json *member = value->children; member; member = member->next) {
		if (strcmp(member->name, "program") == 0) {
			if (!read_program_name(reader, member, &source->program)) {
				return false;
			}
		} else if (!read_number(reader, member, source_fields, source)) {
			return false;
		}
	}
	if (source->program == NULL) {
		return complain(reader, value, "a thread needs a \"program\"");
	}
	reader->test->source_count++;
	return true;
}

static bool read_end(const struct reader *reader, const struct json *value)
{
	bool is_either = strcmp(value->text, "either") == 0;

	reader->test->may_drain = is_either || strcmp(value->text, "drain") == 0;
	reader->test->may_stop = is_either || strcmp(value->text, "stop") == 0;
	return reader->test->may_drain || reader->test->may_stop ||
		complain(reader, value, "neither drain, nor stop, nor either");
}

static bool read_member(const struct reader *reader, const struct json *value)
{
	bool is_good = true;

	if (strcmp(value->name, "about") == 0) {
		return value->kind == JSON_STRING;
	}
	if (strcmp(value->name, "end") == 0) {
		return read_end(reader, value);
	}
	if (strcmp(value->name, "lanes") == 0) {
		return read_lanes(reader, value);
	}
	if (strcmp(value->name, "programs") == 0) {
		for (const struct json *item = value->children; item && is_good;
			item = item->next) {
			is_good = read_program(reader, item);
		}
		return is_good;
	}
	if (strcmp(value->name, "threads") == 0) {
		for (const struct json *item = value->children; item && is_good;
			item = item->next) {
			is_good = read_source(reader, item);
		}
		return is_good;
	}
	if (strcmp(value->name, "faults") == 0) {
		for (const struct json *item = value->children; item && is_good;
			item = item->next) {
			is_good = read_number(reader, item, fault_fields, &reader->test->faults);
		}
		return is_good;
	}
	return read_number(reader, value, case_fields, reader->test);
}

static bool read_case(const struct reader *reader, const struct json *root)
{
	for (const struct json *member = root->children; member; member = member->next) {
		if (!read_member(reader, member)) {
			return false;
		}
	}
	if (root->kind != JSON_OBJECT || reader->test->workers == 0 ||
		reader->test->ring_entries == 0 || reader->test->age_limit_us == 0 ||
		(!reader->test->may_drain && !reader->test->may_stop)) {
		return complain(reader, root,
			"a case needs workers, ring_entries, age_limit_us and an end");
	}
	if (reader->test->lane_floor == 1) {
		return complain(reader, root, "a floor is 0, or 2 and more");
	}
	return true;
}

static void name_case(struct sim_case *test, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash != NULL ? slash + 1 : path;
	size_t length = strcspn(name, ".");

	snprintf(test->name, sizeof(test->name), "%.*s", (int)length, name);
}

bool sim_case_load(struct sim_case *test, const char *path)
{
	const struct reader reader = {.path = path, .test = test};
	static char text[TEXT_BYTES_MAX];
	char error[128] = "";
	FILE *stream = fopen(path, "re");
	struct json *root;
	size_t length;
	bool is_good;

	*test = (struct sim_case){0};
	name_case(test, path);
	if (stream == NULL) {
		perror(path);
		return false;
	}
	length = fread(text, 1, sizeof(text) - 1, stream);
	fclose(stream);
	text[length] = '\0';
	root = json_parse(text, error, sizeof(error));
	if (root == NULL) {
		printf("%s: %s\n", path, error);
		return false;
	}
	is_good = read_case(&reader, root);
	if (is_good && test->may_drain && test->faults.hung > 0) {
		is_good = complain(&reader, root, "a drain waits for a hung request");
	}
	json_free(root);
	return is_good;
}
