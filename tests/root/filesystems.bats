#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# `pinion scan` and `pinion sum` on the file systems that a machine can mount, as
# root and as an ordinary user. Each case has a mount namespace of its own, so
# that no mount and no loop device outlives it, however it ends.
bats_require_minimum_version 1.5.0

setup() {
	export PINION=${PINION:-${top_builddir:-$PWD}/pinion}
	export CORPUS=${PINION_CORPUS:-${top_builddir:-$PWD}/tools/dev/corpus}
	export top_builddir=${top_builddir:-$PWD}
	export PROGRAMS=$top_builddir/tests
	features=$("$PINION" --version | grep '^features:')
	[[ $features == *+hyperscan* ]] || skip "built without hyperscan"
	[[ $features == *+openssl* ]] || skip "built without openssl"
	cd "$BATS_TEST_TMPDIR" || return 1
}

# Runs a function of this file in a namespace where /mnt is a tmpfs that any user
# may enter, with the program in it; /mnt/m awaits the file system in question.
# Status 77 skips the case.
inside() {
	local status=0
	unshare --mount --propagation private bash -euc "$(declare -f)"'
		mount -t tmpfs -o mode=755 tmpfs /mnt || { echo "cannot mount tmpfs"; exit 77; }
		mkdir /mnt/m
		cp "$PINION" /mnt/pinion
		"$@"' - "$@" >log 2>&1 || status=$?
	cat log
	[ "$status" != 77 ] || skip "$(tail -n 1 log)"
	[ "$status" = 0 ]
}

# A new file system of a type in a file, mounted by loop.
mount_new() {
	command -v "mkfs.$1" >/dev/null || {
		echo "mkfs.$1 is not installed"
		exit 77
	}
	truncate -s 400M image
	"mkfs.$1" -q image >mkfs.log 2>&1
	mount -t "$1" -o loop image /mnt/m || {
		echo "this kernel cannot mount $1 by loop"
		exit 77
	}
}

as_user() {
	local memlock=$1
	shift
	setpriv --reuid 65534 --regid 65534 --clear-groups \
		prlimit --memlock="$memlock:$memlock" "$@"
}

# The command's status and findings must be those that are planted.
finds_planted() {
	local status=0
	"$@" >/mnt/out || status=$?
	[ "$status" = 1 ]
	sed -E 's/^\{"rule":"([^"]*)","path":"([^"]*)","start":([0-9]+),"end":([0-9]+),.*\}$/\1\t\3\t\4\t\2/' \
		/mnt/out | LC_ALL=C sort | cmp /mnt/planted - || {
		echo "with: $*"
		return 1
	}
}

drop_cache() {
	sync
	echo 1 >/proc/sys/vm/drop_caches
}

plant() {
	cd "$1"
	"$CORPUS" --size 12M corpus | LC_ALL=C sort >/mnt/planted
	chmod -R a+rX corpus
}

# Findings and checksums below the current folder, by every way of reading.
agrees() {
	local how workers
	find corpus -type f -exec sha256sum {} + | LC_ALL=C sort >/mnt/sums
	for how in --direct=auto --direct=always --direct=never --io=fallback; do
		drop_cache
		for workers in 1 8; do
			finds_planted /mnt/pinion scan --format=json $how --workers=$workers corpus
		done
		/mnt/pinion sum -a sha256 -r $how corpus | LC_ALL=C sort | cmp - /mnt/sums
	done
	finds_planted as_user 8388608 /mnt/pinion scan --format=json corpus
	as_user 8388608 /mnt/pinion sum -a sha256 -r corpus | LC_ALL=C sort | cmp - /mnt/sums
}

on_new() {
	mount_new "$1"
	plant /mnt/m
	agrees
}

@test "ext4" {
	inside on_new ext4
}

@test "xfs" {
	inside on_new xfs
}

@test "btrfs" {
	inside on_new btrfs
}

on_tmpfs() {
	plant /mnt
	agrees
}

@test "tmpfs" {
	inside on_tmpfs
}

on_overlay() {
	mkdir lower upper work
	# A disk below, if there is one: that is where O_DIRECT is decided.
	(plant "$PWD/lower")
	mount -t overlay -o "lowerdir=$PWD/lower,upperdir=$PWD/upper,workdir=$PWD/work" \
		overlay /mnt/m || {
		echo "cannot mount overlay on $(stat -f -c %T .)"
		exit 77
	}
	chmod 755 upper /mnt/m
	cd /mnt/m
	# One from each side.
	cp -r corpus/images moved
	rm -r corpus/images
	mv moved corpus/images
	agrees
}

@test "overlay" {
	inside on_overlay
}

