#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Input that works against the program: for each a line that names the path, the
# rest of the work done, the right exit status, counts that add up, and an end.
bats_require_minimum_version 1.5.0
load program

setup() {
	enter_folder
	algorithm=xxh3-128
	[[ $features == *+xxhash* ]] || algorithm=sha256
	commands=("scan -F -e needle" "sum -r -a $algorithm")
}

teardown() {
	[ -z "${pid-}" ] || kill -KILL "$pid" 2>/dev/null || true
}

needs() {
	command -v "$1" >/dev/null || skip "$1 is not installed"
}

# Runs "COMMAND OPTION…" with stdout and stderr in files, unless it hangs.
pinion() {
	status=0
	# shellcheck disable=SC2086
	timeout -k 5 200 "$PINION" $1 "${@:2}" >out 2>err || status=$?
}

expect() {
	[ "$status" = "$1" ] || {
		echo "exit status $status, expected $1; stderr:"
		head -n 20 err
		return 1
	}
}

says() {
	grep -qxF -- "pinion $1" err || {
		echo "no line 'pinion $1' in:"
		head -n 20 err
		return 1
	}
}

# What --stats says: SEEN DONE FAILED SKIPPED CANCELLED; they must add up.
counts() {
	local line
	! grep -q 'they did not end within 4 s' err || skip "no processor for 4 s after a signal"
	line=$(grep -oE '[0-9]+ files?: [0-9]+ done, [0-9]+ failed, [0-9]+ skipped, [0-9]+ cancelled' err)
	read -r seen _ done _ failed _ skipped _ cancelled _ <<<"${line//,/}"
	[ "$seen" = $((done + failed + skipped + cancelled)) ]
	[ -z "${1-}" ] || [ "$seen $done $failed $skipped $cancelled" = "$1" ] || {
		echo "counts: $line, expected $1"
		return 1
	}
}

@test "not a regular file: a line each, nothing is opened" {
	mkdir tree
	printf needle >tree/file
	mkfifo tree/fifo
	perl -MSocket -e 'socket(my $s, AF_UNIX, SOCK_STREAM, 0) or die;
		bind($s, pack_sockaddr_un("tree/socket")) or die' || skip "no perl"
	ln -s ../tree tree/parent
	ln -s nowhere tree/dangling
	ln -s loop2 tree/loop1
	ln -s loop1 tree/loop2
	for i in {1..20}; do
		ln tree/file "tree/hard$i"
	done
	for how in --io=auto --io=fallback; do
		for command in "${commands[@]}"; do
			name=${command%% *}
			pinion "$command" $how --stats tree tree/dangling /dev/zero missing ""
			expect 2
			# Every name of a file counts.
			[ "$(wc -l <out)" = 21 ]
			says "$name: tree/fifo: not a regular file (FIFO)"
			says "$name: tree/socket: not a regular file (socket)"
			says "$name: /dev/zero: not a regular file (character device)"
			says "$name: tree/loop1: symbolic link loop"
			says "$name: tree/loop2: symbolic link loop"
			says "$name: tree/dangling: no such file or directory"
			says "$name: missing: no such file or directory"
			says "$name: '': no such file or directory"
			counts "31 21 5 5 0"
		done
	done
}

@test "a path of 60 kB, with 16 descriptors" {
	perl -e 'for (1 .. 300) { mkdir "d" x 200 or die; chdir "d" x 200 or die }
		open(my $f, ">", "leaf") or die; print $f "needle"' || skip "cannot make one here"
	ulimit -n 16
	for how in --io=auto --io=fallback; do
		for command in "${commands[@]}"; do
			pinion "$command" $how --stats "$(printf 'd%.0s' {1..200})"
			[ "$status" -le 1 ]
			[ "$(wc -l <out)" = 1 ]
			[ "$(wc -c <out)" -gt 60000 ]
			counts "1 1 0 0 0"
		done
	done
}

@test "5000 empty files in one directory, with few descriptors" {
	mkdir many
	perl -e 'for (1 .. 5000) { open(my $f, ">", "many/$_") or die }' || skip "no perl"
	# Rings that are asked for by name have to be had, with their doorbells.
	case ${PINION_IO_LEVEL-} in
	ring*) ulimit -n 24 ;;
	*) ulimit -n 16 ;;
	esac
	for command in "${commands[@]}"; do
		pinion "$command" --stats many
		expect 0
		counts "5000 5000 0 0 0"
	done
	[ "$(wc -l <out)" = 5000 ]
}

