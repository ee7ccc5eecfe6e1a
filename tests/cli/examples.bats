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

# count PATTERN NUMBER: that number of lines of the output match.
count() {
	[ "$(grep -cE "$1" out)" = "$2" ] || {
		echo "expected $2 lines like: $1; got:"
		cat out
		return 1
	}
}

@test "fork_join computes the same on one worker and on several" {
	local workers
	for workers in $(some_of 1 7 2); do
		example fork_join $workers
		expect 0
		count '^ +1 workers: fib\(25\) = 75025, .* 0 steals$' $((workers == 1 ? 2 : 1))
		count "^ +$workers workers: fib\\(25\\) = 75025, " $((workers == 1 ? 2 : 1))
		count '' 2
	done
}

@test "ping_pong makes every hop, and none to another worker when it is alone" {
	local workers
	for workers in $(some_of 1 2 3); do
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
	for workers in $(some_of 1 2 5); do
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
	for workers in $(some_of 1 3); do
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

@test "copy_file copies every byte, whatever the size" {
	local size
	for size in 0 1 4095 4096 4097 262144 3000001; do
		head -c $size /dev/urandom >from
		example copy_file from to
		expect 0
		count "^$size bytes copied, written (past|through) the page cache$" 1
		cmp from to
	done
	example copy_file missing to
	expect 1
	grep -qF 'copy_file: missing: No such file' err
}

@test "random_read reads at every depth and by several workers" {
	local args
	head -c 1000000 /dev/urandom >file
	for args in '1 1' '32 1' '256 2'; do
		example random_read file $args
		expect 0
		count '^[1-9][0-9]* reads of 4 KiB, ' 1
	done
	example random_read file 0
	expect 2
	example random_read file 1000 1
	expect 2
	head -c 4095 file >small
	example random_read small
	expect 1
	grep -qx 'random_read: needs a file of 4 KiB or more: Invalid argument' err
}

@test "deadline's requests all end early, as what they should" {
	example deadline
	expect 0
	count '^4 ended by their deadlines after ' 1
	count '^3 cancelled one by one$' 1
	count '^5 cancelled with their file, 5 found$' 1
	count '^cancelled when it was over: Operation already in progress$' 1
	count '' 4
}

@test "durable_log's records are all in the file, in order" {
	example durable_log log
	expect 0
	count '^ *[0-9]+ records, +(1|8|64) a sync: ' 3
	[ "$(wc -l <log)" = 1460 ] && [ "$(wc -c <log)" = $((1460 * 128)) ]
	seq -f 'record %.0f.' 0 1459 | diff - <(sed 's/\.\.*$/./' log)
	example durable_log /dev/null/x
	expect 1
}

@test "buffer_pool counts what wc counts, and all buffers are back" {
	local workers size
	seq 700000 >numbers
	printf 'no newline' >>numbers
	size=$(stat -c %s numbers)
	for workers in $(some_of 1 3 16); do
		example buffer_pool numbers $workers
		expect 0
		count "^numbers: $size bytes, 700000 lines, $(((size + 65535) / 65536)) pieces in 16 buffers, 16 of them back\$" 1
		# It does without io_uring unasked, and says so.
		[ "$(grep -vc 'reading without io_uring' err)" = 0 ]
	done
	: >nothing
	example buffer_pool nothing
	expect 0
	count '^nothing: 0 bytes, 0 lines, 0 pieces in 16 buffers, 16 of them back$' 1
	example buffer_pool .
	expect 1
	grep -qF 'buffer_pool: .: Is a directory' err
	example buffer_pool missing
	expect 1
	grep -qF 'buffer_pool: missing: No such file' err
	example buffer_pool numbers 17
	expect 2
}

# BP-27, BP-30: more files than the budget has, more bytes than the buffers.
@test "pipeline counts what wc counts" {
	local i
	mkdir many
	for i in $(seq 60); do
		seq $((i * 3000)) >many/$i
	done
	: >many/empty
	for i in $(some_of 1 2 3); do
		example pipeline many/*
		expect 0
		count "^61 files, $(cat many/* | wc -c) bytes, $(cat many/* | wc -l) lines\$" 1
		[ ! -s err ]
	done
	example pipeline many/7 missing many/8
	expect 1
	count "^3 files, $(cat many/7 many/8 | wc -c) bytes, " 1
	grep -qF 'pipeline: missing: No such file' err
	example pipeline
	expect 0
	count '^0 files, 0 bytes, 0 lines$' 1
}

@test "read_pool answers full, and all that was admitted" {
	example read_pool 300
	expect 0
	count '^keys  +300 admitted, +300 answered, ' 1
	count '^scans +300 admitted, +300 answered, +[1-9][0-9]* times full, the last time 4 of 4 in, about [0-9]+ us to wait$' 1
	count '' 2
	example read_pool 0
	expect 2
	grep -qF 'usage: read_pool ' err
}

# WP-23: I/O, computing, I/O; WP-25: zstd at level 3.
@test "compress_file's frames are the file again, at each lane" {
	local size lane
	[ -x "${PINION%/*}/examples/compress_file" ] || skip "built without libzstd"
	command -v zstd >/dev/null || skip "zstd is not installed"
	for size in 0 1 262143 262144 262145 3000001; do
		head -c $((size / 2)) /dev/zero >from
		head -c $((size - size / 2)) /dev/urandom >>from
		for lane in $(some_of high normal low); do
			example compress_file from to $lane
			expect 0
			count "^to has $(stat -c %s to) bytes, compressed at $lane\$" 1
			zstd -q -d -c to | cmp - from
		done
	done
	example compress_file missing to
	expect 1
	grep -qx 'compress_file: missing to to: No such file or directory' err
}

# WP-25: one computation in parts.
@test "fan_out's pieces make the whole, and a failing piece ends the others" {
	example fan_out 10
	expect 0
	count '^10 pieces: 9592 primes below 100000; 10 ran, 0 did not$' 1
	example fan_out 1000 1
	expect 0
	count '^1000 pieces: Numerical argument out of domain; [0-9]+ ran, [0-9]+ did not$' 1
	[ "$(grep -oE '[0-9]+ (ran|did)' out | awk '{ sum += $1 } END { print sum }')" = 1000 ]
	example fan_out 5 6
	expect 2
}

# AS-38: an embedder's own figures beside the library's.
@test "export_metrics writes what a program has counted, in Prometheus' format" {
	example export_metrics
	expect 0
	count '^# TYPE (jobs_failed_total counter|job_seconds summary)$' 2
	count '^jobs_failed_total 10$' 1
	count '^job_seconds\{quantile="0\.(5|99)"\} 0\.[0-9]{9}$' 2
	count '^job_seconds_(count 1000|sum [0-9]+\.[0-9]{9})$' 2
	if command -v promtool >/dev/null; then
		promtool check metrics <out
	fi
}

# WP-25: an image resized by Lanczos' filter, in parallel, at medium.
@test "resize_image leaves even areas as they are, and mixes others" {
	{
		printf 'P5\n64 48\n255\n'
		head -c $((64 * 48)) /dev/urandom
	} >random.pgm
	example resize_image random.pgm same.pgm 64 48
	expect 0
	count '^same.pgm has 64 by 48 pixels$' 1
	cmp random.pgm same.pgm
	{
		printf 'P5 80 60 255\n'
		head -c $((80 * 60)) /dev/zero | tr '\0' '\310'
	} >even.pgm
	for size in '800 600' '33 7' '1 1'; do
		example resize_image even.pgm to.pgm $size
		expect 0
		# shellcheck disable=SC2086 # two words
		set -- $size
		{
			printf 'P5\n%d %d\n255\n' "$1" "$2"
			head -c $(($1 * $2)) /dev/zero | tr '\0' '\310'
		} | cmp - to.pgm
	done
	# Stripes of one pixel become grey.
	{
		printf 'P5\n64 64\n255\n'
		for ((i = 0; i < 64 * 32; i++)); do printf '\377\1'; done
	} >stripes.pgm
	example resize_image stripes.pgm to.pgm 8 8
	expect 0
	tail -c $((8 * 8)) to.pgm | od -An -v -tu1 -w1 | awk '$1 < 118 || $1 > 138 { bad++ } END { exit bad > 0 }'
	head -c 100 random.pgm >short.pgm
	example resize_image short.pgm to.pgm 8 8
	expect 1
	grep -qx 'resize_image: short.pgm to to.pgm: Input/output error' err
	example resize_image even.pgm to.pgm 0 8
	expect 2
	grep -qx 'usage: resize_image FROM.pgm TO.pgm WIDTH HEIGHT, each 1 … 16384' err
}

# A number of 48 bytes of a signature, from byte $1 on, in hexadecimal.
half() {
	tail -c "+$1" halves | head -c 48 | od -An -v -tx1 | tr -d ' \n'
}

from_base64url() {
	local text=$1
	while ((${#text} % 4 != 0)); do text+='='; done
	tr -- -_ +/ <<<"$text" | base64 -d
}

# WP-25: JSON web tokens, ES384, at high.
@test "sign_tokens' signatures are good, in the order of the claims" {
	[ -x "${PINION%/*}/examples/sign_tokens" ] || skip "built without OpenSSL"
	command -v openssl >/dev/null || skip "openssl is not installed"
	openssl genpkey -algorithm EC -pkeyopt group:P-384 -out key.pem
	openssl pkey -in key.pem -pubout -out public.pem
	for ((i = 0; i < 150; i++)); do
		printf '{"sub":"%*s","n":%d}\n' $((i % 7)) x "$i"
	done >claims
	example sign_tokens key.pem <claims
	expect 0
	count '' 150
	[ "$(cut -d. -f1 out | sort -u)" = eyJhbGciOiJFUzM4NCIsInR5cCI6IkpXVCJ9 ]
	while IFS=. read -r _ text _; do
		from_base64url "$text"
		echo
	done <out | cmp - claims
	for line in 1 64 65 150; do
		sed -n "${line}p" out >token
		from_base64url "$(cut -d. -f3 token)" >halves
		[ "$(stat -c %s halves)" = 96 ]
		printf 'asn1=SEQUENCE:pair\n[pair]\nr=INTEGER:0x%s\ns=INTEGER:0x%s\n' \
			"$(half 1)" "$(half 49)" >structure
		openssl asn1parse -genconf structure -noout -out signature
		cut -d. -f1,2 token | tr -d '\n' |
			openssl dgst -sha384 -verify public.pem -signature signature
	done
	openssl genpkey -algorithm EC -pkeyopt group:P-256 -out other.pem
	for key in other.pem missing; do
		example sign_tokens $key <claims
		expect 1
		grep -qx "sign_tokens: $key: needs the private key of a P-384 curve" err
	done
	head -c 5000 /dev/zero | tr '\0' x >long
	example sign_tokens key.pem <long
	expect 1
	grep -qx 'sign_tokens: Message too long' err
}

# WP-25: a thousand items and more, in chunks of 100, at low.
@test "batch does each item once, at low, and calls pass it" {
	local items
	for items in 1 550; do
		example batch $items
		expect 0
		count "^$items items done in $(((items + 99) / 100)) chunks, $items tasks at low\$" 1
		count "^$(((items + 99) / 100 * 3)) calls at high meanwhile, [0-9]+ of them over before " 1
	done
	example batch 0
	expect 2
}

@test "event_loop counts what wc counts of the files named on stdin" {
	local i
	for i in {1..40}; do
		seq $((i * i * 20)) >lines-$i
		printf 'no newline' >>lines-$i
		echo lines-$i
	done >names
	: >nothing
	echo nothing >>names
	# In pieces, so that the loop sleeps on stdin as well as on the channel.
	example event_loop < <(head -c 100 names && tail -c +101 names)
	expect 0
	count "^41 files, $(cat lines-* | wc -l) lines, 0 failures\$" 1
	example event_loop < <(printf '%s\n' no-such-file . lines-3)
	expect 1
	count '^3 files, 180 lines, 2 failures$' 1
	grep -qF 'event_loop: no-such-file: No such file or directory' err
	example event_loop < <(:)
	expect 0
	count '^0 files, 0 lines, 0 failures$' 1
	# A file is always readable, which epoll has no use for.
	example event_loop <names
	expect 1
	grep -qx 'event_loop: stdin has to be a pipe or a terminal' err
}

# Those whose library configure has found.
driven_examples() {
	local name
	for name in driven_epoll driven_libuv driven_sd_event; do
		[ ! -x "${PINION%/*}/examples/$name" ] || echo $name
	done
}

@test "a driven runtime reads files in an embedder's loop" {
	local i name
	for i in {1..40}; do
		seq $((i * i * 20)) >lines-$i
		printf 'no newline' >>lines-$i
	done
	: >nothing
	[[ $(driven_examples) = *driven_epoll* ]]
	for name in $(driven_examples); do
		example $name lines-* nothing
		expect 0
		count "^41 files, $(cat lines-* | wc -l) lines, 0 failures, 0 left\$" 1
		example $name lines-3 no-such-file lines-4
		expect 1
		count '^3 files, 500 lines, 1 failures, 0 left$' 1
		grep -qxF "$name: no-such-file: No such file or directory" err
	done
}

# Whether it blocks SIGINT alone, or catches it. Before exec it is still the shell; and
# a runtime that is created blocks all signals for a while, as libuv does.
heeds_interrupt() {
	! grep -qE '^(bash|env|timeout)$' "/proc/$1/comm" &&
		grep -qE '^(SigBlk:\s0*2|SigCgt:.*[2367abef])$' "/proc/$1/status"
}

@test "a loop with a driven runtime ends by Ctrl-C while it reads" {
	local name pid
	# A hole that takes minutes to read.
	truncate -s 1T hole
	for name in $(driven_examples); do
		"${PINION%/*}/examples/$name" hole >out 2>err 3>&- &
		pid=$!
		# The signal would be ignored before the loop blocks or catches it.
		wait_until heeds_interrupt $pid
		kill -INT $pid
		status=0
		wait $pid || status=$?
		expect 1
		count '^0 files, 0 lines, 0 failures, 1 left$' 1
	done
}

@test "failures are counted, and hurt no other task" {
	# It forgets a thread that has called pthread_exit(), whatever came of it.
	[[ $about != *tsan.so* ]] || skip "ThreadSanitizer ends no thread twice"
	example failures
	expect 0
	count '^1000 tasks counted by their workers, 3 failed, 2 of them unwound$' 1
	count '^the other was tried 3 times: Success$' 1
	count '^log: .*no way back from here' 1
	count '^[1-9][0-9]* ticks$' 1
}

@test "an example that cannot start says why" {
	local name
	for name in $(some_of fork_join ping_pong steal_demo timer); do
		example $name 5000
		expect 1
		grep -q "^$name: .*Invalid argument$" err || {
			cat err
			return 1
		}
	done
}

@test "an example that is called wrongly prints its usage, and nothing else" {
	local name usage
	while read -r name usage; do
		[ -x "${PINION%/*}/examples/$name" ] || continue
		for arguments in "" --help; do
			# shellcheck disable=SC2086 # none, or one
			example "$name" $arguments
			[ "$(cat out err)" = "usage: $name $usage" ] || {
				echo "$name $arguments printed:"
				cat out err
				return 1
			}
			expect 2
		done
	done <<-'END'
		buffer_pool FILE [WORKERS, at most 16]
		compress_file FROM TO [high|normal|low]
		copy_file FROM TO
		driven_epoll FILE…, at most 256
		driven_libuv FILE…, at most 256
		driven_sd_event FILE…, at most 256
		durable_log FILE
		random_read FILE [DEPTH (1 … 256) [WORKERS (1 … 64)]]
		read_file FILE
		resize_image FROM.pgm TO.pgm WIDTH HEIGHT, each 1 … 16384
		safe_write FILE LINE…
		scan_tree FOLDER
		sign_tokens KEY.pem <CLAIMS
	END
	[ ! -e ./--help ]
}

@test "an example that runs without arguments prints its usage when asked" {
	local name usage
	while read -r name usage; do
		example "$name" --help
		[ "$(cat out err)" = "usage: $name${usage:+ $usage}" ] || {
			echo "$name printed:"
			cat out err
			return 1
		}
		expect 0
	done <<-'END'
		deadline
		event_loop
		failures
		fork_join [WORKERS]
		ping_pong [WORKERS]
		pipeline FILE…
		steal_demo [WORKERS]
		timer [WORKERS]
	END
}

@test "every example answers --help" {
	local program
	for program in "${PINION%/*}"/examples/*; do
		[ -x "$program" ] && [ -f "$program" ] || continue
		"$program" --help >out 2>&1 </dev/null || true
		grep -q "^usage: ${program##*/}" out || {
			echo "${program##*/} --help printed:"
			cat out
			return 1
		}
	done
}

