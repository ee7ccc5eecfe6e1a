#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# `pinion sum` against sha256sum and xxhsum, byte for byte, and every way in
# which its input and output can be bad.
bats_require_minimum_version 1.5.0
load program

needs() {
	case $1 in
	sha256) [[ $features == *+openssl* ]] || skip "built without openssl" ;;
	xxh3)
		[[ $features == *+xxhash* ]] || skip "built without xxhash"
		command -v xxhsum >/dev/null || skip "xxhsum is not installed"
		;;
	blake3) [[ $features == *+blake3* ]] || skip "built without blake3" ;;
	user) [ "$(id -u)" != 0 ] || skip "root may read everything" ;;
	esac
}

# An algorithm that is there, for tests that are not about one.
any() {
	if [[ $features == *+xxhash* ]]; then echo xxh3-128; else echo sha256; fi
}

# Names that survive everywhere, then those that lists must escape.
make_names() {
	mkdir names
	local name
	for name in plain ' leading and trailing ' $'tab\t' $'esc\e[31m' $'bad\xff\xfe' '-dash' \
		'*star' 'a "quoted" one' "(paren) = x" 'größe' '#hash' "$(printf 'n%.0s' {1..255})"; do
		printf '%s' "of $name" >"names/$name"
	done
	[ "${1-}" = easy ] && return
	for name in $'new\nline' 'back\slash' 'trailing\' $'carriage\rreturn' $'\n' 'new\nline'; do
		printf '%s' "of $name" >"names/$name"
	done
}

make_sizes() {
	mkdir sizes
	local size
	for size in 0 1 511 512 513 4095 4096 4097 65535 65536 131073 1048575 1048577 3145729; do
		head -c $size /dev/urandom >sizes/$size
	done
}

sum() {
	pinion sum "$@"
}

# The counts of the line that --stats prints; they must add up.
counts() {
	local line
	line=$(grep -oE '[0-9]+ files?: [0-9]+ done, [0-9]+ failed, [0-9]+ skipped, [0-9]+ cancelled' err)
	read -r seen _ done _ failed _ skipped _ cancelled _ <<<"${line//,/}"
	[ "$seen" = $((done + failed + skipped + cancelled)) ]
}

