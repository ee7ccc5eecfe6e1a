#!/bin/sh
# SPDX-License-Identifier: MIT
# Goal: a program outside this tree builds and runs with nothing but the files
# that `make install` installs and the flags that pkg-config prints, in C and in
# C++; and so do the examples, as a user would build a copy. Pages, licence and
# examples are installed too.
# Method: installs into a staging folder, builds a program that runs one task,
# once with the shared and once with the static library, the other one being
# away each time, and looks which one it got. After --disable-shared or
# --disable-static with the only one, which has to be the only one installed.
# To a staging folder with a space in its name it installs the same, and takes
# that away again; a prefix with a space is refused.
set -eu

stage=$TMPDIR/stage
"$MAKE" -s --no-print-directory install DESTDIR="$stage" >"$TMPDIR/install.log" 2>&1 || {
	cat "$TMPDIR/install.log"
	echo "make install failed"
	exit 1
}
spaced="$TMPDIR/a stage"
# make_spaced TARGET
make_spaced() {
	"$MAKE" -s --no-print-directory "$1" DESTDIR="$spaced" >"$TMPDIR/spaced.log" 2>&1 || {
		cat "$TMPDIR/spaced.log"
		echo "make $1 failed where DESTDIR has a space"
		exit 1
	}
}
make_spaced install
diff -r --no-dereference "$stage" "$spaced" || {
	echo "what was installed differs where DESTDIR has a space"
	exit 1
}
make_spaced uninstall
rest=$(find "$spaced" ! -type d)
[ -z "$rest" ] || {
	echo "left by make uninstall where DESTDIR has a space: $rest"
	exit 1
}
mkdir "$TMPDIR/configured"
if (cd "$TMPDIR/configured" && "$(cd "$top_srcdir" && pwd)/configure" --prefix='/opt/a b' CC="$CC") \
	>"$TMPDIR/configure.log" 2>&1 || ! grep -q 'a folder to install to has a space' "$TMPDIR/configure.log"; then
	tail -n 3 "$TMPDIR/configure.log"
	echo "configure takes a prefix with a space, which libtool cannot link for"
	exit 1
fi

pc=$(find "$stage" -name pinion.pc)
libdir=${pc%/pkgconfig/*}
has_shared=$(find "$libdir" -name 'libpinion.so*' | grep -c .) || true
has_static=$(find "$libdir" -name 'libpinion.a' | grep -c .) || true
wanted=$(sed -n 's/^S\["INSTALL_\(SHARED\|STATIC\)_TRUE"\]=""$/\1/p' "$top_builddir/config.status" |
	sort | tr '\n' ' ')
found="$([ "$has_shared" = 0 ] || echo 'SHARED ')$([ "$has_static" = 0 ] || echo 'STATIC ')"
if [ "$found" != "$wanted" ]; then
	echo "libraries: configured \"$wanted\", installed \"$found\""
	exit 1
fi

cat >"$TMPDIR/user.c" <<'END'
#include <pinion/pinion.h>
#include <stdio.h>
#include <string.h>

static int ran;

static int run(struct pinion_task *task)
{
	(void)task;
	ran++;
	return 0;
}

int main(void)
{
	struct pinion_config config;
	struct pinion_runtime *runtime;
	struct pinion_task task;
	int error;

	memset(&task, 0, sizeof(task));
	task.run = run;
	pinion_config_init(&config);
	config.worker_count = 1;
	error = pinion_runtime_create(&config, &runtime);
	if (error != 0) {
		fprintf(stderr, "create: %s\n", strerror(-error));
		return 1;
	}
	error = pinion_task_spawn(runtime, &task);
	if (error == 0) {
		error = pinion_runtime_drain(runtime);
	}
	pinion_runtime_destroy(runtime);
	if (error != 0 || ran != 1) {
		fprintf(stderr, "error %d, the task ran %d times, expected once\n", error, ran);
		return 1;
	}
	puts(pinion_version());
	return 0;
}
END

# Paths in the .pc file are those after installation; the staging folder
# precedes them. Standard paths must not be left out: staged they are not.
ask() {
	PKG_CONFIG_PATH=${pc%/*} PKG_CONFIG_SYSROOT_DIR=$stage PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 \
		PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 $PKG_CONFIG "$@" pinion
}

# build_and_run KIND COMPILER [--static]
build_and_run() {
	kind=$1
	compiler=$2
	shift 2
	# pkg-config quotes spaces for a shell.
	eval "$compiler ${SANITIZER_CFLAGS-} -Wall -Wextra -Werror -o '$TMPDIR/user' '$TMPDIR/user.c' \
		-x none $(ask --cflags --libs "$@")"
	says=$(LD_LIBRARY_PATH=$libdir "$TMPDIR/user")
	if [ "$says" != "$(ask --modversion)" ]; then
		echo "$kind: the program says version $says, pkg-config $(ask --modversion)"
		exit 1
	fi
	needs=$(ldd "$TMPDIR/user" | grep -c libpinion) || true
	if [ "$kind:$needs" != shared:1 ] && [ "$kind:$needs" != static:0 ]; then
		echo "$kind: the program needs $needs libpinion libraries at run time"
		exit 1
	fi
}

mkdir "$TMPDIR/away"
kind=static
if [ "$has_shared" != 0 ]; then
	kind=shared
fi
if [ "$kind$has_static" = shared1 ]; then
	mv "$libdir/libpinion.a" "$TMPDIR/away"
fi
build_and_run $kind "$CC -std=c11"
# The sanitizers of one compiler are not another's.
if [ -n "${CXX-}" ] && [ -z "${SANITIZER_CFLAGS-}" ]; then
	build_and_run $kind "$CXX -std=c++11 -x c++"
fi
for example in "$top_srcdir"/examples/*.c; do
	libs=-pthread
	if grep -q '<math.h>' "$example"; then
		libs="$libs -lm"
	fi
	case ${example##*/} in
	compress_file.c) needs=libzstd ;;
	sign_tokens.c) needs=libcrypto ;;
	driven_libuv.c) needs=libuv ;;
	driven_sd_event.c) needs=libsystemd ;;
	*) needs= ;;
	esac
	if [ -n "$needs" ]; then
		$PKG_CONFIG --exists $needs || continue
		libs="$libs $($PKG_CONFIG --cflags --libs $needs)"
	fi
	eval "$CC ${SANITIZER_CFLAGS-} -std=c11 -Wall -Wextra -Werror -o '$TMPDIR/example' '$example' \
		$(ask --cflags --libs) $libs" || {
		echo "${example##*/} does not build with what is installed"
		exit 1
	}
