#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# `pinion scan` against grep, against a corpus whose secrets are known, and
# every way in which its rules, input and output can be bad.
bats_require_minimum_version 1.5.0
load program

setup_file() {
	export corpus_folder=$BATS_FILE_TMPDIR/corpus
	corpus=${PINION_CORPUS:-${top_builddir:-$PWD}/tools/dev/corpus}
	# A scan of all of it takes a sanitized program seconds.
	local size=6M
	[[ $(ldd "${PINION:-${top_builddir:-$PWD}/pinion}" 2>/dev/null) != *san.so* ]] || size=2M
	"$corpus" --size $size "$corpus_folder" >"$BATS_FILE_TMPDIR/planted"
	LC_ALL=C sort "$BATS_FILE_TMPDIR/planted" >"$BATS_FILE_TMPDIR/planted.sorted"
}

needs() {
	case $1 in
	regex) [[ $features == *+hyperscan* ]] || skip "built without hyperscan" ;;
	jq) command -v jq >/dev/null || skip "jq is not installed" ;;
	user) [ "$(id -u)" != 0 ] || skip "root may read everything" ;;
	esac
}

scan() {
	pinion scan "$@"
}

# JSON lines of plain paths as RULE<TAB>START<TAB>END<TAB>PATH, sorted.
table() {
	sed -E 's/^\{"rule":"([^"]*)","path":"([^"]*)","start":([0-9]+),"end":([0-9]+),.*\}$/\1\t\3\t\4\t\2/' \
		"$1" | LC_ALL=C sort
}

# What grep finds: PATH<TAB>OFFSET, sorted; and the same from `out`.
grep_offsets() {
	LC_ALL=C grep -robUaF -e "$1" "$2" | LC_ALL=C sed -nE 's/^([^:]*):([0-9]+):.*/\1\t\2/p' |
		LC_ALL=C sort
}
# JSON lines without what tests/cli/output.bats is about.
offsets_only() {
	sed -E 's/,"line":.*"fingerprint":"[0-9a-f]{32}"//' "$1"
}
out_offsets() {
	LC_ALL=C sed -nE 's/^([^:]*):([0-9]+)-[0-9]+: .*/\1\t\2/p' out | LC_ALL=C sort
}

# Bytes of a small alphabet, so that words overlap and cross every border.
random_bytes() {
	head -c "$2" /dev/urandom | LC_ALL=C tr '\000-\377' "$1"
}

make_tree() {
	mkdir tree
	random_bytes '[a*]' 10000 >tree/all_a
	random_bytes '[a*150][b*80][\n*26]' 60000 >tree/mixed
	random_bytes '[a*100][b*80][\r*30][\n*20][\000*26]' 60000 >tree/binary
	head -c 100000 /dev/urandom >tree/random
	printf 'aa' >tree/two
	printf 'a' >tree/one
	: >tree/empty
	# Across 4 KiB, 64 KiB and 1 MiB.
	local border distance
	for border in 4096 65536 1048576; do
		head -c 1100000 /dev/zero >tree/border_$border
		distance=$((border / 4096 % 7 + 1))
		printf 'aaaaaaaa' | dd of=tree/border_$border bs=1 seek=$((border - distance)) \
			conv=notrunc status=none
	done
}

@test "literals are found where grep finds them, at every window and worker count" {
	make_tree
	for word in $(some_of a baab aa); do
		grep_offsets "$word" tree >expected
		for setting in "" "--window=4K --workers=1" "--window=4K --workers=8" \
			"--window=64K --workers=2" "--window=1M --workers=2 --direct=always"; do
			# shellcheck disable=SC2086
			scan -b -F --max-findings-per-file=0 -e "$word" $setting tree
			expect 1
			out_offsets >got
			cmp expected got
		done
	done
}

@test "a literal at each place of a border between windows of cached files" {
	local border=524288 shift # CACHED_WINDOW_BYTES
	mkdir tree
	head -c 1200000 /dev/zero | tr '\0' . >plain
	for shift in $(seq 0 9); do
		cp plain tree/$shift
		for place in $((border - shift)) $((2 * border - shift)); do
			printf needle99 | dd of=tree/$shift bs=1 seek=$place conv=notrunc status=none
		done
	done
	for word in needle99 9 99; do
		grep_offsets "$word" tree >expected
		for setting in "" "-e absent"; do
			# shellcheck disable=SC2086
			scan -b -F --max-findings-per-file=0 -e "$word" $setting tree
			expect 1
			out_offsets >got
			cmp expected got
		done
	done
}

