#!/bin/bash
# SPDX-License-Identifier: MIT
# Goal: processes with a runtime, and so a metrics page, that are killed at any
# time leave no file in /dev/shm, /run or /tmp.
# Method: empty file systems on these folders, in a mount namespace of its own.
# Programs are killed from their start on, later and later; some have ended by
# then. Half of them are read by pinion top meanwhile. KILLS=10000 for more than
# 60.
# shellcheck disable=SC2154 # tests/run sets top_builddir
set -u
kills=${KILLS:-60}
program=$top_builddir/examples/steal_demo
[ -x "$program" ] || { echo "$program is not built" && exit 1; }

# Under /tmp are the build folder and the programs, perhaps: it is the last.
if [ "${1-}" != inside ]; then
	if [ "$(id -u)" = 0 ]; then
		inside=(unshare --mount)
	else
		inside=(unshare --map-root-user --mount)
	fi
	"${inside[@]}" true 2>/dev/null || { echo "no mount namespace: unshare(1) fails" && exit 77; }
	exec "${inside[@]}" bash "$0" inside
fi

mount --make-rprivate / && mkdir -p "$TMPDIR/bin" || exit 1
cp "$program" "$top_builddir/pinion" "$TMPDIR/bin/" || exit 1
exec 9<"$TMPDIR/bin"
for folder in /dev/shm /run /tmp; do
	mount -n -t tmpfs none $folder || { echo "no tmpfs on $folder" && exit 77; }
done
cd /proc/self/fd/9 && mkfifo pause || exit 1
exec 8<>pause
logs=$TMPDIR
export TMPDIR=/tmp
unset PINION_METRICS_FILE PINION_METRICS_PAGE

killed=0
for ((i = 0; i < kills; i++)); do
	./steal_demo 2 >/dev/null 2>&1 &
	pid=$!
	# Up to 20 ms: from before the start of the library to the end of most.
	read -r -t "0.0$(printf %02d $((i % 20)))" _ <&8 || true
	[ $((i % 20)) != 0 ] || ./pinion top --once $pid >/dev/null 2>&1
	kill -KILL $pid 2>/dev/null
	wait $pid 2>/dev/null
	[ $? != 137 ] || killed=$((killed + 1))
done
# ThreadSanitizer's start makes and removes a file of its own, and makes the
# folder of its reports anew; a report in it is left over, too.
left=$(find /dev/shm /run /tmp -mindepth 1 ! -name 'tsan.rodata.*' ! -path "$logs")
[ -z "$left" ] || { echo "left by $kills processes: $left" && exit 1; }
[ $killed -gt $((kills / 4)) ] || { echo "only $killed of $kills were killed" && exit 1; }
echo "$killed of $kills processes were killed, and nothing is left"
