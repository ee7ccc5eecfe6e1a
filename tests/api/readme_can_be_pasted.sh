#!/bin/sh
# SPDX-License-Identifier: MIT
# Goal: what README shows can be pasted into a shell in the source folder: each
# command on build/pinion, and the library's first program, with the command
# that builds it.
# Method: a folder that looks like the source folder after ./bootstrap demo, with
# a small tree in place of the demo's; all lines are taken from README itself.
set -eu

cd "$TMPDIR"
mkdir build
ln -s "$top_srcdir/include" include
ln -s "$top_srcdir/README.md" README.md
for made in pinion .libs libpinion.a examples; do
	[ ! -e "$top_builddir/$made" ] || ln -s "$top_builddir/$made" "build/$made"
done
"$top_builddir/tools/dev/corpus" --size 2M build/demo-corpus >planted 2>/dev/null

# The source folder is a repository; this has a commit without a file.
git init -q .
git -c user.name=name -c user.email=name@example.org commit -q --allow-empty -m first

# fail WHAT: with the output.
fail() {
	cat printed
	echo "$1"
	exit 1
}

# --- Commands: 0 or 1, findings, says that they did what README shows.
sed -n 's/^    \$ \(build\/pinion .*\)/\1/p' README.md >commands
[ "$(wc -l <commands)" -ge 5 ] || fail "README shows $(wc -l <commands) commands, at least 5 were expected"
while read -r command; do
	status=0
	sh -c "$command" >printed 2>&1 </dev/null || status=$?
	[ $status -le 1 ] || fail "$command: exit status $status"
	case $command in
	*--stats\ build/demo-corpus)
		tail -n 1 printed | grep -q "^pinion scan: findings: $(wc -l <planted); " ||
			fail "$command: not $(wc -l <planted) findings"
		;;
	*json*)
		shown=$(grep -A 1 -F "$command" README.md | sed -n '2s/^    //p')
		grep -qxF "$shown" printed || fail "$command: README shows $shown"
		;;
	esac
done <commands

# --- The program.
awk '/^```/ { if (is_in) exit; is_in = /^```c$/; next } is_in' README.md >hello.c
build=$(sed -n 's/^    \(gcc hello\.c .*\)/\1/p' README.md)
[ -n "$build" ] || fail "README does not say how hello.c is built"
# This build's compiler, and its sanitizers.
sh -c "$CC $SANITIZER_CFLAGS -Wall -Wextra -Werror ${build#gcc}" >printed 2>&1 || fail "$build"
[ "$(cat printed)" = "hello from a worker" ] || fail "$build: did not print: hello from a worker"
