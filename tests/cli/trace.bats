#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# pinion scan --trace, pinion sum --trace, pinion trace: what they write is JSON
# that keeps to the trace event format, whole or not at all.
bats_require_minimum_version 1.5.0
load program

setup() {
	enter_folder
	command -v jq >/dev/null || skip "jq is not installed"
	unset PINION_TRACE_EVENTS
}

teardown() {
	[ -z "${fed-}" ] || kill -KILL "$fed" 2>/dev/null || true
}

# expect_schema FILE: tests/support/trace_schema.jq finds nothing wrong.
expect_schema() {
	jq -r -f "$top_srcdir/tests/support/trace_schema.jq" "$1" >wrong
	[ ! -s wrong ] || {
		head wrong
		return 1
	}
}

# make_tree [FILES]: a tree of files, one of several windows.
make_tree() {
	local i
	mkdir -p tree/deep
	for ((i = 1; i <= ${1-40}; i++)); do
		seq "$i" 2000 >"tree/deep/$i"
	done
	head -c 5000000 /dev/zero >tree/large
	printf 'id AK%s\n' IAQ2W3E4R5T6Y7U2I3 >tree/found
}

@test "a scan's trace keeps to the format, and has each file's requests" {
	make_tree
	pinion scan --workers=3 --trace=t.json tree
	[ "$status" -le 1 ] || { cat err; return 1; }
	[ ! -s err ]
	expect_schema t.json
	jq -e '.otherData.lost_events == 0 and .otherData.halves == 0' t.json
	# A slice for each task, each with a function, on a worker's track.
	jq -e '[.traceEvents[] | select(.ph == "X" and .cat == "task")] |
		length > 42 and all(.name != "" and .tid >= 1 and .tid <= 3)' t.json
	jq -e '[.traceEvents[] | select(.ph == "M" and .name == "thread_name") | .args.name] |
		sort == ["other threads", "worker 0", "worker 1", "worker 2"]' t.json
	# Spawns from the thread that walks, and where their tasks came from.
	jq -e '[.traceEvents[] | select(.ph == "X" and .name == "spawn" and .tid == 4)] |
		length > 0' t.json
	jq -e '[.traceEvents[] | select(.ph == "X") | .args.source // empty] | unique |
		any(. == "injector")' t.json
	# Each file has its name: of the request that opened it, or by itself.
	jq -e '[.traceEvents[] | select(.name == "open_plain" and .ph == "b" or .name == "file") |
		.args.file] | length == 42 and (unique | length) == 42' t.json
	jq -e '[.traceEvents[] | select(.ph == "X" and .cat == "task") | .args.lane] |
		all(. == "normal")' t.json
	# Nothing is left beside it.
	[ "$(ls)" = "$(printf '%s\n' err out t.json tree wrong)" ]
}

@test "requests are pairs with offsets, bytes and results" {
	head -c 3000000 /dev/zero >large
	pinion sum --direct=always --trace=t.json large
	[ "$status" = 0 ] || skip "this file system reads by the page cache only"
	expect_schema t.json
	jq -e '[.traceEvents[] | select(.ph == "b" and .name == "read") | .args.bytes] |
		length > 0 and all(. > 0)' t.json
	jq -e '[.traceEvents[] | select(.ph == "e" and .name == "read") | .args.result] |
		add == 3000000' t.json
	# The file of each by its name, which comes with the open.
	jq -e '[.traceEvents[] | select(.ph == "b" and (.name | test("^(open|read)"))) |
		.args.file] | length > 3 and all(. == "large")' t.json
}

