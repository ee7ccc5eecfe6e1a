/* SPDX-License-Identifier: MIT */
/*
 * The caller and the tasks of a walk; see walk_tasks.h for what they share.
 *
 * Functions that say so are called under the lock. What they decide to spawn or
 * to ring is noted in a struct after, and done when the lock is released.
 */
#include "runtime/scan/walk_tasks.h"
#include "runtime/base/check.h"
#include "runtime/host/heap.h"
#include "runtime/scan/walk_list.h"
#include "runtime/task/entry.h"

#include <errno.h>
#include <pinion/budget.h>
#include <pinion/runtime.h>
#include <string.h>

enum {
	BLOCKS_OF_TASK = 2, /* one is filled, one waits to be visited */
	/* Names that wait before directories are put aside. */
	WAITING_BYTES_MAX = 16 << 20,
};

struct tasks;

/* Lists directories: the caller, or a task. */
struct lister {
	struct pinion_task task;
	struct tasks *tasks;
	struct lister *next; /* [lock:lock] idle or parked */
	bool has_closed;     /* a directory, which is not counted yet */
	bool has_blocks;     /* made */
	struct pin_walker walker;
};

struct tasks {
	struct pin_walk *walk;		/* [const] */
	struct pinion_runtime *runtime; /* [const] */
	struct lister *listers;		/* [const] of tasks */
	uint32_t lister_count;		/* [const] */
	size_t waiting_bytes_max;	/* [const] */
	uint32_t block_bytes;		/* [const] */
	/* The caller's */
	struct lister own;
	struct pin_walk_path path; /* of the block that it visits */
	/* Shared */
	struct pin_lock lock; /* rank 2 */
	/* [lock:lock] all below, and the walk's names */
	struct lister *idle;
	struct lister *parked;
	uint32_t active_count; /* tasks that are neither */
	struct pin_walk_block *free_blocks;
	struct pin_walk_block *ready_first;
	struct pin_walk_block *ready_last;
	struct pin_listing *aside;
	uint32_t aside_count;
	struct pin_directory *returned; /* for want of a descriptor */
	uint32_t open_count;		/* directories that are open, or about to be */
	uint32_t open_max;
	bool caller_waits; /* [WALK-1] */
	bool is_ending;
	bool is_stopped;	      /* the runtime takes no tasks any more */
	int rc;			      /* once it is ending */
	struct pinion_budget bell;    /* a unit: the caller is to look again */
	struct pinion_budget running; /* units of tasks */
};

/* To be done without the lock. */
struct after {
	struct lister *spawns[2];
	bool rings;
};

static const uint64_t one = 1;

static void lock(struct tasks *tasks)
{
	pin_lock_acquire(&tasks->lock, tasks->walk->host);
}

/* ---- under the lock ---- */

static bool may_open(const struct tasks *tasks)
{
	return tasks->open_count < tasks->open_max &&
		(tasks->returned != NULL || tasks->walk->top != NULL);
}

static bool has_work(const struct tasks *tasks)
{
	return !tasks->is_ending && (tasks->aside != NULL || may_open(tasks));
}

/* A directory that the lister has closed may be followed by another. */
static void count_closed(struct tasks *tasks, struct lister *lister)
{
	if (lister->has_closed) {
		PIN_CHECK(tasks->open_count > 0);
		lister->has_closed = false;
		tasks->open_count--;
	}
}

/* Invariant 2: nothing is left, and nothing can come. */
static bool is_over(const struct tasks *tasks)
{
	return tasks->active_count == 0 && tasks->parked == NULL && tasks->ready_first == NULL &&
		tasks->own.walker.listing == NULL && !has_work(tasks);
}

static bool caller_has_work(const struct tasks *tasks)
{
	return tasks->is_ending || tasks->ready_first != NULL || has_work(tasks) || is_over(tasks);
}

static void note_spawn(struct after *after, struct lister *lister)
{
	PIN_CHECK(after->spawns[1] == NULL);
	after->spawns[after->spawns[0] == NULL ? 0 : 1] = lister;
}

/*
 * One idle task, where more names wait than active tasks and the caller will
 * take next. Each task that takes one calls this, so that all come to work.
 */
static void wake_idle(struct tasks *tasks, struct after *after)
{
	struct lister *lister = tasks->idle;

	if (lister == NULL || tasks->is_stopped || !may_open(tasks) ||
		tasks->walk->waiting_count <= (size_t)tasks->active_count + 1) {
		return;
	}
	tasks->idle = lister->next;
	tasks->active_count++;
	note_spawn(after, lister);
}

