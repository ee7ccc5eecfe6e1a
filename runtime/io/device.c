/* SPDX-License-Identifier: MIT */
/*
 * The disks of a runtime: their depth, credit and rates, and the workers'
 * accounts with them.
 *
 * The worker that starts a transfer looks its disk up here; the worker that
 * ends one checks from time to time whether an interval is over, and if so
 * learns from the sums of all accounts (device.h).
 *
 * Invariant: the list of disks only grows, so a lookup needs no lock; limits
 * and depths change under the lock.
 */
#include "runtime/io/device.h"
#include "runtime/base/check.h"

#include <errno.h>

enum {
	/* No sooner than that is an interval over: io/device_depth.c. */
	LOOK_NS = 10 * 1000 * 1000,
	/* To begin with: 8 MiB, or this number of small requests. */
	START_UNITS = 128,
	PAGES_PER_UNIT = PIN_DEPTH_UNIT_BYTES / PIN_PAGE_BYTES,
	/* For a drive with heads, pages for each of its few requests. */
	FEW_PAGES = 256,
};

static uint64_t to_pages(uint64_t bytes)
{
	return bytes / PIN_PAGE_BYTES + (bytes % PIN_PAGE_BYTES != 0);
}

/* The depth that was found, within what the configuration allows. */
static void publish(struct pin_disk *disk, const struct pinion_tuning *tuning)
{
	uint64_t count = disk->depth.depth;
	uint64_t pages = count * PAGES_PER_UNIT;
	uint64_t pages_max = to_pages(tuning->depth_bytes_max);

	PIN_DCHECK(count >= disk->depth.options.min);
	PIN_DCHECK(count <= disk->depth.options.max);
	if (disk->depth.is_few) {
		PIN_DCHECK(disk->depth.options.few > 0);
		count = disk->depth.options.few;
		pages = count * FEW_PAGES;
	}
	count = count < tuning->depth_count_max ? count : tuning->depth_count_max;
	pages = pages < pages_max ? pages : pages_max;
	if (pin_load_relaxed_u64(&disk->credit.limit) !=
		pin_credit_amount((uint32_t)count, (uint32_t)pages)) {
		pin_credit_set(&disk->credit, count, pages, false);
	}
}

/*
 * The range of the search: from the configured minimum to the larger of both
 * maxima, in units of 64 KiB.
 */
static void begin_depth(struct pin_disk *disk, const struct pinion_tuning *tuning)
{
	uint64_t units = tuning->depth_bytes_max / PIN_DEPTH_UNIT_BYTES;
	struct pin_depth_options options = {
		.few = disk->is_rotational ? tuning->depth_rotational : 0,
		.min = tuning->depth_min,
		.start = START_UNITS,
	};

	units = units > tuning->depth_count_max ? units : tuning->depth_count_max;
	options.max = units < PIN_CREDIT_COUNT_MAX ? (uint32_t)units : PIN_CREDIT_COUNT_MAX;
	options.max = options.max < options.min ? options.min : options.max;
	options.start = options.start < options.min ? options.min : options.start;
	options.start = options.start > options.max ? options.max : options.start;
	PIN_DCHECK(options.min <= options.start && options.start <= options.max);
	pin_depth_init(&disk->depth, &options);
	disk->base_ns = 0;
}

/* Limits that were set count; those that were not are found out. */
static void apply_depth(struct pin_disk *disk, const struct pinion_tuning *tuning,
	const struct pinion_limits *limits)
{
	uint64_t count = limits->depth_count;
	uint64_t pages = to_pages(limits->depth_bytes);

	if (count == 0 && pages == 0) {
		begin_depth(disk, tuning);
		PIN_DCHECK(disk->base_ns == 0); /* its first interval is still to begin */
		publish(disk, tuning);
		pin_store_relaxed_u64(&disk->look_ns, 0);
		return;
	}
	pin_store_relaxed_u64(&disk->look_ns, UINT64_MAX);
	pin_credit_set(&disk->credit, count == 0 ? PIN_CREDIT_COUNT_MAX : count,
		pages == 0 ? PIN_CREDIT_PAGES_MAX : pages, true);
}

