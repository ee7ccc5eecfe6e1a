#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# pinion top: the pages of living and dead processes, in all forms, and of files
# that are none.
bats_require_minimum_version 1.5.0
load program

setup() {
	enter_folder
	command -v jq >/dev/null || skip "jq is not installed"
	unset PINION_METRICS_PAGE PINION_METRICS_FILE
}

teardown() {
	for number in ${fed-} ${other-} ${watcher-}; do
		kill -KILL "$number" 2>/dev/null || true
	done
	[ -z "${tmux-}" ] || "${tmux[@]}" kill-server 2>/dev/null || true
}

# start_fed [NAME=VALUE…]: a command that has read a file and waits for more of
# a list, with its number in $fed.
start_fed() {
	mkfifo list
	exec 7<>list
	head -c 3000000 /dev/zero >file
	env "$@" "$PINION" sum -a sha256 --files-from=list >sums 2>sum.err 3>&- 7>&- &
	fed=$!
	wait_until_watching "$fed"
	for _ in 1 2 3; do
		printf 'file\n' >&7
	done
	wait_until_taken "$fed"
}

# The newest values, of a process that does nothing, are there when it sleeps.
wait_until_done() {
	for _ in {1..500}; do
		pinion top --once --json "$1"
		! jq -e '[.workers[].tasks_run] | add > 6' out || return 0
		sleep 0.02
	done
	return 1
}