static void push_ready(struct tasks *tasks, struct pin_walk_block *block)
{
	PIN_CHECK(block->directory != NULL && block->next == NULL);
	if (tasks->ready_first == NULL) {
		tasks->ready_first = block;
	} else {
		tasks->ready_last->next = block;
	}
	tasks->ready_last = block;
}

/* The task's block, if it has one: to be visited, or to be filled by others. */
static void give_block(struct tasks *tasks, struct lister *lister)
{
	struct pin_walk_block *block = lister->walker.block;

	lister->walker.block = NULL;
	if (block == NULL) {
		return;
	}
	if (block->directory != NULL) {
		push_ready(tasks, block);
	} else {
		block->next = tasks->free_blocks;
		tasks->free_blocks = block;
	}
}

static bool take_free_block(struct tasks *tasks, struct lister *lister)
{
	struct pin_walk_block *block = tasks->free_blocks;

	PIN_CHECK(lister->walker.block == NULL);
	if (block == NULL) {
		return false;
	}
	PIN_CHECK(block->directory == NULL && block->used_bytes == 0);
	tasks->free_blocks = block->next;
	block->next = NULL;
	lister->walker.block = block;
	return true;
}

/* A free block for a parked task. */
static void unpark(struct tasks *tasks, struct after *after)
{
	struct lister *lister = tasks->parked;

	if (lister == NULL || tasks->is_ending || !take_free_block(tasks, lister)) {
		return;
	}
	tasks->parked = lister->next;
	tasks->active_count++;
	note_spawn(after, lister);
}

/* The task is active no more; another's spawn may begin at the unlock. */
static void go_idle(struct tasks *tasks, struct lister *lister, struct after *after)
{
	PIN_CHECK(tasks->active_count > 0 && lister->walker.listing == NULL);
	give_block(tasks, lister);
	unpark(tasks, after);
	lister->next = tasks->idle;
	tasks->idle = lister;
	tasks->active_count--;
}

static void begin_end(struct tasks *tasks, int rc)
{
	if (!tasks->is_ending) {
		tasks->is_ending = true;
		tasks->rc = rc;
	}
}

static void put_aside(struct tasks *tasks, struct pin_walker *walker)
{
	struct pin_listing *listing = walker->listing;

	listing->next = tasks->aside;
	tasks->aside = listing;
	tasks->aside_count++;
	walker->listing = NULL;
}

/* A listing that is aside, or a directory; neither: there is none. -ENOMEM. */
static int choose(
	struct tasks *tasks, struct pin_listing **out_listing, struct pin_directory **out_directory)
{
	bool opens = may_open(tasks);

	*out_listing = NULL;
	*out_directory = NULL;
	if (tasks->aside != NULL &&
		(!opens || tasks->walk->waiting_bytes < tasks->waiting_bytes_max / 2)) {
		*out_listing = tasks->aside;
		tasks->aside = tasks->aside->next;
		tasks->aside_count--;
		return 0;
	}
	if (!opens) {
		return 0;
	}
	tasks->open_count++;
	if (tasks->returned != NULL) {
		*out_directory = tasks->returned;
		tasks->returned = tasks->returned->next;
		(*out_directory)->next = NULL;
		return 0;
	}
	return pin_walk_take_directory(tasks->walk, out_directory);
}

/* ---- without it ---- */

static void leave_task(struct tasks *tasks)
{
	pinion_budget_release(&tasks->running, &one);
}

static void spawn(struct tasks *tasks, struct lister *lister);

/* The last touch by a task that is idle or parked then, but for its unit. */
static void unlock(struct tasks *tasks, struct after *after)
{
	if (tasks->caller_waits && caller_has_work(tasks)) { /* [WALK-1] */
		tasks->caller_waits = false;
		after->rings = true;
	}
	pin_lock_release(&tasks->lock, tasks->walk->host);
	if (after->rings) {
		pinion_budget_release(&tasks->bell, &one);
	}
	for (size_t i = 0; i < PIN_ARRAY_COUNT(after->spawns) && after->spawns[i] != NULL; i++) {
		spawn(tasks, after->spawns[i]);
	}
}

/*
 * A task that cannot run any more: the caller goes on with what it has open.
 */
