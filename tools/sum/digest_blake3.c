/* SPDX-License-Identifier: MIT */
/*
 * BLAKE3 by its authors' C code, a file in order or in parts.
 *
 * Invariants of a tree, under its lock: (1) nodes are sorted by their first
 * chunk and do not overlap. (2) Two neighbours that are the halves of a larger
 * subtree are there only if that starts at chunk 0. (3) The chunk that is not
 * full has the end of the file, and is no node.
 */
#include "tools/sum/digest_blake3.h"

#if defined(HAVE_BLAKE3)
#include <blake3.h>
#if defined(HAVE_BLAKE3_SOURCE)
#include <blake3_impl.h>
#endif
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
	VALUE_BYTES = BLAKE3_OUT_LEN,
	CHUNK_BYTES = BLAKE3_CHUNK_LEN,
	/* For 64 windows in flight; it doubles. */
	FIRST_CAPACITY = 64,
	PAGE_CHUNKS = 4,
};

/* The chaining value of a subtree: 2^level chunks from `chunk` on. */
struct node {
	uint64_t chunk;
	uint32_t level;
	uint8_t value[VALUE_BYTES];
};

struct tree {
	pthread_mutex_t lock; /* of what follows */
	struct node *nodes;
	size_t count;
	size_t capacity;
	bool has_start; /* `start` is the digest of the first chunk alone */
	bool has_tail;	/* `tail` is the chunk that is not full */
	uint8_t start[VALUE_BYTES];
	blake3_chunk_state tail;
};

struct blake3_state {
	bool is_tree; /* under the lock: some part has come */
	struct tree tree;
	blake3_hasher hasher; /* of digest_blake3_update() */
};

_Static_assert(sizeof(struct blake3_state) <= DIGEST_STATE_BYTES, "the state fits");

static struct blake3_state *blake3_state(struct digest_state *state)
{
	return (struct blake3_state *)(void *)state->bytes;
}

/* ---- nodes ---- */

void digest_blake3_parent(const uint8_t *left, const uint8_t *right, uint8_t *out_value)
{
	static const uint8_t zeros[CHUNK_BYTES + 1];
	blake3_hasher hasher;

	/* As after two chunks: a third makes it combine them. */
	blake3_hasher_init(&hasher);
	memcpy(hasher.cv_stack, left, VALUE_BYTES);
	memcpy(hasher.cv_stack + VALUE_BYTES, right, VALUE_BYTES);
	hasher.cv_stack_len = 2;
	hasher.chunk.chunk_counter = 2;
	blake3_hasher_update(&hasher, zeros, sizeof(zeros));
	memcpy(out_value, hasher.cv_stack, VALUE_BYTES);
}

static void parent_of(const uint8_t *left, const uint8_t *right, uint8_t *out_value)
{
#if defined(HAVE_BLAKE3_SOURCE)
	uint8_t block[BLAKE3_BLOCK_LEN];
	uint32_t words[VALUE_BYTES / sizeof(uint32_t)];

	memcpy(block, left, VALUE_BYTES);
	memcpy(block + VALUE_BYTES, right, VALUE_BYTES);
	memcpy(words, IV, sizeof(words));
	blake3_compress_in_place(words, block, BLAKE3_BLOCK_LEN, 0, PARENT);
	store_cv_words(out_value, words);
#else
	digest_blake3_parent(left, right, out_value);
#endif
}

/* A hasher that is about to hash the chunk of that index. */
static void begin_at(blake3_hasher *hasher, uint64_t chunk)
{
	blake3_hasher_init(hasher);
	hasher->chunk.chunk_counter = chunk;
}

static uint64_t chunk_count(const struct node *node)
{
	return UINT64_C(1) << node->level;
}

/* Whether two nodes are the halves of a subtree that is not the root. */
static bool are_halves(const struct node *left, const struct node *right)
{
	return left->level == right->level && left->chunk + chunk_count(left) == right->chunk &&
		left->chunk % (2 * chunk_count(left)) == 0 && left->chunk > 0;
}

/* Combines nodes[index] and its right neighbour, again and again (2). */
static void combine_from(struct tree *tree, size_t index)
{
	for (;;) {
		struct node *node = &tree->nodes[index];

		if (index > 0 && are_halves(node - 1, node)) {
			index--;
			node--;
		} else if (index + 1 == tree->count || !are_halves(node, node + 1)) {
			return;
		}
		parent_of(node[0].value, node[1].value, node[0].value);
		node->level++;
		tree->count--;
		memmove(node + 1, node + 2, (tree->count - index - 1) * sizeof(*node));
	}
}

