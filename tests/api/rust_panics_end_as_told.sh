#!/bin/sh
# SPDX-License-Identifier: MIT
# Goal: what pinion_fault(3) says of panics of Rust. A panic that the task's own
# catch_unwind() ends makes that task fail, and the next ones run. A panic that
# leaves the task aborts the process with Rust's message: from an extern "C"
# function at once, from an extern "C-unwind" one when its frames are unwound.
# Method: a Rust program whose tasks panic, by the C interface and the shared
# library alone. Skipped without rustc, which CI need not have.
# shellcheck disable=SC2154 # tests/run sets top_builddir and its like
set -eu

command -v rustc >/dev/null || {
	echo "no rustc"
	exit 77
}
[ -z "${SANITIZER_CFLAGS-}" ] || {
	echo "sanitizers of another compiler than rustc's"
	exit 77
}

cat >"$TMPDIR/panics.rs" <<'END_OF_RUST'
use std::ffi::{c_char, c_int, c_void};

#[repr(C)]
struct Task {
    run: unsafe extern "C-unwind" fn(*mut Task) -> c_int,
    cancel: *const c_void,
    flags: u32,
    private_kind: u32,
    private: u64,
}

extern "C" {
    fn pinion_runtime_create(config: *const c_void, out_runtime: *mut *mut c_void) -> c_int;
    fn pinion_task_spawn(runtime: *mut c_void, task: *mut Task) -> c_int;
    fn pinion_runtime_join(runtime: *mut c_void) -> c_int;
    fn pinion_runtime_destroy(runtime: *mut c_void) -> c_int;
    fn pinion_struct_bytes(name: *const c_char) -> usize;
}

struct Dropped;

impl Drop for Dropped {
    fn drop(&mut self) {
        eprintln!("dropped");
    }
}

unsafe extern "C-unwind" fn catches(_task: *mut Task) -> c_int {
    let caught = std::panic::catch_unwind(|| {
        let _dropped = Dropped;
        panic!("caught");
    });
    if caught.is_err() { -5 } else { 0 }
}

unsafe extern "C-unwind" fn unwinds(_task: *mut Task) -> c_int {
    let _dropped = Dropped;
    panic!("not caught");
}

unsafe extern "C" fn leaves(_task: *mut Task) -> c_int {
    panic!("not caught");
}

fn main() {
    let run: unsafe extern "C-unwind" fn(*mut Task) -> c_int = match std::env::args().nth(1).as_deref() {
        Some("catches") => catches,
        Some("unwinds") => unwinds,
        _ => unsafe { std::mem::transmute(leaves as unsafe extern "C" fn(*mut Task) -> c_int) },
    };
    let mut runtime: *mut c_void = std::ptr::null_mut();

    unsafe {
        assert_eq!(pinion_struct_bytes(b"pinion_task\0".as_ptr().cast()), std::mem::size_of::<Task>());
        assert_eq!(pinion_runtime_create(std::ptr::null(), &mut runtime), 0);
        for _ in 0..8 {
            let task = Box::leak(Box::new(Task {
                run,
                cancel: std::ptr::null(),
                flags: 0,
                private_kind: 0,
                private: 0,
            }));
            assert_eq!(pinion_task_spawn(runtime, task), 0);
        }
        eprintln!("join {}", pinion_runtime_join(runtime));
        assert_eq!(pinion_runtime_destroy(runtime), 0);
    }
}
END_OF_RUST

rustc -O -L "$top_builddir/.libs" -l dylib=pinion -o "$TMPDIR/panics" "$TMPDIR/panics.rs" \
	2>"$TMPDIR/rustc" || {
	cat "$TMPDIR/rustc"
	echo "the program does not compile"
	exit 1
}

# expect HOW STATUS: how the program ends; what it said is in $TMPDIR/said.
expect() {
	status=0
	RUST_BACKTRACE=0 LD_LIBRARY_PATH=$top_builddir/.libs "$TMPDIR/panics" "$1" \
		>"$TMPDIR/said" 2>&1 || status=$?
	[ "$status" = "$2" ] || {
		cat "$TMPDIR/said"
		echo "$1: status $status, expected $2"
		exit 1
	}
}

# says HOW WORDS
says() {
	grep -q "$2" "$TMPDIR/said" || {
		cat "$TMPDIR/said"
		echo "$1: it does not say \"$2\""
		exit 1
	}
}

aborted=134
expect catches 0
says catches '^join -5$'
[ "$(grep -c '^dropped$' "$TMPDIR/said")" = 8 ] || {
	cat "$TMPDIR/said"
	echo "catches: not all of 8 tasks were unwound to their catch_unwind()"
	exit 1
}
expect leaves $aborted
says leaves 'panic in a function that cannot unwind'
expect unwinds $aborted
says unwinds '^dropped$'
says unwinds 'Rust panics must be rethrown'
