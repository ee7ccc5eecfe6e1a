/* SPDX-License-Identifier: MIT */
/*
 * Reads the mappings of a process and the symbol tables of its files.
 *
 * A file's table is read when the first address in it is asked for, from the
 * file as the process sees it (/proc/PID/root), or else by its plain name: the
 * process may have ended meanwhile.
 */
#include "runtime/host/symbols.h"
#include "runtime/base/check.h"
#include "runtime/host/shared_page.h"
#include "runtime/host/thread_state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Of all tables that are read, together. */
#define TABLE_BYTES_MAX ((size_t)256 << 20)

enum {
	MAPPINGS_MAX = 16384,
	IMAGES_MAX = 1024,
	PARTS_MAX = 64,
	SECTIONS_MAX = 65536,
	ROOT_BYTES = 32,
	KEPT_NAMES = 8,
	KEPT_SECONDS = 1,
};

/* A function: where it is in the file's addresses. */
struct function {
	uint64_t start;
	uint64_t bytes;
	uint32_t name; /* in `names` */
};

struct image {
	char *path;
	bool is_read;
	struct function *functions; /* by address */
	size_t function_count;
	char *names; /* ends in 0 */
	size_t names_bytes;
	ElfW(Phdr) parts[PARTS_MAX];
	uint32_t part_count;
};

struct mapping {
	uint64_t start;
	uint64_t end;
	uint64_t offset;
	uint32_t image;
};

struct pin_symbols {
	int pid;
	struct mapping *mappings;
	uint32_t mapping_count;
	struct image *images;
	uint32_t image_count;
	uint64_t table_bytes; /* read so far, or tried */
};

/* ---- mappings ---- */

/*
 * The image of that path, which neighbouring mappings share. -ENOSPC: there are
 * too many others.
 */
static int64_t image_of(struct pin_symbols *symbols, const char *path)
{
	struct image *grown;

	PIN_DCHECK(path[0] == '/');
	for (uint32_t i = symbols->image_count; i > 0; i--) {
		if (strcmp(symbols->images[i - 1].path, path) == 0) {
			return i - 1;
		}
	}
	if (symbols->image_count == IMAGES_MAX) {
		return -ENOSPC;
	}
	grown = realloc(symbols->images, (symbols->image_count + 1) * sizeof(*grown));
	if (grown == NULL) {
		return -ENOMEM;
	}
	symbols->images = grown;
	grown[symbols->image_count] = (struct image){.path = strdup(path)};
	if (grown[symbols->image_count].path == NULL) {
		return -ENOMEM;
	}
	return symbols->image_count++;
}

/*
 * Adds the mapping that a line of /proc/PID/maps describes. Skips mappings
 * that have no file or are not executable: no function's address is in them.
 */
static int add_mapping(struct pin_symbols *symbols, const char *line)
{
	struct mapping mapping;
	struct mapping *grown;
	char rights[8];
	int path_at = 0;
	int64_t image;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %n", &mapping.start,
		    &mapping.end, rights, &mapping.offset, &path_at) < 4 ||
		path_at == 0 || line[path_at] != '/' || strchr(rights, 'x') == NULL ||
		symbols->mapping_count == MAPPINGS_MAX) {
		return 0;
	}
	image = image_of(symbols, line + path_at);
	if (image == -ENOSPC) {
		return 0;
	}
	grown = realloc(symbols->mappings, (symbols->mapping_count + 1) * sizeof(*grown));
	if (grown != NULL) {
		symbols->mappings = grown;
	}
	if (image < 0 || grown == NULL) {
		return -ENOMEM;
	}
	PIN_DCHECK(image < symbols->image_count);
	mapping.image = (uint32_t)image;
	symbols->mappings[symbols->mapping_count++] = mapping;
	return 0;
}

static int read_mappings(struct pin_symbols *symbols)
{
	char path[ROOT_BYTES];
	char *line = NULL;
	size_t room = 0;
	int rc = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", symbols->pid);
	maps = fopen(path, "re");
	if (maps == NULL) {
		return errno == ENOENT ? -ESRCH : -errno;
	}
	while (rc == 0 && getline(&line, &room, maps) > 0) {
		line[strcspn(line, "\n")] = '\0';
		rc = add_mapping(symbols, line);
	}
	free(line);
	fclose(maps);
	return rc;
}

int pin_symbols_open(int pid, struct pin_symbols **out_symbols)
{
	struct pin_symbols *symbols = calloc(1, sizeof(*symbols));
	int rc;

	if (symbols == NULL) {
		return -ENOMEM;
	}
	symbols->pid = pin_process_thread(pid);
	rc = read_mappings(symbols);
	if (rc < 0) {
		pin_symbols_close(symbols);
		return rc;
	}
	*out_symbols = symbols;
	return 0;
}

