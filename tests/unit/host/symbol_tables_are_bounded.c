/* SPDX-License-Identifier: MIT */
/*
 * Goal: what is read for the names of a process's functions is bounded, however
 * many files it maps and however large their tables are: 256 MiB of tables in
 * all, and 1024 files. Functions beyond have addresses for names. A small table
 * that still fits has its names.
 * Method: this process maps sparse files of its own: three and four tables of
 * 84 MB with a function each, a small one, and then 1100 of these.
 */
#include "runtime/host/symbols.h"
#include "tests/support/scratch.h"

#include <elf.h>
#include <inttypes.h>
#include <link.h>
#include <sys/mman.h>

enum {
	PAGE = 4096,
	SYMBOLS_AT = 2 * PAGE,
	LARGE = 3500000, /* symbols, of 24 bytes each */
	FUNCTION_AT = 0x100,
	FILES = 1100,
	FILES_READ = 1024,
};

struct head {
	ElfW(Ehdr) file;
	ElfW(Phdr) part;
	ElfW(Shdr) sections[3];
};

/* A file with one function, and a table of so many symbols; mapped. */
static uint64_t map_file(const char *name, size_t symbols)
{
	const ElfW(Sym) function = {.st_name = 1,
		.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
		.st_value = FUNCTION_AT,
		.st_size = 1};
	size_t bytes = symbols * sizeof(function);
	struct head head = {
		.file = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3,
				 sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32},
			.e_phoff = offsetof(struct head, part),
			.e_phentsize = sizeof(head.part),
			.e_phnum = 1,
			.e_shoff = offsetof(struct head, sections),
			.e_shentsize = sizeof(head.sections[0]),
			.e_shnum = 3},
		.part = {.p_type = PT_LOAD, .p_filesz = PAGE},
		.sections = {{.sh_type = SHT_NULL},
			{.sh_type = SHT_SYMTAB,
				.sh_offset = SYMBOLS_AT,
				.sh_size = bytes,
				.sh_link = 2},
			{.sh_type = SHT_STRTAB, .sh_offset = PAGE, .sh_size = 16}},
	};
	int fd = open(name, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	void *memory;

	expect_ready(name,
		fd >= 0 && pwrite(fd, &head, sizeof(head), 0) == (ssize_t)sizeof(head) &&
			pwrite(fd, "\0planted", 9, PAGE) == 9 &&
			pwrite(fd, &function, sizeof(function), SYMBOLS_AT) ==
				(ssize_t)sizeof(function) &&
			ftruncate(fd, (off_t)(SYMBOLS_AT + bytes)) == 0);
	memory = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	close(fd);
	expect_ready("mmap", memory != MAP_FAILED);
	return (uint64_t)(uintptr_t)memory + FUNCTION_AT;
}

static void expect_name(struct pin_symbols *symbols, uint64_t address, const char *expected)
{
	char name[PIN_SYMBOL_BYTES];

	pin_symbols_name(symbols, address, name);
	expect_text("name", expected, name);
}

static void check_bytes(void)
{
	struct pin_symbols *symbols;
	uint64_t large[5];
	uint64_t small = map_file("small", 2);

	for (size_t i = 0; i < 5; i++) {
		char name[16];

		snprintf(name, sizeof(name), "large%zu", i);
		large[i] = map_file(name, LARGE);
	}
	expect_ready("symbols", pin_symbols_open((int)getpid(), &symbols) == 0);
	expect_name(symbols, large[0], "planted");
	expect_name(symbols, large[1], "planted");
	expect_name(symbols, large[2], "planted");
	expect_name(symbols, large[3], "large3+0x100");
	expect_name(symbols, large[4], "large4+0x100");
	expect_name(symbols, small, "planted");
	expect_name(symbols, large[0], "planted");
	pin_symbols_close(symbols);
}

/* Those of the first 1024 files in the order of /proc/PID/maps are read. */
static void check_files(void)
{
	struct pin_symbols *symbols;
	char line[512];
	uint32_t files = 0;
	uint32_t nameless = 0;
	FILE *maps;

	for (uint32_t i = 0; i < FILES; i++) {
		char name[16];

		snprintf(name, sizeof(name), "file%u", i);
		map_file(name, 2);
	}
	maps = fopen("/proc/self/maps", "re");
	expect_ready("maps", maps != NULL);
	expect_ready("symbols", pin_symbols_open((int)getpid(), &symbols) == 0);
	while (fgets(line, sizeof(line), maps) != NULL) {
		char name[PIN_SYMBOL_BYTES];
		uint64_t start;

		if (strchr(line, '/') == NULL || strstr(line, "r-x") == NULL) {
			continue;
		}
		sscanf(line, "%" SCNx64, &start);
		pin_symbols_name(symbols, start + FUNCTION_AT, name);
		nameless += strncmp(name, "0x", 2) == 0;
		files++;
	}
	expect_true("all were seen", files > FILES);
	expect_number("without a name", files - FILES_READ, nameless);
	pin_symbols_close(symbols);
	fclose(maps);
}

int main(void)
{
	scratch_enter("symbol_tables_are_bounded");
	check_bytes();
	check_files();
	scratch_leave();
	return expect_status();
}
