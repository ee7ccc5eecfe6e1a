#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# `pinion scan -z`: what archives hold is found in whatever they are packed,
# bombs and broken ones cost a line and a bounded time. Rows EX-51, EX-53.
bats_require_minimum_version 1.5.0
load program

setup() {
	enter_folder
	[[ $features == *+libarchive* ]] || skip "built without libarchive"
	fixtures=$top_srcdir/tests/fixtures/archives
}

scan() {
	pinion scan -z -F -e needle "$@"
}

# The paths of `out`, sorted, with their places: offsets with -b.
found() {
	sed -E 's/: e1: .*//' out | LC_ALL=C sort
}

# write_text LINE FILE: some lines, that number with a needle.
write_text() {
	mkdir -p "$(dirname "$2")"
	seq -f 'line %g' $(($1 - 1)) >"$2"
	echo "  needle-0123456789" >>"$2"
	seq 20 >>"$2"
}

packers() {
	local packer
	for packer in gzip bzip2 xz zstd; do
		! command -v $packer >/dev/null || echo $packer
	done
}

@test "entries are found in each kind of archive, with their own lines and names" {
	write_text 3 tree/a.txt
	write_text 7 "tree/sub/b c.txt"
	tar -cf plain.tar tree
	find tree -type f | LC_ALL=C sort | cpio -o -H newc --quiet >some.cpio 2>/dev/null || rm -f some.cpio
	for packer in $(packers); do
		$packer -c plain.tar >packed.tar.$packer
		$packer -c tree/a.txt >single-$packer
	done
	cp tree/a.txt log.txt && gzip log.txt
	scan plain.tar packed.* single-* log.txt.gz
	expect 1
	{
		for packer in $(packers); do
			printf '%s\n' "packed.tar.$packer!tree/a.txt:3:3" \
				"packed.tar.$packer!tree/sub/b c.txt:7:3" "single-$packer!:3:3"
		done
		printf '%s\n' plain.tar'!tree/a.txt:3:3' plain.tar'!tree/sub/b c.txt:7:3' \
			log.txt.gz'!log.txt:3:3'
	} | LC_ALL=C sort >expected
	found | cmp expected -
	[ ! -f some.cpio ] || {
		scan some.cpio
		[ "$(found | head -1)" = "some.cpio!tree/a.txt:3:3" ]
	}
	# Without -z only the tar shows its bytes.
	pinion scan -F -e needle plain.tar packed.* single-* log.txt.gz
	[ "$(found | grep -vc ^plain.tar:)" = 0 ]
}

@test "names lead nowhere, and are shown with hidden characters escaped" {
	cp "$fixtures/names.zip" .
	scan names.zip
	expect 1
	printf '%s\n' 'names.zip!../../up.txt:2:6' 'names.zip!/etc/abs.txt:2:6' 'names.zip!a/b.txt:2:6' \
		'names.zip!red\x1B[31m\n.txt:2:6' 'names.zip!ünï.txt:2:6' | LC_ALL=C sort >expected
	found | cmp expected -
	[ "$(find . -name '*.txt')" = "" ]
}

@test "findings are the same at every window and worker count" {
	mkdir tree
	for i in $(seq 12); do
		write_text $((i * 997)) tree/f$i
	done
	tar -cf all.tar tree
	gzip -c all.tar >all.tgz
	tar -cf outer.tar all.tgz all.tar
	scan -b outer.tar all.tgz
	found >expected
	[ "$(wc -l <expected)" = 36 ]
	while read -r window workers; do
		scan -b --window=$window --workers=$workers outer.tar all.tgz
		expect 1
		found | cmp expected -
	done < <(each_of "4K 64K" "1 3")
}

@test "nested archives are unpacked to a depth; a deeper one is a line" {
	cp "$fixtures/nested.zip" .
	scan nested.zip
	expect 2
	grep -q "^pinion scan: nested.zip!2.zip!3.zip!4.zip!5.zip: an archive nested too deep" err
	[ ! -s out ]
	scan --archive-limit=depth=6 nested.zip
	expect 1
	[ "$(found)" = "nested.zip!2.zip!3.zip!4.zip!5.zip!6.zip!x.txt:2:6" ]
}

