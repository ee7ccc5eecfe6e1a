#!/bin/sh
# SPDX-License-Identifier: MIT
# Goal: each rule of tools/dev/tidy finds the bug it is there for.
# shellcheck disable=SC2154 # tests/run sets it
exec "$top_srcdir/tools/dev/tidy" --self-test
