/* SPDX-License-Identifier: MIT */
/*
 * Goal: lines come out whole whatever their length and wherever the reads cut
 * them; a line that is far too long is dropped and the next is found.
 * Method: a file of random lines around the sizes of the buffers is read back
 * and compared, with and without a last separator.
 */
#include "tools/input.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINES = 60, LENGTH_MAX = 200 * 1000 };

static char path[4096];

static size_t line_length(unsigned *seed)
{
	/* Mostly short, some longer than one read. */
	return (size_t)rand_r(seed) % (rand_r(seed) % 4 == 0 ? LENGTH_MAX : 50);
}

static void write_lines(FILE *file, unsigned seed, char separator, bool ends)
{
	for (int i = 0; i < LINES; i++) {
		size_t length = line_length(&seed);

		for (size_t j = 0; j < length; j++) {
			fputc('a' + (int)((j + (size_t)i) % 26), file);
		}
		if (i < LINES - 1 || ends || length == 0) {
			fputc(separator, file);
		}
	}
}

static int check_lines(unsigned seed, char separator)
{
	struct input_lines lines;
	char *line;
	size_t length;
	int status = 0;

	if (input_lines_init(&lines, path, separator) != 0) {
		return 1;
	}
	for (int i = 0; i < LINES && status == 0; i++) {
		size_t expected = line_length(&seed);

		if (input_lines_next(&lines, &line, &length) != 1 || length != expected ||
			strlen(line) != length) {
			printf("line %d: expected %zu bytes, got %zu\n", i, expected, length);
			status = 1;
		}
		for (size_t j = 0; j < length && status == 0; j++) {
			status = line[j] != (char)('a' + (int)((j + (size_t)i) % 26));
		}
	}
	if (status == 0 && input_lines_next(&lines, &line, &length) != 0) {
		printf("expected the end\n");
		status = 1;
	}
	input_lines_fini(&lines);
	return status;
}

static int check_round(unsigned seed, char separator, bool ends)
{
	FILE *file = fopen(path, "w");

	if (file == NULL) {
		return 1;
	}
	write_lines(file, seed, separator, ends);
	if (fclose(file) != 0 || check_lines(seed, separator) != 0) {
		printf("PINION_SEED=%u, separator %d\n", seed, separator);
		return 1;
	}
	return 0;
}

static int check_long_line(bool ends)
{
	FILE *file = fopen(path, "w");
	struct input_lines lines;
	char *line;
	size_t length;
	int status = 1;

	if (file == NULL) {
		return 1;
	}
	fputs("before\n", file);
	for (int i = 0; i < 5 * INPUT_LINE_BYTES_MAX; i++) {
		fputc('x', file);
	}
	fputs(ends ? "\nafter" : "", file);
	fclose(file);
	if (input_lines_init(&lines, path, '\n') != 0) {
		return 1;
	}
	if (input_lines_next(&lines, &line, &length) == 1 && strcmp(line, "before") == 0 &&
		input_lines_next(&lines, &line, &length) == -E2BIG &&
		length == INPUT_LINE_BYTES_MAX && strlen(line) == length &&
		(!ends ||
			(input_lines_next(&lines, &line, &length) == 1 &&
				strcmp(line, "after") == 0)) &&
		input_lines_next(&lines, &line, &length) == 0 &&
		lines.capacity <= 8 * INPUT_LINE_BYTES_MAX) {
		status = 0;
	}
	input_lines_fini(&lines);
	if (status != 0) {
		printf("a line that is too long was not dropped, or more than it\n");
	}
	return status;
}

int main(void)
{
	const char *text = getenv("PINION_SEED");
	unsigned seed = text != NULL ? (unsigned)strtoul(text, NULL, 0) : (unsigned)time(NULL);
	const char *folder = getenv("TMPDIR");
	int fd;
	int status = 0;

	printf("seed %u\n", seed);
	snprintf(path, sizeof(path), "%s/lines-XXXXXX", folder != NULL ? folder : "/tmp");
	fd = mkstemp(path);
	if (fd < 0) {
		printf("no scratch file\n");
		return 1;
	}
	close(fd);
	for (unsigned i = 0; i < 10 && status == 0; i++) {
		status = check_round(seed + i, i % 2 == 0 ? '\n' : '\0', i % 3 == 0);
	}
	if (status == 0) {
		status = check_long_line(true) | check_long_line(false);
	}
	unlink(path);
	return status;
}
