/* SPDX-License-Identifier: MIT */
/*
 * The files of the corpus: filler out of pools, made once for each kind of
 * file, with secrets written over it. A secret is between newlines, so it ends
 * where it should.
 */
#include "tools/dev/corpus_tree.h"

#include "tools/dev/corpus_secrets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	KIB = 1 << 10,
	MIB = 1 << 20,
	POOL_BYTES = 4 * MIB,
	BLOCK_BYTES = MIB,
	LARGE_BYTES_MAX = 256 * MIB,
	SMALL_BYTES_MIN = 200,
	SMALL_BYTES_MAX = 32 * KIB,
	PLANTS_MAX = 300, /* in one file */
	FILES_PER_FOLDER = 40,
};

enum kind { KIND_SOURCE, KIND_LOG, KIND_JSON, KIND_BINARY, KIND_COUNT };

static const char *const suffixes[KIND_COUNT] = {".c", ".log", ".json", ".bin"};
static char *pools[KIND_COUNT];

static const char *const words[] = {"buffer", "count", "index", "value", "window", "return", "if",
	"while", "struct", "node", "list", "offset", "length", "state", "error", "result", "reader",
	"writer", "queue", "table", "entry", "block", "größe", "façade", "数据", "name", "path",
	"request", "handle", "update", "remove", "insert", "total", "first", "second"};
static const char *const joints[] = {" ", " ", " ", "(", ") ", ", ", " = ", "->", "[0]", ";\n",
	";\n\t", " {\n\t", "\n", " + ", "_", " /* ", " */\n"};

static const char *random_word(void)
{
	return words[corpus_random_below(sizeof(words) / sizeof(words[0]))];
}

static int fill_line(enum kind kind, char *line, size_t size)
{
	switch (kind) {
	case KIND_SOURCE:
		return snprintf(line, size, "%s%s", random_word(),
			joints[corpus_random_below(sizeof(joints) / sizeof(joints[0]))]);
	case KIND_LOG:
		return snprintf(line, size,
			"2026-%02u-%02uT%02u:%02u:%02u.%03uZ %s [%u] %s: %s %s took %u us\n",
			corpus_random_between(1, 12), corpus_random_between(1, 28),
			corpus_random_below(24), corpus_random_below(60), corpus_random_below(60),
			corpus_random_below(1000), corpus_random_below(9) == 0 ? "WARN" : "INFO",
			corpus_random_below(30000), random_word(), random_word(), random_word(),
			corpus_random_below(100000));
	case KIND_JSON:
		return snprintf(line, size, "{\"%s\":%u,\"%s\":\"%s %s\",\"%s\":[%u,%u]}\n",
			random_word(), corpus_random_below(1000000), random_word(), random_word(),
			random_word(), random_word(), corpus_random_below(256),
			corpus_random_below(256));
	case KIND_BINARY:
	case KIND_COUNT:
		break;
	}
	/* No letters: nothing that could become part of a secret. */
	line[0] = (char)(corpus_random_below(4) == 0 ? corpus_random_below(32)
						     : 128 + corpus_random_below(128));
	return 1;
}

static void fill_pool(enum kind kind)
{
	size_t length = 0;

	pools[kind] = malloc(POOL_BYTES + 256);
	if (pools[kind] == NULL) {
		corpus_die(strerror(ENOMEM), "pool");
	}
	while (length < POOL_BYTES) {
		length += (size_t)fill_line(kind, pools[kind] + length, 256);
	}
}

struct plant {
	uint64_t offset;
	uint32_t length;
	uint32_t secret;
	char bytes[CORPUS_SECRET_BYTES_MAX];
};

struct file {
	char path[256]; /* below the corpus */
	uint64_t size;
	enum kind kind;
	uint32_t plant_count;
	struct plant plants[PLANTS_MAX]; /* by offset, apart from each other */
};

static struct file file;
static char block[BLOCK_BYTES];
static char full_path[8192];

static const char *path_of(const struct corpus *corpus, const char *name)
{
	if (snprintf(full_path, sizeof(full_path), "%s/%s", corpus->folder, name) >=
		(int)sizeof(full_path)) {
		corpus_die(strerror(ENAMETOOLONG), name);
	}
	return full_path;
}

