/* SPDX-License-Identifier: MIT */
/*
 * mimalloc: a block as large as a pool's buffer taken and given back.
 */
#include "tests/bench/peers/peer.h"

#include <mimalloc.h>

static double pool(int worker_count)
{
	uint64_t start_ns = peer_now_ns();

	(void)worker_count;
	for (int i = 0; i < PEER_POOL_PAIRS; i++) {
		void *volatile bytes = mi_malloc(PEER_POOL_BYTES);

		peer_check(bytes != NULL, "no memory");
		mi_free(bytes);
	}
	return (double)(peer_now_ns() - start_ns) / PEER_POOL_PAIRS;
}

int main(int argc, char **argv)
{
	static const struct peer_subject subjects[] = {
		{"pool", pool, "ns"},
		{"pool_malloc", pool, "ns"},
		{NULL, NULL, NULL},
	};
	char name[64];
	int version = mi_version();

	snprintf(name, sizeof(name), "mimalloc %d.%d.%d", version / 100, version / 10 % 10,
		version % 10);
	return peer_main(argc, argv, name, subjects);
}
