/* SPDX-License-Identifier: MIT */
/*
 * Messages to the embedder: formatted on the stack and handed over one line at
 * a time, within the limit on lines a second.
 *
 * Called on any thread, workers included. This file has no assertions: a failed
 * assertion reports itself by a message, so it would come back here.
 */
#include "runtime/base/log.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum {
	MESSAGE_BYTES = 512,
	DROPPED_BITS = 8, /* of each component */
};

static const char *const component_names[PINION_LOG_COMPONENTS] = {
	[PINION_LOG_API] = "api",
	[PINION_LOG_HOST] = "host",
	[PINION_LOG_MEMORY] = "memory",
	[PINION_LOG_IO] = "io",
	[PINION_LOG_OBSERVE] = "observe",
	[PINION_LOG_WORKER] = "worker",
	[PINION_LOG_TASK] = "task",
	[PINION_LOG_SCAN] = "scan",
};

const char *pin_log_component_name(uint32_t component)
{
	return component < PINION_LOG_COMPONENTS ? component_names[component] : NULL;
}

/* FOLDER of ".../runtime/FOLDER/NAME.c"; api if FOLDER is no component. */
static enum pinion_log_component component_of(const char *file)
{
	static const char root[] = "runtime/";
	const char *folder = NULL;

	for (const char *at = file; (at = strstr(at, root)) != NULL; at += strlen(root)) {
		folder = at + strlen(root);
	}
	for (uint32_t i = 0; folder != NULL && i < PINION_LOG_COMPONENTS; i++) {
		size_t length = strlen(component_names[i]);

		if (strncmp(folder, component_names[i], length) == 0 && folder[length] == '/') {
			return (enum pinion_log_component)i;
		}
	}
	return PINION_LOG_API;
}

static uint32_t dropped_of(const struct pin_log *log, uint32_t component)
{
	return (uint32_t)(log->dropped >> component * DROPPED_BITS) & ((1u << DROPPED_BITS) - 1);
}

void pin_log_init(struct pin_log *log)
{
	log->levels_off = PINION_LOG_LEVELS;
	for (uint32_t i = 0; i < PINION_LOG_COMPONENTS && pin_log_has_hook(log); i++) {
		uint32_t dropped = dropped_of(log, i);

		log->levels_off = dropped < log->levels_off ? dropped : log->levels_off;
	}
}

void pin_log_send(const struct pin_log *log, enum pinion_log_level level,
	enum pinion_log_component component, const char *message)
{
	struct pinion_log_record record = {
		.size = sizeof(record),
		.level = (uint32_t)level,
		.component = (uint32_t)component,
		.message = message,
	};

	if (log->record != NULL) {
		log->record(log->arg, &record);
	} else if (log->fn != NULL) {
		log->fn(log->arg, level, message);
	}
}

/* Names of files and functions may have control characters for a terminal. */
static void clean(char *message)
{
	for (; *message != '\0'; message++) {
		unsigned char byte = (unsigned char)*message;

		if (byte < ' ' || byte == 0x7f) {
			*message = '?';
		}
	}
}

static void write_line(const struct pin_log *log, enum pinion_log_level level, const char *file,
	const char *format, va_list arguments) __attribute__((format(printf, 4, 0)));

static void write_line(const struct pin_log *log, enum pinion_log_level level, const char *file,
	const char *format, va_list arguments)
{
	char message[MESSAGE_BYTES];

	vsnprintf(message, sizeof(message), format, arguments);
	clean(message);
	pin_log_send(log, level, component_of(file), message);
}

bool pin_log_is_due(const struct pin_log *log, enum pinion_log_level level, const char *file,
	const char *format)
{
	enum pinion_log_component component;

	if (!pin_log_has_hook(log)) {
		return false;
	}
	component = component_of(file);
	return (uint32_t)level + dropped_of(log, component) < PINION_LOG_LEVELS &&
		(level == PINION_LOG_DEBUG || pin_log_rate_try(log, level, component, format));
}

void pin_log_write_due(const struct pin_log *log, enum pinion_log_level level, const char *file,
	const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	write_line(log, level, file, format, arguments);
	va_end(arguments);
}