static void apply_rates(struct pin_limiter *limiter, const struct pin_host *host,
	const struct pinion_limits *limits)
{
	const uint64_t rates[PIN_LIMITED_KINDS] = {
		[PIN_LIMITED_BYTES] = limits->bytes_per_second,
		[PIN_LIMITED_REQUESTS] = limits->requests_per_second,
	};

	/* Hardly any request is counted by the former one: relaxed. */
	pin_store_relaxed_u64(&limiter->slow_ns, limits->slow_ns);
	pin_limiter_set(limiter, host, rates);
}

void pin_disks_init(struct pin_disks *disks, const struct pin_host *host,
	const struct pinion_tuning *tuning, uint32_t worker_count)
{
	PIN_CHECK(worker_count > 0); /* what a disk may have is divided by it */
	*disks = (struct pin_disks){
		.worker_count = worker_count,
		.limiter.worker_count = worker_count,
		.standard =
			{
				.depth_count = tuning->depth_count,
				.depth_bytes = tuning->depth_bytes,
				.bytes_per_second = tuning->bytes_per_second,
				.requests_per_second = tuning->requests_per_second,
			},
	};
	apply_rates(&disks->limiter, host, &disks->standard);
}

static struct pin_disk *look_up(struct pin_disks *disks, uint64_t device, uint32_t count)
{
	PIN_CHECK(count <= PIN_DISKS);
	for (uint32_t i = 0; i < count; i++) {
		if (disks->disks[i].device == device) {
			return &disks->disks[i];
		}
	}
	return NULL;
}

static void limit(struct pin_disks *disks, struct pin_disk *disk, const struct pin_host *host,
	const struct pinion_tuning *tuning, const struct pinion_limits *limits)
{
	static const struct pinion_limits none;

	disk->is_manual = limits != NULL;
	apply_rates(&disk->limiter, host, limits == NULL ? &none : limits);
	apply_depth(disk, tuning, limits == NULL ? &disks->standard : limits);
}

static struct pin_early_limits *find_early(struct pin_disks *disks, uint64_t device)
{
	uint32_t count = pin_load_relaxed_u32(&disks->early_count);

	PIN_CHECK(count <= PIN_DISKS);
	for (uint32_t i = 0; i < count; i++) {
		if (disks->early[i].block.device == device) {
			return &disks->early[i];
		}
	}
	return NULL;
}

static void drop_early(struct pin_disks *disks, struct pin_early_limits *early)
{
	uint32_t count = pin_load_relaxed_u32(&disks->early_count);

	PIN_CHECK(count > 0 && early < &disks->early[count]);
	*early = disks->early[count - 1];
	pin_store_relaxed_u32(&disks->early_count, count - 1);
}

/* Places that are neither counted nor reserved. */
static uint32_t places_left(const struct pin_disks *disks)
{
	uint32_t used =
		pin_load_relaxed_u32(&disks->count) + pin_load_relaxed_u32(&disks->early_count);

	PIN_CHECK(used <= PIN_DISKS);
	return PIN_DISKS - used;
}

/* In a place that is left, or reserved for it; with the limits it has. */
static struct pin_disk *add(struct pin_disks *disks, const struct pin_host *host,
	const struct pinion_tuning *tuning, const struct pin_block *block)
{
	uint32_t count = pin_load_relaxed_u32(&disks->count);
	struct pin_early_limits *early = find_early(disks, block->device);
	struct pin_disk *disk = &disks->disks[count];

	PIN_CHECK(count < PIN_DISKS);
	disk->device = block->device;
	disk->is_rotational = block->is_rotational;
	disk->is_polled = block->is_polled;
	disk->limiter.worker_count = disks->worker_count;
	pin_credit_init(&disk->credit, host, disks->worker_count);
	limit(disks, disk, host, tuning, early == NULL ? NULL : &early->limits);
	if (early != NULL) {
		drop_early(disks, early);
	}
	pin_store_release_u32(&disks->count, count + 1); /* [DISK-1] */
	return disk;
}

