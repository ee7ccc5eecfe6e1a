/* SPDX-License-Identifier: MIT */
/*
 * The expressions as PCRE2 has them: one for parts of files that reach to the
 * file's end, one for the others, in which `\z` matches nowhere.
 */
#include "tools/scan/confirm.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct confirm_regex {
	struct regex_texts texts;
	pthread_mutex_t lock; /* guards the making of what follows */
	/*
	 * [W:lock holder R:any] pcre2_code: not at the end of a file and at it;
	 * then both with a call-out at each start.
	 */
	void *codes[4];
};

const struct regex_texts *confirm_regex_texts(const struct confirm_regex *regex)
{
	return &regex->texts;
}

#if defined(HAVE_PCRE2)

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

enum {
	MATCH_STEPS_MAX = 2 * 1000 * 1000,
	/* Of the interpreter, where there is no JIT. */
	HEAP_KIB_MAX = 20 * 1024,
	STACK_BYTES_MIN = 32 << 10,
	STACK_BYTES_MAX = 8 << 20,
	/* What call-outs are about. */
	CALLOUT_END = 1,
	CALLOUT_START = 2,
};

struct confirm_room {
	pcre2_match_data *found;
	pcre2_match_context *limits;
	pcre2_jit_stack *stack;
	size_t max_width; /* of matches that count */
	size_t start;	  /* the last that was tried */
};

int confirm_regex_create(enum rule_dialect dialect, enum confirm_scope scope, const char *pattern,
	size_t pattern_bytes, uint32_t *level, struct confirm_regex **out_regex,
	char out_reason[REGEX_REASON_BYTES])
{
	struct confirm_regex *regex = calloc(1, sizeof(*regex));
	int error;

	if (regex == NULL) {
		return -ENOMEM;
	}
	error = scope == CONFIRM_SCOPE_PARTS
		? regex_translate(dialect, pattern, pattern_bytes, &regex->texts, level, out_reason)
		: regex_translate_unbounded(
			  dialect, pattern, pattern_bytes, &regex->texts, out_reason);
	if (error != 0) {
		free(regex);
		return error;
	}
	pthread_mutex_init(&regex->lock, NULL);
	*out_regex = regex;
	return 0;
}

void confirm_regex_destroy(struct confirm_regex *regex)
{
	if (regex == NULL) {
		return;
	}
	for (int i = 0; i < 4; i++) {
		pcre2_code_free(regex->codes[i]);
	}
	pthread_mutex_destroy(&regex->lock);
	regex_texts_free(&regex->texts);
	free(regex);
}

/*
 * The expression with its call-outs: one at the end, where a match that is too
 * wide goes back to a narrower one, as though it had failed there; (?!) keeps
 * PCRE2 from giving up on that before. And one at the start, where it is asked
 * for. `(?!(?!))` is true everywhere: PCRE2's JIT tries no later start once
 * `.*` has failed up to the end of the text, unless an assertion comes first; a
 * later start has a narrower match. NULL: no memory.
 */
static char *text_of(const struct confirm_regex *regex, bool has_end, bool has_starts)
{
	char *text = regex_confirm_text(&regex->texts, has_end);
	char *whole = NULL;

	if (text == NULL || (!has_starts && !regex->texts.is_cut)) {
		return text;
	}
	if (asprintf(&whole, "%s%s(?:%s)%s", regex->texts.is_cut ? "(?!(?!))" : "",
		    has_starts ? "(?C2)" : "", text,
		    regex->texts.is_cut ? "(?:(?C1)|(?!))" : "") < 0) {
		whole = NULL;
	}
	free(text);
	return whole;
}

