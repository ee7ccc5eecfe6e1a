#!/bin/sh
# SPDX-License-Identifier: MIT
# Goal: the libraries have the static probes that pinion_runtime(3) lists, each
# with as many values, and no others. EX-37.
# Method: what `readelf -n` shows of both libraries against the table of the
# page; a page with a planted probe must be refused.
# shellcheck disable=SC2154 # tests/run sets top_srcdir and its like
set -eu

grep -q '^#define HAVE_SYS_SDT_H 1' "$top_builddir/build-aux/config.h" || {
	echo "built without probes: apt-get install systemtap-sdt-dev"
	exit 77
}
command -v readelf >/dev/null || {
	echo "readelf is missing: apt-get install binutils"
	exit 77
}

# listed PAGE: "NAME VALUES" of each row in the table of its section.
listed() {
	sed -n '/^## Probes$/,/^## /p' "$1" | awk -F' *\\| *' '
		/^\| `/ {
			values = $4
			gsub(/\([^)]*\)/, "", values)
			name = $2
			gsub(/`/, "", name)
			print name, split(values, unused, ",")
		}' | sort
}

# noted LIBRARY: the same for its notes; a probe in several places must have as
# many values in each. A value is SIZE@PLACE, and a place may have spaces.
noted() {
	readelf -n "$1" 2>/dev/null | awk '
		$1 == "Provider:" { is_ours = $2 == "pinion" }
		is_ours && $1 == "Name:" { name = $2 }
		is_ours && $1 == "Arguments:" { print name, gsub(/@/, "") }' | sort -u
}

# differs PAGE LIBRARY
differs() {
	listed "$1" >"$TMPDIR/listed"
	noted "$2" >"$TMPDIR/noted"
	[ -s "$TMPDIR/noted" ] || return 0
	! diff "$TMPDIR/listed" "$TMPDIR/noted" >"$TMPDIR/difference"
}

page=$top_srcdir/docs/man/pinion_runtime.md
for library in "$top_builddir/.libs/libpinion.so" "$top_builddir/libpinion.a"; do
	[ -f "$library" ] || library=$top_builddir/.libs/libpinion.a
	if differs "$page" "$library"; then
		cat "$TMPDIR/difference"
		echo "$library has other probes than the page: $(paste -sd ' ' "$TMPDIR/noted")"
		exit 1
	fi
	sed 's/^| `unpark`/| `planted` | never | worker |\n&/' "$page" >"$TMPDIR/planted.md"
	differs "$TMPDIR/planted.md" "$library" || {
		echo "a planted probe is not noticed in $library"
		exit 1
	}
done
