#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The limits of scan and sum: what each option takes, what it does to the
# process, and that SIGHUP loads a limits file again. A rate shows
# in that a command cannot end until a very low rate is lifted.
bats_require_minimum_version 1.5.0
load program

any() {
	if [[ $features == *+xxhash* ]]; then echo xxh3-128; else echo sha256; fi
}

refused() {
	pinion sum "$@" data
	expect 2
	[ ! -s out ]
}

# Fields 18 and 19 of stat(5), of which the last is the niceness; the name in
# parentheses may have spaces. Nothing for a thread that has ended.
nice_of() {
	local stat
	read -r stat 2>/dev/null <"$1/stat" || return 0
	set -- ${stat##*) }
	echo "${17}"
}

# expect_threads PID NICE IOPRIO: all threads that there are have these. Helper
# threads of the kernel come and go; a thread that has ended has none.
expect_threads() {
	local task nice priority count=0
	for task in /proc/"$1"/task/*; do
		nice=$(nice_of "$task")
		priority=$(ionice -p "${task##*/}" 2>/dev/null) || continue
		[ -n "$nice" ] || continue
		count=$((count + 1))
		if [ "$nice" != "$2" ] || [ "$priority" != "$3" ]; then
			# Unless it has ended meanwhile, when both say nothing.
			[ -e "$task" ] || continue
			echo "thread ${task##*/}: niceness $nice, priority $priority; expected $2, $3"
			return 1
		fi
	done
	[ "$count" -gt 0 ]
}

needs_ioprio() {
	ionice -c 3 true 2>/dev/null || skip "this machine forbids I/O priorities"
}

# Waits for a line on the standard error of the command that is under way.
await_line() {
	wait_until grep -q "$1" err || {
		cat err
		return 1
	}
}

# Starts a command in the background that waits for entries of a list.
start_fed() {
	mkfifo list
	exec 7<>list
	# Without the descriptor that keeps the list from ending.
	"$PINION" "$@" --files-from=list >out 2>err 3>&- 7>&- &
	pid=$!
	wait_until_watching $pid
	await_list
}

# Open, or the command would wait for a writer after the last one has gone.
await_list() {
	wait_until has_open $pid list
}

end_fed() {
	# The last writer of the list goes, so that it ends.
	exec 7>&-
	status=0
	wait $pid || status=$?
}

# make_uncached BYTES: a file that is read past the page cache, since only such
# reads have limits.
make_uncached() {
	head -c "$1" /dev/zero >data
	pinion sum -a "$(any)" --direct=always --stats data
	expect 0
	grep -q '; 1 file past the page cache' err || skip "this file system has no direct reads"
	mv out right
}

@test "values that are out of range are refused, by name" {
	: >data
	refused --bwlimit=fast
	grep -qx "pinion sum: --bwlimit: 'fast' is not a size (examples: 65536, 64K, 1M, 10MB)" err
	for PINION_BYTES_PER_SECOND in fast '10 MB' 10MBit; do
		export PINION_BYTES_PER_SECOND
		refused
		grep -qxF "pinion sum: PINION_BYTES_PER_SECOND: \"$PINION_BYTES_PER_SECOND\" is not a value for bytes_per_second: it takes a size from 0 to 4611686018427387904 (examples: 65536, 64K, 1M, 10MB)" err
	done
	unset PINION_BYTES_PER_SECOND
	refused --iops-limit=1K
	grep -qx -- "pinion sum: --iops-limit: '1K' is not a number from 0 to 1125899906842624" err
	refused --iops-limit=-1
	grep -qx -- "pinion sum: --iops-limit: '-1' is not a number from 0 to 1125899906842624" err
	refused --workers=-1
	grep -qx -- "pinion sum: --workers: '-1' is not a number from 1 to 4096" err
	refused --nice=-1
	grep -qx -- "pinion sum: --nice: '-1' is not a number from 0 to 19" err
	refused --ioprio=0x10
	grep -qx -- "pinion sum: --ioprio: '0x10' is neither idle nor a number from 0 to 7" err
	refused --ioprio=8
	grep -q -- "--ioprio: 8 is not between 0 and 7" err
	refused --ioprio=realtime
	grep -q -- "--ioprio: 'realtime' is neither idle nor a number from 0 to 7" err
	refused --nice=20
	grep -q -- "--nice: 20 is not between 0 and 19" err
	refused --psi-target=101
	grep -q -- "--psi-target: '101' is not a number of percent from 0 to 100" err
	refused --latency-target=3
	grep -q -- "--latency-target: '3' is not a time up to an hour with us, ms or s" err
	refused --limits-file=none
	grep -q "none: no such file" err
}

