# SPDX-License-Identifier: MIT
# The generated tree of the demo: made once, and made again when it was
# interrupted or when files of it are gone.

setup() {
	corpus=${top_builddir:-$PWD}/tools/dev/corpus
	cd "$BATS_TEST_TMPDIR" || return 1
}

make_tree() {
	"$corpus" --size 2M --seed 7 tree >planted 2>notes
}

sums() {
	find tree -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
}

@test "a tree is made once" {
	make_tree
	grep -qx 'generating 2 MiB of mixed files in tree' notes
	sums >first
	[ "$(wc -l <first)" -gt 40 ]
	cp planted planted.first
	make_tree
	[ ! -s notes ]
	cmp planted planted.first
	sums | cmp - first
}

@test "missing parts are made again: the tree, a file, the manifest, its end" {
	local damage
	make_tree
	sums >first
	cp planted planted.first
	for damage in 'rm -rf tree' 'rm "$(find tree -type f | head -n 1)"' \
		': >"$(find tree -type f | tail -n 1)"' 'rm tree.manifest' \
		'rm tree.state' ': >tree.state' 'head -n 1 tree.state >begun; mv begun tree.state'; do
		# Without a state file a folder of another user's is left alone.
		[ "$damage" != 'rm tree.state' ] || damage="rm -rf tree; $damage"
		eval "$damage"
		make_tree || {
			echo "after $damage: $(cat notes)"
			return 1
		}
		grep -q generating notes || {
			echo "after $damage: nothing was made"
			return 1
		}
		cmp planted planted.first
		sums | cmp - first
	done
}

@test "a folder made with other parameters, or by others, is left alone" {
	make_tree
	sums >first
	run "$corpus" --size 3M --seed 7 tree
	[ "$status" = 2 ]
	[ "$output" = "corpus: tree: was made with other parameters, or by others; remove it and its .state first" ]
	sums | cmp - first
	mkdir mine
	run "$corpus" --size 2M mine
	[ "$status" = 2 ]
	[ "$output" = "corpus: mine: was made with other parameters, or by others; remove it and its .state first" ]
	[ ! -e mine.state ]
	[ -z "$(ls mine)" ]
}