/* Makes the folders of file.path. */
static void make_folders(struct corpus *corpus)
{
	char name[256];
	char *slash = strrchr(file.path, '/');
	size_t length = slash == NULL ? 0 : (size_t)(slash - file.path);

	memcpy(name, file.path, length);
	name[length] = '\0';
	if (strcmp(name, corpus->last_folder) == 0) {
		return;
	}
	memcpy(corpus->last_folder, name, length + 1);
	for (size_t i = 1; i <= length; i++) {
		if (i == length || name[i] == '/') {
			name[i] = '\0';
			if (mkdir(path_of(corpus, name), 0777) != 0 && errno != EEXIST) {
				corpus_die(strerror(errno), full_path);
			}
			name[i] = file.path[i];
		}
	}
}

/*
 * Puts a byte of a plant into the block, if its place is in it and in the file.
 */
static void put_byte(uint64_t block_offset, uint64_t offset, char byte)
{
	if (offset >= block_offset && offset - block_offset < BLOCK_BYTES && offset < file.size) {
		block[offset - block_offset] = byte;
	}
}

/* A newline on both sides keeps a secret apart from the filler. */
static void apply_plant(uint64_t block_offset, const struct plant *plant)
{
	if (plant->offset > 0) {
		put_byte(block_offset, plant->offset - 1, '\n');
	}
	for (uint32_t i = 0; i < plant->length; i++) {
		put_byte(block_offset, plant->offset + i, plant->bytes[i]);
	}
	put_byte(block_offset, plant->offset + plant->length, '\n');
}

static void fill_block(uint64_t block_offset, size_t length)
{
	size_t done = 0;

	while (done < length) {
		size_t from = corpus_random_below(POOL_BYTES);
		size_t step = POOL_BYTES - from;

		step = step < length - done ? step : length - done;
		memcpy(block + done, pools[file.kind] + from, step);
		done += step;
	}
	for (uint32_t i = 0; i < file.plant_count; i++) {
		const struct plant *plant = &file.plants[i];

		if (plant->offset <= block_offset + length &&
			plant->offset + plant->length >= block_offset) {
			apply_plant(block_offset, plant);
		}
	}
}

