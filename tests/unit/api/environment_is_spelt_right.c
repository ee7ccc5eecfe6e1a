/* SPDX-License-Identifier: MIT */
/*
 * Goal: an unknown PINION_* variable is a warning that names it and the name
 * nearest to it, once in a process and as soon as there is a log; those that
 * the library, the command or the tests read cause none, nor do variables that
 * do not begin so. The known variables are read all the same.
 * Method: each in a child, with nothing else in its environment.
 */
#include "runtime/base/base.h"
#include "tests/support/child.h"
#include "tests/support/runtimes.h"

#include <errno.h>

struct spelling {
	const char *entry;
	const char *nearest; /* NULL: it is as it should be */
};

static const struct spelling spellings[] = {
	{"PINION_WORKER_COUN=2", "PINION_WORKER_COUNT"},
	{"PINION_WORKER_COUNTS=2", "PINION_WORKER_COUNT"},
	{"PINION_WORKER_CUONT=2", "PINION_WORKER_COUNT"},
	{"PINION_workers=2", "PINION_"},
	{"PINION_IOLEVEL=ring", "PINION_IO_LEVEL"},
	{"PINION_IO=ring", "the nearest is PINION_IO_LEVEL"},
	{"PINION_LO=debug", "the nearest is PINION_LOG"},
	{"PINION_WORKERS=2", "the nearest is PINION_WORKER_COUNT"},
	{"PINION_BUFFERS=2", "the nearest is PINION_BUFFER_"},
	{"PINION_SEEDS=1", "PINION_SEED"},
	{"PINION_LANE=hnl", "PINION_LANES"},
	{"PINION_THREAD_POOL_MIDDLE=1", "PINION_THREAD_POOL_MEDIUM"},
	{"PINION_LOGS=debug", "PINION_LOG"},
	{"PINION_=1", "PINION_"},
	{"PINION_WORKER_COUN", "PINION_WORKER_COUNT"}, /* no value at all */
	{"PINION_WORKER_COUN=PINION_WORKER_COUNT=1", "PINION_WORKER_COUNT"},
	{"PINION_WORKER_COUNT=2", NULL},
	{"PINION_WORKER_COUNT=", NULL},
	{"PINION_IO_PRIORITY_LOW=be6", NULL}, /* the last of the table */
	{"PINION_SEED=1", NULL},
	{"PINION_LANES=hnl", NULL},
	{"PINION_THREAD_POOL_LOW=1", NULL},
	{"PINION_LOG=debug", NULL},
	{"PINION_MODEL_CASE=robbed", NULL},
	{"PINION_FAULT=mmap", NULL},
	{"PINION_CORPUS=dir", NULL},
	{"PINION_NO_APT=1", NULL},
	{"PINIONS=1", NULL},
	{"OTHER_PINION_WORKER=1", NULL},
};

static int read_once(void *arg)
{
	const struct spelling *spelling = arg;
	char entry[64];
	char name[64];
	char *environment[] = {entry, NULL};
	struct pinion_config config;
	struct pinion_tuning tuning;

	snprintf(entry, sizeof(entry), "%s", spelling->entry);
	snprintf(name, sizeof(name), "%.*s: ", (int)strcspn(entry, "="), entry);
	environ = environment;
	pinion_config_init(&config);
	pinion_tuning_init(&tuning);
	config.log = runtimes_note;
	expect_number(entry, 0, pinion_config_from_env(&config, &tuning));
	if (spelling->nearest == NULL) {
		expect_text(entry, "", runtimes_log);
		return expect_status();
	}
	expect_true(entry, strncmp(runtimes_log, name, strlen(name)) == 0);
	expect_true(
		spelling->nearest, strstr(runtimes_log + strlen(name), spelling->nearest) != NULL);
	expect_true("one line", strchr(runtimes_log, '\n') == strrchr(runtimes_log, '\n'));
	return expect_status();
}

