#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Findings as `pinion scan` writes them: places, formats, parts left out, and
# where it goes. Which findings there are is for scan.bats.
bats_require_minimum_version 1.5.0
load program

scan() {
	pinion scan "$@"
}

# In two parts, so that no scanner takes this file for a leak.
key=AKIA
key+=QHXZKWMVRTBPLMW

needs() {
	case $1 in
	rules) [[ $features == *+hyperscan* ]] || skip "built without hyperscan" ;;
	jq) command -v jq >/dev/null || skip "jq is not installed" ;;
	esac
}

# Lines of 0 to 199 bytes, some with a finding, over several windows of 4K.
make_lines() {
	awk 'BEGIN {
		srand(7)
		for (i = 0; i < 900; i++) {
			n = int(rand() * 200)
			s = sprintf("%" n "s", "")
			print (rand() < 0.3 ? s "needle" i " needle" : s)
		}
		printf "last needle"
	}' >lines
}

@test "lines and columns are those of awk, at every window" {
	make_lines
	LC_ALL=C awk '{ at = 0; rest = $0
		while ((n = index(rest, "needle")) > 0) {
			at += n; print "lines:" NR ":" at; rest = substr(rest, n + 1)
		} }' lines >expected
	[ "$(wc -l <expected)" -gt 400 ]
	local window workers
	while read -r window workers; do
		scan -F -e needle --window=$window --workers=$workers lines
		expect 1
		sed 's/: e1: n…$//' out | cmp expected -
	done < <(each_of "4K 64K 1M" "1 4")
	scan -F -e needle --window=4K --format=json lines
	[ "$(grep -cE '"start":([0-9]+),"end":[0-9]+,"line":[0-9]+,"column":[0-9]+,"end_line":[0-9]+,"end_column":[0-9]+,"fingerprint":"[0-9a-f]{32}"}$' out)" = "$(wc -l <expected)" ]
}

@test "a finding over several lines, and columns in bytes" {
	needs rules
	printf 'ä one\ntwo\nthree x\n' >file
	scan -e 'one\ntwo\nth' --format=json file
	expect 1
	grep -qF '"start":3,"end":13,"line":1,"column":4,"end_line":3,"end_column":3,' out
	# Without an upper bound, over the borders of windows of 4K.
	{
		printf 'x\n%5000s\nbegin' ''
		printf '%9000s\n' '' ''
		printf 'end\n'
	} >file
	scan -e '(?s)begin.*end' --window=4K file
	[ "$(cat out)" = 'file:3:1: e1: …' ]
}

@test "-b shows offsets" {
	printf 'a\nneedle' >file
	scan -b -F -e needle file
	[ "$(cat out)" = 'file:2-8: e1: n…' ]
}

@test "--redact hides as much of a finding as it says" {
	printf 'x 0123456789 y' >file
	local percent shown
	while read -r percent shown; do
		scan -F -e 0123456789 "--redact$percent" file
		expect 1
		[ "$(cat out)" = "file:1:3: e1: $shown" ]
	done <<-'END'
		=0 0123456789
		=1 012345678…
		=50 01234…
		=99 …
		=100 …
	END
	scan -F -e 0123456789 --redact file
	[ "$(cat out)" = 'file:1:3: e1: …' ]
	printf 'a\e[31m\\\xffz' >file
	scan -F -e $'a\e[31m\\\xffz' --redact=0 file
	[ "$(cat out)" = 'file:1:1: e1: a\x1B[31m\\\xFFz' ]
	scan -F -e $'a\e[31m' --redact=0 --format=json file
	grep -qF '"match":"a\\x1B[31m"}' out
	scan -F -e a --redact=101 file
	complains 'not between 0 and 100'
}

@test "a word on its line allows a finding of a rule, and no other" {
	needs rules
	{
		echo "${key}A # pinion:allow"
		echo "${key}B"
		echo "// gitleaks:allow ${key}C"
		echo "pinion:allow"
		echo "${key}D pinion:alow"
		printf '%s%4090spinion:allow\n' "${key}E" ''
		printf '%s%4091spinion:allow\n' "${key}F" ''
	} >file
	local window
	for window in 4K 1M; do
		scan --redact=0 --window=$window --stats file
		expect 1
		[ "$(cut -d: -f2,5 out)" = "$(printf '2: %s\n5: %s\n7: %s' "${key}B" "${key}D" "${key}F")" ]
		grep -qx 'pinion scan: not shown: 0 of the baseline, 3 allowed on their lines' err
	done
	scan --no-allow file
	[ "$(wc -l <out)" = 6 ]
	scan -e 'AKIA[A-Z]{16}' file
	[ "$(wc -l <out)" = 6 ]
}

