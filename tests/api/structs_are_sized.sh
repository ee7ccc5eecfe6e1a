#!/bin/sh
# SPDX-License-Identifier: MIT
# Goal: the library returns the size and the alignment of each struct that the
# public headers define, and 0 for any other name.
# Method: a program compiled from the list of what the headers define.
# shellcheck disable=SC2154 # tests/run sets top_srcdir and its like
set -eu

cat "$top_srcdir"/include/pinion/*.h | sed -n 's/^struct \(pinion_[a-z_]*\) {.*/\1/p' |
	sort -u >"$TMPDIR/names"
[ "$(wc -l <"$TMPDIR/names")" -gt 40 ] || {
	echo "found only $(wc -l <"$TMPDIR/names") structs in the headers"
	exit 1
}
{
	cat <<'END'
#include <pinion/pinion.h>
#include <stdio.h>

static int bad;

static void check(const char *name, size_t bytes, size_t align)
{
	if (pinion_struct_bytes(name) != bytes || pinion_struct_align(name) != align) {
		printf("%s: %zu bytes, aligned to %zu; expected %zu and %zu\n", name,
			pinion_struct_bytes(name), pinion_struct_align(name), bytes, align);
		bad = 1;
	}
}

int main(void)
{
	check("pinion_runtime", 0, 0);
	check("task", 0, 0);
	check("", 0, 0);
END
	sed 's/.*/	check("&", sizeof(struct &), _Alignof(struct &));/' "$TMPDIR/names"
	echo '	return bad;'
	echo '}'
} >"$TMPDIR/sizes.c"
# shellcheck disable=SC2086,SC2046 # several words each
$CC ${SANITIZER_CFLAGS-} -std=c11 -Wall -Wextra -Werror -I"$top_srcdir/include" \
	-o "$TMPDIR/sizes" "$TMPDIR/sizes.c" libpinion.a \
	$($PKG_CONFIG --libs liburing numa hwloc) -pthread
"$TMPDIR/sizes"