@test "a checker of the format finds what is planted" {
	make_tree 4
	pinion scan --workers=2 --trace=t.json tree
	planted=(
		'(first(.traceEvents[] | select(.ph == "X" and .cat == "task")) | .dur) = null'
		'.traceEvents |= map(select(.ph != "f"))'
		'.traceEvents |= map(select(.ph != "e"))'
		'.traceEvents |= map(if .ph == "f" then .tid = 99 else . end)'
		'.traceEvents[-1].ts = 0'
		'(.traceEvents[] | select(.ph == "X" and .cat == "task") | .dur) += 1000000'
		'.traceEvents |= map(select(.ph != "M"))'
		'(first(.traceEvents[] | select(.ph == "M")) | .args.name) = 1'
		'(first(.traceEvents[] | select(.ph == "f")) | .cat) = "other"'
		'(first(.traceEvents[] | select(.ph == "X")) | .args) = "text"'
		'.traceEvents |= (map(select(.ph == "s" or .ph == "f")) + map(select(.ph != "s" and .ph != "f")) | sort_by(.ts))'
	)
	for filter in "${planted[@]}"; do
		jq "$filter" t.json >planted.json
		! expect_schema planted.json || {
			echo "not noticed: $filter"
			return 1
		}
	done
}

@test "a file is replaced when the new one is whole, and only then" {
	make_tree
	echo older >t.json
	pinion scan --trace=t.json --files-from=/nonexistent tree
	[ "$status" -ne 0 ]
	pinion scan --trace=t.json tree
	expect_schema t.json
	pinion scan --trace=none/t.json tree
	expect 2
	grep -q '^pinion scan: none/t.json: ' err
	pinion scan --trace=/dev/full tree
	expect 2
	grep -q '^pinion scan: /dev/full: ' err
	! compgen -G '*.part'
}

