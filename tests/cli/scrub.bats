#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Goal: a scrub tells rotten files from changed ones, reads all files before one
# twice, and loses nothing of STATE that was durable.
# Method: rot changes no time, and a test cannot undo a change of ctime; so it is
# planted in STATE: the digest of a file there is made to differ, and the
# record's checksum is made to fit. Files are older than 2 seconds.

bats_require_minimum_version 1.5.0
load program

setup_file() {
	cd "$BATS_FILE_TMPDIR"
	mkdir -p many few
	perl -e 'for my $i (0 .. 9999) {
		mkdir "many/" . int($i / 100) if $i % 100 == 0;
		open my $file, ">", sprintf("many/%d/%d", $i / 100, $i) or die;
		print $file "file $i\n" x ($i % 50 + 1);
	}'
	for i in {1..7}; do seq "$i" 300 >"few/$i"; done
	sleep 2.1
}

setup() {
	enter_folder
	case $features in
	*+xxhash*) digest=xxh3-64 ;;
	*+openssl*) digest=sha256 ;;
	*) skip "built without openssl and xxhash" ;;
	esac
	ln -s "$BATS_FILE_TMPDIR/few" few
	ln -s "$BATS_FILE_TMPDIR/many" many
}

scrub() {
	pinion sum -a "$digest" --scrub=STATE "$@"
}

# counts AS_THEY_WERE NEW CHANGED ROTTEN UNREADABLE GONE LEFT: of the last line.
counts() {
	local -a is
	read -ra is <<<"$(sed -n '$s/[^0-9]\+/ /gp' err)"
	[ "${is[*]:1}" = "$*" ] || {
		echo "counts ${is[*]:1}, expected $*"
		cat err
		return 1
	}
}

# rot PATH…: the digest in the last record of each path differs by a bit, so a
# second time undoes it.
rot() {
	perl -e '
		sub crc32c {
			my $crc = 0xffffffff;
			for my $byte (unpack "C*", $_[0]) {
				$crc ^= $byte;
				$crc = $crc & 1 ? $crc >> 1 ^ 0x82f63b78 : $crc >> 1 for 1 .. 8;
			}
			return $crc ^ 0xffffffff;
		}
		local $/;
		open my $file, "+<:raw", "STATE" or die;
		my $log = <$file>;
		for my $path (@ARGV) {
			# A header of 24 bytes, then 88 before the path, with the digest at 32.
			my $at = rindex($log, $path) - 88 - 24;
			my ($mark, $crc, $type, $length) = unpack "L4", substr $log, $at, 16;
			die "no record of $path" if $at < 0 || $type != 1;
			my $whole = 24 + ($length + 7 & ~7);
			die "another checksum" if crc32c(substr $log, $at + 8, $whole - 8) != $crc;
			substr($log, $at + 24 + 32, 1) ^= "\x01";
			substr($log, $at + 4, 4) = pack "L", crc32c(substr $log, $at + 8, $whole - 8);
		}
		seek $file, 0, 0;
		print $file $log or die;
	' "$@"
}

@test "one rotten file of 10000 is named, once" {
	scrub --quiet many/
	expect 0
	[ ! -s out ]
	counts 0 10000 0 0 0 0 0
	rot many/77/7731
	scrub many/
	expect 1
	[ "$(cat out)" = "many/77/7731: ROTTEN" ]
	counts 9999 0 0 1 0 0 0
	pinion sum --status STATE
	expect 1
	[ "$(sed -n '1p;$p' out)" = "10000 files by $digest: 1 rotten, 0 unreadable
many/77/7731: ROTTEN" ]
	# It stays so until the file is what it was.
	scrub --quiet many/
	expect 1
	[ "$(cat out)" = "many/77/7731: ROTTEN" ]
	rot many/77/7731
	scrub many/
	expect 0
	[ ! -s out ]
	counts 10000 0 0 0 0 0 0
	pinion sum --status STATE
	expect 0
	[ "$(wc -l <out)" = 3 ]
}

@test "short runs read all files before they read one twice" {
	local i

	for i in {1..7}; do
		scrub --max-duration=0 few/
		expect 0
		counts 0 1 0 0 0 0 $((7 - 1))
		cat out >>new
	done
	diff <(sort new) <(seq -f 'few/%.0f: NEW' 7)
	rot few/{1..7}
	for i in {1..7}; do
		scrub --max-duration=0.000s few/
		expect 1
		cat out >>rotten
	done
	diff <(sort rotten) <(seq -f 'few/%.0f: ROTTEN' 7)
	# In the order of the first round.
	diff <(sed 's/NEW/ROTTEN/' new) rotten
}
