/* SPDX-License-Identifier: MIT */
/*
 * Starting git and reaping it.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create, pipe2 */
#endif
#include "tools/scan/git/process.h"

#include "tools/input.h"
#include "tools/report.h"
#include "tools/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum {
	REASON_BYTES = 512,
	READ_BYTES = 64 << 10,
	/* Of its stderr. */
	ERROR_BYTES = 2048,
};

/* The same whatever is asked. */
static const char *const first_arguments[] = {
	"git",
	"--no-replace-objects",
	"-c",
	"core.fsmonitor=false",
	"-c",
	"core.hooksPath=/dev/null",
	"-c",
	"advice.graftFileDeprecated=false",
	"-c",
	"protocol.allow=never",
	/* Larger ones git hands over piece by piece, where it can. */
	"-c",
	"core.bigFileThreshold=16m",
	"-c",
	"i18n.logOutputEncoding=UTF-8",
	"-C",
};
enum { FIRST_ARGUMENT_COUNT = sizeof(first_arguments) / sizeof(first_arguments[0]) };

static const char *const added_variables[] = {
	"LC_ALL=C",
	"GIT_OPTIONAL_LOCKS=0",
	"GIT_NO_LAZY_FETCH=1",
	/* Older git fetches missing objects, by no protocol of that name. */
	"GIT_ALLOW_PROTOCOL=none",
	"GIT_TERMINAL_PROMPT=0",
	"GIT_GRAFT_FILE=/dev/null",
};
enum { ADDED_COUNT = sizeof(added_variables) / sizeof(added_variables[0]) };

/* ---- the environment ---- */

static bool is_variable(const char *entry, const char *name)
{
	size_t length = strlen(name);

	return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

/* Those of `git rev-parse --local-env-vars` that say where a repository is. */
static const char *const place_variables[] = {
	"GIT_DIR",
	"GIT_WORK_TREE",
	"GIT_COMMON_DIR",
	"GIT_INDEX_FILE",
	"GIT_OBJECT_DIRECTORY",
	"GIT_ALTERNATE_OBJECT_DIRECTORIES",
	"GIT_NAMESPACE",
	"GIT_PREFIX",
};

static bool leads_elsewhere(const char *entry)
{
	for (size_t i = 0; i < sizeof(place_variables) / sizeof(place_variables[0]); i++) {
		if (is_variable(entry, place_variables[i])) {
			return true;
		}
	}
	return false;
}

static bool is_replaced(const char *entry)
{
	for (size_t i = 0; i < ADDED_COUNT; i++) {
		const char *end = strchr(added_variables[i], '=');
		size_t length = (size_t)(end - added_variables[i]) + 1;

		if (strncmp(entry, added_variables[i], length) == 0) {
			return true;
		}
	}
	return is_variable(entry, "GIT_TRACE") || is_variable(entry, "GIT_FLUSH") ||
		is_variable(entry, "GIT_SHALLOW_FILE");
}

int git_place_init(struct git_place *place, const char *path)
{
	bool is_here = strcmp(path, ".") == 0;
	size_t count = 0;
	size_t kept = 0;

	while (environ != NULL && environ[count] != NULL) {
		count++;
	}
	*place = (struct git_place){.path = path};
	place->environment = calloc(count + ADDED_COUNT + 1, sizeof(*place->environment));
	if (place->environment == NULL) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++) {
		if (!is_replaced(environ[i]) && (is_here || !leads_elsewhere(environ[i]))) {
			place->environment[kept++] = environ[i];
		}
	}
	memcpy(place->environment + kept, added_variables, sizeof(added_variables));
	return 0;
}

void git_place_fini(struct git_place *place)
{
	free(place->environment);
	place->environment = NULL;
}

/* ---- starting ---- */

static void close_end(int *fd)
{
	if (*fd >= 0) {
		close(*fd);
		*fd = -1;
	}
}

