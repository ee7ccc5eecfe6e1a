/* SPDX-License-Identifier: MIT */
/*
 * Goal: beside a load that comes and goes the pace keeps its targets: 5 s after
 * each step the rate is near what the device allows and stays there,
 * without swinging, and no target is exceeded for long; when the load is gone
 * the rate comes back.
 * Method: a model of a device as a queue: its reads take longer the nearer to
 * its limit it is, and what exceeds the limit queues. Each tick's reads are
 * drawn from an exponential distribution; the pressure follows the use. Virtual
 * time, so the same on each machine; devices from 40 MB/s to 8 GB/s.
 */
#include "tools/pace.h"
#include "tests/support/expect.h"

enum {
	TICKS_PER_SECOND = 10,
	LOAD_SECOND = 30, /* comes */
	FREE_SECOND = 60, /* is gone */
	END_SECOND = 90,
	SETTLE_SECONDS = 5,
	READ_BYTES = 128 << 10,
};

static const double service_s = 0.0005;
static const double target_s = 0.005;
/* Where one read in 100 takes that long: 4.6 of 0.5 ms over the free part. */
static const double share_of_latency = 0.54;
static const uint64_t target_ppm = 200000;
/* Where the cube of the use is a fifth. */
static const double share_of_pressure = 0.585;

struct device {
	double limit;  /* bytes a second */
	double load;   /* of others */
	double queued; /* bytes */
	uint64_t random;
	bool has_pressure; /* it reports pressure in place of latency */
};

static double draw(struct device *device)
{
	device->random = device->random * UINT64_C(6364136223846793005) + 1442695040888963407;
	return ((double)(device->random >> 33) + 1) / 2147483650.0;
}

/*
 * Number of reads of the tick that were slower than the target, each with the
 * probability e^(-target/mean), of which this is a good approximation.
 */
static uint64_t count_slow(struct device *device, double mean_s, uint64_t reads)
{
	double ratio = target_s / mean_s;
	double probability = ratio < 1024 ? 1 - ratio / 1024 : 0;
	uint64_t slow = 0;

	for (int i = 0; i < 10; i++) {
		probability *= probability;
	}
	for (uint64_t i = 0; i < reads; i++) {
		slow += draw(device) < probability;
	}
	return slow;
}

struct controller {
	struct pace pace;
	struct pace_latency latency;
	struct pace_pressure pressure;
};

static enum pace_verdict judge(
	struct controller *controller, struct device *device, double use, double room, double done)
{
	double wait_s = device->queued / room;
	double mean_s = service_s / (use < 0.98 ? 1 - use : 0.02) + wait_s;
	uint64_t reads = (uint64_t)(done / TICKS_PER_SECOND / READ_BYTES) + 1;

	if (device->has_pressure) {
		double whole = (done + device->load) / device->limit;
		double share = whole * whole * whole * (0.9 + 0.2 * draw(device));

		share = share > 1 || wait_s > 0 ? 1 : share;
		return pace_pressure(
			&controller->pressure, (uint64_t)(share * 1e8), 100000000, target_ppm);
	}
	return pace_latency(&controller->latency, reads, count_slow(device, mean_s, reads));
}

/* Returns the share of the free part of the device that the rate asks for. */
static double tick(struct controller *controller, struct device *device, bool *out_is_over)
{
	double room = device->limit - device->load;
	double rate = (double)controller->pace.rate;
	double done = rate < room ? rate : room;
	enum pace_verdict verdict;
	struct pace_report report;

	device->queued += (rate - room) / TICKS_PER_SECOND;
	device->queued = device->queued < 0 ? 0 : device->queued;
	verdict = judge(controller, device, rate / room, room, done);
	report = (struct pace_report){
		.is_over = verdict != PACE_WITHIN,
		.is_far_over = verdict == PACE_FAR_OVER,
		.is_used = true,
		.bytes_per_second = (uint64_t)done,
	};
	if (pace_step(&controller->pace, &report) < (uint64_t)rate) {
		controller->latency = (struct pace_latency){0};
		controller->pressure = (struct pace_pressure){0};
	}
	*out_is_over = verdict != PACE_WITHIN;
	return (double)controller->pace.rate / room;
}