# Bytes of a file replaced: patch FILE OFFSET BYTES.
patch_file() {
	# shellcheck disable=SC2059
	printf "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

@test "JSON has each value of the page by its name, and they add up" {
	start_fed
	wait_until_done "$fed"
	expect 0
	[ ! -s err ]
	[ "$(wc -l <out)" = 1 ]
	jq -e ".pid == $fed and .state == \"alive\" and .torn_count == 0" out
	jq -e '.program == .comm and (.workers | length) == .worker_count' out
	jq -e '.workers[] | .lifo_polls + .deque_polls + .ready_polls + .inbox_polls +
		.injector_polls + .steal_polls == .normal_polls' out
	jq -e '.workers[] | .high_polls + .normal_polls + .low_polls + .timers_cancelled ==
		.tasks_run + .tasks_cancelled' out
	jq -e '.workers[] | .spawned_local + .spawned_shared + .spawned_on + .spawned_timers ==
		.tasks_spawned' out
	jq -e '.runtime.run.normal | .count > 0 and .p50_ns <= .p99_ns and .p99_ns <= .p999_ns' out
	# Every count of a worker that the header names.
	for name in $(sed -n '/^struct pinion_worker_stats/,/^};/s/^\tuint64_t \([a-z_]*\);.*/\1/p' \
		"$top_srcdir/include/pinion/metrics.h"); do
		jq -e ".workers[0] | has(\"$name\")" out >has || {
			echo "$name is not in the object"
			return 1
		}
	done
	# Every member is in the manual page, or in that of the page's format.
	for name in $(jq -r 'keys[]' out); do
		grep -q -- "\`$name\`" "$top_srcdir/docs/man/pinion-top.md" || {
			echo "$name is not in pinion-top(1)"
			return 1
		}
	done
}

@test "lines say the same, by number, by name and of all" {
	local tasks
	start_fed
	wait_until_done "$fed"
	tasks=$(jq '.workers | length' out)
	for operand in "$fed" "$(<"/proc/$fed/comm")" ""; do
		# shellcheck disable=SC2086
		pinion top --once $operand
		# Others of this user may be there, and may be refused.
		[ -z "$operand" ] || [ "$operand" != "$fed" ] || expect 0
		grep -A 1 "($fed): up " out | grep -q '^  since its start: .* tasks/s, .* I/O/s, .*B/s$'
	done
	pinion top --once "$fed"
	[ "$(grep -c '^ *[0-9]* *\(runs\|sleeps\|in its ring\|absent\|task \)' out)" = "$tasks" ]
	grep -q '^  normal ' out
	# No line is wider than a terminal of the usual size.
	! grep -q '.\{81\}' out
}

@test "it ends when the process is killed, and the last report says so" {
	start_fed
	: >reports
	"$PINION" top -i 0.05 --json "$fed" >>reports 2>err 3>&- 7>&- &
	watcher=$!
	for _ in {1..1000}; do
		[ "$(wc -l <reports)" -lt 2 ] || break
		sleep 0.02
	done
	kill -KILL "$fed"
	wait $watcher
	[ ! -s err ]
	jq -se 'length > 2 and .[0].state == "alive" and .[-1].state == "dead" and
		all(.[:-1][]; .state == "alive")' reports
}

@test "a signal ends it, with status 0" {
	start_fed
	"$PINION" top -i 1000 "$fed" >reports 2>err 3>&- 7>&- &
	watcher=$!
	wait_until_watching $watcher
	kill -TERM $watcher
	wait $watcher
	[ ! -s err ]
}

@test "the file of a living process, and of a killed one" {
	start_fed PINION_METRICS_FILE="$PWD/page"
	wait_until_done ./page
	expect 0
	jq -e ".state == \"alive\" and .pid == $fed and .file == \"./page\"" out
	mv out living
	# Nobody writes a copy.
	cp page former
	pinion top --once --json ./former
	jq -e '.state == "dead"' out
	# Of the same number and start, but another boot.
	patch_file page 120 x
	pinion top --once --json ./page
	jq -e '.state == "dead"' out
	dd if=former of=page bs=1 skip=120 seek=120 count=1 conv=notrunc status=none
	pinion top --once --json ./page
	jq -e '.state == "alive"' out
	# It is found by its process, too.
	pinion top --once --json "$fed"
	expect 0
	jq -e ".pid == $fed and .state == \"alive\" and (has(\"file\") | not)" out
	kill -KILL "$fed"
	wait "$fed" || true
	pinion top ./page
	expect 0
	grep -q '^pinion, ./page: dead since [0-9-]* [0-9:]*, after ' out ||
		grep -q ', ./page: dead since [0-9-]* [0-9:]*, after ' out
	# By its name alone, as no process is called so.
	pinion top --json page
	expect 0
	jq -e '.state == "dead" and .pid == null' out
	# It may have run a task of its own before the signal came.
	jq -e --slurpfile living living '[.workers[].tasks_run] as $now |
		[$living[0].workers[].tasks_run] as $before | ($now | length) == ($before | length) and
		all(range($now | length); $before[.] <= $now[.] and $now[.] <= $before[.] + 9) and
		($now | add) > 0' out
}

@test "a file that is no page, or cut short, or of another version: a line and status 2" {
	start_fed PINION_METRICS_FILE="$PWD/page"
	kill -KILL "$fed"
	wait "$fed" || true
	head -c 5000 page >cut
	head -c 100 page >short
	cp page newer && patch_file newer 8 '\2'
	cp page table && patch_file table 32 '\377\377\377\377'
	cp page slots && patch_file slots 72 '\377\377\377\377'
	echo text >none
	: >empty
	mkfifo pipe
	for bad in cut short newer table slots none empty pipe . ./absent; do
		pinion top --once "$([ -e "$bad" ] && [ "$bad" != . ] && echo "./$bad" || echo "$bad/")"
		expect 2
		[ "$(wc -l <err)" = 1 ]
		[ ! -s out ]
		grep -q '^pinion top: metrics of ' err
	done
	pinion top ./newer
	grep -q 'its format has version 2, this program reads 1' err
	# The others are shown.
	pinion top --json ./none ./page ./cut
	expect 2
	[ "$(wc -l <err) $(wc -l <out)" = "2 1" ]
	jq -e '.state == "dead"' out
}

@test "names and strings of others act on no terminal" {
	start_fed PINION_METRICS_FILE="$PWD/page"
	kill -KILL "$fed"
	wait "$fed" || true
	patch_file page 160 '\033[31m"\\\0'
	mv page $'p\033[1mage'
	pinion top $'./p\033[1mage'
	expect 0
	! grep -q $'\033' out
	grep -qF '\x1B[1mage' out
	pinion top --json $'./p\033[1mage'
	jq -e '.program == "?[31m\"\\" and .file == "./p\u001b[1mage"' out
	mv $'p\033[1mage' $'p\nage'
	: >$'p\nage'
	pinion top $'./p\nage'
	expect 2
	[ "$(wc -l <err)" = 1 ]
}

@test "any bytes of a page are refused or shown, and JSON stays valid" {
	start_fed PINION_METRICS_FILE="$PWD/page"
	kill -KILL "$fed"
	wait "$fed" || true
	RANDOM=${PINION_SEED:-7}
	for round in {1..60}; do
		cp page changed
		# In the header, or in a row of the table.
		patch_file changed $((8 + RANDOM % 200)) "\\$(printf '%03o' $((RANDOM % 256)))"
		patch_file changed $((200 + RANDOM % 6000)) "\\$(printf '%03o' $((RANDOM % 256)))"
		pinion top --once --json ./changed
		case $status in
		0) jq -e '.workers | length >= 0' out >valid ;;
		2) [ "$(wc -l <err)" = 1 ] && [ ! -s out ] ;;
		*) false ;;
		esac || {
			echo "round $round, exit status $status:"
			cat err
			return 1
		}
	done
}

