# SPDX-License-Identifier: MIT
# What the files here have in common: `load program` makes each test start in a
# folder of its own, with the program in $PINION and what it was built with in
# $features; $about has that, the kernel's io_uring and the program's libraries.
# bats runs a function before each command of a case, so a loop of thousands of
# steps is another program's: seq, yes, awk, perl.

enter_folder() {
	PINION=${PINION:-${top_builddir:-$PWD}/pinion}
	# Once a file: it takes some ms, and with a sanitizer many.
	[ -s "$BATS_FILE_TMPDIR/about" ] || {
		"$PINION" --version
		ldd "$PINION" 2>&1 || true # a static program has none
	} >"$BATS_FILE_TMPDIR/about"
	about=$(<"$BATS_FILE_TMPDIR/about")
	features=$(grep '^features:' <<<"$about")
	# A program that falls back to running without io_uring says so, in a
	# line that few tests are about; a program that is asked to is silent.
	[[ $about != *'not available: '* ]] || export PINION_IO_LEVEL=${PINION_IO_LEVEL:-fallback}
	# A command that a signal or a limit ends leaves threads that have returned
	# and were not joined; ThreadSanitizer takes them for a mistake.
	export TSAN_OPTIONS=${TSAN_OPTIONS:+$TSAN_OPTIONS:}report_thread_leaks=0
	cd "$BATS_TEST_TMPDIR" || return 1
}

setup() {
	enter_folder
}

# Runs the program with stdout and stderr in files, for bytes bats would change.
pinion() {
	status=0
	"$PINION" "$@" >out 2>err || status=$?
}

expect() {
	[ "$status" = "$1" ] || {
		echo "exit status $status, expected $1; stderr:"
		cat err
		return 1
	}
}

# amount_of PATTERN: bytes of the last line of stderr that ends with PATTERN, a
# basic expression whose group is the amount: "1.250 MB" is 1250000.
amount_of() {
	sed -n "s|.*$1\$|\\1|p" err | tail -n 1 | awk '{
		split("kB MB GB", units)
		for (i = 1; i <= 3 && units[i] != $2; i++) {}
		printf "%.0f\n", $1 * 1000 ^ i
	}'
}

# Whether a sanitizer watches the program, so that it takes several times as long.
is_sanitized() {
	[[ $about == *san.so* ]]
}

