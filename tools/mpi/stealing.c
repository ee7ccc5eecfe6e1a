/* SPDX-License-Identifier: MIT */
/*
 * The protocol of stealing.h: answers to messages, and steps without one.
 */
#include "tools/mpi/stealing.h"

#include <string.h>

/*
 * The first questions come at once, as work is mostly found by them; later
 * ones wait twice as long each time, so that ranks that have work are not kept
 * from it. tests/unit/tools/stealing_ends_in_time.c prints what this costs.
 */
enum {
	ASKS_AT_ONCE = 3,
	WAIT_NS_MIN = 100 * 1000,
	WAIT_DOUBLINGS = 4,
};

/* splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t mix(uint64_t mixed)
{
	mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
	return mixed ^ (mixed >> 31);
}

static uint64_t next_random(struct stealing *own)
{
	own->random += UINT64_C(0x9e3779b97f4a7c15);
	return mix(own->random);
}

void stealing_init(struct stealing *stealing, uint32_t rank, uint32_t count, uint64_t seed,
	const struct stealing_ops *ops, void *arg)
{
	/*
	 * Mixed, so that no rank asks the same ranks as another some questions
	 * later: else a few ranks would hardly ever be asked.
	 */
	*stealing = (struct stealing){
		.ops = ops,
		.arg = arg,
		.rank = rank,
		.count = count,
		.random = mix(mix(seed) + rank),
		.has_token = rank == 0,
	};
}

void stealing_fini(struct stealing *stealing)
{
	output_text_free(&stealing->text);
}

static void send(struct stealing *own, uint32_t rank, enum stealing_message message,
	const void *bytes, size_t length)
{
	own->sent_counts[message]++;
	own->ops->send(own->arg, rank, message, bytes, length);
}

/* ---- the tree ---- */

static uint32_t first_child(const struct stealing *own)
{
	return 2 * own->rank + 1;
}

static uint32_t child_count(const struct stealing *own)
{
	uint32_t first = first_child(own);

	return first >= own->count ? 0 : first + 1 >= own->count ? 1 : 2;
}

static void send_down(struct stealing *own, enum stealing_message message)
{
	for (uint32_t i = 0; i < child_count(own); i++) {
		send(own, first_child(own) + i, message, NULL, 0);
	}
}

static void end(struct stealing *own)
{
	own->has_ended = true;
	send_down(own, STEALING_END);
}

static void leave(struct stealing *own)
{
	own->has_left = true;
	send_down(own, STEALING_LEAVE);
}

/* ---- messages ---- */

static void answer(struct stealing *own, uint32_t from)
{
	own->text.length = 0;
	if (!own->has_ended && own->ops->give(own->arg, &own->text)) {
		own->open_work++;
		send(own, from, STEALING_WORK, own->text.bytes, own->text.length);
	} else {
		send(own, from, STEALING_NONE, NULL, 0);
	}
}

static void take_work(struct stealing *own, const void *bytes, size_t length)
{
	own->open_work--;
	own->is_black = true;
	own->is_asking = false;
	own->refused_count = 0;
	own->ops->take(own->arg, bytes, length);
}

static void take_refusal(struct stealing *own)
{
	uint32_t doublings;

	own->is_asking = false;
	own->refused_count++;
	if (own->refused_count < ASKS_AT_ONCE) {
		return;
	}
	doublings = own->refused_count - ASKS_AT_ONCE;
	doublings = doublings < WAIT_DOUBLINGS ? doublings : WAIT_DOUBLINGS;
	own->ask_ns = own->now_ns + ((uint64_t)WAIT_NS_MIN << doublings);
}

bool stealing_receive(struct stealing *own, uint32_t from, enum stealing_message message,
	const void *bytes, size_t length)
{
	switch (message) {
	case STEALING_ASK:
		answer(own, from);
		return true;
	case STEALING_WORK:
		take_work(own, bytes, length);
		return true;
	case STEALING_NONE:
		take_refusal(own);
		return true;
	case STEALING_TOKEN:
		if (length != sizeof(own->token)) {
			return false;
		}
		memcpy(&own->token, bytes, length);
		own->has_token = true;
		return true;
	case STEALING_END:
		end(own);
		return true;
	case STEALING_QUIET:
		own->quiet_count++;
		return true;
	case STEALING_LEAVE:
		leave(own);
		return true;
	case STEALING_MESSAGES:
		break;
	}
	return false;
}

/* ---- steps ---- */

/* Rank 0 only: all is done, or the token goes around again. */
static void probe(struct stealing *own)
{
	const struct stealing_token *token = &own->token;

	if (own->count == 1 ||
		(own->has_probed && token->is_black == 0 && !own->is_black &&
			token->sum + own->open_work == 0)) {
		end(own);
		return;
	}
	own->token = (struct stealing_token){.sum = 0};
	own->has_probed = true;
	own->has_token = false;
	own->is_black = false;
	send(own, own->count - 1, STEALING_TOKEN, &own->token, sizeof(own->token));
}

/* Others: adds its part. */
static void pass_token(struct stealing *own)
{
	own->token.sum += own->open_work;
	own->token.is_black |= own->is_black ? 1 : 0;
	own->has_token = false;
	own->is_black = false;
	send(own, own->rank - 1, STEALING_TOKEN, &own->token, sizeof(own->token));
}

static void ask(struct stealing *own)
{
	uint32_t victim = (uint32_t)(next_random(own) % (own->count - 1));

	own->is_asking = true;
	send(own, victim + (victim >= own->rank ? 1 : 0), STEALING_ASK, NULL, 0);
}

static void step_to_leave(struct stealing *own)
{
	if (own->was_quiet || own->is_asking || own->quiet_count < child_count(own)) {
		return;
	}
	own->was_quiet = true;
	if (own->rank == 0) {
		leave(own);
	} else {
		send(own, (own->rank - 1) / 2, STEALING_QUIET, NULL, 0);
	}
}

void stealing_step(struct stealing *own, uint64_t now_ns)
{
	own->now_ns = now_ns;
	if (!own->has_ended && own->ops->is_idle(own->arg)) {
		if (own->has_token) {
			if (own->rank == 0) {
				probe(own);
			} else {
				pass_token(own);
			}
		}
		if (!own->has_ended && !own->is_asking && own->count > 1 && now_ns >= own->ask_ns) {
			ask(own);
		}
	}
	if (own->has_ended) {
		step_to_leave(own);
	}
}
