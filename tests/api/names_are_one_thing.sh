#!/bin/sh
# SPDX-License-Identifier: MIT
# Goal: no public name is both a type and a function. C++ accepts that, but a
# program there has to write `struct` before the name, or means the function.
# Method: the names of the headers' types against those of their functions; a
# planted pair must be found. Then a C++ file that uses each type by its name
# alone; that of a planted pair must be refused.
# shellcheck disable=SC2154 # tests/run sets top_srcdir and its like
set -u

bad=0

# The headers FILE... without comments and preprocessor lines, in one line.
code() {
	cat "$@" | sed -e '/^[[:space:]]*#/d' | tr '\n' ' ' | sed -e 's:/\*[^*]*\*\+\([^/*][^*]*\*\+\)*/: :g'
}

types() {
	code "$@" | grep -oE '(struct|enum|union) pinion_[a-z0-9_]+ *[{;]' | grep -oE 'pinion_[a-z0-9_]+' | sort -u
}

functions() {
	code "$@" | grep -oE 'pinion_[a-z0-9_]+\(' | tr -d '(' | sort -u
}

# collisions FILE...
collisions() {
	types "$@" >"$TMPDIR/types"
	functions "$@" >"$TMPDIR/functions"
	comm -12 "$TMPDIR/types" "$TMPDIR/functions"
}

# uses_bare HEADER: whether C++ takes each name of $TMPDIR/types for a type.
uses_bare() {
	{
		echo "#include <$1>"
		while read -r name; do
			echo "using planted_$name = $name *;"
		done <"$TMPDIR/types"
	} >"$TMPDIR/bare.cc"
	$CXX -std=c++17 -pedantic -Wall -Wextra -Werror -fsyntax-only -I "$TMPDIR" \
		-I "$top_srcdir/include" "$TMPDIR/bare.cc" >"$TMPDIR/out" 2>&1
}

cat >"$TMPDIR/planted.h" <<'END'
/* pinion_fine() is in a comment only. */
struct pinion_fine { int x; };
struct pinion_planted { int x; };
extern "C" int pinion_planted(const struct pinion_planted *planted);
END
found=$(collisions "$TMPDIR/planted.h")
if [ "$found" != pinion_planted ]; then
	echo "planted: expected pinion_planted, got \"$found\""
	bad=1
fi

CXX=${CXX:-$(command -v g++ || command -v clang++ || true)}
if [ -n "$CXX" ] && uses_bare planted.h; then
	echo "a name that is a struct and a function was accepted as a type"
	bad=1
fi

found=$(collisions "$top_srcdir"/include/pinion/*.h)
if [ -n "$found" ]; then
	echo "both a type and a function: $found"
	bad=1
fi
count=$(grep -c . "$TMPDIR/types")
if [ "$count" -lt 60 ]; then
	echo "only $count types were found in the public headers"
	bad=1
fi
if [ -n "$CXX" ] && ! uses_bare pinion/pinion.h; then
	cat "$TMPDIR/out"
	echo "a public type needs the word struct in C++"
	bad=1
fi

[ $bad = 0 ] || exit 1
if [ -z "$CXX" ]; then
	echo "the names differ; C++ not tried, there is no C++ compiler"
	exit 77
fi
