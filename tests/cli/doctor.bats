#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# pinion doctor: what it says of faults that were made, in both forms.
bats_require_minimum_version 1.5.0
load program

needs() {
	command -v "$1" >/dev/null || skip "$1 is not installed"
}

# Problems that the machine has by itself do not count.
problems_of() {
	jq -r "$1.problems[].what" out
}

@test "text and JSON say the same, the exit status is the verdict" {
	needs jq
	printf text >file
	pinion doctor file .
	[ "$status" -le 1 ]
	[ ! -s err ]
	tail -n 1 out | grep -Eq '^(ready|degraded: everything works, slower than it could)$'
	mv out text
	wanted=$status
	pinion doctor --json file .
	expect "$wanted"
	[ "$(wc -l <out)" = 1 ]
	jq -e ".exit_status == $wanted and (.paths | length) == 2" out
	[ "$(jq -r .verdict out)" = "$(tail -n 1 text | sed 's/:.*//')" ]
	# Every fact and problem of the JSON is in the text.
	for name in $(jq -r '.. | objects | keys[]' out | sort -u); do
		case $name in
		paths | path | verdict | exit_status | problems | what | mend) continue ;;
		esac
		grep -qw -- "$name" text || {
			echo "$name is not in the text"
			return 1
		}
		grep -q -- "\`$name\`" "$top_srcdir/docs/man/pinion-doctor.md" || {
			echo "$name is not in pinion-doctor(1)"
			return 1
		}
	done
	[ "$(grep -c '^ *! ' text)" = "$(jq '[.. | .mend? // empty] | length' out)" ]
	jq -e '[.. | objects | select(has("what")) | .mend | length > 0] | all' out
	# Which has as many lines as the object has subjects.
	[ "$(grep -c '^[^ ]' text)" = "$(jq '(keys | length) - 3 + (.paths | length) + 1' out)" ]
}

@test "the machine is as others see it" {
	needs jq
	needs taskset
	local cpu
	pinion doctor --json
	jq -e 'has("paths") | not' out
	[ "$(jq .cpus.logical out)" = "$(nproc)" ]
	[ "$(jq -r .pinion.kernel out)" = "$(uname -r)" ]
	[ "$(jq -r .limits.descriptors out)" = "$(ulimit -n)" ] || [ "$(ulimit -n)" = unlimited ]
	cpu=$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')
	taskset -c "$cpu" "$PINION" doctor --json >out || true
	jq -e ".cpus.logical == 1 and .cpus.default_workers == 1 and .cpus.allowed == \"$cpu\"" out
}

@test "few descriptors are a problem, with the command that mends it" {
	needs jq
	run -1 bash -c "ulimit -n 100; '$PINION' doctor"
	[[ $output == *'! fewer descriptors than a scan keeps open at once'* ]]
	[[ $output == *'mend: ulimit -n 65536, or LimitNOFILE=65536 in the systemd unit'* ]]
	[[ $output == *'degraded: everything works, slower than it could' ]]
	(ulimit -n 100 && "$PINION" doctor --json >out) || status=$?
	[ "$status" = 1 ]
	jq -e '.limits.descriptors == 100 and .limits.problems[-1].verdict == "degraded"' out
}

@test "little locked memory is a problem, with the command that mends it" {
	needs jq
	unset PINION_IO_LEVEL PINION_IO_WITHOUT # it falls back by itself or not at all
	local drop=()
	if [ "$(id -u)" = 0 ]; then
		drop=(setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock)
		"${drop[@]}" true 2>/dev/null || skip "cannot drop CAP_IPC_LOCK"
	fi
	(ulimit -l 64 && "${drop[@]}" "$PINION" doctor --json >out) || status=$?
	jq -e '.limits.memlock_kib == 64' out
	[ "$(jq -r .io_uring.level out)" != fallback ] || skip "no io_uring here"
	[ "$status" = 1 ]
	jq -e '.limits.problems[0].mend | startswith("ulimit -l ")' out
}

@test "each feature of the configuration is there or missing" {
	needs jq
	pinion doctor --json
	jq -e 'has("io_uring")' out
	[ "$(jq -r .io_uring.level out)" != fallback ] || skip "no io_uring here"
	jq -r '.io_uring.features[], (.io_uring.missing // [])[]' out | sort >told
	features_of_page | sort | diff - told
}

