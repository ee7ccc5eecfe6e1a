/* SPDX-License-Identifier: MIT */
/*
 * Goal: a trace that is cut, of another version, no trace at all, or hostile,
 * is refused with one line, or read and written within its bounds: never a
 * touch beyond it, an endless read or a signal. The largest and the smallest
 * page is none of these. A read copies no more events than it may take,
 * whatever the heads say.
 * Method: mutations of a true page in a file: bits, bytes, words of dangerous
 * values, cuts; in the header, the heads of rings, and events.
 * TRACE_MUTATIONS=n for more than 3000; PINION_SEED repeats.
 */
#include "runtime/observe/trace_reader.h"
#include "tests/support/happenings.h"
#include "tests/support/parts.h"
#include "tests/support/random.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <fcntl.h>

enum { MUTATIONS = 3000, MUTATIONS_A_SECOND = 500, EVENTS = 64, LIMIT_SECONDS = 200 };

static uint8_t *page; /* as it was written */
static uint8_t *mutant;
static size_t page_bytes;
static struct random_source random_state;
static uint32_t lines;
static uint32_t refused;
static uint32_t accepted;
static int sink = -1;

static void note(void *arg, enum pinion_log_level level, const char *message)
{
	(void)arg;
	(void)level;
	lines++;
	expect_true("a line has no line's end", strchr(message, '\n') == NULL);
}

static const struct pin_log noted = {.fn = note};

static void take_page(struct pinion_runtime *runtime)
{
	page_bytes = runtime->shared.trace->word_count * sizeof(uint64_t);
	page = calloc(1, page_bytes);
	mutant = calloc(1, page_bytes);
	expect_ready("memory", page != NULL && mutant != NULL);
	memcpy(page, runtime->shared.trace->words, page_bytes);
}

static void write_mutant(size_t bytes)
{
	int fd = open("mutant", O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);

	expect_ready("mutant", fd >= 0 && write(fd, mutant, bytes) == (ssize_t)bytes);
	close(fd);
}

/* All that a reader can do with it. */
static int use_mutant(void)
{
	struct pinion_trace *trace = NULL;
	struct pinion_trace_info info;
	uint32_t before = lines;
	/* A process that is not there: its functions have no names. */
	int rc = pin_trace_open_file("mutant", 0, &noted, &trace);

	if (rc == 0) {
		rc = pinion_trace_read(trace);
		pinion_trace_get_info(trace, &info, sizeof(info));
		expect_number("written", 0, pinion_trace_write(trace, sink));
		expect_true("bounded", info.event_count <= 2 * EVENTS);
		pinion_trace_close(trace);
	}
	expect_number("one line for a refusal", rc < 0 ? 1 : 0, lines - before);
	refused += rc < 0;
	accepted += rc == 0;
	return rc;
}

static void change_word(size_t from, size_t bytes)
{
	static const uint64_t dangerous[] = {0, 1, 2, 16, 64, 1 << 20, UINT32_MAX,
		UINT64_C(1) << 32, UINT64_C(1) << 63, UINT64_MAX, UINT64_MAX - 7};
	size_t at = from + random_below(&random_state, bytes / 8) * 8;
	uint64_t value = dangerous[random_below(&random_state, PIN_ARRAY_COUNT(dangerous))];

	memcpy(mutant + at, &value, sizeof(value));
}

static void mutate(void)
{
	size_t header = sizeof(struct pin_trace_header);
	uint64_t changes = 1 + random_below(&random_state, 4);
	size_t bytes = page_bytes;

	memcpy(mutant, page, page_bytes);
	for (uint64_t i = 0; i < changes; i++) {
		size_t used = header + 2 * pin_trace_ring_words(EVENTS) * 8;
		bool is_header = random_below(&random_state, 3) == 0;
		size_t from = is_header ? 0 : header;
		size_t range = is_header ? header : used - header;

		switch (random_below(&random_state, 4)) {
		case 0:
			mutant[from + random_below(&random_state, range)] ^=
				(uint8_t)(1u << random_below(&random_state, 8));
			break;
		case 1:
			mutant[from + random_below(&random_state, range)] =
				(uint8_t)random_next(&random_state);
			break;
		case 2:
			change_word(from, range);
			break;
		default:
			bytes = random_below(&random_state, 8) == 0
				? random_below(&random_state, page_bytes)
				: bytes;
			break;
		}
	}
	write_mutant(bytes);
}

/* Two rings of a few slots, and of `change`d numbers, in a file for them. */
static void expect_opened(const char *what, int rc, struct pin_trace_header change)
{
	struct pin_trace_header *header = (struct pin_trace_header *)(void *)mutant;
	struct pinion_trace *trace = NULL;
	uint64_t words;

	memcpy(mutant, page, page_bytes);
	header->slots = change.slots == 0 ? header->slots : change.slots;
	header->ring_count = change.ring_count == 0 ? 2 : change.ring_count;
	header->ring_words = pin_trace_ring_words(header->slots) - change.ring_words;
	words = header->rings_at + header->ring_count * header->ring_words;
	header->word_count = words;
	header->rings_at = change.rings_at == 0 ? header->rings_at : words + change.rings_at;
	write_mutant(sizeof(*header));
	expect_ready("size", truncate("mutant", (off_t)(words * sizeof(uint64_t))) == 0);
	expect_number(what, rc, pin_trace_open_file("mutant", 0, &noted, &trace));
	if (rc == 0) {
		pinion_trace_close(trace);
	}
}

