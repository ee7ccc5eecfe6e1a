/* SPDX-License-Identifier: MIT */
/*
 * Goal: however many threads of whatever kind use a pool, a buffer has one user
 * at a time, who finds its own bytes in it; it is the same memory each time; in
 * the end all are back, and no mistake was reported. BP-21, BP-22, BP-24,
 * BP-26, BP-T4, BP-T6, W5, W6.
 * Method: 8 users of 10 000 operations each, or of STRESS_ITERATIONS: threads
 * with a cache, threads without, and workers. Each writes its mark into the
 * first line of a buffer, and finds it before it lets go; plainly, so that
 * ThreadSanitizer sees whether a release came before the next acquire. Three
 * games: each user keeps up to three and gives them back; buffers go through a
 * small queue and are given back by another; few buffers, and waits with
 * deadlines that are often over first. Then the same on two nodes that hwloc
 * makes up.
 */
#include "runtime/api/internal.h"
#include "tests/support/random.h"
#include "tests/support/users.h"

enum {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	ITERATIONS = 2000,
#else
	ITERATIONS = 10000,
#endif
	USERS = 8,
	WORKERS = 3,  /* of the users; */
	ATTACHED = 3, /* this number are attached, the rest is not */
	KEPT_MAX = 3,
	QUEUE_MAX = 8,
	TURN = 16,
	MANY = 16,
	FEW = 4,
	DEADLINE_NS_MAX = 100 * 1000,
	RUN_SECONDS = 110,
};

enum game {
	GAME_KEEP,
	GAME_PASS,
	GAME_WAIT,
};

struct user {
	struct pinion_task task;
	struct pinion_pool_wait wait;
	pthread_t thread;
	uint32_t number;
	struct random_source random;
	uint32_t left; /* operations */
	struct pinion_buffer kept[KEPT_MAX];
	uint64_t marks[KEPT_MAX];
	uint32_t kept_count;
	uint64_t mark;
	uint32_t served;
	uint32_t late;
};

static enum game game;
static struct pinion_runtime *runtime;
static struct pinion_pool *pool;
static struct user users[USERS];
static struct pin_atomic_u32 ended;
static struct pin_atomic_u32 faults;
static struct pin_atomic_u64 addresses[MANY];

/* Buffers on their way from hand to hand, with the marks in them. */
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static struct pinion_buffer queue[QUEUE_MAX];
static uint64_t queue_marks[QUEUE_MAX];
static uint32_t queue_count;

static void fault_if(const char *what, bool is_wrong)
{
	if (is_wrong && pin_fetch_add_acq_rel_u32(&faults, 1) < 8) {
		printf("%s\n", what);
	}
}

/* ---- one buffer ---- */

static void write_mark(struct user *user, const struct pinion_buffer *buffer)
{
	uint64_t *words = (uint64_t *)(void *)buffer->bytes;
	uint64_t known = 0;

	fault_if("an index beyond the last", buffer->index >= users_info(pool).buffer_count);
	if (!pin_cas_acq_rel_u64(&addresses[buffer->index], &known, (uintptr_t)buffer->bytes)) {
		fault_if("another address", known != (uintptr_t)buffer->bytes);
	}
	user->mark += USERS;
	for (int i = 0; i < 8; i++) {
		words[i] = user->mark;
	}
}

static void check_mark(const struct pinion_buffer *buffer, uint64_t mark)
{
	const uint64_t *words = (const uint64_t *)(void *)buffer->bytes;

	for (int i = 0; i < 8; i++) {
		fault_if("another thread wrote into it", words[i] != mark);
	}
}

static void give(struct pinion_buffer *buffer, uint64_t mark)
{
	check_mark(buffer, mark);
	fault_if("a release failed", pinion_pool_release(pool, buffer) != 0);
}

/* ---- the games ---- */

static void give_one_kept(struct user *user)
{
	uint32_t at = (uint32_t)random_below(&user->random, user->kept_count);

	give(&user->kept[at], user->marks[at]);
	user->kept_count--;
	user->kept[at] = user->kept[user->kept_count];
	user->marks[at] = user->marks[user->kept_count];
}

static bool take(struct user *user, struct pinion_buffer *out_buffer)
{
	int rc = pinion_pool_try_acquire(pool, out_buffer);

	fault_if("an odd result", rc != 0 && rc != -EAGAIN);
	if (rc != 0) {
		user->late++;
		sched_yield();
		return false;
	}
	user->served++;
	write_mark(user, out_buffer);
	return true;
}

