#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What an ordinary user may do, what a quota, a cpuset and a memory limit make of
# it, and what a scan leaves in the page cache. G6, G9.
bats_require_minimum_version 1.5.0

setup() {
	PINION=${PINION:-${top_builddir:-$PWD}/pinion}
	CORPUS=${PINION_CORPUS:-${top_builddir:-$PWD}/tools/dev/corpus}
	features=$("$PINION" --version | grep '^features:')
	cd "$BATS_TEST_TMPDIR" || return 1
}

# The folders above are root's alone, hence one in /tmp for other users.
setup_public() {
	public=$(mktemp -d /tmp/pinion.XXXXXX)
	chmod 755 "$public"
	cp "$PINION" "$public/pinion"
	cd "$public"
}

teardown() {
	[ -z "${public-}" ] || rm -rf "$public"
}

as_user() {
	local memlock=$1
	shift
	setpriv --reuid 65534 --regid 65534 --clear-groups \
		prlimit --memlock="$memlock:$memlock" "$@"
}

@test "an ordinary user's memlock: 8 MiB, 64 KiB, nothing" {
	[[ $features == *+hyperscan* ]] || skip "built without hyperscan"
	setup_public
	"$CORPUS" --size 12M corpus | LC_ALL=C sort >planted
	chmod -R a+rX corpus
	for memlock in 8388608 65536 0; do
		for workers in 1 2 8; do
			status=0
			as_user $memlock ./pinion scan --format=json --workers=$workers corpus \
				>out 2>err || status=$?
			[ "$status" = 1 ]
			sed -E 's/^\{"rule":"([^"]*)","path":"([^"]*)","start":([0-9]+),"end":([0-9]+),.*\}$/\1\t\3\t\4\t\2/' \
				out | LC_ALL=C sort | cmp planted -
			# Slower at worst, and then it says by what.
			[ -z "$(grep -v 'locked-memory limit' err | tee other)" ] || {
				cat other
				return 1
			}
		done
	done
}

@test "rules that take long to compile are ended at the limit without a second thread" {
	[[ $features == *+hyperscan* ]] || skip "built without hyperscan"
	setup_public
	perl -e 'srand(1); for (1 .. 8001) {
		printf "r%d\t%s[a-z0-9]{8,40}x%d[0-9a-f]{3,9}\n", $_,
			join("", map { chr(97 + int(rand(16))) } 1 .. 4), $_ }' >rules || skip "no perl"
	as_user 8388608 prlimit --nproc=1:1 ./pinion scan --rules=rules --max-compile-time=1.5 rules \
		>out 2>err & pid=$!
	for _ in {1..3000}; do
		kill -0 $pid 2>/dev/null || break
		sleep 0.02
	done
	kill -KILL $pid 2>/dev/null || true
	status=0
	wait $pid || status=$?
	cat err
	[ "$status" = 2 ]
	grep -qx 'pinion scan: 8001 rules take longer than 1.5 s to compile: use fewer or simpler ones, or raise --max-compile-time' err
}

@test "what an ordinary user may not read is named" {
	setup_public
	mkdir -p tree/shut tree/unlisted tree/no-entry
	printf needle >tree/open
	printf needle >tree/closed
	printf needle >tree/no-entry/file
	printf 'tree/open\n' >list
	chown -R 65534:65534 tree
	chmod 0 tree/closed tree/shut
	chmod 0300 tree/unlisted
	chmod 0600 tree/no-entry list
	for how in --io=auto --io=fallback; do
		for command in "scan -F -e needle" "sum -r -a sha256"; do
			status=0
			# shellcheck disable=SC2086
			as_user 8388608 ./pinion $command $how --stats tree >out 2>err || status=$?
			cat err
			[ "$status" = 2 ]
			[ "$(wc -l <out)" = 1 ]
			for name in closed shut unlisted no-entry/file; do
				grep -qx "pinion ${command%% *}: tree/$name: permission denied" err
			done
			grep -q ' 5 files: 1 done, 4 failed, 0 skipped, 0 cancelled$' err
		done
	done
	for arguments in "sum --files-from=list" "sum -c list" "scan -F -e x --files-from=list" \
		"scan --rules=list tree/open"; do
		status=0
		# shellcheck disable=SC2086
		as_user 8388608 ./pinion $arguments >out 2>err || status=$?
		[ "$status" = 2 ]
		[ ! -s out ]
		grep -qx "pinion ${arguments%% *}: list: permission denied" err
	done
}

# Runs what follows in a cgroup that may use half a CPU, of either version.
in_half_a_cpu() {
	bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$half" "$@"
}

@test "a CPU quota of half a CPU: one worker, the doctor says so, every byte is right" {
	command -v jq >/dev/null || skip "jq is not installed"
	half=/sys/fs/cgroup/cpu/pinion-$$
	if mkdir "$half" 2>/dev/null; then
		echo 50000 >"$half/cpu.cfs_quota_us"
	else
		half=/sys/fs/cgroup/pinion-$$
		mkdir "$half" 2>/dev/null || skip "no cgroup can be made"
		echo "50000 100000" >"$half/cpu.max" 2>/dev/null || {
			rmdir "$half"
			skip "no CPU quota can be set"
		}
	fi
	head -c 20000000 /dev/urandom >file
	in_half_a_cpu "$PINION" doctor --json >out || [ $? = 1 ]
	in_half_a_cpu "$PINION" sum -a sha256 file >sum
	in_half_a_cpu "$PINION" sum -a sha256 --workers=8 file >sum8
	rmdir "$half"
	jq -e '.cpus.quota_millicpus == 500 and .cpus.default_workers == 1' out
	jq -e '.cpus.problems[0].mend | contains("CPUQuota")' out
	sha256sum file | cmp - sum
	cmp sum sum8
}

