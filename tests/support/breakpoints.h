/* SPDX-License-Identifier: MIT */
/*
 * The static probes of this very program, observed as a tracer does it: from
 * the notes of the file each probe's instruction is found and replaced by a
 * breakpoint; the handler of SIGTRAP evaluates the values where the note says
 * that they are. So a probe that is reached shows what a tracer would show.
 *
 * x86-64 only: breakpoints_set() returns 0 elsewhere, and without <sys/sdt.h>.
 */
#ifndef PIN_TESTS_SUPPORT_BREAKPOINTS_H
#define PIN_TESTS_SUPPORT_BREAKPOINTS_H

#include "tests/support/expect.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

enum {
	BREAKPOINTS_MAX = 512,
	BREAKPOINTS_HITS_MAX = 8192,
	BREAKPOINTS_VALUES = 4,
};

struct breakpoint {
	uintptr_t address;
	const char *name;
	const char *arguments; /* "8@%rax -4@24(%rbx)" */
};

/* A probe that was reached, with its values. */
struct breakpoint_hit {
	const char *name;
	uint32_t value_count;
	int64_t values[BREAKPOINTS_VALUES];
};

static struct breakpoint breakpoints[BREAKPOINTS_MAX];
static uint32_t breakpoint_count;
static struct breakpoint_hit breakpoint_hits[BREAKPOINTS_HITS_MAX];
static uint32_t breakpoint_hit_count; /* by several threads: atomic built-ins */

#if defined(__x86_64__)

/* Values are read where notes say, also from a stack that ASan watches. */
#define BREAKPOINTS_UNWATCHED __attribute__((no_sanitize("address", "thread", "undefined")))

/* By the last letters of a name: ax, eax and rax are one. */
static BREAKPOINTS_UNWATCHED int64_t breakpoints_register(
	const ucontext_t *context, const char *name, size_t length)
{
	static const struct {
		const char *names; /* of 8, 4, 2 and 1 bytes */
		int place;
	} all[] = {
		{" rax eax ax al ", REG_RAX},
		{" rbx ebx bx bl ", REG_RBX},
		{" rcx ecx cx cl ", REG_RCX},
		{" rdx edx dx dl ", REG_RDX},
		{" rsi esi si sil ", REG_RSI},
		{" rdi edi di dil ", REG_RDI},
		{" rbp ebp bp bpl ", REG_RBP},
		{" rsp esp sp spl ", REG_RSP},
		{" r8 r8d r8w r8b ", REG_R8},
		{" r9 r9d r9w r9b ", REG_R9},
		{" r10 r10d r10w r10b ", REG_R10},
		{" r11 r11d r11w r11b ", REG_R11},
		{" r12 r12d r12w r12b ", REG_R12},
		{" r13 r13d r13w r13b ", REG_R13},
		{" r14 r14d r14w r14b ", REG_R14},
		{" r15 r15d r15w r15b ", REG_R15},
	};
	char wanted[8] = " ";

	memcpy(wanted + 1, name, length < 5 ? length : 5);
	strcat(wanted, " ");
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (strstr(all[i].names, wanted) != NULL) {
			return context->uc_mcontext.gregs[all[i].place];
		}
	}
	return 0;
}

/* "%reg", "(%reg)", "disp(%base,%index,scale)"; *text is moved past it. */
static BREAKPOINTS_UNWATCHED int64_t breakpoints_operand(
	const ucontext_t *context, const char **text, bool *out_is_memory)
{
	const char *at = *text;
	int64_t value = 0;
	size_t length;

	*out_is_memory = false;
	if (*at == '$') {
		return strtoll(at + 1, (char **)(uintptr_t)text, 0);
	}
	if (*at == '%') {
		length = strcspn(at + 1, " ");
		*text = at + 1 + length;
		return breakpoints_register(context, at + 1, length);
	}
	value = strtoll(at, (char **)(uintptr_t)&at, 0);
	*out_is_memory = true;
	if (*at == '(') {
		at++;
		if (*at == '%') {
			length = strcspn(at + 1, ",)");
			value += breakpoints_register(context, at + 1, length);
			at += 1 + length;
		}
		if (*at == ',') {
			int64_t scale = 1;
			int64_t index;

			length = strcspn(at + 2, ",)");
			index = breakpoints_register(context, at + 2, length);
			at += 2 + length;
			if (*at == ',') {
				scale = strtoll(at + 1, (char **)(uintptr_t)&at, 10);
			}
			value += index * scale;
		}
		at++;
	}
	*text = at;
	return value;
}

static BREAKPOINTS_UNWATCHED int64_t breakpoints_sized(int64_t value, int64_t size)
{
	switch (size) {
	case 4:
		return (uint32_t)value;
	case -4:
		return (int32_t)value;
	case 2:
		return (uint16_t)value;
	case -2:
		return (int16_t)value;
	case 1:
		return (uint8_t)value;
	case -1:
		return (int8_t)value;
	default:
		return value;
	}
}

static BREAKPOINTS_UNWATCHED void breakpoints_note(
	const ucontext_t *context, const struct breakpoint *breakpoint)
{
	uint32_t number = __atomic_fetch_add(&breakpoint_hit_count, 1, __ATOMIC_RELAXED);
	const char *text = breakpoint->arguments;
	struct breakpoint_hit *hit;

	if (number >= BREAKPOINTS_HITS_MAX) {
		return;
	}
	hit = &breakpoint_hits[number];
	hit->name = breakpoint->name;
	while (*text != '\0' && hit->value_count < BREAKPOINTS_VALUES) {
		int64_t size = strtoll(text, (char **)(uintptr_t)&text, 10);
		bool is_memory;
		int64_t value;

		text++; /* '@' */
		value = breakpoints_operand(context, &text, &is_memory);
		if (is_memory) {
			int64_t loaded = 0;

			__builtin_memcpy(&loaded, (const void *)(uintptr_t)value,
				(size_t)(size < 0 ? -size : size));
			value = loaded;
		}
		hit->values[hit->value_count++] = breakpoints_sized(value, size);
		text += *text == ' ';
	}
}

