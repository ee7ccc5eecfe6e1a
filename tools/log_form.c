/* SPDX-License-Identifier: MIT */
/*
 * Parses PINION_LOG and writes lines in the form that it asks for.
 */
#include "tools/log_form.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum {
	PART_SHOWN = 40,
	MICROSECOND_NS = 1000,
};

/* By how many levels are shown. */
static const char *const level_names[PINION_LOG_LEVELS + 1] = {
	"off", "error", "warn", "info", "debug"};
#define LEVELS "off, error, warn, info, debug"

/* Of syslog(3), by level. */
static const int priorities[PINION_LOG_LEVELS] = {3, 4, 6, 7};

static bool is_word(const char *part, size_t length, const char *word)
{
	return strlen(word) == length && memcmp(part, word, length) == 0;
}

/* How many levels are shown; -1: it is none. */
static int find_level(const char *part, size_t length)
{
	for (int i = 0; i <= PINION_LOG_LEVELS; i++) {
		if (is_word(part, length, level_names[i])) {
			return i;
		}
	}
	return -1;
}

static int find_component(const char *part, size_t length)
{
	for (uint32_t i = 0; i < PINION_LOG_COMPONENTS; i++) {
		if (is_word(part, length, pinion_log_component_name(i))) {
			return (int)i;
		}
	}
	return -1;
}

static uint64_t limit_all(uint32_t level_count)
{
	uint64_t dropped = 0;

	for (uint32_t i = 0; i < PINION_LOG_COMPONENTS; i++) {
		dropped = pinion_log_limit(dropped, (enum pinion_log_component)i, level_count);
	}
	return dropped;
}

/* The part, cut to what a line has room for. */
static int shown(size_t length)
{
	return length < PART_SHOWN ? (int)length : PART_SHOWN;
}

static bool parse_component(
	const char *part, size_t length, uint64_t *dropped, char *mistake, size_t mistake_bytes)
{
	size_t name_length = (size_t)((const char *)memchr(part, '=', length) - part);
	const char *level = part + name_length + 1;
	size_t level_length = length - name_length - 1;
	int component = find_component(part, name_length);
	int level_count = find_level(level, level_length);
	size_t used;

	if (component >= 0 && level_count >= 0) {
		*dropped = pinion_log_limit(
			*dropped, (enum pinion_log_component)component, (uint32_t)level_count);
		return true;
	}
	if (component >= 0) {
		snprintf(mistake, mistake_bytes, "\"%.*s\": \"%.*s\" is not one of " LEVELS,
			shown(length), part, shown(level_length), level);
		return false;
	}
	used = (size_t)snprintf(mistake, mistake_bytes,
		"\"%.*s\": \"%.*s\" is no component:", shown(length), part, shown(name_length),
		part);
	for (uint32_t i = 0; i < PINION_LOG_COMPONENTS && used < mistake_bytes; i++) {
		used += (size_t)snprintf(mistake + used, mistake_bytes - used, "%s %s",
			i == 0 ? " there are" : ",", pinion_log_component_name(i));
	}
	return false;
}

/*
 * The level of all comes first, wherever it is: it is not to undo that of a
 * component.
 */
bool log_form_parse(const char *text, struct log_form *form, char *mistake, size_t mistake_bytes)
{
	struct log_form parsed = *form;
	const char *part = text;
	size_t length;

	for (; *part != '\0'; part += length + (part[length] == ',')) {
		int level_count;

		length = strcspn(part, ",");
		level_count = find_level(part, length);
		if (level_count >= 0) {
			parsed.dropped = limit_all((uint32_t)level_count);
		} else if (is_word(part, length, "json")) {
			parsed.is_json = true;
		} else if (memchr(part, '=', length) == NULL) {
			snprintf(mistake, mistake_bytes,
				"\"%.*s\" is neither a level (" LEVELS
				"), nor COMPONENT=LEVEL, nor json",
				shown(length), part);
			return false;
		}
	}
	for (part = text; *part != '\0'; part += length + (part[length] == ',')) {
		length = strcspn(part, ",");
		if (memchr(part, '=', length) != NULL &&
			!parse_component(part, length, &parsed.dropped, mistake, mistake_bytes)) {
			return false;
		}
	}
	*form = parsed;
	return true;
}

bool log_form_shows(const struct log_form *form, enum pinion_log_level level,
	enum pinion_log_component component)
{
	uint32_t dropped = (uint32_t)(form->dropped >> 8 * component & 255);

	return (uint32_t)level + dropped < PINION_LOG_LEVELS;
}

bool log_form_is_journal(const char *stream, int fd)
{
	unsigned long long device;
	unsigned long long inode;
	struct stat status;

	return stream != NULL && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
		fstat(fd, &status) == 0 && status.st_dev == device && status.st_ino == inode;
}

/* ---- lines ---- */

static void append_time(struct output_text *out)
{
	struct timespec now;
	struct tm parts;
	char text[32] = "";

	clock_gettime(CLOCK_REALTIME, &now);
	if (gmtime_r(&now.tv_sec, &parts) != NULL) {
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
	}
	output_text_format(out, "\"time\":\"%s.%06ldZ\",", text, now.tv_nsec / MICROSECOND_NS);
}

static void append_json(
	const struct log_form *form, const struct log_line *line, struct output_text *out)
{
	output_text_string(out, "{");
	if (!form->is_journal) {
		append_time(out);
	}
	output_text_format(out,
		"\"level\":\"%s\",\"component\":\"%s\",\"message\":", level_names[line->level + 1],
		line->component == NULL ? "command" : line->component);
	output_text_json(out, line->message, line->message_length);
	output_text_string(out, "}\n");
}

static void append_text(const struct log_line *line, struct output_text *out)
{
	static const char *const words[PINION_LOG_LEVELS] = {"", "warning: ", "info: ", "debug: "};

	output_text_string(out, "pinion");
	if (line->command != NULL) {
		output_text_format(out, " %s", line->command);
	}
	output_text_string(out, ": ");
	if (line->component != NULL) {
		output_text_string(out, words[line->level]);
		if (line->level >= PINION_LOG_INFO) {
			output_text_format(out, "%s: ", line->component);
		}
	}
	output_text_append(out, line->message, line->message_length);
	output_text_string(out, "\n");
}

void log_form_append(
	const struct log_form *form, const struct log_line *line, struct output_text *out)
{
	if (form->is_journal) {
		output_text_format(out, "<%d>", priorities[line->level]);
	}
	if (form->is_json) {
		append_json(form, line, out);
	} else {
		append_text(line, out);
	}
}
