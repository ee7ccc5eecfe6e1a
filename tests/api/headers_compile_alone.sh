#!/bin/sh
# SPDX-License-Identifier: MIT
# Goal: a user may include any one public header, from C11 or from C++11. G11.
# Runtimes with contexts and ticks are a level of their own: admission uses
# them, they know nothing of it, nor of scans and thread pools. RP-6.
# Method: compiles a file that includes nothing but the header (twice, for its
# guard), with the warnings users are likely to have on. A planted header that
# leans on another must be refused. What a header brings along is asked of the
# preprocessor.
# shellcheck disable=SC2154 # tests/run sets top_srcdir and its like
set -u

bad=0
cat >"$TMPDIR/planted.h" <<'END'
size_t pinion_planted(void);
END

# compiles LANGUAGE HEADER
compiles() {
	printf '#include <%s>\n#include <%s>\n' "$2" "$2" >"$TMPDIR/alone.$1"
	case $1 in
	c) compiler="$CC -std=c11" ;;
	*) compiler="$CXX -std=c++11" ;;
	esac
	$compiler -pedantic -Wall -Wextra -Werror -fsyntax-only -I "$TMPDIR" \
		-I "$top_srcdir/include" "$TMPDIR/alone.$1" >"$TMPDIR/out" 2>&1
}

# Looked for now, not by configure: it may have come after that.
CXX=${CXX:-$(command -v g++ || command -v clang++ || true)}
languages=c
if [ -n "$CXX" ] && echo 'int x;' >"$TMPDIR/probe.cc" &&
	$CXX -fsyntax-only "$TMPDIR/probe.cc" 2>/dev/null; then
	languages="c cc"
fi

for language in $languages; do
	for path in "$top_srcdir"/include/pinion/*.h; do
		header=pinion/${path##*/}
		if ! compiles "$language" "$header"; then
			cat "$TMPDIR/out"
			echo "$header does not compile alone as $language"
			bad=1
		fi
	done
	if compiles "$language" planted.h; then
		echo "a header that leans on another was accepted as $language"
		bad=1
	fi
done

# brings HEADER OTHER: whether it includes the other, by whatever way.
brings() {
	echo "#include <pinion/$1.h>" >"$TMPDIR/level.c"
	$CC -std=c11 -M -I "$top_srcdir/include" "$TMPDIR/level.c" | grep -q "pinion/$2\.h"
}

for other in admission thread_pool lane scan; do
	if brings runtime $other; then
		echo "pinion/runtime.h brings pinion/$other.h along, which is above it"
		bad=1
	fi
	if ! brings $other "$([ $other = lane ] && echo task || echo runtime)"; then
		echo "pinion/$other.h does not stand on what is below it"
		bad=1
	fi
done

[ $bad = 0 ] || exit 1
if [ "$languages" = c ]; then
	echo "C11 is fine; C++ not tried, there is no C++ compiler"
	exit 77
fi
