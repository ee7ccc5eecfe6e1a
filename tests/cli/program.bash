# SPDX-License-Identifier: MIT
# What the files here have in common: `load program` makes each test start in a
# folder of its own, with the program in $PINION and what it was built with in
# $features.

enter_folder() {
	local version
	PINION=${PINION:-${top_builddir:-$PWD}/pinion}
	version=$("$PINION" --version)
	features=$(grep '^features:' <<<"$version")
	# Who does without io_uring because there is none says so, in a line that
	# few tests are about; who is asked to is silent.
	[[ $version != *'not available: '* ]] || export PINION_IO_LEVEL=${PINION_IO_LEVEL:-fallback}
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

# Waits until the program has taken charge of signals, which it does by blocking
# them, so that the test has no race.
wait_until_watching() {
	local mask
	for _ in {1..500}; do
		# Before exec it is still the shell, which may block them too.
		case $(cat "/proc/$1/comm") in
		bash | env) ;;
		*)
			mask=$(sed -n 's/^SigBlk:\t//p' "/proc/$1/status")
			[ $((0x${mask:-0} & 0x4000)) = 0 ] || return 0
			;;
		esac
		sleep 0.02
	done
	echo "it never blocked SIGTERM"
	return 1
}

# stop_while_fed PATH ARGUMENT…: names a path to a command that waits for more
# of them, then sends it SIGTERM, since what a shell runs in the background
# ignores SIGINT.
stop_while_fed() {
	local path=$1 pid
	shift
	mkfifo list
	exec 7<>list
	"$PINION" "$@" --files-from=list >out 2>err 3>&- &
	pid=$!
	wait_until_watching $pid
	printf '%s\n' "$path" >&7
	# Until it has taken the entry out of the pipe.
	for _ in {1..200}; do
		read -r -t 0 -u 7 || break
		sleep 0.01
	done
	sleep 0.1
	kill -TERM $pid
	status=0
	wait $pid || status=$?
	exec 7>&-
}
