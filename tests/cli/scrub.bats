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
	wait_until_old 2
}

setup() {
	enter_folder
	case $features in
	*+xxhash*) digest=xxh3-64 ;;
	*+openssl*) digest=sha256 ;;
	*) skip "built without openssl and xxhash" ;;
	esac
	link_made few many
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

# alter AT BITS PATH…: these bits of a byte of the last record of each path differ;
# a second time undoes it.
alter() {
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
		my ($byte, $bits) = (shift, chr oct shift);
		open my $file, "+<:raw", "STATE" or die;
		my $log = <$file>;
		for my $path (@ARGV) {
			# A header of 24 bytes, then 88 before the path.
			my $at = rindex($log, $path) - 88 - 24;
			my ($mark, $crc, $type, $length) = unpack "L4", substr $log, $at, 16;
			die "no record of $path" if $at < 0 || $type != 1;
			my $whole = 24 + ($length + 7 & ~7);
			die "another checksum" if crc32c(substr $log, $at + 8, $whole - 8) != $crc;
			substr($log, $at + 24 + $byte, 1) ^= $bits;
			substr($log, $at + 4, 4) = pack "L", crc32c(substr $log, $at + 8, $whole - 8);
		}
		seek $file, 0, 0;
		print $file $log or die;
	' "$@"
}