static int compile(const struct confirm_regex *regex, bool has_end, bool has_starts,
	pcre2_code **out_code, char out_reason[REGEX_REASON_BYTES])
{
	char *text = text_of(regex, has_end, has_starts);
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);
	PCRE2_SIZE offset = 0;
	int status = 0;

	*out_code = NULL;
	if (text == NULL || context == NULL) {
		free(text);
		pcre2_compile_context_free(context);
		return -ENOMEM;
	}
	pcre2_set_newline(context, PCRE2_NEWLINE_LF);
	*out_code = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED,
		PCRE2_MULTILINE | PCRE2_DOTALL | PCRE2_ALT_CIRCUMFLEX | PCRE2_USE_OFFSET_LIMIT,
		&status, &offset, context);
	pcre2_compile_context_free(context);
	free(text);
	if (*out_code == NULL) {
		PCRE2_UCHAR message[120];

		pcre2_get_error_message(status, message, sizeof(message));
		snprintf(out_reason, REGEX_REASON_BYTES, "%s", (const char *)message);
		return status == PCRE2_ERROR_HEAP_FAILED ? -ENOMEM : -EINVAL;
	}
	return 0;
}

int confirm_regex_check(struct confirm_regex *regex, char out_reason[REGEX_REASON_BYTES])
{
	pcre2_code *code;
	int error = compile(regex, true, false, &code, out_reason);

	pcre2_code_free(code);
	return error;
}

