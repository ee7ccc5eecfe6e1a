#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The programs in examples/: each runs, its result is right and its counts add
# up, with one worker and with more. No time is judged here.
bats_require_minimum_version 1.5.0
load program

# example NAME ARGUMENT…: as pinion().
example() {
	local name=$1
	shift
	status=0
	"${PINION%/*}/examples/$name" "$@" >out 2>err || status=$?
}

# count PATTERN NUMBER: so many lines of the output match.
count() {
	[ "$(grep -cE "$1" out)" = "$2" ] || {
		echo "expected $2 lines like: $1; got:"
		cat out
		return 1
	}
}

@test "fork_join computes the same on one worker and on several" {
	local workers
	for workers in 1 2 7; do
		example fork_join $workers
		expect 0
		count '^ +1 workers: fib\(25\) = 75025, .* 0 steals$' $((workers == 1 ? 2 : 1))
		count "^ +$workers workers: fib\\(25\\) = 75025, " $((workers == 1 ? 2 : 1))
		count '' 2
	done
}

@test "ping_pong makes every hop, and none to another worker when it is alone" {
	local workers
	for workers in 1 2 3; do
		example ping_pong $workers
		expect 0
		count '^tasks +1000000 hops, ' 1
		count '^work items +20000 hops, ' 1
		count '' 2
		[ $workers != 1 ] || count 'hops, +0 to another worker, ' 2
	done
}

# What steal_demo printed, as one line of numbers: how many tasks the workers
# ran, how many the busiest of them, the total, stolen, steals, wakes.
steal_numbers() {
	awk '
		$1 == "worker" { ran += $4; most = $4 > most ? $4 : most }
		/ tasks in all$/ { total = $1 }
		/ stolen in / { print ran, most, total, $1, $5, $7 }
	' out
}

@test "steal_demo's tasks all run, and whatever ran elsewhere was stolen" {
	local workers ran most total stolen steals wakes
	for workers in 1 2 5; do
		example steal_demo $workers
		expect 0
		count '^worker ' $workers
		read -r ran most total stolen steals wakes < <(steal_numbers)
		[ "$ran" = 10000 ] && [ "$total" = 10000 ] || {
			echo "ran $ran tasks, total $total, expected 10000"
			return 1
		}
		# One worker had them all; the others ran what they had stolen.
		[ "$stolen" -ge $((ran - most)) ] && [ "$stolen" -ge "$steals" ] || {
			echo "$most of $ran tasks on one worker, $stolen stolen in $steals steals"
			return 1
		}
		[ $workers != 1 ] || [ "$stolen $steals $wakes" = '0 0 0' ]
	done
}

@test "timer's alarms all ring, none early, and the cancelled one does not" {
	local workers
	for workers in 1 3; do
		example timer $workers
		expect 0
		count '^500 alarms rang, 0 of them early; ' 1
		count '^1 alarm cancelled ' 1
		count '' 2
	done
}

@test "read_file counts the bytes and lines that wc counts" {
	seq 700000 >numbers
	printf 'no newline' >>numbers
	example read_file numbers
	expect 0
	count "^numbers: $(stat -c %s numbers) bytes, $(wc -l <numbers) lines, read " 1
	example read_file missing
	expect 1
	grep -qF 'read_file: missing: No such file' err
}

@test "an example that cannot start says why" {
	local name
	for name in fork_join ping_pong steal_demo timer; do
		example $name 5000
		expect 1
		grep -q "^$name: .*Invalid argument$" err || {
			cat err
			return 1
		}
	done
}