void pin_symbols_close(struct pin_symbols *symbols)
{
	if (symbols == NULL) {
		return;
	}
	for (uint32_t i = 0; i < symbols->image_count; i++) {
		free(symbols->images[i].path);
		free(symbols->images[i].functions);
		free(symbols->images[i].names);
	}
	free(symbols->images);
	free(symbols->mappings);
	free(symbols);
}

/* ---- files ---- */

static bool read_at(int fd, uint64_t at, void *out, size_t bytes)
{
	return at <= INT64_MAX && pread(fd, out, bytes, (off_t)at) == (ssize_t)bytes;
}

/*
 * A table of the file, and a 0 after it; NULL: it is not all there, or is more
 * than may be read still.
 */
static void *read_table(struct pin_symbols *symbols, int fd, uint64_t at, uint64_t bytes)
{
	char *table;

	PIN_DCHECK(symbols->table_bytes <= TABLE_BYTES_MAX);
	if (bytes == 0 || bytes > TABLE_BYTES_MAX - symbols->table_bytes) {
		return NULL;
	}
	symbols->table_bytes += bytes;
	table = malloc((size_t)bytes + 1);
	if (table == NULL || !read_at(fd, at, table, (size_t)bytes)) {
		free(table);
		return NULL;
	}
	table[bytes] = '\0';
	return table;
}

static int by_address(const void *left, const void *right)
{
	const struct function *a = left;
	const struct function *b = right;

	return a->start < b->start ? -1 : a->start > b->start;
}

static void keep_functions(struct image *image, const ElfW(Sym) * found, size_t count)
{
	image->functions = calloc(count, sizeof(*image->functions));
	for (size_t i = 0; image->functions != NULL && i < count; i++) {
		if (ELF64_ST_TYPE(found[i].st_info) == STT_FUNC && found[i].st_value != 0 &&
			found[i].st_name < image->names_bytes) {
			image->functions[image->function_count++] = (struct function){
				found[i].st_value, found[i].st_size, found[i].st_name};
		}
	}
	PIN_DCHECK(image->function_count <= count);
	if (image->function_count > 0) {
		qsort(image->functions, image->function_count, sizeof(*image->functions),
			by_address);
	}
}

static void read_functions(struct pin_symbols *symbols, struct image *image, int fd,
	const ElfW(Shdr) * table, const ElfW(Shdr) * names)
{
	ElfW(Sym) *found = read_table(symbols, fd, table->sh_offset, table->sh_size);

	if (found != NULL) {
		image->names = read_table(symbols, fd, names->sh_offset, names->sh_size);
	}
	if (image->names != NULL) {
		image->names_bytes = names->sh_size;
		keep_functions(image, found, table->sh_size / sizeof(*found));
	}
	free(found);
}

/* The table of all symbols, or else of those that are public. */
static const ElfW(Shdr) * find_symbols(const ElfW(Shdr) * sections, uint32_t count)
{
	const ElfW(Shdr) *public = NULL;

	for (uint32_t i = 0; i < count; i++) {
		if (sections[i].sh_link >= count) {
			continue;
		}
		if (sections[i].sh_type == SHT_SYMTAB) {
			return &sections[i];
		}
		if (sections[i].sh_type == SHT_DYNSYM) {
			public = &sections[i];
		}
	}
	return public;
}

static void read_sections(
	struct pin_symbols *symbols, struct image *image, int fd, const ElfW(Ehdr) * header)
{
	const ElfW(Shdr) * table;
	ElfW(Shdr) * sections;

	if (header->e_shentsize != sizeof(*sections)) {
		return;
	}
	sections = read_table(symbols, fd, header->e_shoff, header->e_shnum * sizeof(*sections));
	if (sections == NULL) {
		return;
	}
	table = find_symbols(sections, header->e_shnum);
	if (table != NULL) {
		PIN_DCHECK(table->sh_link < header->e_shnum);
		read_functions(symbols, image, fd, table, &sections[table->sh_link]);
	}
	free(sections);
}

static bool is_ours(const ElfW(Ehdr) * header)
{
	return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
		header->e_ident[EI_CLASS] == (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) &&
		header->e_phentsize == sizeof(ElfW(Phdr));
}

static void read_file(struct pin_symbols *symbols, struct image *image, int fd)
{
	ElfW(Ehdr) header;

	if (!read_at(fd, 0, &header, sizeof(header)) || !is_ours(&header) ||
		header.e_phnum > PARTS_MAX ||
		!read_at(
			fd, header.e_phoff, image->parts, header.e_phnum * sizeof(*image->parts))) {
		return;
	}
	image->part_count = header.e_phnum;
	read_sections(symbols, image, fd, &header);
}

