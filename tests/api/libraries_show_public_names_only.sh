#!/bin/sh
# SPDX-License-Identifier: MIT
# Goal: both libraries show every function the public headers declare, and no
# other name, so that they clash with nothing in a program that uses them.
# Inside, too, every name shared between files has our prefix. G11.
# Method: compares the names nm lists with those after PINION_API in the
# headers. Libraries with a planted extra name must be refused.
# shellcheck disable=SC2154 # tests/run sets top_srcdir and its like
set -u

bad=0
cat "$top_srcdir"/include/pinion/*.h | sed -n 's/^PINION_API.*[ *]\(pinion_[a-z0-9_]*\)(.*/\1/p' |
	sort >"$TMPDIR/declared"
[ -s "$TMPDIR/declared" ] || {
	echo "found no PINION_API declaration in the headers"
	exit 1
}

# differs LIBRARY NM-OPTION…: true when it shows other names than declared,
# which are left in the file difference. The name of type A is the version's.
differs() {
	library=$1
	shift
	$NM --defined-only "$@" "$library" >"$TMPDIR/nm" || return 0
	sed -n 's/^[0-9a-f]\{8,\} \([^A]\) \([^@]*\).*/\2/p' "$TMPDIR/nm" | sort >"$TMPDIR/shown"
	! diff "$TMPDIR/declared" "$TMPDIR/shown" >"$TMPDIR/difference"
}

# check LIBRARY NM-OPTION…
check() {
	if differs "$@"; then
		echo "$1 (< declared but not shown, > shown but not declared):"
		grep '^[<>]' "$TMPDIR/difference" | head -n 20
		bad=1
	fi
}

check .libs/libpinion.so -D
check libpinion.a -g

# Names with two underscores are the compiler's (sanitizers add some), and so
# are references to them; those in _.stapsdt are of the notes of probes.
strangers() { $NM -g --defined-only "$1" | sed -n '/ pin\(ion\)\?_/d; / __/d; / DW\.ref\.__/d; / _\.stapsdt\./d; s/^[0-9a-f]\{8,\} . //p'; }
if [ -n "$(strangers .libs/libpinion_core.a)" ]; then
	echo "neither static nor pin_*: $(strangers .libs/libpinion_core.a | head -n 20 | paste -sd ' ')"
	bad=1
fi

{
	sed 's/.*/void &(void) {}/' "$TMPDIR/declared"
	echo 'void pin_planted(void) {}'
	echo 'void planted(void) {}'
} >"$TMPDIR/planted.c"
$CC -w -shared -fPIC -o "$TMPDIR/planted.so" "$TMPDIR/planted.c" || exit 1
$CC -w -c -o "$TMPDIR/planted.o" "$TMPDIR/planted.c" || exit 1
for planted in planted.so:-D planted.o:-g; do
	differs "$TMPDIR/${planted%:*}" "${planted#*:}"
	if ! grep -q '^> pin_planted$' "$TMPDIR/difference"; then
		echo "a planted extra name in ${planted%:*} was not noticed"
		bad=1
	fi
done
if [ "$(strangers "$TMPDIR/planted.o")" != planted ]; then
	echo "a planted name without a prefix was not noticed"
	bad=1
fi
exit $bad
