#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Goal: whatever becomes of the log of a sum, or of its files between two runs,
# the next run prints what a run without a log prints, or refuses by one line.
# EX-51.
# Method: a small tree, whose files are older than a second. Logs are damaged,
# files changed, disks filled, runs killed, also with --salvage and in shards.

bats_require_minimum_version 1.5.0
load program

setup_file() {
	cd "$BATS_FILE_TMPDIR"
	mkdir -p tree/deep
	for i in {1..9}; do
		seq "$i" 400 >"tree/deep/$i"
	done
	: >tree/empty
	seq 50000 >tree/long
	seq 9 >file1
	seq 8 >file2
	wait_until_old
}

setup() {
	enter_folder
	case $features in
	*+openssl*) digest=sha256 ;;
	*+xxhash*) digest=xxh3-64 ;;
	*) skip "built without openssl and xxhash" ;;
	esac
	ln -s "$BATS_FILE_TMPDIR/tree" kept
	link_made file1 file2
}

# The paths come last.
sum() {
	pinion sum -r -a "$digest" --sort=path --workers=2 --window=64K "$@"
}

# goes_on N: the output is the plain one, and N files come from the log.
goes_on() {
	local words="$1 files were"

	[ "$1" != 1 ] || words="1 file was"
	[ "$status" = 0 ] || { cat err; return 1; }
	cmp out plain
	if [ "$1" = 0 ]; then
		[ ! -s err ]
	else
		[ "$(tail -n 1 err)" = "pinion sum: $words done by earlier runs" ] || { cat err; return 1; }
	fi
}

refused() {
	[ "$status" = 2 ] || { cat err; return 1; }
	[ ! -s out ]
	[ "$(wc -l <err)" = 1 ] || { cat err; return 1; }
	grep -qF -e "$1" err || { cat err; return 1; }
}

@test "a log damaged anywhere is gone on with, or refused and salvaged" {
	local at step

	sum kept/
	cp out plain
	sum --checkpoint=log --checkpoint-interval=0 kept/
	cmp out plain
	cp log whole
	size=$(stat -c %s whole)
	step=$((size / 13))
	! is_sanitized || step=$((size / 3))
	for ((at = 350; at < size; at += step)); do
		cp whole log
		printf '\xa5\x5a' | dd of=log bs=1 seek="$at" conv=notrunc status=none
		cp log damaged
		sum --checkpoint=log --resume kept/
		[ "$status" = 0 ] || {
			refused 'it is damaged at offset'
			cmp log damaged
			sum --checkpoint=log --resume --salvage kept/
		}
		cmp out plain || { echo "damaged at $at"; cat err; return 1; }
		sum --checkpoint=log --resume kept/
		goes_on 11
		pinion merge log
		[ "$status" = 0 ]
		cmp out plain
	done
	# Where it begins nothing can be salvaged.
	printf '\xa5\x5a' | dd of=whole bs=1 seek=30 conv=notrunc status=none
	sum --checkpoint=whole --resume --salvage kept/
	refused 'checkpoint whole: it is no checkpoint log, or its start is damaged'
}

@test "a disk that is full at any record stops the sum, which goes on once it is not" {
	local limit step=230 full=0

	command -v prlimit >/dev/null || skip "no prlimit"
	sum kept/
	cp out plain
	sum --checkpoint=log --checkpoint-interval=0 kept/
	size=$(stat -c %s log)
	! is_sanitized || step=900
	# The limit is for all files, so the output is another process's. A sanitizer
	# writes one itself, before the program can ignore the signal.
	{
		printf '#!/bin/bash\nset -o pipefail\n'
		! is_sanitized || echo "trap '' XFSZ"
		printf 'prlimit --fsize="$LIMIT" "%s" "$@" 2>&1 | cat >&2\n' "$PINION"
	} >limited
	chmod 755 limited
	for ((limit = 0; limit < size; limit += step)); do
		rm log
		LIMIT=$limit PINION=./limited sum --checkpoint=log --checkpoint-interval=0 kept/
		# Fewer SYNCs, and the log may fit after all.
		[ "$status" = 0 ] || {
			grep -q 'checkpoint log: cannot be written: nothing is recorded from' err || {
				cat err
				return 1
			}
			full=$((full + 1))
		}
		sum --checkpoint=log --resume kept/
		[ "$status" = 0 ] || { cat err; return 1; }
		cmp out plain || { echo "limit $limit"; return 1; }
	done
	[ "$full" -ge 3 ]
}