# With no descriptor but the first three, of LIMIT: with_descriptors LIMIT ARGUMENT…
with_descriptors() {
	status=0
	(
		for fd in /proc/self/fd/*; do
			fd=${fd##*/}
			((fd < 3)) || eval "exec $fd>&-"
		done
		ulimit -n "$1"
		exec "$PINION" "${@:2}"
	) >out 2>err || status=$?
}

@test "too few descriptors: one line says how many are needed; a few more do" {
	mkdir -p tree/{1..9}/{1..9}
	printf needle | tee tree/{1..9}/{1..9}/file >/dev/null
	for command in "scan -F -e needle" "sum -r -a $algorithm"; do
		for limit in 4 8 10; do
			# shellcheck disable=SC2086 # words
			with_descriptors $limit $command tree
			expect 2
			[ "$(<err)" = "pinion ${command%% *}: \`ulimit -n\` is $limit, which leaves $((limit - 3)) descriptors, and at least 8 are needed; raise it: ulimit -n 1024" ]
			[ ! -s out ]
		done
		for limit in 11 12 16; do
			for workers in 1 16; do
				# shellcheck disable=SC2086 # words
				with_descriptors $limit $command --workers=$workers --stats tree
				[ "$status" -le 1 ]
				[ "$(wc -l <out)" = 81 ]
				counts "81 81 0 0 0"
			done
		done
	done
}

@test "too few descriptors for the rings: a line says what to raise" {
	printf needle >file
	ulimit -n 16
	pinion "scan -F -e needle" --workers=8 --io=fallback file
	expect 1
	# A machine without io_uring needs no more than that.
	pinion "scan -F -e needle" --workers=8 --io=auto file
	[ "$status" = 1 ] || {
		expect 2
		grep -q 'ulimit -n' err
	}
}

@test "sizes around every border, matches at both ends" {
	mkdir sizes
	perl -e 'for my $border (512, 4096, 65536, 131072, 1048576) {
		for my $extra (-6, -1, 0, 1, 5, 513) {
			my ($size, $bytes) = ($border + $extra, "." x ($border + $extra));
			for my $at (0, 4093, 65533, 131069, int($size / 2), $size - 6) {
				substr($bytes, $at, 6) = "needle" if $at >= 0 && $at <= $size - 6;
			}
			open(my $f, ">", "sizes/$size") or die;
			print $f $bytes;
		}
	}' || skip "no perl"
	LC_ALL=C grep -robUaF needle sizes | sed 's/:needle$//' | LC_ALL=C sort >expected
	for how in --direct=always --direct=never --io=fallback; do
		while read -r window workers; do
			pinion "scan -b -F -e needle" $how --window=$window --workers=$workers sizes
			expect 1
			sed -E 's/-[0-9]+: .*//' out | LC_ALL=C sort | cmp expected - || {
				echo "with $how --window=$window --workers=$workers"
				return 1
			}
		done < <(each_of "4K 64K 1M" "1 8")
	done
}

@test "three bytes in 8 TiB: holes cost nothing" {
	truncate -s 8T sparse 2>/dev/null || skip "no file of 8 TiB here"
	for at in 1 4000000000001 8000000000000; do
		printf X | dd of=sparse bs=1 seek=$at conv=notrunc status=none
	done
	for how in --io=auto --io=fallback; do
		pinion "scan -b -F -e X" $how sparse
		expect 1
		cut -d: -f2 out | diff - <(printf '%s\n' 1-2 4000000000001-4000000000002 \
			8000000000000-8000000000001)
	done
}

read_and_halt() {
	halt_inside file "$PINION" "$@" --window=4K --workers=1 --stats file
}

goes_on() {
	kill -CONT "$pid"
	status=0
	wait "$pid" || status=$?
	pid=
}