static void retire(struct tasks *tasks, struct lister *lister)
{
	struct after after = {.rings = false};

	lock(tasks);
	count_closed(tasks, lister);
	tasks->is_stopped = true;
	if (lister->walker.listing != NULL) {
		put_aside(tasks, &lister->walker);
	}
	go_idle(tasks, lister, &after);
	unlock(tasks, &after);
}

static int take_turn(struct pinion_task *task);
static void cancel_turn(struct pinion_task *task);

/* Into the queue that all workers share, whatever the room in it. */
static int spawn_shared(struct tasks *tasks, struct pinion_task *task)
{
	int rc;

	*task = (struct pinion_task){.run = take_turn, .cancel = cancel_turn};
	if (pin_runtime_is_own(tasks->runtime)) {
		return pinion_task_spawn_shared(tasks->runtime, task);
	}
	rc = pin_runtime_reserve(tasks->runtime);
	if (rc == 0) {
		pin_runtime_spawn_reserved(tasks->runtime, task);
	}
	return rc;
}

/* The task is active already. It is refused when the runtime is stopped. */
static void spawn(struct tasks *tasks, struct lister *lister)
{
	if (pinion_budget_try_acquire(&tasks->running, &one) != 0) {
		retire(tasks, lister); /* the caller awaits the end */
		return;
	}
	if (spawn_shared(tasks, &lister->task) != 0) {
		retire(tasks, lister);
		leave_task(tasks);
	}
}

/* ---- listing ---- */

enum progress {
	MOVED,
	FULL,  /* the block */
	DRY,   /* there is no directory; a task is idle now */
	ENDED, /* the walk */
};

static enum progress end_walk(struct tasks *tasks, int rc)
{
	struct after after = {.rings = false};

	lock(tasks);
	begin_end(tasks, rc);
	unlock(tasks, &after);
	return ENDED;
}

/*
 * No descriptor was left: from now on fewer directories are open at once, and
 * this one waits until another is closed; or it is opened anyway, for the error
 * to be visited.
 */
static enum progress want_descriptor(struct lister *lister, struct pin_directory *directory)
{
	struct tasks *tasks = lister->tasks;
	struct after after = {.rings = false};
	bool is_alone;

	lock(tasks);
	is_alone = tasks->open_count == 1;
	if (!is_alone) {
		tasks->open_count--;
		tasks->open_max = tasks->open_count;
		directory->next = tasks->returned;
		tasks->returned = directory;
	}
	unlock(tasks, &after);
	if (!is_alone) {
		return MOVED;
	}
	lister->walker.is_patient = false;
	switch (pin_walker_open(&lister->walker, directory)) {
	case PIN_LISTING_READ:
		break;
	case PIN_LISTING_DONE:
		lister->has_closed = true;
		break;
	case PIN_LISTING_FULL:
	case PIN_LISTING_WANTING:
	case PIN_LISTING_ENDED:
		return end_walk(tasks, lister->walker.rc);
	}
	return MOVED;
}

static enum progress open_next(struct lister *lister, struct pin_directory *directory)
{
	lister->walker.is_patient = true;
	switch (pin_walker_open(&lister->walker, directory)) {
	case PIN_LISTING_READ:
		return MOVED;
	case PIN_LISTING_DONE:
		lister->has_closed = true;
		return MOVED;
	case PIN_LISTING_WANTING:
		return want_descriptor(lister, directory);
	case PIN_LISTING_FULL: /* there was room */
	case PIN_LISTING_ENDED:
		break;
	}
	return end_walk(lister->tasks, lister->walker.rc);
}

/* The caller has none. */
static bool is_empty(const struct pin_walk_block *block)
{
	return block == NULL || block->directory == NULL;
}

/* Takes the next directory, or becomes idle, under the same lock. */
static enum progress take_next(struct lister *lister)
{
	struct tasks *tasks = lister->tasks;
	struct after after = {.rings = false};
	struct pin_listing *listing;
	struct pin_directory *directory;
	int rc;

	lock(tasks);
	count_closed(tasks, lister);
	rc = tasks->is_ending ? 0 : choose(tasks, &listing, &directory);
	if (tasks->is_ending || rc != 0) {
		begin_end(tasks, rc);
		unlock(tasks, &after);
		return ENDED;
	}
	if (listing == NULL && directory == NULL) {
		if (lister != &tasks->own) {
			go_idle(tasks, lister, &after);
		}
		unlock(tasks, &after);
		return DRY;
	}
	wake_idle(tasks, &after);
	if (tasks->caller_waits && tasks->free_blocks != NULL && !is_empty(lister->walker.block)) {
		give_block(tasks, lister);
		(void)take_free_block(tasks, lister);
	}
	unlock(tasks, &after);
	if (directory != NULL) {
		return open_next(lister, directory);
	}
	rc = pin_walker_resume(&lister->walker, listing);
	return rc == 0 ? MOVED : end_walk(tasks, rc);
}

