/* SPDX-License-Identifier: MIT */
/*
 * corpus [--size SIZE] [--seed N] [--files-small N] DIR
 *
 * Makes a tree of mixed files for demonstrations and tests: much source-like
 * text in small files, logs, JSON, some binary data, a few large files. The
 * same parameters always make the same bytes. Secrets of 32 built-in rules are
 * planted where scanners err: at the start and the end of a file, without
 * a newline, and across multiples of 4 KiB, 64 KiB and 1 MiB.
 *
 * Prints what it planted, RULE<TAB>START<TAB>END<TAB>PATH, and writes the same
 * to DIR.manifest. DIR.state says that DIR is complete, and how many files and
 * bytes it had: while they are all there nothing is made again. The rest of the
 * text holds no secrets by its choice of words.
 */
#include "tools/dev/corpus_tree.h"

#include <errno.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	/*
	 * One small file for this number of bytes of the corpus: a quarter of
	 * it.
	 */
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

/* ---- what the corpus has ---- */

/* Of the folder, by count_one(): nftw(3) hands its callback nothing of ours. */
static uint64_t found_files;
static uint64_t found_bytes;

static int count_one(const char *path, const struct stat *status, int type, struct FTW *place)
{
	(void)path;
	(void)place;
	if (type == FTW_F) {
		found_files++;
		found_bytes += (uint64_t)status->st_size;
	}
	return 0;
}

/* Counts the folder's files and bytes; a folder that is missing has none. */
static void count_tree(const char *folder)
{
	found_files = 0;
	found_bytes = 0;
	(void)nftw(folder, count_one, 16, FTW_PHYS);
}

/* A state file begins with the parameters; an older one is made anew. */
static void write_state(const char *path, const char *parameters, bool is_complete)
{
	FILE *state = fopen(path, "w");
	int rc = state == NULL ? -1 : fprintf(state, "%s", parameters);

	if (rc >= 0 && is_complete) {
		rc = fprintf(state, "complete %llu %llu\n", (unsigned long long)found_files,
			(unsigned long long)found_bytes);
	}
	if (rc < 0 || fclose(state) != 0) {
		corpus_die(strerror(errno), path);
	}
}

enum state {
	STATE_OTHER,	  /* the folder was made with other parameters, or by others */
	STATE_INCOMPLETE, /* nothing there, interrupted, or files were removed since */
	STATE_COMPLETE,
};

static enum state read_state(const char *path, const char *parameters, const char *folder)
{
	static char text[PARAMETERS_BYTES + 64];
	FILE *state = fopen(path, "r");
	size_t length = strlen(parameters);
	size_t text_bytes;
	unsigned long long files;
	unsigned long long bytes;

	if (state == NULL) {
		return access(folder, F_OK) == 0 ? STATE_OTHER : STATE_INCOMPLETE;
	}
	text_bytes = fread(text, 1, sizeof(text) - 1, state);
	fclose(state);
	text[text_bytes] = '\0';
	/* An interrupt may leave a state file that says nothing yet. */
	if (text_bytes == 0) {
		return STATE_INCOMPLETE;
	}
	if (strncmp(text, parameters, length) != 0) {
		return access(folder, F_OK) == 0 ? STATE_OTHER : STATE_INCOMPLETE;
	}
	if (sscanf(text + length, "complete %llu %llu", &files, &bytes) != 2) {
		return STATE_INCOMPLETE;
	}
	count_tree(folder);
	return found_files >= files && found_bytes >= bytes ? STATE_COMPLETE : STATE_INCOMPLETE;
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
	enum state state;

	parse(&corpus, argc, argv);
	manifest_path = sibling(&corpus, ".manifest");
	state_path = sibling(&corpus, ".state");
	snprintf(parameters, sizeof(parameters), "1 %llu %llu %llu %s\n",
		(unsigned long long)corpus.size, (unsigned long long)corpus.seed,
		(unsigned long long)corpus.small_count, corpus.folder);
	state = read_state(state_path, parameters, corpus.folder);
	/* The manifest is printed below; without it the tree is made again. */
	if (state == STATE_COMPLETE && access(manifest_path, R_OK) != 0) {
		state = STATE_INCOMPLETE;
	}
	if (state == STATE_OTHER) {
		corpus_die("was made with other parameters, or by others; "
			   "remove it and its .state first",
			corpus.folder);
	}
	if (state == STATE_INCOMPLETE) {
		fprintf(stderr, "generating %llu MiB of mixed files in %s\n",
			(unsigned long long)(corpus.size >> 20), corpus.folder);
		/* First, so that a folder without one is never ours. */
		write_state(state_path, parameters, false);
		if (mkdir(corpus.folder, 0777) != 0 && errno != EEXIST) {
			corpus_die(strerror(errno), corpus.folder);
		}
		corpus.manifest = fopen(manifest_path, "w");
		if (corpus.manifest == NULL) {
			corpus_die(strerror(errno), manifest_path);
		}
		corpus_make_tree(&corpus);
		if (fclose(corpus.manifest) != 0) {
			corpus_die(strerror(errno), manifest_path);
		}
		count_tree(corpus.folder);
		write_state(state_path, parameters, true);
	}
	print_manifest(manifest_path);
	free(manifest_path);
	free(state_path);
	return 0;
}