/* NULL: no memory, since the expression has been checked. */
static const pcre2_code *need_code(struct confirm_regex *regex, bool has_end, bool has_starts)
{
	void **place =
		&regex->codes[(has_end || !regex->texts.has_marks ? 1 : 0) + (has_starts ? 2 : 0)];
	pcre2_code *code = __atomic_load_n(place, __ATOMIC_ACQUIRE);
	char reason[REGEX_REASON_BYTES];

	if (code != NULL) {
		return code;
	}
	pthread_mutex_lock(&regex->lock);
	code = *place;
	if (code == NULL && compile(regex, has_end, has_starts, &code, reason) == 0) {
		/* Without it, matching is interpreted. */
		(void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
		__atomic_store_n(place, code, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&regex->lock);
	return code;
}

const char *confirm_version(void)
{
	static char version[64];

	(void)pcre2_config(PCRE2_CONFIG_VERSION, version);
	return version;
}

/* Not 0: the match fails here. */
static int on_callout(pcre2_callout_block *block, void *arg)
{
	struct confirm_room *room = arg;

	if (block->callout_number == CALLOUT_START) {
		room->start = block->start_match;
		return 0;
	}
	return block->current_position - block->start_match > room->max_width;
}

struct confirm_room *confirm_room_create(void)
{
	struct confirm_room *room = calloc(1, sizeof(*room));

	if (room == NULL) {
		return NULL;
	}
	room->found = pcre2_match_data_create(REGEX_GROUPS_MAX + 1, NULL);
	room->limits = pcre2_match_context_create(NULL);
	if (room->found == NULL || room->limits == NULL) {
		confirm_room_destroy(room);
		return NULL;
	}
	pcre2_set_match_limit(room->limits, MATCH_STEPS_MAX);
	pcre2_set_heap_limit(room->limits, HEAP_KIB_MAX);
	pcre2_set_callout(room->limits, on_callout, room);
	return room;
}

void confirm_room_destroy(struct confirm_room *room)
{
	if (room == NULL) {
		return;
	}
	pcre2_match_data_free(room->found);
	pcre2_match_context_free(room->limits);
	pcre2_jit_stack_free(room->stack);
	free(room);
}

/* Until then it is 32 KiB of the thread's own. False: it was enlarged. */
static bool enlarge_stack(struct confirm_room *room)
{
	if (room->stack != NULL) {
		return false;
	}
	room->stack = pcre2_jit_stack_create(STACK_BYTES_MIN, STACK_BYTES_MAX, NULL);
	pcre2_jit_stack_assign(room->limits, NULL, room->stack);
	return room->stack != NULL;
}

static void fill_match(const PCRE2_SIZE *pairs, uint32_t set_count, uint32_t group_count,
	uint32_t group, struct confirm_match *out_match)
{
	*out_match = (struct confirm_match){
		.start = pairs[0],
		.end = pairs[1],
		.secret_start = pairs[0],
		.secret_end = pairs[1],
	};
	if (group == CONFIRM_NO_GROUP) {
		return;
	}
	if (group > 0) {
		bool is_set = group < set_count && pairs[2 * group] != PCRE2_UNSET;

		out_match->secret_start = is_set ? pairs[2 * group] : pairs[0];
		out_match->secret_end = is_set ? pairs[2 * group + 1] : pairs[0];
		return;
	}
	for (uint32_t i = 1; i <= group_count && i < set_count; i++) {
		if (pairs[2 * i] != PCRE2_UNSET && pairs[2 * i + 1] > pairs[2 * i]) {
			out_match->secret_start = pairs[2 * i];
			out_match->secret_end = pairs[2 * i + 1];
			return;
		}
	}
}

/* PCRE2's status. */
static int match(struct confirm_regex *regex, struct confirm_room *room,
	const struct confirm_part *part, size_t from, bool has_starts)
{
	const pcre2_code *code = need_code(regex, part->has_end, has_starts);
	uint32_t options =
		(part->has_start ? 0 : PCRE2_NOTBOL) | (part->has_end ? 0 : PCRE2_NOTEOL);
	int status;

	if (code == NULL) {
		return PCRE2_ERROR_NOMEMORY;
	}
	status = pcre2_match(
		code, part->bytes, part->length, from, options, room->found, room->limits);
	if (status == PCRE2_ERROR_JIT_STACKLIMIT && enlarge_stack(room)) {
		status = pcre2_match(
			code, part->bytes, part->length, from, options, room->found, room->limits);
	}
	return status;
}

static bool is_costly(int status)
{
	return status < 0 && status != PCRE2_ERROR_NOMATCH && status != PCRE2_ERROR_NOMEMORY;
}

int confirm_regex_match(struct confirm_regex *regex, struct confirm_room *room,
	const struct confirm_part *part, size_t from, size_t last_start, uint32_t group,
	struct confirm_match *out_match)
{
	int status;

	if (from > last_start || from > part->length) {
		return 0;
	}
	room->max_width = regex->texts.max_width;
	room->start = from;
	pcre2_set_offset_limit(room->limits, last_start);
	status = match(regex, room, part, from, false);
	if (is_costly(status)) {
		/* Again, for the start. */
		status = match(regex, room, part, from, true);
		out_match->start = room->start;
	}
	if (status > 0) {
		fill_match(pcre2_get_ovector_pointer(room->found), (uint32_t)status,
			regex->texts.group_count, group, out_match);
		return 1;
	}
	return is_costly(status) ? -ELOOP : status == PCRE2_ERROR_NOMATCH ? 0 : -ENOMEM;
}

#else

int confirm_regex_create(enum rule_dialect dialect, enum confirm_scope scope, const char *pattern,
	size_t pattern_bytes, uint32_t *level, struct confirm_regex **out_regex,
	char out_reason[REGEX_REASON_BYTES])
{
	(void)dialect;
	(void)scope;
	(void)pattern;
	(void)pattern_bytes;
	(void)level;
	(void)out_regex;
	snprintf(out_reason, REGEX_REASON_BYTES,
		"needs PCRE2, which this program was built without (apt-get install libpcre2-dev)");
	return -ENOSYS;
}

void confirm_regex_destroy(struct confirm_regex *regex)
{
	free(regex);
}

int confirm_regex_check(struct confirm_regex *regex, char out_reason[REGEX_REASON_BYTES])
{
	(void)regex;
	(void)out_reason;
	return -ENOSYS;
}

const char *confirm_version(void)
{
	return "none";
}

struct confirm_room *confirm_room_create(void)
{
	return NULL;
}

void confirm_room_destroy(struct confirm_room *room)
{
	(void)room;
}

int confirm_regex_match(struct confirm_regex *regex, struct confirm_room *room,
	const struct confirm_part *part, size_t from, size_t last_start, uint32_t group,
	struct confirm_match *out_match)
{
	(void)regex;
	(void)room;
	(void)part;
	(void)from;
	(void)last_start;
	(void)group;
	(void)out_match;
	return -ENOSYS;
}

#endif