static int insert(struct tree *tree, const struct node *node)
{
	size_t index = tree->count;

	if (tree->count == tree->capacity) {
		size_t capacity = tree->capacity == 0 ? FIRST_CAPACITY : 2 * tree->capacity;
		struct node *nodes = realloc(tree->nodes, capacity * sizeof(*nodes));

		if (nodes == NULL) {
			return -ENOMEM;
		}
		tree->nodes = nodes;
		tree->capacity = capacity;
	}
	/* Most come nearly in order. */
	while (index > 0 && tree->nodes[index - 1].chunk > node->chunk) {
		index--;
	}
	memmove(&tree->nodes[index + 1], &tree->nodes[index],
		(tree->count - index) * sizeof(*tree->nodes));
	tree->nodes[index] = *node;
	tree->count++;
	combine_from(tree, index);
	return 0;
}

/* ---- parts ---- */

/* Hashes one chunk, of index 0 also as the whole file that it may be. */
static int add_chunk(
	struct blake3_state *state, const uint8_t *bytes, size_t length, uint64_t chunk)
{
	struct node node = {.chunk = chunk};
	struct tree *tree = &state->tree;
	blake3_hasher hasher;
	uint8_t start[VALUE_BYTES];
	int error = 0;

	begin_at(&hasher, chunk);
	blake3_hasher_update(&hasher, bytes, length);
	blake3_hasher_finalize(&hasher, start, sizeof(start));
	pthread_mutex_lock(&tree->lock);
	state->is_tree = true;
	if (chunk == 0) {
		memcpy(tree->start, start, sizeof(start));
		tree->has_start = true;
	}
	if (length < CHUNK_BYTES) {
		error = tree->has_tail ? -EINVAL : 0;
		tree->tail = hasher.chunk;
		tree->has_tail = true;
	} else {
		/* One byte more shows that the chunk is not the last. */
		blake3_hasher_update(&hasher, bytes, 1);
		memcpy(node.value, hasher.cv_stack, sizeof(node.value));
		error = insert(tree, &node);
	}
	pthread_mutex_unlock(&tree->lock);
	return error;
}

/* Hashes a subtree of 2^level chunks, at least two. */
static int add_subtree(
	struct blake3_state *state, const uint8_t *bytes, uint32_t level, uint64_t chunk)
{
	struct node left = {.chunk = chunk, .level = level - 1};
	struct node right = {.chunk = chunk + chunk_count(&left), .level = level - 1};
	struct tree *tree = &state->tree;
	blake3_hasher hasher;
	int error;

	begin_at(&hasher, chunk);
	blake3_hasher_update(&hasher, bytes, (size_t)CHUNK_BYTES << level);
	memcpy(left.value, hasher.cv_stack, sizeof(left.value));
	memcpy(right.value, hasher.cv_stack + VALUE_BYTES, sizeof(right.value));
	if (chunk > 0) {
		parent_of(left.value, right.value, left.value);
		left.level = level;
	}
	pthread_mutex_lock(&tree->lock);
	state->is_tree = true;
	error = insert(tree, &left);
	if (error == 0 && chunk == 0) {
		error = insert(tree, &right);
	}
	pthread_mutex_unlock(&tree->lock);
	return error;
}

/* The largest subtree that starts at `chunk` and has at most that many. */
static uint32_t level_at(uint64_t chunk, uint64_t count)
{
	uint32_t level = 63 - (uint32_t)__builtin_clzll(count);
	uint32_t aligned = chunk == 0 ? level : (uint32_t)__builtin_ctzll(chunk);

	return level < aligned ? level : aligned;
}

int digest_blake3_part(
	struct digest_state *state, const void *bytes, size_t length, uint64_t offset)
{
	const uint8_t *next = bytes;
	uint64_t chunk = offset / CHUNK_BYTES;
	int error = offset % CHUNK_BYTES == 0 ? 0 : -EINVAL;

	while (error == 0 && length >= CHUNK_BYTES) {
		uint32_t level = level_at(chunk, length / CHUNK_BYTES);

		if (level == 0) {
			error = add_chunk(blake3_state(state), next, CHUNK_BYTES, chunk);
		} else {
			error = add_subtree(blake3_state(state), next, level, chunk);
		}
		next += (size_t)CHUNK_BYTES << level;
		length -= (size_t)CHUNK_BYTES << level;
		chunk += UINT64_C(1) << level;
	}
	if (error == 0 && length > 0) {
		error = add_chunk(blake3_state(state), next, length, chunk);
	}
	return error;
}

/* ---- the root ---- */

/* The nodes of a file from its start on, as blake3_hasher keeps them. */
struct stack {
	blake3_hasher hasher;
	uint32_t levels[BLAKE3_MAX_DEPTH + 1];
};

static uint8_t *stack_top(struct stack *stack, uint32_t below)
{
	return stack->hasher.cv_stack + (stack->hasher.cv_stack_len - 1 - below) * VALUE_BYTES;
}

