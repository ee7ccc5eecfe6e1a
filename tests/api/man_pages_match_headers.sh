#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Goal: each function that the public headers declare is in the synopsis of one
# man page, as declared, and no page has an undeclared function. G11.
# Method: both are brought to one line a function and compared. A macro NAME
# that calls NAME_sized may have either name there; NAME_{a,b} in a page means
# two names whose arguments it leaves out. A header with a planted function, and
# a page with a planted one, must be refused. shellcheck disable=SC2154 #
# tests/run sets top_srcdir and its like
set -u

# One line each: NAME DECLARATION.
declared() {
	sed '/^#/d' "$@" | tr '\n\t' '  ' | grep -o 'PINION_API [^;]*;' |
		sed 's/PINION_API //; s/ __attribute__((noreturn))//; s/;$//; s/  */ /g; s/( /(/g
			s/.*[ *]\(pinion_[a-z0-9_]*\)(.*/\1 &/' | sort
}

described() {
	awk '/^#/{ is_on = $2 == "Synopsis" } is_on && /^    [^#]/' "$@" >"$TMPDIR/synopses"
	tr '\n' ' ' <"$TMPDIR/synopses" | grep -o '[a-z][a-z0-9_ ]*[ *]pinion_[a-z0-9_]*([^;]*;' |
		sed 's/;$//; s/  */ /g; s/( /(/g; s/.*[ *]\(pinion_[a-z0-9_]*\)(.*/\1 &/' | sort -u
}

# Names that a synopsis has without a declaration.
named() {
	sed -n 's/.*\(pinion_[a-z_]*\){\([a-z_,]*\)}.*/\1 \2/p' "$TMPDIR/synopses" |
		while read -r stem ends; do
			printf "$stem%s\n" ${ends//,/ }
		done
	grep -o 'pinion_[a-z_]*_init(' "$TMPDIR/synopses" | sed 's/($/_sized/'
}

# matches HEADERS PAGES: what does not is in the file `difference`.
matches() {
	# shellcheck disable=SC2086 # words
	declared $1 >"$TMPDIR/declared"
	# shellcheck disable=SC2086
	described $2 >"$TMPDIR/described"
	named | sort >"$TMPDIR/named"
	{
		comm -23 "$TMPDIR/declared" "$TMPDIR/described" | while read -r name declaration; do
			grep -qx "$name" "$TMPDIR/named" || echo "no man page has: $declaration"
		done
		comm -13 "$TMPDIR/declared" "$TMPDIR/described" | while read -r name declaration; do
			# shellcheck disable=SC2086
			grep -Eq "^(static inline |#define ).*\b$name\(" $1 || echo "only a man page has: $declaration"
		done
	} >"$TMPDIR/difference"
	[ -s "$TMPDIR/declared" ] && [ ! -s "$TMPDIR/difference" ]
}

headers=$(echo "$top_srcdir"/include/pinion/*.h)
pages=$(echo "$top_srcdir"/docs/man/*.md)
bad=0
if ! matches "$headers" "$pages"; then
	cat "$TMPDIR/difference"
	bad=1
fi
echo 'PINION_API int pinion_planted(void);' >"$TMPDIR/planted.h"
if matches "$headers $TMPDIR/planted.h" "$pages"; then
	echo "a function without a man page was not noticed"
	bad=1
fi
sed 's/pinion_work_is_cancelled(/pinion_work_is_planted(/' "$top_srcdir/docs/man/pinion_work.md" \
	>"$TMPDIR/pinion_planted.md"
if matches "$headers" "$pages $TMPDIR/pinion_planted.md"; then
	echo "a man page of a function that is not there was not noticed"
	bad=1
fi
exit $bad
