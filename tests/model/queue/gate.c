/* SPDX-License-Identifier: MIT */
/*
 * Goal: an admission comes before the close and is in its count, or it fails:
 * [GATE-1]; an undone admission leaves the count, and says so if it is late; a
 * thread that has seen the gate closed is not admitted. EX-5, EX-25, EX-42,
 * EX-61; of EX-43 spawn_vs_join_gate_atomicity and
 * concurrent_spawns_no_lost_count.
 * Method: two threads admit while a third closes and reads the count at once;
 * or one admits, and one asks first.
 */
#include "runtime/queue/gate.h"
#include "runtime/base/base.h"
#include "tests/model/explorer.h"

enum { ADMITTERS = 2 };

static struct pin_gate gate;
static uint64_t admitted_counts[ADMITTERS];

static void admit(void *arg)
{
	uint64_t *count = arg;

	*count += pin_gate_admit(&gate, 1) ? 1 : 0;
	*count += pin_gate_admit(&gate, 2) ? 2 : 0;
}

static void run_close(void)
{
	uint32_t threads[ADMITTERS];
	uint64_t sum = 0;
	uint64_t at_close;

	pin_gate_init(&gate);
	for (uint32_t i = 0; i < ADMITTERS; i++) {
		admitted_counts[i] = 0;
		threads[i] = model_thread_start("admitter", admit, &admitted_counts[i]);
	}
	pin_gate_close(&gate);
	MODEL_CHECK(!pin_gate_is_open(&gate));
	at_close = pin_gate_admitted(&gate);
	pin_gate_close(&gate);
	for (uint32_t i = 0; i < ADMITTERS; i++) {
		model_thread_join(threads[i]);
		sum += admitted_counts[i];
	}
	MODEL_CHECK(sum == at_close && pin_gate_admitted(&gate) == at_close);
	MODEL_CHECK(!pin_gate_admit(&gate, 1));
}

/* ---- forgoing ---- */

static bool is_undone;
static bool was_late;

static void admit_and_undo(void *arg)
{
	(void)arg;
	is_undone = pin_gate_admit(&gate, 1);
	was_late = is_undone && pin_gate_undo(&gate, 1);
}

static void run_undo(void)
{
	uint64_t at_close;
	uint32_t thread;

	pin_gate_init(&gate);
	MODEL_CHECK(pin_gate_admit(&gate, 1));
	thread = model_thread_start("forgoer", admit_and_undo, NULL);
	pin_gate_close(&gate);
	at_close = pin_gate_admitted(&gate);
	model_thread_join(thread);
	MODEL_CHECK(!pin_gate_is_open(&gate) && pin_gate_admitted(&gate) == 1);
	/* The thread that read too much at the close learns it. */
	MODEL_CHECK(at_close == 1 || (at_close == 2 && is_undone && was_late));
}

/* ---- asking ---- */

static void ask_and_admit(void *arg)
{
	bool is_open = pin_gate_is_open(&gate);

	(void)arg;
	/*
	 * A thread that has seen it closed is not admitted, nor is it open
	 * again.
	 */
	if (!is_open) {
		MODEL_CHECK(!pin_gate_admit(&gate, 1));
		MODEL_CHECK(!pin_gate_is_open(&gate));
	}
}

static void admit_once(void *arg)
{
	(void)arg;
	(void)pin_gate_admit(&gate, 1);
}

static void run_ask(void)
{
	uint32_t admitter;
	uint32_t asker;

	pin_gate_init(&gate);
	MODEL_CHECK(pin_gate_is_open(&gate));
	admitter = model_thread_start("admitter", admit_once, NULL);
	asker = model_thread_start("asker", ask_and_admit, NULL);
	pin_gate_close(&gate);
	model_thread_join(admitter);
	model_thread_join(asker);
	MODEL_CHECK(!pin_gate_is_open(&gate));
}

static const struct model_mutant ask_mutants[] = {
	{"an admission opens it again", {MODEL_TORN, "pin_gate_admit_until", NULL}},
	{.name = NULL},
};

static const struct model_mutant undo_mutants[] = {
	{"forgoing is no single step", {MODEL_TORN, "pin_gate_undo", NULL}},
	{.name = NULL},
};

static const struct model_mutant mutants[] = {
	{"admission is no single step", {MODEL_TORN, "pin_gate_admit_until", NULL}},
	{"the close is no single step", {MODEL_TORN, "pin_gate_close", NULL}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"close", run_close, 3, 2, 0, mutants, NULL},
	{"undo", run_undo, 3, 2, 0, undo_mutants, NULL},
	{"ask", run_ask, 3, 2, 0, ask_mutants, NULL},
};

int main(void)
{
	return model_main("gate", cases, PIN_ARRAY_COUNT(cases));
}