/* The names that a part of a listing has brought. */
static enum progress add_names(struct lister *lister)
{
	struct tasks *tasks = lister->tasks;
	struct after after = {.rings = false};
	struct pin_names *names = pin_walker_take_names(&lister->walker);

	if (names == NULL) {
		return lister->walker.rc == 0 ? MOVED : end_walk(tasks, lister->walker.rc);
	}
	lock(tasks);
	pin_walk_add_names(tasks->walk, lister->walker.directory, names);
	if (tasks->walk->waiting_bytes > tasks->waiting_bytes_max &&
		tasks->aside_count < PIN_WALK_ASIDE_MAX && tasks->open_count < tasks->open_max) {
		put_aside(tasks, &lister->walker);
	}
	wake_idle(tasks, &after);
	unlock(tasks, &after);
	return MOVED;
}

/* One step: a directory is opened, or a part of it listed. */
static enum progress step(struct lister *lister)
{
	struct tasks *tasks = lister->tasks;

	if (pin_walk_is_cancelled(tasks->walk)) {
		return end_walk(tasks, -ECANCELED);
	}
	if (lister->walker.listing == NULL) {
		return pin_walker_may_open(&lister->walker) ? take_next(lister) : FULL;
	}
	switch (pin_walker_list(&lister->walker)) {
	case PIN_LISTING_READ:
		return add_names(lister);
	case PIN_LISTING_DONE:
		pin_walker_close(&lister->walker);
		lister->has_closed = true;
		return MOVED;
	case PIN_LISTING_FULL:
		return FULL;
	case PIN_LISTING_WANTING: /* of opens only */
	case PIN_LISTING_ENDED:
		break;
	}
	return end_walk(tasks, lister->walker.rc);
}

/* ---- a task ---- */

static struct pin_walk_block *block_create(const struct tasks *tasks)
{
	uint32_t capacity = tasks->block_bytes;
	struct pin_walk_block *block =
		pin_heap_allocate(tasks->walk->host, PIN_HEAP_ALIGN, sizeof(*block) + capacity, 1);

	if (block != NULL) {
		*block = (struct pin_walk_block){.capacity_bytes = capacity};
	}
	return block;
}

static void block_free(const struct tasks *tasks, struct pin_walk_block *block)
{
	pin_heap_release(tasks->walk->host, block, PIN_HEAP_ALIGN,
		sizeof(*block) + block->capacity_bytes, 1);
}

/* A task's first blocks: one is its own, the others are free. */
static enum progress make_blocks(struct lister *lister)
{
	struct tasks *tasks = lister->tasks;

	for (uint32_t i = 0; i < BLOCKS_OF_TASK; i++) {
		struct after after = {.rings = false};
		struct pin_walk_block *block = block_create(tasks);

		if (block == NULL) {
			return end_walk(tasks, -ENOMEM);
		}
		if (i == 0) {
			lister->walker.block = block;
			continue;
		}
		lock(tasks);
		block->next = tasks->free_blocks;
		tasks->free_blocks = block;
		unpark(tasks, &after);
		unlock(tasks, &after);
	}
	lister->has_blocks = true;
	return MOVED;
}

/*
 * Hands the block over and takes another; where there is none the task is
 * parked, and DRY for now.
 */
static enum progress renew_block(struct lister *lister)
{
	struct tasks *tasks = lister->tasks;
	struct after after = {.rings = false};
	bool has_one;

	if (!lister->has_blocks) {
		return make_blocks(lister);
	}
	lock(tasks);
	count_closed(tasks, lister);
	give_block(tasks, lister);
	has_one = take_free_block(tasks, lister);
	if (!has_one) {
		lister->next = tasks->parked;
		tasks->parked = lister;
		PIN_CHECK(tasks->active_count > 0);
		tasks->active_count--;
	}
	unlock(tasks, &after);
	return has_one ? MOVED : DRY;
}

static void end_task(struct tasks *tasks)
{
	struct after after = {.rings = false};

	lock(tasks);
	PIN_CHECK(tasks->active_count > 0);
	tasks->active_count--;
	unlock(tasks, &after);
}