# some_of VALUE…: all of them; of a sanitized program the last alone. The plain
# program is asked for the result of each; a sanitizer watches the code that
# they run, which the last runs all.
some_of() {
	! is_sanitized || shift $(($# - 1))
	echo "$@"
}

# each_of "VALUE…" "OTHER…": lines "VALUE OTHER", of which each value and each
# other one has its own; for a sanitized program, in the same sense, the first
# with the last, and the last with the first.
each_of() {
	local values others i
	read -ra values <<<"$1"
	read -ra others <<<"$2"
	if is_sanitized; then
		printf '%s %s\n' "${values[0]}" "${others[-1]}" "${values[-1]}" "${others[0]}"
		return
	fi
	for ((i = 0; i < ${#values[@]} || i < ${#others[@]}; i++)); do
		# The first with the last, as small windows and many workers.
		echo "${values[i % ${#values[@]}]} ${others[-1 - i % ${#others[@]}]}"
	done
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

# What PINION_IO_WITHOUT may be, one to a line.
features_of_page() {
	sed -n 's/^| `PINION_IO_WITHOUT` | `tuning.io_without` | \([^|]*\) | .*/\1/p' \
		"$top_srcdir/docs/man/pinion_config.md" | tr -d '` ' | tr , '\n' | grep -vx nothing
}

# Whether the process has taken charge of signals, which the program does by
# blocking them.
is_watching() {
	local word value
	while read -r word value; do
		# Before exec it is still the shell, which may block them too.
		[ "$word $value" != "Name: bash" ] && [ "$word $value" != "Name: env" ] || return 1
		[ "$word" != SigBlk: ] || break
	done 2>/dev/null <"/proc/$1/status"
	((0x${value:-0} & 0x4000))
}

# Waits until a command succeeds, up to a hundred seconds.
wait_until() {
	for _ in {1..5000}; do
		! "$@" || return 0
		sleep 0.02
	done
	echo "never: $*"
	return 1
}

# Waits until then, so that the test has no race.
wait_until_watching() {
	wait_until is_watching "$1"
}

is_taken() {
	! read -r -t 0 -u 7
}

# Waits until the process has taken all entries out of the pipe that is 7 here,
# and has done what they say.
wait_until_taken() {
	wait_until is_taken
	wait_until_idle "$1"
}

# Waits until files are older than times of changes are coarse, so that a command
# takes them as done: --checkpoint after a second, --scrub after 2.
wait_until_old() {
	sleep "${1:-1}.1"
}

# link_made NAME…: what setup_file() has made in the folder of the test file.
link_made() {
	ln -s "${@/#/$BATS_FILE_TMPDIR/}" .
}

# A tree of 9 files with a finding each, of 9 without, and a link that leads
# nowhere; and a file that is named, with a finding.
make_tree_of_keys() {
	local i

	mkdir -p tree/deep/er
	for i in {1..9}; do
		printf 'id AKIAQ3XZK7MV2TB5%04d\n' "$i" | tr 0189 QRST >"tree/deep/$i"
		printf 'x%s\n' "$i" >"tree/deep/er/$i"
	done
	ln -s nowhere tree/link
	printf 'id AKIAQ3XZK7MV2TB5ABCD\n' >named
}

# Whether the process has the file open for reading, without a fork. A walk
# first opens it with O_PATH (010000000), and the file that has its name by the
# time of the second open is the one to detect.
has_open() {
	local fd word flags
	for fd in /proc/"$1"/fd/*; do
		[ "$fd" -ef "$2" ] || continue
		flags=
		while read -r word flags && [ "$word" != flags: ]; do
			flags=
		done 2>/dev/null <"/proc/$1/fdinfo/${fd##*/}"
		[ -z "$flags" ] || ((flags & 010000000)) || return 0
	done
	return 1
}

# Halts the process; false: it is gone.
halt() {
	local stat
	kill -STOP "$1" 2>/dev/null || return 1
	while read -r stat <"/proc/$1/stat" && [[ ! $stat =~ \)\ [TZ] ]]; do
		:
	done 2>/dev/null
	# A process that is gone was last seen running, or not at all.
	[[ ${stat-} == *\)\ T* ]]
}

# How long its threads have run; 0 where the kernel does not report that.
ran_ns() {
	local file ns sum=0
	for file in /proc/"$1"/task/*/schedstat; do
		[ ! -r "$file" ] || read -r ns _ <"$file"
		sum=$((sum + ${ns:-0}))
	done
	echo $sum
}

# halt_inside FILE COMMAND…: starts the command as $pid and halts it while it
# reads the file: the command runs for a time too short to finish before the
# next check, and for a millisecond after it opened the file, as it asks for its
# size first. With a number of buffers given it does not open the file before,
# to find out how many.
halt_inside() {
	local path=$1 seen_ns
	shift
	[ -p pause ] || mkfifo pause
	exec 8<>pause
	for _ in {1..50}; do
		PINION_BUFFER_COUNT=8 "$@" >out 2>err 3>&- 8>&- &
		pid=$!
		seen_ns=
		while halt $pid; do
			if has_open $pid "$path"; then
				: "${seen_ns:=$(ran_ns $pid)}"
				if [ "$seen_ns" = 0 ] || [ $(($(ran_ns $pid) - seen_ns)) -gt 1000000 ]; then
					return 0
				fi
			fi
			kill -CONT $pid
			read -r -t 0.002 _ <&8 || true
		done
		kill -CONT $pid 2>/dev/null || true
		wait $pid || true
	done
	echo "never halted inside $path"
	return 1
}

# Waits until all threads of the program have slept for a while: then it has
# done what it was given. A thread that would run if it could does not sleep.
wait_until_idle() {
	local file stat looks=0
	for _ in {1..5000}; do
		looks=$((looks + 1))
		for file in /proc/"$1"/task/*/stat; do
			read -r stat 2>/dev/null <"$file" || continue
			[[ $stat == *') S '* ]] || looks=0
		done
		[ $looks -lt 5 ] || return 0
		sleep 0.02
	done
	echo "it was never idle"
	return 1
}

# stop_while_fed PATH ARGUMENT…: names a path to a command that waits for more
# of them, then sends it two signals at once, as timeout(1) does; none is SIGINT,
# since what a shell runs in the background ignores that.
stop_while_fed() {
	local path=$1 pid
	shift
	mkfifo list
	exec 7<>list
	"$PINION" "$@" --files-from=list >out 2>err 3>&- &
	pid=$!
	wait_until_watching $pid
	printf '%s\n' "$path" >&7
	wait_until_taken $pid
	halt $pid
	kill -TERM $pid
	kill -HUP $pid
	kill -CONT $pid
	status=0
	wait $pid || status=$?
	exec 7>&-
}
