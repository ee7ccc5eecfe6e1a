/* SPDX-License-Identifier: MIT */
/*
 * Makes and frees a scan: checks and completes its configuration, divides the
 * descriptors that the process may still open, allocates its memory.
 *
 * Called on the thread that uses the scan; scan.c has everything between.
 */
#include "runtime/scan/scan.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/base/log.h"
#include "runtime/base/versioned.h"
#include "runtime/host/heap.h"
#include "runtime/io/file.h"
#include "runtime/scan/walk_tasks.h"
#include "runtime/task/entry.h"

#include <dirent.h>
#include <errno.h>
#include <pinion/buffer.h>
#include <sys/resource.h>

enum {
	FILES_PER_WORKER = 64,
	FILES_MAX = 65536,
	WINDOWS_STANDARD = 64,
	WINDOWS_MAX = 1024,
	OVERLAP_BYTES_MAX = 1 << 20,
	/*
	 * Copied data should still be in the core's own cache when the engine
	 * comes to it, and each window costs some 4 us besides. A search for a
	 * word takes 1.00 and 1.04 of its time with half of that, 0.99 with
	 * twice as much; one for the built-in rules 1.02 with half of it (EPYC
	 * with L2 caches of 512 KiB, 512 MiB of files).
	 */
	CACHED_WINDOW_BYTES = 512 << 10,
	/*
	 * Descriptors left for the walk, a list being read, the caller's needs.
	 */
	SPARE_DESCRIPTORS = 6,
	/* One in this number of the rest is for roots of trees. */
	ROOTS_PART = 8,
	/* So is one in this number, for open directories of a walk. */
	DIRECTORIES_PART = 8,
	USER_ALIGN = 64,
	USER_BYTES_MAX = 1 << 20,
};

/* So that the sum with any time fits. */
#define FILE_TIMEOUT_NS_MAX (UINT64_C(1) << 62)

void pinion_scan_config_init_sized(struct pinion_scan_config *config, uint32_t size)
{
	struct pinion_scan_config full = {
		.size = size,
		.windows_in_flight = WINDOWS_STANDARD,
	};

	pin_sized_give(config, size, &full, sizeof(full));
}

/* As many as the process may still open, but at least two. */
static uint32_t descriptors_left(uint32_t wanted)
{
	struct rlimit limit;
	uint64_t used = SPARE_DESCRIPTORS;
	DIR *folder = opendir("/proc/self/fd");

	PIN_DCHECK(wanted >= 2);
	if (folder != NULL) {
		while (readdir(folder) != NULL) {
			used++;
		}
		closedir(folder);
	}
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY ||
		limit.rlim_cur >= used + wanted) {
		return wanted;
	}
	return limit.rlim_cur > used + 2 ? (uint32_t)(limit.rlim_cur - used) : 2;
}

/*
 * Divides the descriptors that are left among files, roots of trees, and
 * directories of a walk. Each file may be of a tree of its own, so as many
 * roots as files are enough. Where that is too much, files get seven of eight:
 * most trees have many files, and there are no anchors (anchor.h).
 */
static void divide_descriptors(uint32_t *files, uint32_t worker_count, uint32_t *out_roots,
	uint32_t *out_directories, bool *out_has_anchors)
{
	uint32_t directories = pin_walk_directories(worker_count);
	uint32_t anchors = directories + 1; /* each walker's, and that of files */
	uint32_t wanted = 2 * *files + directories;
	uint32_t left = descriptors_left(wanted + anchors);
	uint32_t roots;

	*out_has_anchors = left == wanted + anchors;
	left = left < wanted ? left : wanted;
	PIN_DCHECK(*files > 0 && left >= 2);
	if (directories > left / DIRECTORIES_PART) {
		directories = left / DIRECTORIES_PART;
	}
	left -= directories;
	*out_directories = 1 + directories; /* one is of those that are spared */
	roots = left / ROOTS_PART;
	roots = roots > 0 ? roots : 1;
	if (*files > left - roots) {
		*files = left - roots;
	}
	*out_roots = left - *files;
	PIN_DCHECK(*files > 0 && *out_roots >= roots);
}