@test "a file that shrinks, grows, goes or is replaced while it is read" {
	local size=$((64 << 20))
	! is_sanitized || size=$((8 << 20)) # it is slow enough to be halted inside
	head -c $size /dev/zero >content
	printf needle >>content
	for how in --direct=auto --io=fallback; do
		for command in "scan -F -e needle" "sum -a $algorithm"; do
			for change in 'truncate -s 1000001 file' 'truncate -s 0 file' 'echo more >>file'; do
				cp content file
				read_and_halt $command $how
				eval "$change"
				goes_on
				expect 2
				says "${command%% *}: file: changed while it was read"
				counts "1 0 1 0 0"
			done
			for change in 'rm file' 'echo other >new; mv new file'; do
				cp content file
				read_and_halt $command $how
				eval "$change"
				goes_on
				counts "1 1 0 0 0"
				# The file that was opened is finished.
				if [ "${command%% *}" = scan ]; then
					expect 1
					grep -q "^file:1:$((size + 1)): " out
				else
					expect 0
					"$PINION" sum -a "$algorithm" content | sed 's/content/file/' | cmp - out
				fi
			done
		done
	done
}

@test "a directory that goes while it is walked" {
	mkdir tree
	perl -e 'for my $d (1 .. 200) { mkdir "tree/$d";
		for (1 .. 50) { open(my $f, ">", "tree/$d/$_") or die } }' || skip "no perl"
	"$PINION" sum -r -a "$algorithm" --stats tree >out 2>err 3>&- &
	pid=$!
	rm -rf tree
	status=0
	wait "$pid" || status=$?
	pid=
	[ "$status" = 0 ] || expect 2
	counts
}

@test "one CPU, eight workers" {
	needs taskset
	perl -e 'print "x" x 300000, "needle" for 1 .. 40' >file || skip "no perl"
	cpu=$(taskset -cp $$ | sed -E 's/.*: ([0-9]+).*/\1/')
	status=0
	taskset -c "$cpu" "$PINION" scan -F -e needle --workers=8 --window=64K file >out 2>err ||
		status=$?
	expect 1
	[ "$(wc -l <out)" = 40 ]
	[ ! -s err ]
	status=0
	taskset -c "$cpu" "$PINION" sum -a "$algorithm" --workers=8 file >out 2>err || status=$?
	expect 0
	"$PINION" sum -a "$algorithm" file | cmp - out
}

@test "io_uring forbidden or missing: the same findings, one line says why" {
	needs strace
	! is_sanitized || skip "sanitizers do without ptrace"
	strace -qq -e trace=none true 2>/dev/null || skip "strace may not trace here"
	"$PINION" --version | grep -q '^io_uring: kernel.*send-msg-ring' || skip "no io_uring here"
	printf 'a needle' >file
	unset PINION_IO_LEVEL PINION_IO_WITHOUT # it falls back by itself or not at all
	for call in io_uring_setup io_uring_enter; do
		for error in EPERM ENOSYS EACCES; do
			status=0
			strace -f -qq -o /dev/null -e trace=$call -e inject=$call:error=$error \
				"$PINION" scan -F -e needle file >out 2>err || status=$?
			expect 1
			[ "$(cat out)" = "file:1:3: e1: n…" ]
			[ "$(wc -l <err)" = 1 ]
			grep -q '^pinion scan: warning: reading without io_uring: ' err
		done
	done
}

@test "too few threads: a line says what to raise" {
	needs strace
	! is_sanitized || skip "sanitizers do without ptrace"
	strace -qq -e trace=none true 2>/dev/null || skip "strace may not trace here"
	ulimit -Su 4000 || skip "fewer processes than that are allowed here"
	printf needle >file
	status=0
	strace -f -qq -o /dev/null -e trace=clone,clone3 -e inject=clone,clone3:error=EAGAIN \
		"$PINION" scan -F -e needle --workers=4 file >out 2>err || status=$?
	expect 2
	says "scan: cannot start worker 0 of 4: the user has reached \`ulimit -u\` 4000; raise that \
(LimitNPROC= in the systemd unit), or use fewer workers"
	# And no line beside it that says less.
	[ "$(wc -l <err)" = 1 ]
}

@test "too little address space for a thread: the line names ulimit -v" {
	! is_sanitized || skip "sanitizers take all addresses"
	printf needle >file
	# A stack that never fits, whatever the libraries take.
	ulimit -s 1000000 || skip "no such stack is allowed here"
	ulimit -v 900000
	pinion "scan -F -e needle" --workers=4 file
	expect 2
	says "scan: cannot start worker 0 of 4: its stack of 1000000 KiB does not fit below \
\`ulimit -v\` 900000; raise that (LimitAS= in the systemd unit), or use fewer workers"
}