/* Goes on after it: the instruction before did nothing. */
static BREAKPOINTS_UNWATCHED void breakpoints_reached(
	int signal_number, siginfo_t *info, void *context)
{
	const ucontext_t *at = context;
	uintptr_t address = (uintptr_t)at->uc_mcontext.gregs[REG_RIP] - 1;

	(void)signal_number;
	(void)info;
	for (uint32_t i = 0; i < breakpoint_count; i++) {
		if (breakpoints[i].address == address) {
			breakpoints_note(at, &breakpoints[i]);
			return;
		}
	}
	_exit(3); /* a breakpoint of another's */
}

/* Where the program was loaded, less where its file says. */
static int breakpoints_find_bias(struct dl_phdr_info *info, size_t size, void *out_bias)
{
	(void)size;
	*(uintptr_t *)out_bias = info->dlpi_addr;
	return 1; /* the first is the program */
}

/* One note: three addresses, then provider, name and arguments. */
static void breakpoints_add(const char *text, uintptr_t base_now, const char *provider)
{
	uint64_t places[3];
	const char *name = text + sizeof(places) + strlen(text + sizeof(places)) + 1;

	memcpy(places, text, sizeof(places));
	if (strcmp(text + sizeof(places), provider) != 0) {
		return;
	}
	expect_ready("room for a probe", breakpoint_count < BREAKPOINTS_MAX);
	breakpoints[breakpoint_count++] = (struct breakpoint){
		.address = (uintptr_t)places[0] + (base_now - (uintptr_t)places[1]),
		.name = name,
		.arguments = name + strlen(name) + 1,
	};
}

static void breakpoints_read_notes(const char *file, const char *provider)
{
	const Elf64_Ehdr *header = (const void *)file;
	const Elf64_Shdr *sections = (const void *)(file + header->e_shoff);
	const char *names = file + sections[header->e_shstrndx].sh_offset;
	uintptr_t bias = 0;
	uintptr_t base = 0;

	dl_iterate_phdr(breakpoints_find_bias, &bias);
	for (uint32_t i = 0; i < header->e_shnum; i++) {
		if (strcmp(names + sections[i].sh_name, ".stapsdt.base") == 0) {
			base = bias + sections[i].sh_addr;
		}
	}
	for (uint32_t i = 0; i < header->e_shnum && base != 0; i++) {
		const char *at = file + sections[i].sh_offset;
		const char *end = at + sections[i].sh_size;

		if (strcmp(names + sections[i].sh_name, ".note.stapsdt") != 0) {
			continue;
		}
		while (at + sizeof(Elf64_Nhdr) <= end) {
			const Elf64_Nhdr *note = (const void *)at;
			const char *text = at + sizeof(*note) + (note->n_namesz + 3u) / 4u * 4u;

			breakpoints_add(text, base, provider);
			at = text + (note->n_descsz + 3u) / 4u * 4u;
		}
	}
}

/* The code may be written from here on. False: not on this system. */
static bool breakpoints_place(uintptr_t address)
{
	enum { NOP = 0x90, INT3 = 0xcc };
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uint8_t *instruction = (uint8_t *)address;

	if (mprotect((void *)(address / page * page), page, PROT_READ | PROT_WRITE | PROT_EXEC) !=
		0) {
		return false;
	}
	if (*instruction != NOP && *instruction != INT3) {
		return false;
	}
	*instruction = INT3;
	return true;
}

/*
 * Replaces the probes of `provider` in this program. Returns how many; 0: it
 * has none, or its code cannot be written to.
 */
static inline uint32_t breakpoints_set(const char *provider)
{
	struct sigaction action = {
		.sa_sigaction = breakpoints_reached, .sa_flags = SA_SIGINFO | SA_NODEFER};
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat status;
	const char *file;

	expect_ready("/proc/self/exe", fd >= 0 && fstat(fd, &status) == 0);
	file = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	expect_ready("mmap", file != MAP_FAILED);
	close(fd);
	breakpoints_read_notes(file, provider);
	expect_ready("sigaction", sigaction(SIGTRAP, &action, NULL) == 0);
	for (uint32_t i = 0; i < breakpoint_count; i++) {
		if (!breakpoints_place(breakpoints[i].address)) {
			return 0;
		}
	}
	return breakpoint_count;
}

#else

static inline uint32_t breakpoints_set(const char *provider)
{
	(void)provider;
	return 0;
}

#endif

/* The first one of that name whose value `place` is `value`, or NULL. */
static inline const struct breakpoint_hit *breakpoints_find(
	const char *name, uint32_t place, int64_t value)
{
	uint32_t count = __atomic_load_n(&breakpoint_hit_count, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < count && i < BREAKPOINTS_HITS_MAX; i++) {
		const struct breakpoint_hit *hit = &breakpoint_hits[i];

		if (strcmp(hit->name, name) == 0 && place < hit->value_count &&
			hit->values[place] == value) {
			return hit;
		}
	}
	return NULL;
}

#endif
