/* SPDX-License-Identifier: MIT */
/*
 * Goal: a read that its deadline has ended is made again where some of its
 * bytes have come, or another read of the file has ended meanwhile; otherwise
 * the file fails with -ETIME. It continues after the bytes that came, of a
 * direct file after the whole pages that came. The next window of the track
 * starts at its own first byte.
 * Method: a track and a reader made by hand, in a task, whose reads have ended
 * as the table says.
 */
#include "runtime/scan/file_reader.h"
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include <errno.h>

enum {
	LIMIT_SECONDS = 60,
	WINDOW = 64 << 10,
};

struct read_case {
	const char *name;
	bool is_direct;
	bool has_timeout;
	uint32_t came; /* bytes, before the deadline */
	uint32_t others_ended;
	enum pin_track_state state;
	uint32_t done_bytes;
};

static struct pin_atomic_u32 is_cancelled;
static struct pin_atomic_u32 has_run;
static struct pinion_file file;
static struct pin_reader reader;
static struct pin_track track;

static void begin_case(const struct read_case *read)
{
	file = (struct pinion_file){.fd = -1, .is_direct = read->is_direct};
	reader = (struct pin_reader){
		.file = &file,
		.timeout_ns = read->has_timeout ? 1000 : 0,
		.is_cancelled = &is_cancelled,
		.plan = {.fd = -1,
			.size_bytes = (uint64_t)2 * WINDOW,
			.window_bytes = WINDOW,
			.align_bytes = 1},
	};
	track = (struct pin_track){.reader = &reader, .state = PIN_TRACK_IDLE};
	expect_true("claim", pin_track_claim(&track));
}

/* As the worker does when a request of the track has ended. */
static void end_read(int64_t result, uint64_t came)
{
	track.state = PIN_TRACK_READING;
	track.request.op = PINION_OP_READ;
	track.request.result = result;
	track.request.done_bytes = came;
	pin_track_end_read(&track);
}

static void check_deadlines(void)
{
	static const struct read_case cases[] = {
		{"nothing came", false, true, 0, 0, PIN_TRACK_READ, 0},
		{"others ended", false, true, 0, 1, PIN_TRACK_BUFFERED, 0},
		{"no timeout", false, false, 0, 1, PIN_TRACK_READ, 0},
		{"one byte", false, true, 1, 0, PIN_TRACK_BUFFERED, 1},
		{"some", false, true, 5000, 0, PIN_TRACK_BUFFERED, 5000},
		{"direct, some", true, true, 5000, 0, PIN_TRACK_BUFFERED, 4096},
		{"direct, less than a page", true, true, 4095, 0, PIN_TRACK_READ, 0},
	};

	for (size_t i = 0; i < PIN_ARRAY_COUNT(cases); i++) {
		const struct read_case *read = &cases[i];

		begin_case(read);
		track.limit_ns = 1;
		track.ended_before = pin_load_relaxed_u32(&reader.ended_reads);
		pin_store_relaxed_u32(&reader.ended_reads, read->others_ended);
		end_read(-ETIME, read->came);
		expect_number(read->name, read->state, track.state);
		expect_number(read->name, read->done_bytes, track.done_bytes);
		if (read->state == PIN_TRACK_READ) {
			expect_number(read->name, -ETIME, track.result);
		} else {
			expect_number(read->name, 0, (long long)track.limit_ns);
		}
	}
}

/* The rest comes: the window is whole, and the next one starts anew. */
static void check_next_window(void)
{
	static const struct read_case some = {"", false, true, 5000, 0, PIN_TRACK_BUFFERED, 5000};

	begin_case(&some);
	end_read(-ETIME, some.came);
	end_read(WINDOW - 5000, WINDOW - 5000);
	expect_number("the rest", PIN_TRACK_READ, track.state);
	expect_number("in all", WINDOW, track.result);
	expect_number("it is counted", 1, pin_load_relaxed_u32(&reader.ended_reads));
	track.state = PIN_TRACK_IDLE;
	expect_true("next", pin_track_claim(&track));
	expect_number("its start", WINDOW, (long long)track.claim.start);
	expect_number("nothing of it came", 0, track.done_bytes);
}

static int check(struct pinion_task *task)
{
	(void)task;
	check_deadlines();
	check_next_window();
	tasks_signal(&has_run);
	return 0;
}

int main(void)
{
	struct pinion_runtime *runtime;
	struct pinion_task task = {.run = check};

	runtimes_watchdog(LIMIT_SECONDS);
	runtime = runtimes_start(1, PINION_IO_FALLBACK);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	tasks_await(&has_run, 1);
	pinion_runtime_destroy(runtime);
	return expect_status();
}
