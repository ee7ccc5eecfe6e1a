#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The scripts that complete command lines: every option of every command is in
# them, and shells take them.
bats_require_minimum_version 1.5.0
load program

@test "each script has each command and each option of its help" {
	local shell command option
	for shell in bash zsh fish; do
		"$PINION" completions $shell >$shell
		for command in sum scan merge doctor top trace; do
			grep -qw "$command" $shell
			"$PINION" $command --help >help
			while read -r option; do
				case $shell in
				fish) grep -qE "subcommand_from $command'.* -l $option( |$)" fish ;;
				*) grep -qE -- "--$option[=[' ]" $shell ;;
				esac || {
					echo "$shell lacks --$option of $command"
					return 1
				}
			done < <(grep -oE '^  (-.,|   ) --[a-z-]+' help | sed 's/.*--//' | grep -vx help)
		done
	done
	pinion completions tcsh
	complains 'bash, zsh or fish'
	pinion completions
	complains 'bash, zsh or fish'
}

@test "each option of each command's help is on its page" {
	local command option
	for command in sum scan merge bench doctor top trace rules; do
		"$PINION" $command --help >help
		grep -oE '^  (-.,|   ) --[a-z0-9-]+' help | sed 's/.*--//' >options
		grep -qx help options
		while read -r option; do
			grep -qE -- "^\|.*\`--$option[]\`=[]" \
				"${top_srcdir:-..}/docs/man/pinion-$command.md" || {
				echo "pinion-$command.md lacks --$option"
				return 1
			}
		done <options
	done
	pinion sum --help
	grep -q -- "--sort=ORDER .*extent" <(tr -s ' \n' ' ' <out)
}

# The answer of bash for the last of these words.
complete_words() {
	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	COMPREPLY=()
	_pinion
	printf '%s\n' "${COMPREPLY[@]}"
}

@test "bash completes commands, options and files" {
	. <("$PINION" completions bash)
	[ "$(complete_words pinion sc)" = scan ]
	[ "$(complete_words pinion scan --red)" = --redact ]
	[ "$(complete_words pinion scan --basel)" = --baseline= ]
	touch 'a file' other
	[ "$(complete_words pinion scan 'a')" = 'a file' ]
	[ "$(complete_words pinion sum --red)" = "" ]
}

@test "zsh and fish take their scripts" {
	local shell found=0
	for shell in zsh fish; do
		if command -v $shell >/dev/null; then
			"$PINION" completions $shell >script
			$shell -n script
			found=1
		fi
	done
	[ $found = 1 ] || skip "neither zsh nor fish"
}
