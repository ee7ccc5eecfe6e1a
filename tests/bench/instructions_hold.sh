#!/bin/bash
# SPDX-License-Identifier: MIT
# Goal: no hot path has become longer, or shorter, by more than 5 % since its
# instructions were recorded; noise has no part in it. And the comparison sees
# paths that are 10 % longer.
# Method: tests/bench/instructions under callgrind, against the lines of
# tests/bench/instructions.txt for this architecture, C library, compiler and
# flags; others have no lines and skip. Then again with --planted.
#
#   instructions_hold.sh            compare
#   instructions_hold.sh --record   write this machine's lines anew
#   instructions_hold.sh --show     print the present counts
set -euo pipefail
export LC_ALL=C

source_dir=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
recorded=${INSTRUCTIONS:-$source_dir/tests/bench/instructions.txt}
program=${top_builddir:-.}/tests/bench/instructions
limit_percent=5

skip() {
	echo "$1"
	exit 77
}

[ -z "${SANITIZER_CFLAGS:-}" ] || skip "a sanitized build counts its own checks too"
command -v valgrind >/dev/null || skip "valgrind is missing: apt-get install valgrind"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# "KEY<tab>PATH<tab>INSTRUCTIONS" for each path, of one time.
count() {
	local status=0 key
	rm -f "$work"/counts*
	# Not --quiet: its warnings are the only trace of a valgrind too old.
	valgrind --tool=callgrind --collect-atstart=no --callgrind-out-file="$work/counts" \
		"$program" "$@" >"$work/out" 2>"$work/err" || status=$?
	[ "$status" != 77 ] || skip "$(cat "$work/out")"
	[ "$status" = 0 ] || {
		cat "$work/out" "$work/err"
		echo "under valgrind it ended with status $status"
		exit 1
	}
	key="$(uname -m), $(getconf GNU_LIBC_VERSION 2>/dev/null || echo another libc)"
	key="$key, $(sed -n 's/^key //p' "$work/out")"
	awk -v key="$key" -v times="$(sed -n 's/^times //p' "$work/out")" '
		/^desc: Trigger: Client Request: / { path = $NF }
		/^(summary|totals): / && path != "" {
			printf "%s\t%s\t%.1f\n", key, path, $2 / times
			path = ""
		}' "$work"/counts.* | sort
}

# Of two such lists: "PATH RECORDED NOW PERCENT", those beyond the limit.
differences() {
	awk -F'\t' -v limit="$limit_percent" '
		NR == FNR { recorded[$1, $2] = $3; next }
		($1, $2) in recorded {
			percent = 100 * ($3 / recorded[$1, $2] - 1)
			if (percent > limit || percent < -limit)
				printf "%s %s -> %s (%+.1f %%)\n", $2, recorded[$1, $2], $3, percent
		}' "$1" "$2"
}

count >"$work/now"
[ -s "$work/now" ] || {
	echo "callgrind wrote no counts"
	exit 1
}
key=$(head -n 1 "$work/now" | cut -f1)
case ${1:-} in
--show)
	cut -f2- "$work/now"
	exit
	;;
--record)
	{
		grep -vF "$key	" "$recorded" 2>/dev/null || true
		cat "$work/now"
	} >"$work/all"
	cp "$work/all" "$recorded"
	echo "recorded $(wc -l <"$work/now") paths for: $key"
	exit
	;;
esac

grep -F "$key	" "$recorded" >"$work/recorded" ||
	skip "nothing is recorded for this build ($key): make record-instructions"
diff <(cut -f2 "$work/recorded" | sort) <(cut -f2 "$work/now" | sort) >"$work/paths" || {
	cat "$work/paths"
	echo "not the paths that are recorded: make record-instructions"
	exit 1
}
differences "$work/recorded" "$work/now" >"$work/changed"
[ ! -s "$work/changed" ] || {
	cat "$work/changed"
	echo "$(wc -l <"$work/changed") paths changed by more than $limit_percent %:" \
		"$(paste -sd\; "$work/changed"); if meant: make record-instructions"
	exit 1
}

# The mutant: each path 10 % longer.
count --planted >"$work/planted"
differences "$work/now" "$work/planted" >"$work/found"
[ "$(wc -l <"$work/found")" = "$(wc -l <"$work/now")" ] || {
	cat "$work/found"
	echo "10 % more of each path, but only $(wc -l <"$work/found") of" \
		"$(wc -l <"$work/now") were noticed"
	exit 1
}