static void play_keep(struct user *user)
{
	if (user->kept_count < KEPT_MAX && random_below(&user->random, 2) == 0) {
		if (take(user, &user->kept[user->kept_count])) {
			user->marks[user->kept_count] = user->mark;
			user->kept_count++;
		}
	} else if (user->kept_count > 0) {
		give_one_kept(user);
	}
}

/* Puts one in and takes another out, the oldest. */
static void play_pass(struct user *user)
{
	struct pinion_buffer buffer = {NULL, 0, 0};
	struct pinion_buffer passed = {NULL, 0, 0};
	uint64_t mark = 0;
	bool has_one = random_below(&user->random, 2) == 0 && take(user, &buffer);

	pthread_mutex_lock(&queue_lock);
	if (queue_count > 0) {
		passed = queue[0];
		mark = queue_marks[0];
		queue_count--;
		memmove(queue, queue + 1, queue_count * sizeof(queue[0]));
		memmove(queue_marks, queue_marks + 1, queue_count * sizeof(queue_marks[0]));
	}
	if (has_one && queue_count < QUEUE_MAX) {
		queue[queue_count] = buffer;
		queue_marks[queue_count] = user->mark;
		queue_count++;
		has_one = false;
	}
	pthread_mutex_unlock(&queue_lock);
	if (passed.bytes != NULL) {
		give(&passed, mark);
	}
	if (has_one) {
		give(&buffer, user->mark);
	}
}

static uint64_t random_deadline(struct user *user)
{
	switch (random_below(&user->random, 4)) {
	case 0:
		return UINT64_MAX;
	case 1:
		return 0;
	default:
		return pinion_clock_now_ns() + random_below(&user->random, DEADLINE_NS_MAX);
	}
}

static void end_wait(struct user *user, int result, struct pinion_buffer *buffer)
{
	fault_if("an odd end of a wait", result != 0 && result != -ETIME);
	if (result != 0) {
		user->late++;
		return;
	}
	user->served++;
	write_mark(user, buffer);
	if (random_below(&user->random, 4) == 0) {
		sched_yield();
	}
	give(buffer, user->mark);
}

static void play_wait(struct user *user)
{
	struct pinion_buffer buffer = {NULL, 0, 0};
	int rc = pinion_pool_acquire_wait(pool, random_deadline(user), &buffer);

	end_wait(user, rc, &buffer);
}

static void play(struct user *user)
{
	user->left--;
	if (random_below(&user->random, 16) == 0) {
		sched_yield(); /* with what it keeps */
	}
	switch (game) {
	case GAME_KEEP:
		play_keep(user);
		break;
	case GAME_PASS:
		play_pass(user);
		break;
	case GAME_WAIT:
		play_wait(user);
		break;
	}
}

static void end(struct user *user)
{
	while (user->kept_count > 0) {
		give_one_kept(user);
	}
	tasks_signal(&ended);
}

/* ---- the users ---- */

static void *run_thread(void *arg)
{
	struct user *user = arg;
	bool is_attached = user->number < WORKERS + ATTACHED;
	bool is_leaving = is_attached && user->number % 2 == 0;

	fault_if("attach", is_attached && pinion_pool_attach(pool) != 0);
	while (user->left > 0) {
		play(user);
		/* One of them comes and goes. */
		if (is_leaving && random_below(&user->random, 256) == 0) {
			fault_if("detach", pinion_pool_detach(pool) != 0);
			fault_if("attach again", pinion_pool_attach(pool) != 0);
		}
	}
	end(user);
	fault_if("detach at the end", is_attached && pinion_pool_detach(pool) != 0);
	return NULL;
}

static int run_worker(struct pinion_task *task)
{
	struct user *user = PIN_CONTAINER_OF(task, struct user, task);

	for (int i = 0; i < TURN && user->left > 0; i++) {
		play(user);
	}
	if (user->left > 0) {
		return pinion_task_respawn(runtime, task);
	}
	end(user);
	return 0;
}

static int begin_wait(struct user *user)
{
	user->left--;
	user->wait.wait.deadline_ns = random_deadline(user);
	return pinion_pool_acquire_async(runtime, pool, &user->wait);
}

static int run_over(struct pinion_task *task)
{
	struct user *user = PIN_CONTAINER_OF(task, struct user, wait.wait.task);

	end_wait(user, user->wait.wait.result, &user->wait.buffer);
	if (user->left > 0) {
		return begin_wait(user);
	}
	end(user);
	return 0;
}

