#!/bin/sh
# SPDX-License-Identifier: MIT
# Goal: after `make install`, man(1) finds a page for each command and for each
# function and struct that the public headers declare. No page has a mistake that mandoc
# warns of, or groff where there is no mandoc. `make uninstall` leaves none.
# Method: installs into a staging folder. A function that no page has must be
# missed there, and a planted mistake be warned of. A page that cannot be
# translated must fail, with its line.
# shellcheck disable=SC2154 # tests/run sets top_srcdir and its like
set -eu
stage=$TMPDIR/stage

make_staged() {
	"$MAKE" -s --no-print-directory "$1" DESTDIR="$stage" >"$TMPDIR/make.log" 2>&1 || {
		cat "$TMPDIR/make.log"
		echo "make $1 failed"
		exit 1
	}
}
make_staged install
man=$(dirname "$(find "$stage" -type d -name man3)")

# has_page SECTION NAME: it has text, or refers to a page that has.
has_page() {
	page=$man/man$1/$2.$1
	[ -f "$page" ] || return 1
	target=$(sed -n 's/^\.so //p' "$page")
	[ -z "$target" ] || page=$man/$target
	[ -f "$page" ] && grep -q '^\.TH ' "$page"
}

cat "$top_srcdir"/include/pinion/*.h | sed '/^#/d' | tr '\n\t' '  ' | grep -o 'PINION_API [^;]*;' |
	sed 's/^[^(]*[ *]\(pinion_[a-z0-9_]*\)(.*/\1/' | sort -u >"$TMPDIR/functions"
[ "$(wc -l <"$TMPDIR/functions")" -gt 100 ] || {
	echo "only $(wc -l <"$TMPDIR/functions") functions were found in the headers"
	exit 1
}
while read -r function; do
	has_page 3 "$function" || {
		echo "no page has $function: man 3 $function fails"
		exit 1
	}
done <"$TMPDIR/functions"
sed -n 's/^struct \(pinion_[a-z0-9_]*\) {.*/\1/p' "$top_srcdir"/include/pinion/*.h >"$TMPDIR/structs"
[ "$(wc -l <"$TMPDIR/structs")" -gt 40 ] || {
	echo "only $(wc -l <"$TMPDIR/structs") structs were found in the headers"
	exit 1
}
while read -r struct; do
	has_page 3 "$struct" || {
		echo "no page has struct $struct: man 3 $struct fails"
		exit 1
	}
done <"$TMPDIR/structs"
for page in "$top_srcdir"/docs/man/pinion-*.md; do
	command=$(basename "$page" .md)
	section=$(sed -n '1s/.*(\([15]\))$/\1/p' "$page")
	# Built only where there is an MPI.
	if [ "$command" = pinion-mpi ] && [ ! -x "$top_builddir/pinion-mpi" ]; then
		! has_page 1 pinion-mpi || {
			echo "there is a page of pinion-mpi, which is not built"
			exit 1
		}
		continue
	fi
	has_page "$section" "$command" || {
		echo "man $section $command fails"
		exit 1
	}
done
if has_page 3 pinion_planted || has_page 1 pinion-planted; then
	echo "a page was found for a planted name"
	exit 1
fi
[ "$(cat "$man/man3/pinion_group_spawn.3")" = ".so man3/pinion_group.3" ] || {
	echo "pinion_group_spawn.3 does not refer to pinion_group.3"
	exit 1
}
if command -v man >/dev/null; then
	for page in 1:pinion-scan 3:pinion_request 3:pinion_config_init_sized; do
		man -M "$man" -w "${page%:*}" "${page#*:}" >"$TMPDIR/found" 2>&1 || {
			cat "$TMPDIR/found"
			echo "man does not find ${page#*:} in section ${page%:*}"
			exit 1
		}
	done
fi

# A table's row that lacks a cell, a ` that lacks its partner, no title.
mkdir -p "$TMPDIR/bad/docs/man" "$TMPDIR/bad/include"
ln -s "$(cd "$top_srcdir" && pwd)/include/pinion" "$TMPDIR/bad/include/pinion"
printf '# pinion_x(3)\n\n## Name\n\npinion_x: x\n\n## X\n\n' >"$TMPDIR/head"
for bad in '8:| a | b |\n|---|---|\n| c |' '8:a `b c' '0:text'; do
	{
		[ "${bad%%:*}" = 0 ] || cat "$TMPDIR/head"
		# shellcheck disable=SC2059 # it has the line ends
		printf "${bad#*:}\n"
	} >"$TMPDIR/bad/docs/man/pinion_x.md"
	if "$top_srcdir/tools/dev/manual" "$TMPDIR/bad" "$TMPDIR/pages" 2>"$TMPDIR/refused" ||
		! grep -q '/pinion_x.md:[0-9]*: ' "$TMPDIR/refused"; then
		cat "$TMPDIR/refused"
		echo "a page with a mistake was translated: $bad"
		exit 1
	fi
done

# warnings FILE...
if command -v mandoc >/dev/null; then
	warnings() { mandoc -T lint -W warning "$@"; }
elif command -v groff >/dev/null; then
	warnings() { groff -t -man -ww -z "$@" 2>&1; }
else
	warnings() { :; }
	skipped="mandoc is not installed: apt-get install mandoc"
fi
find "$man" -name 'pinion*' -exec grep -L '^\.so' {} + >"$TMPDIR/pages.list"
while read -r page; do
	warnings "$page" >"$TMPDIR/warnings" || true
	[ ! -s "$TMPDIR/warnings" ] || {
		cat "$TMPDIR/warnings"
		echo "$(basename "$page") has the warnings above; its source is in docs/man"
		exit 1
	}
done <"$TMPDIR/pages.list"
printf '.TH X 3 2026-01-01 x x\n.SH NAME\nx \\- x\n.RE\n.unknown\n\\[unknown]\n' >"$TMPDIR/planted.3"
if [ -z "${skipped-}" ] && [ -z "$(warnings "$TMPDIR/planted.3")" ]; then
	echo "no warning of a planted mistake"
	exit 1
fi

make_staged uninstall
rest=$(find "$stage" -path "$man/*" -type f)
[ -z "$rest" ] || {
	echo "left by make uninstall: $rest"
	exit 1
}
[ -z "${skipped-}" ] || {
	echo "$skipped"
	exit 77
}
