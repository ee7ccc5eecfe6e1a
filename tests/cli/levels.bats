#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The same answers on every level of the ladder; `make check-levels` runs all
# other tests on each of them.
bats_require_minimum_version 1.5.0
load program

# Files around the sizes at which reads are cut, some cached and some not.
plant_tree() {
	mkdir -p tree/a/b
	for size in 0 1 4095 4096 4097 65536 1048577 3000001; do
		head -c $size /dev/urandom >tree/a/$size
		printf 'needle %s\n' $size >>tree/a/$size
		cp tree/a/$size tree/a/b/cold-$size
		dd of=tree/a/b/cold-$size oflag=nocache conv=notrunc,fdatasync count=0 status=none
	done
	truncate -s 5M tree/hole
	printf needle >>tree/hole
}

# In $sums and $findings, whose order is not promised.
answers() {
	pinion sum -r -a sha256 tree
	expect 0
	LC_ALL=C sort out >sums
	pinion scan -F -e needle tree
	expect 1
	LC_ALL=C sort out >findings
}

@test "sum and scan give the same on each level, and without each feature" {
	plant_tree
	answers
	[ "$(wc -l <sums)" = 17 ]
	[ "$(wc -l <findings)" = 17 ]
	mv sums sums.default
	mv findings findings.default
	(cd tree && find . -type f -exec sha256sum {} + | sed 's|  ./|  tree/|' |
		LC_ALL=C sort) | cmp sums.default -
	for level in fallback ring-basic ring-coop ring-defer ring-message ring; do
		export PINION_IO_LEVEL=$level
		pinion sum tree/hole
		if [ "$status" != 0 ] && grep -qE 'is not supported by this kernel|no io_uring' err; then
			echo "# $level is not offered here"
			continue
		fi
		answers
		cmp sums.default sums
		cmp findings.default findings
	done
	unset PINION_IO_LEVEL
	[ "$(features_of_page | wc -l)" -ge 16 ]
	for feature in $(features_of_page) statx-dioalign,cachestat,registered-buffers,send-msg-ring; do
		export PINION_IO_WITHOUT=$feature
		answers
		cmp sums.default sums
		cmp findings.default findings
	done
}

@test "a level that there is not, and a feature unknown, are named" {
	echo text >file
	PINION_IO_LEVEL=ring-best pinion sum file
	expect 2
	grep -qx 'pinion sum: PINION_IO_LEVEL: "ring-best" is not a value for io_level: it takes one of auto, fallback, ring, ring-basic, ring-coop, ring-defer, ring-message' err
	PINION_IO_WITHOUT=openat,speed pinion sum file
	expect 2
	grep -qx "pinion sum: PINION_IO_WITHOUT: \"openat,speed\" is not a value for io_without: it takes a list of nothing,$(features_of_page | paste -sd,)" err
	PINION_IO_LEVEL=ring PINION_IO_WITHOUT=openat pinion sum file
	expect 2
	grep -q 'no io_uring' err
}

@test "an unknown variable is named, with the nearest known name" {
	echo text >file
	PINION_IO_LEVL=fallback pinion sum file
	expect 0
	grep -qx 'pinion sum: warning: PINION_IO_LEVL: no variable of that name is read; the nearest is PINION_IO_LEVEL' err
	[ "$(wc -l <err)" = 1 ]
	PINION_LOG=warn PINION_SEED=1 pinion sum file
	expect 0
	[ ! -s err ]
}

@test "PINION_LOG: levels of components, JSON, priorities for the journal" {
	command -v jq >/dev/null || skip "jq is not installed"
	echo text >file
	# A line of the library, and one of the command.
	PINION_IO_LEVL=fallback PINION_LOG=json pinion sum file $'no\n\xff"file'
	expect 2
	[ "$(wc -l <err)" = 3 ]
	jq -se 'map(keys == ["component", "level", "message", "time"]) | all' err
	jq -se 'map(select(.component == "api"))[0] | .level == "warn" and
		(.message | startswith("PINION_IO_LEVL: no variable of that name"))' err
	jq -se 'map(select(.component == "command")) | .[1].level == "info" and .[0].level == "error" and
		.[0].message == "no\\n\\xFF\"file: no such file or directory"' err
	jq -se 'map(.time | sub("\\.[0-9]{6}Z$"; "Z") | fromdateiso8601) | all(. > 1.7e9)' err
	# A log that is none, of a command without a runtime.
	PINION_LOG=json pinion merge file
	expect 2
	jq -se 'map(select(.message | startswith("checkpoint file: "))) |
		length == 1 and .[0].component == "api" and .[0].level == "error"' err
	PINION_LOG=json,api=off pinion merge file
	! grep -q 'checkpoint file' err
	# By component, and not at all.
	PINION_IO_LEVL=fallback PINION_LOG=api=error pinion sum file
	[ ! -s err ]
	PINION_IO_LEVL=fallback PINION_LOG=off,api=warn pinion sum file
	[ "$(wc -l <err)" = 1 ]
	PINION_LOG=debug pinion sum file
	! grep -vE '^pinion sum: (debug|info): [a-z]+: ' err
	# Where stderr is the journal's: priorities, and its own times.
	: >err
	JOURNAL_STREAM=$(stat -c %d:%i err) PINION_IO_LEVL=fallback pinion sum file absent
	grep -q '^<4>pinion sum: warning: PINION_IO_LEVL: ' err
	grep -q '^<3>pinion sum: absent: no such file or directory$' err
	[ "$(grep -c '^<6>pinion sum: 2 files: ' err) $(wc -l <err)" = "1 3" ]
	JOURNAL_STREAM=$(stat -c %d:%i err) PINION_LOG=json pinion sum absent
	sed 's/^<[36]>//' err | jq -se 'map(has("time") | not) | all'
	JOURNAL_STREAM=1:1 pinion sum absent
	grep -qx 'pinion sum: absent: no such file or directory' err
}

@test "PINION_LOG: a line says which part is wrong, and the values that exist" {
	echo text >file
	PINION_LOG=warn,disk=info pinion sum file
	expect 2
	[ ! -s out ]
	[ "$(cat err)" = 'pinion sum: PINION_LOG: "disk=info": "disk" is no component: there are api, host, memory, io, observe, worker, task, scan' ]
	PINION_LOG=loud pinion sum file
	[ "$(cat err)" = 'pinion sum: PINION_LOG: "loud" is neither a level (off, error, warn, info, debug), nor COMPONENT=LEVEL, nor json' ]
	PINION_LOG=io=loud pinion sum file
	[ "$(cat err)" = 'pinion sum: PINION_LOG: "io=loud": "loud" is not one of off, error, warn, info, debug' ]
	PINION_LOG=loud pinion version
	[[ $(cat err) == "pinion: PINION_LOG: "* ]]
}
