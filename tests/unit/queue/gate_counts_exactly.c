/* SPDX-License-Identifier: MIT */
/*
 * Goal: no admission slips past a close, and the count is the number of
 * admissions that were not undone; it never falls below 0. One word has
 * both: bit 0 says open, the others count. Where the queue limit ends follows
 * from the limit and from the counts of its queue. EX-25, EX-41, EX-42, EX-63,
 * AS-36.
 * Method: the word after each call by one thread; then many short lives of a
 * gate: threads admit until refused while one closes it; the sum of their
 * successes is compared with the count, read right after the close and again
 * after all have ended.
 */
#include "runtime/queue/gate.h"
#include "tests/support/child.h"
#include "tests/support/expect.h"

#include <pthread.h>
#include <sched.h>

enum {
	ADMITTERS = 3,
	LIVES = 100,
	BEFORE_CLOSE = 200,
};

static struct pin_gate gate;

static void *admit_until_refused(void *arg)
{
	uint64_t *sum = arg;

	for (uint64_t count = 1; pin_gate_admit(&gate, count); count = count % 3 + 1) {
		*sum += count;
	}
	return NULL;
}

static void live_once(void)
{
	pthread_t threads[ADMITTERS];
	uint64_t sums[ADMITTERS] = {0};
	uint64_t at_close;
	uint64_t total = 0;

	pin_gate_init(&gate);
	for (int i = 0; i < ADMITTERS; i++) {
		expect_ready("thread",
			pthread_create(&threads[i], NULL, admit_until_refused, &sums[i]) == 0);
	}
	while (pin_gate_admitted(&gate) < BEFORE_CLOSE) {
		sched_yield();
	}
	expect_true("open before the close", pin_gate_is_open(&gate));
	pin_gate_close(&gate);
	at_close = pin_gate_admitted(&gate);
	for (int i = 0; i < ADMITTERS; i++) {
		pthread_join(threads[i], NULL);
		total += sums[i];
	}
	expect_number("admitted at the close", (long long)total, (long long)at_close);
	expect_number("admitted at the end", (long long)total, (long long)pin_gate_admitted(&gate));
	pin_gate_close(&gate);
	expect_true("closed", !pin_gate_is_open(&gate));
	expect_true("refused when closed", !pin_gate_admit(&gate, 1));
	expect_number(
		"a refusal does not count", (long long)total, (long long)pin_gate_admitted(&gate));
}

static void expect_word(const char *what, uint64_t expected)
{
	expect_number(what, (long long)expected, (long long)pin_load_acquire_u64(&gate.word));
}

static void check_word(void)
{
	expect_number("the bit", 1, PIN_GATE_ACCEPTING);
	expect_number("a unit", 2, PIN_GATE_UNIT);
	pin_gate_init(&gate);
	expect_word("open, none admitted", 1);
	expect_true("admit", pin_gate_admit(&gate, 3));
	expect_word("open, three", 7);
	expect_true("undone in time", !pin_gate_undo(&gate, 1));
	expect_word("open, two", 5);
	pin_gate_close(&gate);
	expect_word("closed, two", 4);
	pin_gate_close(&gate);
	expect_true("refused", !pin_gate_admit(&gate, 1));
	expect_word("as before", 4);
	expect_true("undone late", pin_gate_undo(&gate, 2));
	expect_word("closed, none", 0);
}

static int undo_too_many(void *arg)
{
	(void)arg;
	pin_gate_init(&gate);
	pin_gate_admit(&gate, 1);
	pin_gate_undo(&gate, 2);
	return 0;
}

static void check_undone(void)
{
	pin_gate_init(&gate);
	expect_true("admitted", pin_gate_admit(&gate, 5));
	expect_number("not up to 6", PIN_GATE_FULL, pin_gate_admit_until(&gate, 2, 6));
	expect_number("a refusal does not count", 5, (long long)pin_gate_admitted(&gate));
	expect_true("undone in time", !pin_gate_undo(&gate, 2));
	expect_number("count without those", 3, (long long)pin_gate_admitted(&gate));
	expect_true("still open", pin_gate_is_open(&gate));
	pin_gate_close(&gate);
	expect_true("undone late", pin_gate_undo(&gate, 3));
	expect_number("none left", 0, (long long)pin_gate_admitted(&gate));
	expect_true("still closed", !pin_gate_is_open(&gate));
}

/* Of a queue whose limit is 160: a look anew allows ten more at once. */
static void check_queue_limit(void)
{
	static const struct {
		struct pin_queue_limit_view view;
		uint64_t elsewhere;
		uint64_t count;
		bool fits;
		uint64_t number; /* the end, or how many wait */
	} rows[] = {
		{{0, 0, 0}, 0, 1, true, 11},
		{{150, 0, 0}, 0, 11, false, 150},
		{{150, 0, 0}, 0, 10, true, 160},
		{{150, 30, 40}, 0, 1, false, 160},
		{{140, 30, 40}, 0, 10, true, 150},
		{{120, 30, 40}, 0, 3, true, 133},
		{{155, 30, 40}, 5, 1, false, 160},
		{{154, 30, 40}, 5, 1, true, 155},
		{{0, 0, 500}, 0, 1, false, 160},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pin_queue_limit queue_limit;
		uint64_t waiting = 0;
		bool fits;

		pin_queue_limit_init(&queue_limit, 160);
		expect_number("at first", 0, (long long)pin_queue_limit_end(&queue_limit));
		pin_queue_limit_note_elsewhere(&queue_limit, rows[i].elsewhere);
		fits = pin_queue_limit_renew(&queue_limit, &rows[i].view, rows[i].count, &waiting);
		expect_number("fits", rows[i].fits, fits);
		expect_number("end or waiting", (long long)rows[i].number,
			(long long)(fits ? pin_queue_limit_end(&queue_limit) : waiting));
		expect_true("the other is left",
			fits ? waiting == 0 : pin_queue_limit_end(&queue_limit) == 0);
	}
}

int main(void)
{
	check_queue_limit();
	check_word();
	check_undone();
	child_expect_abort("more than there were", undo_too_many, NULL, "before / PIN_GATE_UNIT");
	for (int i = 0; i < LIVES && expect_failure_count == 0; i++) {
		live_once();
	}
	return expect_status();
}