@test "too little data for a thread or its buffers: the line names ulimit -d" {
	! is_sanitized || skip "sanitizers take all addresses"
	[ "$(ulimit -v)" = unlimited ] || skip "the address space is limited here"
	printf needle >file
	(ulimit -s 1000000 && ulimit -d 900000 && exec "$PINION" sum --workers=4 file) \
		>out 2>err && status=0 || status=$?
	expect 2
	says "sum: cannot start worker 0 of 4: its stack of 1000000 KiB does not fit below \
\`ulimit -d\` 900000; raise that (LimitDATA= in the systemd unit), or use fewer workers"
	# Stacks fit, and buffers of 512 MiB do not.
	(ulimit -d 400000 && PINION_POOL_BYTES=512M exec "$PINION" sum --workers=1 file) \
		>out 2>err && status=0 || status=$?
	expect 2
	grep -qF 'over the limit of `ulimit -d` (LimitDATA= in the systemd unit); lower' err
	! grep -qF 'ulimit -v' err
}

# need_mib EVENTS: what a runtime of one worker needs that cannot start.
need_mib() {
	PINION_TRACE_EVENTS=$1 PINION_POOL_BYTES=$pool PINION_WORKER_COUNT=1 pinion sum file
	expect 2
	grep -qE "^pinion sum: .* is [0-9]+ MiB, of which [0-9]+ are free, but 1 workers need \
[0-9]+ MiB for buffers( and the trace)?: .*lower pool_bytes \(PINION_POOL_BYTES\)$" err || {
		cat err
		return 1
	}
	need=$(sed -n 's/.* need \([0-9]*\) MiB.*/\1/p' err)
}

@test "buffers for which the machine has no memory: a line, not the OOM killer" {
	! is_sanitized || skip "sanitizers take all addresses"
	local pool need plain
	pool=$(awk '/^(MemTotal|SwapTotal):/ { sum += $2 } END { print sum + 1024 - sum % 1024 "K" }' \
		/proc/meminfo)
	printf needle >file
	need_mib 0
	plain=$need
	[ "$plain" -gt $((${pool%K} / 1024)) ]
	# Two rings of 32 MiB, of which one more eighth stays free.
	need_mib 1048576
	[ $((need - plain)) = 73 ] || [ $((need - plain)) = 74 ]
}

@test "too little address space for the rules: the limit is named, not the library" {
	! is_sanitized || skip "sanitizers take all addresses"
	printf needle >file
	for space in 30000 60000 100000; do
		status=0
		(ulimit -v $space && exec "$PINION" scan file) >out 2>err || status=$?
		# Rules that are compiled already may fit.
		[ $status != 0 ] || [ $space = 30000 ] || continue
		expect 2
		grep -qF "\`ulimit -v\` $space" err
		! grep "loses matches" err
	done
}

@test "too small a stack: one line says which is needed" {
	! is_sanitized || skip "sanitizers need more to start"
	printf needle >file
	for size in 16 64 255; do
		for command in "${commands[@]}" --version; do
			status=0
			# The environment is on the stack too.
			env -i bash -c "ulimit -s $size; exec '$PINION' $command file" \
				>out 2>err || status=$?
			expect 2
			[ "$(cat err)" = "pinion: \`ulimit -s\` is $size and at least 256 are \
needed; raise it: ulimit -s 8192" ]
			[ ! -s out ]
		done
	done
	ulimit -s 256
	pinion "scan -F -e needle" file
	expect 1
}

# Sends SIGTERM to $pid as soon as it is noticed.
terminate() {
	wait_until_watching "$pid"
	kill -TERM "$pid" || {
		echo "it ended before a signal could reach it"
		return 1
	}
	status=0
	wait "$pid" || status=$?
	pid=
}

@test "a list that is a FIFO without a writer ends by a signal" {
	mkfifo list
	for arguments in "sum -c list" "sum -a $algorithm --files-from=list" \
		"scan -F -e needle --files-from=list"; do
		# shellcheck disable=SC2086
		"$PINION" $arguments >out 2>err 3>&- &
		pid=$!
		terminate
		expect 3
		grep -q 'stopped early' err
	done
}

