#!/bin/sh
# SPDX-License-Identifier: MIT
# Instructions of a push and pop, counted by callgrind: the difference of two runs, call overhead and the
# loop included. The budget is 40. usage: labels_cost.sh BENCH_PROGRAM
set -eu
command -v valgrind >/dev/null || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
instructions() {
    valgrind --tool=callgrind --callgrind-out-file="$work/out" "$1" count "$2" ${3:-} 2>&1 |
        sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}
for session in "" session; do
    few=$(instructions "$1" 1000 $session) many=$(instructions "$1" 101000 $session)
    [ -n "$few" ] && [ -n "$many" ] || { echo "callgrind gave no count"; exit 77; }
    echo "${session:-no session}: $(((many - few) / 100000)) instructions a pair"
    [ $(((many - few) / 100000)) -le 40 ] || { echo "over the budget of 40"; exit 1; }
done
