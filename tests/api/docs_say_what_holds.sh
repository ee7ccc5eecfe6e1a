#!/bin/sh
# SPDX-License-Identifier: MIT
# Goal: the tuning guide names settings and counters that exist, and no page
# repeats claims that are wrong for other schedulers: AS-5, AS-40, EX-15. The
# runbook says which runtime and which lane are for which work, figures
# included: WP-20, WP-21, WP-22, WP-38. Each test that SECURITY.md names exists,
# and each of its promises names one. Each heading of a page that a source or a
# page quotes, as `docs/PAGE.md, "Heading"`, is there.
# Method: names are looked up in the header and the page of the configuration;
# the same looks are made at planted texts, which must be found.
set -eu

docs=$top_srcdir/docs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# unknown FILE: settings and counters it names that there are not.
unknown() {
	grep -oE 'PINION_[A-Z_]+' "$1" | sort -u | while read -r name; do
		grep -qw "$name" "$docs/man/pinion_config.md" || echo "$name"
	done
	grep -oE '`[a-z]+_[a-z_]+`' "$1" | tr -d '`' | sort -u | while read -r name; do
		grep -qw "$name" "$top_srcdir"/include/pinion/*.h || echo "$name"
	done
}

# wrong FILE...: lines that say it.
wrong() {
	grep -niE 'BUDGET_PER_TICK|(as|like|matches) tokio.*budget|tokio scans|scans (up to )?64|one ctz' "$@" || :
}

echo 'set `PINION_NO_SUCH` and read `no_such_counter`' >"$work/unknown.md"
[ "$(unknown "$work/unknown.md" | wc -l)" = 2 ] || { echo "a planted name is not noticed"; exit 1; }
echo 'With 64 workers Tokio scans up to 64 entries, this one ctz.' >"$work/wrong.md"
[ -n "$(wrong "$work/wrong.md")" ] || { echo "a planted claim is not noticed"; exit 1; }

found=$(unknown "$docs/TUNING.md")
[ -z "$found" ] || { echo "TUNING.md names what there is not: $(echo "$found" | paste -sd ' ')"; exit 1; }
found=$(wrong "$top_srcdir/README.md" "$docs"/*.md "$docs"/man/*.md)
[ -z "$found" ] || { echo "repeats a claim that is wrong: $found"; exit 1; }

# untold FILE: knobs of EX-15, and that of EX-31, without a word on what they hang on.
untold() {
	for name in WORKER_COUNT STEAL_TRIES SPIN_ITERS PARK_TIMEOUT_US WAKE_BATCH_SPAWNS; do
		grep -qE "^- \`PINION_$name\`[^:]*: [^ ]" "$1" || echo "PINION_$name"
	done
}

printf -- '- `PINION_WORKER_COUNT`: cores\n- `PINION_STEAL_TRIES`: \n' >"$work/knobs.md"
[ "$(untold "$work/knobs.md" | wc -l)" = 4 ] || { echo "a planted knob without a word is not noticed"; exit 1; }
found=$(untold "$docs/TUNING.md")
[ -z "$found" ] || { echo "TUNING.md does not say what they hang on: $(echo "$found" | paste -sd ' ')"; exit 1; }

# missing FILE SECTION: rows of the section's table that it has not, or with
# empty cells; the rows are read from the input.
missing() {
	sed -n "/^## $2\$/,/^## /p" "$1" >"$work/section"
	while read -r row; do
		grep -qE "^\| $row( [^|]*)?\| [^|]+ \| [^|]+ \|" "$work/section" || echo "$row"
	done
}

printf '## A\n| best for | one | other |\n| overhead | | |\n## B\n| limit | x | y |\n' >"$work/table.md"
[ "$(printf 'best for\noverhead\nlimit\n' | missing "$work/table.md" A | wc -l)" = 2 ] || {
	echo "a planted hole in a table is not noticed"
	exit 1
}
found=$(missing "$docs/RUNBOOK.md" "Which runtime for what" <<END
best for
examples
one job takes
how many at once
what it is made of
may block
overhead
priority
END
)
[ -z "$found" ] || { echo "Which runtime for what: no row $found"; exit 1; }
found=$(missing "$docs/RUNBOOK.md" "Which lane for what" <<END
who waits
may take to begin
a job takes
how many
for
example
END
)
[ -z "$found" ] || { echo "Which lane for what: no row $found"; exit 1; }
for figures in 'within 1 s | .* | no user' 'up to 100 ms | 100 ms to 10 s | seconds to minutes' \
	'below 100 a second | below 1000 a second |'; do
	grep -q "$figures" "$docs/RUNBOOK.md" || { echo "Which lane for what: no \"$figures\""; exit 1; }
done

# unshown FILE: promises without a test that there is.
unshown() {
	sed -n 's/^| \(.*\) | \(.*\) |$/\2/p' "$1" | grep -vxE 'test|---' | while read -r named; do
		echo "$named" | grep -oE '`[^`]+`' | tr -d '`' | grep -v '^make ' | while read -r test; do
			[ -e "$top_srcdir/$test" ] || [ -e "$top_srcdir/$test.c" ] || echo "$test"
		done
		echo "$named" | grep -q '`' || echo "no test: $named"
	done
}

printf '| promise | test |\n|---|---|\n| a | `tests/unit/no_such_test` |\n| b | none |\n' >"$work/promises.md"
[ "$(unshown "$work/promises.md" | wc -l)" = 2 ] || { echo "a planted promise without a test is not noticed"; exit 1; }
found=$(unshown "$top_srcdir/SECURITY.md")
[ -z "$found" ] || { echo "SECURITY.md names what there is not: $(echo "$found" | paste -sd ' ')"; exit 1; }
[ "$(grep -c '^| .*`tests/' "$top_srcdir/SECURITY.md")" -ge 25 ] || { echo "SECURITY.md: fewer promises than there were"; exit 1; }

# unheaded FOLDER: quoted headings that are not there, of the sources and pages below it.
unheaded() {
	(cd "$1" && find . -name .git -prune -o -path "./build*" -prune -o ! -path ./tests/api/docs_say_what_holds.sh -type f \( -name '*.[ch]' -o -name '*.md' -o -name '*.sh' -o -name '*.bats' \) -print0 |
		xargs -0 awk -v root="$1" '
		FNR == 1 { check(); text = ""; file = FILENAME }
		{ sub(/^[ \t]*(\*|#) /, ""); text = text " " $0 }
		END { check() }
		function check(	rest, page, title) {
			while (match(text, /docs\/[A-Za-z\/-]+\.md(\)|`)?, "[^"]+"/)) {
				rest = substr(text, RSTART, RLENGTH)
				text = substr(text, RSTART + RLENGTH)
				page = rest; sub(/\.md.*/, ".md", page)
				title = rest; sub(/^[^"]*"/, "", title); sub(/"$/, "", title)
				gsub(/[ \t]+/, " ", title)
				print page "\t" title "\t" file
			}
		}') | sort -u | while IFS="$(printf '\t')" read -r page title file; do
		grep -qxE '#+ .*' "$1/$page" 2>/dev/null && sed -n 's/^#* //p' "$1/$page" | grep -qxF "$title" ||
			echo "$file: $page, \"$title\""
	done
}

mkdir -p "$work/tree/docs/decisions"
printf '## One thing holds\n' >"$work/tree/docs/decisions/page.md"
printf ' * Source: docs/decisions/page.md, "One thing\n * holds".\n' >"$work/tree/right.c"
[ -z "$(unheaded "$work/tree")" ] || { echo "a heading over two lines is not found: $(unheaded "$work/tree")"; exit 1; }
printf '/* docs/decisions/page.md, "Another" and docs/gone.md, "One thing holds" */\n' >"$work/tree/wrong.c"
[ "$(unheaded "$work/tree" | wc -l)" = 2 ] || { echo "a planted heading that is not there is not noticed"; exit 1; }
found=$(unheaded "$top_srcdir")
[ -z "$found" ] || { echo "quoted, and not there: $found"; exit 1; }