@test "a bomb is a line, and what came before its limit is searched" {
	{
		write_text 2 /dev/stdout
		head -c 40M /dev/zero
	} | gzip -9 >bomb.gz
	gzip -c bomb.gz >twice.gz
	for limit in ratio=500 size=20M time=0.001; do
		scan --archive-limit=$limit bomb.gz
		expect 2
		[ "$(grep -c "^pinion scan: bomb.gz: given up.*--archive-limit=${limit%%=*}=" err)" = 1 ]
		[ "$limit" = time=0.001 ] || [ "$(found)" = "bomb.gz!bomb:2:3" ]
	done
	scan twice.gz
	expect 2
	grep -q "^pinion scan: twice.gz: given up.*ratio" err
	scan --archive-limit=entry=1M bomb.gz
	expect 2
	[ "$(found)" = "bomb.gz!bomb:2:3" ]
	grep -q "a long entry" err
	# Zeros alone look like the end of a tar.
	head -c 40M /dev/zero | gzip -9 >zeros.gz
	scan --archive-limit=ratio=500 zeros.gz
	expect 2
	grep -q "^pinion scan: zeros.gz: given up" err
}

@test "a broken archive fails, and is searched as far as it can be read" {
	mkdir tree
	write_text 2 tree/1
	for i in $(seq 2 9); do
		head -c 60000 /dev/urandom >tree/$i
	done
	tar -cf all.tar tree/[1-9]
	gzip -c all.tar >all.tgz
	size=$(stat -c %s all.tgz)
	for part in 1 10 100 1000 $((size / 2)) $((size - 9)) $((size - 1)); do
		head -c $part all.tgz >cut.tgz
		head -c $part all.tar >cut.tar
		scan cut.tgz
		if [ $part -lt 3 ]; then
			expect 0
		else
			expect 2
			[ "$(grep -c "^pinion scan: cut.tgz.*: broken archive: " err)" = 1 ]
		fi
		[ $part -lt $((size / 2)) ] || [ "$(found)" = "cut.tgz!tree/1:2:3" ]
		scan cut.tar
		[ $part -lt 1000 ] || [ "$(found)" = "cut.tar!tree/1:2:3" ]
	done
	{
		printf 'PK\3\4'
		cat tree/1
	} >fake.zip
	scan fake.zip
	expect 2
	[ "$(found)" = "fake.zip:2:3" ]
	echo 070701 needle >text
	scan text
	expect 1
	[ ! -s err ]
}

@test "an encrypted entry is a line and is counted; the others are searched" {
	cp "$fixtures/encrypted.zip" .
	scan --stats=json encrypted.zip
	expect 2
	[ "$(found)" = "encrypted.zip!open.txt:2:6" ]
	grep -qx "pinion scan: encrypted.zip!secret.txt: encrypted, and not searched" err
	grep -q '"opened":1,"entries":2,"scanned":1,"links":0,"encrypted":1,"limited":0,"binary":0,"failed":0,' err
}

@test "files and entries are counted apart, each once" {
	write_text 2 tree/a
	ln -s a tree/link
	tar -cf good.tar tree
	cp "$fixtures/encrypted.zip" .
	gzip -c good.tar | head -c 60 >cut.tgz
	scan --stats=json good.tar encrypted.zip cut.tgz tree/a none
	expect 2
	grep -q '"seen":5,"scanned":3,.*"failed":{"ENOENT":1,"EILSEQ":1},.*"entries":4,"scanned":2,"links":1,"encrypted":1,' err ||
		{ cat err && false; }
	grep -q "5 files: 3 done, 2 failed, 0 skipped, 0 cancelled" err
}

@test "many archives wait for each other" {
	mkdir tree
	write_text 5 file
	for i in $(seq 150); do
		gzip -c file >tree/$i.gz
	done
	scan --workers=2 tree
	expect 1
	[ "$(wc -l <out)" = 150 ]
	scan -l tree
	[ "$(LC_ALL=C sort out | head -1)" = "tree/1.gz!1" ]
}

@test "sorted output has archives and decoded text in their places" {
	mkdir tree
	for i in 1 2 3 4; do
		write_text $((i + 1)) tree/$i.txt
		tar -cf tree/$i.tar tree/$i.txt
		gzip -c tree/$i.txt >tree/$i.gz
		echo "$(base64 tree/$i.txt -w0) needle" >tree/$i.b64
	done
	for workers in 1 3; do
		scan --decode --sort=path --workers=$workers tree
		expect 1
		[ "$(wc -l <out)" = 20 ]
		sed 's/[!:].*//' out | uniq >order
		LC_ALL=C sort order | cmp - order
		scan --decode --checkpoint=log.$workers tree
		sort out >first
		scan --decode --checkpoint=log.$workers --resume tree
		sort out | cmp first -
	done
}

