#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# `pinion scan --git`: every blob of a repository once, with the commit that
# brought it, whatever the repository is like (EX-54, BP-30).
bats_require_minimum_version 1.5.0
load program

export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=N GIT_AUTHOR_EMAIL=m
export GIT_COMMITTER_NAME=N GIT_COMMITTER_EMAIL=m

# commit MARK REF DAY AUTHOR [FROM…]: the head of a commit of fast-import.
commit() {
	local mark=$1 ref=$2 day=$3 author=$4 from
	printf 'commit %s\nmark :%s\n' "$ref" "$mark"
	printf 'author %s <%s@example.org> %d +0130\n' "$author" "${author%% *}" $((1600000000 + day * 86400))
	printf 'committer C <c@example.org> %d +0000\ndata 0\n' $((1600000000 + day * 86400))
	shift 4
	for from; do
		printf '%s\n' "$from"
	done
}

# file PATH TEXT: one file of a commit.
file() {
	printf 'M 100644 inline %s\ndata %d\n%s\n' "$1" "${#2}" "$2"
}

# Two lines of history, a merge with a blob of its own, a tag of a blob, a
# submodule, a name that a terminal would obey, and a file that comes back.
make_history() {
	commit 1 refs/heads/main 1 'Ann Lee'
	file src/a.c $'x\nneedle1 needle1\n'
	file copy.c $'same\nneedle3\n'
	file '"odd\nname\033[1m"' 'needle4'
	printf 'M 160000 0123456789012345678901234567890123456789 lib/sub\n'
	commit 2 refs/heads/main 2 'Bob' 'from :1'
	file src/a.c $'moved\nx\nneedle1 needle1\n\nneedle2\n'
	file dir/copy.c $'same\nneedle3\n'
	commit 3 refs/heads/side 3 'Ann Lee' 'from :1'
	file side.c needle2
	commit 4 refs/heads/main 4 'Bob' 'from :2' 'merge :3'
	file merged.c needle5
	commit 5 refs/heads/main 5 'Bob' 'from :4'
	printf 'D src/a.c\nD merged.c\n'
	printf 'blob\nmark :9\ndata 7\nneedle6\n'
	printf 'tag tagged\nfrom :9\ntagger C <c@example.org> 1600000000 +0000\ndata 0\n'
}

setup_file() {
	command -v git >/dev/null || return 0
	git init -q --bare -b main "$BATS_FILE_TMPDIR/repo.git"
	make_history | git -C "$BATS_FILE_TMPDIR/repo.git" fast-import --quiet
}

setup() {
	enter_folder
	command -v git >/dev/null || skip "git is not installed"
	repo=$BATS_FILE_TMPDIR/repo.git
}

needles=(-F -e needle1 -e needle2 -e needle3 -e needle4 -e needle5 -e needle6)

# The short id of main, or of a commit before it.
id() {
	git -C "$repo" rev-parse --short=12 "$1"
}

