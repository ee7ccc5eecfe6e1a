#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Goal: the shards of a scan or a sum have no file in common and together all,
# and their logs merge to the bytes of one run, however many there are; shards
# that are missing or do not fit are named, and nothing is merged then. EX-53.
# Method: a small tree, whose files are older than a second; logs of its shards.

bats_require_minimum_version 1.5.0
load program

setup_file() {
	cd "$BATS_FILE_TMPDIR"
	make_tree_of_keys
	wait_until_old
}

setup() {
	enter_folder
	link_made tree named
}

# shards N COMMAND…: runs each, with its log.
shards() {
	local i

	rm -f log.*
	for ((i = 0; i < $1; i++)); do
		pinion "${@:2}" --shard="$i/$1" --checkpoint="log.$i" tree/ named
		[ "$status" -le 1 ] || { cat err; return 1; }
		[ ! -s err ] || { cat err; return 1; }
		cat out >>parts
	done
}

# refused WORDS: status 2, no output, and a line that has them.
refused() {
	[ "$status" = 2 ] || { cat err; return 1; }
	[ ! -s out ]
	grep -qF -e "$1" err || { cat err; return 1; }
}

@test "any number of shards merges to the bytes of one run" {
	local count

	pinion scan --format=json --sort=path named tree/
	cp out plain
	[ "$(wc -l <plain)" = 10 ]
	for count in $(some_of 1 3 16); do
		rm -f parts
		shards "$count" scan --format=json
		sort parts | cmp - <(sort plain)
		pinion merge log.*
		[ "$status" = 1 ]
		cmp out plain
		[ ! -s err ]
	done
	pinion merge --missing log.*
	[ "$status" = 0 ]
	[ ! -s out ]
}

@test "checksums, CSV and empty results merge, too" {
	local digest

	case $features in
	*+openssl*) digest=sha256 ;;
	*+xxhash*) digest=xxh3-64 ;;
	*) skip "built without openssl and xxhash" ;;
	esac
	pinion sum -r -a "$digest" --sort=path named tree/
	cp out plain
	[ "$(wc -l <plain)" = 19 ]
	shards 4 sum -r -a "$digest"
	pinion merge log.*
	[ "$status" = 0 ]
	cmp out plain
	pinion scan --format=csv --sort=path named tree/
	cp out plain
	shards 2 scan --format=csv
	pinion merge log.*
	cmp out plain
	shards 2 scan -F -e 'not there'
	pinion merge log.*
	[ "$status" = 0 ]
	[ ! -s out ]
}

@test "shards that are missing or not complete are named, and nothing is merged" {
	shards 8 scan
	rm log.2
	head -c 500 log.5 >cut
	mv cut log.5
	head -c -100 log.6 >cut
	mv cut log.6
	pinion merge log.*
	refused 'of 8 shards these are missing or not complete: 2,5-6'
	pinion merge --missing log.{0..7}
	[ "$status" = 1 ]
	[ "$(cat out)" = 2,5-6 ]
	pinion merge log.{0..7}
	refused 'log.2: cannot be opened: No such file or directory'
	for SLURM_ARRAY_TASK_ID in 2 5 6; do
		export SLURM_ARRAY_TASK_ID
		pinion scan --shard-from-env=8 --checkpoint="log.$SLURM_ARRAY_TASK_ID" --resume \
			tree/ named
		[ "$status" -le 1 ]
	done
	pinion merge log.*
	cp out merged
	pinion scan --sort=path named tree/
	cmp out merged
}

@test "logs that do not belong together are named" {
	shards 2 scan
	pinion merge log.0 log.1 log.0
	refused 'log.0 is named twice: name the log of each shard once'
	ln log.1 link
	pinion merge log.1 log.0 link
	refused 'log.1 and link are one file: name the log of each shard once'
	cp log.1 copy
	pinion merge log.1 log.0 copy
	refused 'copy is shard 1/2, and so is log.1'
	pinion scan --checkpoint=whole tree/ named
	cp whole again
	pinion merge whole again
	refused 'again is of a whole run, and so is whole'
	pinion merge log.0 whole
	refused 'whole is shard 0/1, and log.0 is one of 2'
	pinion scan --shard=1/3 --checkpoint=third tree/ named
	pinion merge log.0 third
	refused 'third is shard 1/3, and log.0 is one of 2'
	pinion scan --shard=1/2 --checkpoint=other --format=json tree/ named
	pinion merge log.0 other
	refused 'other is of another run than log.0, with options --format=json, and not (none)'
	printf 'x' >text
	pinion merge log.0 text log.1
	refused 'checkpoint text: it is no checkpoint log'
	pinion merge --missing text
	refused 'no log says how many shards there are'
	pinion merge
	refused 'no logs: name those of all shards'
	pinion scan --format=sarif --checkpoint=document tree/ named
	pinion merge document
	refused 'document has parts of a document, which cannot be joined'
	pinion scan --hard-links=once --shard=0/2 tree/
	refused '--hard-links=once does not go with --shard'
	for value in 2/2 1 x/2 0/0 -1/2 0/2x; do
		pinion scan --shard="$value" tree/
		refused "--shard: $value is no K/N"
	done
	pinion sum --shard-from-env=8 named
	refused '--shard-from-env: none of SLURM_ARRAY_TASK_ID'
	JOB_COMPLETION_INDEX=8 pinion sum --shard-from-env=8 named
	refused '--shard-from-env: JOB_COMPLETION_INDEX is 8, not 0 to 7: number the array from 0'
}

@test "files that are gone, fail or differ are merged as the last run saw them" {
	cp -r "$BATS_FILE_TMPDIR/tree" own
	wait_until_old
	run_shard() { pinion scan --shard="$1/2" --checkpoint="log.$1" --resume own; }
	run_shard 0
	run_shard 1
	rm own/deep/3 own/deep/er/7
	printf 'changed\n' >own/deep/4
	run_shard 0
	run_shard 1
	pinion scan --sort=path own
	cp out plain
	pinion merge log.*
	[ "$status" = 1 ]
	cmp out plain
	# One shard has run before a file came, the other after it.
	for i in {1..6}; do printf 'new\n' >"own/new$i"; done
	run_shard 1
	pinion merge log.*
	grep -q 'the shards have not seen the same files' err
	ln -s gone/gone own/link2
	rm -r own/deep
	ln -s /proc/self/mem own/mem
	pinion scan --shard=0/1 --checkpoint=one own nowhere
	[ "$status" = 2 ]
	pinion merge one
	[ "$status" = 2 ]
	grep -q '^pinion merge: nowhere: ' err || { cat err; return 1; }
	grep -q 'one: not all of its files could be read' err
}

@test "the script for Slurm runs shards, and what is missing again" {
	local i

	mkdir bin logs
	ln -s "$PINION" bin/pinion
	PATH=$PWD/bin:$PATH
	task() { SLURM_ARRAY_TASK_ID=$1 "$top_srcdir/examples/deploy/slurm.sh" tree/ logs 4; }
	for i in 0 1 3; do task "$i"; done
	head -c 500 logs/shard.3 >cut
	mv cut logs/shard.3
	pinion merge --missing logs/shard.*
	[ "$(cat out)" = 2-3 ]
	for i in 2 3; do task "$i"; done
	pinion scan --format=json --sort=path tree/
	cp out plain
	pinion merge logs/shard.*
	cmp out plain
}