@test "rates do not hold for archives, which a line says" {
	local line="pinion scan: -z reads archives as fast as it can unpack them: rates and targets hold for other files only"
	printf needle | gzip >file.gz
	echo bwlimit=1G >limits
	for option in --bwlimit=1G --iops-limit=1000 --latency-target=1s --limits-file=limits; do
		scan "$option" file.gz
		expect 1
		[ "$(<err)" = "$line" ]
	done
	PINION_BYTES_PER_SECOND=1G scan file.gz
	[ "$(<err)" = "$line" ]
	PINION_BYTES_PER_SECOND=1G scan --bwlimit=0 file.gz
	[ ! -s err ]
	scan --nice=19 file.gz
	[ ! -s err ]
	pinion scan -F -e needle --bwlimit=1G file.gz
	[ ! -s err ]
}

@test "a signal ends the unpacking" {
	head -c 4M /dev/zero | gzip -9 >zeros.gz
	for _ in $(seq 1500); do
		cat zeros.gz
	done >endless.gz
	cp endless.gz again.gz
	"$PINION" scan -z -F -e needle --archive-limit=ratio=1000000 --archive-limit=size=1T \
		--archive-limit=entry=1T --archive-limit=time=900 endless.gz again.gz >out 2>err 3>&- &
	wait_until_watching $!
	kill -TERM $!
	status=0
	wait $! || status=$?
	expect 3
	grep -q "stopped early by a signal" err
}

@test "limits of archives that are none are refused" {
	for option in depth=0 depth=17 size=x speed=1 time; do
		pinion scan -z --archive-limit=$option .
		complains "--archive-limit: "
	done
}

@test "UTF-16 and base64 are decoded, at every window and worker count, in archives too" {
	mkdir tree
	write_text 1500 tree/lines
	iconv -f UTF-8 -t UTF-16 tree/lines >tree/mark
	iconv -f UTF-8 -t UTF-16BE tree/lines >tree/big
	for i in $(seq 300); do
		head -c $((i * 7 % 50)) /dev/zero | tr '\0' x
		printf ' %s\n' "$(echo "some text, $i: needle" | base64)"
	done >tree/encoded
	echo "data: $(seq 9000 | sed '$s/$/ needle/' | base64 -w0)" >tree/long
	tar -cf decoded.tar tree
	pinion scan --decode -z -F -b -e needle tree decoded.tar
	expect 1
	found >expected
	offset=$(grep -bo needle tree/lines | cut -d: -f1)
	grep -qx "tree/mark:$((2 * offset + 2))-$((2 * offset + 14))" expected
	grep -qx "tree/big:$((2 * offset))-$((2 * offset + 12))" expected
	grep -qx "tree/long:6-$(($(stat -c %s tree/long) - 1))" expected ||
		grep -q "^tree/long:6-" expected
	[ "$(grep -c '^tree/encoded:' expected)" = 300 ]
	[ "$(grep -c '^tree/' expected)" = "$(grep -c '^decoded.tar!tree/' expected)" ]
	while read -r window workers; do
		pinion scan --decode -z -F -b -e needle --window=$window --workers=$workers tree decoded.tar
		expect 1
		found | cmp expected -
	done < <(each_of "4K 64K" "1 3")
	pinion scan --decode -F -e needle tree/mark
	[ "$(found)" = "tree/mark:1500:3" ]
	pinion scan --decode=base64 --format=json -F -e needle tree/mark tree/encoded
	[ "$(grep -c '"decoded":"base64"' out)" = 300 ] && ! grep -q tree/mark out
	pinion scan --decode -c -F -e needle tree/encoded
	[ "$(cat out)" = "tree/encoded:300" ]
	pinion scan --decode=rot13 -F -e needle tree
	complains "--decode: "
}

@test "binary files are searched, or left out and counted" {
	write_text 2 text
	printf 'a\0 needle' >binary
	{
		head -c 4096 /dev/zero | tr '\0' a
		printf '\0 needle'
	} >late
	gzip -c binary >binary.gz
	iconv -f UTF-8 -t UTF-16 text >utf16
	pinion scan -F -e needle text binary late
	[ "$(wc -l <out)" = 3 ]
	for window in 4K 64K; do
		pinion scan -z --decode --binary=skip --stats=json --window=$window -F -e needle text binary late \
			binary.gz utf16
		expect 1
		[ "$(found | cut -d: -f1 | tr '\n' ' ')" = "late text utf16 " ]
		grep -q '"seen":5,"scanned":4,.*"binary":1,"gone":0,"special":.*"entries":1,"scanned":0,.*"binary":1,' err
	done
	pinion scan --binary=skip --stats -F -e needle binary
	expect 0
	grep -q "1 file: 0 done, 0 failed, 1 skipped" err
}