@test "a signal inside a tree: counts add up" {
	mkdir tree
	perl -e 'for (1 .. 2000) { open(my $f, ">", "tree/$_") or die; print $f "x" x 5000 }' ||
		skip "no perl"
	# It cannot end by itself: the list stays open.
	mkfifo list
	for command in "${commands[@]}"; do
		# shellcheck disable=SC2086
		"$PINION" $command --io=fallback --stats --files-from=list tree >out 2>err 3>&- &
		pid=$!
		terminate
		expect 3
		grep -q 'stopped early' err
		counts
	done
}

@test "output without a reader: every command that prints" {
	[ -w /dev/full ] || skip "no /dev/full"
	printf needle >file
	for arguments in "scan -F -e needle file" "scan --format=json -F -e needle file" \
		"sum -a $algorithm file" "--version" "-h" "sum --help"; do
		for target in /dev/full closed; do
			status=0
			if [ $target = closed ]; then
				# shellcheck disable=SC2086
				"$PINION" $arguments 2>err >&- || status=$?
			else
				# shellcheck disable=SC2086
				"$PINION" $arguments 2>err >$target || status=$?
			fi
			expect 2
			[ "$(wc -l <err)" = 1 ]
			grep -q 'standard output: ' err
		done
	done
	# No place for a complaint: the status has to do.
	status=0
	"$PINION" sum -a "$algorithm" file missing >out 2>/dev/full || status=$?
	[ "$status" = 2 ]
	[ "$(wc -l <out)" = 1 ]
	status=0
	"$PINION" scan -F -e needle --files-from=- >out 2>err <&- || status=$?
	expect 2
	says "scan: standard input: is closed"
}

# A folder of names that act on terminals, with their expected text.
make_names() {
	mkdir names
	printf needle >$'names/a\x1b]0;owned\x07'
	printf needle >$'names/b\xc2\x9b31m'
	printf needle >$'names/c\xe2\x80\xaetxt.exe'
	printf needle >$'names/d\xe2\x81\xa6x'
	printf needle >$'names/e\x7f'
	printf needle >$'names/f\xff\xc0\xaf'
	shown='names/a\x1B]0;owned\x07
names/b\xC2\x9B31m
names/c\xE2\x80\xAEtxt.exe
names/d\xE2\x81\xA6x
names/e\x7F
names/f\xFF\xC0\xAF'
}

# No byte of C0 but newline, no DEL, no byte that is no UTF-8, no C1, no bidi.
is_clean() {
	local file
	for file; do
		! LC_ALL=C grep -qaP '[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\x8e\x8f\xaa-\xae]|\xe2\x81[\xa6-\xa9]|\xd8\x9c' "$file" || {
			echo "$file is not clean:"
			cat -v "$file"
			return 1
		}
		iconv -f UTF-8 -t UTF-8 "$file" >/dev/null || return 1
	done
}

@test "names that act on a terminal: text, JSON and stderr are clean" {
	make_names
	pinion "scan -F -e needle" names
	expect 1
	is_clean out err
	[ "$(sed 's/:1:1: e1: n…$//' out | LC_ALL=C sort)" = "$shown" ]
	pinion "scan --format=json -F -e needle" names
	expect 1
	is_clean out err
	# The fingerprint depends on the name.
	sed -E 's/"[0-9a-f]{32}"/""/' out | LC_ALL=C sort | diff - <(
		printf '{"rule":"e1","path":%s,"start":0,"end":6,"line":1,"column":1,"end_line":1,"end_column":7,"fingerprint":""}\n' \
			'"names/a\u001b]0;owned\u0007"' '"names/b\u009b31m"' \
			'"names/c\u202etxt.exe"' '"names/d\u2066x"' '"names/e\u007f"' \
			'{"bytes":"bmFtZXMvZv/Arw=="}' | LC_ALL=C sort
	)
	# Each is no directory, so that a name below it fails.
	find names -type f -printf '%p/x\n' >list
	for command in "${commands[@]}" doctor; do
		[ "$command" = doctor ] || pinion "$command" --files-from=list
		[ "$command" != doctor ] || pinion doctor names/*
		is_clean out err
	done
	pinion "sum -r -a $algorithm" --files-from=list
	expect 2
	[ "$(sed -n 's/^pinion sum: \(.*\)\/x: .*/\1/p' err | LC_ALL=C sort)" = "$shown" ]
	pinion "scan" $'--r\x1b[31m' .
	expect 2
	is_clean err
	pinion $'\x1b[2J'
	expect 2
	is_clean err
}

