#!/bin/bash
# SPDX-License-Identifier: MIT
# run.sh LIBRARY HOST [VARIABLE=VALUE...]: runs HOST plain and then preloaded with LIBRARY at 199 and
# at 1,000 Hz; output, error output and status must be equal. A run that hangs is killed and fails.
# LIMIT=seconds for one run, RATES="199 1000", LOAD=1 keeps the other core busy, PROFILE=1 demands
# folded text, PROFILE=0 demands that nothing is left behind. Ends with 77 when the host says that it
# cannot run here.

# Hosts start with three descriptors, whatever runs the tests left open (255 is the shell's own).
for entry in /proc/$$/fd/*; do
    number=${entry##*/}
    [ "$number" -gt 2 ] && [ "$number" != 255 ] && eval "exec $number>&-"
done
library=$1 host=$2
shift 2
limit=20 rates="199 1000" load=0 profile=
settings=()
for setting in "$@"; do
    case $setting in
    LIMIT=*) limit=${setting#*=} ;;
    RATES=*) rates=${setting#*=} ;;
    LOAD=*) load=${setting#*=} ;;
    PROFILE=*) profile=${setting#*=} ;;
    *) settings+=("$setting") ;;
    esac
done
scratch=$(mktemp -d "${TMPDIR:-/tmp}/lapse-host-XXXXXX") || exit 1
busy=
finish() {
    [ -n "$busy" ] && kill "$busy" 2> /dev/null
    rm -rf "$scratch"
}
trap finish EXIT
if [ "$load" = 1 ]; then
    timeout 300 sh -c 'while :; do :; done' &
    busy=$!
fi

# run NAME COMMAND...: status, stdout and stderr go to files of that name.
run() {
    local name=$1
    shift
    mkdir -p "$scratch/$name.cwd" "$scratch/$name.profile"
    (cd "$scratch/$name.cwd" && exec timeout -s KILL "$limit" "$@") \
        > "$scratch/$name.out" 2> "$scratch/$name.err" < /dev/null
    echo $? > "$scratch/$name.status"
}

run plain "$host"
status=$(cat "$scratch/plain.status")
if [ "$status" = 77 ]; then
    cat "$scratch/plain.out"
    exit 77
fi
failed=0
if [ "$status" != 0 ]; then
    echo "plain: status $status"
    head -n 20 "$scratch/plain.out" "$scratch/plain.err"
    failed=1
fi
for rate in $rates; do
    run "$rate" env LAPSE_HZ="$rate" LAPSE_OUT="$scratch/$rate.profile/%e-%p" "${settings[@]}" \
        LD_PRELOAD="$library" "$host"
    for part in status out err; do
        if ! cmp -s "$scratch/plain.$part" "$scratch/$rate.$part"; then
            echo "$rate Hz: $part differs, plain | profiled:"
            diff "$scratch/plain.$part" "$scratch/$rate.$part" | head -n 20
            failed=1
        fi
    done
    if [ "$profile" = 1 ] && ! grep -qs ' [0-9]' "$scratch/$rate.profile/"*.folded; then
        echo "$rate Hz: no folded text: $(ls -s "$scratch/$rate.profile" | tr '\n' ' ')"
        failed=1
    fi
    if [ "$profile" = 0 ] && [ -n "$(ls -A "$scratch/$rate.profile")" ]; then
        echo "$rate Hz: left behind: $(ls -s "$scratch/$rate.profile" | tr '\n' ' ')"
        failed=1
    fi
    if [ -n "$(find "$scratch/$rate.profile" -type f -size 0)" ]; then
        echo "$rate Hz: empty files: $(ls -s "$scratch/$rate.profile" | tr '\n' ' ')"
        failed=1
    fi
done
exit $failed
