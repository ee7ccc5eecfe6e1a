/* SPDX-License-Identifier: MIT */
/*
 * The self-test's view of Hyperscan: a set of patterns as a block database and
 * as a streaming one.
 */
#include "tools/scan/selftest.h"

#include <errno.h>
#include <stdio.h>

#if defined(HAVE_HYPERSCAN)

#include "tools/scan/hyperscan_shipped.h"

#include <hs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

struct subject {
	hs_database_t *block;
	hs_database_t *stream;
	hs_scratch_t *scratch;
};

static void subject_close(void *arg)
{
	struct subject *subject = arg;

	hs_free_database(subject->block);
	hs_free_database(subject->stream);
	hs_free_scratch(subject->scratch);
	free(subject);
}

static bool compile(const char *const *patterns, size_t count, unsigned mode, bool from_shipped,
	hs_database_t **out_database)
{
	const char *expressions[SELFTEST_PATTERNS_MAX];
	unsigned flags[SELFTEST_PATTERNS_MAX] = {0};
	unsigned ids[SELFTEST_PATTERNS_MAX];
	struct hyperscan_list list = {
		.expressions = expressions,
		.flags = flags,
		.ids = ids,
		.count = (unsigned)count,
		.mode = mode,
	};
	hs_compile_error_t *error = NULL;
	hs_error_t status;

	for (unsigned i = 0; i < count; i++) {
		expressions[i] = patterns[i];
		ids[i] = i;
	}
	if (from_shipped) {
		struct hyperscan_target here = hyperscan_target_here();

		*out_database = hyperscan_shipped_find(&list, &here);
		if (*out_database != NULL) {
			return true;
		}
	}
	status = hs_compile_multi(
		patterns, flags, ids, (unsigned)count, mode, NULL, out_database, &error);
	hs_free_compile_error(error);
	return status == HS_SUCCESS;
}

static void *open_subject(const char *const *patterns, size_t count, bool from_shipped)
{
	struct subject *subject = calloc(1, sizeof(*subject));

	if (subject == NULL) {
		return NULL;
	}
	if (!compile(patterns, count, HS_MODE_BLOCK, from_shipped, &subject->block) ||
		!compile(patterns, count, HS_MODE_STREAM, from_shipped, &subject->stream) ||
		hs_alloc_scratch(subject->block, &subject->scratch) != HS_SUCCESS ||
		hs_alloc_scratch(subject->stream, &subject->scratch) != HS_SUCCESS) {
		subject_close(subject);
		return NULL;
	}
	return subject;
}

static void *subject_open(const char *const *patterns, size_t count)
{
	return open_subject(patterns, count, false);
}

static void *subject_open_shipped(const char *const *patterns, size_t count)
{
	return open_subject(patterns, count, true);
}

static int on_match(
	unsigned id, unsigned long long from, unsigned long long to, unsigned flags, void *arg)
{
	struct selftest_ends *ends = arg;

	(void)from;
	(void)flags;
	if (to <= SELFTEST_TEXT_BYTES) {
		ends[id].at[to] = true;
	}
	return 0;
}

static bool subject_search(
	void *arg, const char *text, size_t length, size_t split, struct selftest_ends *out_ends)
{
	struct subject *subject = arg;
	hs_stream_t *stream;
	bool is_ok;

	if (split == 0) {
		return hs_scan(subject->block, text, (unsigned)length, 0, subject->scratch,
			       on_match, out_ends) == HS_SUCCESS;
	}
	if (hs_open_stream(subject->stream, 0, &stream) != HS_SUCCESS) {
		return false;
	}
	is_ok = hs_scan_stream(stream, text, (unsigned)split, 0, subject->scratch, on_match,
			out_ends) == HS_SUCCESS &&
		hs_scan_stream(stream, text + split, (unsigned)(length - split), 0,
			subject->scratch, on_match, out_ends) == HS_SUCCESS;
	return hs_close_stream(stream, subject->scratch, on_match, out_ends) == HS_SUCCESS && is_ok;
}

static const struct selftest_ops library_ops = {
	.open = subject_open,
	.close = subject_close,
	.search = subject_search,
};

static const struct selftest_ops shipped_ops = {
	.open = subject_open_shipped,
	.close = subject_close,
	.search = subject_search,
};

const struct selftest_ops *selftest_library_ops(void)
{
	return &library_ops;
}

/* The library does not say that it got no memory: a limit makes it likely. */
static bool may_lack_space(const char *cause, struct rlimit *out_limit)
{
	return strstr(cause, "cannot be compiled") != NULL &&
		getrlimit(RLIMIT_AS, out_limit) == 0 && out_limit->rlim_cur != RLIM_INFINITY;
}

int selftest_library(bool compiles, char *reason, size_t reason_bytes)
{
	struct rlimit limit;
	char cause[160];

	if (selftest_run(compiles ? &library_ops : &shipped_ops, cause, sizeof(cause)) == 0) {
		return 0;
	}
	if (may_lack_space(cause, &limit)) {
		snprintf(reason, reason_bytes,
			"the regular-expression library cannot be tested below `ulimit -v` %llu: "
			"%s; raise that (LimitAS= in the systemd unit)",
			(unsigned long long)limit.rlim_cur / 1024, cause);
		return -EINVAL;
	}
	snprintf(reason, reason_bytes,
		"the regular-expression library (libhs %.*s) loses matches, so it is not used: "
		"%s. Build against the package libhyperscan-dev instead",
		(int)strcspn(hs_version(), " "), hs_version(), cause);
	return -EINVAL;
}

#else

const struct selftest_ops *selftest_library_ops(void)
{
	return NULL;
}

int selftest_library(bool compiles, char *reason, size_t reason_bytes)
{
	(void)compiles;
	(void)reason;
	(void)reason_bytes;
	return 0;
}

#endif
