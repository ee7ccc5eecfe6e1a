/* SPDX-License-Identifier: MIT */
/*
 * Goal: every form of line that sha256sum, xxhsum and openssl write is
 * understood, and nothing else is.
 * Method: a table of lines with what each should give; the lines of one list
 * share its state, as in a file.
 */
#include "tests/support/expect.h"
#include "tools/sum/checklist.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHA "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
#define SHA_UPPER "CA978112CA1BBDCAFAC231B39A23DC4DA786EFF8147C4E72B9807785AFEE48BB"
#define X128 "a96faf705af16834e6c632b61e964e1f"
#define X64 "e6c632b61e964e1f"

enum { NONE = -1 };

struct row {
	const char *line;
	int algorithm; /* NONE: the line is bad */
	const char *path;
};

static void check_row(struct checklist *list, const struct row *row)
{
	struct checklist_entry entry;
	size_t length = strlen(row->line);
	char *line = malloc(length + 1);
	enum checklist_kind kind;

	expect_ready("malloc", line != NULL);
	memcpy(line, row->line, length + 1);
	kind = checklist_parse(list, line, length, &entry);
	expect_number(row->line, row->algorithm == NONE ? CHECKLIST_BAD : CHECKLIST_ENTRY, kind);
	if (row->algorithm != NONE && kind == CHECKLIST_ENTRY) {
		expect_text(
			row->line, digest_algorithms[row->algorithm].name, entry.algorithm->name);
		expect_text(row->line, row->path, entry.path);
		/* The second byte of every digest in the table is not zero. */
		expect_true(row->line, entry.digest[1] != 0);
	}
	free(line);
}

static void check_rows(int only, const struct row *rows)
{
	struct checklist list = {.only = only == NONE ? NULL : &digest_algorithms[only]};

	for (; rows->line != NULL; rows++) {
		check_row(&list, rows);
	}
}

static void check_blank(const char *text)
{
	struct checklist list = {0};
	struct checklist_entry entry;
	char line[32];

	snprintf(line, sizeof(line), "%s", text);
	expect_number(text, CHECKLIST_BLANK, checklist_parse(&list, line, strlen(line), &entry));
}

static void check_embedded_nul(void)
{
	struct checklist list = {0};
	struct checklist_entry entry;
	char line[] = SHA "  a\0b";

	expect_number("a line with a NUL", CHECKLIST_BAD,
		checklist_parse(&list, line, sizeof(line) - 1, &entry));
}

int main(void)
{
	static const struct row deduced[] = {
		{SHA "  a", DIGEST_SHA256, "a"},
		{SHA " *a", DIGEST_SHA256, "a"},
		{SHA_UPPER "  a", DIGEST_SHA256, "a"},
		{"  " SHA "  a", DIGEST_SHA256, "a"},
		{SHA "\t a", DIGEST_SHA256, "a"},
		{SHA "   a b ", DIGEST_SHA256, " a b "},
		{SHA "  a\r", DIGEST_SHA256, "a"},
		{"\\" SHA "  a\\nb\\\\c\\rd", DIGEST_SHA256, "a\nb\\c\rd"},
		{SHA "  a\\nb", DIGEST_SHA256, "a\\nb"},
		{"SHA256 (a) = " SHA, DIGEST_SHA256, "a"},
		{"SHA256(a)= " SHA, DIGEST_SHA256, "a"},
		{"SHA2-256(a)= " SHA, DIGEST_SHA256, "a"},
		{"SHA256 (a) = b) = " SHA, DIGEST_SHA256, "a) = b"},
		{"\\SHA256 (a\\nb) = " SHA, DIGEST_SHA256, "a\nb"},
		{"SHA256 (a) = " SHA "\r", DIGEST_SHA256, "a"},
		{X128 "  a", DIGEST_XXH3_128, "a"},
		{"XXH128 (a) = " X128, DIGEST_XXH3_128, "a"},
		{"XXH3 (a) = " X64, DIGEST_XXH3_64, "a"},
		{"XXH3_" X64 "  a", DIGEST_XXH3_64, "a"},
		{"\\XXH3_" X64 "  a\\\\", DIGEST_XXH3_64, "a\\"},
		/* 16 digits alone are XXH64. */
		{X64 "  a", NONE, NULL},
		{"XXH64 (a) = " X64, NONE, NULL},
		{"MD4 (a) = " X128, NONE, NULL},
		/* The gap of this list is settled, and a path is needed. */
		{SHA " a", NONE, NULL},
		{SHA "  ", NONE, NULL},
		{SHA " ", NONE, NULL},
		{SHA, NONE, NULL},
		{SHA "a  a", NONE, NULL},
		{SHA "-  a", NONE, NULL},
		{"z" SHA "  a", NONE, NULL},
		{"\\" SHA "  a\\", NONE, NULL},
		{"\\" SHA "  a\\t", NONE, NULL},
		{"SHA256 (a) = " X64, NONE, NULL},
		{"SHA256 (a) = " SHA "00", NONE, NULL},
		{"SHA256 (a) = " SHA " ", NONE, NULL},
		{"SHA256 (a) " SHA, NONE, NULL},
		{"SHA256 (a = " SHA, NONE, NULL},
		{"SHA256 () = " SHA, NONE, NULL},
		{"SHA256 ", NONE, NULL},
		{"XXH3_", NONE, NULL},
		{"\\", NONE, NULL},
		{" ", NONE, NULL},
		{"a", NONE, NULL},
		{NULL, NONE, NULL},
	};
	static const struct row reversed[] = {
		{SHA " a", DIGEST_SHA256, "a"},
		{SHA "  a", DIGEST_SHA256, " a"},
		{SHA " *a", DIGEST_SHA256, "*a"},
		{NULL, NONE, NULL},
	};
	static const struct row named[] = {
		{X64 "  a", DIGEST_XXH3_64, "a"},
		{"XXH3_" X64 "  a", DIGEST_XXH3_64, "a"},
		{"XXH3 (a) = " X64, DIGEST_XXH3_64, "a"},
		{X128 "  a", NONE, NULL},
		{SHA "  a", NONE, NULL},
		{"SHA256 (a) = " SHA, NONE, NULL},
		{NULL, NONE, NULL},
	};

	check_rows(NONE, deduced);
	check_rows(NONE, reversed);
	check_rows(DIGEST_XXH3_64, named);
	check_blank("");
	check_blank("\r");
	check_blank("# a comment");
	check_embedded_nul();
	return expect_status();
}
