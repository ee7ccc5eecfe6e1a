#!/bin/sh
# SPDX-License-Identifier: MIT
# Goal: valgrind's memcheck finds nothing in correct programs: no touch of memory
# that is not theirs, no value that was never set, nothing lost; without any
# suppressions. And it finds what a planted program does wrong.
# Method: examples that spawn, wait for timers and channels, and read.
# shellcheck disable=SC2154 # tests/run sets top_srcdir and its like
set -eu

[ -z "${SANITIZER_CFLAGS-}" ] || {
	echo "a sanitized program does not run under valgrind"
	exit 77
}
command -v valgrind >/dev/null || {
	echo "valgrind is missing: apt-get install valgrind"
	exit 77
}

# is_clean PROGRAM ARGUMENT…
is_clean() {
	valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite \
		"$@" >"$TMPDIR/out" 2>"$TMPDIR/err"
}

cat >"$TMPDIR/planted.c" <<'END'
#include <stdlib.h>

int main(void)
{
	int *memory = malloc(sizeof(*memory));
	int is_set = *memory != 0;

	free(memory);
	return is_set ? 0 : 1;
}
END
$CC -O0 -w -o "$TMPDIR/planted" "$TMPDIR/planted.c"
status=0
is_clean "$TMPDIR/planted" || status=$?
[ "$status" = 9 ] || {
	echo "a planted use of a value that was never set was not noticed"
	exit 1
}
for command in fan_out timer "read_file $top_srcdir/README.md" "pipeline $top_srcdir/README.md"; do
	# shellcheck disable=SC2086 # a program and its argument
	is_clean examples/$command || {
		status=$?
		grep '^==' "$TMPDIR/err" | head -n 20 || :
		tail -n 1 "$TMPDIR/out"
		echo "$command under valgrind: status $status"
		exit 1
	}
done
