/* SPDX-License-Identifier: MIT */
/*
 * The facts of a checkpoint log: names and values that say which run it is of,
 * in the frame HEADER.
 *
 * The open of a log calls it: it makes the facts of this run, and compares them
 * with those that are there.
 *
 * Invariant: a payload is the version of the format, then pairs of texts that
 * each end in a 0; a payload from a file may be cut or damaged anywhere.
 */
#include "runtime/base/check.h"
#include "runtime/checkpoint/checkpoint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A later difference is shown from its word on, so that it fits the line. */
enum {
	VALUE_BEGIN_MAX = 100,
	/* Bytes of a long word that are shown before the difference. */
	WORD_BEGIN_MAX = 60,
};

static const char *find_fact(const uint8_t *header, size_t bytes, const char *name)
{
	const char *at = (const char *)header + sizeof(uint32_t);
	const char *end = (const char *)header + bytes;

	PIN_DCHECK(bytes >= sizeof(uint32_t)); /* the version was read */
	while (at < end) {
		const char *value = at + strnlen(at, (size_t)(end - at)) + 1;
		const char *next;

		if (value >= end) {
			return NULL;
		}
		next = value + strnlen(value, (size_t)(end - value)) + 1;
		if (next > end) {
			return NULL;
		}
		if (strcmp(at, name) == 0) {
			return value;
		}
		at = next;
	}
	return NULL;
}

int pin_checkpoint_make_header(
	struct pinion_checkpoint *checkpoint, const struct pinion_checkpoint_config *config)
{
	uint32_t version = PIN_CHECKPOINT_VERSION;
	size_t bytes = sizeof(version);
	uint8_t *at;

	for (uint32_t i = 0; i < config->fact_count; i++) {
		bytes += strlen(config->facts[i].name) + strlen(config->facts[i].value) + 2;
	}
	if (bytes > PINION_CHECKPOINT_FACT_BYTES_MAX) {
		return pin_checkpoint_refuse(checkpoint, -EINVAL,
			"its facts have %zu bytes, more than %d", bytes,
			PINION_CHECKPOINT_FACT_BYTES_MAX);
	}
	checkpoint->header = malloc(bytes);
	if (checkpoint->header == NULL) {
		return -ENOMEM;
	}
	checkpoint->header_bytes = bytes;
	memcpy(checkpoint->header, &version, sizeof(version));
	at = checkpoint->header + sizeof(version);
	for (uint32_t i = 0; i < config->fact_count; i++) {
		at = (uint8_t *)stpcpy((char *)at, config->facts[i].name) + 1;
		at = (uint8_t *)stpcpy((char *)at, config->facts[i].value) + 1;
	}
	PIN_CHECK(at == checkpoint->header + bytes); /* the facts may not change meanwhile */
	return 0;
}

/* Where two values are to be shown from, so that their difference is shown. */
static size_t shown_from(const char *left, const char *right)
{
	size_t word = 0;
	size_t at = 0;

	while (left[at] == right[at] && left[at] != '\0') {
		at++;
		word = left[at - 1] == ' ' ? at : word;
	}
	if (at < VALUE_BEGIN_MAX) {
		return 0;
	}
	if (at - word > WORD_BEGIN_MAX) {
		word = at - WORD_BEGIN_MAX;
		while (word < at && ((uint8_t)left[word] & 0xc0) == 0x80) { /* in a letter */
			word++;
		}
	}
	return word;
}

/* Names the first fact of `header` that `other` has otherwise, or lacks. */
static bool says_other_fact(const struct pinion_checkpoint *checkpoint, const uint8_t *header,
	size_t bytes, const uint8_t *other, size_t other_bytes)
{
	const char *at = (const char *)header + sizeof(uint32_t);
	bool is_ours = header == checkpoint->header;

	while (at < (const char *)header + bytes) {
		const char *value = at + strlen(at) + 1;
		const char *there = find_fact(other, other_bytes, at);

		if (there == NULL || strcmp(there, value) != 0) {
			const char *theirs = is_ours ? there : value;
			const char *ours = is_ours ? value : there;
			size_t from;

			theirs = theirs == NULL ? "(none)" : theirs;
			ours = ours == NULL ? "(none)" : ours;
			from = shown_from(theirs, ours);
			pin_checkpoint_refuse(checkpoint, -ESTALE,
				"it is of another run, with %s %s%.120s; this run has %s%.120s: "
				"remove it to begin anew",
				at, from > 0 ? "… " : "", theirs + from, from > 0 ? "… " : "",
				ours + from);
			return true;
		}
		at = value + strlen(value) + 1;
	}
	return false;
}

/* Takes over the facts of a log that is only read. */
static int adopt_header(struct pinion_checkpoint *checkpoint, const uint8_t *header, size_t bytes)
{
	uint8_t *copy = malloc(bytes);

	PIN_DCHECK((checkpoint->flags & PINION_CHECKPOINT_READ) != 0);
	if (copy == NULL) {
		return -ENOMEM;
	}
	memcpy(copy, header, bytes);
	free(checkpoint->header);
	checkpoint->header = copy;
	checkpoint->header_bytes = bytes;
	return 0;
}

int pin_checkpoint_check_header(struct pinion_checkpoint *checkpoint)
{
	struct pin_frame_reader reader = {.fd = checkpoint->fd};
	struct pin_frame frame;
	const uint8_t *header;
	uint32_t version = 0;
	int rc = pin_frame_next(&reader, &frame, &header);

	if (rc == 1 && frame.length >= sizeof(version)) {
		memcpy(&version, header, sizeof(version));
	}
	if (rc < 0 && rc != -EBADMSG) {
		rc = pin_checkpoint_refuse(checkpoint, rc, "cannot be read: %s", strerror(-rc));
	} else if (rc != 1 || frame.type != PIN_FRAME_HEADER || frame.sequence != 0) {
		rc = pin_checkpoint_refuse(
			checkpoint, -EBADMSG, "it is no checkpoint log, or its start is damaged");
	} else if (version != PIN_CHECKPOINT_VERSION) {
		rc = pin_checkpoint_refuse(checkpoint, -EPROTONOSUPPORT,
			"it has version %u of the format, this is %d", version,
			PIN_CHECKPOINT_VERSION);
	} else if ((checkpoint->flags & PINION_CHECKPOINT_READ) != 0) {
		rc = adopt_header(checkpoint, header, frame.length);
	} else {
		bool is_other = says_other_fact(checkpoint, checkpoint->header,
					checkpoint->header_bytes, header, frame.length) ||
			says_other_fact(checkpoint, header, frame.length, checkpoint->header,
				checkpoint->header_bytes);

		rc = is_other ? -ESTALE : 0;
	}
	pin_frame_reader_fini(&reader);
	return rc;
}

const char *pinion_checkpoint_fact_value(
	const struct pinion_checkpoint *checkpoint, const char *name)
{
	return find_fact(checkpoint->header, checkpoint->header_bytes, name);
}