/* Never a device or a pipe, on which an open could wait. */
static int open_file(const char *path)
{
	struct stat status;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd >= 0 && (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static void read_image(struct pin_symbols *symbols, struct image *image)
{
	size_t bytes = ROOT_BYTES + strlen(image->path);
	char *path = malloc(bytes);
	int fd = -1;

	PIN_DCHECK(!image->is_read);
	image->is_read = true;
	if (path != NULL) {
		snprintf(path, bytes, "/proc/%d/root%s", symbols->pid, image->path);
		fd = open_file(path);
		free(path);
	}
	fd = fd < 0 ? open_file(image->path) : fd;
	if (fd >= 0) {
		read_file(symbols, image, fd);
		close(fd);
	}
}

/* ---- names ---- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == NULL ? path : slash + 1;
}

/* In the file's addresses; false: at that place nothing is loaded from. */
static bool find_address(const struct image *image, uint64_t offset, uint64_t *out_address)
{
	for (uint32_t i = 0; i < image->part_count; i++) {
		const ElfW(Phdr) *part = &image->parts[i];

		if (part->p_type == PT_LOAD && offset >= part->p_offset &&
			offset - part->p_offset < part->p_filesz) {
			*out_address = offset - part->p_offset + part->p_vaddr;
			return true;
		}
	}
	return false;
}

static const char *find_function(const struct image *image, uint64_t address)
{
	size_t first = 0;
	size_t end = image->function_count;

	/* The last that begins at the address or before it. */
	while (first < end) {
		size_t middle = first + (end - first) / 2;

		if (image->functions[middle].start <= address) {
			first = middle + 1;
		} else {
			end = middle;
		}
	}
	if (first == 0) {
		return NULL;
	}
	first--;
	PIN_DCHECK(image->functions[first].name < image->names_bytes); /* it ends in 0 */
	return address == image->functions[first].start ||
			address - image->functions[first].start < image->functions[first].bytes
		? image->names + image->functions[first].name
		: NULL;
}

static const struct mapping *find_mapping(const struct pin_symbols *symbols, uint64_t address)
{
	for (uint32_t i = 0; i < symbols->mapping_count; i++) {
		if (address >= symbols->mappings[i].start && address < symbols->mappings[i].end) {
			return &symbols->mappings[i];
		}
	}
	return NULL;
}

void pin_symbols_name(
	struct pin_symbols *symbols, uint64_t address, char out_name[PIN_SYMBOL_BYTES])
{
	const struct mapping *mapping = symbols == NULL ? NULL : find_mapping(symbols, address);
	struct image *image;
	const char *name = NULL;
	uint64_t offset;
	uint64_t place;

	if (mapping == NULL) {
		snprintf(out_name, PIN_SYMBOL_BYTES, "0x%" PRIx64, address);
		return;
	}
	PIN_DCHECK(mapping->image < symbols->image_count);
	image = &symbols->images[mapping->image];
	if (!image->is_read) {
		read_image(symbols, image);
	}
	offset = address - mapping->start + mapping->offset;
	place = offset;
	if (find_address(image, offset, &place)) {
		name = find_function(image, place);
	}
	if (name != NULL) {
		snprintf(out_name, PIN_SYMBOL_BYTES, "%.90s", name);
	} else {
		snprintf(out_name, PIN_SYMBOL_BYTES, "%.60s+0x%" PRIx64, base_name(image->path),
			place);
	}
}

/* ---- names of this process's ---- */

struct kept_name {
	uint64_t address;
	time_t until; /* on CLOCK_MONOTONIC; another file may be there by then */
	char name[PIN_SYMBOL_BYTES];
};

/* The lock is only tried: a thread that does not get it does without. */
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static struct kept_name kept[KEPT_NAMES]; /* [lock:kept_lock] */
static uint32_t kept_next;		  /* [lock:kept_lock] */

static time_t now_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

static bool find_kept(uint64_t address, char out_name[PIN_SYMBOL_BYTES])
{
	time_t now = now_seconds();
	bool is_found = false;

	if (pthread_mutex_trylock(&kept_lock) != 0) {
		return false;
	}
	for (uint32_t i = 0; i < KEPT_NAMES && !is_found; i++) {
		if (kept[i].address == address && now < kept[i].until) {
			memcpy(out_name, kept[i].name, PIN_SYMBOL_BYTES);
			is_found = true;
		}
	}
	pthread_mutex_unlock(&kept_lock);
	return is_found;
}

static void keep(uint64_t address, const char name[PIN_SYMBOL_BYTES])
{
	struct kept_name *place;

	if (pthread_mutex_trylock(&kept_lock) != 0) {
		return;
	}
	place = &kept[kept_next++ % KEPT_NAMES];
	place->address = address;
	place->until = now_seconds() + KEPT_SECONDS;
	memcpy(place->name, name, PIN_SYMBOL_BYTES);
	pthread_mutex_unlock(&kept_lock);
}

void pin_symbols_name_own(uint64_t address, char out_name[PIN_SYMBOL_BYTES])
{
	struct pin_symbols *symbols = NULL;

	if (find_kept(address, out_name)) {
		return;
	}
	memset(out_name, 0, PIN_SYMBOL_BYTES);
	(void)pin_symbols_open((int)getpid(), &symbols);
	pin_symbols_name(symbols, address, out_name);
	pin_symbols_close(symbols);
	keep(address, out_name);
}