/* More follows: the nodes at hand do not have the root. */
static void stack_combine(struct stack *stack)
{
	while (stack->hasher.cv_stack_len > 1) {
		uint32_t *top = &stack->levels[stack->hasher.cv_stack_len - 1];

		if (top[0] != top[-1]) {
			return;
		}
		parent_of(stack_top(stack, 1), stack_top(stack, 0), stack_top(stack, 1));
		top[-1]++;
		stack->hasher.cv_stack_len--;
	}
}

/* False: a part is missing, or was given twice. */
static bool stack_nodes(struct stack *stack, const struct tree *tree)
{
	uint64_t chunk = 0;

	for (size_t i = 0; i < tree->count; i++) {
		const struct node *node = &tree->nodes[i];

		if (node->chunk != chunk || node->level > BLAKE3_MAX_DEPTH) {
			return false;
		}
		stack_combine(stack);
		stack->levels[stack->hasher.cv_stack_len++] = node->level;
		memcpy(stack_top(stack, 0), node->value, VALUE_BYTES);
		chunk += chunk_count(node);
	}
	stack->hasher.chunk.chunk_counter = chunk;
	if (tree->has_tail) {
		stack_combine(stack);
		stack->hasher.chunk = tree->tail;
	}
	return stack->hasher.chunk.chunk_counter == chunk;
}

static int tree_root(const struct tree *tree, uint8_t *digest)
{
	struct stack stack = {0};

	blake3_hasher_init(&stack.hasher);
	if (!stack_nodes(&stack, tree)) {
		return -EINVAL;
	}
	/* One chunk is hashed as the root and not as a node. */
	if (stack.hasher.cv_stack_len + tree->has_tail == 1) {
		memcpy(digest, tree->start, sizeof(tree->start));
		return tree->has_start ? 0 : -EINVAL;
	}
	blake3_hasher_finalize(&stack.hasher, digest, VALUE_BYTES);
	return 0;
}

/* ---- the table's functions ---- */

int digest_blake3_init(struct digest_state *state)
{
	blake3_hasher_init(&blake3_state(state)->hasher);
	return -pthread_mutex_init(&blake3_state(state)->tree.lock, NULL);
}

int digest_blake3_update(struct digest_state *state, const void *bytes, size_t length)
{
	blake3_hasher_update(&blake3_state(state)->hasher, bytes, length);
	return 0;
}

void digest_blake3_discard(struct digest_state *state)
{
	struct tree *tree = &blake3_state(state)->tree;

	pthread_mutex_destroy(&tree->lock);
	free(tree->nodes);
	tree->nodes = NULL;
}

int digest_blake3_final(struct digest_state *state, uint8_t *digest)
{
	struct blake3_state *blake3 = blake3_state(state);
	int error = 0;

	if (blake3->is_tree) {
		error = tree_root(&blake3->tree, digest);
	} else {
		blake3_hasher_finalize(&blake3->hasher, digest, VALUE_BYTES);
	}
	digest_blake3_discard(state);
	return error;
}

/* ---- a part of a file ---- */

/* A node, as bytes; its place follows from those before it. */
struct saved_node {
	uint64_t level;
	uint8_t value[VALUE_BYTES];
};

bool digest_blake3_save(struct digest_state *state, struct output_text *out, uint64_t *end)
{
	struct tree *tree = &blake3_state(state)->tree;
	uint64_t chunk = 0;

	pthread_mutex_lock(&tree->lock);
	for (size_t i = 0; i < tree->count && tree->nodes[i].chunk == chunk; i++) {
		struct saved_node node = {.level = tree->nodes[i].level};

		memcpy(node.value, tree->nodes[i].value, VALUE_BYTES);
		output_text_append(out, &node, sizeof(node));
		chunk += chunk_count(&tree->nodes[i]);
	}
	pthread_mutex_unlock(&tree->lock);
	*end = chunk * CHUNK_BYTES;
	return chunk > 0 && chunk % PAGE_CHUNKS == 0 && !out->failed;
}

bool digest_blake3_load(struct digest_state *state, const void *bytes, size_t length, uint64_t end)
{
	struct blake3_state *blake3 = blake3_state(state);
	uint64_t chunk = 0;

	for (size_t at = 0; at < length; at += sizeof(struct saved_node)) {
		struct saved_node saved;
		struct node node = {.chunk = chunk};

		if (length - at < sizeof(saved)) {
			return false;
		}
		memcpy(&saved, (const uint8_t *)bytes + at, sizeof(saved));
		if (saved.level > BLAKE3_MAX_DEPTH) {
			return false;
		}
		node.level = (uint32_t)saved.level;
		memcpy(node.value, saved.value, VALUE_BYTES);
		if (insert(&blake3->tree, &node) != 0) {
			return false;
		}
		chunk += chunk_count(&node);
	}
	blake3->is_tree = true;
	return chunk > 0 && chunk * CHUNK_BYTES == end;
}

const char *digest_blake3_version(void)
{
	return blake3_version();
}
#endif