/*
 * Looks the disk up again under the lock, as another worker may have added it.
 * Beyond the last place disks share one.
 */
static struct pin_disk *find_or_add(struct pin_disks *disks, const struct pin_host *host,
	const struct pinion_tuning *tuning, const struct pin_block *block)
{
	struct pin_disk *disk = look_up(disks, block->device, pin_load_relaxed_u32(&disks->count));

	if (disk != NULL) {
		return disk;
	}
	if (find_early(disks, block->device) != NULL || places_left(disks) > 0) {
		return add(disks, host, tuning, block);
	}
	while (pin_load_relaxed_u32(&disks->early_count) > 0) {
		struct pin_block reserved = disks->early[0].block;

		add(disks, host, tuning, &reserved);
	}
	return &disks->disks[PIN_DISKS - 1];
}

struct pin_disk *pin_disks_find(struct pin_disks *disks, const struct pin_host *host,
	const struct pinion_tuning *tuning, uint64_t device)
{
	struct pin_block block = pin_block_find("", device);
	struct pin_disk *disk;

	pin_lock_acquire(&disks->lock, host);
	disk = find_or_add(disks, host, tuning, &block);
	PIN_CHECK((size_t)(disk - disks->disks) < PIN_DISKS);
	pin_lock_release(&disks->lock, host);
	return disk;
}

void pin_disks_limit(struct pin_disks *disks, const struct pin_host *host,
	const struct pinion_tuning *tuning, const struct pinion_limits *limits)
{
	bool is_depth_new;

	pin_lock_acquire(&disks->lock, host);
	is_depth_new = limits->depth_count != disks->standard.depth_count ||
		limits->depth_bytes != disks->standard.depth_bytes;
	disks->standard = *limits;
	apply_rates(&disks->limiter, host, limits);
	for (uint32_t i = 0; i < pin_load_relaxed_u32(&disks->count); i++) {
		/* A found depth stays, however often the rates change. */
		if (is_depth_new && !disks->disks[i].is_manual) {
			apply_depth(&disks->disks[i], tuning, limits);
			pin_credit_serve(&disks->disks[i].credit);
		}
	}
	pin_lock_release(&disks->lock, host);
}

/* Of a disk that is not counted. NULL: it needs no reserved place. */
static int limit_early(
	struct pin_disks *disks, const struct pin_block *block, const struct pinion_limits *limits)
{
	struct pin_early_limits *early = find_early(disks, block->device);
	uint32_t count = pin_load_relaxed_u32(&disks->early_count);

	if (limits == NULL) {
		if (early != NULL) {
			drop_early(disks, early);
		}
		return 0;
	}
	if (early == NULL) {
		if (places_left(disks) == 0) {
			return -ENOSPC;
		}
		early = &disks->early[count];
		pin_store_relaxed_u32(&disks->early_count, count + 1);
	}
	*early = (struct pin_early_limits){.block = *block, .limits = *limits};
	return 0;
}

int pin_disks_limit_one(struct pin_disks *disks, const struct pin_host *host,
	const struct pinion_tuning *tuning, uint64_t device, const struct pinion_limits *limits)
{
	struct pin_block block = pin_block_find("", device);
	struct pin_disk *disk;
	int rc = 0;

	pin_lock_acquire(&disks->lock, host);
	disk = look_up(disks, block.device, pin_load_relaxed_u32(&disks->count));
	if (disk == NULL) {
		rc = limit_early(disks, &block, limits);
	} else {
		limit(disks, disk, host, tuning, limits);
		pin_credit_serve(&disk->credit);
	}
	pin_lock_release(&disks->lock, host);
	return rc;
}

/* ---- learning ---- */

static void begin_interval(struct pin_disk *disk, uint64_t now_ns, const struct pin_disk_sums *sums)
{
	PIN_DCHECK(now_ns > disk->base_ns);
	disk->base_ns = now_ns;
	disk->base_units = sums->units;
	disk->base_requests = sums->requests;
	disk->base_waited = sums->waited;
	disk->base_latency_ns = sums->latency_ns;
	disk->base_timed = sums->timed;
}