static int run_waiting_worker(struct pinion_task *task)
{
	return begin_wait(PIN_CONTAINER_OF(task, struct user, task));
}

static void start(struct random_source *source, uint32_t number)
{
	struct user *user = &users[number];

	*user = (struct user){
		.task = {.run = game == GAME_WAIT ? run_waiting_worker : run_worker},
		.wait = {.wait = {.task = {.run = run_over}}},
		.number = number,
		.random = {random_next(source)},
		.left = tasks_iterations(ITERATIONS),
		.mark = number,
	};
	if (number < WORKERS) {
		expect_number("spawn", 0, pinion_task_spawn(runtime, &user->task));
		return;
	}
	expect_ready("thread", pthread_create(&user->thread, NULL, run_thread, user) == 0);
}

/*
 * BP-24: while the others play, the pool never counts all buffers as free when
 * one is out. How often it took one for that.
 */
static uint64_t look_meanwhile(uint32_t buffer_count)
{
	uint64_t looks = 0;

	while (pin_load_acquire_u32(&ended) < USERS) {
		struct pinion_buffer buffer;
		bool is_mine = pinion_pool_try_acquire(pool, &buffer) == 0;

		fault_if("more count as free than can be",
			users_free(pool) > buffer_count - is_mine);
		if (is_mine) {
			fault_if("release of one looked at",
				pinion_pool_release(pool, &buffer) != 0);
			looks++;
		}
		sched_yield();
	}
	return looks;
}

static void run_game(struct random_source *source, const char *name, uint32_t buffer_count)
{
	uint64_t served;
	uint64_t late = 0;
	uint32_t seen = 0;

	runtimes_watchdog(tasks_iterations(0) == 0 ? RUN_SECONDS : 0);
	runtime = users_runtime(WORKERS, 1 << 20);
	pool = users_pool(runtime, 0, 1 + (uint32_t)random_below(source, 4), buffer_count);
	if (getenv("HWLOC_SYNTHETIC") != NULL) {
		expect_number("nodes", 2, pool->pool.node_count);
	}
	memset(addresses, 0, sizeof(addresses));
	pin_store_release_u32(&ended, 0);
	for (uint32_t i = 0; i < USERS; i++) {
		start(source, i);
	}
	served = look_meanwhile(buffer_count);
	for (uint32_t i = WORKERS; i < USERS; i++) {
		pthread_join(users[i].thread, NULL);
	}
	while (queue_count > 0) {
		queue_count--;
		give(&queue[queue_count], queue_marks[queue_count]);
	}
	for (uint32_t i = 0; i < USERS; i++) {
		served += users[i].served;
		late += users[i].late;
	}
	for (uint32_t i = 0; i < MANY; i++) {
		seen += pin_load_acquire_u64(&addresses[i]) != 0;
	}
	printf("%s: %llu had a buffer, %llu had not, %u addresses\n", name,
		(unsigned long long)served, (unsigned long long)late, seen);
	expect_number("join", 0, pinion_runtime_join(runtime));
	expect_number("faults", 0, pin_load_acquire_u32(&faults));
	expect_true("no more addresses than buffers", seen <= buffer_count);
	expect_number(
		"acquires", (long long)served, (long long)pin_pool_count_acquires(&pool->pool));
	users_end(pool);
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	struct random_source source;
	uint64_t seed = random_begin(&source);

	game = GAME_KEEP;
	run_game(&source, "keep", MANY);
	run_game(&source, "keep, few", FEW);
	game = GAME_PASS;
	run_game(&source, "pass", MANY);
	game = GAME_WAIT;
	run_game(&source, "wait", FEW);
	/* hwloc's two nodes: buffers of the other one go home in batches. */
	setenv("HWLOC_SYNTHETIC", "node:2 core:2 pu:1", 1);
	game = GAME_KEEP;
	run_game(&source, "keep, two nodes", MANY);
	run_game(&source, "keep, few, two nodes", FEW);
	game = GAME_PASS;
	run_game(&source, "pass, two nodes", MANY);
	game = GAME_WAIT;
	run_game(&source, "wait, two nodes", FEW);
	if (expect_failure_count != 0) {
		printf("PINION_SEED=%llu failed, see above\n", (unsigned long long)seed);
	}
	return expect_status();
}
