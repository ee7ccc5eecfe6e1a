/* SPDX-License-Identifier: MIT */
/*
 * Goal: any path and digest survive being written and parsed, in every form,
 * and a line holds no newline but its last byte.
 * Method: random paths made mostly of the bytes that lists treat specially.
 */
#include "tools/sum/checklist.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 20000, PATH_BYTES_MAX = 12 };

static void make_path(unsigned *seed, char *path)
{
	static const char special[] = "\\\n\r nrx)(=*#\t\xff\x1b";
	int length = 1 + rand_r(seed) % PATH_BYTES_MAX;

	for (int i = 0; i < length; i++) {
		path[i] = special[(size_t)rand_r(seed) % (sizeof(special) - 1)];
	}
	path[length] = '\0';
}

static int check_round(unsigned *seed, struct output_text *text)
{
	const struct digest_algorithm *algorithm = &digest_algorithms[rand_r(seed) % DIGEST_COUNT];
	struct checklist_style style = {.is_tagged = rand_r(seed) % 2 == 0};
	struct checklist list = {0};
	struct checklist_entry entry;
	uint8_t digest[DIGEST_BYTES_MAX];
	char path[PATH_BYTES_MAX + 1];
	char *end;

	/* Their lines without a tag look like those of others. */
	if (!style.is_tagged &&
		(algorithm == &digest_algorithms[DIGEST_BLAKE3] ||
			algorithm == &digest_algorithms[DIGEST_MD5])) {
		list.only = algorithm;
	}
	make_path(seed, path);
	for (size_t i = 0; i < sizeof(digest); i++) {
		digest[i] = (uint8_t)rand_r(seed);
	}
	text->length = 0;
	checklist_append_line(text, algorithm, digest, path, style);
	end = memchr(text->bytes, '\n', text->length);
	if (text->failed || end != text->bytes + text->length - 1) {
		return 1;
	}
	*end = '\0';
	return checklist_parse(&list, text->bytes, text->length - 1, &entry) != CHECKLIST_ENTRY ||
		entry.algorithm != algorithm || strcmp(entry.path, path) != 0 ||
		memcmp(entry.digest, digest, algorithm->digest_bytes) != 0;
}

int main(void)
{
	const char *text = getenv("PINION_SEED");
	unsigned seed = text != NULL ? (unsigned)strtoul(text, NULL, 0) : (unsigned)time(NULL);
	struct output_text line = {0};
	int status = 0;

	printf("seed %u\n", seed);
	for (int i = 0; i < ROUNDS && status == 0; i++) {
		unsigned round_seed = seed + (unsigned)i;
		unsigned state = round_seed;

		status = check_round(&state, &line);
		if (status != 0) {
			printf("round %d came back differently: PINION_SEED=%u\n", i, round_seed);
		}
	}
	output_text_free(&line);
	return status;
}
