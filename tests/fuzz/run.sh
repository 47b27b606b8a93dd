#!/bin/sh
# SPDX-License-Identifier: MIT
# Run every fuzz target for a while; new inputs go to BUILD_DIR/corpus/NAME, findings stay in
# BUILD_DIR as crash-*. Exit status 1 when a target failed.
# usage: tests/fuzz/run.sh BUILD_DIR SECONDS_EACH [NAME...]
set -eu
build=$1 seconds=$2
shift 2
corpora=$(cd "$(dirname "$0")" && pwd)/corpus
cd "$build"
[ $# -gt 0 ] || set -- $(ls tests/fuzz | sed -n 's/^fuzz-\([a-z_0-9]*\)$/\1/p')
failed=0
for name in "$@"; do
    mkdir -p "corpus/$name"
    seeds=
    [ ! -d "$corpora/$name" ] || seeds=$corpora/$name
    echo "# $name"
    if tests/fuzz/fuzz-"$name" -max_total_time="$seconds" -max_len=4096 -timeout=10 \
        -rss_limit_mb=1024 -print_final_stats=1 "corpus/$name" $seeds 2> "$name.log"; then
        grep -E 'number_of_executed_units|new_units_added' "$name.log"
    else
        failed=1
        tail -n 40 "$name.log"
    fi
done
exit $failed