@test "a limits file with a bad line is refused as a whole, and the line is named" {
	: >data
	printf '# limits\nbwlimit=1M\nnice=20\n' >limits
	refused --limits-file=limits
	grep -qx "pinion sum: --nice: 20 is not between 0 and 19" err
	grep -qx "pinion sum: limits: line 3 is bad, so the file changes no limit" err
	echo "limits-file=x" >limits
	refused --limits-file=limits
	grep -q "there is no limit 'limits-file'; there are bwlimit, iops-limit" err
	echo "bwlimit" >limits
	refused --limits-file=limits
	grep -qx "pinion sum: 'bwlimit' is not NAME=VALUE" err
	printf 'nice=19\0nice=1' >limits
	refused --limits-file=limits
	grep -qx "pinion sum: a NUL byte is no text: write it as UTF-8" err
	grep -qx "pinion sum: limits: line 1 is bad, so the file changes no limit" err
}

# A limits file is read by the thread that takes SIGTERM: it must be short.
@test "a limits file of more than 64 KiB is refused, at the start and at SIGHUP" {
	local reason="is larger than 65536 bytes, the most that a limits file may have, so it changes no limit"
	: >data
	truncate -s 1T limits
	refused --limits-file=limits
	grep -qx "pinion sum: limits: $reason" err
	refused --limits-file=/dev/zero
	grep -qx "pinion sum: /dev/zero: $reason" err
	: >limits
	start_fed sum -a "$(any)" --limits-file=limits
	truncate -s 1T limits
	kill -HUP $pid
	await_line "the limits stay as they were"
	grep -qx "pinion sum: limits: $reason" err
	end_fed
	expect 0
}

@test "limits change no result, of scan and of sum" {
	head -c 300000 /dev/zero | tr '\0' x >data
	echo "needle" >>data
	pinion sum -a "$(any)" data
	expect 0
	mv out plain
	pinion sum -a "$(any)" --bwlimit=1G --iops-limit=1000000 --nice=1 --latency-target=1s data
	expect 0
	cmp out plain
	pinion scan -F -e needle data
	expect 1
	mv out plain
	pinion scan -F -e needle --bwlimit=1G --iops-limit=1000000 --nice=1 --latency-target=1s data
	expect 1
	cmp out plain
	echo "bwlimit=1G" >limits
	pinion scan -F -e needle --limits-file limits data
	expect 1
	cmp out plain
}

@test "--psi-target needs a kernel that reports pressure" {
	echo data >data
	pinion sum -a "$(any)" --psi-target=50 data
	if [ -r /proc/pressure/io ] && cat /proc/pressure/io >/dev/null 2>&1; then
		expect 0
	else
		expect 2
		grep -q -- "--psi-target: this kernel has no /proc/pressure/io" err
	fi
}