/* The smallest and the largest that there may be, and what is beyond. */
static void check_limits(void)
{
	enum { RINGS = PIN_IDLE_WORKERS_MAX + 1 };

	expect_opened("as it is", 0, (struct pin_trace_header){.slots = EVENTS});
	expect_opened("16 slots", 0, (struct pin_trace_header){.slots = 16});
	expect_opened("8 slots", -EPROTO, (struct pin_trace_header){.slots = 8});
	expect_opened("most slots", 0, (struct pin_trace_header){.slots = 1 << 20});
	expect_opened("more slots", -EPROTO, (struct pin_trace_header){.slots = 1 << 21});
	expect_opened("one ring", -EPROTO, (struct pin_trace_header){.ring_count = 1});
	expect_opened("most rings", 0, (struct pin_trace_header){.ring_count = RINGS});
	expect_opened("more rings", -EPROTO, (struct pin_trace_header){.ring_count = RINGS + 1});
	expect_opened("rings too short", -EPROTO, (struct pin_trace_header){.ring_words = 1});
	expect_opened("rings beyond the end", -EPROTO, (struct pin_trace_header){.rings_at = 1});
}

static void check_known(void)
{
	struct pin_trace_header *header = (struct pin_trace_header *)(void *)mutant;

	memcpy(mutant, page, page_bytes);
	write_mutant(page_bytes);
	expect_number("as it is", 0, use_mutant());
	header->version = PIN_TRACE_VERSION + 1;
	write_mutant(page_bytes);
	expect_number("newer", -EPROTONOSUPPORT, use_mutant());
	memcpy(mutant, page, page_bytes);
	pin_store_relaxed_u64(&header->magic, PIN_TRACE_MAGIC + 1);
	write_mutant(page_bytes);
	expect_number("another", -EPROTO, use_mutant());
	memcpy(mutant, page, page_bytes);
	write_mutant(page_bytes / 2);
	expect_number("cut", -EPROTO, use_mutant());
	write_mutant(0);
	expect_number("empty", -EAGAIN, use_mutant());
	/* Its end is missing. */
	memset(header->owner.library, 'x', sizeof(header->owner.library));
	memset(header->owner.program, '"', sizeof(header->owner.program));
	write_mutant(page_bytes);
	expect_number("names without ends", 0, use_mutant());
}

/*
 * Heads beyond the slots, so that most events are lost: lost events are no
 * copies, and copied ones count against the rest.
 */
static void check_copies(void)
{
	struct pin_trace_header *header = (struct pin_trace_header *)(void *)mutant;
	enum { TAKEN = EVENTS + EVENTS / 2 };
	struct pinion_trace *trace = NULL;
	uint64_t copied = 0;
	uint64_t lost;

	memcpy(mutant, page, page_bytes);
	expect_ready("rings", header->ring_count == 2);
	for (uint32_t i = 0; i < header->ring_count; i++) {
		uint64_t head = 100 * TAKEN;

		memcpy(mutant + (header->rings_at + i * header->ring_words) * 8, &head,
			sizeof(head));
	}
	write_mutant(page_bytes);
	expect_ready("open", pin_trace_open_file("mutant", 0, &noted, &trace) == 0);
	trace->taken_max = TAKEN;
	expect_number("read", 0, pinion_trace_read(trace));
	for (uint32_t i = 0; i < header->ring_count; i++) {
		copied += trace->cursors[i].next - trace->cursors[i].lost;
	}
	expect_true("a ring and a half", copied > EVENTS && copied <= TAKEN);
	expect_number("all of them taken", (long long)copied, (long long)trace->taken_count);
	/* Nothing may be taken, and then nothing more is there: no damage. */
	trace->taken_max = trace->taken_count;
	expect_number("the rest", 0, pinion_trace_read(trace));
	lost = trace->lost_beyond;
	expect_number("again", 0, pinion_trace_read(trace));
	expect_number("none lost", (long long)lost, (long long)trace->lost_beyond);
	/* It is cut while nothing may be taken. */
	write_mutant(0);
	expect_number("cut meanwhile", -EPROTO, pinion_trace_read(trace));
	pinion_trace_close(trace);
}

static void check_mutations(unsigned long count)
{
	for (unsigned long i = 0; i < count && expect_failure_count == 0; i++) {
		mutate();
		(void)use_mutant();
	}
	expect_true("some are refused", refused > 0);
	expect_true("some are read", accepted > 0);
}

int main(void)
{
	const char *given = getenv("TRACE_MUTATIONS");
	unsigned long count = given == NULL ? MUTATIONS : strtoul(given, NULL, 10);

	random_begin(&random_state);
	runtimes_watchdog(LIMIT_SECONDS + (unsigned)(count / MUTATIONS_A_SECOND));
	scratch_enter("hostile_traces_are_refused");
	happenings_run(EVENTS, take_page);
	sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
	check_known();
	check_limits();
	check_copies();
	parts_run(count, &random_state, check_mutations);
	return expect_status();
}