/* Lists until the worker's turn is over, and is queued after others then. */
static int take_turn(struct pinion_task *task)
{
	struct lister *lister = PIN_CONTAINER_OF(task, struct lister, task);
	struct tasks *tasks = lister->tasks;
	enum progress progress;

	do {
		progress = step(lister);
		if (progress == FULL) {
			progress = renew_block(lister);
		}
	} while (progress == MOVED && !pinion_worker_should_yield(tasks->runtime));
	if (progress == MOVED) {
		if (pinion_task_respawn(tasks->runtime, task) == 0) {
			return 0;
		}
		retire(tasks, lister);
	} else if (progress == ENDED) {
		end_task(tasks);
	}
	leave_task(tasks);
	return 0;
}

static void cancel_turn(struct pinion_task *task)
{
	struct lister *lister = PIN_CONTAINER_OF(task, struct lister, task);
	struct tasks *tasks = lister->tasks;

	retire(tasks, lister);
	leave_task(tasks);
}

/* ---- the caller ---- */

/* Visits what a block holds, unless `rc` is set, and empties it. */
static int visit_block(struct tasks *tasks, struct pin_walk_block *block, int rc)
{
	const struct pin_walk *walk = tasks->walk;
	struct pin_directory *directory = NULL;
	size_t path_bytes = 0;

	for (size_t position = 0; position < block->used_bytes;) {
		const struct pin_walk_record *record =
			(const void *)((const char *)block->bytes + position);

		position += pin_round_up(sizeof(*record) + record->name_bytes, sizeof(uint64_t));
		if (record->kind == PIN_WALK_DIRECTORY) {
			pin_directory_release(walk, directory);
			memcpy(&directory, record->name, sizeof(directory));
			rc = rc == 0 && pin_walk_is_cancelled(walk) ? -ECANCELED : rc;
			rc = rc == 0 ? pin_walk_path_of(walk, &tasks->path, directory) : rc;
			path_bytes = directory->path_bytes;
			continue;
		}
		if (rc == 0 && record->name_bytes > 0) {
			rc = pin_walk_path_add(
				walk, &tasks->path, (const char *)record->name, record->name_bytes);
		}
		if (rc == 0) {
			rc = pin_walk_visit(walk, &tasks->path, (enum pinion_walk_kind)record->kind,
				record->error, record->mode);
			pin_walk_path_cut(&tasks->path, path_bytes);
		}
	}
	pin_directory_release(walk, directory);
	block->directory = NULL;
	block->used_bytes = 0;
	return rc;
}

enum duty {
	VISIT_BLOCK,
	LIST_DIRECTORY,
	SLEEP,
	FINISH,
};

/* Under the lock. */
static enum duty choose_duty(struct tasks *tasks)
{
	count_closed(tasks, &tasks->own);
	if (tasks->is_ending) {
		return FINISH;
	}
	if (tasks->ready_first != NULL) {
		return VISIT_BLOCK;
	}
	if (tasks->own.walker.listing != NULL || has_work(tasks)) {
		return LIST_DIRECTORY;
	}
	if (is_over(tasks)) {
		return FINISH;
	}
	tasks->caller_waits = true; /* [WALK-1] */
	return SLEEP;
}

static void visit_ready(struct tasks *tasks, struct pin_walk_block *block)
{
	struct after after = {.rings = false};
	int rc = visit_block(tasks, block, 0);

	lock(tasks);
	block->next = tasks->free_blocks;
	tasks->free_blocks = block;
	if (rc != 0) {
		begin_end(tasks, rc);
	}
	unpark(tasks, &after);
	unlock(tasks, &after);
}

/* Until the end; tasks may be active then, and are about to leave. */
static void serve(struct tasks *tasks)
{
	for (;;) {
		struct pin_walk_block *block = NULL;
		enum duty duty;

		lock(tasks);
		duty = choose_duty(tasks);
		if (duty == VISIT_BLOCK) {
			block = tasks->ready_first;
			tasks->ready_first = block->next;
			block->next = NULL;
		}
		pin_lock_release(&tasks->lock, tasks->walk->host);
		switch (duty) {
		case VISIT_BLOCK:
			visit_ready(tasks, block);
			break;
		case LIST_DIRECTORY:
			(void)step(&tasks->own);
			break;
		case SLEEP:
			(void)pinion_budget_acquire_wait(&tasks->bell, &one, UINT64_MAX);
			break;
		case FINISH:
			return;
		}
	}
}

