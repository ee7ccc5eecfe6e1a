#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# `pinion bench`: what it prints and refuses. No figure is judged here: tests
# run on busy machines.
bats_require_minimum_version 1.5.0
load program

bench() {
	pinion bench "$@"
}

# One line on stderr that holds this.
complains() {
	expect 2
	[ "$(wc -l <err)" = 1 ] && grep -qF -- "$1" err || {
		echo "expected one line with: $1; got:"
		cat err
		return 1
	}
}

needs_disk() {
	case $(stat -f -c %T .) in
	tmpfs | ramfs) skip "TMPDIR is in memory" ;;
	esac
	dd if=/dev/zero of=probe bs=4096 count=1 oflag=direct 2>/dev/null ||
		skip "TMPDIR has no O_DIRECT"
	rm probe
}

needs() {
	command -v "$1" >/dev/null || skip "$1 is not installed"
}

# The fields that the documented schema names, with their types.
check_json() {
	jq -es --arg name "$1" --arg unit "$2" '
		length == 1 and (.[0]
		| (.bench == $name) and (.unit == $unit)
		and all(.n, .median, .p99, .ratio, .ratio_lo, .ratio_hi; type == "number" and . > 0)
		and (.ratio_lo <= .ratio) and (.ratio <= .ratio_hi) and (.n >= 6)
		and (.floor | (keys == ["median", "name"]) and (.name | type == "string")
			and (.median > 0))
		and (.machine | all(.cpu, .kernel, .io; type == "string")
			and all(.cpus, .cores, .nodes, .workers; type == "number" and . > 0)
			and (.quota_millicpus >= 0)))' out >/dev/null || {
		echo "not as the schema says:"
		cat out
		return 1
	}
}

@test "list names each subject with what it measures" {
	bench list
	expect 0
	[ ! -s err ]
	[ "$(awk '{ print $1 }' out | tr '\n' ' ')" = "read sum scan spawn yield inject batch\
 steal forkjoin wake wake_worker wake_ring idle idle_ring " ]
	[ "$(awk 'NF < 4' out)" = "" ]
}

@test "an unknown subject is refused before anything is measured" {
	bench spawn raed
	complains "unknown subject 'raed' (did you mean 'read'?)"
	[ ! -s out ]
	bench quicksort
	complains "unknown subject 'quicksort' (see pinion bench list)"
	bench
	complains "no subject (see pinion bench list)"
}

@test "bad options are refused" {
	bench read --seconds 0
	complains "--seconds"
	bench read --workers none
	complains "--workers"
	bench read --size 1K
	complains "--size"
	bench read --file x --size 64M
	complains "--file goes with neither"
}

@test "files that cannot be measured are refused" {
	bench read --file absent
	complains "absent: "
	bench read --file .
	complains ".: "
	bench read --file /dev/null
	complains "/dev/null: "
	bench read --dir absent
	complains "absent: "
	needs_disk
	: >empty
	bench read --file empty
	complains "empty: is empty"
}

@test "tmpfs is refused" {
	[ "$(stat -f -c %T /dev/shm 2>/dev/null)" = tmpfs ] || skip "/dev/shm is not tmpfs"
	[ -w /dev/shm ] || skip "/dev/shm is not writable"
	bench read --dir /dev/shm --size 16M
	complains "/dev/shm: tmpfs cannot measure the ring"
	file=$(mktemp /dev/shm/pinion.XXXXXX)
	echo x >"$file"
	bench read --file "$file"
	rm "$file"
	complains "tmpfs cannot measure the ring"
}

@test "more than the disk holds is refused without filling it" {
	needs_disk
	bench read --size 1023T
	complains "no space left"
	[ "$(ls -A)" = "$(printf '%s\n' err out)" ]
}

# Measures a subject, which may be skipped for one of the reasons given.
check_subject() {
	local name=$1 unit=$2 reason
	shift 2
	bench "$name" --json --seconds 1
	expect 0
	if [ -s out ]; then
		check_json "$name" "$unit"
		[ ! -s err ]
		return
	fi
	for reason; do
		[ "$(grep -c "^pinion bench: $name: skipped, .*$reason" err)" != 1 ] || return 0
	done
	echo "neither measured nor skipped for a known reason:"
	cat err
	return 1
}

@test "JSON of the subjects about spawning" {
	needs jq
	check_subject spawn ns
	check_subject yield ns
	check_subject inject ns
	check_subject batch ns
	check_subject steal ns "it needs 2 CPUs" "no worker took"
}

@test "JSON of the subjects about waking" {
	needs jq
	check_subject wake us
	check_subject wake_worker us
	check_subject wake_ring us "there is no io_uring"
}

@test "JSON of idle workers tells what they used" {
	needs jq
	for name in idle idle_ring; do
		check_subject "$name" us/s "there is no io_uring"
		[ ! -s out ] || jq -e '.machine.workers == 8
			and (.cpu_percent >= 0) and (.switches_per_worker_s >= 0)' out
	done
}