@test "io_uring forbidden or missing: the cause and the command" {
	needs jq
	unset PINION_IO_LEVEL PINION_IO_WITHOUT # it falls back by itself or not at all
	needs strace
	! is_sanitized || skip "sanitizers do without ptrace"
	strace -qq -e trace=none true 2>/dev/null || skip "strace may not trace here"
	for error in EPERM ENOSYS EACCES EMFILE ENOMEM EIO; do
		status=0
		strace -f -qq -o /dev/null -e trace=io_uring_setup \
			-e inject=io_uring_setup:error=$error "$PINION" doctor --json >out || status=$?
		[ "$status" = 1 ]
		jq -e '.io_uring.level == "fallback" and (.io_uring | has("features") | not)' out
		jq -e '.io_uring.problems | length == 1' out
		jq -e '.io_uring.problems[0] | (.what | length > 9) and (.what | contains(";") | not)' out
		jq -e '.io_uring.problems[0].mend |
			test("^(docker|apt-get|ausearch|ulimit|sysctl|dmesg)")' out
	done
	# An old kernel: what it cannot set up is missing, and named. Not where it
	# cannot set up any.
	"$PINION" --version | grep -q '^io_uring: kernel.*send-msg-ring' || return 0
	status=0
	strace -f -qq -o /dev/null -e trace=io_uring_setup \
		-e inject=io_uring_setup:error=EINVAL:when=2+ "$PINION" doctor --json >out || status=$?
	[ "$status" = 1 ]
	jq -e '.io_uring.level == "ring-basic"' out
	jq -e '.io_uring.why_not_higher == "ring-coop needs coop-taskrun (Linux 5.19)"' out
	jq -e '.io_uring.missing | index("defer-taskrun") != null' out
	jq -e '.io_uring.problems | length == 1' out
}

@test "unreadable files are unusable" {
	needs jq
	mkfifo fifo
	mkdir empty
	printf text >file
	for path in missing fifo file/below; do
		pinion doctor "$path"
		expect 2
		grep -q '^ *! ' out
		[ "$(tail -n 1 out)" = "unusable: not everything asked for can be read" ]
		pinion doctor --json file "$path" empty
		expect 2
		jq -e '.paths | map(.readable, .empty) == [true, null, false, null, null, true]' out
		jq -e '.paths | map(.problems | map(select(.verdict == "unusable")) | length) ==
			[0, 1, 0]' out
		jq -e --arg path "$path" '.paths[1].problems[0].mend | endswith(": namei -l " + $path)' out
	done
	# As a shell takes it, where that is one line.
	pinion doctor 'not there' "it's" $'a\nb'
	grep -q "mend: .*: namei -l 'not there'$" out
	[ "$(grep -c 'mend: .*: namei -l PATH$' out)" = 2 ]
	[ "$(id -u)" != 0 ] || return 0
	chmod 0 file empty
	pinion doctor --json file empty
	expect 2
	jq -e '.paths | map(.problems[0].what) == ["permission denied", "permission denied"]' out
}

