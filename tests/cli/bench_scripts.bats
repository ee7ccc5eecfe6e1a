#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The scripts of `make bench` and its like: tables, targets, plots and comparisons,
# of figures that are made up. The program only lists its subjects, so a sanitized
# build says nothing new of them.
bats_require_minimum_version 1.5.0
load program

setup() {
	enter_folder
	PINION=${top_builddir:-$PWD}/tests/bench/pinion
}

bench() {
	pinion bench "$@"
}

needs() {
	command -v "$1" >/dev/null || skip "$1 is not installed"
}

@test "make bench says who is ahead, and counts the other way round where more is better" {
	needs jq
	cat >pinion <<-'EOF'
		#!/bin/sh
		echo '{"bench":"'$2'","unit":"x","better":"'${BETTER}'","median":10,"p99":9,"n":6,
			"floor":{"name":"a floor","median":5},"ratio":2,
			"floor_second":{"name":"another way","median":20,"ratio":0.5},
			"machine":{"cpu":"a CPU","cpus":2,"kernel":"6","io":"io_uring"}}'
	EOF
	cat >peer <<-'EOF'
		#!/bin/sh
		[ "$1" != list ] || exec echo spawn
		echo '{"bench":"spawn","peer":"equal","unit":"x","median":10.2,"command":"what was run"}'
		echo '{"bench":"spawn","peer":"beside","unit":"x","median":5,"ours":1,"command":"it"}'
	EOF
	chmod +x pinion peer
	export PINION=./pinion PEERS=./peer ROUNDS=1
	BETTER=less bash "${top_srcdir:-..}/tests/bench/run" spawn >out
	grep -qxF 'In every round by more than 3 %: ahead of "another way", "beside"; behind "a floor".' out
	BETTER=more bash "${top_srcdir:-..}/tests/bench/run" spawn >out
	grep -qxF 'In every round by more than 3 %: ahead of "a floor"; behind "another way", "beside".' out
	grep -qxF '| beside, pinion beside it 1 | 5 |  | 0.2 (0.2 … 0.2) |' out
	grep -qxF '    what was run' out
}

@test "make bench says row by row which targets hold" {
	needs jq
	bench list
	mv out list
	cat >pinion <<-'EOF'
		#!/bin/sh
		median=10
		case "$*" in *"--workers 2"*) median=11 RATIO=2.05 ;; esac
		echo '{"bench":"'$2'","unit":"ns","better":"less","median":'$median',"p99":9,"n":6,
			"floor":{"name":"a floor","median":5,"p99":8},"ratio":'$RATIO',"speedup":1.9,
			"machine":{"cpu":"a CPU","cpus":2,"kernel":"6","io":"io_uring"}}'
	EOF
	cat >peer <<-'EOF'
		#!/bin/sh
		[ "$1" != list ] || exec echo spawn
		echo '{"bench":"spawn","peer":"oneTBB 1.2","unit":"ns","median":40}'
	EOF
	chmod +x pinion peer
	export PINION=./pinion PEERS=./peer ROUNDS=2
	RATIO=2.01 bash "${top_srcdir:-..}/tests/bench/run" spawn spawn:2 forkjoin forkjoin:2 yield |
		sed -n '/^## Targets$/,$p' >out
	cat out
	grep -q '^3 of 5 hold, 1 could not be measured here;' out
	grep -qxF '| `spawn` | floor | ≤ 2 | 2.01 | **missed** |' out
	grep -qxF '| `spawn` | oneTBB | ≤ 0.5 | 0.25 | holds |' out
	grep -qxF '| `spawn:2` | =spawn | ≤ 1.053 | 1.1 | **missed** |' out
	grep -qxF '| `spawn:2` | =spawn/floor | ≤ 1.053 | 1.02 | holds |' out
	grep -qxF '| `forkjoin` | oneTBB | ≤ 0.5 |  | not measured |' out
	grep -qxF '| `forkjoin:2` | speedup | ≥ 1.8 | 1.9 | holds |' out
	RATIO=2 bash "${top_srcdir:-..}/tests/bench/run" spawn nop@1 | tail -n 4 >out
	grep -qxF '| `spawn` | floor | ≤ 2 | 2 | holds |' out
	grep -qxF '| `nop@1` | floor | ≤ 1.111 | 2 | **missed** |' out
	# Each is about a subject that there is.
	awk -F '\t' 'NR == FNR { split($0, word, " "); known[word[1]]; next }
		/^[^#]/ { subject = $1; sub(/[:@\/].*/, "", subject)
			if (NF != 3 || !(subject in known)) { print; bad = 1 } }
		END { exit bad }' list "${top_srcdir:-..}/tests/bench/targets"
	status=0
	bash "${top_srcdir:-..}/tests/bench/run" 'spawn@' 2>err || status=$?
	complains "spawn@ is none of SUBJECT"
}