@test "each blob once, findings with the commit that brought them" {
	pinion scan --git "$repo" "${needles[@]}" --redact=0 --stats=json
	expect 1
	cat >expected <<-END
		$(id side~1):copy.c:2:1: e3: needle3 (Ann Lee, 2020-09-14)
		$(id main~1):merged.c:1:1: e5: needle5 (Bob, 2020-09-17)
		$(id side~1):odd\nname\x1B[1m:1:1: e4: needle4 (Ann Lee, 2020-09-14)
		refs/tags/tagged:1:1: e6: needle6
		$(id side):side.c:1:1: e2: needle2 (Ann Lee, 2020-09-16)
		$(id side~1):src/a.c:2:1: e1: needle1 (Ann Lee, 2020-09-14)
		$(id side~1):src/a.c:2:9: e1: needle1 (Ann Lee, 2020-09-14)
		$(id main~2):src/a.c:5:1: e2: needle2 (Bob, 2020-09-15)
	END
	diff expected out
	grep -qF 'lib/sub: is a submodule' err
	grep -qF '"seen":8,"scanned":7,' err
	grep -qF '"submodule":1,' err
	grep -qF '"findings":8,' err
	# As many blobs as git itself counts.
	[ "$(git -C "$repo" rev-list --objects --all --filter=object:type=blob \
		--filter-provided-objects --no-object-names | sort -u | wc -l)" = 7 ]
}

@test "the same bytes with any number of workers and windows" {
	pinion scan --git "$repo" "${needles[@]}" --format=json --workers=1
	expect 1
	mv out first
	for count in 2 7; do
		pinion scan --git "$repo" "${needles[@]}" --format=json --workers=$count --window=4K
		diff first out
	done
}

@test "each format has commit, author and date" {
	pinion scan --git "$repo" -F -e needle2 --include='*.c' --exclude=side.c --format=json
	expect 1
	commit=$(git -C "$repo" rev-parse main~2)
	blob=$(git -C "$repo" rev-parse main~2:src/a.c)
	grep -qF "\"blob\":\"$blob\",\"commit\":\"$commit\",\"author\":\"Bob\",\"email\":\"Bob@example.org\",\"date\":\"2020-09-15T13:56:40+01:30\"}" out
	[ "$(wc -l <out)" = 1 ]
	cp out known.json
	pinion scan --git "$repo" -F -e needle2 --include='/src/**' --format=csv
	grep -qF ",excerpt,blob,commit,author,email,date" out
	grep -qF ",$blob,$commit,Bob,Bob@example.org,2020-09-15T13:56:40+01:30" out
	pinion scan --git "$repo" -F -e needle2 --include='a.c' --format=gitlab
	grep -qF "\"commit\":{\"sha\":\"$commit\",\"author\":\"Bob\",\"date\":\"2020-09-15T13:56:40+01:30\"}" out
	pinion scan --git "$repo" -F -e needle2 --include='a.c' --format=sarif
	grep -qF "\"versionControlProvenance\":[{\"repositoryUri\":\"file://$repo\",\"revisionId\":\"$(git -C "$repo" rev-parse main)\"}]" out
	grep -qF "\"commit\":\"$commit\"" out
	! command -v jq >/dev/null || jq -e . out >jq.out
	pinion scan --git "$repo" -F -e needle1 --count
	[ "$(<out)" = "$(id side~1):src/a.c:2" ]
	pinion scan --git "$repo" -F -e needle2 --include='a.c' --baseline=known.json
	expect 0
}

@test "since a revision: what its commits have brought alone" {
	pinion scan --git "$repo" "${needles[@]}" --since=main~2 --redact=0
	expect 1
	cat >expected <<-END
		$(id main~1):merged.c:1:1: e5: needle5 (Bob, 2020-09-17)
		$(id side):side.c:1:1: e2: needle2 (Ann Lee, 2020-09-16)
	END
	diff expected out
	# The secret that a changed file has had before is no news.
	pinion scan --git "$repo" "${needles[@]}" --since=side~1 --include='/src/**' --redact=0
	[ "$(<out)" = "$(id main~2):src/a.c:5:1: e2: needle2 (Bob, 2020-09-15)" ]
	pinion scan --git "$repo" -F -e x --since=--output=x
	expect 2
	grep -qF -- '--since: --output=x is no revision' err
	[ ! -e x ]
}

@test "the index of a new commit, as a hook has it" {
	git init -q -b main work
	cd work
	pinion scan --staged -F -e needle
	expect 0
	printf 'old needle1\n' >a
	printf 'needle1\n' >b
	git add a
	pinion scan --staged "${needles[@]}" --redact=0
	expect 1
	[ "$(<out)" = 'a:1:5: e1: needle1' ]
	git commit -qm first
	printf 'old needle1\nnew needle2\n' >a
	printf 'needle3\n' >'new file'
	git add a 'new file'
	printf 'needle4\n' >>a
	pinion scan --staged "${needles[@]}" --redact=0
	expect 1
	printf '%s\n' 'a:2:5: e2: needle2' 'new file:1:1: e3: needle3' | diff - out
	# The hook, with built-in rules.
	[[ $features == *+hyperscan* ]] || return 0
	git config core.hooksPath "$top_srcdir/examples/hooks"
	git config core.fsmonitor "touch $PWD/ran"
	mkdir bin
	ln -s "$PINION" bin/pinion
	PATH=$PWD/bin:$PATH git commit -qm second
	printf 'key = AKIA%s\n' Q3EGRIFM2NVLT7XB >c
	git add c
	! PATH=$PWD/bin:$PATH git commit -qm third >out 2>err
	grep -qE '^c:1:7: aws-access-key-id: AKIA… *$' out err
	[ "$(git rev-list --count HEAD)" = 2 ]
}

@test "a repository that is not whole is no clean one" {
	cp -r "$repo" broken.git
	blob=$(git -C broken.git rev-parse side:side.c)
	rm -f broken.git/objects/"${blob:0:2}/${blob:2}"
	pinion scan --git broken.git "${needles[@]}" --stats=json
	expect 2
	grep -qF "$(id side):side.c: the blob is missing" err
	grep -qF '"failed":{"ENOENT":1}' err
	[ "$(wc -l <out)" = 7 ]
	tree=$(git -C broken.git rev-parse main~1^{tree})
	rm -f broken.git/objects/"${tree:0:2}/${tree:2}"
	pinion scan --git broken.git "${needles[@]}"
	expect 2
	grep -qF "broken.git: git diff-tree: unable to read tree $tree" err
}

@test "shallow and bare clones, SHA-256, worktrees" {
	git clone -q --depth 1 "file://$repo" shallow
	pinion scan --git shallow "${needles[@]}" --redact=0
	expect 1
	grep -qF 'shallow: a shallow clone: older commits are not here' err
	grep -qF "$(id main):copy.c:2:1: e3: needle3" out
	git init -q --object-format=sha256 sha
	printf 'needle1\n' >sha/f
	git -C sha add f
	git -C sha commit -qm one
	git -C sha worktree add -q "$PWD/tree"
	pinion scan --git tree "${needles[@]}" --format=json
	expect 1
	grep -qE '"commit":"[0-9a-f]{64}"' out
	pinion scan --git empty.git -F -e x
	expect 2
	git init -q empty
	pinion scan --git empty -F -e x
	expect 0
}

@test "a hostile repository runs nothing and hides nothing" {
	cp -r "$repo" evil.git
	printf '#!/bin/sh\ntouch %s/ran\n' "$PWD" >run
	chmod +x run
	git -C evil.git config core.fsmonitor "$PWD/run"
	git -C evil.git config core.pager "$PWD/run"
	git -C evil.git config core.hooksPath "$PWD"
	git -C evil.git config log.showSignature true
	git -C evil.git config gpg.program "$PWD/run"
	git -C evil.git config diff.external "$PWD/run"
	git -C evil.git config core.sshCommand "$PWD/run"
	git -C evil.git config remote.x.url "ext::$PWD/run"
	git -C evil.git config remote.x.promisor true
	git -C evil.git config protocol.ext.allow always
	git -C evil.git config extensions.partialClone x
	git -C evil.git config core.repositoryFormatVersion 1
	git -C evil.git replace "$(git -C evil.git rev-parse side)" "$(git -C evil.git rev-parse side~1)"
	pinion scan --git evil.git "${needles[@]}"
	expect 1
	[ "$(wc -l <out)" = 8 ]
	[ ! -e ran ]
}

@test "an allowlist of a commit is about what it has brought" {
	[[ $features == *+hyperscan* && $features == *+pcre2* && $features == *+toml* ]] ||
		skip "built without regular expressions or TOML"
	cat >rules.toml <<-END
		[[rules]]
		id = "n"
		regex = 'needle[0-9]'
		[[rules.allowlists]]
		commits = ["$(git -C "$repo" rev-parse side~1)"]
		[[rules.allowlists]]
		condition = "AND"
		commits = ["$(git -C "$repo" rev-parse main~1)"]
		regexes = ["5"]
	END
	pinion scan --strict-rules --rules=rules.toml --git "$repo" --redact=0
	expect 1
	# Later versions of the files of the first commit bring nothing new.
	cat >expected <<-END
		refs/tags/tagged:1:1: n: needle6
		$(id side):side.c:1:1: n: needle2 (Ann Lee, 2020-09-16)
		$(id main~2):src/a.c:5:1: n: needle2 (Bob, 2020-09-15)
	END
	diff expected out
}

@test "a signal ends the scan and its git" {
	mkdir bin
	real=$(command -v git)
	# A git that lists no commit before it is ended.
	cat >bin/git <<-END
		#!/bin/sh
		case "\$*" in
		*rev-list*) echo \$\$ >"$PWD/pid"; exec sleep 100 ;;
		esac
		exec $real "\$@"
	END
	chmod +x bin/git
	PATH=$PWD/bin:$PATH "$PINION" scan --git "$repo" -F -e x >out 2>err 3>&- &
	pid=$!
	wait_until test -s pid
	kill -TERM $pid
	status=0
	wait $pid || status=$?
	expect 3
	[ "$(<err)" = "pinion scan: stopped early by a signal" ]
	! kill -0 "$(<pid)" 2>/dev/null
}

@test "what --git cannot do is said in one line" {
	pinion scan --git "$repo" -F -e x path
	complains '--git searches a repository, and no PATH'
	pinion scan --since x -F -e x path
	complains '--since is about the commits of --git'
	pinion scan --git . -F -e x
	complains 'not a git repository'
	pinion scan --git "$repo" -x -F -e x
	complains '--git takes --include'
	PATH=$PWD pinion scan --git "$repo" -F -e x
	complains 'git, which is not installed'
}
