#!/bin/sh
# SPDX-License-Identifier: MIT
# Goal: the tuning guide names settings and counters that exist, and no page
# repeats what is known to be wrong of other schedulers: AS-5, AS-40, EX-15.
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
