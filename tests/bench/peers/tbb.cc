// SPDX-License-Identifier: MIT
//
// oneTBB: task groups in an arena of as many threads as workers, and
// task_arena::enqueue() from a thread that is not in it.
#include "tests/bench/peers/peer.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>
#include <oneapi/tbb/version.h>

namespace {

using namespace oneapi;

uint32_t run_count;

double spawn(int)
{
	static tbb::task_arena arena(1);
	double figure = 0;

	run_count = 0;
	arena.execute([&figure] {
		uint64_t start_ns = peer_now_ns();

		for (int i = 0; i < PEER_SPAWN_TASKS; i += PEER_SPAWN_BATCH) {
			tbb::task_group group;

			for (int task = 0; task < PEER_SPAWN_BATCH; task++) {
				group.run([] { run_count++; });
			}
			group.wait();
		}
		figure = static_cast<double>(peer_now_ns() - start_ns) / PEER_SPAWN_TASKS;
	});
	peer_check(run_count == PEER_SPAWN_TASKS, "tasks were lost");
	return figure;
}

// No slot is kept for the threads outside, so an enqueued task runs on one of
// the library's own.
tbb::task_arena &outside_arena()
{
	static tbb::task_arena arena(1, 0);
	return arena;
}

peer_burst burst;

void push_open()
{
	outside_arena().enqueue([] { peer_burst_open(&burst); });
}

void push_tasks()
{
	for (int i = 0; i < PEER_INJECT_STRIDE; i++) {
		outside_arena().enqueue([] { peer_burst_task(&burst); });
	}
}

double inject(int)
{
	return peer_burst_run(&burst, push_open, push_tasks);
}

double inject_burst(int)
{
	return peer_storm_run(
		&burst, [] { outside_arena().enqueue([] { peer_storm_task(&burst); }); });
}

// There is no call that enqueues many: one task brings the others.
void push_batch()
{
	outside_arena().enqueue([] {
		tbb::task_group group;

		for (int i = 0; i < PEER_BATCH; i++) {
			group.run([] { peer_burst_task(&burst); });
		}
		group.wait();
	});
}

double batch(int)
{
	return peer_burst_run(&burst, push_open, push_batch);
}

struct alignas(128) counter {
	uint32_t count;
};

// As spawn, in an arena of two: each thread steals the tasks in the other's
// queue.
double steal_spawn(int)
{
	static tbb::task_arena arena(PEER_STEAL_WORKERS);
	static counter counts[PEER_STEAL_WORKERS];
	double figure = 0;

	counts[0].count = 0;
	counts[1].count = 0;
	arena.execute([&figure] {
		uint64_t start_ns = peer_now_ns();
		tbb::task_group group;

		for (int i = 0; i < PEER_STEAL_TASKS; i++) {
			group.run([] { counts[tbb::this_task_arena::current_thread_index()].count++; });
		}
		group.wait();
		figure = static_cast<double>(peer_now_ns() - start_ns) / PEER_STEAL_TASKS;
	});
	peer_check(counts[0].count + counts[1].count == PEER_STEAL_TASKS, "tasks were lost");
	return figure;
}

// As `lone` has it: both the child and its parent take that long.
constexpr uint64_t lone_ns = 500 * 1000;
constexpr uint64_t stream_step_ns = 3000;
constexpr int stream_tasks = 8192;

void work_until(uint64_t end_ns)
{
	while (peer_now_ns() < end_ns) {
	}
}

tbb::task_arena &rested_arena()
{
	static tbb::task_arena arena(2);
	struct timespec duration = {0, 1000 * 1000};

	nanosleep(&duration, nullptr);
	return arena;
}

double lone(int)
{
	double figure = 0;

	rested_arena().execute([&figure] {
		uint64_t start_ns = peer_now_ns();
		tbb::task_group group;

		group.run([] { work_until(peer_now_ns() + lone_ns); });
		work_until(start_ns + lone_ns);
		group.wait();
		figure = static_cast<double>(peer_now_ns() - start_ns);
	});
	return figure;
}

double lone_stream(int)
{
	static uint64_t stolen_ns;
	double figure = 0;

	__atomic_store_n(&stolen_ns, 0, __ATOMIC_RELAXED);
	rested_arena().execute([&figure] {
		int own = tbb::this_task_arena::current_thread_index();
		uint64_t start_ns = peer_now_ns();
		uint64_t next_ns = start_ns;
		tbb::task_group group;

		for (int i = 0; i < stream_tasks &&
			__atomic_load_n(&stolen_ns, __ATOMIC_ACQUIRE) == 0;
			i++) {
			group.run([own] {
				uint64_t none = 0;

				if (tbb::this_task_arena::current_thread_index() != own) {
					__atomic_compare_exchange_n(&stolen_ns, &none,
						peer_now_ns(), false, __ATOMIC_RELEASE,
						__ATOMIC_RELAXED);
				}
			});
			next_ns += stream_step_ns;
			work_until(next_ns);
		}
		group.wait();
		uint64_t end_ns = stolen_ns != 0 ? stolen_ns : peer_now_ns();
		figure = static_cast<double>(end_ns - start_ns);
	});
	return figure;
}

// A task of one arena goes on in another and then comes back, as it would to
// keep long work apart.
struct trips {
	tbb::task_arena own{1, 0};
	tbb::task_arena other{1, 0};
	enum peer_place place;
	int count;
	uint64_t end_ns;
	uint32_t is_over;

