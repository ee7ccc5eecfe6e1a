#!/bin/sh
# SPDX-License-Identifier: MIT
# Goal: each rule of tools/dev/tidy finds the bug it is there for.
exec "$top_srcdir/tools/dev/tidy" --self-test