@test "scan_tree counts what wc counts, by settings of the environment" {
	local i
	mkdir -p tree/deep
	for i in 1 2 3; do
		seq $((i * 1000)) >tree/deep/$i
	done
	for i in 1 3; do
		PINION_WORKER_COUNT=$i PINION_IO_LEVEL=fallback example scan_tree tree
		expect 0
		count "^3 files, $(cat tree/deep/* | wc -c) bytes, 6000 lines; 0 failed, 0 cancelled\$" 1
	done
	PINION_WORKER_COUNT=many example scan_tree tree
	expect 2
	grep -q '^scan_tree: PINION_WORKER_COUNT: "many" is not a value' err
	example scan_tree missing
	[ "$status" != 0 ]
}

@test "safe_write replaces a file whole, and leaves it alone where it fails" {
	echo old >note
	example safe_write note one "two words" ""
	expect 0
	[ "$(cat out)" = 'note has 15 bytes' ]
	printf 'one\ntwo words\n\n' | cmp - note
	[ ! -e note.new ]
	# Another writer's file is in the way.
	echo theirs >note.new
	example safe_write note three
	expect 1
	grep -qx 'safe_write: note.new: File exists' err
	[ "$(cat note.new)" = theirs ]
	printf 'one\ntwo words\n\n' | cmp - note
	# The name is a folder's: the new file is removed again.
	mkdir folder
	example safe_write folder four
	expect 1
	grep -q '^safe_write: folder: ' err
	[ -d folder ] && [ ! -e folder.new ]
}