# rot PATH…: the digest in its record differs from that of the file.
rot() {
	alter 32 0x01 "$@"
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

@test "no file of 10000 is read twice before all are read" {
	local runs=0 duration=0.15

	! is_sanitized || duration=1
	# Each run takes what fits, the first two one file; none reads what another
	# has read.
	while scrub --max-duration="$([ $runs -lt 2 ] && echo 0 || echo $duration)" many/; do
		expect 0
		cat out >>all
		cp err counted
		pinion sum --status --json STATE
		[ "$(jq .files out)" = "$(wc -l <all)" ]
		[ "$(jq .files out)" -lt 10000 ] || break
		grep -q ' 0 as they were, ' counted
		runs=$((runs + 1))
		[ "$runs" -lt 2000 ]
	done
	[ "$(sort all | uniq -d | wc -l)" = 0 ]
	[ "$(grep -c '^many/[0-9]*/[0-9]*: NEW$' all)" = 10000 ]
}

@test "changed, new and vanished files are no rot" {
	cp -r "$BATS_FILE_TMPDIR/few" own
	mkdir own/.hidden
	echo text >own/.hidden/file
	wait_until_old 2
	scrub own
	counts 0 8 0 0 0 0 0
	# The same size and mtime: its ctime differs.
	touch -r own/1 stamp
	printf X | dd of=own/1 conv=notrunc status=none
	touch -r stamp own/1
	echo more >>own/2
	touch own/3
	rm own/4
	echo text >own/8
	scrub --no-hidden own
	expect 0
	diff <(sort out) - <<-END
		own/1: CHANGED
		own/2: CHANGED
		own/4: GONE
		own/8: NEW
	END
	counts 4 1 2 0 0 1 0
	# It was left out, and is as it was.
	scrub own
	expect 0
	[ ! -s out ]
	counts 8 0 0 0 0 0 0
	# Times of these records say nothing, as they are of files just changed: on a
	# slow machine again, until a check has begun within two seconds.
	local began
	for attempt in {1..20}; do
		began=$(date +%s%N)
		touch own/1 own/8
		scrub --quiet own
		[ $(($(date +%s%N) - began)) -gt 1800000000 ] || break
	done
	rot own/1 own/8 own/5
	scrub own
	expect 1
	diff <(sort out) - <<-END
		own/1: CHANGED
		own/5: ROTTEN
		own/8: CHANGED
	END
	# STATE has the new digests of those that changed.
	scrub --quiet own
	expect 1
	[ "$(cat out)" = "own/5: ROTTEN" ]
	counts 7 0 0 1 0 0 0
}

@test "a file that is written while it is read is no rot" {
	mkdir own
	truncate -s 1G own/file 2>/dev/null || skip "no file of 1 GiB here"
	wait_until_old 2
	scrub own
	rot own/file
	halt_inside own/file "$PINION" sum -a "$digest" --scrub=STATE own
	touch own/file
	kill -CONT $pid
	status=0
	wait $pid || status=$?
	expect 0
	[ "$(cat out)" = "own/file: CHANGED" ]
	# The size as well: it is not what it was when it was opened.
	halt_inside own/file "$PINION" sum -a "$digest" --scrub=STATE own
	echo more >>own/file
	kill -CONT $pid
	status=0
	wait $pid || status=$?
	expect 0
	[ "$(cat out)" = "own/file: CHANGED" ]
	counts 0 0 1 0 0 0 0
}

@test "files that were checked within --max-age are not read" {
	scrub --quiet few/
	rot few/3
	scrub --max-age=1h few/
	expect 0
	counts 0 0 0 0 0 0 0
	scrub --max-age=0.001s few/
	expect 1
	[ "$(cat out)" = "few/3: ROTTEN" ]
	counts 6 0 0 1 0 0 0
	# Checked when the clock was far ahead: due, in its turn.
	alter 7 0x40 few/5
	scrub --max-age=1h few/
	expect 0
	counts 1 0 0 0 0 0 0
}

@test "large files wait for each other where time is limited" {
	local file

	mkdir own
	for file in {1..20}; do truncate -s $((16777216 + file - 3)) "own/$file"; done
	scrub --quiet --max-duration=1h --workers=2 own
	expect 0
	counts 0 20 0 0 0 0 0
	scrub --quiet --max-duration=0 --workers=1 own
	expect 0
	counts 1 0 0 0 0 0 19
}

@test "STATE in the tree is not read" {
	cp -r "$BATS_FILE_TMPDIR/few" own
	pinion sum -a "$digest" --scrub=own/STATE own
	counts 0 7 0 0 0 0 0
	pinion sum -a "$digest" --scrub=own/STATE own
	expect 0
	counts 7 0 0 0 0 0 0
}

@test "a tree without files is an error, and STATE keeps what it has" {
	cp -r "$BATS_FILE_TMPDIR/few" own
	mkdir owned
	scrub own owned
	expect 0
	# Files that options leave out are there all the same.
	scrub --exclude='*' own owned
	expect 0
	mv own mounted
	mkdir own
	scrub own owned
	expect 2
	[ ! -s out ]
	[ "$(head -n 1 err)" = "pinion sum: own: has no files any more: mount it; once it is to be empty, remove STATE" ]
	counts 0 0 0 0 0 0 0
	rmdir own
	scrub own owned
	expect 2
	mv mounted own
	scrub own owned
	expect 0
	counts 7 0 0 0 0 0 0
}

@test "killed at any time, no verdict is wrong" {
	local file i pid

	cp -r "$BATS_FILE_TMPDIR/few" own
	# Holes: they take time, and no disk.
	for file in {10..40}; do truncate -s $((30000000 + file)) "own/$file"; done
	wait_until_old 2
	scrub own
	counts 0 38 0 0 0 0 0
	rot own/20
	for ((i = 0; i < ${KILLS:-8}; i++)); do
		"$PINION" sum -a "$digest" --scrub=STATE own >>some 2>err 3>&- &
		pid=$!
		sleep "0.0$((RANDOM % 6))$((RANDOM % 10))"
		kill -9 "$pid" || true
		wait "$pid" || true
		pinion sum --status STATE
		[ "$(sed -n '1s/:.*//p' out)" = "38 files by $digest" ]
		[ "$(tail -n +4 out)" = "" ] || [ "$(tail -n +4 out)" = "own/20: ROTTEN" ]
	done
	[ -z "$(grep -vx 'own/20: ROTTEN' some)" ]
	scrub own
	expect 1
	[ "$(cat out)" = "own/20: ROTTEN" ]
	counts 37 0 0 1 0 0 0
}

@test "a STATE cut anywhere loses the checks after the cut" {
	local size cut known

	scrub few/
	scrub few/
	cp STATE whole
	size=$(stat -c %s whole)
	for ((cut = 0; cut <= size; cut += 97)); do
		head -c "$cut" whole >STATE
		known=0
		if pinion sum --status --json STATE && [ "$status" = 0 ]; then
			known=$(jq .files out)
		fi
		scrub few/
		expect 0
		counts "$known" $((7 - known)) 0 0 0 0 0
	done
	[ "$known" = 7 ]
}

refused() {
	expect 2
	[ ! -s out ]
	[ "$(wc -l <err)" = 1 ] || { cat err; return 1; }
	grep -qF -e "$1" err || { cat err; return 1; }
}

@test "a damaged STATE is refused by its offset, and salvaged" {
	scrub few/
	scrub few/
	printf '\xff' | dd of=STATE bs=1 seek=700 conv=notrunc status=none
	cp STATE before
	scrub few/
	refused 'checkpoint STATE: it is damaged at offset '
	pinion sum --status STATE
	refused 'checkpoint STATE: it is damaged at offset '
	cmp STATE before
	scrub --salvage few/
	expect 0
	counts 7 0 0 0 0 0 0
	scrub few/
	expect 0
	counts 7 0 0 0 0 0 0
}

@test "a STATE of another run is refused, and one that is in use" {
	scrub few/
	cp STATE before
	pinion sum -a md5 --scrub=STATE few/
	[[ $features == *+openssl* ]] && refused "with algorithm $digest; this run has md5"
	scrub few/ many/
	refused "with root few/ (in $PWD); this run has few/ many/ (in $PWD)"
	pinion sum -r -a "$digest" --checkpoint=log few/
	pinion sum -a "$digest" --scrub=log few/
	refused "with command sum; this run has sum --scrub"
	pinion sum --status log
	refused "log: it is no state of --scrub, but another command's log"
	pinion sum --status few/1
	refused 'checkpoint few/1: it is no checkpoint log'
	pinion sum --status none
	refused 'checkpoint none: cannot be opened: No such file or directory'
	exec {held}<STATE
	flock "$held"
	scrub few/
	refused 'another process writes it: wait for its end'
	pinion sum --status STATE
	expect 0
	exec {held}<&-
	cmp STATE before
}

@test "a STATE that cannot be written stops the run by a line" {
	(
		ulimit -f 1
		scrub many/
		expect 2
	)
	grep -q 'checkpoint STATE: cannot be written: nothing is recorded from offset' err
	# What it has is whole.
	pinion sum --status --json STATE
	expect 0
	known=$(jq .files out)
	scrub --quiet many/
	expect 0
	counts "$known" $((10000 - known)) 0 0 0 0 0
}

@test "--status --json says what is rotten, and what the last run did" {
	scrub few/
	scrub --max-duration=0 few/
	pinion sum --json --status STATE
	expect 0
	jq -S 'del(.run.began, .run.ended, .oldest_check, .newest_check)' out >rest
	diff rest <(jq -S . <<<"{\"algorithm\": \"$digest\", \"files\": 7,
		\"run\": {\"files\": 7, \"due\": 7, \"checked\": 1, \"left\": 6},
		\"rotten\": [], \"unreadable\": []}")
	[ "$(jq '[.run.began <= .run.ended, .oldest_check <= .newest_check,
		.oldest_check > "2020-01-01T00:00:00Z"] | all' out)" = true ]
	rot few/2 few/6
	scrub few/
	pinion sum --json --status STATE
	expect 1
	[ "$(jq -c '.rotten | sort' out)" = '["few/2","few/6"]' ]
}

@test "options that do not go together are refused" {
	pinion sum --max-age=1d few/1
	refused '--max-age and --max-duration go only with --scrub=STATE'
	pinion sum --json few/1
	refused '--json is about --status of a STATE'
	pinion sum --status
	refused '--status without -c: name one STATE of --scrub'
	for option in -c -0 --tag --files-from=few/1 --sort=path --checkpoint=log --checkpoint-interval=0 --resume --status; do
		scrub $option few/
		refused '--scrub goes with none of -c, -0, --tag, --status, --files-from, --sort'
	done
	scrub
	refused 'no paths: name files'
	scrub --max-age=30y few/
	refused "--max-age: '30y' is no time: give a number with s, m, h, d or w, such as 30d"
	scrub --max-duration=5300w few/
	refused '--max-duration: 5300w is more than 100 years'
	[ ! -e STATE ]
}