/* ---- begin and end ---- */

static void lister_init(struct tasks *tasks, struct lister *lister)
{
	lister->tasks = tasks;
	lister->walker.walk = tasks->walk;
}

static int tasks_init(
	struct tasks *tasks, struct pin_walk *walk, const struct pin_walk_means *means)
{
	uint32_t worker_count = pinion_runtime_worker_count(means->runtime);
	uint64_t units;

	*tasks = (struct tasks){
		.walk = walk,
		.runtime = means->runtime,
		.lister_count =
			worker_count < PIN_WALK_TASKS_MAX ? worker_count : PIN_WALK_TASKS_MAX,
		.open_max =
			means->open_max > 0 ? means->open_max : pin_walk_directories(worker_count),
	};
	tasks->waiting_bytes_max =
		means->waiting_bytes_max > 0 ? means->waiting_bytes_max : WAITING_BYTES_MAX;
	tasks->block_bytes = means->block_bytes > 0 ? means->block_bytes : PIN_WALK_BLOCK_BYTES;
	PIN_CHECK(tasks->block_bytes >= PIN_WALK_BLOCK_BYTES_MIN);
	/* A task may be spawned again before it has left. */
	units = 2 * (uint64_t)tasks->lister_count;
	pinion_budget_init(&tasks->running, NULL, &units, 1);
	pinion_budget_init(&tasks->bell, NULL, &one, 1);
	(void)pinion_budget_try_acquire(&tasks->bell, &one);
	lister_init(tasks, &tasks->own);
	tasks->listers = pin_heap_zeroed(
		walk->host, PIN_CACHE_LINE, tasks->lister_count, sizeof(*tasks->listers));
	if (tasks->listers == NULL) {
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < tasks->lister_count; i++) {
		lister_init(tasks, &tasks->listers[i]);
		tasks->listers[i].walker.fills_blocks = true;
		tasks->listers[i].next = tasks->idle;
		tasks->idle = &tasks->listers[i];
	}
	return 0;
}

/* Frees a list of blocks, and what they hold. */
static void blocks_free(struct tasks *tasks, struct pin_walk_block *block)
{
	while (block != NULL) {
		struct pin_walk_block *next = block->next;

		(void)visit_block(tasks, block, -ECANCELED);
		block_free(tasks, block);
		block = next;
	}
}

/* Until no task touches the walk any more. */
static void await_tasks(struct tasks *tasks)
{
	uint64_t units = 2 * (uint64_t)tasks->lister_count;
	int rc = pinion_budget_acquire_wait(&tasks->running, &units, UINT64_MAX);

	PIN_CHECK(rc == 0);
}

static void tasks_fini(struct tasks *tasks)
{
	struct pin_walk *walk = tasks->walk;

	blocks_free(tasks, tasks->ready_first);
	blocks_free(tasks, tasks->free_blocks);
	for (uint32_t i = 0; tasks->listers != NULL && i < tasks->lister_count; i++) {
		blocks_free(tasks, tasks->listers[i].walker.block);
		pin_walker_fini(&tasks->listers[i].walker);
	}
	while (tasks->aside != NULL) {
		struct pin_listing *listing = tasks->aside;

		tasks->aside = listing->next;
		if (tasks->own.walker.listing != NULL) {
			pin_walker_close(&tasks->own.walker);
		}
		tasks->own.walker.listing = listing;
	}
	pin_walker_fini(&tasks->own.walker);
	while (tasks->returned != NULL) {
		struct pin_directory *directory = tasks->returned;

		tasks->returned = directory->next;
		pin_directory_release(walk, directory);
	}
	pin_walk_drop_names(walk);
	pin_walk_path_free(walk, &tasks->path);
	pin_heap_release(walk->host, tasks->listers, PIN_CACHE_LINE, tasks->lister_count,
		sizeof(*tasks->listers));
}

int pin_walk_by_tasks(
	struct pin_walk *walk, const struct pin_walk_means *means, struct pin_directory *root)
{
	struct tasks tasks;
	int rc = tasks_init(&tasks, walk, means);

	if (rc != 0) {
		pin_directory_release(walk, root);
		tasks_fini(&tasks);
		return rc;
	}
	tasks.open_count = 1;
	if (open_next(&tasks.own, root) != ENDED) {
		serve(&tasks);
	}
	await_tasks(&tasks);
	rc = tasks.rc;
	tasks_fini(&tasks);
	return rc;
}