@test "of a complete log, files that changed are done again, and no others" {
	local stamp

	cp -r "$BATS_FILE_TMPDIR/tree" .
	wait_until_old
	sum --checkpoint=log tree
	[ "$(wc -l <out)" = 11 ]
	cp out before
	# The same size and time, so that its change time differs.
	stamp=$(stat -c %y tree/deep/1)
	printf 9 | dd of=tree/deep/1 bs=1 conv=notrunc status=none
	touch -d "$stamp" tree/deep/1
	# Another inode with all else the same but the change time.
	cp -p tree/deep/2 new
	printf 9 | dd of=new bs=1 conv=notrunc status=none
	touch -r tree/deep/2 new
	mv new tree/deep/2
	# Another size, another time.
	echo more >>tree/long
	touch tree/deep/4
	wait_until_old
	sum tree
	cp out plain
	[ "$(diff before plain | grep -c '^>')" = 3 ]
	sum --checkpoint=log --resume tree
	goes_on 7
	sum --checkpoint=log --resume tree
	goes_on 11
	# A file is gone, and another has its place.
	mv tree/deep/5 tree/deep/6
	wait_until_old
	sum tree
	cp out plain
	sum --checkpoint=log --resume tree
	goes_on 9
	pinion merge log
	[ "$status" = 0 ]
	cmp out plain
}

@test "a tree by another name is refused, and a named file may be another" {
	cp -r "$BATS_FILE_TMPDIR/tree" tree
	cp -r "$BATS_FILE_TMPDIR/tree" other
	sum --checkpoint=log tree
	cp log before
	sum --checkpoint=log --resume other
	refused "with root tree (inode $(stat -c %i tree)); this run has other (inode"
	mv tree away
	mv other tree
	sum --checkpoint=log --resume tree
	refused "with root tree (inode $(stat -c %i away)); this run has tree (inode $(stat -c %i tree))"
	rm -r tree
	sum --checkpoint=log --resume tree
	refused "with root tree (inode $(stat -c %i away)); this run has tree: remove it"
	cmp log before
	mv away tree
	sum --checkpoint=log --resume tree
	[ "$status" = 0 ]
	sum --checkpoint=named file1 file2
	cp file2 new
	echo more >>new
	mv new file2
	wait_until_old
	sum file1 file2
	cp out plain
	sum --checkpoint=named --resume file1 file2
	goes_on 1
}

@test "names of many files are a digest in the log" {
	mkdir many
	seq -f "many/a_name_of_many_bytes_%g" 3000 >names
	xargs touch <names
	sum --checkpoint=log $(<names)
	[ "$(wc -l <out)" = 3000 ]
	grep -aq '3000 paths of digest [0-9a-f]\{16\}' log
	sum --checkpoint=log --resume $(<names)
	[ "$status" = 0 ]
	sum --checkpoint=log --resume $(tail -n 2999 names)
	refused 'with root 3000 paths of digest '
	grep -q '; this run has 2999 paths of digest ' err
}

