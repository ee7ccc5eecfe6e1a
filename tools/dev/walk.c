/* SPDX-License-Identifier: MIT */
/*
 * Reads a file block by block on one worker, and prints which functions the
 * last read enters and leaves: for tools/dev/walk, which builds it with
 * -finstrument-functions.
 *
 *   walk FILE >TRACE
 *
 * Lines: "> ADDRESS" enters, "< ADDRESS" leaves, "= NAME" begins a part.
 */
#include <pinion/pinion.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	/*
	 * The ring registers a file that it has read a few times, and every
	 * eighth read or so is timed.
	 */
	READS = 30,
	BLOCK_BYTES = 4096,
};

static struct pinion_runtime *runtime;
static struct pinion_file file;
static struct pinion_buffer buffer;
static struct pinion_request request;
static int read_count;
static _Thread_local bool is_tracing;

void __cyg_profile_func_enter(void *function, void *caller);
void __cyg_profile_func_exit(void *function, void *caller);

void __cyg_profile_func_enter(void *function, void *caller)
{
	(void)caller;
	if (is_tracing) {
		printf("> %p\n", function);
	}
}

void __cyg_profile_func_exit(void *function, void *caller)
{
	(void)caller;
	if (is_tracing) {
		printf("< %p\n", function);
	}
}

static void expect(const char *what, bool is_so)
{
	if (!is_so) {
		fprintf(stderr, "walk: %s\n", what);
		exit(1);
	}
}

static int read_next(struct pinion_task *task)
{
	bool is_last = read_count == READS - 1;

	(void)task;
	is_tracing = false;
	expect("a read was short", read_count == 0 || request.result == BLOCK_BYTES);
	if (read_count == READS) {
		pinion_buffer_release(runtime, &buffer);
		return 0;
	}
	if (read_count == 0) {
		expect("there is no buffer",
			pinion_buffer_acquire(runtime, BLOCK_BYTES, &buffer) == 0);
	}
	request.task.run = read_next;
	request.op = PINION_OP_READ;
	request.file = &file;
	request.bytes = buffer.bytes;
	request.length_bytes = BLOCK_BYTES;
	request.offset_bytes = (uint64_t)read_count * BLOCK_BYTES;
	read_count++;
	if (is_last) {
		printf("= submit\n");
		is_tracing = true;
	}
	expect("it was refused", pinion_request_submit(runtime, &request) == 0);
	if (is_last) {
		printf("= end\n");
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct pinion_config config;
	struct pinion_task task = {.run = read_next};

	expect("usage: walk FILE", argc == 2);
	pinion_config_init(&config);
	config.worker_count = 1;
	expect("no runtime", pinion_runtime_create(&config, &runtime) == 0);
	expect("no file", pinion_file_open(&file, argv[1], PINION_DIRECT_AUTO) == 0);
	expect("it was not spawned", pinion_task_spawn(runtime, &task) == 0);
	expect("a drain failed", pinion_runtime_drain(runtime) == 0);
	pinion_file_close(&file);
	return pinion_runtime_destroy(runtime) == 0 ? 0 : 1;
}