@test "no page, no process: a line that says how one gets a page" {
	sleep 1000 3>&- &
	fed=$!
	pinion top "$fed"
	expect 2
	[ "$(cat err)" = "pinion top: process $fed has no metrics page: it needs a pinion runtime, without PINION_METRICS_PAGE=0" ]
	pinion top 4194305
	expect 2
	[ "$(cat err)" = "pinion top: metrics of process 4194305: there is no such process" ]
	pinion top 99999999999
	expect 2
	[ "$(cat err)" = "pinion top: there is no process 99999999999" ]
	pinion top no-such-name
	expect 2
	[ "$(cat err)" = "pinion top: there is neither a process nor a file called no-such-name" ]
	pinion top --once sleep
	expect 2
	grep -q '^pinion top: no process called sleep has a metrics page' err
	pinion top --interval=0
	expect 2
	# In a namespace of its own there is no other process.
	if unshare -rpf --mount-proc true 2>/dev/null; then
		status=0
		unshare -rpf --mount-proc "$PINION" top >out 2>err || status=$?
		expect 1
		grep -q 'no process of this user has a metrics page' err
	fi
}

@test "another user's process: a line, and not without an operand" {
	[ "$(id -u)" = 0 ] || skip "needs root, to be another user"
	command -v setpriv >/dev/null || skip "setpriv is not installed"
	start_fed
	cp "$PINION" program
	chmod 755 . program
	[ "$(setpriv --reuid=12345 --clear-groups sh -c 'test -x ./program && echo yes')" = yes ] ||
		skip "the folder of the test is closed to others"
	status=0
	setpriv --reuid=12345 --regid=12345 --clear-groups ./program top --once "$fed" >out 2>err || status=$?
	expect 2
	[ "$(cat err)" = "pinion top: metrics of process $fed: Permission denied" ]
	status=0
	setpriv --reuid=12345 --regid=12345 --clear-groups ./program top --once >out 2>err || status=$?
	[ "$status" = 1 ] || [ "$status" = 0 ]
	! grep -q "($fed)" out
}

