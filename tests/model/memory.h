/* SPDX-License-Identifier: MIT */
/*
 * What threads of a case see of each other's atomic operations: the C11 memory
 * model as far as it can be had by running operations one at a time.
 *
 * Each location keeps its last few values. A load may return any of them that
 * C11 allows it to: none older than one the thread has seen, or knows of by
 * synchronisation (release to acquire), or must know of by seq_cst fences. Each
 * thread carries a view, a vector clock of what it knows; each value carries
 * its writer's view for those who acquire it. So a store that is released too
 * weakly, a fence left out, or a load before a store became visible (the store
 * buffer of x86 and more) all show as reads of old values.
 *
 *     operation            effect on views
 *     store, release half  the value gets the thread's view; relaxed: the view
 *                          at its last fence
 *     load, acquire half   joins the value's view; relaxed: at the next fence
 *     read-modify-write    reads the newest value, keeps the view released with
 *                          it, orders as named
 *     seq_cst fence        joins what all fences before it knew, and every
 *                          seq_cst write before it
 *
 * Not covered: a load that sees a store not yet executed (load buffering), and
 * two stores to one location that others see in another order than they ran. A
 * failed CAS reads the newest value.
 *
 * A location is a scheduling point only when threads share it and one of them
 * writes. That is learnt while exploring; when something new was learnt, the
 * search starts again.
 */
#ifndef MODEL_MEMORY_H
#define MODEL_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From RELEASE on, an order has a release half. */
enum model_order {
	MODEL_ORDER_RELAXED,
	MODEL_ORDER_ACQUIRE,
	MODEL_ORDER_RELEASE,
	MODEL_ORDER_ACQ_REL,
	MODEL_ORDER_SEQ_CST,
};

enum model_update { MODEL_EXCHANGE, MODEL_ADD, MODEL_SUB, MODEL_OR, MODEL_AND };

uint64_t model_load(const void *address, size_t bytes, enum model_order order, const char *site);
void model_store(
	void *address, size_t bytes, uint64_t value, enum model_order order, const char *site);
uint64_t model_update(void *address, size_t bytes, enum model_update update, uint64_t operand,
	enum model_order order, const char *site);
bool model_cas(void *address, size_t bytes, uint64_t *expected, uint64_t value,
	enum model_order order, const char *site);
void model_fence(const char *site);

/* ---- for the explorer ---- */

/* Keeps the state of this file out of snapshots; once, before all else. */
void memory_exclude(void);
void memory_begin(bool forgets_sharing);
/*
 * Adds what the execution knows to the snapshot that was begun, and takes it up
 * when that was restored. Of sharing nothing is forgotten.
 */
void memory_snapshot(void);
void memory_resume(void);
/* Whether sharing was learnt since the last call. */
bool memory_has_learnt(void);
void memory_thread_starts(uint32_t parent, uint32_t child);
void memory_thread_joins(uint32_t thread, uint32_t ended);
/* Every thread knows everything done so far. */
void memory_settle(uint32_t thread_count);

#endif
