#!/bin/sh
# SPDX-License-Identifier: MIT
# Run a program under unwind_probe and judge its line.
# usage: unwind_compare.sh PROBE.so MIN_AGREE_PERCENT MIN_ROOT_PERCENT PROGRAM ARGS...
# Exit status 77 when the program is not installed.
set -u
probe=$1 min_agree=$2 min_root=$3
shift 3
command -v "$1" >/dev/null 2>&1 || { echo "$1 is not installed"; exit 77; }
out=$(mktemp)
trap 'rm -f "$out"' EXIT
UNWIND_PROBE_OUT=$out LD_PRELOAD=$probe "$@" >/dev/null || { echo "exit status $?"; exit 1; }
cat "$out"
awk -v agree="$min_agree" -v root="$min_root" '
    /^samples/ {
        seen = 1
        printf "%.2f %% agree, %.2f %% reach the root\n", 100 * $4 / $2, 100 * $12 / $2
        bad = $2 < 100 || 100 * $4 < agree * $2 || 100 * $12 < root * $2 || $16 != 0
    }
    END { exit !seen || bad }' "$out"