@test "a file for Prometheus: whole, with the values of the JSON" {
	start_fed
	wait_until_done "$fed"
	mkdir folder
	pinion top --once --openmetrics=folder "$fed"
	expect 0
	[ ! -s out ]
	[ "$(ls -A folder)" = pinion.prom ]
	# Each sample is of the family that the last TYPE line names, and there once.
	awk '/^# TYPE / { if (seen[$3]++) bad = 1; family = $3; next }
		/^# HELP / { next }
		{ sub(/}.*/, "}"); if (sample[$0]++) bad = 1
			name = $0; sub(/{.*/, "", name); sub(/_(sum|count)$/, "", name)
			rest = family; sub(/_(sum|count)$/, "", rest)
			if (name != rest) { print "sample " $0 " in " family; bad = 1 } }
		END { exit bad }' folder/pinion.prom
	! grep -vE '^(# (HELP|TYPE) pinion_[a-z0-9_]+ .*|pinion_[a-z0-9_]+\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\} ([0-9]+(\.[0-9]+)?|NaN))$' folder/pinion.prom
	# Quantiles of nothing are no times; those of something are.
	grep -q '^pinion_worker_.*quantile\|^pinion_runtime_.*quantile' folder/pinion.prom
	awk '/_count[{]/ { key = $1; sub(/_count[{]/, "{", key); count[key] = $2 }
		/quantile=/ { key = $1; sub(/,quantile="[^"]*"/, "", key); value[key] = $2 }
		END { for (key in value) { seen[value[key] == "NaN"]++
				if ((value[key] == "NaN") != (count[key] == 0)) bad = 1 }
			exit bad || !seen[0] || !seen[1] }' folder/pinion.prom
	# Each has its meaning in words.
	! grep '^# HELP .* A value of another version' folder/pinion.prom
	grep -qx '# HELP pinion_worker_tasks_run_total Tasks entered through run, and over.' folder/pinion.prom
	if command -v promtool >/dev/null; then
		promtool check metrics <folder/pinion.prom
	fi
	pinion top --once --json "$fed"
	for name in tasks_run normal_polls requests_completed read_bytes; do
		[ "$(awk -v name="pinion_worker_${name}_total" 'index($0, name "{") == 1 { sum += $2 }
			END { print sum + 0 }' folder/pinion.prom)" = "$(jq "[.workers[].$name] | add" out)" ]
	done
	created=$(grep -o '"created_unix_ns":[0-9]*' out) # which jq rounds
	created=${created##*:}
	grep -qx "pinion_up{pid=\"$fed\",runtime=\"$created\",program=\"[^\"]*\"} 1" folder/pinion.prom
	[ "$(grep -o 'quantile="[^"]*"' folder/pinion.prom | sort -u | tr '\n' ' ')" = \
		'quantile="0.5" quantile="0.99" quantile="0.999" ' ]
	pinion top --once --json --openmetrics=folder "$fed"
	expect 2
	grep -qx 'pinion top: --json and --openmetrics exclude each other' err
	pinion top --once --openmetrics=absent "$fed"
	expect 2
	grep -q '^pinion top: absent: ' err && [ "$(wc -l <err)" = 1 ]
}

# Until the file for Prometheus has a line like that.
wait_for_line() {
	wait_until grep -qs -- "$1" folder/pinion.prom
}

# The file was written that number of times more.
wait_for_writes() {
	local inode last
	last=$(stat -c %i folder/pinion.prom)
	for _ in $(seq "$1"); do
		for _ in {1..500}; do
			inode=$(stat -c %i folder/pinion.prom)
			[ "$inode" = "$last" ] || break
			sleep 0.02
		done
		last=$inode
	done
}

@test "a process that has ended stays in the file for Prometheus, with its counts" {
	start_fed
	wait_until_done "$fed"
	mkdir folder
	"$PINION" top -i 0.05 --openmetrics=folder "$fed" 2>err 3>&- 7>&- &
	watcher=$!
	wait_for_line "^pinion_up{pid=\"$fed\".* 1$"
	grep '^pinion_worker_tasks_run_total' folder/pinion.prom >before
	kill -KILL "$fed"
	wait_for_line "^pinion_up{pid=\"$fed\".* 0$"
	wait_for_writes 3
	grep -q "^pinion_up{pid=\"$fed\".* 0$" folder/pinion.prom
	[ "$(grep '^pinion_worker_tasks_run_total' folder/pinion.prom)" = "$(cat before)" ]
	! grep -q '^pinion_worker_queue_depth' folder/pinion.prom
	kill -TERM $watcher
	wait $watcher
	[ ! -s err ]
}

@test "a report that cannot be written has a line, and the next one is tried" {
	start_fed
	mkdir folder
	"$PINION" top -i 0.05 --openmetrics=folder "$fed" 2>err 3>&- 7>&- &
	watcher=$!
	wait_for_line "^pinion_up{pid=\"$fed\".* 1$"
	mv folder away
	wait_until test -s err
	kill -0 $watcher
	rm away/pinion.prom
	mv away folder
	wait_for_line "^pinion_up{pid=\"$fed\".* 1$"
	kill -TERM $watcher
	wait $watcher
	[ "$(cat err)" = 'pinion top: folder: no such file or directory' ]
	# Nothing was ever written.
	pinion top -i 0.05 --openmetrics=absent "$fed"
	complains 'absent: no such file or directory'
	# A limit on files is no matter of ignore files.
	(ulimit -f 1 && exec "$PINION" top --once --openmetrics=folder "$fed" 2>err) || status=$?
	complains 'folder: too large for a file: past the limit (ulimit -f)'
}

@test "a FILE that comes later, or comes again, is followed" {
	mkdir folder
	"$PINION" top -i 0.05 --openmetrics=folder ./page 2>err 3>&- &
	watcher=$!
	wait_until_watching $watcher
	start_fed PINION_METRICS_FILE="$PWD/page"
	wait_for_line "^pinion_up{pid=\"$fed\".* 1$"
	kill -KILL "$fed"
	wait_for_line "^pinion_up{pid=\"$fed\".* 0$"
	former=$fed
	rm list
	start_fed PINION_METRICS_FILE="$PWD/page"
	wait_for_line "^pinion_up{pid=\"$fed\".* 1$"
	grep -q "^pinion_up{pid=\"$former\".* 0$" folder/pinion.prom
	kill -TERM $watcher
	status=0
	wait $watcher || status=$?
	expect 2
	[ "$(wc -l <err)" = 1 ]
}

@test "a process that comes later, beside a file of its name that is no page" {
	mkdir folder
	cp "$PINION" watched
	"$PINION" top -i 0.05 --openmetrics=folder watched 2>err 3>&- &
	watcher=$!
	wait_until_watching $watcher
	PINION=$PWD/watched start_fed
	wait_for_line "^pinion_up{pid=\"$fed\".* 1$"
	grep -c "metrics of watched: " err
}

@test "drafts of writers that were killed are removed, those of the living are not" {
	start_fed
	mkdir folder
	: >folder/.pinion.prom.1-1
	: >folder/other
	exec 8>folder/.pinion.prom.2-2
	flock 8
	pinion top --once --openmetrics=folder "$fed"
	expect 0
	[ "$(ls -A folder | sort | tr '\n' ' ')" = ".pinion.prom.2-2 other pinion.prom " ]
	exec 8>&-
	[ "$(id -u)" = 0 ] || return 0
	# Another user's, perhaps on a machine where no lock of it is seen.
	: >folder/.pinion.prom.3-3
	chown 12345 folder/.pinion.prom.3-3
	pinion top --once --openmetrics=folder "$fed"
	expect 0
	[ "$(ls -A folder | sort | tr '\n' ' ')" = ".pinion.prom.3-3 other pinion.prom " ]
}

@test "a file for Prometheus that cannot get its name leaves no draft" {
	start_fed
	mkdir -p folder/pinion.prom
	pinion top --once --openmetrics=folder "$fed"
	complains 'pinion top: folder: is a directory'
	[ "$(ls -A folder)" = pinion.prom ]
}

@test "containers that start together are told apart by their pages" {
	local number pids=()

	unshare -rpf true 2>/dev/null || skip "no new PID namespaces here"
	mkfifo list
	exec 7<>list
	for number in {1..6}; do
		PINION_METRICS_FILE="$PWD/page$number" PINION_WORKER_COUNT=1 unshare -rpf \
			"$PINION" sum -a sha256 --files-from=list >/dev/null 2>&1 3>&- 7>&- &
		pids+=($!)
	done
	for number in {1..6}; do
		wait_until test -s "page$number"
	done
	pinion top --once --json ./page{1..6}
	[ "$(jq -r .state out | sort | uniq -c | tr -s ' ')" = " 6 alive" ]
	[ "$(jq .pid out | sort -u | wc -l)" = 6 ]
	exec 7>&-
	wait "${pids[@]}"
}

@test "a page cannot take a name from other pages in the file for Prometheus" {
	start_fed PINION_METRICS_FILE="$PWD/hostile"
	other=$fed
	# Its list stays open.
	exec 8<>list
	rm list
	start_fed PINION_METRICS_FILE="$PWD/page"
	mkdir folder
	pinion top --once --openmetrics=folder ./page
	grep -c . folder/pinion.prom >lines
	# Of another process, whose page is open: the third row, tasks_run, as a gauge, and the
	# next one by the name of a sample of a summary.
	fields=$((8 * $(od -An -tu8 -j 32 -N 8 page)))
	patch_file hostile $((fields + 2 * 64 + 40)) '\2'
	patch_file hostile $((fields + 3 * 64)) 'run_seconds_sum\0'
	patch_file hostile $((fields + 3 * 64 + 40)) '\2'
	for order in "./hostile ./page" "./page ./hostile"; do
		# shellcheck disable=SC2086
		pinion top --once --openmetrics=folder $order
		expect 0
		[ "$(grep -c '^pinion_worker_tasks_run_total{' folder/pinion.prom)" = \
			"$(grep -c '^pinion_worker_tasks_failed_total{' folder/pinion.prom)" ]
		[ "$(grep -c '^pinion_worker_tasks_run{' folder/pinion.prom)" = \
			"$(grep -c '^pinion_worker_tasks_failed_total{' folder/pinion.prom)" ]
		! grep -q 'worker_run_seconds_sum' folder/pinion.prom
		grep -q '^# TYPE pinion_worker_tasks_run_total counter' folder/pinion.prom
	done
	# The same page twice is written once.
	pinion top --once --openmetrics=folder ./page ./page
	[ "$(grep -c . folder/pinion.prom)" = "$(cat lines)" ]
}

# on_screen ROWS COLUMNS LOCALE: starts pinion top in a terminal of tmux.
on_screen() {
	command -v tmux >/dev/null || skip "tmux is not installed"
	tmux=(tmux -u -S "$PWD/socket" -f /dev/null)
	"${tmux[@]}" new-session -d -y "$1" -x "$2" "$(printf '%q ' env LC_ALL="$3" "$PINION" top -i 0.1 "$fed"); echo status \$?; sleep 1000" 3>&- 7>&-
}

shows() {
	for _ in {1..500}; do
		"${tmux[@]}" capture-pane -p >screen
		! grep -q -- "$1" screen || return 0
		sleep 0.02
	done
	echo "no '$1' on the screen:"
	cat screen
	return 1
}

@test "on a terminal: keys, sizes, and the terminal is restored" {
	start_fed
	on_screen 24 80 C
	shows "($fed): up "
	shows '^worker  state .* in I/O$'
	"${tmux[@]}" send-keys s
	shows 'sorts (by tasks/s)'
	"${tmux[@]}" send-keys '?'
	shows 'man pinion-top has all of it'
	"${tmux[@]}" send-keys '?'
	shows '^  normal '
	! grep -q '  queue ' screen
	"${tmux[@]}" resize-window -x 200 -y 50
	shows '^  normal '
	kill -KILL "$fed"
	shows 'dead since'
	"${tmux[@]}" send-keys q
	shows '^status 0'
	! grep -q 'tasks/s' screen
	"${tmux[@]}" kill-server
}

@test "on a small terminal: the rest of rows and columns, by keys; readings as blocks" {
	locale -a 2>/dev/null | grep -qi '^C.utf-\?8$' || skip "no UTF-8 locale"
	start_fed
	on_screen 6 30 C.UTF-8
	shows "($fed): up "
	# A line that goes on ends in a mark.
	shows '^pinion top: ? helps, q ends, >$'
	shows '^  queue ▁'
	! grep -q '^  low ' screen
	"${tmux[@]}" send-keys PageDown PageDown PageDown
	shows '^  low '
	! grep -q 'up ' screen
	"${tmux[@]}" send-keys Home
	shows "($fed): up "
	"${tmux[@]}" send-keys End
	shows '^  low '
	"${tmux[@]}" send-keys Up Up Up Up Up Up Up Up Up Up Up Up
	shows "($fed): up "
	"${tmux[@]}" send-keys Right Right Right Right Right Right Right Right
	shows ' in I/O$'
	"${tmux[@]}" resize-window -x 200 -y 50
	shows 'rows\|s sorts'
	"${tmux[@]}" send-keys Left Left Left Left Left Left Left Left
	# Thirty of them, however wide it is.
	shows '^  queue \(▁\)\{30\} [0-9.]*  I/O/s \(▁\)\{30\} [0-9.]*  CPU '
}

# Where the value of a runtime with that name is in a page.
place_of() {
	local row
	row=$(LC_ALL=C grep -obUaP "\\x00$1\\x00" "$2" | head -n 1)
	row=$((${row%%:*} + 1))
	echo $((8 * ($(od -An -tu8 -j 40 -N 8 "$2") + $(od -An -tu4 -j $((row + 48)) -N 4 "$2"))))
}

@test "on a terminal: stalls are red while their count grows, or while they last" {
	command -v tmux >/dev/null || skip "tmux is not installed"
	start_fed PINION_METRICS_FILE="$PWD/page"
	# So that nothing but this test writes the page.
	kill -STOP "$fed"
	fed_pid=$fed
	fed=./page
	on_screen 24 80 C
	fed=$fed_pid
	shows "($fed_pid), ./page: stopped, up "
	! grep -q stalls screen
	place=$(place_of stalls page)
	for count in {1..255}; do
		patch_file page "$place" "\\$(printf '%03o' "$count")"
		"${tmux[@]}" capture-pane -e -p >coloured
		! grep -q $'\033\\[[0-9;]*31m.*  stalls: [0-9]*, [0-9]* of them new' coloured || break
		[ "$count" != 255 ]
		sleep 0.02
	done
	# Later it is still there, but not red.
	shows '^  stalls: [0-9]*$'
	"${tmux[@]}" capture-pane -e -p >coloured
	! grep -q $'\033\\[[0-9;]*31m.*  stalls' coloured
	patch_file page "$(place_of starved_lanes page)" '\1'
	shows '^  starved_lanes: 1$'
	patch_file page "$(place_of lanes_starving page)" '\1'
	shows '^  starved_lanes: 1, 1 of them now$'
	"${tmux[@]}" capture-pane -e -p >coloured
	grep -q $'\033\\[[0-9;]*31m.*  starved_lanes' coloured
	patch_file page "$(place_of lanes_starving page)" '\0'
	shows '^  starved_lanes: 1$'
}

@test "pools: how many, how often none was free, and for how long that was waited for" {
	start_fed PINION_METRICS_FILE="$PWD/page"
	kill -KILL "$fed"
	wait "$fed" || true
	pinion top ./page
	! grep -q pool out
	for value in pools:2 pool_buffers:10 pool_exhausted:7 pool_false_nulls:1 pool_waits:3; do
		patch_file page "$(place_of ${value%:*} page)" "\\$(printf '%03o' ${value#*:})"
	done
	patch_file page "$(place_of pool_wait_ns page)" '\170' # 120: 40 each
	pinion top ./page
	expect 0
	grep -qx '  pools: 2, 10 buffers, 7 times none was free, 1 of them doubtful' out
	grep -qx '  pool waits: 3, 40ns each on average' out
}

@test "a process that has ended, and whose parent has not waited for it" {
	cp "$(type -P cat)" ended-of-top
	mkfifo hold
	sh -c './ended-of-top hold & echo $! >number; exec sleep 1000' 3>&- &
	fed=$!
	# A shell would wait for it; what it becomes does not.
	for _ in {1..500}; do
		[ "$(<"/proc/$fed/comm")" != sleep ] || break
		sleep 0.01
	done
	: >hold
	for _ in {1..500}; do
		! grep -q ') Z ' "/proc/$(<number)/stat" || break
		sleep 0.01
	done
	rm ended-of-top # a file of that name would be shown
	for operand in "$(<number)" ended-of-top; do
		pinion top --once "$operand"
		expect 2
		[ "$(cat err)" = "pinion top: process $(<number) has ended; its parent has not waited for it yet" ]
	done
}
