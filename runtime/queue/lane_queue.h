/* SPDX-License-Identifier: MIT */
/*
 * One lane's queue: what any worker that serves the lane may take, oldest
 * first, one at a time.
 *
 * All workers share it, and none takes a stock of it home: work of the high
 * lane is to be seen by the first free worker, and of the low lane a worker
 * that turns to something higher must not keep any. It is an injector that also
 * knows how many are in it and, roughly, for how long the oldest has waited.
 *
 * Its age: workers mark from time to time how many were ever pushed. Tasks
 * pushed before a mark that is `max_wait` old are overdue. So no push reads a
 * clock; an age is known to an eighth of `max_wait`, and tasks pushed while no
 * worker marked count from the next mark. Marks are a guess: two workers that
 * make one at once may confuse them, by one period.
 *
 * A bounded spawn claims its places before it is admitted, by one
 * compare-and-swap on `pushed`; claims that are not admitted after all are
 * counted as popped. Both counts only grow, so a claim that has read an old
 * `popped` is refused too early, and never granted too much.
 *
 * Progress: as the injector; a claim is lock-free. Any thread.
 *
 * [LANE-1] push and claim count, then push; pop pops, then counts (acq_rel). A
 * thread that reads `popped` first never sees more popped than pushed.
 */
#ifndef PIN_QUEUE_LANE_QUEUE_H
#define PIN_QUEUE_LANE_QUEUE_H

#include "runtime/base/check.h"
#include "runtime/queue/injector.h"

enum {
	PIN_LANE_MARKS = 8,
};

struct pin_lane_queue {
	struct pin_injector injector;
	struct pin_atomic_u64 pushed PIN_CACHE_ALIGNED;	    /* [W:any R:any] ever */
	struct pin_atomic_u64 popped PIN_CACHE_ALIGNED;	    /* [W:any R:any] ever */
	struct pin_atomic_u64 period PIN_CACHE_ALIGNED;	    /* [W:any R:any] of the last mark */
	struct pin_atomic_u64 marks[PIN_LANE_MARKS];	    /* [W:any R:any] by period */
	struct pin_atomic_u64 overdue_end;		    /* [W:any R:any] of `pushed` */
	struct pin_atomic_u32 has_warned PIN_CACHE_ALIGNED; /* [W:any R:any] of its depth */
};

void pin_lane_queue_init(struct pin_lane_queue *queue, const struct pin_host *host);

/*
 * Appends the `count` elements of `list`, and leaves it empty; past any limit.
 */
void pin_lane_queue_push(struct pin_lane_queue *queue, struct pin_list *list, uint32_t count);

/*
 * Claims places for `count` elements, at most `limit`, if then no more than
 * `limit` are in it or claimed. True: exactly one of the next two follows.
 * False: *out_waiting are.
 */
bool pin_lane_queue_claim(
	struct pin_lane_queue *queue, uint32_t count, uint64_t limit, uint64_t *out_waiting);

/* Appends what places were claimed for. */
static inline void pin_lane_queue_push_claimed(struct pin_lane_queue *queue, struct pin_list *list)
{
	PIN_DCHECK(!pin_list_is_empty(list));
	pin_injector_push(&queue->injector, list);
}

/* Gives `count` claimed places back. */
static inline void pin_lane_queue_undo(struct pin_lane_queue *queue, uint32_t count)
{
	PIN_DCHECK(count > 0);
	pin_fetch_add_acq_rel_u64(&queue->popped, count); /* [LANE-1] */
}

/* The oldest, or NULL; *out_has_more says whether others may find some, too. */
struct pin_link *pin_lane_queue_pop(struct pin_lane_queue *queue, bool *out_has_more);

static inline bool pin_lane_queue_is_empty(const struct pin_lane_queue *queue)
{
	return pin_injector_is_empty(&queue->injector);
}

/* Elements being pushed or claimed at this moment count already. */
uint64_t pin_lane_queue_depth(const struct pin_lane_queue *queue);

/*
 * To be called now and then while any worker works. `max_wait_ns` is always the
 * same, 8 at least.
 */
void pin_lane_queue_mark(struct pin_lane_queue *queue, uint64_t now_ns, uint64_t max_wait_ns);

/* Whether the oldest has waited for longer than that. */
static inline bool pin_lane_queue_is_overdue(const struct pin_lane_queue *queue)
{
	return pin_load_relaxed_u64(&queue->popped) < pin_load_relaxed_u64(&queue->overdue_end);
}

/*
 * Whether to say that it is deep: once when it reaches `limit`, and again only
 * after it has fallen to half of that.
 */
bool pin_lane_queue_must_warn(struct pin_atomic_u32 *has_warned, uint64_t depth, uint64_t limit);

#endif
