# SPDX-License-Identifier: MIT
# ./bootstrap on a small project of the same shape: whatever an earlier run left
# when it was interrupted, the next one mends it.

setup() {
	local file
	cd "$BATS_TEST_TMPDIR" || return 1
	mkdir -p include/pinion build-aux sub
	cp "${top_srcdir:-$PWD}/bootstrap" .
	printf '[build]\n' >build-aux/debian-packages.txt
	echo '#define PINION_VERSION "1"' >include/pinion/version.h
	cat >configure.ac <<-'END'
		AC_INIT([small], [1])
		AC_CONFIG_AUX_DIR([build-aux])
		AM_INIT_AUTOMAKE([foreign])
		AC_CONFIG_FILES([Makefile])
		AC_OUTPUT
	END
	echo 'SUBDIRS =' >sub/sub.am
	printf 'all-local:\n\t@date +%%s%%N >built\n' >Makefile.am
	export PINION_NO_APT=1
}

bootstrap() {
	rm -f build/built
	run ./bootstrap
	[ "$status" = 0 ] && [ "${lines[-1]}" = "the program is $PWD/build/pinion" ] && [ -s build/built ] || {
		echo "$1: exit status $status"
		echo "$output"
		cat build/bootstrap.log
		return 1
	}
}

@test "a second run configures nothing anew" {
	bootstrap first
	mkdir .kept
	cp -p configure build/Makefile build/config.status .kept
	bootstrap second
	local file
	for file in configure build/Makefile build/config.status; do
		[ ! "$file" -nt ".kept/${file##*/}" ]
	done
}

@test "each file that an interrupted run has not made is made by the next" {
	local damage
	bootstrap first
	for damage in 'rm configure' 'rm Makefile.in' 'rm aclocal.m4 Makefile.in' 'rm build/config.status' \
		'rm build/Makefile' 'rm -r build' 'rm build/packages-missing'; do
		eval "$damage"
		bootstrap "$damage"
	done
}

# A shell in place of a tool: it does the first half, and is interrupted.
interrupted() {
	local real
	real=$(command -v "$1")
	mkdir -p shim
	cat >"shim/$1" <<-END
		#!/bin/bash
		rm -f "$PWD/shim/$1"
		$2
		kill -INT -\$\$ 2>/dev/null
		kill -INT 0
		exec "$real" "\$@"
	END
	chmod +x "shim/$1"
	# In a session of its own, so that the signal ends it alone.
	status=0
	PATH=$PWD/shim:$PATH setsid --wait ./bootstrap >interrupted.out 2>&1 || status=$?
	[ "$status" != 0 ]
	[ ! -e "shim/$1" ]
}

@test "Ctrl-C in each phase leaves what the next run mends" {
	# autoreconf: configure is half there, and newer than all it is made of.
	interrupted autoreconf 'printf "#!/bin/sh\nexit 7\n" >configure; chmod +x configure; : >Makefile.in; : >build-aux/install-sh'
	bootstrap "after autoreconf"
	# configure: config.status is there, its Makefile is half there.
	rm -r build
	cp configure configure.whole
	printf '#!/bin/sh\n: >config.status\necho "all:" >Makefile\nkill -INT 0\n' >configure
	setsid --wait ./bootstrap >interrupted.out 2>&1 && return 1
	[ -e build/config.status ]
	cp configure.whole configure
	bootstrap "after configure"
	# make.
	interrupted make 'echo half >build/built.tmp'
	bootstrap "after make"
}

@test "a source folder that cannot be written is said to be so, in one line" {
	local line
	line="bootstrap: cannot write to $PWD; copy the source folder to where you may write, and run ./bootstrap there"
	# For any user: the thing in place of the folder cannot be written to.
	: >build
	run ./bootstrap
	[ "$status" = 2 ]
	[ "$output" = "$line" ]
	rm build
	[ "$(id -u)" != 0 ] || skip "root may write to any folder"
	chmod a-w .
	run ./bootstrap
	chmod u+w .
	[ "$status" = 2 ]
	[ "$output" = "$line" ]
}