# on_terminal COMMAND…: with the terminal for all three; what it showed is in `shown`.
on_terminal() {
	command -v script >/dev/null || skip "script(1) is not installed"
	printf 'exec %s\n' "$(printf '%q ' "$@")" >command
	status=0
	SHELL=/bin/bash timeout -k 5 60 script -qec ". ./command" /dev/null </dev/null >seen 2>err3 || status=$?
	tr -d '\r' <seen >shown
}

@test "names that act on a terminal: sum shows them escaped there, and as they are in a pipe" {
	make_names
	printf needle >$'names/g\nh\\'
	pinion "sum -r -a $algorithm" names
	expect 0
	for name in names/*; do
		grep -qaF -- "$(basename "${name%%[[:cntrl:]]*}")" out
	done
	LC_ALL=C grep -qaF $'names/a\x1b]0;owned\x07' out
	on_terminal "$PINION" sum -r -a "$algorithm" names
	[ "$status" = 0 ]
	is_clean shown
	[ "$(sed 's/^\(\\\?\)[0-9a-f]*  /\1/' shown | LC_ALL=C sort)" = "\\names/g\\nh\\\\
$shown" ]
	# In lines that end in NUL, too.
	on_terminal "$PINION" sum -0 -r -a "$algorithm" names
	[ "$status" = 0 ]
	tr '\0' '\n' <shown >lines
	is_clean lines
	[ "$(wc -l <lines)" = 7 ]
	# Verdicts, and the same bytes as ever in a pipe.
	pinion "sum -r -a $algorithm" names
	cp out list
	on_terminal "$PINION" sum -c list
	[ "$status" = 0 ]
	is_clean shown
	grep -qxF 'names/c\xE2\x80\xAEtxt.exe: OK' shown
	pinion "sum -c" list
	expect 0
	LC_ALL=C grep -qaxF $'names/c\xe2\x80\xaetxt.exe: OK' out
	[ "$algorithm" = sha256 ] || ! command -v sha256sum >/dev/null || {
		pinion "sum -r -a sha256" names
		[ "$status" != 0 ] || sha256sum -c --quiet out
	}
}

@test "patterns that act on a terminal are shown escaped there, and as they are in a pipe" {
	[[ $features == *+hyperscan* ]] || skip "built without hyperscan"
	printf 'id\ta\x1bm{2}b\n' >rules
	pinion "scan --print-patterns" --rules=rules
	expect 0
	[ "$(cat out)" = $'a\x1bm{2}b' ]
	on_terminal "$PINION" scan --print-patterns --rules=rules
	[ "$status" = 0 ]
	[ "$(cat shown)" = 'a\x1Bm{2}b' ]
}

# Ends the program, which must not take longer than that, with the status in $status.
ends_within() {
	local step stat
	for ((step = 0; step < $1 * 50; step++)); do
		stat=
		read -r stat 2>/dev/null <"/proc/$pid/stat" || true
		[[ $stat != *') '[^Z]* ]] && break
		sleep 0.02
	done
	[ "$step" -lt $(($1 * 50)) ] || {
		echo "it did not end within $1 s"
		return 1
	}
	status=0
	wait "$pid" || status=$?
	pid=
}

# starts COMMAND [ARGUMENT…]: as $pid, until it takes charge of signals. What it
# writes goes to the file or FIFO in $to.
starts() {
	# shellcheck disable=SC2086
	"$PINION" $1 "${@:2}" >"${to:-out}" 2>err 3>&- 7>&- 9>&- &
	pid=$!
	wait_until_watching "$pid"
}

# stops COMMAND: a SIGTERM ends the running command, soon, and it says so.
stops() {
	kill -TERM "$pid"
	ends_within 20
	expect 3
	says "$1: stopped early by a signal"
}

@test "a signal ends a command that writes to a pipe without a reader" {
	local how
	yes needle | head -n 20000 >file
	mkfifo sleeping
	exec 9<>sleeping
	for how in --io=auto --io=fallback; do
		to=sleeping starts "scan -F -e needle" $how file
		wait_until_idle "$pid"
		stops scan
		says "scan: 0 files done, 1 given up: they did not end within 4 s"
		says "scan: standard output was not taken: lines are lost"
		# Empty again, at once; a read of this shell goes byte by byte.
		dd bs=64K iflag=nonblock status=none <&9 >taken 2>/dev/null || true
		[ -s taken ]
	done
	exec 9<&-
}

needs_kmsg() {
	[ "$(id -u)" = 0 ] && [ -r /proc/kmsg ] || skip "only root may read /proc/kmsg"
}

@test "a signal ends a scan of /proc/kmsg and its like" {
	needs_kmsg
	for command in "${commands[@]}"; do
		for how in --io=auto --io=fallback; do
			# It waits for messages however long this shell takes.
			# Of a large window ThreadSanitizer marks each byte at each attempt.
			starts "$command" --stats --file-timeout=86400 --window=4K $how /proc/kmsg
			wait_until_idle "$pid"
			stops "${command%% *}"
			counts "1 0 0 0 1"
		done
	done
}

@test "a signal ends a scan whose rules are being compiled" {
	[[ $features == *+hyperscan* ]] || skip "built without hyperscan"
	perl -e 'srand(1); for (1 .. 2500) {
		printf "r%d\t%s[a-z0-9]{8,40}x%d[0-9a-f]{3,9}\n", $_,
			join("", map { chr(97 + int(rand(16))) } 1 .. 4), $_ }' >rules || skip "no perl"
	printf 'needle' >file
	starts scan --max-compile-time=100000 --rules=rules file
	stops scan
	[ ! -s out ]
	[ "$(grep -c '^pinion ' err)" = 2 ] # and that they are compiled
	# So does a log that is refused.
	pinion scan -F -e needle --checkpoint=log file
	expect 1
	status=0
	timeout 60 "$PINION" scan --max-compile-time=100000 --rules=rules --checkpoint=log file \
		>out 2>err || status=$?
	expect 2
	grep -q 'it is there already' err
}

@test "a command ends when the queue of pending signals is full" {
	local command
	printf needle >file
	# The kernel then delivers the number of a signal, and not its sender.
	for command in "sum -a $algorithm" "scan -F -e nothing"; do
		status=0
		# shellcheck disable=SC2086
		timeout 60 bash -c 'ulimit -i 0 && exec "$@"' - "$PINION" $command file \
			>out 2>err || status=$?
		expect 0
		[ ! -s err ]
	done
}

@test "a signal ends the walk of a huge tree, and counts add up" {
	mkdir tree
	perl -e 'for my $d (1 .. 200) { mkdir "tree/$d"; mkdir "tree/$d/$_" for 1 .. 100 }' ||
		skip "no perl"
	for command in "${commands[@]}"; do
		# A command that got no processor for 4 s ends without its counts.
		for _ in {1..5}; do
			# shellcheck disable=SC2086
			halt_inside tree "$PINION" $command --stats tree
			kill -TERM "$pid"
			goes_on
			expect 3
			says "${command%% *}: stopped early by a signal"
			grep -q 'they did not end within 4 s' err || break
		done
		counts "0 0 0 0 0"
	done
}

@test "a file that brings nothing fails by name after --file-timeout" {
	needs_kmsg
	dd if=/proc/kmsg of=/dev/null bs=8K iflag=nonblock status=none 2>/dev/null || true # until it would block
	printf needle >file
	for command in "${commands[@]}"; do
		for how in --io=auto --io=fallback; do
			pinion "$command" --stats $how --file-timeout=1 /proc/kmsg file
			expect 2
			# A process that crashes meanwhile writes to it; then its second ends first.
			says "${command%% *}: /proc/kmsg: no data for 1 s (--file-timeout)" >said ||
				says "${command%% *}: /proc/kmsg: it has not ended after 1 s, as files of its file system may never (--file-timeout)"
			counts "2 1 1 0 0"
			[ "$(wc -l <out)" = 1 ]
		done
		pinion "$command" --file-timeout=never file
		expect 2
		[ ! -s out ]
	done
}

@test "endless holes fail by name after --file-timeout, and the rest is hashed" {
	truncate -s 15T sparse 2>/dev/null || skip "no file of 15 TiB here"
	printf needle >file
	truncate -s 3M small
	for how in --io=auto --io=fallback; do
		pinion "sum -a $algorithm" --stats $how --file-timeout=1 sparse file small
		expect 2
		grep -qE '^pinion sum: sparse: its holes took more than 1 s: given up at byte [1-9][0-9]* of 16492674416640 \(--file-timeout=0: no limit\)$' err
		counts "3 2 1 0 0"
		[ "$(wc -l <out)" = 2 ]
		# Only the hashed part of the hole is counted.
		offset=$(sed -n 's/.*given up at byte \([0-9]*\) of .*/\1/p' err)
		grep -q "^pinion sum: $(awk -v bytes=$((offset + 6 + 3145728)) 'BEGIN { printf "%.3f", bytes / 1e9 }') GB (holes: " err
		# With that of `small`, and rounded to a MB.
		[ "$(amount_of '(holes: \(.*\)) in.*')" -le $((offset + 3145728 + 500000)) ]
	done
	# The time is that of all holes of a file: data between them does not renew it.
	perl -e 'open(my $f, "+<", "sparse") or die;
		for (0 .. 4095) { sysseek($f, $_ << 32, 0); syswrite($f, "x") == 1 or die }' ||
		skip "no perl"
	pinion "sum -a $algorithm" --file-timeout=1 sparse
	expect 2
	grep -q '^pinion sum: sparse: its holes took more than 1 s' err
	[ ! -s out ]
}