/* Sums that were taken before another's interval began say nothing. */
static bool is_newer(const struct pin_disk *disk, uint64_t now_ns, const struct pin_disk_sums *sums)
{
	return now_ns > disk->base_ns && sums->units >= disk->base_units &&
		sums->requests >= disk->base_requests && sums->waited >= disk->base_waited &&
		sums->latency_ns >= disk->base_latency_ns && sums->timed >= disk->base_timed;
}

/* One interval: the differences of the sums to those at its beginning. */
static void learn(struct pin_disk *disk, const struct pinion_tuning *tuning, uint64_t now_ns,
	const struct pin_disk_sums *sums)
{
	uint64_t timed = sums->timed - disk->base_timed;
	struct pin_depth_sample sample = {
		.elapsed_ns = now_ns - disk->base_ns,
		.units = sums->units - disk->base_units,
		.latency_ns = timed == 0 ? 0 : (sums->latency_ns - disk->base_latency_ns) / timed,
		/* Half of them: now and then one waits wherever the knee is. */
		.was_full = (sums->waited - disk->base_waited) * 2 >=
			sums->requests - disk->base_requests,
	};

	PIN_DCHECK(is_newer(disk, now_ns, sums));
	PIN_DCHECK(disk->base_ns != 0); /* an interval has begun */
	if (!pin_depth_is_ripe(&disk->depth, sample.elapsed_ns, sample.units)) {
		return;
	}
	pin_depth_learn(&disk->depth, &sample);
	publish(disk, tuning);
	pin_credit_serve(&disk->credit);
	begin_interval(disk, now_ns, sums);
}

/*
 * A worker that starts nothing keeps its part of an eighth of the former depth:
 * of half of that it is a quarter, and with the largest request three.
 */
static bool must_tell(struct pin_disk *disk)
{
	uint32_t depth = disk->depth.depth;

	if (depth >= disk->kept_depth / 2) {
		disk->kept_depth = depth > disk->kept_depth ? depth : disk->kept_depth;
		return false;
	}
	disk->kept_depth = depth;
	return true;
}

/*
 * Gives up at once if another worker is doing it: an interval that ends a
 * moment later is as good.
 */
bool pin_disk_learn(struct pin_disks *disks, struct pin_disk *disk, const struct pin_host *host,
	const struct pinion_tuning *tuning, uint64_t now_ns, const struct pin_disk_sums *sums)
{
	bool has_fallen = false;

	PIN_CHECK((size_t)(disk - disks->disks) < PIN_DISKS); /* so this lock is its own */
	if (!pin_lock_try(&disks->lock)) {
		return false;
	}
	if (pin_load_relaxed_u64(&disk->look_ns) != UINT64_MAX && is_newer(disk, now_ns, sums)) {
		if (disk->base_ns == 0) {
			begin_interval(disk, now_ns, sums);
		} else {
			learn(disk, tuning, now_ns, sums);
			has_fallen = must_tell(disk);
		}
		pin_store_relaxed_u64(&disk->look_ns,
			disk->base_ns == now_ns ? now_ns + LOOK_NS : now_ns + LOOK_NS / 10);
	}
	pin_lock_release(&disks->lock, host);
	return has_fallen;
}

/* ---- the queue of waiting workers ---- */

/*
 * Lines in a circle.
 */

void pin_lines_init(struct pin_lines *lines)
{
	lines->free = NULL;
	for (uint32_t i = PIN_LINES; i > 0; i--) {
		struct pin_line *line = &lines->lines[i - 1];

		line->next = lines->free;
		lines->free = line;
	}
	PIN_DCHECK(lines->free == &lines->lines[0]);
}

void pin_device_waiters_init(struct pin_device_waiters *device_waiters)
{
	*device_waiters = (struct pin_device_waiters){.count = 0};
}

/* After all others. */
static void join(
	struct pin_line_circle *circle, struct pin_line *line, const struct pinion_file *file)
{
	PIN_DCHECK(circle->last == NULL || circle->last->next != NULL);
	line->file = file;
	pin_request_list_init(&line->requests);
	if (circle->last == NULL) {
		line->next = line;
	} else {
		line->next = circle->last->next;
		circle->last->next = line;
	}
	circle->last = line;
}

