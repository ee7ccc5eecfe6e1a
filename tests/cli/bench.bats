#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# `pinion bench`, and the program of `make bench`, which has its command line and
# more subjects: what they print and refuse. No figure is judged here: tests run on
# busy machines.
bats_require_minimum_version 1.5.0
load program

# Measuring takes minutes where every access is watched; that each subject
# starts, runs and stops is what ThreadSanitizer is asked about.
setup() {
	local all=${top_builddir:-$PWD}/tests/bench/pinion
	enter_folder
	shipped=$PINION
	PINION=$all
	case $BATS_TEST_DESCRIPTION in
	*signal* | *refused*) ;;
	*) [[ $about != *tsan.so* ]] || skip "too slow under ThreadSanitizer" ;;
	esac
}

bench() {
	pinion bench "$@"
}

# A sanitized program runs each subject once: in "one CPU is enough", or where it
# needs two. What JSON says of it is the plain program's to show.
once_is_enough() {
	! is_sanitized || skip "a sanitizer has seen these subjects in: one CPU is enough"
}

needs_disk() {
	case $(stat -f -c %T .) in
	tmpfs | ramfs) skip "TMPDIR is in memory" ;;
	esac
	dd if=/dev/zero of=probe bs=4096 count=1 oflag=direct 2>/dev/null ||
		skip "TMPDIR has no O_DIRECT"
	rm probe
}

needs() {
	command -v "$1" >/dev/null || skip "$1 is not installed"
}

# The fields that the documented schema names, with their types.
check_json() {
	jq -es --arg name "$1" --arg unit "$2" '
		length == 1 and (.[0]
		| (.bench == $name) and (.unit == $unit)
		and all(.n, .median, .p99, .ratio, .ratio_lo, .ratio_hi; type == "number" and . > 0)
		and (.better == "less" or .better == "more") and (.spread_percent >= 0) and (.pairs >= 6) and (.conclusive | type == "boolean")
		and (.ratio_lo <= .ratio) and (.ratio <= .ratio_hi) and (.n >= 6)
		and (.floor | (keys == ["median", "name", "p99", "spread_percent"])
			and (.name | type == "string") and (.median > 0) and (.p99 > 0))
		and (.machine | all(.cpu, .kernel, .io; type == "string")
			and all(.cpus, .cores, .nodes; type == "number" and . > 0)
			and (.workers >= 0)
			and (.quota_millicpus >= 0)))' out >/dev/null || {
		echo "not as the schema says:"
		cat out
		return 1
	}
}

# The first words of the lines of `bench list`, in one line.
names() {
	"$1" bench list | awk 'NF >= 4 { printf "%s ", $1 }'
}

@test "list names each subject with what it measures" {
	bench list
	expect 0
	[ ! -s err ]
	[ "$(names "$shipped")" = "nop read read_random read_random_cached write sum scan spawn steal forkjoin \
wake idle timer lanes walk pool " ]
	[ "$(names "$PINION")" = "$(names "$shipped")read_blocks read_blocks_cached write_random \
read_first sum_first read_first_cached yield \
forkjoin_fifo inject inject_burst batch inject_wait steal_spawn lone lone_stream wake_worker wake_ring \
wake_worker_ring wake_qos wake_ring_qos \
wake_completion idle_ring timer_late lanes_qos lanes_busy classes urgent urgent_own execute execute_together thread_pool channel \
channel_pass startup pool_outside pool_malloc pool_two pool_pass pool_steal scan_large_warm \
scan_named_warm scan_rare_warm scan_small_warm scan_start " ]
}

@test "the program that is installed measures its subjects, and has no others" {
	needs jq
	PINION=$shipped bench nop spawn pool --json --seconds 0.05
	expect 0
	[ "$(jq -r 'select(.bench != "nop").bench' out)" = "$(printf 'spawn\npool')" ]
	PINION=$shipped bench pool_malloc
	complains "unknown subject 'pool_malloc' (see pinion bench list)"
	# Its pages explain all subjects.
	for name in $(names "$shipped"); do
		grep -q "^| \`$name\` |" "${top_srcdir:-..}/docs/man/pinion-bench.md"
	done
	for name in $(names "$PINION"); do
		grep -q "^| \`$name\` |" "${top_srcdir:-..}/docs/man/pinion-bench.md" \
			"${top_srcdir:-..}/tests/bench/README.md"
	done
}

