/* SPDX-License-Identifier: MIT */
/*
 * Checkpoint logs for tests: records whose bytes follow from their number, and
 * the lines that the log says.
 */
#ifndef PIN_TESTS_SUPPORT_CHECKPOINTS_H
#define PIN_TESTS_SUPPORT_CHECKPOINTS_H

#include "tests/support/scratch.h"

#include <pinion/checkpoint.h>
#include <stdint.h>

enum {
	CHECKPOINTS_TYPE = 7,
	CHECKPOINTS_LINE = 512,
	CHECKPOINTS_BYTES_MAX = 64,
};

static char checkpoints_line[CHECKPOINTS_LINE]; /* the last */
static struct pinion_checkpoint_fact checkpoints_facts[] = {
	{"program", "test"},
	{"rules", "sha256:1234"},
};

static inline void checkpoints_log(void *arg, enum pinion_log_level level, const char *message)
{
	(void)arg;
	(void)level;
	snprintf(checkpoints_line, sizeof(checkpoints_line), "%s", message);
}

static inline struct pinion_checkpoint_config checkpoints_config(uint32_t flags)
{
	struct pinion_checkpoint_config config;

	pinion_checkpoint_config_init(&config);
	config.flags = flags;
	config.facts = checkpoints_facts;
	config.fact_count = 2;
	config.log = checkpoints_log;
	checkpoints_line[0] = '\0';
	return config;
}

/* The record of that number, 0 … 63 bytes long; returns its length. */
static inline size_t checkpoints_record(uint32_t number, uint8_t out_bytes[CHECKPOINTS_BYTES_MAX])
{
	size_t length = number * 37 % CHECKPOINTS_BYTES_MAX;

	for (size_t i = 0; i < length; i++) {
		out_bytes[i] = (uint8_t)(number * 31 + i * 7);
	}
	return length;
}

static inline int checkpoints_append(struct pinion_checkpoint *checkpoint, uint32_t number)
{
	uint8_t bytes[CHECKPOINTS_BYTES_MAX];
	size_t length = checkpoints_record(number, bytes);
	struct iovec parts[2] = {{bytes, length / 2}, {bytes + length / 2, length - length / 2}};

	return pinion_checkpoint_append(checkpoint, CHECKPOINTS_TYPE, parts, 2, 0);
}

/* Whether the record is that of a number. */
static inline bool checkpoints_is(const struct pinion_checkpoint_record *record, uint32_t number)
{
	uint8_t bytes[CHECKPOINTS_BYTES_MAX];
	size_t length = checkpoints_record(number, bytes);

	return record->type == CHECKPOINTS_TYPE && record->length_bytes == length &&
		memcmp(record->bytes, bytes, length) == 0;
}

#endif
