/* SPDX-License-Identifier: MIT */
/*
 * Atomic operations in the simulated world: the plain operation, and a point
 * before it where another thread may go on. It uses the same seam as the
 * explorer's memory model, tests/model/atomic_model.h.
 */
#include "tests/model/memory.h"
#include "tests/sim/world.h"

static uint64_t get(const void *address, size_t bytes)
{
	return bytes == sizeof(uint32_t) ? *(const uint32_t *)address : *(const uint64_t *)address;
}

static void set(void *address, size_t bytes, uint64_t value)
{
	if (bytes == sizeof(uint32_t)) {
		*(uint32_t *)address = (uint32_t)value;
	} else {
		*(uint64_t *)address = value;
	}
}

uint64_t model_load(const void *address, size_t bytes, enum model_order order, const char *site)
{
	(void)order;
	(void)site;
	world_touch();
	return get(address, bytes);
}

void model_store(
	void *address, size_t bytes, uint64_t value, enum model_order order, const char *site)
{
	(void)order;
	(void)site;
	world_touch();
	set(address, bytes, value);
}

static uint64_t updated(uint64_t value, enum model_update update, uint64_t operand)
{
	switch (update) {
	case MODEL_ADD:
		return value + operand;
	case MODEL_SUB:
		return value - operand;
	case MODEL_OR:
		return value | operand;
	case MODEL_AND:
		return value & operand;
	case MODEL_EXCHANGE:
		break;
	}
	return operand;
}

uint64_t model_update(void *address, size_t bytes, enum model_update update, uint64_t operand,
	enum model_order order, const char *site)
{
	uint64_t before;

	(void)order;
	(void)site;
	world_touch();
	before = get(address, bytes);
	set(address, bytes, updated(before, update, operand));
	return before;
}

bool model_cas(void *address, size_t bytes, uint64_t *expected, uint64_t value,
	enum model_order order, const char *site)
{
	uint64_t before;

	(void)order;
	(void)site;
	world_touch();
	before = get(address, bytes);
	if (before != *expected) {
		*expected = before;
		return false;
	}
	set(address, bytes, value);
	return true;
}

void model_fence(const char *site)
{
	(void)site;
	world_touch();
}