static void write_file(struct corpus *corpus)
{
	int fd;

	make_folders(corpus);
	fd = open(path_of(corpus, file.path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0) {
		corpus_die(strerror(errno), full_path);
	}
	for (uint64_t offset = 0; offset < file.size; offset += BLOCK_BYTES) {
		uint64_t left = file.size - offset;
		size_t length = left < BLOCK_BYTES ? (size_t)left : BLOCK_BYTES;
		size_t written = 0;

		fill_block(offset, length);
		while (written < length) {
			ssize_t count = write(fd, block + written, length - written);

			if (count <= 0) {
				corpus_die(count < 0 ? strerror(errno) : "cannot be written",
					full_path);
			}
			written += (size_t)count;
		}
	}
	if (close(fd) != 0) {
		corpus_die(strerror(errno), full_path);
	}
	for (uint32_t i = 0; i < file.plant_count; i++) {
		const struct plant *plant = &file.plants[i];

		fprintf(corpus->manifest, "%s\t%llu\t%llu\t%s\n", corpus_secret_rule(plant->secret),
			(unsigned long long)plant->offset,
			(unsigned long long)(plant->offset + plant->length), full_path);
	}
}

/* The next secret in turn, not yet placed; NULL when the file is full. */
static struct plant *next_plant(struct corpus *corpus)
{
	struct plant *plant;

	if (file.plant_count == PLANTS_MAX) {
		return NULL;
	}
	plant = &file.plants[file.plant_count];
	plant->secret = corpus->next_secret;
	plant->length = corpus_secret_make(plant->secret, plant->bytes);
	return plant;
}

/* Takes the plant if it is after the last one and within the file. */
static void place_plant(struct corpus *corpus, struct plant *plant, uint64_t offset)
{
	uint64_t least = 0;

	if (file.plant_count > 0) {
		least = plant[-1].offset + plant[-1].length + 1;
	}
	if (offset < least || offset + plant->length > file.size) {
		return;
	}
	plant->offset = offset;
	file.plant_count++;
	corpus->next_secret = (corpus->next_secret + 1) % CORPUS_SECRET_COUNT;
}

/* So that the border at `border` cuts it. */
static void plant_across(struct corpus *corpus, uint64_t border)
{
	struct plant *plant = next_plant(corpus);

	if (plant != NULL) {
		uint64_t before = corpus_random_between(1, plant->length - 1);

		if (before <= border) {
			place_plant(corpus, plant, border - before);
		}
	}
}

static void plant_borders(struct corpus *corpus, uint64_t step)
{
	for (uint64_t border = step; border < file.size; border += step) {
		plant_across(corpus, border);
	}
}

static void plant_end(struct corpus *corpus)
{
	struct plant *plant = next_plant(corpus);

	if (plant != NULL && plant->length <= file.size) {
		place_plant(corpus, plant, file.size - plant->length);
	}
}

/* Start, end and middle in turn, each with every secret. */
static void plant_small(struct corpus *corpus)
{
	struct plant *plant = next_plant(corpus);
	uint64_t turn = corpus->small_planted / CORPUS_SECRET_COUNT % 3;

	if (plant == NULL || plant->length + 2 > file.size) {
		return;
	}
	if (turn == 0) {
		place_plant(corpus, plant, 0);
	} else if (turn == 1) {
		place_plant(corpus, plant, file.size - plant->length);
	} else {
		place_plant(corpus, plant, (file.size - plant->length) / 2);
	}
	corpus->small_planted++;
}

static void begin_file(enum kind kind, uint64_t size)
{
	file.kind = kind;
	file.size = size;
	file.plant_count = 0;
}

static uint64_t make_small_files(struct corpus *corpus)
{
	static const char *const folders[] = {"src", "lib", "My Documents", "größe", "数据"};
	uint64_t total = 0;
	/* Each secret at each place, spread over the tree. */
	uint64_t stride = corpus->small_count / (CORPUS_SECRET_COUNT * 3);

	for (uint64_t i = 0; i < corpus->small_count; i++) {
		uint64_t folder = i / FILES_PER_FOLDER;
		uint32_t spread = SMALL_BYTES_MAX - SMALL_BYTES_MIN;
		/*
		 * Squared, so that small ones are many: 200 B to 32 KiB, 8 KiB
		 * or so.
		 */
		uint32_t part = corpus_random_below(1000);
		uint64_t size = SMALL_BYTES_MIN + (uint64_t)spread * part / 1000 * part / 1000;
		enum kind kind = i % 20 == 19 ? KIND_BINARY : (enum kind)(i % 20 / 15);

		if (i % 20 == 18) {
			kind = KIND_JSON;
		}
		if (i % 1000 == 500) {
			size = i / 1000 % 2; /* Empty, or one byte. */
		}
		begin_file(kind, size);
		snprintf(file.path, sizeof(file.path), "%s/%s-%llu/%llu/%s %llu%s",
			folders[folder % 5], words[folder / 5 % 20],
			(unsigned long long)(folder / 100), (unsigned long long)folder,
			words[i % 20], (unsigned long long)i, suffixes[kind]);
		if (stride == 0 || i % stride == 0) {
			plant_small(corpus);
		}
		write_file(corpus);
		total += size;
	}
	return total;
}

static uint64_t make_middle_files(struct corpus *corpus, uint64_t wanted)
{
	uint64_t total = 0;

	for (uint32_t i = 0; total < wanted; i++) {
		uint64_t size = corpus_random_between(64 * KIB, 2 * MIB);

		begin_file((enum kind)(i % KIND_COUNT), size);
		snprintf(file.path, sizeof(file.path), "logs/%u/day %u%s", i / FILES_PER_FOLDER, i,
			suffixes[file.kind]);
		plant_borders(corpus, size < MIB ? 4 * KIB : 64 * KIB);
		write_file(corpus);
		total += size;
	}
	return total;
}

static void make_large_files(struct corpus *corpus, uint64_t wanted)
{
	for (uint32_t i = 0; wanted > 0; i++) {
		uint64_t size = wanted > 4 * MIB ? wanted / 2 : wanted;
		uint64_t step = 64 * KIB;

		size = size < LARGE_BYTES_MAX ? size : LARGE_BYTES_MAX;
		begin_file((enum kind)(i % KIND_COUNT), size);
		snprintf(file.path, sizeof(file.path), "images/disk %u%s", i, suffixes[file.kind]);
		while (size / step >= PLANTS_MAX - 1) {
			step *= 2;
		}
		plant_borders(corpus, step);
		plant_end(corpus);
		write_file(corpus);
		wanted -= size;
	}
}

void corpus_make_tree(struct corpus *corpus)
{
	uint64_t made;

	corpus_random_seed(corpus->seed);
	for (int kind = 0; kind < KIND_COUNT; kind++) {
		fill_pool((enum kind)kind);
	}
	made = make_small_files(corpus);
	made += make_middle_files(corpus, corpus->size / 8);
	if (made < corpus->size) {
		make_large_files(corpus, corpus->size - made);
	}
}