@test "FILE is no input: one that is named is refused, one that is found is left out" {
	make_tree
	printf 'rule\tneedle\n' >rules
	printf 'tree\n' >list
	: >limits
	printf '[]' >known
	ln -s rules link
	local before=$(cat rules list limits known tree/*/* tree/* 2>/dev/null | md5sum)
	local word
	for word in --rules=rules --rules=link --files-from=list --limits-file=limits \
		--baseline=known --checkpoint=log; do
		pinion scan "$word" --trace="${word#*=}" tree
		complains "--trace would replace ${word#*=}, which this command needs"
		[ ! -s out ]
	done
	pinion scan -F -e needle --trace=./rules tree rules
	complains "--trace would replace rules, which"
	pinion sum -r --trace=rules tree link
	complains "--trace would replace link, which"
	pinion sum --files-from=list --trace=list
	complains "--trace would replace list, which"
	# The page that the command itself writes, also before it is there.
	for word in scan sum; do
		for name in metrics metrics.1 metrics.15; do
			PINION_METRICS_FILE="$PWD/metrics" pinion "$word" --trace="$name" tree/large
			complains "--trace would replace $name, which is for the metrics page"
			[ ! -e "$name" ]
		done
	done
	[ "$before" = "$(cat rules list limits known tree/*/* tree/* 2>/dev/null | md5sum)" ]
	# What an earlier run has left below a directory.
	mkdir more
	printf needle | tee more/found more/t.json >/dev/null
	pinion scan -F -e needle --trace=more/t.json more
	expect 1
	[ "$(cut -d: -f1 out)" = more/found ]
	[ "$(cat err)" = 'pinion scan: more/t.json: --trace writes there: it is not searched' ]
	expect_schema more/t.json
	pinion sum more/found more/t.json
	cp out sums
	pinion sum -r --trace=more/t.json more
	expect 2
	grep -qx 'pinion sum: more/t.json: --trace writes there: it is not hashed' err
	[ "$(wc -l <out)" = 1 ]
	pinion sum -c --trace=more/t.json sums
	expect 2
	grep -qx 'more/t.json: FAILED open or read' out
}

@test "FILE: a link, a pipe, a long name; what cannot be written is known at once" {
	make_tree
	echo older >target
	ln -s target link
	pinion scan --trace=link tree
	[ -L link ]
	expect_schema target
	mkfifo pipe
	cat pipe >piped &
	reader=$!
	pinion scan --trace=pipe tree
	wait "$reader"
	expect_schema piped
	long=$(printf 'n%.0s' {1..250})
	pinion scan --trace="$long" tree
	expect_schema "$long"
	# Before the scan: no finding is printed.
	ln -s nowhere dangling
	for bad in dangling "$long${long:0:6}" tree none/t.json target/t.json; do
		pinion scan --trace="$bad" tree
		expect 2
		[ ! -s out ]
		[ "$(wc -l <err)" = 1 ]
	done
	for pair in "|'': is no name: a trace needs a file" \
		"target/|target/: ends in a slash, as directories do: a trace is a file" \
		"none/|none/: ends in a slash, as directories do: a trace is a file" \
		"tree/|tree/: is a directory: a trace is a file"; do
		pinion scan --trace="${pair%%|*}" tree
		complains "pinion scan: ${pair#*|}"
	done
	pinion scan --trace=dangling tree
	grep -qx 'pinion scan: dangling: is a link that leads to no file' err
	# Without a reader the scan is done, and the trace is not.
	pinion scan --trace=pipe tree
	expect 2
	[ -s out ]
	[ "$(cat err)" = 'pinion scan: pipe: no program reads this pipe: there is no trace' ]
}

@test "FILE: another user's in a sticky folder is refused before anything is done" {
	[ "$(id -u)" = 0 ] || skip "needs root, to be another user"
	command -v setpriv >/dev/null || skip "setpriv is not installed"
	make_tree 2
	mkdir sticky
	chmod 1777 sticky
	echo older >sticky/t.json
	cp "$PINION" program
	chmod 755 . program
	local user=(setpriv --reuid=12345 --regid=12345 --clear-groups)
	[ "$("${user[@]}" sh -c 'test -x ./program && echo yes')" = yes ] ||
		skip "the folder of the test is closed to others"
	status=0
	"${user[@]}" ./program scan --trace=sticky/t.json tree >out 2>err || status=$?
	complains "sticky/t.json: is another user's, in a sticky folder: choose another name"
	[ ! -s out ]
	[ "$(cat sticky/t.json)" = older ]
	# Its own, and those of a folder of its own, are replaced.
	chown 12345 sticky/t.json
	"${user[@]}" ./program scan --trace=sticky/t.json tree >out 2>err || status=$?
	[ ! -s err ]
	expect_schema sticky/t.json
	chown 0 sticky/t.json
	chown 12345 sticky
	"${user[@]}" ./program scan --trace=sticky/t.json tree >out 2>err || status=$?
	[ ! -s err ]
	[ "$(stat -c %u sticky/t.json)" = 12345 ]
}

@test "a ring that is too short keeps the latest events, and says so" {
	make_tree
	PINION_TRACE_EVENTS=16 pinion scan --workers=1 --trace=t.json tree
	[ "$status" -le 1 ]
	grep -Eq '^pinion scan: the trace lacks [0-9]+ events: each worker keeps the last 16 ' err
	expect_schema t.json
	jq -e '.otherData.lost_events > 0 and .otherData.ring_events == 16' t.json
	for bad in 15 1 2097152 x; do
		PINION_TRACE_EVENTS=$bad pinion scan tree
		expect 2
	done
}

@test "drafts of others with its number are left, 15 of them" {
	make_tree 4
	with_drafts='for i in $(seq 0 $0); do : >trace.$$.$i.part; done; exec "$@"'
	sh -c "$with_drafts" 14 "$PINION" scan -F -e absent --trace=t.json tree
	expect_schema t.json
	[ "$(ls -- *.part | wc -l)" = 15 ]
	rm t.json ./*.part
	status=0
	sh -c "$with_drafts" 15 "$PINION" scan -F -e absent --trace=t.json tree 2>err || status=$?
	complains 'pinion scan: t.json: File exists'
	[ "$(ls -- *.part | wc -l)" = 16 ]
	[ ! -e t.json ]
}

# start_fed [NAME=VALUE…]: a command that has read a file and waits for more.
start_fed() {
	mkfifo list
	exec 7<>list
	head -c 300000 /dev/zero >file
	env "$@" "$PINION" sum --files-from=list >sums 2>sum.err 3>&- 7>&- &
	fed=$!
	wait_until_watching "$fed"
	printf 'file\n' >&7
	wait_until_taken "$fed"
}

@test "the past and the present of a process that allows it" {
	start_fed PINION_TRACE_EVENTS=1024
	pinion trace -o past.json "$fed" 0
	expect 0
	[ ! -s err ]
	expect_schema past.json
	jq -e '[.traceEvents[] | select(.ph == "X" and .cat == "task")] | length > 0' past.json
	# Its functions have the names that the program's file has.
	jq -e '[.traceEvents[] | select(.ph == "X" and .cat == "task") | .name] |
		all(test("^[a-z_]+$"))' past.json
	"$PINION" trace "$fed" 5 >now.json &
	tracer=$!
	wait_until_watching "$tracer"
	for _ in {1..20}; do
		printf 'file\n' >&7
	done
	wait_until_taken "$fed"
	kill -INT "$tracer"
	wait "$tracer"
	expect_schema now.json
	jq -e '[.traceEvents[] | select(.ph == "X" and .cat == "task")] | length >= 20' now.json
}

@test "a trace that grows too long leaves neither a part nor a file" {
	start_fed PINION_TRACE_EVENTS=1024
	status=0
	bash -c 'ulimit -f 1; exec "$@"' - "$PINION" trace -o t.json "$fed" 0 2>err || status=$?
	complains 'pinion trace: t.json: too large for a file: past the limit (ulimit -f)'
	[ ! -e t.json ]
	! compgen -G '*.part'
}

@test "a process that is killed meanwhile ends its trace" {
	start_fed PINION_TRACE_EVENTS=1024
	"$PINION" trace -o killed.json "$fed" 3600 2>err &
	tracer=$!
	wait_until_watching "$tracer"
	printf 'file\n' >&7
	wait_until_idle "$fed"
	kill -KILL "$fed"
	wait "$fed" || true
	fed=
	wait "$tracer"
	expect_schema killed.json
	jq -e '.otherData.events > 0' killed.json
}

# start_unwaited: the same, of a parent that never waits for it.
start_unwaited() {
	mkfifo list
	exec 7<>list
	head -c 300000 /dev/zero >file
	PINION_TRACE_EVENTS=1024 bash -c '"$0" sum --files-from=list >sums 2>sum.err & echo $! >number
		exec sleep 1000' "$PINION" 3>&- 7>&- &
	parent=$!
	wait_until test -s number
	fed=$(<number)
	wait_until_watching "$fed"
}

@test "a process that is killed, and not waited for, ends its trace" {
	start_unwaited
	"$PINION" trace -o killed.json "$fed" 3600 2>err 3>&- 7>&- &
	tracer=$!
	wait_until_watching "$tracer"
	kill -KILL "$fed"
	for _ in {1..500}; do
		kill -0 "$tracer" 2>/dev/null || break
		sleep 0.02
	done
	! kill -0 "$tracer" 2>/dev/null || {
		kill -KILL "$tracer" "$parent"
		echo "it goes on"
		return 1
	}
	# A zombie has its number still.
	kill -0 "$fed"
	kill -KILL "$parent"
	fed=
	wait "$tracer"
	expect_schema killed.json
}

@test "a process that does not allow it, or is none" {
	start_fed
	pinion trace "$fed" 1
	expect 2
	[ ! -s out ]
	[ "$(cat err)" = "pinion trace: process $fed has no trace: start it with PINION_TRACE_EVENTS=65536, if it reads its configuration from the environment, or with \`trace_events\` in its tuning" ]
	pinion trace 4194304 1
	expect 2
	grep -q 'there is no such process' err
	for operands in "" "$fed" "$fed x" "x 1" "$fed 1 1"; do
		# shellcheck disable=SC2086
		pinion trace $operands
		expect 2
		[ -s err ]
	done
	pinion trace --runtime=1 "$fed" 0
	expect 2
	[ -s err ]
	pinion trace abc 1
	[ "$(cat err)" = "pinion trace: PID: 'abc' is not a number from 1 to 4194304" ]
	pinion trace "$fed" -1s
	[ "$(cat err)" = 'pinion trace: unknown option -1 (see pinion trace -h)' ]
	pinion trace "$fed" 99999999
	[ "$(cat err)" = 'pinion trace: SECONDS: 99999999 is not between 0 and 86400 seconds' ]
	pinion trace --runtime=x "$fed" 0
	[ "$(cat err)" = "pinion trace: --runtime: 'x' is not a number from 0 to 65535" ]
}
