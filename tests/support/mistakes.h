/* SPDX-License-Identifier: MIT */
/*
 * A caller's mistakes, each made in a child whose hook writes to stderr: how it
 * ends and all that stderr got, word by word.
 */
#ifndef PIN_TESTS_SUPPORT_MISTAKES_H
#define PIN_TESTS_SUPPORT_MISTAKES_H

#include "tests/support/child.h"
#include "tests/support/runtimes.h"

enum {
	ENDS = 0,
	ABORTS = SIGABRT,
	MISTAKES_TEXT_BYTES = 2048,
};

/* One mistake, made in a child. */
struct mistake {
	const char *name;
	int (*make)(void *arg);
	int ending;
	const char *text; /* "@" stands for an address */
};

static inline void mistakes_hook(void *arg, enum pinion_log_level level, const char *message)
{
	(void)arg;
	if (level == PINION_LOG_ERROR) {
		fprintf(stderr, "hook: %s\n", message);
	}
}

static inline struct pinion_runtime *mistakes_start(void)
{
	struct pinion_runtime *runtime = NULL;
	struct pinion_config config;

	runtimes_config(&config, 1, PINION_IO_FALLBACK);
	runtimes_tuning.buffer_rest_ms = 0; /* which buffer is first */
	config.log = mistakes_hook;
	config.pool_bytes = 1 << 20;
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
	return runtime;
}

/* Each "0x" and what follows it becomes "@". */
static inline void mistakes_hide_addresses(char *text)
{
	char *to = text;

	for (const char *from = text; *from != '\0';) {
		if (from[0] == '0' && from[1] == 'x') {
			from += 2 + strspn(from + 2, "0123456789abcdef");
			*to++ = '@';
		} else {
			*to++ = *from++;
		}
	}
	*to = '\0';
}

static inline void mistakes_check_one(const struct mistake *mistake)
{
	char text[MISTAKES_TEXT_BYTES];
	int status = child_run(mistake->make, NULL, text, sizeof(text));

	mistakes_hide_addresses(text);
	expect_text(mistake->name, mistake->text, text);
	if (mistake->ending == ENDS) {
		expect_true(mistake->name, WIFEXITED(status));
		expect_number(mistake->name, 0, WEXITSTATUS(status));
	} else {
		expect_true(mistake->name, WIFSIGNALED(status));
		expect_number(mistake->name, mistake->ending, WTERMSIG(status));
	}
}

static inline void mistakes_check(const struct mistake *mistakes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		mistakes_check_one(&mistakes[i]);
	}
}

#endif