@test "an unknown subject is refused before anything is measured" {
	bench spawn raed
	complains "unknown subject 'raed' (did you mean 'read'?)"
	[ ! -s out ]
	bench quicksort
	complains "unknown subject 'quicksort' (see pinion bench list)"
	bench
	complains "no subject (see pinion bench list)"
	bench list spawn
	complains "list takes no other name"
}

@test "bad options are refused" {
	for seconds in 0.0001 1.x .5 99999 99999999999999999999; do
		bench read --seconds "$seconds"
		complains "--seconds"
	done
	bench read --workers none
	complains "--workers"
	bench read --size 1K
	complains "--size: 1K is not between 16M and 1024T"
	bench spawn --block 1
	complains "--block: 1 is not between 512 and 1M"
	# Values that nothing would be measured at.
	bench nop spawn --block 4K
	complains "--block: no subject named depends on it"
	bench nop --workers 2
	complains "--workers: no subject named depends on it"
	bench read nop --turn 64M
	complains "--turn: no subject named depends on it"
	bench read --file x --size 64M
	complains "--file goes with neither"
	bench read --json --csv
	complains "--json and --csv exclude each other"
	for list in 1,x 1, ,1 0 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17; do
		bench spawn --workers "$list"
		complains "--workers"
	done
}

@test "files that cannot be measured are refused" {
	bench read --file absent
	complains "absent: "
	bench read --file .
	complains ".: "
	bench read --file /dev/null
	complains "/dev/null: "
	bench read --dir absent
	complains "absent: "
	needs_disk
	: >empty
	bench read --file empty
	complains "empty: is empty"
}

@test "tmpfs is refused" {
	[ "$(stat -f -c %T /dev/shm 2>/dev/null)" = tmpfs ] || skip "/dev/shm is not tmpfs"
	[ -w /dev/shm ] || skip "/dev/shm is not writable"
	bench read --dir /dev/shm --size 16M
	complains "/dev/shm: tmpfs cannot measure the ring"
	file=$(mktemp /dev/shm/pinion.XXXXXX)
	echo x >"$file"
	bench read --file "$file"
	rm "$file"
	complains "tmpfs cannot measure the ring"
}

@test "more than the disk holds is refused without filling it" {
	needs_disk
	bench read --size 1023T
	complains "no space left"
	[ "$(ls -A)" = "$(printf '%s\n' err out)" ]
}

# Measures a subject, which may be skipped for one of the reasons given.
check_subject() {
	local name=$1 unit=$2 reason
	shift 2
	bench "$name" --json --seconds 0.05 --size 64M
	expect 0
	if [ -s out ]; then
		check_json "$name" "$unit"
		[ ! -s err ]
		return
	fi
	for reason; do
		[ "$(grep -c "^pinion bench: $name: skipped, .*$reason" err)" != 1 ] || return 0
	done
	echo "neither measured nor skipped for a known reason:"
	cat err
	return 1
}

@test "JSON of the subjects about stealing" {
	needs jq
	check_subject steal ns "it needs 2 CPUs" "no worker took"
	check_subject steal_spawn ns "it needs 2 CPUs"
	[ ! -s out ] || jq -e '.other_worker_percent >= 0 and .other_worker_percent <= 50' out
}

@test "JSON of the subjects about spawning" {
	once_is_enough
	needs jq
	check_subject spawn ns
	check_subject yield ns
	check_subject inject ns
	check_subject batch ns
	check_subject inject_wait us
	jq -e '.max_us >= .median' out
}

