/* SPDX-License-Identifier: MIT */
/*
 * Goal: the text of `lanes` gives the classes it says, for every number of
 * workers it can, and each mistake in it is an error of its own. C12.
 * Method: tables; and through pinion_config, where the message names the field.
 */
#include "runtime/api/internal.h"
#include "runtime/base/base.h"
#include "runtime/policy/lanes.h"
#include "tests/support/runtimes.h"

#include <errno.h>

struct bad {
	const char *text;
	const char *fault; /* a part of it */
};

static const struct bad bad[] = {
	{"x:1", "letters"},
	{"h:1,", "letters"},
	{",hnl", "letters"},
	{"HNL", "letters"},
	{"hnx", "letters"},
	{"h:1,hnL", "letters"},
	{"h;hnl", "commas"},
	{"hh", "twice"},
	{"hnm", "twice"},
	{"h:0,hnl", "1 to 4096"},
	{"h:,hnl", "1 to 4096"},
	{"h:4097,hnl", "1 to 4096"},
	{"h:99999999999999999999,hnl", "1 to 4096"},
	{"h,hnl", "last"},
	{"h:1;hnl", "commas"},
	{"hnl:1x", "commas"},
	{"h:1,hn:1", "no class"},
	{"h:1,hl:1", "no class"},
	{"n:1,nl:1", "no class"},
	{"h:1,n:1,l:1,hn:1,hnl", "more than 4"},
};

static void check_bad(void)
{
	for (size_t i = 0; i < PIN_ARRAY_COUNT(bad); i++) {
		struct pin_lane_plan plan = {.class_count = 77};
		struct pinion_config accepted;
		struct pinion_tuning tuning;
		struct pinion_config config;
		const char *fault = pin_lane_plan_parse(&plan, bad[i].text);

		if (fault == NULL || strstr(fault, bad[i].fault) == NULL) {
			printf("\"%s\": expected \"%s\", got \"%s\"\n", bad[i].text, bad[i].fault,
				fault != NULL ? fault : "no error");
			expect_failure_count++;
		}
		expect_number("nothing is written", 77, plan.class_count);
		runtimes_config(&config, 0, PINION_IO_AUTO);
		config.lanes = bad[i].text;
		expect_number(bad[i].text, -EINVAL, pin_config_accept(&accepted, &tuning, &config));
		expect_true("the message names it", strstr(runtimes_log, "lanes: ") != NULL);
	}
}

/* `worker classes`: each worker's class, a digit each. */
static void check_good(
	const char *text, uint32_t worker_count, uint32_t default_count, const char *classes)
{
	struct pin_lane_plan plan;
	const char *fault = pin_lane_plan_parse(&plan, text);
	char got[64] = "";
	uint32_t count;

	expect_true("no fault", fault == NULL);
	count = pin_lane_plan_complete(&plan, worker_count, default_count);
	expect_number("workers", (long long)strlen(classes), count);
	for (uint32_t i = 0; i < count && i < sizeof(got) - 1; i++) {
		got[i] = (char)('0' + pin_lane_plan_class(&plan, i));
	}
	expect_text(text != NULL ? text : "NULL", classes, got);
}

/* As many workers as there can be. */
static void check_most(void)
{
	struct pin_lane_plan plan;

	expect_true("no fault", pin_lane_plan_parse(&plan, "h:4096,hnl") == NULL);
	expect_number("of the first class", 4096, plan.worker_counts[0]);
}

static void check_environment(void)
{
	struct pinion_config config;

	pinion_config_init(&config);
	expect_true("none by default", config.lanes == NULL);
	setenv("PINION_LANES", "h:1,hnl", 1);
	expect_number("from the environment", 0, pinion_config_from_env(&config, NULL));
	expect_text("lanes", "h:1,hnl", config.lanes);
	setenv("PINION_LANES", "hnl", 1);
	expect_number("the default", 0, pinion_config_from_env(&config, NULL));
	expect_true("is NULL", config.lanes == NULL);
	runtimes_config(&config, 0, PINION_IO_AUTO);
	setenv("PINION_LANES", "hh", 1);
	expect_number("a mistake", -EINVAL, pinion_config_from_env(&config, NULL));
	expect_true("is left", config.lanes == NULL);
	expect_true("and named", strstr(runtimes_log, "PINION_LANES") != NULL);
	unsetenv("PINION_LANES");
}

int main(void)
{
	struct pin_lane_plan plan;

	check_bad();
	check_most();
	check_good(NULL, 3, 8, "000");
	check_good("", 0, 2, "00");
	check_good("h:1,hm:2,hml:1", 0, 9, "0112");
	check_good("h:1,hm:2,hml:1", 4, 9, "0112");
	check_good("h:1,hm:2,hml:1", 5, 9, "");
	check_good("h:1,hm:2,hml", 0, 6, "011222");
	check_good("h:1,hm:2,hml", 0, 1, "0112");
	check_good("h:1,hm:2,hml", 0, 3, "0112");
	check_good("h:1,hm:2,hml", 0, 4, "0112");
	check_good("h:1,hm:2,hml", 3, 9, "");
	check_good("h:1,hm:2,hml", 5, 9, "01122");
	check_good("h:1,n:1,l:2,hnl:1", 0, 9, "01223");
	check_good("h:12,hnl:1", 0, 9, "0000000000001");
	check_good("h:1,n:1,l:2,hnl", 7, 9, "0122333");
	expect_true("order", pin_lane_plan_parse(&plan, "lmh") == NULL);
	expect_number("first", PINION_LANE_LOW, plan.orders[0].lanes[0]);
	expect_number("last", PINION_LANE_HIGH, plan.orders[0].lanes[2]);
	check_environment();
	return expect_status();
}
