#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Rules of YARA with `pinion scan --rules`: what libyara finds in whole files are
# findings like all others. Row EX-51.
bats_require_minimum_version 1.5.0
load program

setup_file() {
	cd "$BATS_FILE_TMPDIR"
	for i in {1..9}; do
		printf 'alpha%0100000d' 0
	done >big
	printf 'betta betta' >>big
	awk 'BEGIN { for (i = 0; i < 1100000; i++) printf "ab" }' >many
	wait_until_old
}

setup() {
	enter_folder
	[[ $features == *+yara* ]] || skip "built without libyara"
	cat >words.yar <<-'END'
		rule two_words : tag {
		  meta:
		    description = "alpha and beta"
		  strings:
		    $a = "alpha"
		    $b = /be[t]{2}a/ nocase
		  condition:
		    $a and #b == 2
		}
	END
	printf 'x alpha\nBETTA betta\n' >both.txt
	printf 'x alpha\nBETTA\n' >one.txt
}

scan() {
	pinion scan "$@"
}

# Of `out` with -b: RULE PATH START-END, sorted.
found() {
	sed -E 's/^(.*):([0-9]+-[0-9]+): ([^ ]*): .*/\3 \1 \2/' out | LC_ALL=C sort
}

@test "each match of a rule that holds is a finding, with its place" {
	scan --rules=words.yar both.txt one.txt
	expect 1
	[ "$(cut -d: -f1-4 out)" = "both.txt:1:3: two_words
both.txt:2:1: two_words
both.txt:2:7: two_words" ]
	scan -b --redact=0 --rules=words.yar both.txt one.txt
	[ "$(cat out)" = "both.txt:2-7: two_words: alpha
both.txt:8-13: two_words: BETTA
both.txt:14-19: two_words: betta" ]
	# Status 0 where no rule holds.
	scan --rules=words.yar one.txt
	expect 0
	[ ! -s out ] && [ ! -s err ]
}

@test "matches that overlap or coincide: each place once" {
	cat >overlap.yar <<-'END'
		rule overlap {
		  strings:
		    $a = "aa"
		    $b = "aa" fullword
		    $c = "aaaa"
		    $d = { 61 61 [0-1] 2E }
		  condition: any of them
		}
	END
	printf ' aaaa.' >f
	scan -b --rules=overlap.yar f
	expect 1
	[ "$(found)" = "overlap f 1-3
overlap f 1-5
overlap f 2-4
overlap f 2-6
overlap f 3-5
overlap f 3-6" ]
}

@test "a rule without a match to show is one finding of the first byte" {
	cat >whole.yar <<-'END'
		private rule hidden { strings: $h = "alpha" condition: $h }
		rule small { condition: filesize < 20 }
		rule absent { strings: $z = "omega" condition: not $z }
		rule secretly { strings: $s = "alpha" private condition: $s and hidden }
		rule empty { condition: filesize == 0 }
	END
	: >empty.txt
	scan -b --rules=whole.yar both.txt one.txt empty.txt
	expect 1
	[ "$(found)" = "absent both.txt 0-1
absent empty.txt 0-0
absent one.txt 0-1
empty empty.txt 0-0
secretly both.txt 0-1
secretly one.txt 0-1
small empty.txt 0-0
small one.txt 0-1" ]
	scan --rules=whole.yar one.txt
	[ "$(head -1 out | cut -d: -f1-3)" = "one.txt:1:1" ]
}

@test "a global rule holds for its file; names of several files are told apart" {
	cat >only.yar <<-'END'
		global rule short_file { condition: filesize < 15 }
		rule twice { strings: $a = "alpha" condition: $a }
		rule lone { strings: $b = "BETTA" condition: $b }
	END
	mkdir other
	echo 'rule twice { strings: $a = "x alpha" condition: $a }' >'other/a b.yara'
	scan -b --rules=only.yar --rules='other/a b.yara' both.txt one.txt
	expect 1
	[ "$(found)" = "a_b:twice both.txt 0-7
a_b:twice one.txt 0-7
lone one.txt 8-13
only:twice one.txt 2-7
short_file one.txt 0-1" ]
	# Of two files of one name each has its number.
	echo 'rule twice { strings: $a = "alpha" condition: $a }' >other/only.yar
	scan -b --rules=only.yar --rules=other/only.yar one.txt
	expect 1
	[ "$(found)" = "lone one.txt 8-13
only.1:twice one.txt 2-7
only.2:twice one.txt 2-7
short_file one.txt 0-1" ]
	# A list of which no rule is left does not stop the others.
	printf '[[rules]]\nid = "none"\nregex = "(?:a{1,1000}){1,900}b"\n' >none.toml
	[[ $features == *+toml* ]] || return 0
	scan -b --rules=none.toml --rules=other/only.yar one.txt
	expect 1
	[ "$(found)" = "twice one.txt 2-7" ]
}

@test "whole files are searched at every window and worker count" {
	# A match over many windows, one at the end, conditions about the file.
	{
		head -c 700000 /dev/zero | tr '\0' 'a'
		printf 'BEGIN'
		head -c 300000 /dev/zero
		printf 'END'
		head -c 100000 /dev/zero | tr '\0' '\n'
		printf 'last'
	} >large
	mkdir tree
	for i in 1 2 3 4 5; do
		head -c $((i * 70000)) large >tree/$i
	done
	mv large tree
	cat >large.yar <<-'END'
		rule far { strings: $f = { 42 45 47 49 4E [300000] 45 4E 44 } condition: $f at 700000 }
		rule ends { strings: $e = "last" condition: $e at filesize - 4 and filesize == 1100012 }
		rule zeros { condition: filesize > 300000 and uint8(299999) == 0x61 }
	END
	printf '%s\n' 'ends tree/large 1100008-1100012' 'far tree/large 700000-1000008' \
		'zeros tree/5 0-1' 'zeros tree/large 0-1' >expected
	while read -r window workers; do
		scan -b --rules=large.yar --window="$window" --workers="$workers" tree
		expect 1
		found | cmp expected -
	done < <(each_of "4K 64K 1M" "1 2 4")
	scan --rules=large.yar tree/large
	[ "$(cut -d: -f1-4 out)" = "tree/large:1:1: zeros
tree/large:1:700001: far
tree/large:100001:1: ends" ]
	# Of a sparse file, whose holes are zeros.
	printf 'BEGIN' >sparse
	truncate -s 300005 sparse
	printf 'END' >>sparse
	truncate -s 2M sparse
	echo 'rule far { strings: $f = { 42 45 47 49 4E [300000] 45 4E 44 00 } condition: $f }' >sparse.yar
	scan -b --rules=sparse.yar sparse
	[ "$(found)" = "far sparse 0-300009" ]
}

@test "findings are those of yara" {
	command -v yara >/dev/null || skip "needs yara"
	mkdir tree
	cp "$top_srcdir"/tests/cli/*.bats tree/
	cp /bin/true /bin/ls tree/
	cat >many.yar <<-'END'
		import "elf"
		import "hash"
		import "math"
		rule words { strings: $a = "scan" nocase $b = "expect" fullword $c = /find[a-z]{0,8}\b/ condition: 2 of them }
		rule twice { strings: $a = "true" wide ascii condition: $a }
		rule program { strings: $m = { 7F 45 4C 46 } condition: $m at 0 and elf.type == elf.ET_DYN }
		rule mixed { condition: math.entropy(0, filesize) > 5.5 }
		rule xored { strings: $x = "pinion" xor(1-255) condition: $x }
		rule base { strings: $x = "This program" base64 condition: $x }
		private rule bats { strings: $r = "#!/usr/bin/env bats" condition: $r at 0 }
		rule refers { strings: $t = "@test" condition: bats and #t > 3 }
	END
	# RULE PATH, then 0xSTART:LENGTH:$NAME: TEXT of each match.
	yara -w -s -L -r many.yar tree | perl -ne '
		if (/^0x([0-9a-f]+):(\d+):(\$\w*):/) {
			my $place = "$rule " . hex($1) . "-" . (hex($1) + $2);
			print "$place $3\n" unless $seen{$place}++;
			$shown{$rule} = 1;
		} elsif (/^(\w+ tree\S+)$/) {
			$rules{$rule = $1} = 1;
		}
		END { print map { "$_ 0-1 none\n" } grep { !$shown{$_} } keys %rules }' |
		LC_ALL=C sort -u >expected
	[ "$(wc -l <expected)" -gt 1000 ]
	scan --format=json --max-findings-per-file=0 --rules=many.yar tree
	expect 1
	jq -r '"\(.rule) \(.path) \(.start)-\(.end) \(.string // "none")"' out | LC_ALL=C sort |
		cmp expected -
}

@test "with rules of other kinds, both search the same bytes" {
	scan -b -F -e alpha -e omega --rules=words.yar both.txt one.txt
	expect 1
	[ "$(found)" = "e1 both.txt 2-7
e1 one.txt 2-7
two_words both.txt 14-19
two_words both.txt 2-7
two_words both.txt 8-13" ]
	# A limit that ends pinion's rules ends none of YARA's.
	printf '%08000d' 0 | tr 0 w >many
	printf 'alpha betta betta' >>many
	scan -b -F -e w --max-findings-per-file=1 --window=4K --rules=words.yar many
	expect 1
	[ "$(found)" = "e1 many 0-1
two_words many 8000-8005" ]
	grep -q 'many: rule two_words' err
	# By its first words, whatever the name.
	{
		echo '// a comment'
		echo '/* and another */'
		cat words.yar
	} >unnamed
	scan -b --rules=unnamed both.txt
	expect 1
	[ "$(found | wc -l)" = 3 ]
	[[ $features == *+hyperscan* ]] || skip "no regular expressions"
	printf 'rule\tal.ha\n' >own.rules
	scan -b --rules=own.rules --rules=words.yar one.txt
	[ "$(found)" = "rule one.txt 2-7" ]
}

@test "formats, counts, baselines and words that allow know them" {
	for format in json csv gitlab; do
		scan --format=$format --rules=words.yar both.txt
		expect 1
		[ "$(grep -o two_words out | wc -l)" -ge 3 ]
	done
	scan --format=json --rules=words.yar both.txt
	[ "$(jq -r '[.rule, .start, .end, .line, .column, .string] | join(" ")' out)" = \
		'two_words 2 7 1 3 $a
two_words 8 13 2 1 $b
two_words 14 19 2 7 $b' ]
	cp out known
	scan --format=sarif --rules=words.yar both.txt
	[ "$(jq -c '.runs[0].tool.driver.rules' out)" = \
		'[{"id":"two_words","shortDescription":{"text":"alpha and beta"}}]' ]
	[ "$(jq -r '.runs[0].results[] | .ruleId + " " +
		(.locations[0].physicalLocation.region | "\(.startLine):\(.startColumn)-\(.endColumn)")' out)" = \
		"two_words 1:3-8
two_words 2:1-6
two_words 2:7-12" ]
	[ "$(jq -c '[.runs[0].results[].properties]' out)" = \
		'[{"string":"$a"},{"string":"$b"},{"string":"$b"}]' ]
	scan --baseline=known --rules=words.yar both.txt
	expect 0
	[ ! -s out ]
	scan --count --rules=words.yar both.txt one.txt
	[ "$(cat out)" = both.txt:3 ]
	scan -l --rules=words.yar both.txt one.txt
	[ "$(cat out)" = both.txt ]
	printf 'alpha # pinion:allow\nbetta\nbetta\n' >allowed
	scan --rules=words.yar allowed
	[ "$(cut -d: -f1-3 out)" = "allowed:2:1
allowed:3:1" ]
	scan --max-findings-per-file=2 --sort=path --stats=json --rules=words.yar both.txt
	[ "$(cut -d: -f1-3 out)" = "both.txt:1:3
both.txt:2:1" ]
	[ "$(tail -1 err | jq -c .yara)" = '{"searched":1,"larger":0,"failed":0}' ]
}

@test "a finding has the name of its string, the first of several" {
	cat >names.yar <<-'END'
		rule first { strings: $y = "alpha" $x = /al.ha/ $ = "omega" condition: any of them }
		rule second { strings: $x = "alpha" condition: $x }
		rule whole { condition: filesize == 11 }
	END
	printf 'alpha omega' >f
	scan --format=json --rules=names.yar -F -e alpha f
	expect 1
	[ "$(jq -r '[.rule, .start, .string // "none"] | join(" ")' out | LC_ALL=C sort)" = \
		'e1 0 none
first 0 $y
first 6 $
second 0 $x
whole 0 none' ]
	scan --format=sarif --rules=names.yar -F -e alpha f
	[ "$(jq -r '.runs[0].results[] | [.ruleId, .properties.string // "none"] | join(" ")' out |
		LC_ALL=C sort)" = 'e1 none
first $
first $y
second $x
whole none' ]
	jq -e '.runs[0].results[] | select(.ruleId == "whole") | has("properties") | not' out
}

@test "a file without rules is named, and nothing is searched" {
	printf '// nothing\n' >empty.yar
	: >really.yar
	printf 'private rule a { condition: true }\n' >private.yar
	for strict in "" --strict-rules; do
		scan $strict --rules=words.yar --rules=empty.yar --rules=really.yar --rules=private.yar both.txt
		expect 2
		[ ! -s out ]
		[ "$(cat err)" = "pinion scan: empty.yar: has no rules
pinion scan: really.yar: has no rules
pinion scan: private.yar: has no rules" ]
	done
	# As files of other kinds are.
	printf '# nothing\n' >empty.rules
	scan --rules=words.yar --rules=empty.rules both.txt
	complains 'empty.rules: has no rules'
	# What a file includes counts as its own.
	echo 'include "words.yar"' >including.yar
	scan -c --rules=including.yar both.txt
	[ "$(cat out)" = both.txt:3 ]
}

@test "external variables have the types of their values" {
	cat >types.yar <<-'END'
		rule whole { condition: number == -7 and not off and on }
		rule part { condition: ratio > 2.49 and ratio < 2.51 and less < 0.0 }
		rule text { condition: word contains "a=b" and empty == "" and version == "1.2.3" }
	END
	scan -b --yara-define=number=-7 --yara-define on=true --yara-define=off=false \
		--yara-define=ratio=2.5 --yara-define=less=-.5 --yara-define=word=xa=b \
		--yara-define=empty= --yara-define=version=1.2.3 --rules=types.yar one.txt
	complains 'types.yar:2: '
	scan -b --yara-define=number=-7 --yara-define on=true --yara-define=off=false \
		--yara-define=ratio=2.5 --yara-define=less=-0.5 --yara-define=word=xa=b \
		--yara-define=empty= --yara-define=version=1.2.3 --rules=types.yar one.txt
	expect 1
	[ "$(found)" = "part one.txt 0-1
text one.txt 0-1
whole one.txt 0-1" ]
	# The last integers that there are; True is a string.
	echo 'rule most { condition: a == 9223372036854775807 and b < -9223372036854775806 and c == "True" }' >most.yar
	scan --yara-define=a=9223372036854775807 --yara-define=b=-9223372036854775808 \
		--yara-define=c=True --rules=most.yar one.txt
	expect 1
	# A variable that no rule names, and one that is missing.
	scan --yara-define=unused=1 --rules=words.yar both.txt
	expect 1
	scan --yara-define=a=1 --yara-define=c=x --rules=most.yar one.txt
	complains 'most.yar:1: undefined identifier "b"; --yara-define=b=VALUE defines an external variable'
}

@test "external variables that are bad are lines, and status 2" {
	for bad in a =1 9a=1 a-b=1 'a b=1' ''; do
		scan --yara-define="$bad" --rules=words.yar both.txt
		complains "--yara-define: '$bad' is not NAME=VALUE"
	done
	scan --yara-define=a=1 --yara-define=a=2 --rules=words.yar both.txt
	complains '--yara-define: a is defined twice'
	scan --yara-define=a=9223372036854775808 --rules=words.yar both.txt
	complains '--yara-define: a=9223372036854775808 is beyond the numbers of YARA'
	scan --yara-define=a=1 -F -e alpha both.txt
	complains '--yara-define is about rules of YARA, and there are none'
	# A run that goes on has the same.
	echo 'rule deep { condition: depth > 1 }' >deep.yar
	scan --checkpoint=log --yara-define=depth=2 --rules=deep.yar both.txt
	expect 1
	scan --checkpoint=log --resume --yara-define=depth=1 --rules=deep.yar both.txt
	expect 2
	grep -q yara-define err
	pinion rules --yara-define=depth=2 check deep.yar
	expect 0
	[ "$(cat out)" = "deep.yar: 1 rules" ]
	pinion rules --rules=deep.yar --yara-define=depth=2 test both.txt
	expect 1
	[ "$(found)" = "deep both.txt 0-1" ]
	pinion rules check deep.yar
	expect 2
	grep -q 'deep.yar:1: undefined identifier "depth"; --yara-define=depth=VALUE' err
}

@test "rules that do not compile are lines, and status 2" {
	printf 'rule a {\n condition:\n  $x\n}\n' >bad.yar
	scan --rules=bad.yar both.txt
	complains 'bad.yar:4: undefined string "$x"'
	printf 'rule a {\n condition:\n  filename == "x"\n}\n' >bad.yar
	scan --rules=bad.yar both.txt
	complains 'bad.yar:3: undefined identifier "filename"; --yara-define=filename=VALUE defines an external variable'
	printf 'rule a { condition: true }\nrule a { condition: true }\n' >bad.yar
	scan --rules=bad.yar both.txt
	complains 'bad.yar:2: duplicated identifier "a"'
	printf '// nothing\n' >bad.yar
	scan --rules=bad.yar both.txt
	complains 'bad.yar: has no rules'
	printf 'private rule a { condition: true }\n' >bad.yar
	scan --rules=bad.yar both.txt
	complains 'bad.yar: has no rules'
	scan --rules=none.yar both.txt
	complains 'none.yar: no such file'
	head -c 4096 /dev/urandom >bad.yar
	scan --rules=bad.yar both.txt
	complains 'bad.yar: is no text'
	# Alternatives that libyara takes long to put together.
	for i in $(seq 200); do
		echo "rule r$i { strings: \$a = /($(seq -s '|' -f "w$i-%g" 400))/ condition: \$a }"
	done >heavy.yar
	scan --max-compile-time=0.002 --rules=heavy.yar both.txt
	complains 'rules take longer than 0.002 s to compile'
	scan --max-rules=1 --rules=words.yar --rules=words.yar both.txt
	complains 'words.yar: more than 1 rules'
	scan -A1 --rules=words.yar both.txt
	complains '-A, -B and -C know no rules of YARA'
	scan --print-patterns --rules=words.yar
	complains 'rules of YARA are more than patterns'
}

@test "includes are found beside their file, and refused with a checkpoint" {
	mkdir -p rules/more
	echo 'include "more/inner.yar"' >rules/all.yar
	echo 'include "../../words.yar"' >rules/more/inner.yar
	scan -b --rules=rules/all.yar both.txt
	expect 1
	[ "$(found | wc -l)" = 3 ]
	scan --checkpoint=log --rules=rules/all.yar both.txt
	complains 'rules/all.yar:1: includes more/inner.yar, whose changes --checkpoint would not see'
	scan --checkpoint=log --rules=words.yar both.txt
	expect 1
	cp out first
	scan --checkpoint=log --resume --rules=words.yar both.txt
	expect 1
	cmp first out
	sed -i s/alpha/omega/ words.yar
	scan --checkpoint=log --resume --rules=words.yar both.txt
	expect 2
	echo 'include "none.yar"' >>rules/more/inner.yar
	scan --rules=rules/all.yar both.txt
	complains 'rules/more/inner.yar:2: cannot include none.yar: no such file'
	echo 'rule two' >rules/more/inner.yar
	scan --rules=rules/all.yar both.txt
	complains 'rules/more/inner.yar:1: syntax error'
	# In a circle, which libyara leaves with memory of its own.
	! is_sanitized || return 0
	echo 'include "inner.yar"' >rules/more/inner.yar
	scan --rules=rules/all.yar both.txt
	expect 2
	grep -q 'rules/more/inner.yar:1: ' err
}

@test "a run that goes on searches the file that it was in from its start" {
	link_made big
	scan -b --rules=words.yar -F -e alpha --window=64K --workers=1 --checkpoint=log --checkpoint-interval=0 big
	expect 1
	[ "$(wc -l <out)" = 20 ]
	cp out plain
	cp log whole
	for cut in 2 4 6; do
		head -c $(($(stat -c %s whole) * cut / 8)) whole >log
		scan -b --rules=words.yar -F -e alpha --window=64K --checkpoint=log --resume big
		expect 1
		cmp out plain
	done
}

@test "larger files are counted, and searched for other rules" {
	printf '%05000d alpha betta betta' 0 >large
	scan -b --yara-max-filesize=4K -F -e alpha --rules=words.yar both.txt large
	expect 1
	[ "$(found | grep large)" = "e1 large 5001-5006" ]
	[ "$(found | grep -c two_words)" = 3 ]
	[ "$(cat err)" = "pinion scan: 1 file not searched for YARA rules: larger than --yara-max-filesize" ]
	scan --stats=json --yara-max-filesize=5017 --rules=words.yar both.txt large
	[ "$(grep -o '"yara":{[^}]*}' err)" = '"yara":{"searched":1,"larger":1,"failed":0}' ]
	scan --stats=json --yara-max-filesize=5018 --rules=words.yar both.txt large
	[ "$(grep -o '"yara":{[^}]*}' err)" = '"yara":{"searched":2,"larger":0,"failed":0}' ]
	# The windows of a file together.
	scan --window=4K --yara-max-filesize=5017 --rules=words.yar large
	expect 0
	scan --stats --yara-max-filesize=5017 --rules=words.yar both.txt large
	grep -qx 'pinion scan: YARA: 1 searched, 1 larger than --yara-max-filesize, 0 failed' err
	scan --yara-max-filesize=0 --rules=words.yar both.txt
	expect 2
	# The standard is 64 MiB.
	echo 'rule starts { condition: filesize > 1000000 }' >starts.yar
	truncate -s 64M most
	cp --sparse=always most more
	truncate -s +1 more
	scan -b --rules=starts.yar most more
	[ "$(found)" = "starts most 0-1" ]
	scan --binary=skip -b --rules=words.yar both.txt /bin/true
	[ "$(found | wc -l)" = 3 ]
}

@test "too many matches, too long ones, unreadable parts: each is a line" {
	link_made many
	echo 'rule crowd { strings: $a = "ba" condition: $a }' >crowd.yar
	scan -c --rules=crowd.yar many
	expect 2
	[ "$(cat out)" = many:10000 ]
	grep -qxF 'pinion scan: many: a string of the YARA rule crowd has more matches than libyara counts' err
	grep -q 'many: rule crowd: only the first 10000 findings' err
	# Such a file is not done for a run that goes on.
	for resume in "" --resume; do
		scan --checkpoint=log $resume --max-findings-per-file=0 -c --rules=crowd.yar many
		expect 2
		[ "$(cat out)" = many:1000000 ]
		grep -q 'many: a string of the YARA rule crowd' err
	done
	# 700 matches, of which 511 are 512 MiB together.
	{
		printf '%0703d' 0 | tr 0 Q
		head -c 1048576 /dev/zero | tr '\0' x
		printf 'END!'
	} >long
	echo 'rule long { strings: $f = { 51 51 51 51 [0-2000000] 45 4E 44 21 } condition: $f }' >long.yar
	scan -b --stats=json --rules=long.yar long
	expect 1
	[ "$(wc -l <out)" = 511 ]
	[ "$(tail -1 out | cut -d: -f2)" = 510-1049283 ]
	grep -q 'long: rule long: ' err
	scan -c --max-findings-per-file=0 --rules=long.yar long
	[ "$(cat out)" = long:700 ]
	command -v strace >/dev/null || skip "needs strace"
	! is_sanitized || skip "sanitizers do without ptrace"
	strace -qq -e trace=none true 2>/dev/null || skip "strace may not trace here"
	printf 'alpha betta betta%020000d' 0 >bad
	for own in "-F -e alpha" ""; do
		status=0
		strace -f -qq -o /dev/null -P "$PWD/bad" -e trace=preadv2,pread64 \
			-e inject=preadv2,pread64:error=EIO:when=3+ "$PINION" scan -b --io=fallback \
			--window=4K --workers=1 $own --rules=words.yar "$PWD/bad" >out 2>err || status=$?
		expect 2
		[ "$(found)" = "${own:+e1 $PWD/bad 0-5}" ]
		grep -q 'bad: is not searched for YARA rules, as some of it is missing$' err
		grep -q 'bad: bytes [0-9]* to 20016 could not be read: ' err
	done
}

@test "entries of archives, blobs and decoded files" {
	[[ $features == *+libarchive* ]] || skip "built without archives"
	tar -cf a.tar both.txt one.txt
	scan -z -b --rules=words.yar a.tar
	expect 1
	[ "$(found)" = 'two_words a.tar!both.txt 14-19
two_words a.tar!both.txt 2-7
two_words a.tar!both.txt 8-13' ]
	# Its own words for other forms of text; decoded text adds nothing.
	printf '\xff\xfe' >wide.txt
	iconv -f ascii -t utf-16le both.txt >>wide.txt
	echo 'rule w { strings: $a = "alpha" wide ascii condition: $a }' >wide.yar
	scan -b --decode --rules=wide.yar wide.txt both.txt
	[ "$(found)" = "w both.txt 2-7
w wide.txt 6-16" ]
	command -v git >/dev/null || skip "needs git"
	git init -q repo
	cp both.txt one.txt repo
	git -C repo add .
	git -C repo -c user.name=N -c user.email=e@example.org commit -qm one
	scan --git=repo -b --rules=words.yar
	expect 1
	[ "$(wc -l <out)" = 3 ]
	grep -q 'both.txt:8-13: two_words: ' out
}

@test "a rule that takes too long costs its file" {
	cat >slow.yar <<-'END'
		rule slow { strings: $a = "SLOW" condition: $a and for all i in (0..100000000000): (i >= 0) }
		rule quick { strings: $a = "alpha" condition: $a }
	END
	echo 'SLOW alpha' >slow.txt
	scan -b --file-timeout=1 --rules=slow.yar both.txt slow.txt
	expect 2
	[ "$(head -1 err)" = "pinion scan: slow.txt: the YARA rules took longer than 1 s (--file-timeout)" ]
	[ "$(found)" = "quick both.txt 2-7" ]
}

@test "a libyara that cannot be loaded is one line" {
	mkdir broken
	for version in 9 10; do
		echo none >broken/libyara.so.$version
	done
	LD_LIBRARY_PATH=$PWD/broken scan --rules=words.yar both.txt
	complains 'words.yar: YARA rules need libyara: '
	# Nothing else asks for it.
	LD_LIBRARY_PATH=$PWD/broken scan -F -e alpha both.txt
	expect 1
}

@test "pinion rules lists, counts and explains them" {
	echo 'rule plain { condition: true }' >>words.yar
	pinion rules --rules=words.yar list
	expect 0
	[ "$(cat out)" = "two_words  alpha and beta
plain" ]
	pinion rules check words.yar
	expect 0
	[ "$(cat out)" = "words.yar: 2 rules" ]
	pinion rules --rules=words.yar explain two_words
	expect 0
	[ "$(cat out)" = "two_words
  alpha and beta
  A rule of YARA, from words.yar." ]
	pinion rules --rules=words.yar test one.txt
	expect 1
	[ "$(found)" = "plain one.txt 0-1" ]
}
