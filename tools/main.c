/* SPDX-License-Identifier: MIT */
/*
 * The program `pinion`: a table of commands, each in a file of its own.
 */
#include "tools/commands.h"
#include "tools/completions.h"
#include "tools/output.h"
#include "tools/report.h"
#include "tools/scan/rules_toml.h"
#include "tools/signals.h"
#include "tools/spelling.h"
#include "tools/sum/digest.h"

#include <fcntl.h>
#include <pinion/pinion.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#if defined(HAVE_HYPERSCAN)
#include <hs.h>
#endif

static const struct command *const commands[] = {
	&sum_command,
	&scan_command,
	&merge_command,
	&bench_command,
	&doctor_command,
	&top_command,
	&trace_command,
	&rules_command,
};
enum { COMMAND_COUNT = sizeof(commands) / sizeof(commands[0]) };

static const struct command *find_command(const char *name)
{
	for (int i = 0; i < COMMAND_COUNT; i++) {
		if (strcmp(commands[i]->name, name) == 0) {
			return commands[i];
		}
	}
	return NULL;
}

static int unknown_command(const char *name)
{
	struct spelling spelling = {.word = name};

	for (int i = 0; i < COMMAND_COUNT; i++) {
		spelling_offer(&spelling, commands[i]->name);
	}
	if (spelling.nearest != NULL) {
		report_line("unknown command '%s' (did you mean '%s'?)", name, spelling.nearest);
	} else {
		report_line("unknown command '%s' (see pinion help)", name);
	}
	return EXIT_STATUS_TROUBLE;
}

static int print_usage(void)
{
	struct output_text text = {0};

	output_text_string(&text,
		"usage: pinion COMMAND [OPTION]… [PATH]…\n"
		"Reads many files as fast as the machine can and does something with them.\n\n");
	for (int i = 0; i < COMMAND_COUNT; i++) {
		size_t width = strlen(commands[i]->name);

		output_text_string(&text, "  ");
		output_text_string(&text, commands[i]->name);
		output_text_append(&text, "            ", width < 10 ? 10 - width : 1);
		output_text_string(&text, commands[i]->brief);
		output_text_string(&text, "\n");
	}
	output_text_string(&text,
		"\n"
		"  pinion COMMAND -h       options of a command\n"
		"  pinion help COMMAND     all about a command\n"
		"  pinion completions bash a script that completes command lines; zsh, fish\n"
		"  pinion --version        version, features, and what this kernel offers\n");
	return output_print(&text) ? EXIT_STATUS_CLEAN : EXIT_STATUS_TROUBLE;
}

/* "5.4.0" of "5.4.0 2023-01-12". */
static void append_features(struct output_text *text)
{
	output_text_string(text, "features:");
#if defined(HAVE_HYPERSCAN)
	const char *version = hs_version();

	output_text_string(text, " +hyperscan ");
	output_text_append(text, version, strcspn(version, " "));
#else
	output_text_string(text, " -hyperscan");
#endif
#if defined(HAVE_PCRE2)
	output_text_string(text, " +pcre2");
#else
	output_text_string(text, " -pcre2");
#endif
#if defined(HAVE_LIBARCHIVE)
	output_text_string(text, " +libarchive");
#else
	output_text_string(text, " -libarchive");
#endif
#if defined(HAVE_YARA)
	output_text_string(text, " +yara");
#else
	output_text_string(text, " -yara");
#endif
	digest_append_features(text);
	output_text_string(text, toml_is_known() ? " +toml" : " -toml");
	output_text_string(text, "\n");
}

static void append_flag(struct output_text *text, const struct pinion_machine *machine,
	enum pinion_io_feature feature)
{
	output_text_string(text, ", ");
	output_text_string(text, pinion_machine_feature_name((uint32_t)feature));
	output_text_string(text, (machine->io_features & (uint32_t)feature) != 0 ? " yes" : " no");
}

static void append_machine(struct output_text *text)
{
	struct pinion_machine machine;
	int error = pinion_machine_probe(&machine, sizeof(machine));

	output_text_string(text, "io_uring: ");
	if (error != 0) {
		output_text_string(text, "could not be examined: ");
		output_text_string(text, report_reason(error));
		output_text_string(text, "\n");
		return;
	}
	output_text_string(text, "kernel ");
	output_text_string(text, machine.kernel_release);
	if (machine.ring_error != 0) {
		output_text_string(text, ", not available: ");
		output_text_string(text,
			machine.ring_hint[0] != '\0' ? machine.ring_hint
						     : report_reason(machine.ring_error));
	} else {
		append_flag(text, &machine, PINION_IO_SINGLE_ISSUER);
		append_flag(text, &machine, PINION_IO_DEFER_TASKRUN);
		append_flag(text, &machine, PINION_IO_REGISTERED_RING);
		append_flag(text, &machine, PINION_IO_SEND_MSG_RING);
		append_flag(text, &machine, PINION_IO_CLONE_BUFFERS);
		append_flag(text, &machine, PINION_IO_OPENAT);
	}
	output_text_string(text, "\n");
}

