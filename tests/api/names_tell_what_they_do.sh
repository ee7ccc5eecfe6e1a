#!/bin/sh
# SPDX-License-Identifier: MIT
# Goal: the name of a public function tells how it is called: a call that has a
# form for tasks blocks and ends in _wait, and that form ends in _async.
# Method: the names in the public headers; planted ones must be found.
# shellcheck disable=SC2154 # tests/run sets top_srcdir and its like
set -u

bad=0

# The names of the functions in FILE...
functions() {
	cat "$@" | tr '\n\t' '  ' | sed 's:/\*[^*]*\*\+\([^/*][^*]*\*\+\)*/: :g' |
		grep -oE '(PINION_API|static inline) [^;({]*\(' | grep -oE 'pinion_[a-z0-9_]+\(' |
		tr -d '(' | sort -u
}

# faults FILE...: one line for each name that does not follow the rules.
faults() {
	functions "$@" >"$TMPDIR/names"
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
}

cat >"$TMPDIR/planted.h" <<'END'
/* PINION_API int pinion_comment_await(void); */
PINION_API int pinion_future_await(struct pinion_future *future);
PINION_API int pinion_budget_acquire(
	struct pinion_budget *budget);
PINION_API int pinion_budget_acquire_async(struct pinion_budget *budget);
PINION_API int pinion_group_wait(struct pinion_group *group);
PINION_API int pinion_group_wait_async(struct pinion_group *group);
END
found=$(faults "$TMPDIR/planted.h" | cut -d: -f1 | tr '\n' ' ')
if [ "$found" != "pinion_budget_acquire_async pinion_future_await " ]; then
	echo "planted: expected pinion_budget_acquire_async pinion_future_await, got $found"
	bad=1
fi

found=$(faults "$top_srcdir"/include/pinion/*.h)
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
