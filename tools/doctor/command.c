/* SPDX-License-Identifier: MIT */
/*
 * pinion doctor: what this machine offers and lacks, the command that mends it,
 * and for each path how its files can be read.
 *
 * All facts come from the public library, /proc and /sys; nothing is written
 * and nothing is changed. findings.h describes the form, pinion-doctor(1) each
 * name.
 *
 * The exit status is the worst verdict: 0 ready, 1 degraded (all works, slower
 * than it could), 2 unusable (something asked for cannot be read at all).
 */
#include "tools/commands.h"
#include "tools/doctor/subjects.h"
#include "tools/report.h"

enum { OPTION_JSON };

static const struct option_spec doctor_options[] = {
	[OPTION_JSON] = {.name = "json", .brief = "one JSON object"},
};

/* Too many for a stack. */
static struct doctor_workers workers;

static int doctor_run(const struct command *command, int argc, char **argv)
{
	struct option_parser parser = {.command = command, .argc = argc, .argv = argv};
	struct findings findings = {0};
	struct pinion_machine machine;
	const char *value;
	int rc = options_next(&parser, &value);

	for (; rc >= 0; rc = options_next(&parser, &value)) {
		findings.is_json = true; /* the only one there is */
	}
	if (rc != OPTIONS_END) {
		return rc == OPTIONS_HELP ? EXIT_STATUS_CLEAN : EXIT_STATUS_TROUBLE;
	}
	rc = pinion_machine_probe(&machine, sizeof(machine));
	if (rc != 0) {
		report_line("the CPUs cannot be found out (%s); is /sys mounted? mend: mount -t "
			    "sysfs sysfs /sys",
			report_reason(rc));
		return EXIT_STATUS_TROUBLE;
	}
	doctor_machine(&findings, &machine);
	doctor_limits(&findings, &machine);
	doctor_arenas(&findings, &workers);
	doctor_observing(&findings);
	for (int i = 1; i <= parser.operand_count; i++) {
		doctor_path(&findings, argv[i], &workers);
	}
	return findings_print(&findings) ? (int)findings.verdict : EXIT_STATUS_TROUBLE;
}

const struct command doctor_command = {
	.name = "doctor",
	.arguments = "[--json] [PATH]…",
	.brief = "what this machine offers, what is missing, and the command that mends it",
	.detail =
		"Shows the CPUs and memory nodes this process may use, its quota and limits, how "
		"much of io_uring works and why not more, huge pages; and for each PATH its file "
		"system, its device and whether it can be read past the page cache. For a "
		"directory the first readable file in it is tried. Nothing is written.\n\n"
		"Exit status: 0 ready; 1 degraded, all works but slower than it could; 2 unusable, "
		"or bad usage.",
	.options = doctor_options,
	.option_count = sizeof(doctor_options) / sizeof(doctor_options[0]),
	.run = doctor_run,
};
