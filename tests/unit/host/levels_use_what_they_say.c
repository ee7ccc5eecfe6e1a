/* SPDX-License-Identifier: MIT */
/*
 * Goal: a runtime whose configuration names a level, or leaves out a feature,
 * uses nothing beyond it, says which level it has, and reads; a level whose
 * name the kernel cannot live up to is -EOPNOTSUPP with a line that says how to
 * mend it; below the floor there are no rings. docs/decisions/rings.md, "Forced
 * levels are probed levels with features removed".
 * Method: the tables over imagined kernels; then each level of this machine,
 * known from the flags of its rings, its doorbell and its arenas.
 */
#include "runtime/base/base.h"
#include "runtime/host/kernel.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"

#include <ctype.h>
#include <errno.h>

enum {
	LIMIT_SECONDS = 60,
	DEFER = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
	COOP = IORING_SETUP_COOP_TASKRUN,
};

static const struct {
	uint32_t level;
	uint32_t setup_flags; /* of the two above */
	const char *doorbell;
} rungs[] = {
	{PINION_IO_RING_BASIC, 0, "eventfd"},
	{PINION_IO_RING_COOP, COOP, "eventfd"},
	{PINION_IO_RING_DEFER, DEFER, "eventfd"},
	{PINION_IO_RING_MESSAGE, DEFER, "send_msg_ring"},
};

static struct pinion_runtime *runtime;
static struct pinion_file file;
static struct pinion_request request;
static char cause[192]; /* of the last runtime, which its facts pointed into */
static uint8_t bytes[4096] __attribute__((aligned(4096)));

static struct pin_kernel newest(void)
{
	return (struct pin_kernel){
		.ring_features = IORING_FEAT_NODROP | IORING_FEAT_NO_IOWAIT,
		.features = PIN_FEATURES_ALL,
	};
}

static void check_tables(void)
{
	struct pin_kernel kernel = newest();

	expect_number("all", 0, pin_level_apply(&kernel, PINION_IO_RING, 0));
	expect_number("the top", PINION_IO_RING, pin_level_reached(&kernel));
	expect_number("nothing is struck out", PIN_FEATURES_ALL, kernel.features);
	for (size_t i = PIN_ARRAY_COUNT(rungs); i-- > 0;) {
		/* Each from the one above: a kernel that has no more. */
		expect_number("a lower rung", 0, pin_level_apply(&kernel, rungs[i].level, 0));
		expect_number("reached", rungs[i].level, pin_level_reached(&kernel));
		for (size_t j = i + 1; j < PIN_ARRAY_COUNT(rungs); j++) {
			struct pin_kernel copy = kernel;

			expect_number("a higher one", -EOPNOTSUPP,
				pin_level_apply(&copy, rungs[j].level, 0));
		}
	}
	expect_number("what Linux 5.15 had",
		PINION_IO_EXT_ARG | PINION_IO_OPENAT | PINION_IO_REGISTERED_BUFFERS |
			PINION_IO_RENAMEAT | PINION_IO_LINKAT | PINION_IO_SHUTDOWN,
		kernel.features);

	kernel = newest();
	expect_number(
		"no issuer", 0, pin_level_apply(&kernel, PINION_IO_AUTO, PINION_IO_SINGLE_ISSUER));
	expect_true("no deferring without it", !pin_kernel_has(&kernel, PINION_IO_DEFER_TASKRUN));
	kernel = newest();
	kernel.features &= ~(uint32_t)PINION_IO_EXT_ARG;
	expect_number("no timeouts", 0, pin_level_apply(&kernel, PINION_IO_RING_DEFER, 0));
	expect_number("below the floor", -EOPNOTSUPP, kernel.ring_error);
	expect_number("no rings", PINION_IO_FALLBACK, pin_level_reached(&kernel));
	expect_number("nothing of rings is left, but the files' that the level has",
		PINION_IO_STATX_DIOALIGN, kernel.features);
	kernel = newest();
	kernel.ring_error = -EPERM;
	expect_number("forbidden", 0, pin_level_apply(&kernel, PINION_IO_RING_BASIC, 0));
	expect_number("the cause stays", -EPERM, kernel.ring_error);
}

/* The word of a feature is its name in the header, in small letters. */
static void expect_word(const char *name, const char *word)
{
	expect_number(name, (int)strlen(name), (int)strlen(word));
	for (size_t i = 0; word[i] != '\0' && name[i] != '\0'; i++) {
		expect_number(name, name[i] == '_' ? '-' : tolower(name[i]), word[i]);
	}
}

