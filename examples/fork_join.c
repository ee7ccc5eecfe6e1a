/* SPDX-License-Identifier: MIT-0 */
/*
 * Shows: a tree of tasks, each of which spawns two children and continues when
 * both are done, and the speed-up of several workers over one.
 *
 * Try:   examples/fork_join 4
 *
 * No thread blocks for a result. A task that has spawned its children returns;
 * whichever child is the last to finish goes on with the parent, on the worker
 * it is on. The sums are Fibonacci numbers: nearly no work, so this is what
 * tasks cost.
 */
#include <pinion/pinion.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 25, NODES = 242785 /* 2 fib(N + 1) - 1 */, ROUNDS = 5, CACHE_LINE = 64 };

struct node {
	_Alignas(CACHE_LINE) struct pinion_task task; /* first, so that it leads back here */
	struct node *parent;
	uint32_t n;
	uint32_t children_left; /* atomic */
	uint64_t sum;
};

/*
 * A node precedes its left subtree, which precedes the right one: all places
 * are known beforehand, and nothing is allocated on the way.
 */
static struct node nodes[NODES];
static size_t node_counts[N + 1]; /* of the trees of fib(n) */
static struct pinion_runtime *runtime;
static uint64_t began_ns;
static uint64_t best_ns;
static int rounds;

static int end_round(void)
{
	uint64_t took_ns = pinion_clock_now_ns() - began_ns;

	best_ns = best_ns == 0 || took_ns < best_ns ? took_ns : best_ns;
	return ++rounds < ROUNDS ? pinion_task_spawn(runtime, &nodes[0].task) : 0;
}

/* Goes up for as long as this side is the last one. */
static int finish(struct node *node)
{
	struct node *parent = node->parent;

	while (parent != NULL) {
		/* Releases this sum and acquires the other child's. */
		if (__atomic_sub_fetch(&parent->children_left, 1, __ATOMIC_ACQ_REL) != 0) {
			return 0;
		}
		parent->sum = parent[1].sum + parent[1 + node_counts[parent->n - 1]].sum;
		parent = parent->parent;
	}
	return end_round();
}

static int run_node(struct pinion_task *task)
{
	struct node *node = (void *)task;
	struct node *left = node + 1;
	struct node *right = left + (node->n < 2 ? 0 : node_counts[node->n - 1]);
	int rc;

	if (node == nodes) {
		began_ns = pinion_clock_now_ns();
	}
	if (node->n < 2) {
		node->sum = node->n;
		return finish(node);
	}
	node->children_left = 2;
	*left = (struct node){.task.run = run_node, .parent = node, .n = node->n - 1};
	*right = (struct node){.task.run = run_node, .parent = node, .n = node->n - 2};
	/*
	 * The owner runs the task it spawned last; a thief may take the other.
	 */
	rc = pinion_task_spawn(runtime, &right->task);
	return rc < 0 ? rc : pinion_task_spawn(runtime, &left->task);
}

/* Prints a line; returns the best round's time, 0 on failure. */
static uint64_t measure(uint32_t worker_count, uint64_t alone_ns)
{
	struct pinion_config config;
	struct pinion_tuning tuning;
	struct pinion_runtime_stats counters;
	int rc;

	pinion_config_init(&config);
	config.worker_count = worker_count;
	/* Depth first: the queues stay as short as the tree is high. */
	pinion_tuning_init(&tuning);
	tuning.queue_order = PINION_QUEUE_LIFO;
	config.tuning = &tuning;
	rc = pinion_runtime_create(&config, &runtime);
	if (rc < 0) {
		fprintf(stderr, "fork_join: cannot start: %s\n", strerror(-rc));
		return 0;
	}
	worker_count = pinion_runtime_worker_count(runtime);
	nodes[0] = (struct node){.task.run = run_node, .n = N};
	rounds = 0;
	best_ns = 0;
	rc = pinion_task_spawn(runtime, &nodes[0].task);
	rc = rc < 0 ? rc : pinion_runtime_join(runtime);
	pinion_runtime_get_stats(runtime, &counters, sizeof(counters));
	pinion_runtime_destroy(runtime);
	if (rc < 0 || counters.tasks_run != (uint64_t)ROUNDS * NODES) {
		fprintf(stderr, "fork_join: %s\n", rc < 0 ? strerror(-rc) : "a task is missing");
		return 0;
	}
	printf("%7u workers: fib(%d) = %llu, %6.2f million tasks/s, %5.2f times one, %llu steals\n",
		worker_count, N, (unsigned long long)nodes[0].sum,
		(double)NODES * 1e3 / (double)best_ns,
		alone_ns == 0 ? 1.0 : (double)alone_ns / (double)best_ns,
		(unsigned long long)counters.steals);
	return best_ns;
}

int main(int argc, char **argv)
{
	uint64_t alone_ns;
	uint32_t worker_count = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;

	if (argc > 1 && strcmp(argv[1], "--help") == 0) {
		puts("usage: fork_join [WORKERS]");
		return 0;
	}
	for (uint32_t n = 0; n <= N; n++) {
		node_counts[n] = n < 2 ? 1 : 1 + node_counts[n - 1] + node_counts[n - 2];
	}
	alone_ns = measure(1, 0);
	return alone_ns == 0 || measure(worker_count, alone_ns) == 0;
}
