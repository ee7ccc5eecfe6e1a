/* SPDX-License-Identifier: MIT */
/*
 * Goal: a mistake in a case is reported, not taken for a smaller case.
 * Method: a good case is read; then each of the mistakes below is made in it.
 */
#include "runtime/base/base.h"
#include "tests/sim/case.h"
#include "tests/support/expect.h"

#include <unistd.h>

/* %s: text added after the last member. */
static const char good[] = "{\n\t\"about\": \"a \\\"case\\\"\",\n\t\"workers\": 2,\n"
			   "\t\"ring_entries\": 8, \"end\": \"either\", \"age_limit_us\": 10,\n"
			   "\t\"programs\": [{\"name\": \"a\"}, {\"name\": \"b\", \"children\": 2, "
			   "\"spawns\": \"a\"}]%s\n}%s\n";

struct mistake {
	const char *member;
	const char *after;
};

static const struct mistake mistakes[] = {
	{"", "1"},
	{",", ""},
	{", \"worker\": 1", ""},
	{", \"workers\": 0", ""},
	{", \"workers\": 9", ""},
	{", \"workers\": \"1\"", ""},
	{", \"workers\": -1", ""},
	{", \"workers\": 1.0", ""},
	{", \"workers\": 01", ""},
	{", \"workers\": 4294967297", ""},
	{", \"workers\" 1", ""},
	{", \"end\": \"never\"", ""},
	{", \"programs\": [{\"name\": \"c\", \"spawns\": \"d\"}]", ""},
	{", \"programs\": [{\"name\": \"c\", \"children\": 1}]", ""},
	{", \"programs\": [{\"name\": \"c\", \"reads\": 1}]", ""},
	{", \"programs\": [1]", ""},
	{", \"threads\": [{\"tasks\": 1}]", ""},
	{", \"threads\": [{\"program\": \"c\"}]", ""},
	{", \"lanes\": 1", ""},
	{", \"lanes\": \"hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh\"", ""},
	{", \"lane_floor\": 1", ""},
	{", \"assist\": 2", ""},
	{", \"ring_sharing\": 2", ""},
	{", \"programs\": [{\"name\": \"c\", \"low_percent\": 101}]", ""},
	{", \"faults\": {\"late\": 1000}", ""},
	{", \"faults\": {\"early\": 1}", ""},
	{", \"faults\": {\"hung\": 1}", ""},
	{", \"about\": \"no end", ""},
	{", \"about\": \"\\n\"", ""},
	{", \"threads\": [[[[[[[[[]]]]]]]]]", ""},
};

static bool load(struct sim_case *test, const struct mistake *mistake)
{
	char path[1024];
	FILE *stream;
	bool is_good;

	snprintf(path, sizeof(path), "%s/mistaken.json", getenv("TMPDIR") ? getenv("TMPDIR") : ".");
	stream = fopen(path, "we");
	expect_ready(path, stream != NULL);
	fprintf(stream, good, mistake->member, mistake->after);
	fclose(stream);
	is_good = sim_case_load(test, path);
	unlink(path);
	return is_good;
}

int main(void)
{
	static const struct mistake none = {"", ""};
	static struct sim_case test;

	expect_true("the good case is read", load(&test, &none));
	expect_text("its name", "mistaken", test.name);
	expect_number("its workers", 2, test.workers);
	expect_number("its programs", 2, test.program_count);
	expect_true("b spawns a", test.programs[1].spawns == &test.programs[0]);
	for (size_t i = 0; i < PIN_ARRAY_COUNT(mistakes); i++) {
		if (load(&test, &mistakes[i])) {
			printf("expected a complaint about \"%s\" and \"%s\", got none\n",
				mistakes[i].member, mistakes[i].after);
			expect_failure_count++;
		}
	}
	return expect_status();
}