/* The fields that have a range of their own, as the public header names it. */
static int check_ranges(const struct pinion_scan_config *config, struct pin_refusal *why)
{
	const struct {
		const char *name;
		uint64_t value;
		uint64_t min;
		uint64_t max;
	} ranges[] = {
		{"order", config->order, 0, PINION_SCAN_IN_ORDER},
		{"direct", config->direct, 0, PINION_DIRECT_NEVER},
		{"overlap_bytes", config->overlap_bytes, 0, OVERLAP_BYTES_MAX},
		{"files_in_flight", config->files_in_flight, 0, FILES_MAX},
		{"windows_in_flight", config->windows_in_flight, 1, WINDOWS_MAX},
		{"file_user_bytes", config->file_user_bytes, 0, USER_BYTES_MAX},
		{"report_holes", config->report_holes, 0, 1},
		{"skip_ignored", config->skip_ignored, 0, 1},
		{"report_gaps", config->report_gaps, 0, 1},
		{"follow_links", config->follow_links, 0, 1},
		{"walk_order", config->walk_order, 0, PINION_SCAN_WALK_BY_EXTENT},
		{"progress_ns", config->progress_ns, 0, FILE_TIMEOUT_NS_MAX},
		{"file_timeout_ns", config->file_timeout_ns, 0, FILE_TIMEOUT_NS_MAX},
	};

	for (size_t i = 0; i < PIN_ARRAY_COUNT(ranges); i++) {
		if (ranges[i].value < ranges[i].min || ranges[i].value > ranges[i].max) {
			return pin_refuse(why, -EINVAL, "%s is %llu, not %llu to %llu",
				ranges[i].name, (unsigned long long)ranges[i].value,
				(unsigned long long)ranges[i].min,
				(unsigned long long)ranges[i].max);
		}
	}
	return 0;
}

/*
 * A window and its overlap have to fit into one buffer. 0: all that the overlap
 * leaves.
 */
static int complete_window(
	struct pinion_scan_config *config, uint64_t buffer_bytes, struct pin_refusal *why)
{
	uint64_t overlap = pin_round_up(config->overlap_bytes, PIN_PAGE_BYTES);
	uint64_t window = config->window_bytes;

	if (window % PIN_PAGE_BYTES != 0) {
		return pin_refuse(why, -EINVAL, "window_bytes is %llu, not a multiple of %d",
			(unsigned long long)window, PIN_PAGE_BYTES);
	}
	if (overlap + (window != 0 ? window : PIN_PAGE_BYTES) > buffer_bytes) {
		return pin_refuse(why, -EINVAL,
			"window_bytes is %llu and overlap_bytes %u: together, each rounded up to "
			"%d, more than the runtime's buffer_bytes, %llu",
			(unsigned long long)window, config->overlap_bytes, PIN_PAGE_BYTES,
			(unsigned long long)buffer_bytes);
	}
	config->window_bytes = (uint32_t)(window != 0 ? window : buffer_bytes - overlap);
	return 0;
}

static int complete_config(struct pinion_scan_config *config, uint32_t worker_count,
	uint64_t buffer_bytes, struct pin_refusal *why)
{
	int rc = check_ranges(config, why);

	rc = rc < 0 ? rc : complete_window(config, buffer_bytes, why);
	if (rc == 0 && config->files_in_flight == 0) {
		config->files_in_flight = worker_count * FILES_PER_WORKER;
	}
	config->file_user_bytes = (uint32_t)pin_round_up(config->file_user_bytes, USER_ALIGN);
	return rc;
}