@test "--stats has a line about targets, and none without" {
	echo data >data
	pinion sum -a "$(any)" --stats --latency-target=1s data
	expect 0
	grep -qE "targets: [0-9.]+ MB/s at the end, halved 0 times$" err
	grep -qE "[0-9]+ of [0-9]+ reads were slower than --latency-target$" err
	# The lowest of the limits holds.
	pinion sum -a "$(any)" --stats --latency-target=1s --bwlimit=2MB data
	grep -q "targets: 2.0 MB/s at the end" err
	PINION_BYTES_PER_SECOND=1MB pinion sum -a "$(any)" --stats --latency-target=1s data
	grep -q "targets: 1.0 MB/s at the end" err
	pinion sum -a "$(any)" --stats --bwlimit=1G data
	expect 0
	! grep -q targets: err
}

@test "--stats=json has a member about targets, and none without" {
	echo data >data
	pinion scan -F -e needle --stats=json --latency-target=1s --bwlimit=8MB data
	expect 0
	grep -qE ',"targets":\{"bytes_per_second":8000000,"halved":0,"slow":0,"timed":[0-9]+\},"seconds":[0-9.]+\}$' err
	if [ -r /proc/pressure/io ] && cat /proc/pressure/io >/dev/null 2>&1; then
		pinion scan -F -e needle --stats=json --psi-target=100 --bwlimit=8MB data
		expect 0
		grep -qE ',"targets":\{"bytes_per_second":8000000,"halved":0\},"seconds":[0-9.]+\}$' err
	fi
	pinion scan -F -e needle --stats=json --bwlimit=1G data
	expect 0
	grep -q '"seen":1' err
	! grep -q targets err
}

@test "--stats has units in which small amounts and low rates show" {
	head -c 1500 /dev/zero | tr '\0' x >data
	pinion sum -a "$(any)" --stats data
	grep -qE "^pinion sum: 1\.500 kB \(holes: 0\.000 kB\) in [0-9.]+ s, [0-9]+\.[0-9]{3} [kM]B/s; " err
	pinion scan -F -e needle --stats data
	grep -qE "^pinion scan: findings: 0; 1\.500 kB \(holes: 0\.000 kB\) in [0-9.]+ s, [0-9]+\.[0-9]{3} [kM]B/s; " err
}

@test "all threads get the priorities, at the start and from a limits file" {
	needs_ioprio
	local start=$(nice)
	echo "nice=$((start < 17 ? start + 2 : 19))" >limits
	start_fed sum -a "$(any)" --nice=19 --ioprio=idle --limits-file=limits
	# The file replaces the option of the same name only.
	expect_threads $pid $((start < 17 ? start + 2 : 19)) idle
	printf 'nice=19\nioprio=7\n' >limits
	kill -HUP $pid
	await_line "limits are loaded from limits"
	expect_threads $pid 19 "best-effort: prio 7"
	end_fed
	expect 0
}

@test "a niceness below the present one: the line names the value and what it needs" {
	command -v setpriv >/dev/null || skip "setpriv is not installed"
	local drop=() start=$(nice) option
	[ "$start" -lt 10 ] || skip "the niceness is high already"
	[ "$(id -u)" != 0 ] || drop=(setpriv --bounding-set=-sys_nice --inh-caps=-sys_nice)
	echo data >data
	for option in "" --ioprio=7; do
		status=0
		nice -n $((10 - start)) "${drop[@]}" "$PINION" sum -a "$(any)" --nice=5 $option data \
			>out 2>err || status=$?
		expect 2
		[ "$(cat err)" = "pinion sum: --nice: cannot set 5: permission denied; the niceness is \
10, and a lower one needs CAP_SYS_NICE" ]
	done
}

@test "an I/O priority that is refused: the line names it, and no niceness" {
	command -v strace >/dev/null || skip "strace is not installed"
	! is_sanitized || skip "sanitizers do without ptrace"
	strace -qq -e trace=none true 2>/dev/null || skip "strace may not trace here"
	local value
	echo data >data
	for value in 6 idle; do
		status=0
		strace -f -qq -o /dev/null -e trace=ioprio_set -e inject=ioprio_set:error=EPERM \
			"$PINION" sum -a "$(any)" --ioprio=$value data >out 2>err || status=$?
		expect 2
		[ "$(cat err)" = "pinion sum: --ioprio: cannot set $value: operation not permitted" ]
	done
}

