#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Goal: the ranks of pinion-mpi do together what one run does: each file once, by
# the same ignore files, lists and options, and their logs merge to its bytes. A
# later job goes on from the logs of another number of ranks. Options that ranks
# cannot share, and logs of another job, are refused by one line.
# Method: real ranks of mpirun on a small tree. Killed ranks: tests/cluster/mpi.

bats_require_minimum_version 1.5.0
load program

setup_file() {
	[ -x "${PINION:-${top_builddir:-$PWD}/pinion}-mpi" ] || skip "pinion-mpi is not built"
	command -v mpirun >/dev/null || skip "there is no mpirun"
	cd "$BATS_FILE_TMPDIR"
	make_tree_of_keys
	mkdir tree/wide tree/hidden
	seq 300 | split -l 1 -a 3 - tree/wide/
	cp tree/deep/1 tree/hidden/1
	cp tree/deep/2 tree/deep/er/2.o
	cp tree/deep/3 tree/wide/key.o
	echo 'hidden/' >tree/.gitignore
	echo '*.o' >tree/deep/er/.gitignore
	ln -s deep tree/way
	mkdir pipes
	mkfifo pipes/pipe
	cp tree/deep/[1-4] pipes
	wait_until_old
}

setup() {
	enter_folder
	link_made tree named pipes
	# As root, and with more ranks than CPUs; other MPIs do not ask for that.
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
	# Of the program, and not of MPI, which never frees some memory, and takes two
	# of its locks in both orders.
	export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
	export TSAN_OPTIONS=${TSAN_OPTIONS:+$TSAN_OPTIONS:}detect_deadlocks=0
}

# ranks N COMMAND…
ranks() {
	status=0
	timeout 100 mpirun -n "$1" "$PINION-mpi" "${@:2}" --workers=1 >out 2>err </dev/null || status=$?
}

# same_as_one N COMMAND OPTION…: by that number of ranks.
same_as_one() {
	pinion "${@:2}" --sort=path
	[ "$status" -le 1 ]
	cp out plain
	[ -s plain ]
	rm -f log.*
	ranks "$1" "${@:2}" --checkpoint=log
	[ "$status" = 0 ] || { cat err; return 1; }
	[ ! -s out ]
	pinion merge log.*
	[ "$status" -le 1 ] || { cat err; return 1; }
	[ ! -s err ] || { cat err; return 1; }
	cmp plain out
}

@test "any number of ranks does what one run does" {
	local count

	for count in $(some_of 1 2 5); do
		same_as_one "$count" scan --format=json named tree/
		[ "$(wc -l <plain)" = 13 ]
		[ "$(ls log.* | wc -l)" = "$count" ]
	done
	same_as_one 3 sum -r named tree
	[ "$(wc -l <plain)" = 324 ]
}

@test "ignore files, globs and followed links are those of one run" {
	same_as_one 3 scan --format=json --gitignore tree
	[ "$(wc -l <plain)" = 10 ]
	same_as_one 2 sum -r --gitignore --exclude='*7' -L tree
	grep -q 'tree/way/er/1' plain
	! grep -q 'er/2.o\|hidden\|deep/7' plain
}

@test "rank 0 reads lists for all" {
	printf '%s\0' named tree/deep tree/wide/aaa >list
	same_as_one 2 scan --format=json --files-from=list -0
	[ "$(wc -l <plain)" = 11 ]
}

