#!/bin/bash
# SPDX-License-Identifier: MIT
# Goal: with CI_STRICT=1 a test that skips for a missing tool has failed; any
# other skip, and every skip without CI_STRICT, stays one.
# shellcheck disable=SC2154 # tests/run sets top_srcdir
set -u
cd "$TMPDIR" || exit 1
cat >tool.sh <<'END'
#!/bin/sh
echo "valgrind is missing: apt-get install valgrind"
exit 77
END
cat >kernel.sh <<'END'
#!/bin/sh
echo "no io_uring here"
exit 77
END
cat >cases.bats <<'END'
@test "needs a tool" { skip "jq is not installed"; }
@test "needs a disk" { skip "TMPDIR has no O_DIRECT"; }
@test "needs nothing" { true; }
END
chmod +x tool.sh kernel.sh

# expect STRICT STATUS LAST-LINE [PATH]
expect() {
	local status=0
	said=$(env CI_STRICT="$1" PATH="${4:-$PATH}" top_srcdir="$PWD" top_builddir="$PWD" \
		/bin/bash "$runner" tool.sh kernel.sh cases.bats) || status=$?
	[ "$status" = "$2" ] && [ "${said##*$'\n'}" = "$3" ] && return
	printf '%s\n' "CI_STRICT=$1: expected status $2 and '$3', got status $status:" "$said"
	exit 1
}

runner=$top_srcdir/tests/run
command -v bats >/dev/null || { echo "bats is not installed" && exit 77; }
expect 0 0 "1 passed, 0 failed, 4 skipped"
expect 1 1 "1 passed, 2 failed, 2 skipped"
for line in "FAIL tool.sh: valgrind" "FAIL cases.bats: needs a tool: jq"; do
	[[ $said == *"$line"* ]] || { echo "no line '$line' in: $said" && exit 1; }
done

# Without bats all of its cases are missing.
mkdir bin
for tool in bash basename cat chmod cut dirname env grep head mktemp rm sed tail timeout yes; do
	ln -s "$(command -v $tool)" bin/
done
expect 0 0 "0 passed, 0 failed, 5 skipped" "$PWD/bin"
expect 1 1 "0 passed, 4 failed, 1 skipped" "$PWD/bin"