/* Takes the caller's struct, and fills in what it leaves to the library. */
static int accept_config(struct pinion_scan_config *out, const struct pinion_scan_config *given,
	const struct pinion_scan_ops *ops, const struct pinion_runtime *runtime)
{
	struct pin_refusal why;
	int rc;

	if (given->size < sizeof(*out)) {
		rc = pin_refuse(&why, -EINVAL, "size is %u: call pinion_scan_config_init() first",
			given->size);
	} else if (ops->window == NULL || ops->report == NULL) {
		rc = pin_refuse(&why, -EINVAL, "ops->%s is NULL",
			ops->window == NULL ? "window" : "report");
	} else if (pin_sized_take(out, sizeof(*out), given, given->size) < 0) {
		rc = pin_refuse(&why, -E2BIG,
			"size is %u, and a field that this library does not know is set",
			given->size);
	} else {
		rc = complete_config(out, pinion_runtime_worker_count(runtime),
			pin_runtime_buffer_bytes(runtime), &why);
	}
	if (rc < 0) {
		pin_log(pin_runtime_log(runtime), PINION_LOG_ERROR, "scan refused: %s", why.text);
	}
	return rc;
}

/* The caller's struct may go; its filter is copied, and checked. */
static int create_filter(struct pinion_runtime *runtime, struct pinion_scan_config *config,
	struct pin_walk_filter **out_filter)
{
	int rc = pin_walk_filter_create(pin_runtime_host(runtime), config->filter, out_filter);

	config->filter = NULL;
	if (rc < 0 && rc != -ENOMEM) {
		pin_log(pin_runtime_log(runtime), PINION_LOG_ERROR,
			"scan refused: filter: a field or a line of it is out of range, error %d",
			rc);
	}
	return rc;
}

static void init_slots(struct pinion_scan *scan)
{
	uint32_t track_count = scan->config.windows_in_flight;

	PIN_DCHECK(scan->free_list == NULL && track_count > 0);
	PIN_DCHECK(scan->config.file_user_bytes % USER_ALIGN == 0);
	for (uint32_t i = scan->slot_count; i > 0; i--) {
		struct pin_slot *slot = &scan->slots[i - 1];

		slot->scan = scan;
		slot->file.file.fd = -1;
		slot->reader.tracks = &scan->tracks[(size_t)(i - 1) * track_count];
		if (scan->user_memory != NULL) {
			slot->user =
				scan->user_memory + (size_t)(i - 1) * scan->config.file_user_bytes;
		}
		slot->next = scan->free_list;
		scan->free_list = slot;
	}
	PIN_DCHECK(scan->free_list == scan->slots);
}

static void *allocate(const struct pin_host *host, size_t count, size_t size)
{
	return pin_heap_zeroed(host, PIN_CACHE_LINE, count, size);
}

static void release(const struct pin_host *host, void *memory, size_t count, size_t size)
{
	pin_heap_release(host, memory, PIN_CACHE_LINE, count, size);
}

static size_t track_count(const struct pinion_scan *scan)
{
	return (size_t)scan->slot_count * scan->config.windows_in_flight;
}

void pin_scan_free(struct pinion_scan *scan)
{
	const struct pin_host *host = scan->host;

	for (uint32_t i = 0; scan->slots != NULL && i < scan->slot_count; i++) {
		pin_heap_release(
			host, scan->slots[i].path, PIN_HEAP_ALIGN, scan->slots[i].path_capacity, 1);
	}
	pin_walk_filter_destroy(scan->walk_means.filter);
	release(host, scan->slots, scan->slot_count, sizeof(*scan->slots));
	pin_heap_release(
		host, scan->tracks, PIN_HEAP_ALIGN, track_count(scan), sizeof(*scan->tracks));
	release(host, scan->user_memory, scan->slot_count, scan->config.file_user_bytes);
	release(host, scan->workers, pinion_runtime_worker_count(scan->runtime),
		sizeof(*scan->workers));
	release(host, scan, 1, sizeof(*scan));
}

/* Divides the descriptors, then allocates the scan: its walk needs a share. */
static int create_with_walk(struct pinion_runtime *runtime, struct pinion_scan_config *config,
	struct pinion_scan **out_scan)
{
	const struct pin_host *host = pin_runtime_host(runtime);
	struct pin_walk_filter *filter;
	struct pinion_scan *scan;
	uint32_t roots_max = 0;
	uint32_t directories_max = 0;
	bool has_anchors;
	int rc;

