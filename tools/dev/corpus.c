/* SPDX-License-Identifier: MIT */
/*
 * corpus [--size SIZE] [--seed N] [--files-small N] DIR
 *
 * Makes a tree of mixed files for demonstrations and tests: much source-like
 * text in small files, logs, JSON, some binary data, a few large files. The
 * same parameters always make the same bytes. Secrets of every built-in rule
 * are planted where scanners err: at the start and the end of a file, without
 * a newline, and across multiples of 4 KiB, 64 KiB and 1 MiB.
 *
 * Prints what it planted, RULE<TAB>START<TAB>END<TAB>PATH, and writes the same
 * to DIR.manifest. DIR.state tells that DIR is complete: then nothing is made
 * again. The rest of the text holds no secrets by its choice of words.
 */
#include "tools/dev/corpus_tree.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	/* One small file for so many bytes of the corpus: a quarter of it. */
	SMALL_FILE_SHARE = 44 << 10,
	PARAMETERS_BYTES = 8192,
};

__attribute__((noreturn)) void corpus_die(const char *what, const char *name)
{
	fprintf(stderr, "corpus: %s: %s\n", name, what);
	exit(2);
}

static uint64_t parse_number(const char *name, const char *text, bool is_size)
{
	char *end = NULL;
	unsigned long long number = text == NULL ? 0 : strtoull(text, &end, 10);

	if (text == NULL || end == text || text[0] == '-') {
		corpus_die("needs a number", name);
	}
	if (is_size && *end != '\0') {
		const char *letters = "KMGT";
		const char *letter = strchr(letters, *end);

		if (letter == NULL) {
			corpus_die("is not a size such as 64M or 1G", name);
		}
		number <<= 10 * (letter - letters + 1);
		end++;
	}
	if (*end != '\0') {
		corpus_die("is not a number", name);
	}
	return number;
}

static void parse(struct corpus *corpus, int argc, char **argv)
{
	bool has_small = false;

	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (strcmp(argv[i], "--size") == 0) {
			corpus->size = parse_number(argv[i++], value, true);
		} else if (strcmp(argv[i], "--seed") == 0) {
			corpus->seed = parse_number(argv[i++], value, false);
		} else if (strcmp(argv[i], "--files-small") == 0) {
			corpus->small_count = parse_number(argv[i++], value, false);
			has_small = true;
		} else if (argv[i][0] == '-' || corpus->folder != NULL) {
			corpus_die("usage: corpus [--size SIZE] [--seed N] [--files-small N] DIR",
				argv[i]);
		} else {
			corpus->folder = argv[i];
		}
	}
	if (corpus->folder == NULL) {
		corpus_die(
			"usage: corpus [--size SIZE] [--seed N] [--files-small N] DIR", "no DIR");
	}
	if (!has_small) {
		/* A quarter of the bytes. */
		corpus->small_count = corpus->size / SMALL_FILE_SHARE;
	}
}

static char *sibling(const struct corpus *corpus, const char *suffix)
{
	size_t length = strlen(corpus->folder);
	char *name = malloc(length + strlen(suffix) + 1);

	if (name == NULL) {
		corpus_die(strerror(ENOMEM), corpus->folder);
	}
	while (length > 1 && corpus->folder[length - 1] == '/') {
		length--;
	}
	memcpy(name, corpus->folder, length);
	strcpy(name + length, suffix);
	return name;
}

static void write_state(const char *path, const char *parameters, const char *word)
{
	FILE *state = fopen(path, "w");

	if (state == NULL || fprintf(state, "%s%s\n", parameters, word) < 0 || fclose(state) != 0) {
		corpus_die(strerror(errno), path);
	}
}

/*
 * What the state file says: 1 complete, 0 nothing or begun, -1 something else.
 */
static int read_state(const char *path, const char *parameters)
{
	static char text[PARAMETERS_BYTES + 16];
	FILE *state = fopen(path, "r");
	size_t length = strlen(parameters);

	if (state == NULL) {
		return 0;
	}
	if (fread(text, 1, sizeof(text) - 1, state) == 0 ||
		strncmp(text, parameters, length) != 0) {
		fclose(state);
		return -1;
	}
	fclose(state);
	return strcmp(text + length, "complete\n") == 0 ? 1 : 0;
}

static void print_manifest(const char *path)
{
	static char bytes[1 << 16];
	FILE *manifest = fopen(path, "r");
	size_t length;

	if (manifest == NULL) {
		corpus_die(strerror(errno), path);
	}
	while ((length = fread(bytes, 1, sizeof(bytes), manifest)) > 0) {
		if (fwrite(bytes, 1, length, stdout) != length) {
			corpus_die(strerror(errno), "standard output");
		}
	}
	fclose(manifest);
	if (fflush(stdout) != 0) {
		corpus_die(strerror(errno), "standard output");
	}
}

int main(int argc, char **argv)
{
	struct corpus corpus = {.size = 1ULL << 30, .seed = 1};
	static char parameters[PARAMETERS_BYTES];
	char *manifest_path;
	char *state_path;
	int state;

	parse(&corpus, argc, argv);
	manifest_path = sibling(&corpus, ".manifest");
	state_path = sibling(&corpus, ".state");
	snprintf(parameters, sizeof(parameters), "1 %llu %llu %llu %s\n",
		(unsigned long long)corpus.size, (unsigned long long)corpus.seed,
		(unsigned long long)corpus.small_count, corpus.folder);
	state = read_state(state_path, parameters);
	if (state < 0) {
		corpus_die("was made with other parameters; remove it and its .state first",
			corpus.folder);
	}
	if (state == 0) {
		if (mkdir(corpus.folder, 0777) != 0 &&
			(errno != EEXIST || access(state_path, F_OK) != 0)) {
			corpus_die(strerror(errno), corpus.folder);
		}
		write_state(state_path, parameters, "begun");
		corpus.manifest = fopen(manifest_path, "w");
		if (corpus.manifest == NULL) {
			corpus_die(strerror(errno), manifest_path);
		}
		corpus_make_tree(&corpus);
		if (fclose(corpus.manifest) != 0) {
			corpus_die(strerror(errno), manifest_path);
		}
		write_state(state_path, parameters, "complete");
	}
	print_manifest(manifest_path);
	free(manifest_path);
	free(state_path);
	return 0;
}
