#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Lines around findings, -A, -B and -C of `pinion scan`: which lines, that they
# are the same at every window, and that no secret is in one.
bats_require_minimum_version 1.5.0
load program

# In parts, so that no scanner takes this file for a leak.
key=AKIA
key+=QHXZKWMVRTBPLMW7

needs() {
	case $1 in
	rules) [[ $features == *+hyperscan* ]] || skip "built without hyperscan" ;;
	archives) [[ $features == *+libarchive* ]] || skip "built without archives" ;;
	esac
}

# context ARGUMENT…: scans, and expects what is on stdin.
context() {
	pinion scan "$@"
	expect 1
	diff - out
}

# Lines of 0 to 59 bytes over several windows of 4K, some with findings.
make_lines() {
	awk 'BEGIN {
		srand(11)
		for (i = 0; i < 3000; i++) {
			s = sprintf("%" int(rand() * 60) "s", "")
			gsub(/ /, "o", s)
			print (rand() < 0.08 ? s "needle needle" i : s)
		}
		printf "last needle"
	}' >lines
}

@test "lines, groups and their order are grep's, at every window" {
	make_lines
	local lines window workers
	for lines in "-A 3" "-B 2" "-C 1" "-C 4 -A 0" "-C 0"; do
		# A finding with several matches is a line each; grep's is one.
		grep -nF $lines needle lines | sed -E 's/^([0-9]+)[:-]/lines-\1-/' >expected
		[ "$(wc -l <expected)" -gt 400 ]
		while read -r window workers; do
			pinion scan $lines -F -e needle --redact=0 --window=$window \
				--workers=$workers lines
			expect 1
			grep -v '^lines:' out | cmp expected -
		done < <(each_of "4K 64K 1M" "1 4")
	done
	# Each finding is there, before its line.
	[ "$(grep -c '^lines:' out)" = "$(grep -oF needle lines | wc -l)" ]
	awk -F '[:-]' '/^lines:/ { at = $2; next } /^lines-/ && at && $2 != at { exit 1 } { at = 0 }' out
}

@test "findings of one line are above it, groups are apart" {
	printf 'l1\nl2\nl3 needle\nl4\nl5\nl6\nl7 needle needle\r\nl8' >a
	context -C1 -F -e needle a <<-'END'
		a-2-l2
		a:3:4: e1: n…
		a-3-l3 n…
		a-4-l4
		--
		a-6-l6
		a:7:4: e1: n…
		a:7:11: e1: n…
		a-7-l7 n… n…
		a-8-l8
	END
	context -B1 -b -F -e needle a <<-'END'
		a-3-l2
		a:9-15: e1: n…
		a-6-l3 n…
		--
		a-22-l6
		a:28-34: e1: n…
		a:35-41: e1: n…
		a-25-l7 n… n…
	END
	# Of several files, too; nothing beyond their ends.
	printf 'needle' >b
	printf 'x\n\nneedle\n' >c
	context -C5 -F -e needle --sort=path b c <<-'END'
		b:1:1: e1: n…
		b-1-n…
		--
		c-1-x
		c-2-
		c:3:1: e1: n…
		c-3-n…
	END
	context -A9 -B0 -F -e needle --color=always b < <(printf '%b\n' \
		'\e[35mb\e[0m:\e[32m1:1\e[0m: \e[1;31me1\e[0m: n…' \
		'\e[35mb\e[0m-\e[32m1\e[0m-\e[1;31mn…\e[0m')
}

