#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The block device in memory that `make bench` measures files on: made, used and
# removed, also when a step between fails. Needs root.
bats_require_minimum_version 1.5.0
load ../cli/program

yardstick=${top_srcdir:-..}/tests/bench/yardstick

# What a yardstick is made of; other tests have loop devices and mounts, too.
traces() {
	ls /dev/zram* /dev/ram* /dev/shm/pinion-bench.* 2>/dev/null || true
	losetup -a | grep pinion-bench || true
	grep " $PWD/" /proc/mounts || true
}

# One of these ways, a command that uses it, and nothing left.
check_way() {
	local way=$1 before
	shift
	before=$(traces)
	status=0
	TMPDIR=$PWD YARDSTICKS=$way bash -euc '
		. "$0"
		trap yardstick_down EXIT
		yardstick_up 64 || exit 9
		echo "$yardstick_what"
		(cd "$yardstick" && "$@")' "$yardstick" "$@" >out 2>err || status=$?
	[ "$(traces)" = "$before" ] || {
		echo "left behind:"
		diff <(echo "$before") <(traces)
		return 1
	}
}

@test "zram, brd or a loop device: it takes O_DIRECT and is removed again" {
	command -v mkfs.ext4 >/dev/null || skip "mkfs.ext4 is not installed"
	local way count=0
	for way in zram brd loop; do
		check_way $way "$PINION" bench read_random_cached --size 16M --seconds 0.05
		[ "$status" = 0 ] || [ "$status" = 9 ]
		[ "$status" = 0 ] || { grep -q '^bench: no device in memory: ' err; continue; }
		grep -q ext4 out
		count=$((count + 1))
	done
	[ $count -gt 0 ] || skip "this kernel has none of them"
}

@test "it is removed when what it is made for fails, and without mkfs none is made" {
	command -v mkfs.ext4 >/dev/null || skip "mkfs.ext4 is not installed"
	check_way "zram brd loop" false
	[ "$status" != 0 ]
	check_way "none" true
	[ "$status" = 9 ]
	[ "$(tail -n 1 err)" = "bench: no device in memory: neither zram nor brd nor loop devices are to be had" ]
}