# Flips a byte in the middle of a file, on the disk: its checksum is wrong then.
on_broken_btrfs() {
	local at status how
	mount_new btrfs
	perl -e 'printf "%-4096s", sprintf("MARK%08d", $_) for 0 .. 2559' >/mnt/m/broken
	printf 'MARK' >/mnt/m/whole
	umount /mnt/m
	at=$(LC_ALL=C grep -obUaF MARK00001280 image)
	[ "$(wc -l <<<"$at")" = 1 ]
	printf X | dd of=image bs=1 seek=$((${at%%:*} + 100)) conv=notrunc status=none
	mount -t btrfs -o loop image /mnt/m
	cd /mnt/m
	for how in --direct=auto --direct=always --direct=never --io=fallback; do
		status=0
		/mnt/pinion scan -b -F -e MARK --stats $how . >/mnt/out 2>/mnt/err || status=$?
		cat /mnt/err
		[ "$status" = 2 ]
		grep -q '^pinion scan: ./broken: bytes 5242880 to 5246975 could not be read: input/output error' /mnt/err
		grep -q ' 2 files: 1 done, 1 failed, 0 skipped, 0 cancelled$' /mnt/err
		grep -q '^./whole:0-4: ' /mnt/out
		# Every page but the bad one is searched.
		[ "$(grep -c '^./broken:' /mnt/out)" = 2559 ]
		[ "$(grep -c '^./broken:5242880-' /mnt/out)" = 0 ]
		status=0
		/mnt/pinion sum -a sha256 -r --stats $how . >/mnt/out 2>/mnt/err || status=$?
		[ "$status" = 2 ]
		sha256sum ./whole | cmp - /mnt/out
		grep -q '^pinion sum: ./broken: byte 5242880 could not be read: input/output error' /mnt/err
		grep -q ' 2 files: 1 done, 1 failed, 0 skipped, 0 cancelled$' /mnt/err
	done
}

@test "a disk that cannot deliver the middle of a file" {
	inside on_broken_btrfs
}