/* Signals as a program expects them; those ignored for us are so for it. */
static int set_signals(posix_spawnattr_t *attributes)
{
	sigset_t none;
	sigset_t defaults;

	sigemptyset(&none);
	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE);
	sigaddset(&defaults, SIGXFSZ);
	sigaddset(&defaults, SIGUSR1);
	if (posix_spawnattr_setsigmask(attributes, &none) != 0 ||
		posix_spawnattr_setsigdefault(attributes, &defaults) != 0) {
		return -EINVAL;
	}
	return -posix_spawnattr_setflags(
		attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

/* Its three descriptors; `input` -1: an empty file. */
static int spawn(const struct git_place *place, char *const *argv, const int *fds, pid_t *out_pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int rc;

	rc = posix_spawn_file_actions_init(&actions);
	if (rc != 0) {
		return -rc;
	}
	rc = posix_spawnattr_init(&attributes);
	if (rc != 0) {
		posix_spawn_file_actions_destroy(&actions);
		return -rc;
	}
	if (fds[0] < 0) {
		rc = posix_spawn_file_actions_addopen(
			&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	} else {
		rc = posix_spawn_file_actions_adddup2(&actions, fds[0], STDIN_FILENO);
	}
	rc = rc != 0 ? rc : posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
	rc = rc != 0 ? rc : posix_spawn_file_actions_adddup2(&actions, fds[2], STDERR_FILENO);
	rc = rc != 0 ? -rc : set_signals(&attributes);
	if (rc == 0) {
		rc = -posix_spawnp(out_pid, argv[0], &actions, &attributes, argv,
			(char *const *)place->environment);
	}
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return rc;
}

static void report_no_git(int error)
{
	if (error == -ENOENT) {
		report_line("--git needs git, which is not installed: the package is named git");
	} else {
		report_line("cannot run git: %s", report_reason(error));
	}
}

bool git_process_start(const struct git_place *place, const char *const *arguments, int input,
	struct git_process *out_process)
{
	const char *argv[FIRST_ARGUMENT_COUNT + 1 + GIT_ARGUMENTS_MAX + 1] = {NULL};
	int input_pipe[2] = {-1, -1};
	int output_pipe[2] = {-1, -1};
	int error_fd = memfd_create("pinion-git", MFD_CLOEXEC);
	int error = error_fd < 0 ? -errno : 0;
	pid_t pid = 0;

	memcpy(argv, first_arguments, sizeof(first_arguments));
	argv[FIRST_ARGUMENT_COUNT] = place->path;
	for (size_t i = 0; arguments[i] != NULL && i < GIT_ARGUMENTS_MAX; i++) {
		argv[FIRST_ARGUMENT_COUNT + 1 + i] = arguments[i];
	}
	if (error == 0 && input == GIT_INPUT_PIPE && pipe2(input_pipe, O_CLOEXEC) != 0) {
		error = -errno;
	}
	if (error == 0 && pipe2(output_pipe, O_CLOEXEC) != 0) {
		error = -errno;
	}
	if (error == 0) {
		int fds[3] = {
			input == GIT_INPUT_PIPE ? input_pipe[0] : input, output_pipe[1], error_fd};

		error = spawn(place, (char *const *)argv, fds, &pid);
	}
	close_end(&input_pipe[0]);
	close_end(&output_pipe[1]);
	if (input >= 0) {
		close(input);
	}
	if (error != 0) {
		close_end(&input_pipe[1]);
		close_end(&output_pipe[0]);
		close_end(&error_fd);
		report_no_git(error);
		return false;
	}
	*out_process = (struct git_process){
		.what = arguments[0],
		.pid = pid,
		.in_fd = input_pipe[1],
		.out_fd = output_pipe[0],
		.error_fd = error_fd,
	};
	return true;
}

/* ---- ending ---- */

void git_process_close_input(struct git_process *process)
{
	close_end(&process->in_fd);
}

/*
 * Its first error, without git's own prefix; hints and warnings may be before
 * it, and advice after it.
 */
static void read_reason(int fd, char out_reason[REASON_BYTES])
{
	static const char *const prefixes[] = {"fatal: ", "error: "};
	char text[ERROR_BYTES + 1];
	ssize_t count = pread(fd, text, ERROR_BYTES, 0);
	char *first = NULL;
	char *line;

	text[count > 0 ? count : 0] = '\0';
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		char *found = strstr(text, prefixes[i]);

		if (found != NULL && (first == NULL || found < first)) {
			first = found;
		}
	}
	line = first == NULL ? text : strchr(first, ' ') + 1;
	snprintf(out_reason, REASON_BYTES, "%.*s", (int)strcspn(line, "\n"), line);
}

static void report_failure(
	const struct git_place *place, const struct git_process *process, int status)
{
	char reason[REASON_BYTES];

	read_reason(process->error_fd, reason);
	if (reason[0] == '\0' && WIFSIGNALED(status)) {
		snprintf(reason, sizeof(reason), "ended by signal %d", WTERMSIG(status));
	} else if (reason[0] == '\0') {
		snprintf(reason, sizeof(reason), "ended with status %d", WEXITSTATUS(status));
	}
	report_line("%s: git %s: %s", place->path, process->what, reason);
	if (strstr(reason, "dubious ownership") != NULL) {
		report_line("it is another user's: if you trust it, `git config --global --add "
			    "safe.directory` and its path");
	}
}

bool git_process_end(const struct git_place *place, struct git_process *process, bool is_told)
{
	int status = 0;
	bool is_good = true;

	if (process->pid == 0) {
		return true;
	}
	close_end(&process->in_fd);
	close_end(&process->out_fd);
	/* It may have long to go until it writes, and fails. */
	if (signals_interrupted()) {
		(void)kill(process->pid, SIGTERM);
		is_told = false;
	}
	while (waitpid(process->pid, &status, 0) < 0 && errno == EINTR) {
	}
	is_good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	/* Another process that has read its output has failed, and says why. */
	if (!is_good && is_told && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE)) {
		report_failure(place, process, status);
	}
	close_end(&process->error_fd);
	process->pid = 0;
	return is_good;
}

int git_process_read(
	struct git_process *process, size_t bytes_max, char **out_text, size_t *out_length)
{
	char *text = NULL;
	size_t length = 0;
	size_t room = 0;
	ssize_t count;

	do {
		size_t wanted = length + READ_BYTES > room ? 2 * room + READ_BYTES : room;
		char *grown = wanted > room ? realloc(text, wanted + 1) : text;

		if (grown == NULL) {
			free(text);
			return -ENOMEM;
		}
		text = grown;
		room = wanted > room ? wanted : room;
		count = input_read(process->out_fd, text + length, room - length);
		length += count > 0 ? (size_t)count : 0;
	} while (count > 0 && length < bytes_max);
	if (count != 0) {
		free(text);
		return count > 0 ? -EFBIG : (int)count;
	}
	text[length] = '\0';
	*out_text = text;
	*out_length = length;
	return 0;
}

char *git_read(const struct git_place *place, const char *const *arguments, size_t bytes_max,
	size_t *out_length)
{
	struct git_process process = {.pid = 0};
	char *text = NULL;
	int error;

	if (!git_process_start(place, arguments, GIT_INPUT_NONE, &process)) {
		return NULL;
	}
	error = git_process_read(&process, bytes_max, &text, out_length);
	if (error != 0 && error != -ECANCELED) {
		report_line("%s: git %s: %s", place->path, process.what,
			error == -EFBIG ? "its answer is too long" : report_reason(error));
	}
	if (!git_process_end(place, &process, error == 0) || error != 0) {
		free(text);
		return NULL;
	}
	return text;
}