@test "a literal's line is the one that grep counts, in whatever window it is" {
	local length=1300001 # three windows of cached files, and newlines at odd places
	mkdir tree
	seq 1 230000 | tr 5 '\n' | head -c $length >tree/last
	cp tree/last tree/first
	cp tree/last tree/both
	for place in last:$((length - 9)) first:0 both:0 both:$((length - 9)); do
		printf needle99 | dd of=tree/${place%:*} bs=1 seek=${place#*:} conv=notrunc status=none
	done
	grep -a -n -o needle99 -r tree | cut -d: -f1,2 | sort >expected
	for setting in "" "--window=4K --workers=8" "--window=64K --workers=2 --direct=always"; do
		# shellcheck disable=SC2086
		scan -F -e needle99 $setting tree
		expect 1
		cut -d: -f1,2 out | sort | cmp - expected
		# shellcheck disable=SC2086
		scan -F -e needle99 --format=json $setting tree
		sort out >got
		[ -e whole ] || cp got whole
		cmp got whole
	done
}

@test "literals may hold any byte a command line can" {
	printf 'x\xff\xfe.*[\\y\n x\xff\xfe.*[\\y' >file
	scan -b -F -e $'x\xff\xfe.*[\\y' file
	expect 1
	[ "$(cut -d: -f2 out | tr '\n' ' ')" = "0-8 10-18 " ]
	printf 'one\ntwo' >file
	scan -b -F -e $'e\nt' file
	expect 1
	grep -q '^file:2-5: e1: ' out
}

@test "every planted secret is found, and nothing else, at every window and worker count" {
	needs regex
	while read -r window workers; do
		scan --format=json --window=$window --workers=$workers "$corpus_folder"
		expect 1
		table out >got
		cmp "$BATS_FILE_TMPDIR/planted.sorted" got
	done < <(each_of "64K 8K 4K 1M" "1 2 8")
	scan --format=json --io=fallback --direct=never "$corpus_folder"
	table out | cmp "$BATS_FILE_TMPDIR/planted.sorted" -
}

@test "grep -E -f understands the built-in patterns" {
	needs regex
	! is_sanitized || skip "grep is no part of a sanitized build"
	"$PINION" scan --print-patterns >patterns
	mkdir some
	# The first file of each secret.
	sort -t"$(printf '\t')" -u -k1,1 "$BATS_FILE_TMPDIR/planted" | cut -f4 | sort -u |
		while read -r path; do
			[ "$(stat -c %s "$path")" -gt 200000 ] || cp "$path" some/
		done
	scan some
	[ "$(LC_ALL=C grep -raoE -f patterns some | wc -l)" = "$(wc -l <out)" ]
}

@test "grep -E finds the sample of each built-in rule by its pattern" {
	needs regex
	! is_sanitized || skip "grep is no part of a sanitized build"
	"$PINION" scan --print-patterns | sed -E 's/,[0-9]{3,}\}/,}/g' >patterns
	top_srcdir=$BATS_TEST_DIRNAME/../.. \
		"${top_builddir:-$PWD}/tests/unit/tools/builtin_rules_find_their_samples" --print >samples
	[ "$(wc -l <patterns)" = "$(wc -l <samples)" ]
	while IFS= read -r pattern <&3 && IFS= read -r sample <&4; do
		# An upper bound of hundreds takes grep up to 3 s; it takes them all
		# in the case before.
		[[ $(LC_ALL=C grep -aoE -e "$pattern" <<<"$sample") = "$sample" ]] || {
			echo "$pattern"
			false
		}
	done 3<patterns 4<samples
}

@test "the same bytes on standard output for one file, at every window" {
	needs regex
	large=$(ls "$corpus_folder"/images/*.c)
	scan "$large"
	cp out first
	for window in $(some_of 256K 64K 4K); do
		scan --window=$window --workers=8 "$large"
		cmp first out
	done
}

@test "anchors and word borders see past the windows" {
	needs regex
	random_bytes '[a*110][b*70][\n*30][ *30][_*16]' 60000 >file
	for pattern in '^a{1,3}' 'b{1,3}$' '\bab?\b' '\Bb' '\Aa' 'a\z' '^[ab]{2,9}$' 'a[^b]{1,20}b'; do
		if is_sanitized && [[ $pattern != '^a{1,3}' && $pattern != '\bab?\b' ]]; then
			continue
		fi
		scan --window=1M -e "$pattern" --format=json file
		cp out expected
		for window in $(some_of 8K 4K); do
			scan --window=$window --workers=8 -e "$pattern" --format=json file
			cmp expected out
		done
	done
	printf 'foo' >foo
	scan -e '^foo$' foo
	expect 1
	scan -e '\bfoo\b' foo
	expect 1
}

@test "patterns without a longest match" {
	needs regex
	{
		head -c 10000 /dev/zero | tr '\0' x
		printf '\nkey='
		head -c 9000 /dev/zero | tr '\0' k
		printf ' end\nkey=short end\n'
	} >file
	for window in 4K 64K; do
		scan --window=$window --workers=8 -e 'key=.*end' -e 'k{3}' --format=json file
		expect 1
		grep -qF '{"rule":"e1","path":"file","start":10001,"end":19009,"line":2,"column":1,"end_line":2,' out
		grep -qF '{"rule":"e1","path":"file","start":19010,"end":19023,"line":3,"column":1,"end_line":3,' out
		[ "$(grep -c '"e2"' out)" = 3000 ]
	done
	scan -b -e 'x.*$' file
	expect 1
	[ "$(cat out)" = "file:0-10000: e1: …" ]
}

@test "lines of one file are in order" {
	needs regex
	make_tree
	scan -b -F -e a -e aa -e ab --window=4K --workers=8 tree/mixed
	expect 1
	sed -E 's/^[^:]*:([0-9]+)-([0-9]+): e([0-9])+:.*/\1 \2 \3/' out >got
	sort -c -n -k1,1 -k2,2 -k3,3 got
}

@test "text shows no more than a quarter of a finding" {
	printf 'abcdefghijkl 0123456789abcdefghijklmnop' >file
	scan -F -e abcdefghijkl -e 0123456789abcdefghijklmnop file
	expect 1
	diff - out <<-'END'
		file:1:1: e1: abc…
		file:1:14: e2: 0123…
		file:1:24: e1: abc…
	END
}

@test "text escapes characters that would break a line" {
	printf 'needle' >$'new\nline\t\\\xff\e'
	scan -F -e needle ./new*
	expect 1
	[ "$(cat out)" = './new\nline\t\\\xFF\x1B:1:1: e1: n…' ]
}

@test "json is valid for every name" {
	needs jq
	mkdir names
	printf needle >names/plain
	printf needle >$'names/bad\xff'
	printf needle >names/größe
	printf needle >$'names/new\nline "quoted" \\'
	scan --format=json -F -e needle names
	expect 1
	[ "$(jq -s length out)" = 4 ]
	[ "$(jq -c 'keys_unsorted' out | sort -u)" = \
		'["rule","path","start","end","line","column","end_line","end_column","fingerprint"]' ]
	jq -e -s 'any(.path == "names/größe")' out
	jq -e -s 'any(.path == "names/new\nline \"quoted\" \\")' out
	encoded=$(jq -r '.path | objects | .bytes' out)
	[ "$(printf %s "$encoded" | base64 -d)" = $'names/bad\xff' ]
}

@test "a rules file replaces the built-in rules, --builtin adds them" {
	needs regex
	printf '# comment\n\nhello\th[e]llo{1,2}\ncrlf\tworld\r\n' >rules
	printf 'hello world AK%s' IAQ2W3E4R5T6Y7U2I3 >file
	scan --rules=rules file
	expect 1
	diff - out <<-'END'
		file:1:1: hello: h…
		file:1:7: crlf: w…
	END
	scan --rules=rules --builtin file
	[ "$(wc -l <out)" = 3 ]
	scan --rules=rules -e 'o w' file
	grep -q '^file:1:5: e1: ' out
	scan file
	[ "$(cut -d' ' -f2 out)" = aws-access-key-id: ]
}

@test "each bad line of a rules file is named, and nothing is scanned" {
	needs regex
	printf 'good\ta\nno tab\nbad\t(\nempty\t\nevery\ta*\nb@d id\tx\n\tx\nnul\ta\0b\n' >rules
	printf 'a' >file
	scan --rules=rules file
	expect 2
	[ ! -s out ]
	for line in 2 3 4 5 6 7 8; do
		grep -q "^pinion scan: rules:$line: ." err
	done
	[ "$(wc -l <err)" = 7 ]
	scan --rules=missing file
	expect 2
	grep -q '^pinion scan: missing: no such file' err
	printf '# nothing\n' >rules
	scan --rules=rules file
	expect 2
	grep -qxF 'pinion scan: rules: has no rules' err
}

@test "bad patterns are refused before anything is scanned" {
	needs regex
	printf 'a' >file
	for pattern in '(' '[a' 'a{5,2}' '\1' '(?=a)' 'a*' '' '^' '\b'; do
		scan -e "$pattern" file
		expect 2
		[ ! -s out ]
		grep -q '^pinion scan: pattern e1: .' err
		[ "$(wc -l <err)" = 1 ]
	done
	scan -F -e '' file
	expect 2
}

@test "without regular expressions a line names the missing library" {
	[[ $features == *-hyperscan* ]] || skip "built with hyperscan"
	printf 'a' >file
	scan -e 'a+' file
	expect 2
	grep -q 'libhyperscan-dev' err
	scan -F -e a file
	expect 1
}

@test "nothing found is status 0, something is 1" {
	printf 'abc' >file
	scan -F -e x file
	expect 0
	[ ! -s out ] && [ ! -s err ]
	scan -F -e b file
	expect 1
	[ ! -s err ]
}

@test "bad usage" {
	printf 'a' >file
	for arguments in "" "-F file" "-F -e a -" "--window=5000 -F -e a file" \
		"--window=1K -F -e a file" "--format=xml -F -e a file" "--workers=0 -F -e a file" \
		"--direct=maybe -F -e a file" "--nonsense file"; do
		# shellcheck disable=SC2086
		scan $arguments
		expect 2
		[ ! -s out ]
		[ "$(wc -l <err)" = 1 ]
	done
}

@test "a pattern wider than the windows" {
	needs regex
	{
		head -c 300000 /dev/zero | tr '\0' y
		printf a
		head -c 5500 /dev/zero | tr '\0' x
		printf b
		head -c 300000 /dev/zero | tr '\0' y
	} >file
	for window in $(some_of 1M 64K 4K); do
		scan --window=$window -e 'ax{5000,6000}b' --format=json file
		expect 1
		[ "$(offsets_only out)" = '{"rule":"e1","path":"file","start":300000,"end":305502}' ]
	done
}

@test "missing paths and directories one may not enter" {
	printf 'a' >file
	scan -F -e a missing file
	expect 2
	[ "$(wc -l <out)" = 1 ]
	grep -q '^pinion scan: missing: no such file' err
}

@test "unreadable files are named, the rest is done" {
	needs user
	mkdir -p tree/shut
	printf 'a' >tree/file
	printf 'a' >tree/closed
	chmod 000 tree/closed tree/shut
	scan -F -e a tree --stats
	chmod 700 tree/shut
	expect 2
	[ "$(cut -d: -f1 out)" = tree/file ]
	grep -q 'tree/closed: permission denied' err
	grep -q 'tree/shut: permission denied' err
}

@test "special files are skipped with a line, links are not followed" {
	mkdir tree
	printf 'a' >tree/file
	mkfifo tree/fifo
	ln -s file tree/link
	ln -s . tree/loop
	scan -F -e a tree
	expect 2
	[ "$(wc -l <out)" = 1 ]
	[ "$(wc -l <err)" -ge 1 ]
	grep -q 'tree/fifo' err
	! grep -q 'tree/link' err
	# With status 2 the counts say how many files that concerns.
	grep -q '4 files: 1 done, 0 failed, 3 skipped, 0 cancelled' err
}

@test "a list of paths, with newlines and with NUL" {
	printf 'a' >one
	printf 'ba' >$'two\nlines'
	printf 'one\n' >list
	scan -F -e a --files-from=list
	expect 1
	[ "$(cat out)" = "one:1:1: e1: …" ]
	echo $'./one' >list2
	scan -F -e a --files-from=list --files-from=list2
	expect 1
	[ "$(wc -l <out)" = 2 ]
	printf 'one\0two\nlines\0' | "$PINION" scan -F -e a -0 --files-from=- >out || true
	[ "$(wc -l <out)" = 2 ]
}

@test "an empty file, a sparse file, a file in /proc" {
	: >empty
	truncate -s 20G sparse 2>/dev/null || truncate -s 1G sparse
	printf 'needle' | dd of=sparse bs=1 seek=$((512 * 1024 * 1024 - 3)) conv=notrunc status=none
	scan -F -e needle --format=json empty sparse
	expect 1
	[ "$(offsets_only out)" = '{"rule":"e1","path":"sparse","start":536870909,"end":536870915}' ]
	scan -F -e Linux /proc/version
	expect 1
}

@test "a full disk is status 2" {
	[ -c /dev/full ] || skip "no /dev/full"
	printf 'a' >file
	status=0
	"$PINION" scan -F -e a file >/dev/full 2>err || status=$?
	expect 2
	grep -q 'standard output: no space left' err
}

@test "a closed pipe ends it, status 2" {
	head -c 5000000 /dev/zero | tr '\0' a >file
	set +o pipefail
	{
		status=0
		"$PINION" scan -F -e a file 2>err || status=$?
		echo $status >status
	} | head -n 1 >/dev/null
	[ "$(cat status)" = 2 ]
}

@test "a signal ends it, status 3, finished files stay" {
	printf 'needle' >file
	stop_while_fed file scan -F -e needle
	expect 3
	grep -q 'stopped early' err
	grep -q '^file:1:1: ' out
}

@test "the examples of the manual page work" {
	local page=$top_srcdir/docs/man/pinion-scan.md line count=0
	command -v git >/dev/null || skip "git is not installed"
	[[ $features == *+hyperscan*+pcre2*+libarchive* ]] || skip "built without what they need"
	! is_sanitized || skip "the plain program is asked"
	mkdir src backup
	echo text | tee src/a backup/b >/dev/null
	export HOME=$BATS_FILE_TMPDIR PINION
	git init -q .
	git add src
	for line in one two; do
		git -c user.name=a -c user.email=a@b commit -q --allow-empty -m $line
	done
	while IFS= read -r line; do
		bash -c "pinion() { \"\$PINION\" \"\$@\"; }; $line" >out 2>err || {
			echo "status $?: $line"
			cat err
			return 1
		}
		[ ! -s out ]
		count=$((count + 1))
	done < <(sed -n '/^## Examples$/,/^## Env/s/^    //p' "$page")
	[ $count = 9 ]
	[ -s findings.sarif ] && [ -s scan.log ]
}

@test "--stats counts findings, files and bytes" {
	printf 'aaa' >file
	scan -F -e a --stats file
	expect 1
	grep -q '1 file: 1 done, 0 failed, 0 skipped, 0 cancelled' err
	grep -q 'findings: 3; ' err
}

@test "--gitignore leaves out hidden files, counts them, and nothing else does (EX-53)" {
	mkdir -p tree/.git tree/hidden tree/kept
	printf '*.log\n/hidden/\n!keep.log\n' >tree/.gitignore
	local file
	for file in a.log keep.log kept/a.log kept/b hidden/a .git/config .env; do
		printf needle >"tree/$file"
	done
	scan -F -e needle --stats tree
	expect 1
	[ "$(cut -d: -f1 out | LC_ALL=C sort | tr '\n' ' ')" = \
		"tree/.env tree/.git/config tree/a.log tree/hidden/a tree/keep.log tree/kept/a.log tree/kept/b " ]
	grep -q '8 files: 8 done, 0 failed, 0 skipped, 0 cancelled$' err
	scan -F -e needle --stats --gitignore tree
	expect 1
	[ "$(cut -d: -f1 out | LC_ALL=C sort | tr '\n' ' ')" = "tree/.env tree/keep.log tree/kept/b " ]
	grep -q '8 files: 4 done, 0 failed, 0 skipped, 0 cancelled, 4 ignored$' err
	# Named files are searched, and an ignore file in the list is a file.
	printf '%s\n' tree/a.log tree/hidden >list
	scan -F -e needle --gitignore --files-from=list
	[ "$(cut -d: -f1 out | LC_ALL=C sort | tr '\n' ' ')" = "tree/a.log tree/hidden/a " ]
}

@test "--gitignore: an unusable ignore file is reported, and hides nothing (EX-53)" {
	mkdir -p tree/.git tree/huge tree/linked tree/piped tree/wide
	printf '*\0' >tree/wide/.gitignore
	printf '*\n' >tree/huge/.gitignore
	truncate -s 2M tree/huge/.gitignore
	ln -s /dev/zero tree/linked/.gitignore
	mkfifo tree/piped/.gitignore
	local folder
	for folder in huge linked piped wide; do
		printf needle >tree/$folder/file
	done
	status=0
	timeout 60 "$PINION" scan -F -e needle --gitignore tree >out 2>err || status=$?
	expect 2
	[ "$(wc -l <out)" = 4 ]
	grep -q '^pinion scan: tree/huge/.gitignore: too large for an ignore file' err
	grep -q '^pinion scan: tree/wide/.gitignore: no text, there is a NUL byte' err
	grep -q 'tree/piped/.gitignore: not a regular file (FIFO)' err
	grep -q '9 files: 4 done, 2 failed, 2 skipped, 0 cancelled, 1 ignored$' err
}

@test "a rules file without an end is refused" {
	status=0
	timeout 60 "$PINION" scan --rules=/dev/zero . >out 2>err || status=$?
	expect 2
	grep -qx 'pinion scan: /dev/zero: is no text, and so no list of rules' err
	# Of lines that are skipped, too.
	yes '#' | head -c 70000000 >many
	scan --rules=many .
	expect 2
	[ "$(wc -l <err)" = 1 ]
	grep -qx 'pinion scan: many: the file is larger than 64 MiB' err
}

@test "examples and test keys are reported only with --include-examples" {
	needs regex
	local id=AKIA key=wJalrXUtnFEMI/K7MDENG/bPxRfiCY live=sk_live_
	local word=yourtokengoeshereandisthirtyfourxy
	{
		printf '%s\n' "${id}IOSFODNN7EXAMPLE" "aws_secret_access_key = ${key}EXAMPLEKEY"
		printf '%s\n' "sk_""test_4eC39HqLyjWDarjtT1zdp7dc" "gho_""16C7e42F292c6912E7710c838347Ae178B4a"
		printf '%s\n' "https://hooks.slack.com/services/""T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX"
		printf 'AccountKey=%s%s\n' Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2U \
			VErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==
		printf '%s.%s.%s\n' eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9 \
			eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ \
			SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c
		printf '%s\n' "CCIPAT_""ULUhR6rJLxYbyzyrP19iMZ_8fb1e3510325f7f09361de22b9420346c53ca2cb" \
			"SWMTKN-1-""49nj1cmql0jkz5s954yi3oex3nedyz0fb0xx14ie39trti4wxv-8vxv8rssmk743ojnwacrr2e7c" \
			"PRIVATE_KEY=0x""ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80" \
			"kubeadm join ""10.0.0.1:6443 --token abcdef.0123456789abcdef" \
			"nsec1""vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5" \
			"pdl_live_""apikey_01gtgztp8f4kek3yd4g1wrksa3_q6TGTJyvoIz7LDtXT65bX7_AQO" \
			"{SS""HA}pSOV2TpCxj2NMACi""jkcMko4fGrFopctU"
	} >examples
	# Alike, and none of them.
	{
		printf '%s\n' "${id}IOSFODNN7EXAMPLX" "aws_secret_access_key = ${key}EXAMPLFKEY"
		printf '%s\n' "${live}4eC39HqLyjWDarjtT1zdp7dc" "gho_""16C7e42F292c6912E7710c838347Ae178B4b"
	} >others
	for window in $(some_of 4K 1M); do
		scan --window=$window examples
		expect 0
		[ ! -s out ]
		scan -b --window=$window others examples
		expect 1
		[ "$(sed -E 's/^(others:[^:]*: [^:]*): .*/\1/' out)" = 'others:0-20: aws-access-key-id
others:21-85: aws-secret-access-key
others:86-118: stripe-key
others:119-159: github-token' ]
		scan --window=$window --include-examples examples
		expect 1
		[ "$(cut -d' ' -f2 out | tr '\n' ' ')" = \
			'aws-access-key-id: aws-secret-access-key: stripe-key: github-token: slack-webhook: azure-storage-key: jwt: circleci-token: docker-swarm-token: ethereum-private-key: kubeadm-bootstrap-token: nostr-secret-key: paddle-api-key: ldap-password-hash: ' ]
	done
	# Placeholders, and none.
	printf '%s\n' "${id}XXXXXXXXXXXXXXXX" "${live}123456789abcdefghijklmnop" "hf""_${word}" \
		"gho""_000000000000000000000000000000000000" >placeholders
	printf '%s\n' "${live}12345678abcdefghXXXXqrst" "${live}a/example?b" >others
	scan -b placeholders others
	expect 1
	[ "$(cut -d' ' -f1-2 out)" = 'others:0-32: stripe-key:' ]
	scan -b --include-examples placeholders
	expect 1
	[ "$(wc -l <out)" = 4 ]
	scan -b -e 'AKIA[A-Z0-9]{16}' examples
	expect 1
	[ "$(cut -d: -f2 out)" = 0-20 ]
}

@test "a JSON Web Token with the claims of an example is reported only when asked for" {
	needs regex
	token() {
		printf '%s.%s.%s\n' eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9 \
			"$(printf '%s' "$1" | base64 -w0 | tr '+/' '-_' | tr -d =)" \
			KqMzRzBwYtVh7Lr2cDpWnQs8GjXfUe4oTaIyHvN5bEk
	}
	# The longest has as many letters of base64 as the rule takes.
	local long claim
	long=$(printf 'a%.0s' {1..661})
	for claim in '{"foo":"baz"}' '{"n":17,"foo":1}' '{"name":"John Doe"}' '{"sub":"1234567890","n":2}' \
		'{"iss":"urn:example:issuer"}' '{"iss":"https://example.com/"}' '{"iss":"id.example.org"}' \
		'{"iss":"example.net"}' '{"mail":"mary@example.com"}' "{\"b\":\"$long\",\"foo\":1}"; do
		token "$claim"
	done >examples
	for claim in '{"iss":"https://myexample.com/"}' '{"food":"baz"}' '{"name":"John Doering"}' \
		'{"sub":"12345678901","n":2}' '{"iss":"urn:examples:issuer"}'; do
		token "$claim"
	done >others
	scan examples
	expect 0
	scan -c others
	[ "$(cat out)" = others:5 ]
	scan -c --include-examples examples others
	[ "$(LC_ALL=C sort out | tr '\n' ' ')" = "examples:10 others:5 " ]
}

@test "rules beyond a limit are refused, with the limit and its option" {
	needs regex
	printf 'a' >file
	printf 'one\taa\ntwo\tbb\nthree\tcc\n' >rules
	scan --rules=rules --max-rules=3 --max-rule-bytes=6 file
	expect 0
	scan --rules=rules --max-rules=2 file
	expect 2
	[ "$(cat err)" = "pinion scan: rules:3: more than 2 rules, which take long to compile (--max-rules=N raises the limit)" ]
	scan --rules=rules --max-rule-bytes=5 file
	expect 2
	[ "$(cat err)" = "pinion scan: rules:3: its 2 bytes make the patterns longer than 5 bytes in all (--max-rule-bytes=SIZE raises the limit)" ]
	scan -e aa -e bb --max-rules=1 file
	expect 2
	[ "$(cat err)" = "pinion scan: pattern e2: more than 1 rules, which take long to compile (--max-rules=N raises the limit)" ]
	seq 20001 | sed 's:.*:r&\tw&:' >rules
	scan --rules=rules file
	expect 2
	grep -q '^pinion scan: rules:20001: more than 20000 rules,' err
}

@test "rules that take long to compile are announced, and ended at the limit" {
	needs regex
	printf 'w17' >file
	seq 2001 | sed 's:.*:r&\tw&:' >rules
	scan --rules=rules file
	expect 1
	[ "$(cat err)" = "pinion scan: compiling 2001 rules, 9 KB; this may take a while" ]
	scan --rules=rules --max-compile-time=0.001 file
	expect 2
	[ ! -s out ]
	grep -qx 'pinion scan: 2001 rules take longer than 0.001 s to compile: use fewer or simpler ones, or raise --max-compile-time' err
}

@test "one rule that takes long is ended at the limit, and an alarm of one's own is kept" {
	needs regex
	printf 'w17' >file
	printf 'id\t%s+z\n' "$(printf '(a|b%.0s' {1..800})$(printf ')%.0s' {1..800})" >rules
	for option in "" --print-patterns; do
		status=0
		# shellcheck disable=SC2086
		timeout 30 "$PINION" scan --rules=rules $option --max-compile-time=0.01 file \
			>out 2>err || status=$?
		expect 2
		[ ! -s out ]
		[ "$(cat err)" = "pinion scan: 1 rules take longer than 0.01 s to compile: use fewer or simpler ones, or raise --max-compile-time" ]
	done
	# The limit ends with the compilation.
	command -v perl >/dev/null || skip "no perl"
	mkfifo list
	exec 7<>list
	status=0
	perl -e 'alarm 1; exec @ARGV' "$PINION" scan -e w --files-from=list >out 2>err || status=$?
	exec 7>&-
	expect 142
}

@test "a number that is too large for any type is out of the range" {
	scan --max-findings-per-file=99999999999999999999 -e a .
	expect 2
	[ "$(cat err)" = "pinion scan: --max-findings-per-file: 99999999999999999999 is not between 0 and 4294967295" ]
	scan --file-timeout=99999999999 -e a .
	expect 2
	[ "$(cat err)" = "pinion scan: --file-timeout: 99999999999 is not between 0 and 86400 seconds" ]
	scan --window=99999999999999999999 -e a .
	expect 2
	grep -qx 'pinion scan: --window: 99999999999999999999 is not between 4K and 64M' err
}

@test "standard output past the limit of a file's size is named as that" {
	printf '%1000s' needle | tr ' ' n >file
	status=0
	bash -c 'ulimit -f 1; trap "" XFSZ; exec "$@"' - "$PINION" scan -F -e n file \
		2>&1 >out | cat >err || true
	[ "$(tail -n +1 err | head -1)" = "pinion scan: standard output: too large for a file: past the limit (ulimit -f) or what its file system takes" ]
}

@test "an entry of a list that is no path is named by its number" {
	printf 'a' >file
	{
		echo file
		head -c 3M /dev/zero | tr '\0' x
		printf '\nfile\n'
	} >list
	scan -F -e a --files-from=list
	expect 2
	[ "$(wc -l <out)" = 2 ]
	grep -qx 'pinion scan: list: entry 2 is longer than 1048576 bytes: no path is' err
	[ "$(wc -c <err)" -lt 400 ]
}

@test "findings of a rule in a file are limited, the same at every window" {
	needs regex
	# Two borders of windows of 64K, and a file that one of 1M has whole.
	{
		head -c 140000 /dev/zero | tr '\0' a
		for i in $(seq 200); do printf 'xaab-ab %s' "$i"; done
	} >file
	# One of them is wider than what libhs tracks starts for (SOM_WIDTH_MAX).
	for pattern in aa 'a{3,9}' 'a{2,130}' 'ab*' 'a+b?' 'x?a{1,2}b|[0-9]+' '(?s).'; do
		if is_sanitized && [[ $pattern != aa && $pattern != 'a{2,130}' ]]; then
			continue
		fi
		scan --max-findings-per-file=0 -e "$pattern" file
		head -n 70 out >first
		total=$(wc -l <out)
		[ ! -s err ]
		scan --max-findings-per-file="$total" -e "$pattern" file
		[ "$(wc -l <out)" = "$total" ]
		[ ! -s err ]
		[ "$total" -gt 70 ]
		while read -r window workers; do
			scan --max-findings-per-file=70 --workers=$workers --window=$window -e "$pattern" file
			expect 1
			diff first out
			[ "$(cat err)" = "pinion scan: file: rule e1: only the first 70 findings are shown (--max-findings-per-file)" ]
		done < <(each_of "4K 64K 1M" "1 2 4")
	done
	scan --max-findings-per-file=70 --format=json -e aa file
	[ "$(jq -c 'select(.limit)' out)" = '{"rule":"e1","path":"file","limit":"findings","findings":70,"searched_to":140}' ]
	[ "$(jq -c 'select(.start != null)' out | wc -l)" = 70 ]
}

@test "10 000 findings of each rule in each file are shown by default" {
	local word path count
	mkdir files
	# Of one rule one more than that in one file, of the other in the other.
	{ yes a | head -n 10001 && yes b | head -n 10000; } >files/more_a
	{ yes a | head -n 10000 && yes b | head -n 10001; } >files/more_b
	yes a | head -n 9999 >files/less
	scan -b -F -e a -e b files
	expect 1
	while read -r path word count; do
		[ "$(grep -cE "^files/$path:[0-9]+-[0-9]+: $word: " out)" = "$count" ]
	done <<-'END'
		more_a e1 10000
		more_a e2 10000
		more_b e1 10000
		more_b e2 10000
		less e1 9999
		less e2 0
	END
	LC_ALL=C sort err | diff - <(
		printf 'pinion scan: files/%s: only the first 10000 findings are shown (--max-findings-per-file)\n' \
			'more_a: rule e1' 'more_b: rule e2'
	)
	# The first ones, not any.
	grep -q '^files/more_a:19998-19999: e1: ' out
	! grep -q '^files/more_a:20000-20001: e1: ' out
}

@test "matches that are too dense end their rule, at the same place" {
	needs regex
	# The widest rule that libhs takes, in a form that it compiles fast, and few
	# bytes after the first of them: each is as much work again.
	{
		printf b
		head -c 33000 /dev/zero | tr '\0' a
	} >file
	for window in $(some_of 1M 4K); do
		scan -b --workers=2 --window=$window --max-compile-time=100000 -e '[^b]{3,32767}' file
		expect 1
		[ "$(cat err)" = "pinion scan: file: rule e1: its matches are too dense to go on after byte 32769 (--max-findings-per-file=0 goes on)" ]
		[ "$(cut -d: -f2 out)" = 1-32768 ]
	done
	# A rule without an upper bound is one match here.
	scan -b -e 'a{3,}b?' file
	expect 1
	[ "$(cut -d: -f2 out)" = 1-33001 ]
	[ ! -s err ]
}

# Of a scan with --stats of one file: it is done, N findings of one rule are
# shown, and fewer MB were read.
ends_at_its_limit() {
	expect 1
	grep -qxF "pinion scan: $1: rule e1: only the first $2 findings are shown (--max-findings-per-file)" err
	grep -qF "1 file: 1 done, 0 failed" err
	[ "$(wc -l <err)" = 3 ]
	[ "$(wc -l <out)" = "$2" ]
	[ "$(amount_of 'findings: [0-9]*; \(.*\) (holes.*')" -lt "${3}000000" ]
}

@test "a file is read no further when every rule has reached its limit" {
	needs regex
	local pattern
	yes needle | head -c 128M >plain
	for pattern in 'needl+e' 'need.e'; do
		scan --stats --workers=1 --window=1M --max-findings-per-file=3 -e "$pattern" plain
		ends_at_its_limit plain 3 100
	done
	# A rule that finds nothing is searched for up to the end.
	scan --stats --max-findings-per-file=3 -e needle -e absent plain
	expect 1
	grep -qF ' 134.218 MB (holes: ' err
	# Zeros that match are searched for far longer than --file-timeout.
	truncate -s 300G hole 2>/dev/null || return 0
	for pattern in '[^a]{3}' '.{4}z*'; do
		scan --stats --max-findings-per-file=1 --file-timeout=20 -e "$pattern" hole
		ends_at_its_limit hole 1 1000
	done
	needs jq
	scan --format=json --max-findings-per-file=1 -e '[^a]{3}' hole
	expect 1
	[ "$(jq -c 'select(.limit)' out)" = '{"rule":"e1","path":"hole","limit":"findings","findings":1,"searched_to":3}' ]
}

@test "holes are skipped for rules without an upper bound, and matches around them found" {
	needs regex
	printf 'zqqq' >file
	truncate -s 8T file
	printf 'zqqzqqq \0zq' | dd of=file bs=1M seek=4194304 conv=notrunc status=none
	scan -b --stats -e 'zq+' -e '\bz[q]+z' file
	expect 1
	diff - out <<-'END'
		file:0-4: e1: …
		file:4398046511104-4398046511107: e1: …
		file:4398046511104-4398046511108: e2: …
		file:4398046511107-4398046511111: e1: …
		file:4398046511113-4398046511115: e1: …
	END
	grep -q 'holes: 8796.0' err
}

@test "holes that a rule without an upper bound may match are the zeros they are" {
	needs regex
	local pattern window workers unit=$((1 << 20)) limit=10000
	# Windows of 1M have no border then, and fewer findings are compared.
	! is_sanitized || { unit=$((1 << 18)) && limit=500; }
	printf 'x1 qqa' >sparse
	printf 'b y_z\nabq' | dd of=sparse bs=$unit seek=1 conv=notrunc status=none
	head -c 70000 /dev/zero | tr '\0' 'z' | dd of=sparse bs=$unit seek=3 conv=notrunc status=none
	printf 'x' | dd of=sparse bs=$unit seek=5 conv=notrunc status=none
	truncate -s $((7 * unit)) sparse
	cp --sparse=never sparse dense
	for pattern in 'a.*b' 'x[^y]+z' '[^y]+q' '(?s)a.{70000,}b' '\x00+b' 'x(?:\x00\x00)*y|q+' \
		'[^q]{7}z*' 'z[^a]+$' '(?:ab|.{3,9})[^x]*'; do
		# For a sanitizer one each that skips holes, searches them, meets a limit.
		if is_sanitized && [[ $pattern != 'a.*b' && $pattern != '\x00+b' && $pattern != '[^q]{7}z*' ]]; then
			continue
		fi
		scan --format=json --window=64K --max-findings-per-file=$limit -e "$pattern" dense
		dense_status=$status
		sed -E 's/"dense"/"sparse"/; s/"[0-9a-f]{32}"/""/' out >expected
		sed 's/: dense: /: sparse: /; /without progress/d' err >expected_err
		while read -r window workers; do
			scan --format=json --max-findings-per-file=$limit --window=$window --workers=$workers -e "$pattern" sparse
			expect "$dense_status"
			sed -E 's/"[0-9a-f]{32}"/""/' out | diff expected -
			# A slow build takes long for a window of zeros, and says so.
			sed '/without progress/d' err | diff expected_err -
		done < <(each_of "64K 4K 1M" "1 3")
	done
}

@test "holes are not searched byte by byte where that changes nothing" {
	needs regex
	truncate -s 8T file 2>/dev/null || skip "no file of 8 TiB here"
	printf 'a1x2' | dd of=file bs=1 seek=5 conv=notrunc status=none
	printf 'b3y4z' | dd of=file bs=1M seek=4194304 conv=notrunc status=none
	scan -b --stats --file-timeout=0 -e 'a.*b' -e 'x[^y]+' -e '(?s)2.{9000,}z' file
	expect 1
	diff - out <<-'END'
		file:5-4398046511105: e1: …
		file:7-4398046511106: e2: …
		file:8-4398046511109: e3: …
	END
	grep -q 'holes: 8796.0' err
}

@test "a word in front of the paths, as grep takes it, is answered with -e" {
	local hint='pinion scan: a pattern to search for follows -e, a plain word -F -e'
	printf 'a word' >file
	scan word file
	expect 2
	[ "$(head -2 err)" = "pinion scan: word: no such file or directory
$hint" ]
	for arguments in "missing" "file missing" "-F -e word missing file"; do
		# shellcheck disable=SC2086
		scan $arguments
		expect 2
		! grep -qxF "$hint" err
	done
}

@test "holes that have to be searched fail by name after --file-timeout" {
	needs regex
	truncate -s 8T file 2>/dev/null || skip "no file of 8 TiB here"
	printf 'abb' >other
	for how in --io=auto --io=fallback; do
		# An even number of zeros is no run that is as good as a longer one.
		scan --stats $how --file-timeout=1 -e 'a(?:\x00\x00)*b+' file other
		expect 2
		grep -qE '^pinion scan: file: its holes took more than 1 s: given up at byte [1-9][0-9]* of 8796093022208 \(--file-timeout=0: no limit\)$' err
		grep -q '^pinion scan: 2 files: 1 done, 1 failed, 0 skipped, 0 cancelled$' err
		[ "$(cat out)" = "other:1:1: e1: …" ]
	done
	# Read as bytes while a rule finds something in them, and then for the other rule.
	scan --stats --file-timeout=1 -e '[^a]{3}' -e 'a(?:\x00\x00)*b+' file
	expect 2
	grep -qE '^pinion scan: file: its holes took more than 1 s: given up at byte [1-9][0-9]* of 8796093022208 \(--file-timeout=0: no limit\)$' err
	grep -qxF 'pinion scan: file: rule e1: only the first 10000 findings are shown (--max-findings-per-file)' err
	[ "$(wc -l <out)" = 10000 ]
	# Zeros that are no hole take the time they take.
	head -c 8M /dev/zero >zeros
	scan --file-timeout=0.000001 --direct=never -e '[^a]{3}' -e 'a(?:\x00\x00)*b+' zeros
	! grep 'its holes' err
}

@test "--sort=extent finds the same" {
	mkdir -p tree/{a,b}
	seq 1 2000 | while read -r i; do
		echo "needle $i" >"tree/a/$i"
	done
	ln -s ../a/7 tree/b/link
	: >tree/b/empty
	scan -F -e needle --sort=path tree
	expect 1
	mv out sorted
	# It ends where the order is chosen again, too.
	scan -F -e needle --sort=path --sort=extent --stats=json tree
	expect 1
	LC_ALL=C sort out | cmp <(LC_ALL=C sort sorted) -
	grep -q '"seen":2002' err
	scan -F -e needle --sort=extent --sort=path tree
	cmp sorted out
	scan -F -e needle --sort=places tree
	complains "places"
	pinion sum -r --sort=extent tree
	expect 0
	[ "$(wc -l <out)" = 2001 ]
}
