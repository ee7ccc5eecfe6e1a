/* SPDX-License-Identifier: MIT */
/*
 * The options about a command's log, and what a run has in common with a run
 * that resumes it: options that results depend on, and the content of files
 * that they name.
 */
#include "tools/checkpointing.h"

#include "tools/distribution.h"
#include "tools/options.h"
#include "tools/report.h"
#include "tools/scan/sha256.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	READ_BYTES = 64 << 10,
	NS_PER_SECOND = 1000 * 1000 * 1000,
	INTERVAL_SECONDS_MAX = 86400,
};

/* Results do not depend on these. */
static const char *const neutral[] = {"workers", "window", "direct", "io", "bwlimit", "iops-limit",
	"ioprio", "nice", "psi-target", "latency-target", "limits-file", "stats", "trace",
	"no-cache", "max-compile-time", "checkpoint", "resume", "salvage", "checkpoint-interval",
	"shard", "shard-from-env", "output", "file-timeout", "color", "quiet"};

/* The content of these files counts, and not their names. */
static const char *const files[] = {"rules", "baseline"};

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(name, names[i]) == 0) {
			return true;
		}
	}
	return false;
}

bool checkpointing_parse(struct checkpointing_options *options, const char *name, const char *value)
{
	if (strcmp(name, "checkpoint") == 0) {
		options->file = value;
	} else if (strcmp(name, "checkpoint-interval") == 0) {
		bool is_good = options_duration(name, value, 0,
			(uint64_t)INTERVAL_SECONDS_MAX * NS_PER_SECOND, &options->interval_ns);

		/* 0 is the standard. */
		options->interval_ns += is_good && options->interval_ns == 0 ? 1 : 0;
		return is_good;
	} else if (strcmp(name, "resume") == 0) {
		options->resumes = true;
	} else {
		options->salvages = true;
	}
	return true;
}

/* A plain file's; others are only named, as they can be read once. */
static bool add_digest(struct output_text *text, const char *path)
{
	uint8_t digest[SHA256_BYTES];
	static const size_t shown = 8;
	char *bytes = malloc(READ_BYTES);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat status;
	struct sha256 hash;
	ssize_t count = fd < 0 || bytes == NULL ? -1 : 1;

	sha256_init(&hash);
	if (count > 0 && (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))) {
		count = 0;
	}
	while (count > 0) {
		count = read(fd, bytes, READ_BYTES);
		sha256_add(&hash, bytes, count > 0 ? (size_t)count : 0);
	}
	sha256_finish(&hash, digest);
	for (size_t i = 0; i < shown; i++) {
		output_text_format(text, "%02x", digest[i]);
	}
	if (fd >= 0) {
		close(fd);
	}
	free(bytes);
	return count == 0;
}

bool checkpointing_note(
	struct checkpointing_options *options, const struct option_spec *spec, const char *value)
{
	if (!distribution_allows(spec->name)) {
		return false;
	}
	if (is_one_of(spec->name, neutral, sizeof(neutral) / sizeof(neutral[0]))) {
		return true;
	}
	output_text_format(
		&options->given, "%s--%s", options->given.length == 0 ? "" : " ", spec->name);
	if (value == NULL) {
		return true;
	}
	if (!is_one_of(spec->name, files, sizeof(files) / sizeof(files[0]))) {
		output_text_string(&options->given, "=");
		output_text_string(&options->given, value);
		return true;
	}
	output_text_string(&options->contents, options->contents.length == 0 ? "" : " ");
	/* Where it cannot be read the command says so itself. */
	(void)add_digest(&options->contents, value);
	return true;
}

bool checkpointing_check(const struct checkpointing_options *options)
{
	if (options->file == NULL &&
		(options->resumes || options->salvages || options->interval_ns > 0)) {
		report_line("--%s is about the log of --checkpoint=FILE, which is not given",
			options->resumes	    ? "resume"
				: options->salvages ? "salvage"
						    : "checkpoint-interval");
		return false;
	}
	if (options->salvages && !options->resumes) {
		report_line("--salvage is about a log that --resume goes on with");
		return false;
	}
	return true;
}

void checkpointing_options_fini(struct checkpointing_options *options)
{
	output_text_free(&options->given);
	output_text_free(&options->contents);
}