static struct pin_line *find(struct pin_line_circle *circle, const struct pinion_file *file)
{
	struct pin_line *line = circle->last;

	if (line == NULL) {
		return NULL;
	}
	do {
		PIN_DCHECK(line->next != NULL); /* in the circle */
		if (line->file == file) {
			return line;
		}
		line = line->next;
	} while (line != circle->last);
	return NULL;
}

/*
 * Requests queue by file, and the files take turns, so that one busy file does
 * not hold up the others.
 */
static struct pin_line *find_or_join(
	struct pin_line_circle *circle, struct pin_lines *lines, const struct pinion_file *file)
{
	struct pin_line *line = find(circle, file);

	if (line != NULL) {
		return line;
	}
	line = lines->free;
	if (line != NULL) {
		PIN_DCHECK((size_t)(line - lines->lines) < PIN_LINES); /* this worker's */
		lines->free = line->next;
		join(circle, line, file);
		return line;
	}
	line = find(circle, NULL);
	if (line == NULL) {
		line = &circle->rest;
		join(circle, line, NULL);
	}
	return line;
}

void pin_device_waiters_push(struct pin_device_waiters *device_waiters, struct pin_lines *lines,
	struct pinion_request *request)
{
	struct pin_line_circle *circle = pin_request_of(request)->cost.is_urgent
		? &device_waiters->urgent
		: &device_waiters->others;
	struct pin_line *line = find_or_join(circle, lines, request->file);

	PIN_DCHECK(line->file == request->file || line == &circle->rest);
	PIN_CHECK(device_waiters->count < UINT32_MAX);
	pin_request_list_push(&line->requests, &pin_request_of(request)->link);
	circle->count++;
	device_waiters->count++;
}

/* The line that has its turn, which is empty. */
static void dissolve(struct pin_line_circle *circle, struct pin_lines *lines)
{
	struct pin_line *line = circle->last->next;

	PIN_CHECK(pin_request_list_is_empty(&line->requests));
	if (line == circle->last) {
		circle->last = NULL;
	} else {
		circle->last->next = line->next;
	}
	if (line != &circle->rest) {
		line->next = lines->free;
		lines->free = line;
	}
}

static struct pin_line_circle *next_circle(struct pin_device_waiters *device_waiters)
{
	return pin_device_waiters_has_urgent(device_waiters) ? &device_waiters->urgent
							     : &device_waiters->others;
}

/*
 * The first request of the file whose turn it is; files without requests leave
 * the circle here.
 */
struct pinion_request *pin_device_waiters_first(
	struct pin_device_waiters *device_waiters, struct pin_lines *lines)
{
	struct pin_line_circle *circle = next_circle(device_waiters);

	PIN_DCHECK(device_waiters->count ==
		device_waiters->urgent.count + device_waiters->others.count);
	while (circle->last != NULL) {
		struct pin_line *line = circle->last->next;

		if (!pin_request_list_is_empty(&line->requests)) {
			struct pin_request *private =
				PIN_CONTAINER_OF(line->requests.next, struct pin_request, link);

			PIN_DCHECK(circle->count > 0);
			return pin_request_of_link(private);
		}
		dissolve(circle, lines);
	}
	PIN_CHECK(circle->count == 0);
	return NULL;
}

void pin_device_waiters_pop(struct pin_device_waiters *device_waiters)
{
	struct pin_line_circle *circle = next_circle(device_waiters);
	struct pin_line *line = circle->last->next;
	struct pin_request *private =
		PIN_CONTAINER_OF(line->requests.next, struct pin_request, link);

	PIN_CHECK(circle->count > 0 && device_waiters->count > 0);
	PIN_CHECK(!pin_request_list_is_empty(&line->requests));
	pin_request_list_remove(&private->link);
	circle->count--;
	device_waiters->count--;
	circle->last = line;
	pin_device_waiters_note_start(device_waiters, pin_request_of_link(private));
}
