/* SPDX-License-Identifier: MIT */
/*
 * Goal: what a reader accepts is of one write, whole and not older than the
 * sequence that it saw: [SEQLOCK-1], [SEQLOCK-2].
 * Method: a writer writes both words twice, a reader tries once or twice; two
 * writers take turns by a lock. An accepted read has two equal words, as many
 * as half the sequence says.
 */
#include "runtime/observe/seqlock.h"
#include "runtime/base/base.h"
#include "runtime/host/host.h"
#include "tests/model/explorer.h"

enum { SEQUENCE, FIRST, SECOND, WORDS, WRITES = 2, TRIES = 2 };

static struct pin_atomic_u64 words[WORDS];
static struct pin_lock lock;
static uint32_t read_count;

static void write_once(void)
{
	uint64_t number;

	pin_seqlock_begin(&words[SEQUENCE]);
	number = pin_load_relaxed_u64(&words[FIRST]) + 1;
	pin_store_relaxed_u64(&words[FIRST], number);
	pin_store_relaxed_u64(&words[SECOND], number);
	pin_seqlock_end(&words[SEQUENCE]);
}

static void reset(void)
{
	for (size_t i = 0; i < WORDS; i++) {
		pin_store_relaxed_u64(&words[i], 0);
	}
	lock = (struct pin_lock){0};
	read_count = 0;
}

static void read_some(void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < TRIES; i++) {
		uint64_t sequence = pin_load_acquire_u64(&words[SEQUENCE]);
		uint64_t out[2];

		if (pin_seqlock_try_read(pin_seqlock_fetch, words, SEQUENCE, FIRST, 2, out) ==
			PIN_SEQLOCK_READ) {
			MODEL_CHECK(out[0] == out[1]);
			MODEL_CHECK(out[0] <= WRITES && out[0] >= sequence / 2);
			read_count++;
		}
	}
}

static void run_one_writer(void)
{
	uint32_t reader;

	reset();
	reader = model_thread_start("reader", read_some, NULL);
	for (uint32_t i = 0; i < WRITES; i++) {
		write_once();
	}
	model_thread_join(reader);
	/* Nothing is being written: a read succeeds. */
	read_some(NULL);
	MODEL_CHECK(read_count >= TRIES);
}

static void write_locked(void *arg)
{
	const struct pin_host *host = &pin_host_linux;

	(void)arg;
	if (pin_lock_try(&lock)) { /* [LOCK-1] */
		write_once();
		pin_lock_release(&lock, host);
	}
}

static void run_two_writers(void)
{
	uint32_t writer;
	uint32_t reader;

	reset();
	writer = model_thread_start("writer", write_locked, NULL);
	reader = model_thread_start("reader", read_some, NULL);
	write_locked(NULL);
	model_thread_join(writer);
	model_thread_join(reader);
}

static const struct model_mutant mutants[] = {
	{"words are seen before the odd sequence", {MODEL_DROP_FENCE, "pin_seqlock_begin", NULL}},
	{"words are seen after the even sequence", {MODEL_RELAXED, "pin_seqlock_end", NULL}},
	{"the reader looks without fences", {MODEL_DROP_FENCE, "pin_seqlock_try_read", NULL}},
	{.name = NULL},
};

static const struct model_mutant lock_mutants[] = {
	{"two write at once", {MODEL_TORN, "pin_lock_try", NULL}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"one_writer", run_one_writer, 3, 3, 0, mutants, NULL},
	{"two_writers", run_two_writers, 2, 2, 0, lock_mutants, NULL},
};

int main(void)
{
	return model_main("seqlock", cases, PIN_ARRAY_COUNT(cases));
}