@test "secrets in any line are hidden, those that are not shown too" {
	needs rules
	printf 'a = "%s"\nb needle\nc = "%s" # pinion:allow\nd\n' $key $key >a
	pinion scan --builtin -F -e needle -C1 a
	pinion scan --builtin -e needle -C1 a
	expect 1
	diff out - <<-'END'
		a:1:6: aws-access-key-id: AKIA…
		a-1-a = "AKIA…"
		a:2:3: e1: n…
		a-2-b n…
		a-3-c = "AKIA…" # pinion:allow
	END
	pinion scan --builtin -e needle -C1 --redact a
	expect 1
	grep -xF 'a-3-c = "…" # pinion:allow' out
	# Of the baseline.
	printf 'needle\n%s\n' $key >b
	pinion scan --format=json b
	mv out known
	context --builtin -e needle -C1 --baseline=known b <<-'END'
		b:1:1: e1: n…
		b-1-n…
		b-2-AKIA…
	END
	# Of several lines: one line, and numbers go on after it.
	printf 'x\nk one\ntwo\nthree y\nz\n' >c
	context -e 'one\ntwo\nth' -C1 c <<-'END'
		c-1-x
		c:2:3: e1: on…
		c-2-k on…ree y
		c-5-z
	END
	# Those that overlap.
	printf 'x abcdefgh y\n' >d
	context -F -e abcdef -e defgh -e cde -C0 --redact=50 d <<-'END'
		d:1:3: e1: abc…
		d:1:5: e3: c…
		d:1:6: e2: de…
		d-1-x abc… y
	END
}

@test "many findings close by: each hidden, at any number" {
	local count

	for count in 60 5000; do
		seq $count | sed 's/.*/l& needle&/' >dense
		# In files of several windows, too.
		pinion scan -e 'needle[0-9]+' -C2 --redact --window=4K dense
		expect 1
		[ "$(grep -c '^dense:' out)" = $count ]
		! grep -q 'needle' out
	done
}

@test "what follows the first line of a private key is not shown" {
	needs rules
	local dashes=----- body=MIIEbG9va3MgbGlrZSBhIGtleSBvZiA0MCBieXRlcyBh
	{
		echo before
		echo "${dashes}BEGIN PRIVATE KEY$dashes"
		for i in 1 2 3 4 5; do echo "$body$i"; done
		echo "${dashes}END PRIVATE KEY$dashes"
		echo needle
	} >pem
	pinion scan --builtin -e needle -A3 -B3 --redact pem
	expect 1
	grep -xF 'pem-1-before' out
	! grep -q "$body" out
}

@test "no key is in the lines, whatever the window" {
	needs rules
	awk -v key=$key 'BEGIN {
		srand(5)
		for (i = 0; i < 4000; i++) {
			r = rand()
			s = sprintf("%" int(rand() * 50) "s", "")
			print s (r < 0.05 ? "\"" key "\"" : r < 0.1 ? "needle" : "x") s
		}
	}' >lines
	local window workers last rest
	for rest in "" "-e x[^x]{9,}needle" "-e x[^y]{9,}needle"; do
		last=
		while read -r window workers; do
			pinion scan --builtin -e needle $rest -C3 --window=$window \
				--workers=$workers lines
			expect 1
			! grep -qF "${key:4}" out
			[ -z "$last" ] || cmp "$last" out
			mv out "first.$window"
			last=first.$window
		done < <(each_of "4K 64K 1M" "1 4")
		[[ $rest == *y* ]] || grep -q '^lines-.*"AKIA…"' "$last"
		grep -qx -- -- "$last"
	done
}

@test "a secret whose end comes late is hidden, too" {
	needs rules
	# It begins in the line of each needle, of which all is known much sooner.
	awk 'BEGIN {
		for (i = 0; i < 100; i++) {
			printf "needle%0450d hid secret\n", 0
			for (j = 0; j < 1200; j++) print "filler"
			print "end"
		}
	}' >lines
	local window
	for window in 4K 64K 1M; do
		pinion scan -e needle -e 'hid(?s:.{0,9000})end' -C7 --window=$window lines
		expect 1
		[ "$(grep -c '^lines-.* hid.x20…$' out)" = 100 ]
		! grep -qF secret out
	done
}

@test "what a limit has hidden from the search is not shown" {
	printf 'one needle\ntwo needle\nthree needle\nfour\n' >a
	context -F -e needle -C2 --max-findings-per-file=1 a <<-'END'
		a:1:5: e1: n…
		a-1-one n…
		a-2-two …
	END
}

