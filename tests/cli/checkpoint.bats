#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Goal: a scan or a sum that was stopped goes on, and its output is that of one
# that nothing has stopped; a log that does not fit is refused by a line. EX-51.
# Method: a small tree, whose files are older than a second; logs that are cut,
# damaged, or another run's.

bats_require_minimum_version 1.5.0
load program

setup_file() {
	cd "$BATS_FILE_TMPDIR"
	mkdir -p tree/deep
	for i in {1..12}; do
		seq "$i" 300 >"tree/deep/$i"
		printf 'id AKIAQ3XZK7MV2TB5%04d\n' "$i" | tr 0189 QRST >>"tree/deep/$i"
	done
	printf 'nothing\n' >tree/clean
	# Each line is some 110 bytes, one of 300 has a finding, one of 1000 an
	# allowed one; some lines are longer than a window.
	awk 'BEGIN { for (i = 0; i < 24000; i++) {
		key = "AKIAQ3XZK7MV2TB5" sprintf("%04d", i % 8000)
		gsub(/0/, "Q", key); gsub(/1/, "R", key); gsub(/8/, "S", key); gsub(/9/, "T", key)
		text = i % 300 == 7 ? "id " key : i % 1000 == 3 ? key " pinion:allow" : "plain " i
		printf "%s %0*d\n", text, i % 7000 == 11 ? 90000 : 90, 0 } }' >big
	wait_until_old
}

setup() {
	enter_folder
	cp -a "$BATS_FILE_TMPDIR/tree" .
	# A copy has another inode and change time; a second later it is not fresh.
	ln -s "$BATS_FILE_TMPDIR/tree" kept
}

# Runs a scan of the old tree; its output is sorted.
scan() {
	pinion scan --workers=2 "$@" kept/
	sort -o out out
}

@test "a log cut anywhere is gone on with, and the output is whole" {
	scan
	[ "$status" = 1 ]
	cp out plain
	[ "$(wc -l <plain)" = 12 ]
	scan --checkpoint=log
	cmp out plain
	[ ! -s err ]
	[ "$(stat -c %a log)" = 600 ]
	cp log whole
	size=$(stat -c %s whole)
	for ((cut = 0; cut <= size; cut += 151)); do
		head -c "$cut" whole >log
		scan --checkpoint=log --resume
		[ "$status" = 1 ] || { cat err; return 1; }
		cmp out plain || { echo "cut at $cut"; return 1; }
	done
	cp whole log
	scan --checkpoint=log --resume
	cmp out plain
	[ "$(cat err)" = "pinion scan: 13 files were done by earlier runs" ]
}

@test "a log in the tree is no part of the scan" {
	printf 'id AKIAQ3XZK7MV2TB5LMWP\n' >tree/found
	pinion scan --checkpoint=tree/log --format=json tree
	[ "$status" = 1 ]
	[ "$(wc -l <out)" = 13 ]
	[ "$(cat err)" = "pinion scan: tree/log: --checkpoint writes there: it is not searched" ]
	cp out plain
	ln -s tree/log link
	pinion scan --checkpoint=link --resume --format=json tree
	[ "$(wc -l <out)" = 13 ]
	diff <(sort out) <(sort plain)
	grep -qx "pinion scan: tree/log: --checkpoint writes there: it is not searched" err
}