/* As long as a variable may be, and more than a line holds. */
static int read_long(void *arg)
{
	static char entry[4096];
	char *environment[] = {entry, NULL};
	struct pinion_config config;
	struct pinion_tuning tuning;

	(void)arg;
	memset(entry, 'X', sizeof(entry) - 1);
	memcpy(entry, "PINION_WORKER_COUNT", strlen("PINION_WORKER_COUNT"));
	environ = environment;
	pinion_config_init(&config);
	pinion_tuning_init(&tuning);
	config.log = runtimes_note;
	expect_number("long", 0, pinion_config_from_env(&config, &tuning));
	expect_true("named", strncmp(runtimes_log, "PINION_WORKER_COUNTXX", 21) == 0);
	expect_true("with a nearest", strstr(runtimes_log, "the nearest is PINION_") != NULL);
	return expect_status();
}

static void set_environment(const char *const *entries, size_t count)
{
	static char texts[8][64];
	static char *environment[8];

	for (size_t i = 0; i < count; i++) {
		snprintf(texts[i], sizeof(texts[i]), "%s", entries[i]);
		environment[i] = texts[i];
	}
	environment[count] = NULL;
	environ = environment;
}

/* Two at once, beside right ones; without a log first, then twice. */
static int read_again(void *arg)
{
	static const char *const entries[] = {"PINION_WORKERS=2", "PINION_USE_SMT=1", "HOME=/",
		"PINION_USE_SMTS=1", "PINION_BUDGET_US=7"};
	struct pinion_config config;
	struct pinion_tuning tuning;

	(void)arg;
	set_environment(entries, PIN_ARRAY_COUNT(entries));
	pinion_config_init(&config);
	pinion_tuning_init(&tuning);
	expect_number("without a log", 0, pinion_config_from_env(&config, &tuning));
	config.log = runtimes_note;
	tuning.use_smt = 0;
	expect_number("with one", 0, pinion_config_from_env(&config, &tuning));
	expect_true("the first", strstr(runtimes_log, "PINION_WORKERS: ") != NULL);
	expect_true("the other", strstr(runtimes_log, "PINION_USE_SMTS: ") != NULL);
	expect_true("no third", strstr(runtimes_log, "BUDGET") == NULL);
	expect_number("right ones are read", 1, tuning.use_smt);
	expect_number("all of it", 7, tuning.budget_us);
	expect_number("and nothing else", 0, config.worker_count);
	runtimes_log[0] = '\0';
	expect_number("again", 0, pinion_config_from_env(&config, &tuning));
	expect_text("said once", "", runtimes_log);
	return expect_status();
}

/* Other mistakes do not suppress the warning. */
static int read_bad(void *arg)
{
	static const char *const entries[] = {"PINION_WORKER_COUNT=many", "PINION_USE_SMTS=1"};
	struct pinion_config config;
	struct pinion_tuning tuning;

	(void)arg;
	set_environment(entries, PIN_ARRAY_COUNT(entries));
	pinion_config_init(&config);
	pinion_tuning_init(&tuning);
	config.log = runtimes_note;
	expect_number("no number", -EINVAL, pinion_config_from_env(&config, &tuning));
	expect_true("both are named",
		strstr(runtimes_log, "PINION_USE_SMTS: ") != NULL &&
			strstr(runtimes_log, "\"many\"") != NULL);
	return expect_status();
}

int main(void)
{
	for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++) {
		struct spelling spelling = spellings[i];

		expect_number(
			spelling.entry, 0, child_code(child_run(read_once, &spelling, NULL, 0)));
	}
	expect_number("long", 0, child_code(child_run(read_long, NULL, NULL, 0)));
	expect_number("again", 0, child_code(child_run(read_again, NULL, NULL, 0)));
	expect_number("bad", 0, child_code(child_run(read_bad, NULL, NULL, 0)));
	return expect_status();
}