@test "a baseline leaves out findings that have moved, in JSON and in SARIF" {
	needs rules
	printf '%s\n' "${key}A" "${key}B" >file
	local format
	for format in json sarif; do
		printf '%s\n' "${key}A" "${key}B" >file
		scan --format=$format --output=base file
		expect 1
		[ ! -s out ]
		printf 'new line\n\n%s\nx = %s\n%s\n' "${key}B" "${key}A" "${key}C" >file
		scan --baseline=base --stats ./file
		expect 1
		[ "$(cat out)" = './file:5:1: aws-access-key-id: AKIA…' ]
		grep -qx 'pinion scan: not shown: 2 of the baseline, 0 allowed on their lines' err
	done
	# Of another file it is another finding, and nothing is found is status 0.
	cp file other
	scan --baseline=base other
	[ "$(wc -l <out)" = 3 ]
	scan --format=json --output=base file other
	scan --baseline=base file other
	expect 0
	: >empty
	scan --baseline=empty file
	[ "$(wc -l <out)" = 3 ]
	sed -E 's/("fingerprint":")([^"]*)/\1\U\2/; 1s/^/\xef\xbb\xbf/' base >upper
	grep -q '"fingerprint":"[0-9A-F]*"' upper
	scan --baseline=upper file other
	expect 0
	scan --baseline=file file
	complains 'file: is no baseline: no object at byte 0'
	scan --baseline=absent file
	complains 'absent: no such file'
}

@test "another private key in a file of a baseline is new" {
	needs rules
	needs jq
	local dashes=----- rest=TWFueSBiaXRzIG9mIG5vIGtleSBhdCBhbGw
	pem() { printf '%s\n' "${dashes}BEGIN RSA PRIVATE KEY$dashes" "MII$1$rest" "${dashes}END"; }
	pem EpA >keys.pem
	scan --format=json keys.pem
	expect 1
	cp out base
	scan --baseline=base keys.pem
	expect 0
	pem EoQ >>keys.pem
	scan --baseline=base keys.pem
	expect 1
	[ "$(cut -d: -f1-4 out)" = "keys.pem:4:1: pem-private-key" ]
	scan --format=json keys.pem
	[ "$(jq -r '[.line, .end_line] | join("-")' out | tr '\n' ' ')" = "1-2 4-5 " ]
	# A header that code writes, or a placeholder follows, is no key.
	sed "s/$rest/.../" keys.pem >placeholders
	scan placeholders
	expect 0
}