@test "SIGHUP before the scan begins waits for it" {
	echo "ioprio=6" >limits
	mkfifo list rules
	exec 7<>list 8<>rules
	"$PINION" scan --rules=- --limits-file=limits --files-from=list \
		<rules >out 2>err 3>&- 7>&- 8>&- &
	pid=$!
	# SIGHUP is blocked; it reads its rules, and no thread takes signals yet.
	for _ in {1..5000}; do
		! grep -q '^SigBlk:.*1$' /proc/$pid/status || break
		sleep 0.01
	done
	kill -HUP $pid
	echo "rule	needle" >&8
	exec 8>&-
	await_line "limits are loaded from limits"
	await_list
	end_fed
	expect 0
}

@test "SIGHUP with a bad file changes nothing, and ends nothing" {
	needs_ioprio
	echo "ioprio=6" >limits
	start_fed scan -F -e x --limits-file=limits
	printf 'ioprio=idle\nnice=x\n' >limits
	kill -HUP $pid
	await_line "the limits stay as they were"
	grep -q "limits: line 2 is bad, so the file changes no limit" err
	rm limits
	kill -HUP $pid
	for _ in {1..5000}; do
		[ "$(grep -c 'the limits stay as they were' err)" != 2 ] || break
		sleep 0.02
	done
	grep -q "limits: no such file" err
	[[ $(ionice -p $pid) == 'best-effort: prio 6' ]]
	end_fed
	expect 0
}

@test "a full stderr keeps no signal from ending the command" {
	local signal
	echo "nice=19" >limits
	mkfifo full
	exec 8<>full
	dd if=/dev/zero of=full bs=4096 oflag=nonblock 2>/dev/null || true
	for signal in HUP USR1; do
		rm -f list
		mkfifo list
		exec 7<>list
		"$PINION" sum -a "$(any)" --limits-file=limits --files-from=list >out 2>full 3>&- 7>&- 8>&- &
		pid=$!
		wait_until_watching $pid
		kill -$signal $pid
		kill -TERM $pid
		for _ in {1..5000}; do
			kill -0 $pid 2>/dev/null || break
			sleep 0.02
		done
		kill -KILL $pid 2>/dev/null || true
		status=0
		wait $pid || status=$?
		[ "$status" = 3 ]
		exec 7>&-
	done
}

@test "a rate holds reads back until a limits file lifts it" {
	make_uncached 65536
	echo "bwlimit=1" >limits
	"$PINION" sum -a "$(any)" --direct=always --limits-file=limits data >out 2>err 3>&- &
	pid=$!
	wait_until_watching $pid
	wait_until_idle $pid
	# 15 of 16 reads are hours away.
	kill -0 $pid
	[ ! -s out ]
	: >limits
	kill -HUP $pid
	status=0
	wait $pid || status=$?
	expect 0
	cmp out right
}

@test "a number of reads a second holds back what is beyond it" {
	make_uncached 4194304
	# 1024 reads take as many seconds.
	"$PINION" sum -a "$(any)" --direct=always --iops-limit=1 --window=4K --limits-file=/dev/null \
		data >out 2>err 3>&- &
	pid=$!
	wait_until_watching $pid
	wait_until_idle $pid
	kill -0 $pid
	[ ! -s out ]
	kill -TERM $pid
	status=0
	wait $pid || status=$?
	expect 3
}

@test "a scan that a rate holds back is ended by a signal" {
	make_uncached 65536
	"$PINION" scan -F -e x --direct=always --bwlimit=1 data >out 2>err 3>&- &
	pid=$!
	wait_until_watching $pid
	kill -TERM $pid
	status=0
	wait $pid || status=$?
	expect 3
}