void pin_log_write(const struct pin_log *log, enum pinion_log_level level, const char *file,
	const char *format, ...)
{
	va_list arguments;

	if (pin_log_is_due(log, level, file, format)) {
		va_start(arguments, format);
		write_line(log, level, file, format, arguments);
		va_end(arguments);
	}
}

/* ---- rates ---- */

/* Also of the first: 0 is none. */
static uint64_t second_of(const struct pin_log_rates *rates)
{
	return rates->now_ns() / UINT64_C(1000000000) + 1;
}

/* The row of a message, taken if it has none; NULL: all are taken. */
static struct pin_log_rate *find_row(struct pin_log_rates *rates, const char *format)
{
	uint64_t key = (uintptr_t)format;
	/* Formats are some ten bytes apart. */
	uint32_t first = (uint32_t)(key >> 3) ^ (uint32_t)(key >> 10);

	for (uint32_t i = 0; i < PIN_LOG_MESSAGES_MAX; i++) {
		struct pin_log_rate *row = &rates->messages[(first + i) % PIN_LOG_MESSAGES_MAX];
		uint64_t taken = pin_load_relaxed_u64(&row->format);

		if (taken == 0 && pin_cas_seq_cst_u64(&row->format, &taken, key)) {
			return row;
		}
		if (taken == key) {
			return row;
		}
	}
	return NULL;
}

/* Exchanged, so that each is reported once. */
static void say_skipped(const struct pin_log *log, struct pin_log_rate *row)
{
	uint32_t skipped = pin_exchange_acq_rel_u32(&row->skipped, 0);
	const char *format = (const char *)(uintptr_t)pin_load_relaxed_u64(&row->format);
	char message[MESSAGE_BYTES];

	if (skipped == 0) {
		return;
	}
	snprintf(message, sizeof(message), "%u more like \"%s\" in a second", skipped, format);
	/* Relaxed: each format has one level and one component. */
	pin_log_send(log, (enum pinion_log_level)pin_load_relaxed_u32(&row->level),
		(enum pinion_log_component)pin_load_relaxed_u32(&row->component), message);
}

bool pin_log_rate_try(const struct pin_log *log, enum pinion_log_level level,
	enum pinion_log_component component, const char *format)
{
	struct pin_log_rate *row = log->rates == NULL ? NULL : find_row(log->rates, format);
	uint64_t second;
	uint64_t last;

	if (row == NULL) {
		return true;
	}
	second = second_of(log->rates);
	last = pin_load_relaxed_u64(&row->second);
	/* The thread that begins a second reports the second before it. */
	if (last < second && pin_cas_seq_cst_u64(&row->second, &last, second)) {
		pin_store_relaxed_u32(&row->lines, 1);
		say_skipped(log, row);
		return true;
	}
	if (pin_fetch_add_relaxed_u32(&row->lines, 1) < PIN_LOG_LINES_MAX) {
		return true;
	}
	pin_store_relaxed_u32(&row->level, (uint32_t)level);
	pin_store_relaxed_u32(&row->component, (uint32_t)component);
	pin_fetch_add_seq_cst_u32(&row->skipped, 1);
	if (pin_load_relaxed_u32(&log->rates->has_skipped) == 0) {
		pin_store_release_u32(&log->rates->has_skipped, 1);
	}
	return false;
}

void pin_log_flush(const struct pin_log *log, bool is_end)
{
	struct pin_log_rates *rates = log->rates;
	uint64_t second;
	bool is_left = false;

	if (rates == NULL) {
		return;
	}
	if (pin_exchange_acq_rel_u32(&rates->has_skipped, 0) == 0 && !is_end) {
		return;
	}
	second = second_of(rates);
	for (uint32_t i = 0; i < PIN_LOG_MESSAGES_MAX; i++) {
		struct pin_log_rate *row = &rates->messages[i];

		if (is_end || pin_load_relaxed_u64(&row->second) < second) {
			say_skipped(log, row);
		} else if (pin_load_relaxed_u32(&row->skipped) != 0) {
			is_left = true;
		}
	}
	if (is_left) {
		pin_store_release_u32(&rates->has_skipped, 1);
	}
}