done
if [ "$kind$has_static" = shared1 ]; then
	mv "$TMPDIR/away/libpinion.a" "$libdir"
	rm "$libdir"/libpinion.so*
	build_and_run static "$CC -std=c11" --static
fi

# Without any shared library, where hwloc needs no more than what HACKING defines.
if [ -z "${SANITIZER_CFLAGS-}" ] && [ "$has_static" != 0 ]; then
	sed -n '/^```c$/,/^```$/{/udev/p}' "$top_srcdir/docs/HACKING.md" >"$TMPDIR/udev.c"
	eval "$CC -w -static -o '$TMPDIR/whole' '$TMPDIR/user.c' '$TMPDIR/udev.c' \
		$(ask --static --cflags --libs | sed 's/-ludev//g')" 2>"$TMPDIR/whole.log" || {
		grep -v warning "$TMPDIR/whole.log"
		echo "a fully static program does not link"
		exit 1
	}
	"$TMPDIR/whole" >"$TMPDIR/whole.says"
	[ "$(cat "$TMPDIR/whole.says")" = "$(ask --modversion)" ] || {
		echo "the fully static program says $(cat "$TMPDIR/whole.says")"
		exit 1
	}
fi

for path in include/pinion/pinion.h bin/pinion doc/pinion/LICENSE \
	doc/pinion/man/pinion_runtime.md doc/pinion/examples/fan_out.c; do
	find "$stage" -path "*/$path" | grep -q . || {
		echo "$path was not installed"
		exit 1
	}
done

# All of each folder, nothing else.
for folder in docs/man examples; do
	installed=$(find "$stage" -type d -path "*/doc/pinion/${folder#docs/}")
	ls "$top_srcdir/$folder" >"$TMPDIR/source"
	ls "$installed" | diff "$TMPDIR/source" - || {
		echo "what was installed of $folder differs from it"
		exit 1
	}
done

"$MAKE" -s --no-print-directory uninstall DESTDIR="$stage" >"$TMPDIR/uninstall.log" 2>&1 || {
	cat "$TMPDIR/uninstall.log"
	echo "make uninstall failed"
	exit 1
}
rest=$(find "$stage" ! -type d)
if [ -n "$rest" ]; then
	echo "left by make uninstall: $rest"
	exit 1
fi