@test "long lines are cut around findings, between characters" {
	local a u
	a=$(printf '%600s' '' | tr ' ' a)
	u=$(printf '%300s' '' | sed 's/ /ü/g')
	# 512 bytes of a line; of the finding's own, 256 before it.
	printf '%s\n%s needle %s\n%sx\n' "$u" "$a" "$a" "$u" >long
	context -C1 -F -e needle long <<-END
		long-1-${u:0:256}…
		long:2:602: e1: n…
		long-2-…${a:0:255} n… ${a:0:255}…
		long-3-${u:0:256}…
	END
	printf 'x%s\nneedle%s\n' "$u" "$u" >cut
	context -B1 -F -e needle cut <<-END
		cut-1-x${u:0:255}…
		cut:2:1: e1: n…
		cut-2-n…${u:0:256}…
	END
	printf '%sneedle\n' "x$u" >own
	context -B1 -F -e needle own <<-END
		own:1:602: e1: n…
		own-1-…${u:0:128}n…
	END
}

@test "lines that are far away are left out" {
	# A line starts 4096 bytes before the finding, or after it: in; 4097: out.
	local n
	for n in 4095 4096; do
		awk -v n=$n 'BEGIN {
			s = sprintf("%" n "s", ""); gsub(/ /, "a", s)
			print "far"; print s; print "needle"; print substr(s, 2); print "far"
		}' >a
		pinion scan -C2 -F -e needle a
		expect 1
		sed 's/a\{99,\}/&/; s/aa*…/A…/' out >short
		if [ $n = 4095 ]; then
			diff short - <<-'END'
				a-2-A…
				a:3:1: e1: n…
				a-3-n…
				a-4-A…
				a-5-far
			END
		else
			diff short - <<-'END'
				a:3:1: e1: n…
				a-3-n…
				a-4-A…
			END
		fi
	done
}

@test "nothing raw, and nothing beyond a zero byte" {
	printf 'one\0two\n\e[31mred\t\xff\\\nneedle \x9b\n\u202etfel\nmore\0needed\nx\n' >a
	context -C9 -F -e needle a <<-'END'
		a-2-\x1B[31mred\t\xFF\
		a:3:1: e1: n…
		a-3-n… \x9B
		a-4-\xE2\x80\xAEtfel
		a-5-more…
	END
	# A hole is zeros, whether it is read or not.
	printf 'one\nneedle\ntwo' >b
	truncate -s 3M b
	printf '\n\nthree\nneedle\n' >>b
	local window
	for window in 4K 1M; do
		context -C1 -F -e needle --window=$window b <<-'END'
			b-1-one
			b:2:1: e1: n…
			b-2-n…
			b-3-two…
			--
			b-5-three
			b:6:1: e1: n…
			b-6-n…
		END
	done
}

@test "lines of archives' entries" {
	needs archives
	make_lines
	pinion scan -C2 -F -e needle --window=64K lines
	sed 's/^lines/t.tgz!lines/' out >expected
	tar czf t.tgz lines
	pinion scan -C2 -F -e needle -z --window=4K t.tgz
	expect 1
	cmp expected out
}

@test "a rule without a longest match, and one beyond what is kept" {
	needs rules
	printf 'one\ntwo start\nmiddle\nend three\nfour\n' >a
	context -e 'start(?s:.*)end' -C1 a <<-'END'
		a-1-one
		a:2:5: e1: …
		a-2-two … three
		a-5-four
	END
	{
		printf 'one\nstart'
		printf '%70000s' ''
		printf '\nend three\nfour\n'
	} >a
	context -e 'start(?s:.*)end' -e 'o..|four' -C1 a <<-'END'
		a:1:1: e2: …
		a-1-…
		a-2-…
		--
		a:3:4: e1: …
		--
		a:4:1: e2: f…
		a-4-f…
	END
}

@test "what does not go with lines is refused" {
	: >a
	local rest
	for rest in --format=json -l -c; do
		pinion scan -C1 $rest a
		complains '-A, -B and -C are about text output: leave --format, -l and -c out'
	done
	for rest in --decode --checkpoint=log; do
		pinion scan -A1 $rest a
		complains '-A, -B and -C know neither --git, --staged, --decode nor --checkpoint'
	done
	pinion scan -B1 --git=.
	complains '-A, -B and -C know neither --git, --staged, --decode nor --checkpoint'
	pinion scan -C -1 a
	complains "--context: '-1' is not a number from 0 to 4294967295"
}