@test "other options, algorithms and shards are refused" {
	sum --checkpoint=log kept/
	cp log before
	pinion sum -r -a md5 --sort=path --checkpoint=log --resume kept/
	refused "with options --recursive --algorithm=$digest --sort=path; this run has --recursive --algorithm=md5"
	sum --checkpoint=log --resume --tag kept/
	refused 'this run has --recursive --algorithm='
	sum --checkpoint=log --resume --shard=1/3 kept/
	refused 'with shard (none); this run has 1/3'
	cmp log before
	# A difference is shown although the values are long.
	sum --checkpoint=far --exclude={one,two,three,four,five}_long --exclude=six kept/
	sum --checkpoint=far --resume --exclude={one,two,three,four,five}_long --exclude=seven kept/
	refused 'with options … --exclude=six; this run has … --exclude=seven: remove it'
	local long before_it
	long=$(printf 'a%.0s' {1..300})
	before_it=${long::60}
	sum --checkpoint=wide --exclude="${long}six" kept/
	sum --checkpoint=wide --resume --exclude="${long}seven" kept/
	# Both begin with s.
	refused "with options … ${before_it:1}six; this run has … ${before_it:1}seven: remove it"
	# Neither of these changes results.
	pinion sum -r -a "$digest" --sort=path --workers=1 --direct=never --checkpoint=log --resume kept/
	[ "$status" = 0 ]
}

@test "while one run writes, a second is refused, and a merge calls it missing" {
	local pid

	mkfifo list
	exec 7<>list
	"$PINION" sum -a "$digest" --checkpoint=log --shard=0/2 --files-from=list >first 2>&1 3>&- 7>&- &
	pid=$!
	wait_until_watching "$pid"
	printf '%s\n' file1 file2 >&7
	pinion sum -a "$digest" --checkpoint=log --shard=0/2 --resume --files-from=/dev/null
	refused 'checkpoint log: another process writes it: wait for its end'
	pinion merge --missing log
	[ "$status" = 1 ]
	[ "$(cat out)" = 0-1 ]
	kill -KILL "$pid"
	wait "$pid" || true
	exec 7>&-
}

# Kills $1 runs of the words after at any time.
kill_some() {
	local i pid

	for ((i = 0; i < $1; i++)); do
		"$PINION" sum -r -a "$digest" --workers=2 --checkpoint-interval=0.001 --resume "${@:2}" \
			>/dev/null 2>&1 3>&- &
		pid=$!
		sleep "0.0$((RANDOM % 6))$((RANDOM % 10))"
		kill -9 "$pid" || true
		wait "$pid" || true
	done
}

@test "shards that are killed at any time go on, and merge to the bytes of one run" {
	local i

	cp -r "$BATS_FILE_TMPDIR/tree" tree
	# Holes: they take time, and no disk.
	for i in {1..9}; do truncate -s $((3000000 + i)) "tree/hole$i"; done
	wait_until_old
	sum tree
	cp out plain
	[ "$(wc -l <plain)" = 20 ]
	for i in 0 1 2; do
		kill_some "${KILLS:-3}" --shard="$i/3" --checkpoint="log.$i" tree
		pinion sum -r -a "$digest" --shard="$i/3" --checkpoint="log.$i" --resume tree
		[ "$status" = 0 ] || { cat err; return 1; }
	done
	pinion merge log.*
	[ "$status" = 0 ]
	[ ! -s err ]
	cmp out plain
}

@test "a salvage that is killed is made once more" {
	local size round

	cp -r "$BATS_FILE_TMPDIR/tree" tree
	for i in {1..9}; do truncate -s $((2000000 + i)) "tree/hole$i"; done
	wait_until_old
	pinion sum -r -a "$digest" --sort=path tree
	cp out plain
	pinion sum -r -a "$digest" --checkpoint=log --checkpoint-interval=0 tree
	cp log whole
	size=$(stat -c %s whole)
	for round in $(some_of 1 2 3); do
		cp whole log
		for at in 3 5; do
			printf '\xa5' | dd of=log bs=1 seek=$((size * at / 8)) conv=notrunc status=none
		done
		kill_some "${KILLS:-3}" --salvage --checkpoint=log tree
		pinion sum -r -a "$digest" --checkpoint=log --resume --salvage tree
		[ "$status" = 0 ] || { cat err; return 1; }
		pinion merge log
		[ "$status" = 0 ]
		cmp out plain || { echo "round $round"; return 1; }
	done
}
