/* SPDX-License-Identifier: MIT */
/*
 * Command-line options: one table per command drives parsing, -h and --help.
 *
 * A command is a row in the table of main.c and a file of its own. Its options
 * are an array of struct option_spec; options_next() walks the arguments and
 * answers with rows of that array, so a spelling exists in one place only.
 */
#ifndef PINION_TOOLS_OPTIONS_H
#define PINION_TOOLS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Exit statuses of every command; trouble outranks findings. */
enum exit_status {
	EXIT_STATUS_CLEAN = 0,	 /* done, nothing found or all verified */
	EXIT_STATUS_FOUND = 1,	 /* done, findings or mismatches */
	EXIT_STATUS_TROUBLE = 2, /* something could not be read, or bad usage */
	EXIT_STATUS_STOPPED = 3, /* stopped early */
};

struct option_spec {
	char letter;	  /* 0: long only */
	const char *name; /* long name without dashes */
	/*
	 * Name of its argument in help texts; NULL: none; "[=NAME]": it need
	 * not be there, and follows "=" where it is.
	 */
	const char *argument;
	const char *brief;  /* one line for -h */
	const char *detail; /* further lines for --help, NULL: none */
};

struct command {
	const char *name;
	const char *arguments; /* "[OPTION]… PATH…" */
	const char *brief;     /* one line */
	const char *detail;    /* paragraphs for --help */
	const struct option_spec *options;
	uint32_t option_count;
	int (*run)(const struct command *command, int argc, char **argv);
};

/* Zero-initialise but for the three inputs. */
struct option_parser {
	const struct command *command;
	int argc;
	char **argv;	     /* argv[0] is the command's name */
	int position;	     /* next argument to look at; options may follow operands */
	const char *cluster; /* rest of a group of short options */
	int operand_count;   /* operands moved to argv[1 … operand_count] */
	bool only_operands;  /* after "--" */
};

enum {
	OPTIONS_END = -1,   /* all read; operands are argv[1 … operand_count] */
	OPTIONS_ERROR = -2, /* a message is on stderr: exit with TROUBLE */
	OPTIONS_HELP = -3,  /* help is on stdout: exit with CLEAN */
};

/*
 * Reads the next option: returns its index in the command's table and sets
 * *out_value (NULL when it takes none), or one of the values above. -h and
 * --help are understood for every command without standing in its table.
 * Unknown options name the nearest known one.
 */
int options_next(struct option_parser *parser, const char **out_value);

/*
 * Numbers as users write them: sizes take K, M, G, T (1024) and KB, MB, GB, TB
 * (1000). On failure prints "pinion COMMAND: --NAME: …" and returns false.
 */
bool options_size(
	const char *name, const char *text, uint64_t min, uint64_t max, uint64_t *out_bytes);
bool options_count(
	const char *name, const char *text, uint64_t min, uint64_t max, uint64_t *out_count);
/* Seconds, whole or as 0.05. */
bool options_duration(
	const char *name, const char *text, uint64_t min_ns, uint64_t max_ns, uint64_t *out_ns);

/* 30d, 12h, 90m, 10s; without a unit, seconds. */
bool options_period(const char *name, const char *text, uint64_t *out_ns);

/*
 * One of the words in `choices`, which ends in NULL: returns its index, or -1
 * after a message that lists them.
 */
int options_choice(const char *name, const char *text, const char *const *choices);

/*
 * Adds the value of an option that may be given several times to a list, which
 * the caller frees. False: no memory, which is reported.
 */
bool options_append(const char ***list, uint32_t *count, const char *value);

/* Prints a command's help, in full or a line an option. False: failed. */
bool options_help(const struct command *command, bool full);

#endif