@test "a file system without O_DIRECT degrades, one with it shows its alignment" {
	needs jq
	local file=/sys/kernel/mm/transparent_hugepage/enabled
	[ -r "$file" ] || skip "no such file"
	pinion doctor --json "$file"
	expect 1
	jq -e '.paths[0] | .file_system == "sysfs" and .o_direct == false' out
	jq -e '.paths[0].problems | length == 1' out
	jq -e '.paths[0].auto | startswith("buffered: ")' out
	head -c 8192 /dev/zero >file
	dd if=file of=/dev/null bs=4096 count=1 iflag=direct status=none ||
		skip "TMPDIR has no O_DIRECT"
	pinion doctor --json file
	jq -e '.paths[0] | .o_direct and .memory_align_bytes > 0 and .offset_align_bytes > 0' out
	jq -e '.paths[0].auto == "buffered: cached" or .paths[0].auto == "direct"' out
	local queue
	queue=$(readlink -f "/sys/dev/block/$(mountpoint -d "$(stat -c %m file)")")
	[ -d "$queue/queue" ] || queue=${queue%/*}
	[ ! -r "$queue/queue/max_sectors_kb" ] ||
		jq -e --argjson most "$(cat "$queue/queue/max_sectors_kb")" \
			'.paths[0].transfer_bytes > 0 and .paths[0].transfer_bytes <= $most * 1024' out
	[ "$(jq -r .paths[0].file_system out)" = "$(stat -f -c %T file | sed 's/ext2.*/ext4/')" ] ||
		[ "$(jq -r .paths[0].file_system out)" = "$(findmnt -no FSTYPE -T file)" ]
}

@test "any path comes out as valid JSON and as one line" {
	needs jq
	mkdir $'a\nb"\\'
	printf x >$'a\nb"\\/\xff'
	pinion doctor --json $'a\nb"\\' $'a\nb"\\/\xff'
	[ "$status" -le 1 ]
	jq -e '.paths[0].path == "a\nb\"\\" and (.paths[1].path.bytes | length) > 0' out
	pinion doctor $'a\nb"\\'
	[ "$(grep -c '^"a' out)" = 1 ]
	[ "$(grep -c '^[^ ]' out)" = 10 ]
}

@test "forced settings of the environment are shown, and bad usage reported" {
	PINION_IO_LEVEL=ring-basic pinion doctor
	grep -q 'PINION_IO_LEVEL ring-basic' out
	pinion doctor --yaml
	expect 2
	grep -q -- '--yaml' err
	pinion doctor --help
	expect 0
	[ -w /dev/full ] || skip "no /dev/full"
	status=0
	"$PINION" doctor >/dev/full 2>err || status=$?
	expect 2
}

@test "what can be observed is as others see it" {
	needs jq
	pinion doctor --json
	jq -e '.observing.problems | map(.verdict == "ready" and (.mend | length > 0)) | all' out
	if command -v readelf >/dev/null; then
		[ "$(jq .observing.usdt_probes out)" = "$(readelf -n "$PINION" 2>/dev/null |
			grep -c 'Provider: pinion$')" ]
	fi
	[ ! -r /proc/sys/kernel/perf_event_paranoid ] ||
		[ "$(jq -r .observing.perf_event_paranoid out)" = "$(</proc/sys/kernel/perf_event_paranoid)" ]
	[ "$(jq .observing.ring_tracepoints out)" = "$(find /sys/kernel/tracing/events/io_uring \
		/sys/kernel/debug/tracing/events/io_uring -maxdepth 1 -name 'io_uring_*' 2>/dev/null |
		sed 's,.*/,,' | sort -u | wc -l)" ]
	[ "$(jq -r .io_uring.level out)" = fallback ] || jq -e '.observing.ring_fdinfo == true or
		(.observing.problems | map(select(.mend | startswith("boot Linux 5.16"))) | length == 1)' out
	# Without privileges: how to get them, and the same verdict.
	mv out before
	[ "$(id -u)" = 0 ] || return 0
	setpriv --bounding-set=-all --inh-caps=-all true 2>/dev/null || skip "cannot drop capabilities"
	status=0
	setpriv --bounding-set=-all --inh-caps=-all --clear-groups "$PINION" doctor --json >out || status=$?
	jq -e '.observing | .may_attach_probes or .may_read_other_users | not' out
	jq -e '[.observing.problems[].mend | select(startswith("sudo pinion top"))] | length == 1' out
	[ ! -e /sys/bus/event_source/devices/uprobe/type ] ||
		jq -e '[.observing.problems[].mend | select(startswith("sudo bpftrace"))] | length == 1' out
}

@test "tracepoints that are not mounted: the command" {
	needs jq
	grep -q tracefs /proc/filesystems || skip "no tracefs here"
	[ "$(id -u)" = 0 ] || skip "needs root, to hide a mount"
	unshare -m true 2>/dev/null || skip "no mount namespace of its own"
	unshare -m sh -c 'mount -t tmpfs none /sys/kernel && exec "$0" doctor --json' "$PINION" >out || true
	jq -e '.observing.ring_tracepoints == 0' out
	jq -e '[.observing.problems[].mend | select(. == "mount -t tracefs tracefs /sys/kernel/tracing")] |
		length == 1' out
}