@test "what is no baseline is refused, in little time" {
	printf a >file
	local text reason
	while IFS='|' read -r text reason; do
		printf "$text" >base
		scan -F -e a --baseline=base file
		complains "base: is no baseline: $reason"
	done <<-'END'
		{"foo":1}|an object neither of --format=json nor of sarif ends at byte 8
		{"runs":{}}|an object neither
		[]|no object at byte 0
		\xef{}|no JSON at byte 1
		{"foo":|an end before that of its JSON at byte 7
		{"foo" 1|no JSON at byte 7
		{"foo":1]|no JSON at byte 8
		{"a\nb":1}|no JSON at byte 3
		{"fingerprint":"xx"}|a fingerprint that is not 32 hexadecimal digits at byte 18
		{"fingerprint":[]}|a fingerprint that is not 32 hexadecimal digits at byte 15
		{"runs":[{"results":[{"ruleId":"x"}]}]}|its results have no fingerprint pinion/v1
	END
	{
		printf '{"version":"2.1.0","runs":'
		head -c 1M /dev/zero | tr '\0' '['
	} >base
	scan -F -e a --baseline=base file
	complains 'base: is no baseline: more than 64 levels at byte 89'
	yes '{"a":' | head -n 100000 >base
	scan -F -e a --baseline=base file
	complains 'base: is no baseline: more than 64 levels'
	scan -F -e a --format=gitlab --output=base file
	scan -F -e a --baseline=base file
	complains 'base: is no baseline: an object neither'
	# Notes are lines of a baseline, and SARIF may have no results.
	printf '%s\n' '{"path":"a","unread_start":0,"unread_end":1,"errno":5}' \
		'{"rule":"e1","path":"a","limit":"findings","findings":1,"searched_to":2}' \
		'{"version":"2.1.0","runs":[]}' >base
	scan -F -e a --baseline=base file
	expect 1
	mkfifo pipe
	scan -F -e a --baseline=pipe --file-timeout=0.1 file
	complains 'pipe: no data for 0.1 s (--file-timeout)'
}

@test "names in a baseline are no fingerprints" {
	needs rules
	local print='"fingerprint":"00112233445566778899aabbccddeeff"'
	printf '%s\n' "${key}A" >"$print"
	scan --format=json --output=base ./*
	scan --baseline=base ./*
	expect 0
	[ "$(grep -co 'fingerprint' base)" = 1 ]
}

@test "-l and --count: files with findings, and their number" {
	printf 'a\na\n' >two
	printf 'b\n' >none
	printf 'a' >$'o\ne'
	mkdir tree && mv two none o* tree
	scan -F -e a -l tree
	expect 1
	[ "$(sort out)" = "$(printf '%s\n' 'tree/o\ne' tree/two)" ]
	scan -F -e a -c tree
	expect 1
	[ "$(sort out)" = "$(printf '%s\n' 'tree/o\ne:1' tree/two:2)" ]
	scan -F -e z -l tree
	expect 0
	[ ! -s out ]
	scan -F -e z -l --format=json tree
	complains 'leave --format out'
	scan -F -e z -l -c tree
	complains '-l shows files, -c'
	# One is enough: the rest is not read.
	yes a | head -c 64M >large
	scan -F -e a -l --stats --workers=1 --window=1M large
	[ "$(cat out)" = large ]
	[ "$(amount_of 'findings: [0-9]*; \([0-9.]* [kMG]B\) (holes.*')" -lt 10000000 ]
}

@test "colours: when asked for, and never where there is no terminal" {
	printf 'a' >$'f\e'
	scan -F -e a ./f*
	[ "$(cat out)" = './f\x1B:1:1: e1: …' ]
	scan -F -e a --color ./f*
	[ "$(cat out)" = $'\e[35m./f\\x1B\e[0m:\e[32m1:1\e[0m: \e[1;31me1\e[0m: …' ]
	scan -F -e a --color=never ./f*
	! grep -q $'\e' out
	scan -F -e a --color=some ./f*
	complains 'auto, always, never'
	command -v script >/dev/null || skip "no script(1)"
	local shown
	for shown in "TERM=xterm:yes" "TERM=xterm NO_COLOR=1:no" "TERM=dumb:no" "TERM=xterm NO_COLOR=:yes"; do
		script -qec "env -u NO_COLOR ${shown%:*} $PINION scan -F -e a ./f*" /dev/null >out </dev/null || true
		case ${shown##*:} in
		yes) grep -qF $'\e[32m1:1\e[0m' out ;;
		no) ! grep -q $'\e' out ;;
		esac
	done
}

@test "--output replaces a file when all is written, and only then" {
	printf 'a' >file
	printf old >report
	chmod 640 report
	ln -s report link
	scan -F -e a --output=link file
	expect 1
	[ ! -s out ]
	[ "$(cat report)" = 'file:1:1: e1: …' ]
	[ -L link ] && [ "$(stat -c %a report)" = 640 ]
	# Nothing found is a report, too; a bad pattern is none.
	scan -F -e z --output=report file
	expect 0
	[ ! -s report ]
	printf old >report
	scan -F -e a --output=report absent/
	expect 2
	scan -F -e a --output=report --workers=0 file
	expect 2
	printf old >report
	scan -F -e a --output=absent/report file
	complains 'absent/report: no such file'
	scan -F -e a --output=. file
	complains '.: is a directory'
	[ "$(ls)" = "$(printf '%s\n' err file link out report)" ]
	scan -F -e a --output=/dev/stdout file
	[ "$(cat out)" = 'file:1:1: e1: …' ]
	scan -F -e a --output=- file
	[ "$(cat out)" = 'file:1:1: e1: …' ]
	[ ! -e ./- ]
}

@test "--output: no link without a file, no file of --trace, the owner of old" {
	printf 'a' >file
	ln -s nowhere dangling
	ln -s loop loop
	scan -F -e a --output=dangling file
	complains 'dangling: is a link that leads to no file'
	scan -F -e a --output=loop file
	complains 'loop: symbolic link loop'
	[ -L dangling ] && [ -L loop ]
	mkdir folder && ln -s ../folder folder/here
	printf old >report
	ln -s report link
	ln report hard
	local pair
	for pair in "new new" "new ./folder/../new" "folder/x folder/here/x" "report link" "hard link"; do
		scan -F -e a --output="${pair% *}" --trace="${pair#* }" file
		complains "--output and --trace would write the same file: ${pair% *}"
	done
	[ ! -e new ] && [ "$(cat report)" = old ]
	for pair in metrics metrics.15; do
		PINION_METRICS_FILE="$PWD/metrics" scan -F -e a --output="$pair" file
		complains "--output would replace $pair, which is for the metrics page"
		[ ! -e "$pair" ]
	done
	[ "$(id -u)" = 0 ] || return 0
	chown 12345:12346 report
	chmod 640 report
	scan -F -e a --output=report file
	[ "$(stat -c %u:%g:%a report)" = 12345:12346:640 ]
	[ "$(cat report hard)" = 'file:1:1: e1: …
old' ]
}

@test "--output: its own file is not searched, and a pipe needs a reader" {
	mkdir t
	printf 'needle\n' | tee t/found t/out.txt >/dev/null
	scan --output=t/out.txt -F -e needle t
	expect 1
	[ "$(cat t/out.txt)" = "t/found:1:1: e1: n…" ]
	grep -qx 'pinion scan: t/out.txt: --output writes there: it is not searched' err
	mkfifo pipe
	# A reader that comes late: the command waits two seconds for one.
	(sleep 0.3; cat pipe >got) 3>&- &
	local reader=$!
	scan --output=pipe -F -e needle t/found
	expect 1
	wait $reader
	[ "$(cat got)" = "t/found:1:1: e1: n…" ]
	scan --output=pipe -F -e needle t/found
	expect 2
	grep -qx 'pinion scan: pipe: is a pipe that no process reads: start its reader first' err
}

@test "--output: a signal leaves the old file" {
	printf 'a' >file
	printf old >report
	stop_while_fed file scan -F -e a --output=report
	expect 3
	[ "$(cat report)" = old ]
	! ls report.* 2>/dev/null
}

@test "--output: a full disk is named, and the old file stays" {
	[ -c /dev/full ] || skip "no /dev/full"
	printf 'a' >file
	scan -F -e a --output=/dev/full file
	expect 2
	grep -q '^pinion scan: /dev/full: no space left' err
}

@test "--output: past ulimit -f a line says so, and the old file stays" {
	seq -f 'a%05g' 100 >file
	printf old >report
	local where
	for where in "--output=report" ""; do
		(
			ulimit -f 1
			scan -F -e a $where file
			expect 2
			grep -q '^pinion scan: .*: too large for a file: .*ulimit -f' err
		)
		[ "$(cat report)" = old ]
	done
	(
		ulimit -f 1
		scan -F -e z --trace=report file
		expect 2
		grep -q '^pinion scan: report: too large for a file: ' err
	)
	[ "$(cat report)" = old ]
}

@test "--stats=json: each path seen is counted once, by what became of it" {
	needs jq
	mkdir tree
	printf 'a' >tree/file
	printf 'a # x' >tree/other
	mkfifo tree/fifo
	ln -s file tree/link
	ln -s loop tree/loop
	scan -F -e a --stats=json tree absent
	expect 2
	tail -n 1 err >stats
	jq -e '.seen == .scanned + ([.skipped[]] | add) + ([.failed[]] | add)' stats
	[ "$(jq -c '[.seen, .scanned, .skipped.symlink, .skipped.fifo, .failed, .findings]' stats)" = \
		'[6,2,1,1,{"ENOENT":1,"ELOOP":1},2]' ]
	scan -F -e a --stats=xml tree
	complains "not one of: text, json"
}

# What the schema of SARIF 2.1.0 requires, as far as it concerns this document.
is_sarif() {
	jq -e '.version == "2.1.0" and (."$schema" | test("sarif-2.1.0")) and
		(keys - ["$schema", "runs", "version"] == []) and (.runs | length == 1) and
		(.runs[0] | keys == ["columnKind", "invocations", "results", "tool"]) and
		(.runs[0].tool.driver | .name == "pinion" and (.rules | all(.id | type == "string"))) and
		(.runs[0].tool.driver.rules as $rules | .runs[0].results | all(
			(keys == ["level", "locations", "message", "partialFingerprints", "ruleId", "ruleIndex"]) and
			.level == "error" and (.message.text | type == "string") and
			$rules[.ruleIndex].id == .ruleId and
			(.partialFingerprints["pinion/v1"] | test("^[0-9a-f]{32}$")) and
			(.locations[0].physicalLocation | (.artifactLocation.uri | test("^[!-~]+$")) and
				(.region | .startLine >= 1 and .startColumn >= 1 and .endLine >= .startLine and
					.endColumn >= 1 and .byteOffset >= 0 and .byteLength >= 1)))) and
		(.runs[0].invocations[0] | (.executionSuccessful | type == "boolean") and
			(.startTimeUtc | test("^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z$")) and
			(.toolExecutionNotifications | all(.message.text | type == "string")))' "$1" >/dev/null
}

@test "sarif: one valid document, whatever is found" {
	needs jq
	mkdir tree
	printf 'x\nä€ needle' >'tree/a b:ü%'
	printf 'needle' >$'tree/bad\xff\n'
	yes needle | head -n 5 >tree/many
	scan -F -e needle -e absent --format=sarif --max-findings-per-file=3 tree
	expect 1
	is_sarif out
	[ "$(jq -r '.runs[0].results[].locations[0].physicalLocation.artifactLocation.uri' out | sort | uniq -c | tr -s ' ')" = \
		' 1 tree/a%20b%3A%C3%BC%25
 1 tree/bad%FF%0A
 3 tree/many' ]
	[ "$(jq -c '.runs[0].results[] | select(.locations[0].physicalLocation.artifactLocation.uri | test("a%20b")) |
		.locations[0].physicalLocation.region' out)" = \
		'{"byteOffset":8,"byteLength":6,"startLine":2,"endLine":2,"startColumn":4,"endColumn":10}' ]
	[ "$(jq -c '.runs[0].invocations[0] | [.executionSuccessful, (.toolExecutionNotifications | length)]' out)" = '[true,1]' ]
	scan -F -e absent --format=sarif tree "$PWD/none"
	expect 2
	is_sarif out
	[ "$(jq -c '.runs[0] | [.results, .invocations[0].executionSuccessful]' out)" = '[[],false]' ]
	scan -F -e needle --format=sarif "$PWD/tree/many"
	jq -e --arg uri "file://$PWD/tree/many" \
		'all(.runs[0].results[].locations[0].physicalLocation.artifactLocation; .uri == $uri)' out
}

@test "sarif: many files at once are one document" {
	needs jq
	mkdir tree
	local i
	for i in {1..300}; do
		printf 'needle\nneedle' >tree/$i
	done
	scan -F -e needle --format=sarif --workers=4 tree
	is_sarif out
	[ "$(jq '.runs[0].results | length' out)" = 600 ]
}

@test "gitlab: a report of its form" {
	needs jq
	printf 'x\n needle' >$'bad\xff'
	yes needle | head -n 5 >many
	scan -F -e needle --format=gitlab --max-findings-per-file=3 many bad*
	expect 1
	jq -e '.version == "15.0.6" and (.vulnerabilities | length == 4) and
		(.vulnerabilities | all((.id | length > 0) and (.identifiers[0] |
			.type == "pinion_rule_id" and .name == "e1" and .value == "e1") and
			(.location.commit.sha | length == 40) and .location.start_line >= 1)) and
		([.vulnerabilities[].id] | unique | length == 4) and
		(.scan | .type == "secret_detection" and .status == "success" and
			(.start_time | test("^[0-9-]{10}T[0-9:]{8}$")) and .analyzer.vendor.name == "pinion" and
			(.messages | length == 1))' out
	[ "$(jq -c '.vulnerabilities[] | select(.location.file != "many").location | [.file, .start_line, .end_line]' out)" = \
		'["bad\\xFF",2,2]' ]
}

@test "csv: names, then a record on a line for each finding" {
	printf 'x\n needle' >'a,"b"'
	scan -F -e needle --format=csv --redact=50 ./a*
	expect 1
	[ "$(sed -E 's/[0-9a-f]{32}/PRINT/' out)" = 'rule,path,line,column,end_line,end_column,start,end,fingerprint,excerpt
e1,"./a,""b""",2,2,2,8,3,9,PRINT,nee…' ]
	scan -F -e absent --format=csv ./a*
	expect 0
	[ "$(cat out)" = rule,path,line,column,end_line,end_column,start,end,fingerprint,excerpt ]
}

@test "csv: no field is a formula" {
	needs rules
	printf '=1+1' >'=cmd|,x'
	printf '+1+1' >@x
	local path expected
	while read -r path expected; do
		scan -e '.1.1' --redact=0 --format=csv -- "$path"
		expect 1
		[ "$(sed -E '1d; s/[0-9a-f]{32}/PRINT/' out)" = "$expected" ]
	done <<-END
		=cmd|,x e1,"'=cmd|,x",1,1,1,5,0,4,PRINT,'=1+1
		@x e1,'@x,1,1,1,5,0,4,PRINT,'+1+1
	END
}

@test "--sort path: the order of paths, the same bytes at any number of workers" {
	local path format workers
	for path in t/a-b t/a/c t/a/d/e t/ab t/a.b t/z/1 t/B; do
		mkdir -p "${path%/*}"
		printf '%s\nneedle 1\n needle 2\n' "$path" >"$path"
	done
	# The first is the slowest.
	head -c 9000000 /dev/zero >t/a-b
	printf 'needle\nneedle\n' >>t/a-b
	scan --sort=path -b -F -e needle t
	expect 1
	cut -d: -f1 out | uniq >got
	printf '%s\n' t/B t/a-b t/a.b t/a/c t/a/d/e t/ab t/z/1 | cmp - got
	sed -n 's/^t\/a-b:\([0-9]*\)-.*/\1/p' out | sort -nc
	for format in text json sarif; do
		rm -f first
		for workers in 1 4; do
			scan --sort=path --format=$format --workers=$workers -F -e needle t
			expect 1
			grep -v TimeUtc out >got
			[ -e first ] || cp got first
			cmp first got
		done
	done
	scan --sort=path -l -F -e needle t/z t/a
	printf '%s\n' t/z/1 t/a/c t/a/d/e | cmp - out
	pinion sum -r --sort=path t
	sed 's/.*  //' out | LC_ALL=C sort -c
	scan --sort=name -F -e needle t
	expect 2
}

@test "progress on a terminal is a line that goes away, and none elsewhere" {
	command -v script >/dev/null || skip "script is not installed"
	printf 'needle\n' >file
	mkfifo list
	(printf 'file\0'; sleep 2.2; printf 'file\0') >list 3>&- &
	local writer=$!
	TERM=xterm script -qec "'$PINION' scan -0 --files-from=list --color=never -F -e needle" screen >/dev/null || :
	wait $writer
	# Drawn after a second, and removed before the second finding.
	grep -q 'progress: 1 files, 0.007 kB, .* 1 findings, ' screen
	grep -q $'s\r\033\\[Kfile:1:1: e1: n…' screen
	# Nothing is left of it at the end.
	! tr '\n' ' ' <screen | grep -q $'progress:[^\033]*$'
	scan -F -e needle file
	[ ! -s err ]
}

@test "documents are whole when a signal ends the scan" {
	needs jq
	printf 'needle' >file
	stop_while_fed file scan -F -e needle --format=sarif
	expect 3
	is_sarif out
	[ "$(jq -c '.runs[0] | [(.results | length), .invocations[0].executionSuccessful]' out)" = '[1,false]' ]
}

@test "--explain: whether a file is searched, and why not" {
	mkdir -p tree/.git tree/hidden/deep
	printf '*.log\nhidden\n' >tree/.gitignore
	printf a >tree/file
	printf a >tree/a.log
	printf a >tree/hidden/deep/file
	ln -s file tree/link
	mkfifo tree/fifo
	local path wanted answer
	while IFS=: read -r path wanted answer; do
		scan --gitignore --explain="$path" tree
		expect "$wanted"
		[ "$(cat out)" = "$path: $answer" ]
		[ ! -s err ]
	done <<-END
		tree/file:0:scanned
		$PWD/./tree//file:0:scanned
		tree:0:a directory, which is walked
		tree/a.log:1:left out: an ignore file hides it (--gitignore)
		tree/link:1:left out: a symbolic link, not followed
		tree/fifo:1:left out: not a regular file (FIFO)
		tree/absent:2:not seen: no PATH leads to it
	END
	scan --gitignore --explain=tree/hidden/deep/file tree
	expect 1
	[ "$(cat out)" = "tree/hidden/deep/file: left out: $PWD/tree/hidden: an ignore file hides it (--gitignore)" ]
	scan --explain=tree/hidden/deep/file tree
	expect 0
	printf '\0\0abc' >tree/zeros
	printf a >tree/.dotted
	ln tree/file tree/hidden/name
	while IFS=: read -r path option answer; do
		scan --explain="$path" "$option" tree
		expect 1
		[ "$(cat out)" = "$path: left out: $answer" ]
	done <<-END
		tree/zeros:--binary=skip:a zero byte is in it (--binary=skip)
		tree/.dotted:--no-hidden:its name begins with a dot (--no-hidden)
		tree/a.log:--exclude=*.log:a pattern leaves it out (--include, --exclude)
		tree/a.log:--include=*.c:a pattern leaves it out (--include, --exclude)
		tree/a.log:--min-size=10M:its size is out of bounds (--min-size, --max-filesize)
		tree/zeros:--max-filesize=1:its size is out of bounds (--min-size, --max-filesize)
		tree/a.log:--older-than=1d:its time is out of bounds (--newer-than, --older-than)
		tree/hidden/name:--exclude=hidden:$PWD/tree/hidden: a pattern leaves it out (--include, --exclude)
	END
	scan --explain=tree/file --binary=skip tree
	expect 0
	if [[ $features == *+libarchive* ]]; then
		tar -C tree -czf tree/file.tgz file
		scan --explain=tree/file.tgz --binary=skip tree
		expect 1
		scan --explain=tree/file.tgz --binary=skip -z tree
		expect 0
		rm tree/file.tgz
	fi
	local met
	met=$(for path in tree/file tree/hidden/name; do
		"$PINION" scan --hard-links=once --explain="$path" tree || true
	done)
	[ "$(grep -c ': scanned$' <<<"$met")" = 1 ]
	[ "$(grep -c ': left out: a file was met by another name (--hard-links=once)$' <<<"$met")" = 1 ]
}

@test "a confirmed rule's finding: its line within the match's, and its secret" {
	needs rules
	[[ $features == *+toml* ]] || skip "built without TOML"
	printf "[[rules]]\nid = \"k\"\nregex = '''key\\\\s+=\\\\s+([a-z0-9]{4,40})'''\nsecretGroup = 1\n" >rules.toml
	printf 'x\n\n  key\n=\n\nabcdefgh0123 key key = zzzzyyyyxxxx # pinion:allow\nkey = 12345678\n' >file
	local window
	for window in 4K 1M; do
		scan --rules=rules.toml --format=json --redact=0 --no-allow --window=$window file
		expect 1
		sed -E 's/"[0-9a-f]{32}"/""/' out | diff - <(
			echo '{"rule":"k","path":"file","start":5,"end":24,"line":3,"column":3,"end_line":6,"end_column":13,"secret_start":12,"secret_end":24,"fingerprint":"","match":"abcdefgh0123"}'
			echo '{"rule":"k","path":"file","start":29,"end":47,"line":6,"column":18,"end_line":6,"end_column":36,"secret_start":35,"secret_end":47,"fingerprint":"","match":"zzzzyyyyxxxx"}'
			echo '{"rule":"k","path":"file","start":63,"end":77,"line":7,"column":1,"end_line":7,"end_column":15,"secret_start":69,"secret_end":77,"fingerprint":"","match":"12345678"}'
		)
	done
	scan --rules=rules.toml --stats file
	[ "$(cat out)" = 'file:7:1: k: 12…' ]
}