@test "a file that the kernel makes up without an end fails by name after --file-timeout" {
	# 256 GiB of it, that many entries has the address space.
	dd if=/proc/self/pagemap of=/dev/null bs=1M count=1 status=none || skip "no /proc/self/pagemap"
	printf needle >file
	# The windows of -F overlap by 9 bytes, of entries of 8.
	for command in "scan -F -e needle" "scan -e nee+dle" "sum -a $algorithm"; do
		[[ $command == *+* && $features != *+hyperscan* ]] && continue
		for how in --io=auto --io=fallback; do
			pinion "$command" --stats $how --file-timeout=1 /proc/self/pagemap file
			expect 2
			says "${command%% *}: /proc/self/pagemap: it has not ended after 1 s, as files of its file system may never (--file-timeout)"
			counts "2 1 1 0 0"
			[ "$(wc -l <out)" = 1 ]
		done
	done
	# A file that ends is read, whatever size it claims.
	pinion "sum -a $algorithm" --file-timeout=60 /proc/cpuinfo /sys/kernel/mm/transparent_hugepage/enabled
	expect 0
}

@test "SIGUSR1 counts the hashed or searched part of a hole" {
	truncate -s 15T sparse 2>/dev/null || skip "no file of 15 TiB here"
	# Not known to settle, so the hole is searched.
	for command in "scan -e (\\x00\\x00)*z" "sum -a $algorithm"; do
		[[ $command == sum* ]] || [[ $features == *+hyperscan* ]] || continue
		starts "$command" --file-timeout=0 sparse
		for _ in {1..500}; do
			kill -USR1 "$pid"
			sleep 0.02
			! grep -qE 'progress: 0 files, [0-9]*\.?[0-9]*[1-9][0-9]* [MG]B, ' err || break
		done
		bytes=$(amount_of 'progress: 0 files, \(.*\), .*/s, .*')
		[ "$bytes" -gt 0 ]
		[ "$bytes" -lt 8000000000000 ]
		stops "${command%% *}"
	done
}