/* From 5 s after a step to the next. */
struct seen {
	double least;
	double most;
	uint32_t over; /* ticks */
	uint64_t falls;
};

static struct seen run(struct controller *controller, struct device *device, int from, int to)
{
	struct seen seen = {.least = 1e9};
	uint64_t falls = 0;

	for (int i = from * TICKS_PER_SECOND; i < to * TICKS_PER_SECOND; i++) {
		bool is_over;
		double share = tick(controller, device, &is_over);

		if (i < (from + SETTLE_SECONDS) * TICKS_PER_SECOND) {
			falls = controller->pace.fall_count;
			continue;
		}
		seen.least = share < seen.least ? share : seen.least;
		seen.most = share > seen.most ? share : seen.most;
		seen.over += is_over;
	}
	seen.falls = controller->pace.fall_count - falls;
	return seen;
}

static double worst_least = 9;
static double worst_most;
static double worst_over;
static uint64_t worst_falls;

static void check(
	const char *what, const struct seen *seen, double limit, double ideal, int seconds)
{
	double over = (double)seen->over / (seconds * TICKS_PER_SECOND);
	bool is_slow = limit < 1e9;

	worst_least = seen->least / ideal < worst_least ? seen->least / ideal : worst_least;
	worst_most = seen->most / ideal > worst_most ? seen->most / ideal : worst_most;
	worst_over = over > worst_over ? over : worst_over;
	worst_falls = seen->falls > worst_falls ? seen->falls : worst_falls;
	/* Few reads in a tick of a slow device: chance has a part in it. */
	if (!expect_true(what,
		    seen->least > (is_slow ? 0.3 : 0.4) * ideal &&
			    seen->most < (is_slow ? 1.9 : 1.5) * ideal && over < 0.15 &&
			    seen->falls <= (is_slow ? 5 : 2))) {
		printf("%.2f to %.2f of the ideal rate, %.3f of the ticks over, %llu falls\n",
			seen->least / ideal, seen->most / ideal, over,
			(unsigned long long)seen->falls);
	}
}

static void check_device(double limit, uint64_t seed, bool has_pressure)
{
	const struct pace_options options = {
		.min = 1000000, .start = 16000000, .max = UINT64_C(64000000000)};
	struct device device = {.limit = limit, .random = seed, .has_pressure = has_pressure};
	double ideal = has_pressure ? share_of_pressure : share_of_latency;
	struct controller controller = {.latency = {0}};
	struct seen seen;

	pace_init(&controller.pace, &options);
	/* From 16 MB/s up takes 5 s for a hundredfold. */
	(void)run(&controller, &device, 0, 10);
	seen = run(&controller, &device, 10, LOAD_SECOND);
	check("alone", &seen, limit, ideal, LOAD_SECOND - 15);
	/* Then the rate has to halve, at least. */
	device.load = has_pressure ? 0.3 * limit : 0.6 * limit;
	seen = run(&controller, &device, LOAD_SECOND, FREE_SECOND);
	check("beside a load", &seen, limit, has_pressure ? 0.285 / 0.7 : ideal,
		FREE_SECOND - LOAD_SECOND - SETTLE_SECONDS);
	device.load = 0;
	(void)run(&controller, &device, FREE_SECOND, FREE_SECOND + SETTLE_SECONDS);
	seen = run(&controller, &device, FREE_SECOND + SETTLE_SECONDS, END_SECOND);
	check("when it is gone", &seen, limit, ideal,
		END_SECOND - FREE_SECOND - 2 * SETTLE_SECONDS);
}

int main(void)
{
	static const double limits[] = {40e6, 200e6, 1e9, 8e9};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		for (uint64_t seed = 1; seed <= 50; seed++) {
			check_device(limits[i], seed, false);
			check_device(limits[i], seed, true);
		}
	}
	printf("%.2f to %.2f of the ideal rate, %.3f of the ticks over, %llu falls at most\n",
		worst_least, worst_most, worst_over, (unsigned long long)worst_falls);
	return expect_status();
}
