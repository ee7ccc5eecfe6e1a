#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Goal: an option's default is the same in the manual page of its command and in
# what --help prints.
# Method: "default N" of the option's row, and "default: N" of its help, as
# number or word; options that have neither are left out. A page with another
# number must be refused. shellcheck disable=SC2154 # tests/run sets top_srcdir
set -u

failed=0

# One line each: OPTION DEFAULT. Help breaks lines where it likes.
of_help() {
	"$top_builddir/pinion" "$1" --help | awk '
		/^ .* --[a-z-]+/ { match($0, /--[a-z-]+/); option = substr($0, RSTART, RLENGTH) }
		/^[^ ]/ { option = "" }
		option != "" { text[option] = text[option] " " $0 }
		END { for (option in text) if (match(text[option], /default: +[0-9A-Za-z.]+/)) {
			value = substr(text[option], RSTART, RLENGTH); sub(/default: +/, "", value)
			sub(/\.$/, "", value); print option, value } }' | sort
}

of_page() {
	sed -n 's/^| .*`\(--[a-z-]*\)=[^`]*` | .*[dD]efault `*\([0-9A-Za-z.]*\).*/\1 \2/p' "$1" |
		sed 's/\.$//' | sort
}

# differ COMMAND PAGE: what both name, and not alike.
differ() {
	join <(of_help "$1") <(of_page "$2") | awk '$2 != $3'
}

# The help of pinion bench names no defaults.
for command in scan sum; do
	page=$top_srcdir/docs/man/pinion-$command.md
	different=$(differ "$command" "$page")
	if [ -n "$different" ]; then
		echo "pinion $command: option, default of --help, default of the page: $different"
		failed=1
	fi
	count=$(join <(of_help "$command") <(of_page "$page") | wc -l)
	if [ "$count" -lt 2 ]; then
		echo "pinion $command: expected 2 options at least to compare, got $count"
		failed=1
	fi
done

# It can fail.
sed 's/default 20000/default 20001/' "$top_srcdir/docs/man/pinion-scan.md" >"$TMPDIR/page.md"
if [ "$(differ scan "$TMPDIR/page.md")" != "--max-rules 20000 20001" ]; then
	echo "a page with another default is not refused: $(differ scan "$TMPDIR/page.md")"
	failed=1
fi
exit $failed