@test "sha256 lines are those of sha256sum, for every name" {
	needs sha256
	make_names
	sha256sum -- names/* >expected
	sum -a sha256 -- names/*
	expect 0
	cmp out expected
	[ ! -s err ]
	sha256sum --tag -- names/* >expected
	sum -a sha256 --tag -- names/*
	cmp out expected
	sha256sum -z -- names/* >expected
	sum -a sha256 -0 -- names/*
	cmp out expected
}

@test "a name with a leading dash is an operand after --" {
	needs sha256
	printf x >-r
	sha256sum -- -r >expected
	sum -a sha256 -- -r
	expect 0
	cmp out expected
}

@test "xxh3 lines are those of xxhsum" {
	needs xxh3
	make_names easy
	xxhsum -H3 -- names/* 2>/dev/null >expected
	sum -a xxh3-64 -- names/*
	expect 0
	cmp out expected
	sum -- names/*
	cmp out expected
	xxhsum -H2 -- names/* 2>/dev/null >expected
	sum -a xxh3-128 -- names/*
	expect 0
	cmp out expected
	xxhsum -H2 --tag -- names/* 2>/dev/null >expected
	sum -a xxh3-128 --tag -- names/*
	cmp out expected
}

@test "files of every awkward size, whatever reads them" {
	needs sha256
	make_sizes
	sha256sum sizes/* >expected
	for how in --direct=auto --direct=always --direct=never --io=fallback --window=4096 \
		--window=2M --workers=1 --workers=7; do
		sum -a sha256 "$how" sizes/*
		expect 0
		cmp out expected || {
			echo "with $how"
			return 1
		}
	done
}

@test "xxh3 of every awkward size" {
	needs xxh3
	make_sizes
	xxhsum -H3 sizes/* 2>/dev/null >expected
	sum sizes/*
	cmp out expected
	xxhsum -H2 sizes/* 2>/dev/null >expected
	sum -a xxh3-128 sizes/*
	cmp out expected
}

@test "a sparse file is its zeros" {
	needs sha256
	truncate -s 5000001 sparse
	printf x | dd of=sparse bs=1 seek=2000000 conv=notrunc status=none
	sha256sum sparse >expected
	sum -a sha256 sparse
	cmp out expected
}

@test "-r finds what find finds" {
	needs sha256
	make_names
	make_sizes
	mkdir -p tree/a/b/c
	mv names sizes tree/a/b
	ln -s a tree/link
	ln -s nowhere tree/dangling
	find tree -type f -print0 | xargs -0 sha256sum -z -- | sort -z >expected
	sum -a sha256 -r -0 --stats tree
	expect 0
	sort -z out | cmp - expected
	counts
	[ "$done" = "$(tr -cd '\0' <expected | wc -c)" ]
	[ "$skipped" = 2 ]
	[ "$(wc -l <err)" = 2 ]
}

@test "lines come in the order of the paths" {
	needs sha256
	mkdir many
	# A large one first, so that the others overtake it.
	head -c 8M /dev/urandom >many/first
	seq 400 | awk '{ printf "%s", $1 >("many/" $1); close("many/" $1) }'
	{
		echo many/first
		seq 400 -1 1 | sed 's,^,many/,'
	} >list
	xargs sha256sum <list >expected
	sum -a sha256 --workers=8 --files-from=list
	expect 0
	cmp out expected
	xargs "$PINION" sum -a sha256 --workers=3 <list | cmp - expected
}

@test "standard input, alone and between files" {
	needs sha256
	printf one >one
	printf two >two
	sha256sum one - two <one >expected
	sum -a sha256 one - two <one
	expect 0
	cmp out expected
	printf x | sha256sum >expected
	printf x | "$PINION" sum -a sha256 - | cmp - expected
}

@test "xxhsum's name for standard input" {
	needs xxh3
	printf x | xxhsum -H3 - 2>/dev/null >expected
	printf x | "$PINION" sum - | cmp - expected
	printf x | "$PINION" sum - >list
	printf x | "$PINION" sum -c list
	printf y | run -1 "$PINION" sum -c list
}

@test "--files-from: newline and NUL, empty entries, no end of line" {
	needs sha256
	make_names
	printf 'names/plain\n\n\nnames/-dash' >list
	sha256sum names/plain names/-dash >expected
	sum -a sha256 --files-from=list
	expect 0
	cmp out expected
	sum -a sha256 --files-from list names/plain
	[ "$(wc -l <out)" = 3 ]
	find names -type f -print0 >list
	xargs -0 sha256sum -z -- <list >expected
	sum -a sha256 -0 --files-from=- <list
	expect 0
	cmp out expected
	printf '' >list
	sum --files-from=list -a "$(any)"
	expect 0
	[ ! -s out ]
}

@test "--files-from: several lists, one after the other" {
	needs sha256
	make_names
	echo names/plain >one
	echo names/-dash >two
	sha256sum names/plain names/-dash names/plain >expected
	sum -a sha256 --files-from=one --files-from=- --files-from=one <two
	expect 0
	cmp out expected
	# An unreadable list leaves the others to be hashed.
	sum -a sha256 --files-from=nowhere --files-from=one
	expect 2
	[ "$(cat out)" = "$(head -1 expected)" ]
	sum --files-from=- --files-from=one --files-from=- <two
	expect 2
	[ "$(cat err)" = "pinion sum: --files-from=-: standard input can be one list only" ]
}

@test "--files-from: a list that cannot be read" {
	sum -a "$(any)" --files-from=nowhere
	expect 2
	grep -qx 'pinion sum: nowhere: no such file or directory' err
	sum -a "$(any)" --files-from=.
	expect 2
	grep -q ' \.: is a directory' err
	printf 'a\0b\n' >list
	sum -a "$(any)" --files-from=list
	expect 2
	grep -q 'NUL' err
	head -c 5M /dev/zero | tr '\0' x >list
	printf '\nlist\n' >>list
	sum -a "$(any)" --files-from=list
	expect 2
	[ "$(wc -l <out)" = 1 ]
	grep -q 'name too long' err
}

@test "-c verifies lists of sha256sum and its own" {
	needs sha256
	make_names
	sha256sum -- names/* >list
	sha256sum -c list >expected
	sum -c list
	expect 0
	cmp out expected
	[ ! -s err ]
	sum -a sha256 -c list
	cmp out expected
	sha256sum --tag -- names/* >list
	sum -c list
	expect 0
	cmp out expected
	sed 's/$/\r/' list >crlf
	sum -c - <crlf
	expect 0
	cmp out expected
	sum -c --quiet list
	expect 0
	[ ! -s out ]
	"$PINION" sum -a sha256 -- names/* | sha256sum -c --strict | cmp - expected
	"$PINION" sum -a sha256 --tag -- names/* | sha256sum -c --strict | cmp - expected
}

@test "-c verifies lists of xxhsum and its own" {
	needs xxh3
	make_names easy
	for algorithm in 2:xxh3-128 3:xxh3-64; do
		xxhsum -H${algorithm%:*} -- names/* 2>/dev/null >list
		xxhsum -c list >expected 2>/dev/null
		sum -c list
		expect 0
		cmp out expected
		"$PINION" sum -a ${algorithm#*:} -- names/* >list
		xxhsum -c --strict list 2>/dev/null | cmp - expected
	done
	make=$(printf of\ plain | "$PINION" sum - | sed 's/.* = //')
	echo "$make  names/plain" >list
	sum -a xxh3-64 -c list
	expect 0
	echo "XXH3_$make  names/plain" >list
	sum -c list
	expect 0
}

@test "-c verifies its own xxh3 lists of hard names" {
	needs xxh3
	make_names
	for algorithm in xxh3-64 xxh3-128; do
		"$PINION" sum -a $algorithm -- names/* >list
		sum -c --quiet list
		expect 0
		[ ! -s out ]
		[ ! -s err ]
	done
}

@test "md5 and sha1 lines are those of md5sum and sha1sum" {
	needs sha256
	make_names
	for algorithm in md5 sha1; do
		${algorithm}sum -- names/* >expected
		sum -a $algorithm -- names/*
		expect 0
		cmp out expected
		${algorithm}sum --tag -- names/* >tagged
		sum -a $algorithm --tag -- names/*
		cmp out tagged
		${algorithm}sum -c expected >verdicts
		for list in expected tagged; do
			sum -a $algorithm -c $list
			expect 0
			cmp out verdicts
		done
		# A tag says which it is, and so do 40 digits.
		sum -c --quiet tagged
		expect 0
	done
	sum -c --quiet expected
	expect 0
	printf x | md5sum >expected
	printf x | "$PINION" sum -a md5 - | cmp - expected
}

# The published digests of files of bytes that count from 0 to 250.
@test "blake3 of files around chunks and windows" {
	needs blake3
	perl -e 'print pack("C*", map { $_ % 251 } 0 .. 102399)' >pattern || skip "no perl"
	for row in \
		0:af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262 \
		1:2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213 \
		1023:10108970eeda3eb932baac1428c7a2163b0e924c9a9e25b35bba72b28f70bd11 \
		1024:42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7 \
		1025:d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444 \
		2048:e776b6028c7cd22a4d0ba182a8bf62205d2ef576467e838ed6f2529b85fba24a \
		2049:5f4d72f40d7a5f82b15ca2b2e44b1de3c2ef86c426c95c1af0b6879522563030 \
		4096:015094013f57a5277b59d8475c0501042c0b642e531b0a1c8f58d2163229e969 \
		4097:9b4052b38f1c5fc8b1f9ff7ac7b27cd242487b3d890d15c96a1c25b8aa0fb995 \
		8192:aae792484c8efe4f19e2ca7d371d8c467ffb10748d8a5a1ae579948f718a2a63 \
		8193:bab6c09cb8ce8cf459261398d2e7aef35700bf488116ceb94a36d0f5f1b7bc3b \
		31744:62b6960e1a44bcc1eb1a611a8d6235b6b4b78f32e7abc4fb4c6cdcce94895c47 \
		102400:bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085; do
		head -c "${row%%:*}" pattern >"${row%%:*}"
		echo "${row#*:}  ${row%%:*}"
	done >expected
	mapfile -t files < <(sed 's/.*  //' expected)
	for how in --direct=auto --direct=always --io=fallback --window=4096 --window=12288 \
		--workers=7; do
		sum -a blake3 "$how" "${files[@]}"
		expect 0
		cmp out expected || {
			echo "with $how"
			return 1
		}
	done
	sum -a blake3 -c --quiet expected
	expect 0
	sum -a blake3 --tag "${files[@]}"
	mv out tagged
	# In order, as the other lines of such a list want it.
	sum -c --quiet tagged
	expect 0
	[ ! -s err ]
}

@test "blake3 in parts is blake3 in order" {
	needs blake3
	make_sizes
	head -c 20000001 /dev/urandom >sizes/large
	truncate -s 9000001 sizes/sparse
	printf x | dd of=sizes/sparse bs=1 seek=5000000 conv=notrunc status=none
	for file in sizes/*; do
		printf '%s  %s\n' "$("$PINION" sum -a blake3 - <"$file" | cut -c1-64)" "$file"
	done >expected
	for how in --direct=always --direct=never --io=fallback --window=4096 --window=20480 \
		--window=2M --workers=1 --workers=5; do
		sum -a blake3 "$how" sizes/*
		expect 0
		cmp out expected || {
			echo "with $how"
			return 1
		}
	done
	! command -v b3sum >/dev/null || b3sum sizes/* | cmp - expected
}

@test "--ignore-missing, as sha256sum has it" {
	needs sha256
	printf a >a
	printf b >b
	sha256sum a b >list
	rm b
	sum -c --ignore-missing list
	expect 0
	sha256sum -c --ignore-missing list | cmp - out
	[ ! -s err ]
	# A file that is there and cannot be read is an error all the same.
	mkdir b
	sum -c --ignore-missing list
	expect 2
	grep -qx 'b: FAILED open or read' out
	rmdir b
	printf x >a
	sum -c --ignore-missing list
	expect 1
	rm a
	sum -c --ignore-missing list
	expect 2
	! sha256sum -c --ignore-missing list >expected 2>&1
	sed 's/^sha256sum: //' expected >theirs
	sed 's/^pinion sum: //' err | cmp - theirs
	sum -c --ignore-missing --status list
	expect 2
	[ ! -s err ]
}

@test "-c: the number of a malformed line, and --strict" {
	needs sha256
	printf a >a
	{
		sha256sum a
		echo '# comment'
		echo nonsense
		sha256sum a
		echo more
	} >list
	sum -c list
	expect 0
	{
		echo 'pinion sum: list: 3: improperly formatted checksum line'
		echo 'pinion sum: WARNING: 2 lines are improperly formatted'
	} | cmp - err
	sum -c -w - <list
	expect 0
	sed 's/^pinion sum: //' err >ours
	sha256sum -c -w - <list 2>&1 >/dev/null |
		sed 's/^sha256sum: //; s/SHA256 //; s/^.standard input./standard input/; s/^-:/standard input:/' |
		cmp - ours
	sum -c --strict list
	expect 2
	! sha256sum -c --strict list >/dev/null 2>&1
	sum -c --strict --status list
	expect 2
	[ ! -s err ]
	sed -i '/nonsense/d; /more/d' list
	sum -c --strict list
	expect 0
}

@test "--audit: files that no list names" {
	needs sha256
	mkdir -p tree/sub
	printf a >tree/a
	printf b >tree/sub/b
	sha256sum tree/a ./tree//sub/./b >tree/list
	sum -c --audit=tree tree/list
	expect 0
	[ ! -s err ]
	printf new >tree/sub/new
	printf new >$'tree/new\nline'
	ln -s a tree/link
	sum -c --quiet --audit=./tree/ --audit="$PWD/tree/sub" tree/list
	expect 1
	{
		echo './tree/sub/new: NEW'
		echo '\./tree/new\nline: NEW'
		echo "$PWD/tree/sub/new: NEW"
	} | sort >expected
	sort out | cmp - expected
	grep -qx 'pinion sum: WARNING: 3 files are in no list' err
	sum -c --status --audit=tree tree/list
	expect 1
	[ ! -s out ]
	[ ! -s err ]
	# Hidden files, too, unless an ignore file says otherwise.
	sha256sum tree/sub/new $'tree/new\nline' >>tree/list
	echo new >tree/.new
	echo .new >tree/.gitignore
	sum -c --quiet --audit=tree tree/list
	expect 1
	[ "$(wc -l <out)" = 2 ]
	sum -c --quiet --audit=tree --gitignore tree/list
	expect 1
	[ "$(cat out)" = "tree/.gitignore: NEW" ]
	# A root that cannot be searched, and a list that cannot be read.
	sum -c --quiet --audit=nowhere tree/list
	expect 2
	grep -qx 'pinion sum: nowhere: no such file or directory' err
	sum -c --quiet --audit=tree tree/list missing
	expect 2
	[ ! -s out ]
	grep -qx 'pinion sum: --audit is left out, since not all lists could be read' err
	# So it is for a list that opens, and whose lines cannot be read.
	mkdir folder
	sum -c --quiet --audit=tree folder tree/list
	expect 2
	[ ! -s out ]
	grep -qx 'pinion sum: --audit is left out, since not all lists could be read' err
}

@test "each list has counts of its own" {
	needs sha256
	printf a >a
	sha256sum a >good
	sed 's/a$/lost/' good >gone
	sum -c --quiet gone good
	expect 2
	[ "$(grep -c 'could not be read' err)" = 1 ]
	sum -c --ignore-missing good gone
	expect 2
	grep -qx 'pinion sum: gone: no file was verified' err
	sum -c --ignore-missing gone good
	expect 2
	[ "$(grep -c 'no file was verified' err)" = 1 ]
}

@test "-c says what sha256sum -c says about mismatches and bad lines" {
	needs sha256
	make_names
	sha256sum -- names/* >list
	printf changed >names/plain
	printf changed >$'names/new\nline'
	rm names/-dash
	# Blank lines and comments do not count; the others are bad.
	printf 'no checksum\n\n# comment\nabcdef  names/plain\n' >>list
	sha256sum -c list >expected 2>expected-err || true
	sum -c list
	expect 2
	cmp out expected
	sed 's/^sha256sum: //' expected-err | grep WARNING >expected-warnings
	sed 's/^pinion sum: //' err | grep WARNING | cmp - expected-warnings
	grep -qx 'pinion sum: names/-dash: no such file or directory' err
}

@test "-c: the exit status" {
	needs sha256
	printf a >a
	sha256sum a >good
	sed 's/^./X/; s/^X\(.\)/\1\1/' good >bad
	sed 's/ a$/ nothing/' good >missing
	sum -c good
	expect 0
	sum -c bad
	expect 1
	sum -c --status bad
	expect 1
	[ ! -s out ]
	[ ! -s err ]
	sum -c missing
	expect 2
	cat bad missing >both
	sum -c both
	expect 2
	sum -c good nowhere
	expect 2
	[ "$(cat out)" = "a: OK" ]
	sum -c a
	expect 2
	grep -qx 'pinion sum: a: no properly formatted checksum lines found' err
	sum -c .
	expect 2
	{
		echo nonsense
		cat good
	} >some
	sum -c some
	expect 0
	grep -qx 'pinion sum: WARNING: 1 line is improperly formatted' err
}

@test "a list of another algorithm with as many digits is suspected" {
	needs xxh3
	local digits=0123456789abcdef
	printf a >a
	printf '%s  a\n' "$digits$digits" >as_md5
	sum -c as_md5
	expect 1
	grep -qx 'pinion sum: as_md5: no file matches as xxh3-128; a list of md5sum is checked with -a md5' err
	sum -a xxh3-128 -c as_md5
	expect 1
	! grep -q 'matches as' err
	sum -a xxh3-128 a >mixed
	cat as_md5 >>mixed
	sum -c mixed
	expect 1
	! grep -q 'matches as' err
	needs sha256
	printf '%s  a\n' "$digits$digits$digits$digits" >as_b3
	sum -c as_b3
	expect 1
	grep -qx 'pinion sum: as_b3: no file matches as sha256; a list of b3sum is checked with -a blake3' err
}

@test "a missing path: a line, the rest is done, status 2" {
	printf a >a
	sum -a "$(any)" missing a $'mis\nsing\e\xff'
	expect 2
	[ "$(wc -l <out)" = 1 ]
	grep -qxF 'pinion sum: missing: no such file or directory' err
	grep -qxF 'pinion sum: mis\nsing\x1B\xFF: no such file or directory' err
	counts
	[ "$seen $done $failed" = "3 1 2" ]
}

@test "a directory without -r" {
	mkdir dir
	printf a >a
	sum -a "$(any)" dir a
	expect 2
	grep -qxF 'pinion sum: dir: is a directory (use -r)' err
	[ "$(wc -l <out)" = 1 ]
	# -c takes no -r.
	sed 's/(a)/(dir)/; s/  a$/  dir/' out >list
	sum -a "$(any)" -c list
	expect 2
	grep -qxF 'pinion sum: dir: is a directory' err
	grep -qx 'dir: FAILED open or read' out
	sum -a "$(any)" -c dir
	expect 2
	[ "$(cat err)" = 'pinion sum: dir: is a directory, not a list' ]
}

@test "unreadable files and directories" {
	needs user
	mkdir -p tree/closed tree/open
	printf a >tree/open/a
	printf b >tree/open/b
	printf c >tree/closed/c
	chmod 0 tree/open/b tree/closed
	sum -a "$(any)" -r tree
	chmod -R u+rwx tree
	expect 2
	[ "$(wc -l <out)" = 1 ]
	grep -qx 'pinion sum: tree/open/b: permission denied' err
	grep -qx 'pinion sum: tree/closed: permission denied' err
}

@test "FIFO, socket, device: never opened, a line each, status 2" {
	mkdir tree
	mkfifo tree/fifo
	perl -MSocket -e 'socket(my $s, AF_UNIX, SOCK_STREAM, 0) or die;
		bind($s, pack_sockaddr_un("tree/socket")) or die' || skip "no perl"
	printf a >tree/a
	sum -a "$(any)" -r tree /dev/null --stats
	expect 2
	[ "$(wc -l <out)" = 1 ]
	grep -qxF 'pinion sum: tree/fifo: not a regular file (FIFO)' err
	grep -qxF 'pinion sum: tree/socket: not a regular file (socket)' err
	grep -qxF 'pinion sum: /dev/null: not a regular file (character device)' err
	counts
	[ "$seen $done" = "4 1" ]
}

@test "symbolic links: loops end, operands are followed" {
	mkdir -p tree/sub
	printf a >tree/sub/a
	ln -s .. tree/sub/parent
	ln -s tree/sub/a link
	ln -s tree treelink
	ln -s loop2 loop1
	ln -s loop1 loop2
	sum -a "$(any)" link
	expect 0
	sum -a "$(any)" -r tree
	expect 0
	[ "$(wc -l <out)" = 1 ]
	sum -a "$(any)" -r treelink
	expect 0
	[ "$(wc -l <out)" = 1 ]
	sum -a "$(any)" loop1 link
	expect 2
	grep -qxF 'pinion sum: loop1: symbolic link loop' err
	[ "$(wc -l <out)" = 1 ]
	# Magic links of procfs are links below a root, and no loops.
	sum -a "$(any)" -r /proc/self/ns --stats
	expect 0
	counts
	[ "$failed" = 0 ]
	[ "$skipped" = "$seen" ]
	[ "$(wc -l <err)" = 2 ]
	[ ! -s out ]
}

@test "a path far longer than PATH_MAX" {
	perl -e 'for (1 .. 300) { mkdir "d" x 200 or die; chdir "d" x 200 or die }
		open(my $f, ">", "leaf") or die; print $f "leaf"' || skip "cannot make one here"
	sum -a "$(any)" -r "$(printf 'd%.0s' {1..200})" --stats
	expect 0
	counts
	[ "$seen $done" = "1 1" ]
	[ "$(wc -c <out)" -gt 60000 ]
}

@test "a full disk and a closed pipe: one line, status 2, no spin" {
	[ -w /dev/full ] || skip "no /dev/full"
	mkdir many
	seq -f many/file-with-a-longer-name-%g 3000 | xargs touch
	status=0
	"$PINION" sum -a "$(any)" -r many >/dev/full 2>err || status=$?
	expect 2
	grep -qxF 'pinion sum: standard output: no space left on the device' err
	[ "$(wc -l <err)" = 1 ]
	{
		status=0
		"$PINION" sum -a "$(any)" -r many 2>err || status=$?
		echo $status >status
	} | :
	[ "$(cat status)" = 2 ]
	[ "$(wc -l <err)" = 1 ]
	grep -q 'closed pipe' err
	status=0
	"$PINION" sum -a "$(any)" -r many >&- 2>err || status=$?
	expect 2
}

@test "a signal: finished files are printed, status 3" {
	printf a >a
	stop_while_fed a sum -a "$(any)"
	expect 3
	grep -q 'stopped early' err
}

@test "a signal while standard input is awaited" {
	mkfifo in
	exec 7<>in
	"$PINION" sum -a "$(any)" - <in >out 2>err 3>&- &
	pid=$!
	wait_until_watching $pid
	kill -TERM $pid
	status=0
	wait $pid || status=$?
	exec 7>&-
	expect 3
}

# Waits until the program has the file open; false: it has ended.
wait_for_open() {
	while [ -n "$(cat "/proc/$1/cmdline" 2>/dev/null)" ]; do
		! has_open "$1" "$2" || return 0
		sleep 0.002
	done
	return 1
}

@test "a signal inside an endless hole" {
	truncate -s 4T sparse 2>/dev/null || skip "no file of 4 TiB here"
	"$PINION" sum -a "$(any)" --stats sparse >out 2>err 3>&- &
	pid=$!
	wait_until_watching $pid
	wait_for_open $pid sparse
	kill -TERM $pid
	status=0
	wait $pid || status=$?
	expect 3
	counts
	[ "$seen $cancelled" = "1 1" ]
	[ ! -s out ]
}

@test "a file that shrinks or grows while it is read" {
	for change in 'truncate -s 1 file' 'echo more >>file'; do
		truncate -s 8G file 2>/dev/null || skip "no file of 8 GiB here"
		halt_inside file "$PINION" sum -a "$(any)" file
		eval "$change"
		kill -CONT $pid
		status=0
		wait $pid || status=$?
		expect 2
		[ ! -s out ]
		grep -qx 'pinion sum: file: changed while it was read' err
		rm file
	done
}

@test "usage errors: a line, status 2" {
	for arguments in "" "--bogus a" "-a md4 a" "--strict a" "--ignore-missing a" \
		"-w a" "--audit=. a" "--window=5000 a" "--window=1X a" "--workers=0 a" \
		"--workers=many a" "--io=fast a" "--direct=maybe a" "--quiet a" "-c --tag a" "-c -r a" \
		"-c" "--files-from" "--files-from=- -" "-a" "--tag=1 a"; do
		# shellcheck disable=SC2086
		sum $arguments
		expect 2 || {
			echo "for: $arguments"
			return 1
		}
		[ "$(wc -l <err)" = 1 ]
		[ ! -s out ]
	done
	sum --files-form=x
	grep -qF '(did you mean --files-from?)' err
}

@test "help and version" {
	run -0 "$PINION" sum -h
	[ "${#lines[@]}" -le 64 ]
	run -0 "$PINION" sum --help
	[[ $output == *"Exit status"* ]]
	[ "$output" = "$("$PINION" help sum)" ]
	run -0 "$PINION" --version
	[[ ${lines[0]} == "pinion "[0-9]* ]]
	[[ ${lines[1]} == "features: "* ]]
	[[ ${lines[2]} == "io_uring: "* ]]
	[ "${#lines[@]}" = 3 ]
	[ "$output" = "$("$PINION" -V)" ]
	run -2 "$PINION" summ
	[[ $output == *"did you mean 'sum'?"* ]]
	run -2 "$PINION"
}

@test "--gitignore: no line for hidden files, and only with -r (EX-53)" {
	mkdir -p tree/.git tree/build
	printf 'build\n' >tree/.gitignore
	printf a >tree/a
	printf b >tree/build/b
	pinion sum -r --gitignore --stats tree
	expect 0
	[ "$(wc -l <out)" = 2 ]
	! grep -q build out
	grep -q '4 files: 2 done, 0 failed, 0 skipped, 0 cancelled, 2 ignored$' err
	pinion sum --gitignore tree/a
	expect 2
	pinion sum -c --gitignore tree/a
	expect 2
}