	divide_descriptors(&config->files_in_flight, pinion_runtime_worker_count(runtime),
		&roots_max, &directories_max, &has_anchors);
	PIN_CHECK(config->files_in_flight > 0 && roots_max > 0);
	rc = create_filter(runtime, config, &filter);
	if (rc < 0) {
		return rc;
	}
	scan = allocate(host, 1, sizeof(*scan));
	if (scan == NULL) {
		pin_walk_filter_destroy(filter);
		return -ENOMEM;
	}
	scan->runtime = runtime;
	scan->host = host;
	scan->config = *config;
	scan->slot_count = config->files_in_flight;
	scan->batch_max = 1;
	scan->roots_max = roots_max;
	scan->walk_means = (struct pin_walk_means){
		.host = host,
		.is_cancelled = &scan->is_cancelled,
		.runtime = config->walk_order == PINION_SCAN_WALK_ANY ? runtime : NULL,
		.open_max = directories_max,
		.has_no_anchors = !has_anchors,
		.filter = filter,
	};
	*out_scan = scan;
	return 0;
}

/* Memory allocated before a failure is pin_scan_free()'s to release. */
static int allocate_parts(struct pinion_scan *scan, uint32_t worker_count)
{
	const struct pinion_scan_config *config = &scan->config;

	scan->slots = allocate(scan->host, scan->slot_count, sizeof(*scan->slots));
	/* Megabytes, of which small files use little: touched when needed. */
	scan->tracks = pin_heap_zeroed(
		scan->host, PIN_HEAP_ALIGN, track_count(scan), sizeof(*scan->tracks));
	scan->workers = allocate(scan->host, worker_count, sizeof(*scan->workers));
	if (config->file_user_bytes > 0) {
		scan->user_memory = allocate(scan->host, scan->slot_count, config->file_user_bytes);
	}
	if (scan->slots == NULL || scan->tracks == NULL || scan->workers == NULL ||
		(config->file_user_bytes > 0 && scan->user_memory == NULL)) {
		return -ENOMEM;
	}
	return 0;
}

static void init_parts(struct pinion_scan *scan, uint32_t worker_count)
{
	uint64_t slot_count = scan->slot_count;
	uint64_t canceller_count = worker_count;
	int rc;

	rc = pinion_budget_init(&scan->free_slots, NULL, &slot_count, 1);
	PIN_CHECK(rc == 0);
	rc = pinion_budget_init(&scan->idle_cancellers, NULL, &canceller_count, 1);
	PIN_CHECK(rc == 0);
	for (uint32_t i = 0; i < worker_count; i++) {
		scan->workers[i].scan = scan;
	}
	init_slots(scan);
}

/*
 * Allocates the slots, tracks and user memory of all files that may be in
 * flight at once.
 */
int pinion_scan_create(struct pinion_runtime *runtime, const struct pinion_scan_config *config,
	const struct pinion_scan_ops *ops, void *arg, struct pinion_scan **out_scan)
{
	uint32_t worker_count = pinion_runtime_worker_count(runtime);
	struct pinion_scan_config complete;
	struct pinion_scan_config standard;
	struct pinion_scan *scan;
	int rc;

	if (config == NULL) {
		pinion_scan_config_init(&standard);
		config = &standard;
	}
	rc = accept_config(&complete, config, ops, runtime);
	rc = rc < 0 ? rc : create_with_walk(runtime, &complete, &scan);
	if (rc < 0) {
		return rc;
	}
	scan->ops = *ops;
	scan->arg = arg;
	scan->cached_window_bytes = complete.window_bytes;
	PIN_DCHECK(complete.window_bytes > 0 && complete.window_bytes % PIN_PAGE_BYTES == 0);
	if (config->window_bytes == 0 && complete.window_bytes > CACHED_WINDOW_BYTES) {
		scan->cached_window_bytes = CACHED_WINDOW_BYTES;
	}
	rc = allocate_parts(scan, worker_count);
	if (rc < 0) {
		pin_scan_free(scan);
		return rc;
	}
	init_parts(scan, worker_count);
	pin_live_add(&scan->live, PIN_LIVE_SCAN, scan, runtime);
	*out_scan = scan;
	return 0;
}