static void check_words(void)
{
#define EXPECT_WORD(name, word, kind, major, minor, probe) \
	expect_word(#name, word); \
	expect_text("the library's word", word, pinion_machine_feature_name(PINION_IO_##name));
	PIN_KERNEL_FEATURES(EXPECT_WORD)
#undef EXPECT_WORD
	expect_true("no bit", pinion_machine_feature_name(0) == NULL);
	expect_true("two bits",
		pinion_machine_feature_name(PINION_IO_EXT_ARG | PINION_IO_OPENAT) == NULL);
	expect_true("beyond the last", pinion_machine_feature_name(PIN_FEATURES_ALL + 1) == NULL);
}

static int has_read(struct pinion_task *task)
{
	(void)task;
	return 0;
}

static int submit(struct pinion_task *task)
{
	(void)task;
	request = (struct pinion_request){
		.task.run = has_read, .file = &file, .bytes = bytes, .length_bytes = 4096};
	return pinion_request_submit(runtime, &request);
}

/* Facts of a runtime that has read something. */
static int read_at(uint32_t level, uint32_t without, struct pinion_runtime_info *out_info)
{
	struct pinion_task task = {.run = submit};
	struct pinion_config config;
	int rc;

	runtimes_config(&config, 2, level);
	config.io_level = level;
	runtimes_tuning.io_without = without;
	rc = pinion_runtime_create(&config, &runtime);
	if (rc != 0) {
		return rc;
	}
	pinion_runtime_get_info(runtime, out_info, sizeof(*out_info));
	snprintf(cause, sizeof(cause), "%s",
		out_info->fallback_cause == NULL ? "" : out_info->fallback_cause);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	expect_number("join", 0, pinion_runtime_join(runtime));
	expect_number("result", 4, request.result);
	pinion_runtime_destroy(runtime);
	return 0;
}

static void check_rung(size_t index, uint32_t highest)
{
	const char *name = pin_level_name(rungs[index].level);
	struct pinion_runtime_info facts;
	int rc = read_at(rungs[index].level, 0, &facts);

	if (rungs[index].level > highest && highest != PINION_IO_RING) {
		expect_number(name, -EOPNOTSUPP, rc);
		expect_true("the message says what to do",
			strstr(runtimes_log, "PINION_IO_LEVEL") != NULL);
		return;
	}
	expect_number(name, 0, rc);
	expect_text(name, name, facts.io_level);
	expect_number(name, 1, facts.uses_ring);
	expect_number(name, rungs[index].setup_flags, facts.ring_setup_flags & (DEFER | COOP));
	expect_text(name, rungs[index].doorbell, facts.doorbell);
}

static void check_without(void)
{
	struct pinion_runtime_info facts;

	expect_number("auto", 0, read_at(PINION_IO_AUTO, PINION_IO_OPENAT, &facts));
	expect_text("without openat", "fallback", facts.io_level);
	expect_true("the cause is logged", strstr(cause, "too old") != NULL);
	expect_number("ring", -EOPNOTSUPP, read_at(PINION_IO_RING, PINION_IO_EXT_ARG, &facts));
	expect_number("auto", 0, read_at(PINION_IO_AUTO, PINION_IO_REGISTERED_BUFFERS, &facts));
	expect_number("arenas registered", 0, facts.arenas_registered);
	expect_number("but there are rings", 1, facts.uses_ring);
	expect_number("auto", 0, read_at(PINION_IO_AUTO, PINION_IO_REGISTERED_FILES, &facts));
	expect_number("slots for files", 0, facts.file_slots);
	expect_number("and there are rings", 1, facts.uses_ring);
	expect_number("auto", 0, read_at(PINION_IO_AUTO, PINION_IO_SINGLE_ISSUER, &facts));
	expect_number("no deferring", 0, facts.ring_setup_flags & DEFER);
	for (uint32_t bit = PINION_IO_REGISTERED_BUFFERS; bit <= PIN_FEATURES_ALL; bit <<= 1) {
		expect_number("one feature less", 0, read_at(PINION_IO_RING, bit, &facts));
	}
}

int main(void)
{
	struct pinion_machine machine;
	struct pin_kernel probed;

	runtimes_watchdog(LIMIT_SECONDS);
	check_tables();
	check_words();
	expect_number("probe", 0, pinion_machine_probe(&machine, sizeof(machine)));
	pin_kernel_probe(&probed);
	(void)pin_level_apply(&probed, PINION_IO_AUTO, 0);
	expect_number("the machine's features", probed.features, machine.io_features);
	if (machine.io_level == PINION_IO_FALLBACK) {
		printf("skipped: no io_uring here (errno %d)\n", -machine.ring_error);
		return expect_failure_count == 0 ? EXPECT_SKIPPED : 1;
	}
	scratch_enter("levels_use_what_they_say");
	scratch_file("file", "text");
	expect_number("open", 0, pinion_file_open(&file, "file", PINION_DIRECT_NEVER));
	for (size_t i = 0; i < PIN_ARRAY_COUNT(rungs); i++) {
		check_rung(i, machine.io_level);
	}
	check_without();
	pinion_file_close(&file);
	scratch_leave();
	return expect_status();
}
