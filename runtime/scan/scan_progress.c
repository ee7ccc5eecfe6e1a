/* SPDX-License-Identifier: MIT */
/*
 * The counts of a scan, at its end and meanwhile.
 *
 * Called by workers and by the adding thread; see [PROGRESS-1] in scan.h.
 */
#include "runtime/scan/scan.h"
#include "runtime/base/check.h"

#include <string.h>

/* All of its fields are counts. */
_Static_assert(sizeof(struct pinion_scan_stats) == PIN_SCAN_COUNTS * sizeof(uint64_t),
	"a count for each field");

static void add_counts(struct pinion_scan_stats *sum, const struct pinion_scan_stats *part)
{
	sum->done += part->done;
	sum->failed += part->failed;
	sum->skipped += part->skipped;
	sum->cancelled += part->cancelled;
	sum->read_bytes += part->read_bytes;
	sum->hole_bytes += part->hole_bytes;
	sum->direct_files += part->direct_files;
	sum->ignored += part->ignored;
	sum->seen = sum->done + sum->failed + sum->skipped + sum->cancelled + sum->ignored;
}

void pin_scan_sum(const struct pinion_scan *scan, struct pinion_scan_stats *out_sum)
{
	uint32_t worker_count = pinion_runtime_worker_count(scan->runtime);
	uint64_t seen = scan->totals.own.seen;

	*out_sum = (struct pinion_scan_stats){.seen = 0};
	add_counts(out_sum, &scan->totals.own);
	for (uint32_t i = 0; i < worker_count; i++) {
		const struct pinion_scan_stats *part = &scan->workers[i].totals.own;

		PIN_DCHECK(part->hole_bytes <= part->read_bytes);
		seen += part->seen;
		add_counts(out_sum, part);
	}
	PIN_CHECK(out_sum->seen == seen);
}

static void publish(struct pin_scan_totals *totals)
{
	uint64_t counts[PIN_SCAN_COUNTS];

	memcpy(counts, &totals->own, sizeof(counts));
	for (size_t i = 0; i < PIN_SCAN_COUNTS; i++) {
		pin_store_relaxed_u64(&totals->shown[i], counts[i]);
	}
}

static void add_shown(struct pinion_scan_stats *sum, struct pin_scan_totals *totals)
{
	uint64_t counts[PIN_SCAN_COUNTS];
	struct pinion_scan_stats part;

	for (size_t i = 0; i < PIN_SCAN_COUNTS; i++) {
		counts[i] = pin_load_relaxed_u64(&totals->shown[i]);
	}
	memcpy(&part, counts, sizeof(part));
	add_counts(sum, &part);
}

void pin_scan_show_progress(struct pinion_scan *scan, struct pin_scan_totals *totals)
{
	uint32_t worker_count = pinion_runtime_worker_count(scan->runtime);
	struct pinion_scan_stats sum = {.seen = 0};
	uint64_t now = scan->host->now_ns();
	uint64_t due = pin_load_relaxed_u64(&scan->progress_due_ns);

	publish(totals);
	if (now < due ||
		!pin_cas_acq_rel_u64(&scan->progress_due_ns, &due, UINT64_MAX)) { /* [PROGRESS-1] */
		return;
	}
	add_shown(&sum, &scan->totals);
	for (uint32_t i = 0; i < worker_count; i++) {
		add_shown(&sum, &scan->workers[i].totals);
	}
	scan->config.progress(scan->arg, &sum);
	pin_store_release_u64(/* [PROGRESS-1] */
		&scan->progress_due_ns, now + scan->config.progress_ns);
}