static int print_version(void)
{
	struct output_text text = {0};

	output_text_string(&text, "pinion ");
	output_text_string(&text, pinion_version());
	output_text_string(&text, "\n");
	append_features(&text);
	append_machine(&text);
	return output_print(&text) ? EXIT_STATUS_CLEAN : EXIT_STATUS_TROUBLE;
}

static int help(int argc, char **argv)
{
	const struct command *command;

	if (argc < 3) {
		return print_usage();
	}
	command = find_command(argv[2]);
	if (command == NULL) {
		return unknown_command(argv[2]);
	}
	return options_help(command, true) ? EXIT_STATUS_CLEAN : EXIT_STATUS_TROUBLE;
}

/*
 * Plugins of hwloc know of graphics and networks, of which we ask nothing, and
 * bring dozens of libraries with them, whose loading takes longer than all else
 * that it does. Only a program may say so, before it has threads.
 */
static void do_without_plugins(void)
{
	(void)setenv("HWLOC_PLUGINS_PATH", "", 0);
}

/*
 * False and a line, when threads get too small a stack: theirs is by default
 * as large as the limit of the first thread's. 48 KiB were seen
 * to do for all commands; other libraries and machines may need more.
 */
static bool has_stack(void)
{
	enum { NEEDED_KIB = 256 };
	struct rlimit limit;

	if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
		limit.rlim_cur >> 10 >= NEEDED_KIB) {
		return true;
	}
	report_line("`ulimit -s` is %llu and at least %d are needed; raise it: ulimit -s 8192",
		(unsigned long long)limit.rlim_cur >> 10, NEEDED_KIB);
	return false;
}

/*
 * False and a line, when scan or sum could open too few files at once: 7 were
 * seen to do for 64 workers and any depth of a tree; workers do without a ring
 * for which there is no descriptor.
 */
static bool has_descriptors(const struct command *command)
{
	enum { NEEDED = 8, USUAL = 1024 };
	struct rlimit limit;
	int left = 0;

	if ((command != &scan_command && command != &sum_command) ||
		getrlimit(RLIMIT_NOFILE, &limit) != 0) {
		return true;
	}
	/* Those that the caller left open count, too. */
	for (rlim_t fd = 0; fd < limit.rlim_cur && left < NEEDED; fd++) {
		left += fcntl((int)fd, F_GETFD) < 0;
	}
	if (left < NEEDED) {
		report_line("`ulimit -n` is %llu, which leaves %d descriptors, and at least %d are "
			    "needed; raise it: ulimit -n %d",
			(unsigned long long)limit.rlim_cur, left, NEEDED, USUAL);
	}
	return left >= NEEDED;
}

int main(int argc, char **argv)
{
	const struct command *command;
	const char *word = argc > 1 ? argv[1] : NULL;

	if (!has_stack()) {
		return EXIT_STATUS_TROUBLE;
	}
	do_without_plugins();
	signals_init();
	output_init();
	command = word == NULL ? NULL : find_command(word);
	if (command != NULL) {
		report_name_command(command->name);
	}
	if (!report_init()) {
		return EXIT_STATUS_TROUBLE;
	}
	if (word == NULL) {
		report_line("no command (see pinion help)");
		return EXIT_STATUS_TROUBLE;
	}
	if (strcmp(word, "-V") == 0 || strcmp(word, "--version") == 0) {
		return print_version();
	}
	if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0) {
		return print_usage();
	}
	if (strcmp(word, "help") == 0) {
		return help(argc, argv);
	}
	if (strcmp(word, "completions") == 0) {
		return completions_print(argc == 3 ? argv[2] : NULL, commands, COMMAND_COUNT);
	}
	if (word[0] == '-') {
		report_line("unknown option %s (see pinion help)", word);
		return EXIT_STATUS_TROUBLE;
	}
	if (command == NULL) {
		return unknown_command(word);
	}
	if (!has_descriptors(command)) {
		return EXIT_STATUS_TROUBLE;
	}
	return command->run(command, argc - 1, argv + 1);
}
