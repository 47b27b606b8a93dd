#!/bin/sh
# SPDX-License-Identifier: MIT
# What code in the signal handler may call: every symbol that the objects named *_sig need from
# outside of them stands in signal_symbols.txt with its reason.
# usage: signal_symbols.sh LIST OBJECT...
set -u
list=$1
shift
objects=$(printf '%s\n' "$@" | grep '_sig\.c\.o$')
[ -n "$objects" ] || { echo "no objects"; exit 1; }
defined=$(nm --defined-only $objects | awk 'NF == 3 && $2 ~ /[A-Z]/ { print $3 }' | sort -u)
needed=$(nm -u $objects | awk '$1 == "U" || $1 == "w" { print $2 }' | sort -u)
status=0
for symbol in $needed; do
    printf '%s\n' "$defined" | grep -qx "$symbol" && continue
    grep -q "^$symbol  *[^ ]" "$list" || { echo "$symbol is not in the list"; status=1; }
done
echo "$(printf '%s\n' "$objects" | wc -l) objects, $(printf '%s\n' "$needed" | wc -l) symbols"
exit $status
