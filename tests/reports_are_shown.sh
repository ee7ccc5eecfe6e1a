#!/bin/bash
# SPDX-License-Identifier: MIT
# Goal: a report of ThreadSanitizer fails the test in which it comes, also where
# the test has passed, and the output of a run has its beginning: of what kind it
# is, and both stacks. Of another sanitizer's that is on stderr it has it, too.
# shellcheck disable=SC2154 # tests/run sets top_srcdir
set -u
cd "$TMPDIR" || exit 1
runner=$top_srcdir/tests/run
stacks() { printf '    #%d frame\n' {0..19}; }
cat >hidden.sh <<END
#!/bin/bash
{
	echo "WARNING: ThreadSanitizer: data race (pid=7)"
	echo "$(stacks)"
	echo "  Previous write of size 8 by thread T5:"
	echo "$(stacks)"
	echo "SUMMARY: ThreadSanitizer: data race a.c:92 in open_folder"
} >"\${TSAN_OPTIONS##*log_path=}.7"
END
cat >said.sh <<END
#!/bin/bash
echo "ERROR: AddressSanitizer: heap-use-after-free on address 0x7"
echo "$(stacks)"
echo "SUMMARY: AddressSanitizer: heap-use-after-free b.c:3 in keep"
yes legend | head -n 30
exit 99
END
echo exit >silent.sh
chmod +x hidden.sh said.sh silent.sh
said=$(env top_srcdir="$PWD" top_builddir="$PWD" /bin/bash "$runner" hidden.sh said.sh silent.sh)
status=$?
for line in "FAIL hidden.sh: SUMMARY: ThreadSanitizer: data race a.c:92 in open_folder" \
	"    | WARNING: ThreadSanitizer: data race" "    |   Previous write of size 8" \
	"FAIL said.sh: SUMMARY: AddressSanitizer: heap-use-after-free b.c:3 in keep" \
	"    | ERROR: AddressSanitizer: heap-use-after-free"; do
	[[ $said == *"$line"* ]] || { echo "no line '$line' in: $said" && exit 1; }
done
[ "$status ${said##*$'\n'}" = "1 1 passed, 2 failed, 0 skipped" ] || {
	printf 'status %s: %s\n' "$status" "$said"
	exit 1
}