# Flips bytes of a file on the disk, where ext4 has no checksum of them: real rot.
on_rotten_ext4() {
	local at status
	mount_new ext4
	mkdir /mnt/m/tree
	for i in {1..20}; do
		perl -e 'printf "%-4096s", sprintf("MARK%02d-%04d", $ARGV[0], $_) for 0 .. 63' "$i" \
			>"/mnt/m/tree/$i"
	done
	sleep 2.1
	cd /mnt
	/mnt/pinion sum -a sha256 --scrub=state m/tree
	umount /mnt/m
	cd - >/dev/null
	at=$(LC_ALL=C grep -obUaF MARK07-0031 image)
	[ "$(wc -l <<<"$at")" = 1 ]
	printf X | dd of=image bs=1 seek=$((${at%%:*} + 100)) conv=notrunc status=none
	mount -t ext4 -o loop image /mnt/m
	cd /mnt
	status=0
	/mnt/pinion sum -a sha256 --scrub=state m/tree >/mnt/out || status=$?
	[ "$status" = 1 ]
	[ "$(cat /mnt/out)" = "m/tree/7: ROTTEN" ]
	# A program changes another so.
	printf X | dd of=m/tree/8 bs=1 seek=100 conv=notrunc status=none
	status=0
	/mnt/pinion sum -a sha256 --scrub=state m/tree >/mnt/out || status=$?
	[ "$status" = 1 ]
	[ "$(sort /mnt/out)" = "m/tree/7: ROTTEN
m/tree/8: CHANGED" ]
}

@test "a scrub finds a byte that a disk has changed" {
	inside on_rotten_ext4
}

# Two ranges that btrfs refuses: both are listed, now and by --status.
on_unreadable_btrfs() {
	local at status page
	mount_new btrfs
	perl -e 'printf "%-4096s", sprintf("MARK%08d", $_) for 0 .. 2559' >/mnt/m/broken
	printf 'MARK' >/mnt/m/whole
	sleep 2.1
	cd /mnt
	/mnt/pinion sum -a sha256 --scrub=state m
	umount /mnt/m
	cd - >/dev/null
	for page in 1280 1281 2000; do
		at=$(LC_ALL=C grep -obUaF "MARK0000$page" image)
		printf X | dd of=image bs=1 seek=$((${at%%:*} + 100)) conv=notrunc status=none
	done
	mount -t btrfs -o loop image /mnt/m
	cd /mnt
	status=0
	/mnt/pinion sum -a sha256 --scrub=state m >/mnt/out 2>/mnt/err || status=$?
	cat /mnt/err
	[ "$status" = 2 ]
	[ ! -s /mnt/out ]
	diff - <(sed -n '1,2s/ could not be read: input\/output error.*//p' /mnt/err) <<-END
		pinion sum: m/broken: bytes 5242880 to 5251071
		pinion sum: m/broken: bytes 8192000 to 8196095
	END
	grep -q ': 2 files checked: 1 as they were, 0 new, 0 changed, 0 rotten, 1 unreadable; 0 gone; 0 left' /mnt/err
	status=0
	/mnt/pinion sum --status --json state >/mnt/out || status=$?
	[ "$status" = 2 ]
	[ "$(jq -c '.unreadable[0].ranges' /mnt/out)" = \
		'[{"start":5242880,"length":8192},{"start":8192000,"length":4096}]' ]
}

@test "a scrub lists the ranges that a disk cannot deliver" {
	inside on_unreadable_btrfs
}

# As many operations on files at random, against a model, with rings and without:
# a million in all; FSX_OPERATIONS is for each.
matches_model() {
	STRESS_ITERATIONS=${FSX_OPERATIONS:-130000} TMPDIR=$1 "$PROGRAMS/stress/file_matches_model"
}

fsx_on_new() {
	mount_new "$1"
	matches_model /mnt/m
}

@test "random operations on ext4 match a model" {
	inside fsx_on_new ext4
}

@test "random operations on xfs match a model" {
	inside fsx_on_new xfs
}

@test "random operations on btrfs match a model" {
	inside fsx_on_new btrfs
}

@test "random operations on tmpfs match a model" {
	inside matches_model /mnt
}

# Free space in pieces of 64 KiB, and a file that grows: the blocks that XFS
# sets aside after its end may have no place yet, and then a read past the end
# and the cache gets EIO. It is so for some sizes only.
on_growing_xfs() {
	local how size refused=0
	mount_new xfs
	cd /mnt/m
	head -c 1G /dev/zero | split -b 64K -a 4 - piece 2>/mnt/err || true
	sync
	ls | sed -n 'p;n' | xargs rm
	sync
	for size in {1000000..2000000..37111}; do
		exec 5>growing$size
		head -c $((size - 6)) /dev/zero | dd bs=10000 status=none >&5
		printf needle >&5
		if ! dd if=growing$size of=/dev/null bs=1M iflag=direct status=none 2>/mnt/err; then
			grep -q 'Input/output error$' /mnt/err
			refused=$((refused + 1))
		fi
		for how in --io=auto --io=fallback; do
			/mnt/pinion sum -a sha256 --direct=always $how growing$size >/mnt/sums
			/mnt/pinion scan -b -F -e needle --direct=always $how growing$size >/mnt/out || [ $? = 1 ]
			[ "$(cut -d: -f2 /mnt/out)" = $((size - 6))-$size ]
			sha256sum growing$size | cmp - /mnt/sums
		done
		exec 5>&-
	done
	[ $refused -gt 0 ] || {
		echo "this kernel reads past the end of any growing file"
		exit 77
	}
}

@test "a file that grows on a fragmented xfs" {
	inside on_growing_xfs
}

full_on_new() {
	mount_new "$1"
	"$PROGRAMS/fault/disk_is_full" /mnt/m
}

@test "a full ext4" {
	inside full_on_new ext4
}

@test "a full xfs" {
	inside full_on_new xfs
}

@test "a full btrfs" {
	inside full_on_new btrfs
}

huge_sparse() {
	local at how
	mount_new xfs
	cd /mnt/m
	truncate -s 8T sparse
	for at in 1 4000000000001 8000000000000; do
		printf X | dd of=sparse bs=1 seek=$at conv=notrunc status=none
	done
	for how in --io=auto --io=fallback; do
		timeout 20 /mnt/pinion scan -b -F -e X $how sparse >/mnt/out || [ $? = 1 ]
		cut -d: -f2 /mnt/out | diff - <(printf '%s\n' 1-2 4000000000001-4000000000002 \
			8000000000000-8000000000001)
	done
}

@test "three bytes in 8 TiB" {
	inside huge_sparse
}

# Named it is read, in a tree it is left alone.
on_block_device() {
	local how
	head -c 9999872 /dev/urandom >disk # no multiple of a page
	printf needle | dd of=disk bs=1 seek=9999866 conv=notrunc status=none
	device=$(losetup -f --show disk)
	trap "losetup -d $device" EXIT
	mkdir /mnt/tree
	mknod /mnt/tree/node b $((0x$(stat -c %t "$device"))) $((0x$(stat -c %T "$device")))
	sha256sum "$device" >/mnt/sums
	for how in --direct=auto --direct=always --direct=never --io=fallback; do
		/mnt/pinion sum -a sha256 $how "$device" | cmp - /mnt/sums
		/mnt/pinion scan -b -F -e needle $how "$device" >/mnt/out || [ $? = 1 ]
		[ "$(cut -d: -f2 /mnt/out)" = 9999866-9999872 ]
	done
	/mnt/pinion sum -r /mnt/tree >/mnt/out 2>/mnt/err || true
	grep -q 'tree/node: not a regular file (block device; name it to read it)$' /mnt/err
	[ ! -s /mnt/out ]
	/mnt/pinion doctor "$device" | grep -A 9 "^\"$device\"" >/mnt/out
	grep -q "kind block device, device ${device#/dev/}," /mnt/out
	grep -q 'o_direct yes' /mnt/out
	/mnt/pinion bench read_random --seconds 0.1 --json --file "$device" >/mnt/out
	grep -q '^{"bench":"read_random",' /mnt/out
}

@test "a block device" {
	inside on_block_device
}

@test "no command leaves a tree that is a bind mount" {
	local status=0
	TMPDIR=$BATS_TEST_TMPDIR \
		"$PROGRAMS/unit/tools/commands_stay_beneath_their_roots" bind >log 2>&1 || status=$?
	cat log
	[ "$status" != 77 ] || skip "$(tail -n 1 log)"
	[ "$status" = 0 ]
}
