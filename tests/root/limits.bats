#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What an ordinary user may do, and what a scan leaves in the page cache.
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
			sed -E 's/^\{"rule":"([^"]*)","path":"([^"]*)","start":([0-9]+),"end":([0-9]+)\}$/\1\t\3\t\4\t\2/' \
				out | LC_ALL=C sort | cmp planted -
			# Slower at worst, and then it says by what.
			[ "$(grep -vc 'locked-memory limit' err)" = 0 ]
		done
	done
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
	"$PINION" scan -F -e pinion --direct=never file
	[ "$(cached_bytes file)" -gt $((128 << 20)) ]
}
