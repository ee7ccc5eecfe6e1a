/* SPDX-License-Identifier: MIT */
/*
 * Goal: in an AddressSanitizer build a touch of a free buffer is reported, one
 * of a buffer in use is not, and a pool leaves no poison where it was. W8.
 * Method: children that read and write before, during and after.
 */
#include "tests/support/child.h"
#include "tests/support/users.h"

#include "runtime/memory/pool_internal.h"

#include <sys/mman.h>

#ifdef PIN_ASAN
enum touched {
	IN_USE,
	READ_FREE,
	WRITE_FREE,
	IN_FRONT_OF_FREE,
	NEVER_TAKEN,
	MEMORY_OF_POOL, /* that is no more */
};

static volatile uint8_t seen;

static int touch(void *arg)
{
	enum touched touched = *(enum touched *)arg;
	struct pinion_pool *pool = users_pool(NULL, 1, 2, 2);
	struct pinion_buffer buffer = users_take(pool);
	volatile uint8_t *bytes = buffer.bytes;
	uint8_t *first;

	first = buffer.bytes - 4096 - buffer.index * (size_t)8192;
	memset(buffer.bytes - 4096, 1, 8192);
	if (touched == NEVER_TAKEN) {
		seen = first[(1 - buffer.index) * (size_t)8192];
	}
	users_give(pool, &buffer);
	switch (touched) {
	case READ_FREE:
		seen = bytes[4095];
		break;
	case WRITE_FREE:
		bytes[0] = 1;
		break;
	case IN_FRONT_OF_FREE:
		bytes[-1] = 1;
		break;
	case IN_USE:
	case NEVER_TAKEN:
	case MEMORY_OF_POOL:
		break;
	}
	users_end(pool);
	if (touched == MEMORY_OF_POOL) {
		/* Later contents of that address do not matter. */
		uint8_t *memory = mmap(first, 4096, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

		expect_ready("mmap", memory == first);
		memory[0] = 1;
	}
	return expect_failure_count;
}

static void expect_report(const char *what, enum touched touched, bool is_reported)
{
	char output[4096];
	int status = child_run(touch, &touched, output, sizeof(output));

	expect_number(what, is_reported, strstr(output, "use-after-poison") != NULL);
	expect_number(what, is_reported, child_code(status) != 0);
}

int main(void)
{
	expect_report("in use", IN_USE, false);
	expect_report("a read of a free one", READ_FREE, true);
	expect_report("a write", WRITE_FREE, true);
	expect_report("in front of a free one", IN_FRONT_OF_FREE, true);
	expect_report("one never taken", NEVER_TAKEN, true);
	expect_report("where a pool was", MEMORY_OF_POOL, false);
	return expect_status();
}
#else
int main(void)
{
	printf("this is not an AddressSanitizer build\n");
	return EXPECT_SKIPPED;
}
#endif