@test "JSON of the subjects about waking" {
	once_is_enough
	needs jq
	check_subject wake us
	jq -e '.waker_ns > 0 and .floor_waker_ns > 0' out
	check_subject wake_worker us
	check_subject wake_ring us "there is no io_uring"
	check_subject wake_worker_ring us "there is no io_uring"
	check_subject wake_qos us "cannot be asked to stay awake"
	check_subject wake_ring_qos us "there is no io_uring" "cannot be asked to stay awake"
	check_subject wake_completion us "there is no io_uring"
}

@test "JSON of the subjects about lanes and classes has all sides" {
	needs jq
	for name in lanes lanes_qos lanes_busy; do
		check_subject "$name" us "it needs 2 CPUs" "cannot be asked to stay awake"
		[ ! -s out ] || jq -e '.high_start_p99_us >= .median and .floor_p99_us >= .floor.median
			and .low_share_percent >= 0 and .low_share_percent <= 100' out
	done
	jq -e 'has("by_free_worker_percent") | not' out
	check_subject classes us "it needs 2 CPUs"
	[ ! -s out ] || jq -e '.floor.name == "alone" and .floor_second.name == "beside-bare-loops"
		and .floor_second.ratio > 0 and .change > 0 and .change_of_bare_loops > 0
		and .change_by_that_of_bare_loops > 0' out
}

@test "JSON of the subject about calls" {
	needs jq
	check_subject execute us "it needs 2 CPUs"
}

@test "JSON of the subjects about calls together and messages" {
	once_is_enough
	needs jq
	check_subject execute_together us
	check_subject thread_pool us
	jq -e '.jobs_10ms_percent > 0 and .above_floor_us != null' out
	check_subject channel ns
	check_subject channel_pass ns
}

@test "JSON of the subjects about timers" {
	once_is_enough
	needs jq
	check_subject timer ns
	jq -e '.depth == 1000' out
	check_subject timer_late us
	bench timer --depth 1,5000 --json --seconds 0.05
	expect 0
	[ "$(jq -s 'map(.depth) == [1, 5000]' out)" = true ]
}

@test "JSON of starting up" {
	once_is_enough
	needs jq
	check_subject startup us
	bench startup --workers 3 --json --seconds 0.05
	expect 0
	jq -e '.machine.workers == 3' out
	# Each is there, or it is said why not.
	for name in create_ms rest_kib register_64m_ms start_1g_ms; do
		jq -e ".$name > 0" out || grep -q "$name is left out: " err
	done
}

@test "JSON of what a new runtime reads first" {
	once_is_enough
	needs jq
	needs_disk
	for name in read_first sum_first read_first_cached; do
		check_subject "$name" MiB
		jq -e '.next_mib >= 0' out
	done
}

@test "a walk is of the given tree, or of a made one that is removed again" {
	needs jq
	check_subject walk ns
	[ "$(ls -A)" = "$(printf '%s\n' err out)" ]
	mkdir -p tree/a/b tree/empty
	touch tree/a/b/file tree/a/file
	ln -s . tree/a/loop
	bench walk --tree tree --json --seconds 0.05
	expect 0
	check_json walk ns
	bench walk --tree tree/empty --seconds 0.05
	complains "tree/empty: holds no files"
	bench walk --tree absent
	complains "absent: no such file or directory"
	bench walk --tree tree/a/file
	complains "tree/a/file: not a directory"
	bench walk --dir absent
	complains "absent: "
}

@test "JSON of idle workers has the CPU time they used" {
	once_is_enough
	needs jq
	for name in idle idle_ring; do
		check_subject "$name" us/s "there is no io_uring"
		[ ! -s out ] || jq -e '.machine.workers == 8
			and (.cpu_percent >= 0) and (.switches_per_worker_s >= 0)' out
	done
}

@test "forkjoin has one worker, or as many as asked for and a speed-up" {
	needs jq
	check_subject forkjoin ns
	jq -e '.machine.workers == 1 and (has("speedup") | not)' out
	bench forkjoin --json --seconds 0.05 --workers 2
	expect 0
	check_json forkjoin ns
	jq -e '.machine.workers == 2 and .speedup > 0' out
}

