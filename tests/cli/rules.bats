# SPDX-License-Identifier: MIT
# `pinion rules`, and files of rules in TOML from end to end (EX-51, EX-52).

load program

# A file of rules, one of which is for the other alone.
setup_file() {
	cat >"$BATS_FILE_TMPDIR/acme.toml" <<-'END'
		title = "ACME's"
		[[allowlists]]
		description = "tests"
		paths = ['''_test\.go$''']
		[[rules]]
		id = "acme-key"
		description = "Key of ACME"
		regex = '''acme_([a-z0-9]{16})\b'''
		entropy = 2
		tags = ["acme", "key"]
		filter = '''finding["secret"] startsWith "xx" || containsAny(finding["line"], ["SAMPLE"])'''
		[[rules.required]]
		id = "acme-id"
		withinLines = 2
		[[rules]]
		id = "acme-id"
		regex = '''ACME-[0-9]{6}'''
		skipReport = true
	END
}

setup() {
	enter_folder
	[[ $features == *+hyperscan* && $features == *+pcre2* && $features == *+toml* ]] ||
		skip "built without regular expressions or TOML"
	cp "$BATS_FILE_TMPDIR/acme.toml" .
}

@test "rules in TOML find what their filters leave" {
	{
		echo "ACME-123456"
		echo "acme_q1w2e3r4t5y6u7i8"
		# No entropy; the filter, twice; too far from an id.
		echo "acme_aaaaaaaaaaaaaaaa"
		echo "acme_xxw2e3r4t5y6u7i8"
		echo "ACME-123456 acme_p1o2i3u4y5t6r7e8 # sample"
		printf '\n\nacme_z1x2c3v4b5n6m7k8\n'
	} >code.go
	cp code.go code_test.go
	# Without the id that it needs.
	echo "acme_q1w2e3r4t5y6u7i8" >lone.go
	pinion scan --format=json --rules=acme.toml code.go code_test.go lone.go
	expect 1
	[ "$(jq -r '[.rule, .path, .start] | join(" ")' out)" = "acme-key code.go 12" ]
	pinion rules --rules=acme.toml test code.go
	expect 1
	[ "$(cut -d: -f1-3,4 out)" = "code.go:12-33: acme-key: q1w2…
code.go:34-55: acme-key: no finding
code.go:56-77: acme-key: no finding
code.go:90-111: acme-key: no finding" ]
	grep -q '34-55: acme-key: no finding: its secret has 0.00 bits a byte, not more than 2$' out
	grep -q '56-77: acme-key: no finding: its filter expression$' out
}

@test "the built-in rules are extended, and keep their own exceptions" {
	local id=AKIA
	cat >more.toml <<-'END'
		[extend]
		useDefault = true
		disabledRules = ["npm-token"]
		[[allowlists]]
		stopwords = ["k7l6m5n4"]
		[[rules]]
		id = "more"
		regex = "needle"
	END
	printf '%s\n' ${id}IOSFODNN7EXAMPLE ${id}Q2W3E4R5T6Y7U2I3 ${id}Q2W3E4R5K7L6M5N4 \
		npm_abcdefghijklmnopqrstuvwxyz0123456789 needle >file
	pinion scan --rules=more.toml file
	expect 1
	[ "$(cut -d: -f1-4 out)" = "file:2:1: aws-access-key-id
file:5:1: more" ]
	pinion scan --include-examples --rules=more.toml file
	[ "$(cut -d: -f2 out | xargs)" = "1 2 5" ]
	pinion rules --rules=more.toml test file
	grep -q '^file:0-20: aws-access-key-id: no finding: it is a well-known example or a placeholder$' out
	grep -q '^file:42-62: aws-access-key-id: no finding: exception 1 of its file$' out
}

@test "rules are listed, with descriptions and tags" {
	pinion rules list
	expect 0
	grep -q '^npm-token' out
	[ "$(wc -l <out)" -ge 32 ]
	pinion rules list --rules=acme.toml
	expect 0
	[ "$(cat out)" = "acme-key  Key of ACME  [acme, key]
acme-id" ]
}

@test "a rule is explained in words" {
	pinion rules explain --rules=acme.toml acme-key
	expect 0
	for words in 'acme_(\[a-z0-9\]{16})' 'finding of acme-id' 'at most 2 lines away' 'more than 2 bits a byte' \
		'exception, tests' 'the path has _test' 'startsWith "xx"' 'Tags: acme, key'; do
		grep -q -- "$words" out || {
			echo "missing: $words"
			cat out
			return 1
		}
	done
	pinion rules explain npm-tokem
	complains 'there is no rule npm-tokem (did you mean npm-token?)'
}

@test "files of rules are checked, each part that is not supported is named" {
	printf '[[rules]]\nid = "a"\nregex = "a"\nvalidate = "x"\nsmell = 1\n' >part.toml
	printf '[[rules]]\nid = "a"\nregex = "("\n' >bad.toml
	pinion rules check acme.toml part.toml
	expect 1
	[ "$(cat out)" = "acme.toml: 2 rules
part.toml: 1 rules, 1 part not supported" ]
	[ "$(head -n 1 err)" = "pinion rules: part.toml:5: rule a: smell is not known" ]
	grep -q '1 rules would ask a service' err
	pinion rules check bad.toml
	complains 'bad.toml:3: '
	pinion scan --strict-rules --rules=part.toml part.toml
	expect 2
	grep -qx 'pinion scan: part.toml:5: rule a: smell is not known' err
}

@test "wrong usage of pinion rules is named" {
	pinion rules
	complains 'nothing to do'
	pinion rules lst
	complains "'lst' is not known"
	pinion rules list x
	complains 'takes no operands'
	pinion rules explain
	complains 'explain needs more: pinion rules explain ID'
}

# 60 rules: more than 2048 bytes of patterns.
write_rules() {
	local i

	for i in $(seq 60); do
		printf 'rule-%d\t\\bsecret_%d_[a-z0-9]{8,40}(?=[^a-z0-9])\n' "$i" "$i"
	done
}

@test "compiled rules are kept, and a damaged one is compiled again" {
	[[ $features == *+openssl* ]] || skip "built without OpenSSL"
	export XDG_CACHE_HOME=$PWD/cache
	write_rules >own.rules
	echo "secret_7_abcdefgh. secret_8_abcdefgh" >file
	pinion scan --no-cache --rules=own.rules -b file
	expect 1
	grep -qxF 'file:0-17: rule-7: secr…' out
	[ "$(wc -l <out)" = 2 ]
	[ ! -e cache ]
	mv out first
	pinion scan --rules=own.rules -b file
	cmp first out
	[ "$(ls cache/pinion/*.rules | wc -l)" = 1 ]
	pinion scan --rules=own.rules -b file
	cmp first out
	# The built-in ones are in the program.
	pinion scan -b file
	expect 0
	[ "$(ls cache/pinion/*.rules | wc -l)" = 1 ]
	truncate -s 100 cache/pinion/*.rules
	PINION_LOG=scan=debug pinion scan --rules=own.rules -b file
	cmp first out
	grep -q 'cache: an entry is damaged' err
	[ "$(stat -c %s cache/pinion/*.rules)" -gt 1000 ]
}

@test "a match that takes too many steps is left out, and is named" {
	printf 'x%.0s' $(seq 36) >file
	pinion scan -b --format=json -e '(?:x|xx|xxx)+(?=y)' file
	expect 2
	grep -qxF 'pinion scan: file: rule e1: what starts at byte 0 takes too many steps to match, as do others; it is left out' err
	grep -q '"limit":"steps","findings":0,"left_out":[1-9][0-9]*,"first_start":0}' out
}

@test "a rule that cannot be is left out, with those that need it" {
	cat >some.toml <<-'END'
		[[rules]]
		id = "no"
		regex = '\pL'
		[[rules]]
		id = "ok"
		regex = 'k=[a-z]+'
		[[rules]]
		id = "needs"
		regex = 'k=[a-z]+'
		required = [{id = "no"}]
	END
	echo "k=abc" >file
	pinion scan --rules=some.toml file
	expect 1
	grep -q '^file:1:1: ok: ' out
	[ "$(wc -l <out)" = 1 ]
	grep -q '^pinion scan: some.toml:3: rule no: .*; it is left out$' err
	grep -q '^pinion scan: some.toml:9: rule needs: requires the rule no; it is left out$' err
	pinion scan --strict-rules --rules=some.toml file
	expect 2
	pinion rules check some.toml
	expect 1
	grep -qx 'some.toml: 1 rules, 2 parts not supported; 1 of them: matches longer than 16387 bytes are not found' out
	pinion rules --rules=some.toml explain ok
	grep -qx '  Matches longer than 16387 bytes are not found.' out
}
