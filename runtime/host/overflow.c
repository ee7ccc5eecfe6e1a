/* SPDX-License-Identifier: MIT */
/*
 * The handler of SIGSEGV, and what it says.
 */
#include "runtime/host/overflow.h"
#include "runtime/base/base.h"
#include "runtime/base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	/* Room for a report, and for unwinding a stack. */
	STACK_BYTES = 128 << 10,
	LINE_BYTES = 256,
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int install_error;	/* [const] after `once` */
static struct sigaction before; /* likewise */

/* ---- the handler ---- */

static void chain(int signal_number, siginfo_t *info, void *context)
{
	if ((before.sa_flags & SA_SIGINFO) != 0) {
		before.sa_sigaction(signal_number, info, context);
	} else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
		before.sa_handler(signal_number);
	} else {
		/* The fault comes again, and ends the process. */
		signal(signal_number, SIG_DFL);
	}
}

static void handle(int signal_number, siginfo_t *info, void *context)
{
	const struct pin_thread *thread = pin_thread_find();
	const struct pin_overflow *overflow = thread != NULL ? thread->overflow : NULL;
	uintptr_t address = (uintptr_t)info->si_addr;
	int error = errno;

	if (overflow != NULL && address >= overflow->low && address < overflow->high) {
		overflow->hit(overflow->arg);
	}
	errno = error;
	chain(signal_number, info, context);
}

static void install(void)
{
	/* NODEFER: who leaves by a jump must not leave it blocked. */
	struct sigaction action = {
		.sa_sigaction = handle,
		.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER,
	};

	sigemptyset(&action.sa_mask);
	install_error = sigaction(SIGSEGV, &action, &before) == 0 ? 0 : -errno;
}

/* ---- a thread ---- */

/*
 * Whether the guard counts as part of the stack has changed in glibc: both
 * sides of the lowest address.
 */
static int find_guard(struct pin_overflow *overflow)
{
	pthread_attr_t attributes;
	size_t guard_bytes = 0;
	size_t bytes;
	void *lowest = NULL;
	int rc = pthread_getattr_np(pthread_self(), &attributes);

	if (rc != 0) {
		return -rc;
	}
	pthread_attr_getguardsize(&attributes, &guard_bytes);
	pthread_attr_getstack(&attributes, &lowest, &bytes);
	pthread_attr_destroy(&attributes);
	if (guard_bytes == 0) {
		return -EOPNOTSUPP;
	}
	overflow->low = (uintptr_t)lowest - guard_bytes;
	overflow->high = (uintptr_t)lowest + guard_bytes;
	return 0;
}

static int give_stack(struct pin_overflow *overflow)
{
	stack_t stack = {.ss_size = STACK_BYTES};
	sigset_t faults;

	overflow->stack =
		mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (overflow->stack == MAP_FAILED) {
		overflow->stack = NULL;
		return -ENOMEM;
	}
	stack.ss_sp = overflow->stack;
	if (sigaltstack(&stack, NULL) < 0) {
		return -errno;
	}
	/* Blocked, a fault would end the process whatever the handler. */
	sigemptyset(&faults);
	sigaddset(&faults, SIGSEGV);
	return -pthread_sigmask(SIG_UNBLOCK, &faults, NULL);
}

int pin_overflow_begin(struct pin_overflow *overflow, void (*hit)(void *arg), void *arg)
{
	struct pin_thread *thread = pin_thread_own();
	int rc = pthread_once(&once, install) == 0 ? install_error : -EAGAIN;

	if (thread == NULL) {
		return -ENOMEM;
	}
	*overflow = (struct pin_overflow){.hit = hit, .arg = arg};
	if (rc == 0) {
		rc = find_guard(overflow);
	}
	if (rc == 0) {
		rc = give_stack(overflow);
	}
	if (rc < 0) {
		pin_overflow_end(overflow);
		return rc;
	}
	thread->overflow = overflow;
	return 0;
}

void pin_overflow_end(struct pin_overflow *overflow)
{
	stack_t none = {.ss_flags = SS_DISABLE};
	struct pin_thread *thread = pin_thread_find();

	if (thread != NULL) {
		thread->overflow = NULL;
	}
	if (overflow->stack != NULL) {
		sigaltstack(&none, NULL);
		munmap(overflow->stack, STACK_BYTES);
	}
	*overflow = (struct pin_overflow){0};
}

/* ---- the report ---- */

struct text {
	char bytes[LINE_BYTES * 2];
	size_t length;
};

static void add(struct text *text, const char *bytes, size_t length)
{
	for (size_t i = 0; i < length && text->length < sizeof(text->bytes); i++) {
		text->bytes[text->length] = bytes[i];
		text->length++;
	}
}

static void add_number(struct text *text, uintptr_t number, uint32_t base)
{
	char digits[24];
	size_t at = sizeof(digits);

	do {
		at--;
		digits[at] = "0123456789abcdef"[number % base];
		number /= base;
	} while (number > 0);
	add(text, digits + at, sizeof(digits) - at);
}

static void add_words(struct text *text, const char *words)
{
	add(text, words, strlen(words));
}

/* One line without its end; false: there is none. */
static bool read_line(int fd, char *out_line)
{
	size_t length = 0;
	char byte = 0;

	while (read(fd, &byte, 1) == 1 && byte != '\n') {
		if (length + 1 < LINE_BYTES) {
			out_line[length] = byte;
			length++;
		}
	}
	out_line[length] = '\0';
	return byte == '\n';
}

/* Skips what ends it as well. */
static uintptr_t parse_hex(const char **at)
{
	static const char digits[] = "0123456789abcdef";
	const char *digit;
	uintptr_t number = 0;

	while (**at != '\0' && (digit = strchr(digits, **at)) != NULL) {
		number = number * 16 + (uintptr_t)(digit - digits);
		(*at)++;
	}
	*at += **at != '\0' ? 1 : 0;
	return number;
}

/* "start-end perms offset device inode path" of /proc/self/maps. */
static void add_place(struct text *text, uintptr_t function)
{
	char line[LINE_BYTES];
	uintptr_t base = 0;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	while (fd >= 0 && read_line(fd, line)) {
		const char *at = line;
		uintptr_t start = parse_hex(&at);
		uintptr_t end = parse_hex(&at);
		const char *offset = strchr(at, ' ');
		const char *name = strrchr(line, '/');

		if (offset == NULL || name == NULL) {
			continue;
		}
		offset++;
		if (parse_hex(&offset) == 0) {
			base = start;
		}
		if (function >= start && function < end) {
			add_words(text, name + 1);
			add_words(text, "+0x");
			add_number(text, function - base, 16);
			close(fd);
			return;
		}
	}
	if (fd >= 0) {
		close(fd);
	}
	add_words(text, "0x");
	add_number(text, function, 16);
}

void pin_overflow_report(uint32_t worker_index, uintptr_t function)
{
	struct text text = {.length = 0};

	add_words(&text, "pinion: worker ");
	add_number(&text, worker_index, 10);
	add_words(&text, ": stack overflow in task ");
	add_place(&text, function);
	add_words(&text, "\n");
	if (write(STDERR_FILENO, text.bytes, text.length) < 0) {
		/* Nowhere else to say it. */
	}
}