@test "SIGUSR1 prints a line of progress, and ends no command" {
	printf 'needle needle' >file
	mkfifo list
	exec 7<>list
	for command in "${commands[@]}"; do
		starts "$command" --files-from=list
		printf 'file\n' >&7
		wait_until_taken "$pid"
		kill -USR1 "$pid"
		wait_until test -s err
		found=" 2 findings,"
		[[ $command == scan* ]] || found=
		grep -qE "^pinion ${command%% *}: progress: 1 files, 0\.013 kB, 0\.[0-9]{3} kB/s,$found [0-9]+\.[0-9] s$" err
		stops "${command%% *}"
	done
	exec 7<&-
	for command in "bench spawn --seconds=1" "doctor"; do
		! is_sanitized || [ "$command" = doctor ] || continue
		# shellcheck disable=SC2086
		"$PINION" $command >out 2>err 3>&- &
		pid=$!
		# First of all it ignores the signal.
		until mask=$(sed -n 's/^SigIgn:\t//p' "/proc/$pid/status" 2>/dev/null) &&
			[ $((0x${mask:-200} & 0x200)) != 0 ]; do
			:
		done
		for _ in {1..20}; do
			kill -USR1 "$pid" 2>/dev/null || break
		done
		ends_within 60
		[ "$status" -lt 128 ]
	done
}