	void go()
	{
		other.enqueue([this] {
			peer_place(place, 1);
			own.enqueue([this] {
				peer_place(place, 0);
				come_back();
			});
		});
	}

	void come_back()
	{
		if (++count < PEER_EXECUTE_TRIPS) {
			go();
			return;
		}
		end_ns = peer_now_ns();
		__atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
	}
};

double execute_at(enum peer_place place)
{
	static trips trips;
	uint64_t start_ns = peer_now_ns();

	trips.place = place;
	trips.count = 0;
	__atomic_store_n(&trips.is_over, 0, __ATOMIC_RELEASE);
	trips.own.enqueue([] { trips.go(); });
	while (__atomic_load_n(&trips.is_over, __ATOMIC_ACQUIRE) == 0) {
		struct timespec nap = {0, 50 * 1000};

		nanosleep(&nap, nullptr);
	}
	return static_cast<double>(trips.end_ns - start_ns) / PEER_EXECUTE_TRIPS;
}

double execute(int)
{
	return execute_at(PEER_APART);
}

double execute_together(int)
{
	return execute_at(PEER_TOGETHER);
}

uint32_t fibonacci(uint32_t number)
{
	if (number < 2) {
		return number;
	}
	uint32_t left;
	uint32_t right;
	tbb::task_group group;

	group.run([&left, number] { left = fibonacci(number - 1); });
	group.run([&right, number] { right = fibonacci(number - 2); });
	group.wait();
	return left + right;
}

double forkjoin(int worker_count)
{
	static tbb::task_arena arena(worker_count);
	double figure = 0;

	arena.execute([&figure] {
		uint64_t start_ns = peer_now_ns();
		uint32_t result = fibonacci(PEER_FORKJOIN_NUMBER);

		figure = static_cast<double>(peer_now_ns() - start_ns) / PEER_FORKJOIN_TASKS;
		peer_check(result == PEER_FORKJOIN_RESULT, "the tree is wrong");
	});
	return figure;
}

} // namespace

int main(int argc, char **argv)
{
	static const peer_subject subjects[] = {
		{"spawn", spawn, "ns"},
		{"inject", inject, "ns"},
		{"inject_burst", inject_burst, "ns"},
		{"batch", batch, "ns"},
		{"steal_spawn", steal_spawn, "ns"},
		{"lone", lone, "us"},
		{"lone_stream", lone_stream, "us"},
		{"execute", execute, "us"},
		{"execute_together", execute_together, "us"},
		{"forkjoin", forkjoin, "ns"},
		{"forkjoin_fifo", forkjoin, "ns"},
		{nullptr, nullptr, nullptr},
	};
	// The workers asked for, even where there are fewer CPUs, one for bursts and
	// one more for calls to and fro.
	int worker_count = argc > 3 ? atoi(argv[3]) : 1;
	tbb::global_control limit(tbb::global_control::max_allowed_parallelism,
		static_cast<size_t>(worker_count) + 2);
	char name[64];

	snprintf(name, sizeof(name), "oneTBB %s", TBB_runtime_version());
	return peer_main(argc, argv, name, subjects);
}