# A page with an old table.
make_page() {
	printf '%s\n' before '<!-- Table of `make bench`, by `make bench-docs`. -->' old \
		'<!-- The end of this table. -->' after >page
}

@test "make bench-docs makes one table of a run, a row for each subject" {
	needs jq
	cat >pinion <<-'EOF'
		#!/bin/sh
		[ "$2" != nop ] || exit 0
		median=14.544 better=less unit=ns
		case "$*" in *"--workers 2"*) median=16 ;; *read_blocks*) better=more unit=GB/s ;; esac
		echo '{"bench":"'$2'","unit":"'$unit'","better":"'$better'","median":'$median',"p99":9,"n":6,
			"floor":{"name":"a floor","median":1161},"ratio":1.231,
			"floor_second":{"name":"another way","median":40,"ratio":0.5},
			"machine":{"cpu":"a CPU","cpus":2,"kernel":"6","io":"io_uring"}}'
	EOF
	cat >peer <<-'EOF'
		#!/bin/sh
		[ "$1" != list ] || exec printf 'spawn\nread_blocks\n'
		echo '{"bench":"'$1'","peer":"GNU OpenMP, gcc 12.2.0","unit":"x","median":36.36}'
		echo '{"bench":"'$1'","peer":"oneTBB 1.2","unit":"x","median":145.44}'
		echo '{"bench":"'$1'","peer":"a program","unit":"x","median":999,"ours":1,"command":"it"}'
		echo '{"bench":"'$1'","peer":"a fast program","unit":"x","median":1,"ours":1,"command":"it"}'
	EOF
	chmod +x pinion peer
	PINION=./pinion PEERS=./peer ROUNDS=2 DURATION=3 bash "${top_srcdir:-..}/tests/bench/run" \
		nop@64 spawn spawn:2 read_blocks/128K yield pool >/dev/null
	tables=${top_srcdir:-..}/tests/bench/tables
	make_page
	bash "$tables" bench-results/tables.md page
	bash "$tables" bench-results/tables.md page
	cat page
	# The tables are of one run, and of its date; midnight may pass meanwhile.
	date=$(grep -Eo '^20[0-9-]{8}: ' page)
	grep -qF "$date" bench-results/tables.md
	sed -i "s/^$date//" page
	cat >wanted <<-'EOF'
		before
		<!-- Table of `make bench`, by `make bench-docs`. -->

		    make bench ROUNDS=2 DURATION=3 SIZE=1024 SUBJECTS="nop@64 spawn spawn:2 read_blocks/128K yield pool"

		a CPU, 2 CPUs, Linux 6, io_uring; 2 rounds of 3 s each, four times that where a p99 is
		aimed at. Peers: GNU OpenMP, gcc 12.2.0; oneTBB 1.2. Targets: 4 of 6 hold, 3 could not be measured
		here. Missed: `spawn:2` =spawn 1.1 (≤ 1.053); `pool` floor 1.231 (≤ 0.4).

		| subject | ours | floor | ratio | peer | ratio | held |
		|---|---|---|---|---|---|---|
		| `nop@64` | not measured |  |  |  |  | 1 not measured |
		| `spawn` | 14.5 ns | a floor 1161 | 1.231 | GNU OpenMP 36.4 | 0.4 | 2/2 |
		| `spawn:2` | 16.0 ns | a floor 1161 | 1.231 | GNU OpenMP 36.4 | 0.44 | 1/2 |
		| `read_blocks/128K` | 14.5 GB/s | a floor 1161 | 1.231 | oneTBB 145 | 0.1 | 1/1, 2 not measured |
		| `yield` | 14.5 ns | a floor 1161 | 1.231 | another way 40.0 | 0.5 |  |
		| `pool` | 14.5 ns | a floor 1161 | 1.231 | another way 40.0 | 0.5 | 0/1 |

		<!-- The end of this table. -->
		after
	EOF
	diff wanted page
}

@test "the table goes where the page says, and nowhere else" {
	tables=${top_srcdir:-..}/tests/bench/tables
	for line in '<!-- Table of `make bench`, by `make bench-docs`. -->' '<!-- The end of this table. -->'; do
		grep -qxF "$line" "${top_srcdir:-..}/docs/BENCHMARKS.md"
	done
	printf '%s\n' '## spawn' row >new
	echo nothing >page
	status=0
	bash "$tables" new page 2>err || status=$?
	[ "$status" = 2 ] && grep -q "does not say where the table goes" err
	: >new
	status=0
	bash "$tables" new page 2>err || status=$?
	[ "$status" = 2 ] && grep -q "run make bench first" err
	[ "$(cat page)" = nothing ]
	# A run that has measured nothing leaves the old table.
	make_page
	cp page before
	echo text >new
	status=0
	bash "$tables" new page 2>err || status=$?
	[ "$status" = 2 ] && grep -q "has no subject: run make bench first" err
	cmp before page
	[ "$(ls -A | tr '\n' ' ')" = "before err new page " ] || { ls -A; return 1; }
}