@test "a document comes out whole, too" {
	# Without the times.
	strip() { jq -S 'del(.runs[].invocations[]["startTimeUtc", "endTimeUtc"])
		| .runs[].results |= sort_by(.locations[0].physicalLocation.artifactLocation.uri)' out; }
	pinion scan --format=sarif kept/
	strip >plain
	pinion scan --format=sarif --checkpoint=log kept/
	head -c 2500 log >cut
	mv cut log
	pinion scan --format=sarif --checkpoint=log --resume kept/
	strip | cmp - plain
}

@test "files that changed, failed or were fresh are done again" {
	wait_until_old
	pinion scan --checkpoint=log tree
	[ "$(wc -l <out)" = 12 ]
	# The same size and time: its change time differs.
	stamp=$(stat -c %y tree/clean)
	printf 'changed\n' >tree/clean
	touch -d "$stamp" tree/clean
	rm tree/deep/3
	wait_until_old
	pinion scan --checkpoint=log --resume tree
	[ "$status" = 1 ]
	[ "$(wc -l <out)" = 11 ]
	grep -qx 'pinion scan: 11 files were done by earlier runs' err
	printf 'id AKIAQ3XZK7MV2TB5LMWP\n' >tree/new
	pinion scan --checkpoint=log --resume tree
	[ "$(wc -l <out)" = 12 ]
	# Changed just now, so it is fresh: not taken from the log the next time.
	pinion scan --checkpoint=log --resume tree
	[ "$(wc -l <out)" = 12 ]
	grep -qx 'pinion scan: 1[12] files were done by earlier runs' err
}

@test "counts of the baseline and of allowed lines come from the log as well" {
	pinion scan --format=json kept/deep/1
	cp out known
	pinion scan --baseline=known --stats=json kept/
	jq 'del(.seconds, .bytes, .read_bytes, .resumed)' err >plain || cat err
	pinion scan --baseline=known --stats=json --checkpoint=log kept/
	pinion scan --baseline=known --stats=json --checkpoint=log --resume kept/
	grep -v 'earlier runs' err | jq '.findings, .known' >counts || cat err
	jq '.findings, .known' plain | cmp - counts
}

refused() {
	[ "$status" = 2 ] || { cat err; return 1; }
	[ ! -s out ]
	[ "$(wc -l <err)" = 1 ] || { cat err; return 1; }
	grep -qF -e "$1" err || { cat err; return 1; }
}

@test "another run's log is refused, and the line says what differs" {
	scan --checkpoint=log
	scan --checkpoint=log
	refused 'it is there already: resume it, or remove it to begin anew'
	cp log before
	scan --checkpoint=log --resume --format=json
	refused "it is of another run, with options (none); this run has --format=json: remove it"
	printf 'r\tKEY[0-9]+\n' >rules
	scan --checkpoint=ruled --rules=rules
	printf 'r\tKEY[0-8]+\n' >rules
	scan --checkpoint=ruled --resume --rules=rules
	refused 'with rules and baseline '
	pinion scan --checkpoint=log --resume tree
	refused 'with root kept/ (inode'
	printf 'text\n' >other
	scan --checkpoint=other --resume
	refused 'checkpoint other: it is no checkpoint log'
	scan --checkpoint=none/log
	refused 'cannot be made: No such file or directory'
	scan --resume
	refused '--resume is about the log of --checkpoint=FILE, which is not given'
	scan --checkpoint=log --salvage
	refused '--salvage is about a log that --resume goes on with'
	cmp log before
	# Neither of these changes results.
	scan --checkpoint=log --resume --workers=1 --direct=never --stats
	[ "$status" = 1 ]
}

@test "a second writer is refused" {
	scan --checkpoint=log
	exec {held}<log
	flock "$held"
	scan --checkpoint=log --resume
	refused 'another process writes it: wait for its end'
	exec {held}<&-
}

@test "damage is refused with its offset, and salvaged" {
	scan --checkpoint=log
	cp out plain
	# In the first file's record, which SYNCs vouch for.
	printf '\xff' | dd of=log bs=1 seek=900 conv=notrunc status=none
	scan --checkpoint=log --resume
	refused 'it is damaged at offset'
	scan --checkpoint=log --resume --salvage
	cmp out plain
	grep -q 'are damaged, and passed by' err
	scan --checkpoint=log --resume
	cmp out plain
}

@test "a log that cannot be written stops the scan by a line" {
	(
		ulimit -f 1
		scan --checkpoint=log
		[ "$status" = 2 ]
	)
	grep -q 'checkpoint log: cannot be written: nothing is recorded from offset' err
	# What it has is whole.
	scan
	cp out plain
	scan --checkpoint=log --resume
	cmp out plain
}

needs_digest() {
	case $features in
	*+openssl*) digest=sha256 ;;
	*+xxhash*) digest=xxh3-64 ;;
	*) skip "built without openssl and xxhash" ;;
	esac
}