@test "a list of workers is measured one by one" {
	once_is_enough
	needs jq
	bench spawn forkjoin --json --seconds 0.05 --workers 2,1
	expect 0
	[ "$(jq -s 'map(select(.bench == "forkjoin").machine.workers) == [2, 1]' out)" = true ]
	[ "$(jq -s 'map(select(.bench == "spawn") | [.machine.workers, .n % 32])
		== [[2, 0], [1, 0]]' out)" = true ]
}

@test "CSV has a line of names and as many fields in each line" {
	needs jq
	bench spawn forkjoin --csv --seconds 0.05
	expect 0
	[ "$(wc -l <out)" = 3 ]
	[ "$(head -n 1 out | cut -d, -f1-10)" = \
		bench,unit,workers,depth,block_bytes,n,pairs,median,p99,spread_percent ]
	# Quoted fields may hold commas.
	[ "$(sed 's/"[^"]*"/x/g' out | awk -F, '{ print NF }' | sort -u)" = 24 ]
	[ "$(cut -d, -f1-5 out | tail -n 2)" = "$(printf 'spawn,ns,1,,\nforkjoin,ns,1,,')" ]
}

@test "a plot is drawn of distributions and of a sweep" {
	needs gnuplot
	bench inject forkjoin --workers 1,2 --seconds 0.05 --plot 'a picture.svg'
	expect 0
	[ ! -s err ]
	[ "$(ls -A)" = "$(printf '%s\n' 'a picture.svg' err out)" ]
	[ "$(grep . "a picture.svg" | tail -n 1)" = "</svg>" ]
	for text in inject forkjoin pinion_task_spawn mpmc-ring recursive-calls '% of figures' \
		workers 'ns, less is better'; do
		grep -qF "$text" 'a picture.svg'
	done
}

@test "a plot that cannot be drawn is refused before anything is measured" {
	mkdir bin
	PATH=$PWD/bin bench spawn --plot o.svg
	complains "gnuplot is missing (Debian: apt-get install gnuplot-nox)"
	[ ! -s out ]
	printf '#!/bin/sh\nexit 1\n' >bin/gnuplot
	chmod +x bin/gnuplot
	PATH=$PWD/bin:$PATH bench spawn --plot absent/o.svg
	complains "absent/o.svg: "
	[ ! -s out ]
	echo old >o.svg
	PATH=$PWD/bin:$PATH bench spawn --seconds 0.05 --plot o.svg
	complains "gnuplot failed"
	[ "$(cat o.svg)" = old ]
	[ "$(ls -A)" = "$(printf '%s\n' bin err o.svg out)" ]
}

@test "one CPU is enough" {
	needs_disk
	[[ $features == *+xxhash* && $features == *+hyperscan* ]] || skip "sum or scan is missing"
	command -v taskset >/dev/null || skip "taskset is not installed"
	needs jq
	status=0
	mapfile -t names < <("$PINION" bench list | awk '{ print $1 }')
	taskset -c "$(taskset -cp $$ | grep -o '[0-9]*$')" "$PINION" bench "${names[@]}" \
		--seconds 0.05 --size 16M --json >out 2>err || status=$?
	expect 0
	jq -s 'all(.machine.cpus == 1 and .median > 0 and .floor.median > 0 and .ratio > 0)' out |
		grep -qx true
	# Each is measured or says why not.
	for name in "${names[@]}"; do
		grep -q "^{\"bench\":\"$name\"" out ||
			grep -Eq ": $name: skipped, (it needs 2 CPUs|there is no io_uring|no worker|idle CPUs)" err ||
			{ echo "nothing about $name"; cat err; return 1; }
	done
}

@test "without io_uring no read stays pending, and the next subject is measured" {
	needs jq
	PINION_IO_LEVEL=fallback bench wake_ring idle_ring spawn --json --seconds 0.05
	expect 0
	check_json spawn ns
	[ "$(grep -c "skipped, there is no io_uring" err)" = 2 ]
}

@test "steal needs two CPUs" {
	command -v taskset >/dev/null || skip "taskset is not installed"
	status=0
	taskset -c "$(taskset -cp $$ | grep -o '[0-9]*$')" "$PINION" bench steal >out 2>err ||
		status=$?
	expect 0
	[ ! -s out ]
	grep -q "steal: skipped, it needs 2 CPUs and may use 1" err
}

@test "JSON of the subjects that read files, and no file is left over" {
	once_is_enough
	needs_disk
	needs jq
	bench read --json --seconds 0.05 --size 64M
	expect 0
	check_json read GB/s
	jq -e '(has("floor_touching") | not) and .cpu_s_per_gib > 0 and .floor_cpu_s_per_gib > 0
		and (.machine.io == "fallback" or .enters_per_request > 0)' out
	local names=()
	[[ $features == *+xxhash* ]] && names+=(sum)
	[[ $features == *+hyperscan* ]] && names+=(scan)
	for name in "${names[@]}"; do
		bench "$name" --json --seconds 0.05 --size 64M
		expect 0
		check_json "$name" GB/s
		jq -e '.floor_touching | (.name | startswith("pread-direct+"))
			and .median > 0 and .ratio_lo <= .ratio and .ratio <= .ratio_hi' out
	done
	[ "$(ls -A)" = "$(printf '%s\n' err out)" ]
}

@test "commands are measured as a user runs them, where the other one is there" {
	once_is_enough
	needs jq
	check_subject scan_start us
	for name in scan_large_warm scan_named_warm scan_rare_warm scan_small_warm; do
		bench "$name" --json --seconds 0.05 --size 16M
		expect 0
		if command -v rg >/dev/null; then
			check_json "$name" ms
			jq -e '.cpu_ms > 0 and .floor_cpu_ms > 0' out
		else
			grep -qx "pinion bench: $name: skipped, it needs rg" err
			[ ! -s out ]
		fi
	done
	PATH=/nowhere bench scan_large_warm --size 16M
	expect 0
	grep -qx "pinion bench: scan_large_warm: skipped, it needs rg" err
	[ "$(ls -A)" = "$(printf '%s\n' err out)" ]
}

@test "JSON of requests that do nothing" {
	once_is_enough
	needs jq
	check_subject nop ns "there is no io_uring"
	[ -s out ] || return 0
	jq -e '.depth == 64 and .completions_per_enter >= 32 and .completions_per_enter <= 65
		and (has("cpu_s_per_gib") | not)' out
	bench nop --depth 1,3,1000 --json --seconds 0.05
	expect 0
	[ "$(jq -cs 'map(.depth)' out)" = "[1,3,1000]" ]
}

@test "random reads are measured by depth, block and workers, and end as asked" {
	once_is_enough
	needs_disk
	needs jq
	check_subject read_random kIOPS "there is no io_uring"
	[ ! -s out ] || jq -e '.depth == 32 and .block_bytes == 4096 and .machine.workers == 1' out
	bench read_random_cached --size 16M --depth 1,4 --block 4K,64K --workers 2 --json \
		--seconds 0.05
	expect 0
	[ "$(jq -cs 'map([.machine.workers, .depth, .block_bytes])' out)" = \
		"[[2,1,4096],[2,1,65536],[2,4,4096],[2,4,65536]]" ]
	bench read_random_cached --size 16M --block 1000 --seconds 0.05
	expect 0
	head -c 3000 /dev/urandom >small
	bench read_random_cached --size 16M --turn 12M --seconds 0.05
	expect 0
	grep -F "3072 in a turn" out
	bench read_random_cached --turn 1K
	complains "--turn: 1K is not between 1M and 1T"
	bench read_random_cached --file small --seconds 0.05
	complains "small: is smaller than one block"
	[ "$(ls -A)" = "$(printf '%s\n' err out small)" ]
}

@test "blocks in order are measured, and writes go to files of their own" {
	once_is_enough
	needs_disk
	needs jq
	for name in read_blocks write; do
		check_subject "$name" GB/s "there is no io_uring"
		[ ! -s out ] || jq -e '.depth == 32 and .block_bytes == 65536
			and (.floor_second | .median > 0 and .ratio_lo <= .ratio)' out
	done
	check_subject read_blocks_cached GB/s
	check_subject write_random kIOPS "there is no io_uring"
	bench write --size 16M --depth 1,8 --block 1M --workers 2 --json --seconds 0.05
	expect 0
	[ ! -s out ] || [ "$(jq -cs 'map([.machine.workers, .depth, .block_bytes])' out)" = \
		"[[2,1,1048576],[2,8,1048576]]" ]
	head -c 1M /dev/zero >file
	bench write write_random --file file --json --seconds 0.05
	expect 0
	[ ! -s out ]
	[ "$(grep -c 'skipped, it would overwrite what --file names' err)" = 2 ]
	cmp -n 1048576 file /dev/zero
	[ "$(ls -A)" = "$(printf '%s\n' err file out)" ]
}

@test "urgent reads beside bulk have the rates of the bulk, and no file is left over" {
	needs_disk
	needs jq
	for name in urgent urgent_own; do
		check_subject "$name" us "there is no io_uring" "it needs 2 CPUs"
		[ ! -s out ] || jq -e --arg name "$name" '.depth == 32 and .block_bytes == 65536
			and .machine.workers == ({urgent: 1, urgent_own: 2}[$name])
			and .floor.name == "io_uring-by-hand"
			and all(.bulk_gb_s, .bulk_alone_gb_s, .bulk_percent, .floor_bulk_percent; . > 0)' out
	done
	bench urgent --size 16M --depth 2 --block 128K --workers 2 --json --seconds 0.05
	expect 0
	[ ! -s out ] || jq -e '[.machine.workers, .depth, .block_bytes] == [2, 2, 131072]' out
	head -c 4096 /dev/zero >small
	bench urgent --file small --json --seconds 0.05
	[ ! -s err ] || grep -Eq "skipped|small: is smaller than one block" err
	[ "$(ls -A)" = "$(printf '%s\n' err out small)" ]
}

@test "random reads past the cache need whole blocks of the device" {
	needs_disk
	bench read_random --size 16M --block 1000 --seconds 0.05
	grep -q "there is no io_uring" err || complains "--block: this device takes multiples of"
}

@test "missing parts of this build are named" {
	needs_disk
	head -c 65536 /dev/zero >file
	if [[ $features != *+xxhash* ]]; then
		bench sum --file file
		complains "not built into this program"
	elif [[ $features != *+hyperscan* ]]; then
		bench scan --file file
		complains "libhyperscan-dev"
	else
		skip "nothing is missing"
	fi
}

@test "text has ours, floor and ratio; sizes need not be whole blocks" {
	needs_disk
	head -c 3145729 /dev/urandom >odd
	head -c 777 /dev/urandom >small
	bench read --file odd --file small --workers 3 --seconds 0.05
	expect 0
	grep -q '^read: 2 files, 3 MiB, 3 workers, .* pairs, more is better$' out
	grep -Eq '^  pinion_scan +[0-9.]+ GB/s \(spread .* %\), p99 [0-9.]+, n [0-9]+$' out
	grep -Eq '^  against pread-direct +[0-9.]+ GB/s .*ratio [0-9.]+, 95 % in \[' out
}

@test "works without io_uring" {
	needs_disk
	needs jq
	PINION_IO_LEVEL=fallback bench read --json --seconds 0.05 --size 16M
	expect 0
	jq -e '.machine.io == "fallback"' out
}

# Starts a bench, waits until it notices signals, and a little longer. A shell's
# background jobs ignore SIGINT by default.
interrupt() {
	local delay=$1
	shift
	status=0
	env --default-signal=INT "$PINION" bench "$@" >out 2>err 3>&- &
	wait_until_watching $!
	sleep "$delay"
	kill -INT $!
	wait $! || status=$?
}

# Each of these, at once and a little later; no file is left over.
interrupt_all() {
	local subject delay
	env --default-signal=INT true 2>/dev/null || skip "env has no --default-signal"
	for subject; do
		for delay in 0 0.3; do
			interrupt "$delay" "$subject" --seconds 60 --size 64M
			expect 3
			grep -q "stopped early" err
		done
	done
	[ "$(ls -A)" = "$(printf '%s\n' err out)" ]
}

@test "a signal stops what works on files" {
	needs_disk
	local subjects=(read read_random_cached startup walk scan_start)
	# The others need a ring.
	[ "${PINION_IO_LEVEL-}" = fallback ] || subjects+=(nop read_random write)
	interrupt_all "${subjects[@]}"
}

@test "a signal stops what spawns" {
	local subjects=(spawn inject inject_wait lanes_busy forkjoin execute_together channel_pass)
	[ "$(nproc)" -lt 2 ] || subjects+=(steal_spawn lanes)
	interrupt_all "${subjects[@]}"
}

@test "a signal stops what sleeps" {
	local subjects=(wake wake_worker timer timer_late)
	[ "${PINION_IO_LEVEL-}" = fallback ] || subjects+=(wake_completion idle_ring)
	interrupt_all "${subjects[@]}"
}

@test "output that cannot be written is an error" {
	[ -w /dev/full ] || skip "no /dev/full"
	status=0
	"$PINION" bench spawn --seconds 0.05 >/dev/full 2>err || status=$?
	complains "no space left"
}

@test "make bench puts others beside ours, as far as they know the subject" {
	needs jq
	cat >peer <<-'EOF'
		#!/bin/sh
		[ "$1" != list ] || exec echo yield
		echo '{"bench":"yield","peer":"a peer","unit":"ns","n":9,"median":4,"p99":5}'
	EOF
	chmod +x peer
	export PINION
	PEERS=./peer PEERS_MISSING="libone libtwo" ROUNDS=2 DURATION=0.05 \
		bash "${top_srcdir:-..}/tests/bench/run" spawn yield >out 2>err
	grep -q "apt-get install libone libtwo, and run configure again" err
	[ "$(grep -c '^## ' out)" = 3 ]
	[ "$(grep -Ec '^\| pinion \| [0-9.]+ \| [0-9.]+ \|  \|$' out)" = 2 ]
	[ "$(grep -Ec '^\| chase-lev-deque \| [0-9.]+ \| [0-9.]+ \| [0-9.]+ \(.* … .*\) \|$' out)" = 2 ]
	[ "$(grep -Ec '^\| a peer \| 4 \| 5 \| [0-9.]+ \(.* … .*\) \|$' out)" = 1 ]
	[ "$(grep -c '^    tests/bench/pinion bench \(spawn\|yield\) --json --seconds 0.05$' out)" = 2 ]
	[ "$(grep -c '^In every round by more than 3 %: ' out)" = 2 ]
	[ "$(grep -Ec '^20[0-9]{2}-[01][0-9]-[0-3][0-9]: .+, [0-9]+ CPUs, Linux ' out)" = 1 ]
	# The same for people and for programs.
	cmp out bench-results/tables.md
	[ "$(jq -cs 'map([.bench, .peer // "ours", .round]) | sort' bench-results/lines.jsonl)" = \
		'[["spawn","ours",1],["spawn","ours",2],["yield","a peer",1],["yield","a peer",2],["yield","ours",1],["yield","ours",2]]' ]
}

@test "the subjects themselves compare, and the program equals itself or is too noisy" {
	needs jq
	status=0
	ROUNDS=6 DURATION=0.05 bash "${top_srcdir:-..}/tests/bench/compare" "$PINION" "$PINION" yield >out ||
		status=$?
	cat out
	[ "$(grep -cE '^yield +ns +[0-9.]+ +[0-9.]+  [0-9.]+ \(.* … .*\) (equal|noise|slower|faster)$' \
		out)" = 1 ]
}