# Ends once rank 1 has noted files: without work, its log has 400 bytes.
list_until_noted() {
	local i

	printf '%s\n' tree/wide/*
	for i in {1..600}; do
		[ "$(stat -c %s log.1 2>/dev/null || echo 0)" -lt 2000 ] || return 0
		sleep 0.1
	done
}

@test "a rank gets paths of a list that rank 0 still reads" {
	status=0
	list_until_noted | timeout 100 mpirun -n 2 "$PINION-mpi" sum --files-from=- --checkpoint=log \
		--checkpoint-interval=0.1 --workers=1 >out 2>err || status=$?
	expect 0
	[ "$(stat -c %s log.1)" -ge 2000 ]
	pinion merge log.*
	expect 0
	[ "$(wc -l <out)" = "$(ls tree/wide | wc -l)" ]
}

@test "without mpirun it is one rank" {
	status=0
	"$PINION-mpi" sum -r --checkpoint=log tree >out 2>err || status=$?
	expect 0
	pinion sum -r --sort=path tree
	cp out plain
	pinion merge log.0
	expect 0
	cmp plain out
}

@test "another number of ranks goes on, and does no file again" {
	ranks 4 scan --format=json --checkpoint=log tree
	expect 0
	pinion merge log.[0-3]
	cp out plain
	ranks 2 scan --format=json --checkpoint=log --resume tree
	expect 0
	# tree has 323 files.
	[ "$(sed -n 's/.*: \([0-9]*\) files\{0,1\} w[a-z]* done by earlier runs$/\1/p' err | paste -sd + | bc)" = 323 ]
	[ "$(ls log.* | paste -sd ' ')" = "log.0 log.1" ]
	pinion merge log.[0-9]*
	expect 1
	cmp plain out
}

@test "logs as a crash leaves them are gone on with" {
	ranks 3 scan --format=json --checkpoint=log tree
	expect 0
	pinion merge log.[0-2]
	cp out plain
	# A torn end, ranks that have not begun, and a renaming that was not ended.
	truncate -s -200 log.0
	: >log.1
	mv log.2 log.earlier.7
	head -c 50 log.0 >log.earlier.6
	pinion merge log.[0-2]
	expect 2
	ranks 2 scan --format=json --checkpoint=log --resume tree
	expect 0
	[ "$(ls log.* | paste -sd ' ')" = "log.0 log.1" ]
	pinion merge log.[0-9]*
	expect 1
	cmp plain out
}

@test "damage ends a job, or is passed by with --salvage" {
	ranks 1 scan --format=json --checkpoint=log tree
	expect 0
	pinion merge log.0
	cp out plain
	printf XXXX | dd of=log.0 bs=1 seek=3000 conv=notrunc status=none
	ranks 2 scan --format=json --checkpoint=log --resume tree
	expect 2
	grep -q 'log.0: it is damaged at offset' err
	ranks 2 scan --format=json --checkpoint=log --resume --salvage tree
	expect 0
	pinion merge log.[0-9]*
	expect 1
	cmp plain out
}

@test "each log of earlier runs takes a descriptor, of which there are enough" {
	local i

	ranks 1 scan --format=json --checkpoint=log tree
	expect 0
	for i in {0..99}; do
		cp log.0 "log.earlier.$i"
	done
	rm log.0
	status=0
	(ulimit -n 163; exec "$PINION-mpi" scan --format=json --checkpoint=log --resume tree) >out 2>err || status=$?
	refused '`ulimit -n` is 163, and 164 descriptors are needed'
	status=0
	(ulimit -Sn 90; exec "$PINION-mpi" scan --format=json --checkpoint=log --resume tree) >out 2>err || status=$?
	expect 0
	[ "$(ls log.*)" = log.0 ]
}

@test "a path that is no file makes the job's status 2, and no file is lost" {
	ranks 2 scan --format=json --checkpoint=log pipes
	expect 2
	grep -q 'pipes/pipe: not a regular file' err
	ranks 3 scan --format=json --checkpoint=log --resume pipes
	expect 2
	[ "$(ls log.* | paste -sd ' ')" = "log.0 log.1 log.2" ]
	pinion merge log.*
	expect 2
	[ "$(wc -l <out)" = 4 ]
}

# refused WORDS: once, by rank 0.
refused() {
	[ "$status" = 2 ] || { cat err; return 1; }
	[ "$(grep -c '^pinion .*: ' err)" = 1 ] || { cat err; return 1; }
	grep -qF -e "$1" err || { cat err; return 1; }
}

@test "what ranks cannot do is refused once" {
	ranks 3 scan tree
	refused 'pinion scan, rank 0: name a log by --checkpoint=LOG'
	ranks 2 scan --shard=0/2 --checkpoint=log tree
	refused '--shard does not go with pinion-mpi: ranks share the files out by themselves'
	ranks 2 scan --format=sarif --checkpoint=log tree
	refused '--format=sarif does not go with pinion-mpi: '
	ranks 2 scan --format=gitlab --checkpoint=log tree
	refused '--format=gitlab does not go with pinion-mpi: '
	ranks 2 sum --hard-links=once -r --checkpoint=log tree
	refused '--hard-links does not go with pinion-mpi'
	mkdir -p other/place
	ranks 2 scan --checkpoint=other/place/log tree "$PWD/other"
	refused 'other/place/log is below '
	ranks 2 scan --no-such-option
	refused 'no-such-option'
	ranks 2 merge log
	refused 'neither scan nor sum: merge'
	[ -z "$(ls log* 2>/dev/null)" ]
}

@test "a rank that cannot start ends the job" {
	local refused=PINION_INTERVAL_MIN=300

	ranks 2 sum -r --checkpoint=log tree
	expect 0
	rm log.*
	status=0
	timeout 100 env PINION_INTERVAL_MAX=8 "$refused" mpirun -n 2 "$PINION-mpi" sum -r --checkpoint=log \
		tree >out 2>err </dev/null || status=$?
	expect 2
	grep -q 'sum, rank 0: cannot start' err
	rm log.*
	# Rank 1 alone: the job's status is that of MPI_Abort.
	status=0
	timeout 100 mpirun -n 1 "$PINION-mpi" sum -r --checkpoint=log tree : \
		-n 1 env PINION_INTERVAL_MAX=8 "$refused" "$PINION-mpi" sum -r --checkpoint=log tree \
		>out 2>err </dev/null || status=$?
	expect 2
	grep -q 'sum, rank 1: cannot start' err
}

@test "logs of another job are left alone" {
	ranks 2 scan --format=json --checkpoint=log tree
	expect 0
	ranks 2 scan --format=json --checkpoint=log tree
	refused 'log.0 is there: go on with --resume, or name another log'
	ranks 3 scan --format=csv --checkpoint=log --resume tree
	refused 'log.0 is of another run: its options: --format=json; now: --format=csv'
	(flock 9 && ranks 2 scan --format=json --checkpoint=log --resume tree && cp err err.1 && echo "$status" >status) 9<log.1 || true
	grep -q 'log.1: a rank of another run writes it' err.1
	[ "$(cat status)" = 2 ]
	[ "$(ls log.* | paste -sd ' ')" = "log.0 log.1" ]
	pinion merge log.0 log.1
	expect 1
}
