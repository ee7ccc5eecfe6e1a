/* SPDX-License-Identifier: MIT */
/*
 * The counts, and their JSON for --stats=json.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tools/scan/tally.h"

#include "tools/amount.h"
#include "tools/report.h"
#include "tools/throttle.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static const char *const skip_names[TALLY_SKIP_COUNT] = {
	[TALLY_SYMLINK] = "symlink",
	[TALLY_FIFO] = "fifo",
	[TALLY_SOCKET] = "socket",
	[TALLY_CHARACTER_DEVICE] = "character_device",
	[TALLY_BLOCK_DEVICE] = "block_device",
	[TALLY_BINARY] = "binary",
	[TALLY_GONE] = "gone",
	[TALLY_SPECIAL] = "special",
};

static enum tally_skip kind_of(uint32_t mode)
{
	switch (mode) {
	case S_IFIFO:
		return TALLY_FIFO;
	case S_IFSOCK:
		return TALLY_SOCKET;
	case S_IFCHR:
		return TALLY_CHARACTER_DEVICE;
	case S_IFBLK:
		return TALLY_BLOCK_DEVICE;
	default:
		return TALLY_SPECIAL;
	}
}

static const char *const reason_names[PINION_WALK_REASONS] = {
	[PINION_WALK_BY_IGNORE_FILE] = "ignored",
	[PINION_WALK_BY_NAME] = "hidden",
	[PINION_WALK_BY_PATTERN] = "excluded",
	[PINION_WALK_BY_FILE_SYSTEM] = "other_file_system",
	[PINION_WALK_BY_SIZE] = "size",
	[PINION_WALK_BY_TIME] = "time",
	[PINION_WALK_BY_LINK] = "hard_link",
	[PINION_WALK_BY_SHARD] = "other_shard",
};

void tally_add(struct tally *tally, const struct pinion_scan_file *file,
	enum pinion_scan_outcome outcome, int error)
{
	int positive = error < 0 ? -error : error;

	switch (outcome) {
	case PINION_SCAN_DONE:
		tally->scanned++;
		return;
	case PINION_SCAN_CANCELLED:
		tally->cancelled++;
		return;
	case PINION_SCAN_IGNORED:
		tally->left_out[file->reason < PINION_WALK_REASONS ? file->reason : 0]++;
		return;
	case PINION_SCAN_SKIPPED:
		tally->skipped[error == 0	   ? TALLY_SYMLINK
				: error == -ENOENT ? TALLY_GONE
						   : kind_of(file->mode)]++;
		return;
	case PINION_SCAN_FAILED:
		break;
	}
	tally->failed[positive < TALLY_ERRNO_COUNT ? positive : 0]++;
}

void tally_sum(struct tally *sum, const struct tally *part)
{
	sum->scanned += part->scanned;
	sum->cancelled += part->cancelled;
	for (size_t i = 0; i < PINION_WALK_REASONS; i++) {
		sum->left_out[i] += part->left_out[i];
	}
	sum->submodules += part->submodules;
	for (size_t i = 0; i < TALLY_SKIP_COUNT; i++) {
		sum->skipped[i] += part->skipped[i];
	}
	for (size_t i = 0; i < TALLY_ERRNO_COUNT; i++) {
		sum->failed[i] += part->failed[i];
	}
}

static void append_count(struct output_text *out, const char *name, uint64_t count)
{
	output_text_format(out, "%s\"%s\":%llu", out->bytes[out->length - 1] == '{' ? "" : ",",
		name, (unsigned long long)count);
}

static void append_skipped(struct output_text *out, const struct tally *tally)
{
	output_text_string(out, ",\"skipped\":{");
	for (size_t i = 0; i < TALLY_SKIP_COUNT; i++) {
		append_count(out, skip_names[i], tally->skipped[i]);
	}
	for (size_t i = 0; i < PINION_WALK_REASONS; i++) {
		append_count(out, reason_names[i], tally->left_out[i]);
	}
	if (tally->submodules > 0) {
		append_count(out, "submodule", tally->submodules);
	}
	append_count(out, "cancelled", tally->cancelled);
	output_text_string(out, "}");
}

/* Only those that there were: {"EACCES":2}. */
static void append_failed(struct output_text *out, const struct tally *tally)
{
	output_text_string(out, ",\"failed\":{");
	for (size_t i = 0; i < TALLY_ERRNO_COUNT; i++) {
		const char *name = strerrorname_np((int)i);

		if (tally->failed[i] > 0) {
			append_count(
				out, i == 0 || name == NULL ? "other" : name, tally->failed[i]);
		}
	}
	output_text_string(out, "}");
}

static uint64_t entries_of(const struct archive_counts *archives)
{
	return archives->scanned + archives->links + archives->encrypted + archives->limited +
		archives->binary + archives->failed;
}

static void append_archives(struct output_text *out, const struct archive_counts *archives)
{
	output_text_string(out, ",\"archives\":{");
	append_count(out, "opened", archives->archives);
	append_count(out, "entries", entries_of(archives));
	append_count(out, "scanned", archives->scanned);
	append_count(out, "links", archives->links);
	append_count(out, "encrypted", archives->encrypted);
	append_count(out, "limited", archives->limited);
	append_count(out, "binary", archives->binary);
	append_count(out, "failed", archives->failed);
	append_count(out, "bytes", archives->bytes);
	output_text_string(out, "}");
}

static void append_targets(struct output_text *out, const struct throttle_targets *targets)
{
	output_text_string(out, ",\"targets\":{");
	append_count(out, "bytes_per_second", targets->bytes_per_second);
	append_count(out, "halved", targets->halved);
	if (targets->has_latency) {
		append_count(out, "slow", targets->slow);
		append_count(out, "timed", targets->timed);
	}
	output_text_string(out, "}");
}

void tally_note_archives(const struct archive_counts *archives)
{
	char amount[AMOUNT_TEXT_BYTES];

	report_note("archives: %llu, with %llu entries: %llu scanned, %llu links, %llu encrypted, "
		    "%llu limited, %llu failed; %s",
		(unsigned long long)archives->archives, (unsigned long long)entries_of(archives),
		(unsigned long long)archives->scanned, (unsigned long long)archives->links,
		(unsigned long long)archives->encrypted, (unsigned long long)archives->limited,
		(unsigned long long)archives->failed,
		amount_write(amount, (double)archives->bytes));
}

void tally_write(const struct tally *tally, const struct pinion_scan_stats *totals,
	const struct tally_extra *extra, struct output_text *out)
{
	output_text_string(out, "{");
	append_count(out, "seen", totals->seen);
	append_count(out, "scanned", tally->scanned);
	append_skipped(out, tally);
	append_failed(out, tally);
	append_count(out, "findings", extra->findings);
	append_count(out, "baseline", extra->known);
	append_count(out, "allowed", extra->allowed);
	append_count(out, "bytes", totals->read_bytes);
	append_count(out, "hole_bytes", totals->hole_bytes);
	append_count(out, "direct_files", totals->direct_files);
	if (extra->archives != NULL) {
		append_archives(out, extra->archives);
	}
	if (extra->yara != NULL) {
		output_text_string(out, ",\"yara\":{");
		append_count(out, "searched", extra->yara->searched);
		append_count(out, "larger", extra->yara->larger);
		append_count(out, "failed", extra->yara->failed);
		output_text_string(out, "}");
	}
	if (extra->targets != NULL) {
		append_targets(out, extra->targets);
	}
	output_text_format(out, ",\"seconds\":%.3f}\n", extra->seconds);
}
