/* SPDX-License-Identifier: MIT */
/*
 * The short ways of runtime/memory/pool.h, compiled where mutants can spoil
 * them.
 */
#ifndef MODEL_POOL_MODEL_H
#define MODEL_POOL_MODEL_H

#include "runtime/memory/pool.h"

bool pool_model_acquire_shortly(struct pin_pool *pool, uint32_t magazine,
	const struct pin_pool_listed *own, struct pinion_buffer *out_buffer);
bool pool_model_release_shortly(struct pin_pool *pool, uint32_t magazine,
	const struct pinion_buffer *buffer, struct pin_pool_listed *out_own);

enum pin_pool_borrowed pool_model_borrow(struct pin_entry *entry, uint32_t magazine);
bool pool_model_borrow_own(struct pin_pool *pool, uint32_t magazine, struct pin_entry *entry);

#endif
