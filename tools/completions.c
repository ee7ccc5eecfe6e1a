/* SPDX-License-Identifier: MIT */
/*
 * A function for each shell. Words are the commands, options come from their
 * tables, and all else is completed as the name of a file.
 */
#include "tools/completions.h"

#include "tools/output.h"
#include "tools/report.h"

#include <string.h>

/* With a backslash before each of `special`, which includes the backslash. */
static void append_escaped(struct output_text *out, const char *text, const char *special)
{
	for (; *text != '\0'; text++) {
		if (strchr(special, *text) != NULL) {
			output_text_string(out, "\\");
		}
		output_text_append(out, text, 1);
	}
}

/* Whether `--NAME VALUE` is two words. */
static bool takes_value(const struct option_spec *spec)
{
	return spec->argument != NULL && spec->argument[0] != '[';
}

/* ---- bash ---- */

static void append_bash_options(struct output_text *out, const struct command *command)
{
	output_text_format(out, "\t%s) options='", command->name);
	for (uint32_t i = 0; i < command->option_count; i++) {
		const struct option_spec *spec = &command->options[i];

		if (spec->letter != 0) {
			output_text_format(out, "-%c ", spec->letter);
		}
		if (spec->name != NULL) {
			output_text_format(
				out, "--%s%s ", spec->name, takes_value(spec) ? "=" : "");
		}
	}
	output_text_string(out, "-h --help' ;;\n");
}

static void print_bash(struct output_text *out, const struct command *const *commands, int count)
{
	output_text_string(out,
		"# Completes pinion(1) in bash.\n"
		"_pinion() {\n"
		"\tlocal word=${COMP_WORDS[COMP_CWORD]} options=\n"
		"\tif [ \"$COMP_CWORD\" = 1 ]; then\n"
		"\t\tmapfile -t COMPREPLY < <(compgen -W 'help --version");
	for (int i = 0; i < count; i++) {
		output_text_format(out, " %s", commands[i]->name);
	}
	output_text_string(out,
		"' -- \"$word\")\n"
		"\t\treturn\n"
		"\tfi\n"
		"\tcase ${COMP_WORDS[1]} in\n");
	for (int i = 0; i < count; i++) {
		append_bash_options(out, commands[i]);
	}
	output_text_string(out,
		"\tesac\n"
		"\tif [[ $word == -* ]]; then\n"
		"\t\tmapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")\n"
		"\t\t[[ ${COMPREPLY-} != *= ]] || compopt -o nospace 2>/dev/null\n"
		"\telse\n"
		"\t\t[ \"$word\" != = ] || word=\n"
		"\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
		"\t\tcompopt -o filenames 2>/dev/null\n"
		"\tfi\n"
		"}\n"
		"complete -F _pinion pinion\n");
}

/* ---- zsh ---- */

/* Within single quotes, and within [brief]. */
static void append_zsh_text(struct output_text *out, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '\'') {
			output_text_string(out, "'\\''");
		} else {
			char word[2] = {*text, '\0'};

			append_escaped(out, word, "\\[]:");
		}
	}
}

static void append_zsh_option(struct output_text *out, const struct option_spec *spec)
{
	const char *forms[2] = {NULL, spec->name};
	char letter[2] = {spec->letter, '\0'};

	forms[0] = spec->letter != 0 ? letter : NULL;
	for (size_t i = 0; i < 2; i++) {
		if (forms[i] == NULL) {
			continue;
		}
		output_text_format(out, " \\\n\t\t\t'*%s%s%s[", i == 0 ? "-" : "--", forms[i],
			!takes_value(spec) ? ""
				: i == 0   ? "+"
					   : "=");
		append_zsh_text(out, spec->brief);
		output_text_string(out, "]");
		if (takes_value(spec)) {
			output_text_format(out, ":%s:_files", spec->argument);
		}
		output_text_string(out, "'");
	}
}

static void print_zsh(struct output_text *out, const struct command *const *commands, int count)
{
	output_text_string(out,
		"#compdef pinion\n"
		"# Completes pinion(1) in zsh.\n"
		"_pinion() {\n"
		"\tlocal -a names\n"
		"\tnames=(\n");
	for (int i = 0; i < count; i++) {
		output_text_format(out, "\t\t'%s:", commands[i]->name);
		append_zsh_text(out, commands[i]->brief);
		output_text_string(out, "'\n");
	}
	output_text_string(out,
		"\t\t'help:all about a command'\n"
		"\t)\n"
		"\tif (( CURRENT == 2 )); then\n"
		"\t\t_describe command names\n"
		"\t\treturn\n"
		"\tfi\n"
		"\tshift words\n"
		"\t(( CURRENT-- ))\n"
		"\tcase $words[1] in\n");
	for (int i = 0; i < count; i++) {
		output_text_format(out, "\t%s)\n\t\t_arguments", commands[i]->name);
		for (uint32_t j = 0; j < commands[i]->option_count; j++) {
			append_zsh_option(out, &commands[i]->options[j]);
		}
		output_text_string(out, " \\\n\t\t\t'*:file:_files'\n\t\t;;\n");
	}
	output_text_string(out, "\tesac\n}\n_pinion \"$@\"\n");
}

/* ---- fish ---- */

static void append_fish_text(struct output_text *out, const char *text)
{
	output_text_string(out, " -d '");
	append_escaped(out, text, "\\'");
	output_text_string(out, "'\n");
}

static void append_fish_option(
	struct output_text *out, const char *command, const struct option_spec *spec)
{
	output_text_format(out, "complete -c pinion -n '__fish_seen_subcommand_from %s'", command);
	if (spec->letter != 0) {
		output_text_format(out, " -s %c", spec->letter);
	}
	if (spec->name != NULL) {
		output_text_format(out, " -l %s", spec->name);
	}
	output_text_string(out, takes_value(spec) ? " -r" : "");
	append_fish_text(out, spec->brief);
}

static void print_fish(struct output_text *out, const struct command *const *commands, int count)
{
	output_text_string(out, "# Completes pinion(1) in fish.\n");
	for (int i = 0; i < count; i++) {
		output_text_format(out, "complete -c pinion -n __fish_use_subcommand -f -a %s",
			commands[i]->name);
		append_fish_text(out, commands[i]->brief);
	}
	for (int i = 0; i < count; i++) {
		for (uint32_t j = 0; j < commands[i]->option_count; j++) {
			append_fish_option(out, commands[i]->name, &commands[i]->options[j]);
		}
	}
}

int completions_print(const char *shell, const struct command *const *commands, int count)
{
	static const struct {
		const char *name;
		void (*print)(
			struct output_text *out, const struct command *const *commands, int count);
	} shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};

	for (size_t i = 0; shell != NULL && i < sizeof(shells) / sizeof(shells[0]); i++) {
		if (strcmp(shell, shells[i].name) == 0) {
			struct output_text out = {0};

			shells[i].print(&out, commands, count);
			return output_print(&out) ? EXIT_STATUS_CLEAN : EXIT_STATUS_TROUBLE;
		}
	}
	report_line("completions are for bash, zsh or fish: pinion completions bash");
	return EXIT_STATUS_TROUBLE;
}
