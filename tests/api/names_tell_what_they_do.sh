#!/bin/sh
# SPDX-License-Identifier: MIT
# Goal: the name of a public function says what it is about and how it is
# called. The object comes first: pinion_task_spawn(). A call that has a form
# for tasks blocks and ends in _wait, and that form ends in _async. What reads
# numbers ends in _stats, what reads the rest in _info; so do structs. No source
# and no page has a word that only this library uses.
# Method: the names in the public headers, the words of all sources and pages;
# planted ones must be found.
# shellcheck disable=SC2154 # tests/run sets top_srcdir and its like
set -u

bad=0

objects='admission auto_buffer budget buffer call channel checkpoint chunk clock config device error file
	future group histogram job lane limits log machine metrics pool request retry runtime scan struct task thread_pool timer trace tuning version wait
	walk work worker yield'

# The names of the functions in FILE...
functions() {
	cat "$@" | tr '\n\t' '  ' | sed 's:/\*[^*]*\*\+\([^/*][^*]*\*\+\)*/: :g' |
		grep -oE '(PINION_API|static inline) [^;({]*\(' | grep -oE 'pinion_[a-z0-9_]+\(' |
		tr -d '(' | sort -u
}

structs() {
	cat "$@" | sed -n 's/^struct \(pinion_[a-z0-9_]*\) {.*/\1/p'
}

# coined FILE...: words that have a better one in the field; variables of the
# environment, in capitals, keep their names.
coined() {
	grep -HnowE '[Cc]rews?|[Tt]iers?|sentry|[Hh]oards?|[Ll]ined up|line-ups?|[Pp]atience|[Rr]eliefs?|[Rr]elievers?|heirs?|[Ll]ends?|[Ll]ent|[Ww]ide rings?|[Ee]nders?|[Tt]rays?|[Ll]edgers?|[Tt]uners?|[Bb]eacons?|[Nn]udges?|[Ff]orgoe?s?' "$@" |
		sed "s:^$top_srcdir/::"
}

# faults FILE...: one line for each name that does not follow the rules.
# shellcheck disable=SC2094 # both read
faults() {
	functions "$@" >"$TMPDIR/names"
	# shellcheck disable=SC2086 # words
	grep -vE "^pinion_($(echo $objects | tr ' ' '|'))(_|$)" "$TMPDIR/names" |
		sed 's/$/: begins with no object/'
	while read -r name; do
		case $name in
		*_await) echo "$name: the form for tasks ends in _async" ;;
		*_async)
			stem=${name%_async}
			grep -qx "${stem%_wait}_wait" "$TMPDIR/names" ||
				echo "$name: there is no ${stem%_wait}_wait, the form for threads"
			;;
		esac
	done <"$TMPDIR/names"
	{
		cat "$TMPDIR/names"
		structs "$@"
	} | grep -E '_(counters|facts|figures|metrics|totals)$' | sed 's/$/: ends in neither _stats nor _info/'
}

cat >"$TMPDIR/planted.h" <<'END'
/* PINION_API int pinion_comment_await(void); */
PINION_API int pinion_do_it(struct pinion_runtime *runtime, struct pinion_task *task);
PINION_API int pinion_future_await(struct pinion_future *future);
PINION_API int pinion_budget_acquire(
	struct pinion_budget *budget);
PINION_API int pinion_budget_acquire_async(struct pinion_budget *budget);
PINION_API void pinion_group_counters(struct pinion_group_facts *out_facts);
struct pinion_group_facts {
};
PINION_API int pinion_group_wait(struct pinion_group *group);
PINION_API int pinion_group_wait_async(struct pinion_group *group);
END
expected="pinion_do_it pinion_budget_acquire_async pinion_future_await pinion_group_counters pinion_group_facts "
found=$(faults "$TMPDIR/planted.h" | cut -d: -f1 | tr '\n' ' ')
if [ "$found" != "$expected" ]; then
	echo "planted: expected $expected, got $found"
	bad=1
fi

found=$(faults "$top_srcdir"/include/pinion/*.h)
if [ -n "$found" ]; then
	echo "$found"
	bad=1
fi
printf '/* A crew of two tiers, lent to a wide ring; an extender, lent_bytes. */\n' >"$TMPDIR/coined.h"
found=$(coined "$TMPDIR/coined.h" | grep -c .)
if [ "$found" != 4 ]; then
	echo "planted: expected 4 coined words, got $found"
	bad=1
fi
# Names of companies' keys are in tools/scan/builtin/.
# shellcheck disable=SC2046 # file names without spaces
found=$(coined $(find "$top_srcdir/include" "$top_srcdir/runtime" "$top_srcdir/tools" "$top_srcdir/examples" \
	"$top_srcdir/docs" "$top_srcdir/README.md" -name builtin -prune -o \
	-type f \( -name '*.[ch]' -o -name '*.cc' -o -name '*.md' \) -print))
if [ -n "$found" ]; then
	echo "$found"
	bad=1
fi
count=$(grep -c . "$TMPDIR/names")
if [ "$count" -lt 120 ]; then
	echo "only $count functions were found in the public headers"
	bad=1
fi
exit $bad
