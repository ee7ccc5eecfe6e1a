/* SPDX-License-Identifier: MIT */
/*
 * Work that is shared out among the processes of a job, its ranks: what they
 * say to one another, without the means by which they say it.
 *
 * A rank without work asks another one, chosen at random. The answer is half of
 * the work that waits there, or that there is none. A rank that was refused
 * waits, longer after each refusal, and asks again.
 *
 * The end is found by a token (Safra): rank 0 sends it to the last rank, each
 * rank that is idle passes it to the rank before. A rank counts the messages
 * with work that it has sent, less those that it has received; the token adds
 * these up. A rank that has received work since the token's last visit is
 * black, and blackens the token. If the token comes back white to a white rank
 * 0, and the sum is 0, then no work is left and none is under way.
 *
 * Then three messages for each rank, along a binary tree, so that none is left
 * without a receiver: END goes down, QUIET up as soon as all questions of a
 * subtree have their answers, and LEAVE down.
 *
 * Invariants: (1) a rank has one question without an answer at most. (2) work
 * is in one rank's queue, in hand, or in one message. (3) once a rank knows the
 * end all ranks are idle, and stay so. (4) nothing comes after LEAVE.
 *
 * Called by one thread; no call waits.
 * Source: Dijkstra, EWD 998: Shmuel Safra's version of termination detection.
 */
#ifndef PINION_TOOLS_MPI_STEALING_H
#define PINION_TOOLS_MPI_STEALING_H

#include "tools/output_text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum stealing_message {
	STEALING_ASK,	/* the sender is idle */
	STEALING_WORK,	/* the answer: bytes of `give` */
	STEALING_NONE,	/* the answer: there is no work */
	STEALING_TOKEN, /* struct stealing_token */
	STEALING_END,	/* no rank has work */
	STEALING_QUIET, /* the sender's subtree has no open question */
	STEALING_LEAVE,
	STEALING_MESSAGES,
};

struct stealing_token {
	int64_t sum;	   /* work sent less work received, of the ranks passed */
	uint64_t is_black; /* the sum may be of different times */
};

struct stealing_ops {
	/* Sends a copy, and does not wait. */
	void (*send)(void *arg, uint32_t rank, enum stealing_message message, const void *bytes,
		size_t length);
	/* Appends half of the work that waits. False: there is too little. */
	bool (*give)(void *arg, struct output_text *out_work);
	void (*take)(void *arg, const void *bytes, size_t length);
	/* No work waits, and none is in hand that may bring some. */
	bool (*is_idle)(void *arg);
};

struct stealing {
	const struct stealing_ops *ops;
	void *arg;
	uint32_t rank;
	uint32_t count;	      /* of ranks */
	uint64_t random;      /* state */
	uint64_t now_ns;      /* of the last step */
	int64_t open_work;    /* messages with work sent, less those received */
	bool is_black;	      /* work has come since the token left */
	bool has_token;	      /* rank 0: it is back, or has not begun */
	bool has_probed;      /* rank 0: the token has been around */
	bool is_asking;	      /* invariant 1 */
	bool has_ended;	      /* END has come */
	bool was_quiet;	      /* QUIET is sent */
	bool has_left;	      /* LEAVE has come */
	uint32_t quiet_count; /* subtrees below that are */
	uint32_t refused_count;
	uint64_t ask_ns; /* not before */
	struct stealing_token token;
	struct output_text text;
	uint64_t sent_counts[STEALING_MESSAGES];
};

/* `arg` is that of the operations. */
void stealing_init(struct stealing *stealing, uint32_t rank, uint32_t count, uint64_t seed,
	const struct stealing_ops *ops, void *arg);

void stealing_fini(struct stealing *stealing);

/*
 * A message has come. False: it is none of these, or has the wrong length.
 */
bool stealing_receive(struct stealing *stealing, uint32_t from, enum stealing_message message,
	const void *bytes, size_t length);

/*
 * Sends messages that are due; to be called again after each message, and every
 * now and then.
 */
void stealing_step(struct stealing *stealing, uint64_t now_ns);

/* No work is left in any rank. */
static inline bool stealing_has_ended(const struct stealing *stealing)
{
	return stealing->has_ended;
}

/* And no message is to be sent or received any more. */
static inline bool stealing_has_left(const struct stealing *stealing)
{
	return stealing->has_left;
}

#endif