@test "checksums go on, and come in the order of the paths" {
	needs_digest
	sum() { pinion sum -r -a "$digest" "$@" kept/; }
	sum --sort=path
	[ "$status" = 0 ]
	cp out plain
	[ "$(wc -l <plain)" = 13 ]
	sum --sort=path --checkpoint=log
	cmp out plain
	cp log whole
	size=$(stat -c %s whole)
	for ((cut = 0; cut <= size; cut += 301)); do
		head -c "$cut" whole >log
		sum --sort=path --checkpoint=log --resume
		[ "$status" = 0 ] || { cat err; return 1; }
		cmp out plain || { echo "cut at $cut"; return 1; }
	done
	cp whole log
	sum --sort=path --checkpoint=log --resume
	cmp out plain
	[ "$(cat err)" = "pinion sum: 13 files were done by earlier runs" ]
	sum --sort=path --checkpoint=log --resume --tag
	refused "with options --recursive --algorithm=$digest --sort=path; this run has --recursive"
	scan --checkpoint=log --resume
	refused "with command sum; this run has scan"
	pinion sum --checkpoint=new -c plain
	refused '-c does not go with --checkpoint'
	pinion sum --checkpoint=new - </dev/null
	refused 'standard input cannot be read again'
	[ ! -e new ]
	pinion sum --checkpoint-interval=2 plain
	refused '--checkpoint-interval is about the log of --checkpoint=FILE'
}

# Whole MB that a run has read, of its --stats.
read_megabytes() {
	amount_of '[:;] \([0-9.]* [kMG]B\) (holes.*' | awk '{ print int($1 / 1e6) }'
}

@test "a long file is gone on with in its middle, with lines, limits and checksums" {
	local commands command bytes cut least

	needs_digest
	ln -s "$BATS_FILE_TMPDIR/big" big
	commands="scan --format=csv;sum -a $digest"
	[[ $features != *+xxhash* ]] || commands+=";sum -a xxh3-64"
	[[ $features != *+blake3* ]] || commands+=";sum -a blake3"
	while read -r -d ';' command; do
		pinion $command --window=64K big
		cp out plain
		rm -f log
		pinion $command --window=64K --workers=1 --checkpoint=log --checkpoint-interval=0 big
		cmp out plain
		cp log whole
		least=9999
		for cut in $(some_of 3 7); do
			head -c "$(($(stat -c %s whole) * cut / 8))" whole >log
			# With other windows, on which nothing depends.
			pinion $command --window=128K --stats --checkpoint=log --resume big
			cmp out plain || { echo "$command, cut at $cut/8"; return 1; }
			bytes=$(read_megabytes)
			[ "$((10#$bytes))" -ge "$least" ] || least=$((10#$bytes))
		done
		echo "$command: $least MB of 3 at least"
		[[ $command == *sha256* ]] || [ "$least" -lt 2 ]
	done <<<"$commands;"
}

# Kills runs at any time, $1 of them, each of which goes on where the last was.
kill_some() {
	local i pid

	for ((i = 0; i < $1; i++)); do
		"${@:2}" --checkpoint=log --resume --checkpoint-interval=0.001 >part 2>err &
		pid=$!
		sleep "0.0$((RANDOM % 6))$((RANDOM % 10))"
		kill -9 "$pid" || return 0
		wait "$pid" || true
	done
}

@test "killed at any time, sum and scan go on to the whole result" {
	local file

	needs_digest
	# Holes: they take time, and no disk.
	for file in {1..24}; do truncate -s $((3000000 + file)) "kept/hole$file"; done
	wait_until_old
	for command in "sum -r -a $digest --sort=path" "scan --sort=path"; do
		rm -f log
		pinion $command kept/
		cp out plain
		kill_some "${KILLS:-8}" "$PINION" $command kept/
		pinion $command --checkpoint=log --resume kept/
		cmp out plain || { cat err; return 1; }
		grep 'earlier runs' err || true
	done
	rm kept/hole*
}