# A group with one of this process's CPUs, of version 1 or 2.
enter_one_cpu() {
	local cpu top=/sys/fs/cgroup/cpuset
	cpu=$(sed -n 's/^Cpus_allowed_list:[^0-9]*\([0-9]*\).*/\1/p' /proc/self/status)
	if [ ! -e $top/cpuset.cpus ]; then
		top=/sys/fs/cgroup
		grep -qw cpuset $top/cgroup.controllers 2>/dev/null || skip "no cpuset can be had"
		echo +cpuset >$top/cgroup.subtree_control 2>/dev/null || skip "cpusets are not ours to give"
	fi
	group=$top/pinion-cpuset-$$
	mkdir "$group" 2>/dev/null || skip "no control group can be made here"
	cat $top/cpuset.mems >"$group/cpuset.mems" 2>/dev/null || true
	echo "$cpu" >"$group/cpuset.cpus"
}

@test "a cpuset of one CPU: one worker, the doctor says so, every byte is right" {
	command -v jq >/dev/null || skip "jq is not installed"
	[ "$(nproc)" -gt 1 ] || skip "there is one CPU only"
	head -c 20000000 /dev/urandom >file
	enter_one_cpu
	for how in --io=auto --io=fallback; do
		in_group "$PINION" sum $how -a sha256 file >sum
		in_group "$PINION" sum $how -a sha256 --workers=8 file >sum8
		sha256sum file | cmp - sum
		cmp sum sum8
	done
	in_group "$PINION" doctor --json >out || [ $? = 1 ]
	status=0
	for program in worker_stalls_with_reads ten_thousand_in_flight limits_are_survived; do
		in_group "${top_builddir:-$OLDPWD}/tests/fault/$program" || status=$?
	done
	leave_group
	[ "$status" = 0 ]
	jq -e '.cpus.default_workers == 1 and (.cpus.allowed | test("^[0-9]+$"))' out
}

# Of this file alone: others use the cache meanwhile.
cached_bytes() {
	fincore --bytes --noheadings --output RES "$1" | tr -d ' '
}

drop_cache_of() {
	dd of="$1" oflag=nocache conv=notrunc,fdatasync count=0 status=none
}

@test "a cold file that is read directly does not enter the page cache" {
	command -v fincore >/dev/null || skip "fincore is not installed"
	head -c 256M /dev/urandom >file
	dd if=file of=/dev/null bs=4096 count=1 iflag=direct status=none ||
		skip "TMPDIR has no O_DIRECT"
	drop_cache_of file
	[ "$(cached_bytes file)" = 0 ] || skip "TMPDIR is in memory"
	for command in "scan -F -e pinion" "sum -a sha256"; do
		for how in --io=auto --io=fallback; do
			# shellcheck disable=SC2086
			"$PINION" $command $how --stats file 2>err
			grep -q ' 1 files* past the page cache$' err
			[ "$(cached_bytes file)" = 0 ]
		done
	done
	# The other way round, so that the figure is seen to change.
	cat file >/dev/null
	[ "$(cached_bytes file)" -gt $((128 << 20)) ]
}

# A group below this process's own with a limit on memory, of version 1 or 2.
enter_memory_group() {
	local limit=$1 top name=memory.max
	top=/sys/fs/cgroup/memory$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)
	if [ -e "$top/memory.limit_in_bytes" ]; then
		name=memory.limit_in_bytes
	else
		top=/sys/fs/cgroup
		# Version 2 has it where the groups above hand it down.
		echo +memory >$top/cgroup.subtree_control 2>/dev/null || true
	fi
	group=$top/pinion-test-$$
	mkdir "$group" 2>/dev/null || skip "no control group can be made here"
	[ -e "$group/$name" ] || skip "control groups have no memory controller here"
	limit_file=$group/$name
	echo "$limit" >"$limit_file"
}

in_group() {
	bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@"
}

leave_group() {
	rmdir "$group"
}

@test "a memory cgroup smaller than the buffers: fewer of them, no OOM kill" {
	head -c 20M /dev/urandom >file
	"$PINION" sum -a xxh3-64 file >wanted 2>/dev/null ||
		skip "built without xxhash"
	enter_memory_group 64M
	status=0
	# Else a file that is cached asks for few.
	PINION_BUFFER_COUNT=28 in_group "$PINION" sum -a xxh3-64 --workers=2 file >out 2>err || status=$?
	leave_group
	cat err
	[ "$status" = 0 ]
	cmp wanted out
	[ "$(wc -l <err)" = 1 ]
	grep -q "pinion-test-$$/memory.* is 64 MiB.* each gets [0-9]* large buffers instead" err
}

@test "a memory cgroup too small for any buffers: an error that names it" {
	printf text >file
	enter_memory_group 20M
	status=0
	in_group "$PINION" sum --workers=8 file >out 2>err || status=$?
	leave_group
	cat err
	[ "$status" = 2 ]
	[ ! -s out ]
	grep -q "pinion-test-$$/memory.* is 20 MiB.* 8 workers need .*MemoryMax=" err
}

@test "a memory cgroup's limit that is lowered meanwhile: no growth, no OOM kill" {
	enter_memory_group 512M
	status=0
	TEST_MEMORY_LIMIT=$limit_file in_group "${top_builddir:-$OLDPWD}/tests/fault/growth_is_refused" >out 2>&1 || status=$?
	leave_group
	cat out
	[ "$status" = 0 ]
}