@test "forkjoin has one worker, or as many as asked for and a speed-up" {
	needs jq
	check_subject forkjoin ns
	jq -e '.machine.workers == 1 and (has("speedup") | not)' out
	bench forkjoin --json --seconds 1 --workers 2
	expect 0
	check_json forkjoin ns
	jq -e '.machine.workers == 2 and .speedup > 0' out
}

@test "without io_uring no read stays pending, and the next subject is measured" {
	needs jq
	PINION_IO_LEVEL=fallback bench wake_ring idle_ring spawn --json --seconds 1
	expect 0
	check_json spawn ns
	[ "$(grep -c "skipped, there is no io_uring" err)" = 2 ]
}

@test "steal needs two CPUs" {
	command -v taskset >/dev/null || skip "taskset is not installed"
	status=0
	taskset -c "$(taskset -cp $$ | grep -o '[0-9]*$')" "$PINION" bench steal >out 2>err ||
		status=$?
	expect 0
	[ ! -s out ]
	grep -q "steal: skipped, it needs 2 CPUs and may use 1" err
}

@test "JSON of the subjects that read files, and nothing is left behind" {
	needs_disk
	needs jq
	bench read --json --seconds 1 --size 64M
	expect 0
	check_json read GB/s
	jq -e 'has("floor_touching") | not' out
	local names=()
	[[ $features == *+xxhash* ]] && names+=(sum)
	[[ $features == *+hyperscan* ]] && names+=(scan)
	for name in "${names[@]}"; do
		bench "$name" --json --seconds 1 --size 64M
		expect 0
		check_json "$name" GB/s
		jq -e '.floor_touching | (.name | startswith("pread-direct+"))
			and .median > 0 and .ratio_lo <= .ratio and .ratio <= .ratio_hi' out
	done
	[ "$(ls -A)" = "$(printf '%s\n' err out)" ]
}

@test "what this build lacks is told" {
	needs_disk
	head -c 65536 /dev/zero >file
	if [[ $features != *+xxhash* ]]; then
		bench sum --file file
		complains "not built into this program"
	elif [[ $features != *+hyperscan* ]]; then
		bench scan --file file
		complains "libhyperscan-dev"
	else
		skip "nothing is missing"
	fi
}

@test "text tells ours, floor and ratio; sizes need not be whole blocks" {
	needs_disk
	head -c 3145729 /dev/urandom >odd
	head -c 777 /dev/urandom >small
	bench read --file odd --file small --workers 3 --seconds 1
	expect 0
	grep -q '^read: 2 files, 3 MiB, 3 workers, .* pairs, more is better$' out
	grep -Eq '^  pinion_scan +[0-9.]+ GB/s \(spread .* %\), p99 [0-9.]+, n [0-9]+$' out
	grep -Eq '^  against pread-direct +[0-9.]+ GB/s .*ratio [0-9.]+, 95 % in \[' out
}

@test "works without io_uring" {
	needs_disk
	needs jq
	PINION_IO_LEVEL=fallback bench read --json --seconds 1 --size 16M
	expect 0
	jq -e '.machine.io == "fallback"' out
}

# Starts a bench, waits until it notices signals, and a little longer. A shell's
# background jobs ignore SIGINT unless told otherwise.
interrupt() {
	local delay=$1
	shift
	status=0
	env --default-signal=INT "$PINION" bench "$@" >out 2>err 3>&- &
	wait_until_watching $!
	sleep "$delay"
	kill -INT $!
	wait $! || status=$?
}

@test "a signal stops it, nothing is left behind" {
	needs_disk
	env --default-signal=INT true 2>/dev/null || skip "env has no --default-signal"
	for subject in read spawn inject forkjoin wake wake_worker idle_ring; do
		for delay in 0 0.3; do
			interrupt "$delay" "$subject" --seconds 60 --size 256M
			expect 3
			grep -q "stopped early" err
		done
	done
	[ "$(ls -A)" = "$(printf '%s\n' err out)" ]
}

@test "output that cannot be written is an error" {
	[ -w /dev/full ] || skip "no /dev/full"
	status=0
	"$PINION" bench spawn --seconds 1 >/dev/full 2>err || status=$?
	complains "no space left"
}

@test "make bench puts others beside ours, as far as they know the subject" {
	needs jq
	cat >peer <<-'EOF'
		#!/bin/sh
		[ "$1" != list ] || exec echo yield
		echo '{"bench":"yield","peer":"a peer","unit":"ns","n":9,"median":4,"p99":5}'
	EOF
	chmod +x peer
	export PINION
	PEERS=./peer ROUNDS=2 bash "${top_srcdir:-..}/tests/bench/run" spawn yield >out
	[ "$(grep -c '^## ' out)" = 2 ]
	[ "$(grep -Ec '^\| pinion \| [0-9.]+ \| [0-9.]+ \|  \|$' out)" = 2 ]
	[ "$(grep -Ec '^\| chase-lev-deque \| [0-9.]+ \|  \| [0-9.]+ \(.* … .*\) \|$' out)" = 2 ]
	[ "$(grep -Ec '^\| a peer \| 4 \| 5 \| [0-9.]+ \(.* … .*\) \|$' out)" = 1 ]
}
