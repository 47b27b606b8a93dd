#!/bin/bash
# SPDX-License-Identifier: MIT
# The host programs of tests/hosts under lapse and under gperftools' CPU profiler, both preloaded: which
# of them still behave as they do alone (output, error output and status equal, no hang)?
# usage: bench/peers.sh BUILD_DIR [LIMIT_SECONDS]; prints TSV: host, lapse, gperftools
set -u
build=$(cd "$1" && pwd) limit=${2:-20}
peer=$(ldconfig -p | awk '/libprofiler\.so/ { print $NF; exit }')
[ -n "$peer" ] || { echo "peers: libprofiler.so (libgoogle-perftools-dev) is not installed" >&2; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# run NAME ENVIRONMENT... -- COMMAND: its output, error output and status into files of that name
run() {
    local name=$1 settings=()
    shift
    while [ "$1" != -- ]; do settings+=("$1"); shift; done
    shift
    mkdir -p "$work/$name.cwd"
    (cd "$work/$name.cwd" && exec timeout -s KILL "$limit" env "${settings[@]}" "$@") \
        >"$work/$name.out" 2>"$work/$name.err" </dev/null
    echo $? >"$work/$name.status"
}

judge() {
    local status
    status=$(cat "$work/$1.status")
    if [ "$status" = 137 ] && [ "$(cat "$work/plain.status")" != 137 ]; then
        echo "hung or killed"
    elif ! cmp -s "$work/plain.status" "$work/$1.status"; then
        echo "status $status"
    elif ! cmp -s "$work/plain.out" "$work/$1.out"; then
        echo "other output"
    elif ! cmp -s "$work/plain.err" "$work/$1.err"; then
        echo "other error output"
    else
        echo unharmed
    fi
}

printf 'host\tlapse\tgperftools\n'
for host in "$build"/tests/hosts/*; do
    name=$(basename "$host")
    case $name in thread_living | sleep_many | follow_off | *.*) continue ;; esac # long, or about an option
    [ -f "$host" ] && [ -x "$host" ] || continue
    run plain -- "$host"
    [ "$(cat "$work/plain.status")" = 0 ] || continue
    run lapse LD_PRELOAD="$build/liblapse.so" LAPSE_OUT="$work/l-%p" LAPSE_QUIET=1 -- "$host"
    run peer LD_PRELOAD="$peer" CPUPROFILE="$work/g" -- "$host"
    printf '%s\t%s\t%s\n' "$name" "$(judge lapse)" "$(judge peer)"
done