@test "docs/BENCHMARKS.md has a whole run: each target is held, missed or not measured" {
	awk -F '\t' '/^[^#]/ { count[$1]++ } END { for (name in count) print name, count[name] }' \
		"${top_srcdir:-..}/tests/bench/targets" | sort >targets
	sed -n '/^<!-- Table/,/^<!-- The end/p' "${top_srcdir:-..}/docs/BENCHMARKS.md" | awk -F ' [|] ' '
		/^\| `/ && $NF ~ /[0-9]/ {
			gsub(/^\| `|`$/, "", $1)
			count = match($NF, /\/[0-9]+/) ? substr($NF, RSTART + 1, RLENGTH - 1) : 0
			if (match($NF, /[0-9]+ not measured/)) count += substr($NF, RSTART)
			print $1, count
		}' | sort >rows
	diff targets rows
}

@test "programs that hash and search are listed beside the same work by ours" {
	needs jq
	needs sha256sum
	[[ $features == *+hyperscan* ]] || skip "scan is missing"
	head -c 64K /dev/urandom >r0
	cp r0 r1
	files=${top_srcdir:-..}/tests/bench/peers/files
	bash "$files" list | grep -qx sum
	for subject in sum scan; do
		PINION=$PINION FOLDER=$PWD bash "$files" "$subject" 1 1 >out
		jq -es --arg subject "$subject" 'length >= 2 and all(.bench == $subject and
			.unit == "GB/s" and .median > 0 and .ours > 0
			and (.command | endswith("FILE…")) and (.our_command | startswith("pinion ")))' out
	done
	[ "$(ls -A | tr '\n' ' ')" = "err out patterns r0 r1 " ] || ls -A
}

@test "make bench-plots draws each picture that README.md shows" {
	cat >pinion <<-'EOF'
		#!/bin/sh
		while [ "$1" != --plot ]; do shift; done
		echo svg >"$2"
	EOF
	chmod +x pinion
	PINION=./pinion DISK=. bash "${top_srcdir:-..}/tests/bench/plots" plots
	# Nor does it draw the database's beside a scan, which is the demo's.
	[ "$(cd plots && ls)" = "$(cd "${top_srcdir:-..}/docs/plots" && ls --ignore=neighbour.svg)" ]
	for file in plots/*; do
		grep -qF "docs/$file" "${top_srcdir:-..}/README.md"
	done
}

# A program whose figures are made up: each subject PERCENT slower than 100,
# give or take 4 % of noise, or TIMES as much. The real program says whether
# more or less is better for a subject.
make_double() {
	cat >"$1" <<-EOF
		#!/bin/bash
		[ "\$2" != list ] || exec cat $PWD/list
		read -r count <$PWD/$1.count || count=0
		echo \$((count + 1)) >$PWD/$1.count
		noise=\$((((count * 37 + $2) % 9 - 4) * ${3:-1}))
		time=\$(((100 + $2) * (100 + noise)))
		case \$2 in
		read* | write* | sum | scan) better=more median=\$((1000000000 / time)) ;;
		*) better=less median=\$time ;;
		esac
		echo '{"bench":"'\$2'","unit":"x","better":"'\$better'","median":'\$median'}'
	EOF
	chmod +x "$1"
}

@test "10 % more are seen in each subject when programs are compared, and equals are equal" {
	needs jq
	bench list
	mv out list
	make_double old 0
	make_double same 0
	make_double slow 10
	compare=${top_srcdir:-..}/tests/bench/compare
	export ROUNDS=6
	bash "$compare" "$PWD/old" "$PWD/same" read write idle yield >out
	[ "$(grep -c ' equal$' out)" = 4 ]
	status=0
	bash "$compare" "$PWD/old" "$PWD/slow" >out || status=$?
	[ "$status" = 1 ]
	[ "$(grep -c ' slower$' out)" = "$(wc -l <list)" ]
	status=0
	bash "$compare" "$PWD/slow" "$PWD/old" spawn read >out || status=$?
	[ "$status" = 0 ]
	[ "$(grep -c ' faster$' out)" = 2 ]
}

@test "what 10 % would not be seen in is no equal, and is measured for longer" {
	needs jq
	bench list
	mv out list
	make_double old 0
	make_double wild 0 8
	ROUNDS=6 bash "${top_srcdir:-..}/tests/bench/compare" "$PWD/old" "$PWD/wild" spawn >out
	[ "$(grep -c ' noise$' out)" = 1 ]
	[ "$(cat wild.count)" = 18 ]
}
