#!/bin/sh
# SPDX-License-Identifier: MIT
# The API in programs of every kind. usage: api.sh BUILD_DIR CASE
set -eu
build=$1
programs=$build/tests/integration/api
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "api: $*" >&2; exit 1; }
. "$(dirname "$0")/api_labels"

samples() { # FILE: how many it holds; late ticks are no samples
    "$build/lapse" report --format=tsv --limit=0 "$1" 2>/dev/null |
        awk -F'\t' 'NR > 1 && $1 != "[not sampled]" { n += $11 } END { print n + 0 }'
}
# Every recording of the case: ticks are recorded or dropped, and what was recorded is in the file.
check_counts() {
    files=0 all=0
    for file in "$work"/out*.lapse; do
        [ -s "$file" ] || continue
        set -- $("$build/lapse" export --to=events --no-symbols -o - "$file" 2>/dev/null |
            awk '$1 != "#" { exit } { v[$2] = $3 } END { print v["ticks"], v["recorded"], v["dropped_ring_full"] }')
        held=$(samples "$file")
        [ $# = 3 ] && [ "$1" = $(($2 + $3)) ] || fail "$file: ticks, recorded, dropped: $*"
        [ "$held" = "$2" ] || fail "$file: $2 samples recorded, $held in the file"
        files=$((files + 1)) all=$((all + held))
    done
    [ $all -gt 0 ] || fail "no sample in $files files"
    echo "$files recordings, $all samples"
}

case $2 in
labels-*)
    "$programs/$2" "$work/out" >"$work/truth" || fail "$2: status $?"
    check_labels "$build/lapse" "$work/out.lapse" "$work/truth"
    ;;
two-copies)
    # The preloaded copy has the session: the linked one says so, and does no harm.
    LAPSE_OUT=$work/preloaded LAPSE_EXPORT=none LD_PRELOAD=$build/liblapse.so \
        "$programs/labels-static" "$work/linked" >"$work/said" 2>&1 && fail "the second copy started"
    grep -q "already" "$work/said" || fail "no reason given: $(cat "$work/said")"
    [ ! -e "$work/linked.lapse" ] || fail "two sessions"
    # Without the first one it runs.
    "$programs/labels-static" "$work/linked" >/dev/null
    [ -s "$work/linked.lapse" ] || fail "no session"
    ;;
snapshot)
    recorded=$("$programs/states" "$work/out" snapshot | sed -n 's/^recorded //p')
    "$build/lapse" report "$work/out-snapshot.lapse" | grep -q burn_ms || fail "no names in the snapshot"
    held=$(samples "$work/out.lapse")
    [ "$held" = "$recorded" ] || fail "$recorded samples recorded, $held in the file"
    ;;
repeated)
    "$programs/states" "$work/out" repeated || fail "repeated: status $?"
    ;;
*)
    # Also by another program of the same source: CASE/PROGRAM.
    case $2 in */*) states=$build/${2#*/} ;; *) states=$programs/states ;; esac
    timeout 100 "$states" "$work/out" "${2%%/*}" || fail "$2: status $?"
    check_counts
    ;;
esac
case $2 in
flush*)
    kept=0
    for file in "$work"/*.flushed; do
        wanted=${file%.flushed}
        held=$(samples "$file")
        [ "$held" -ge "${wanted##*.}" ] || fail "$file: $held samples after a flush"
        kept=$((kept + 1))
    done
    [ $kept -gt 10 ] || fail "$kept files after a flush"
    ;;
full*)
    "$build/lapse" report "$work/out.lapse" | grep -q "samples dropped" || fail "nothing said of dropped samples"
    "$build/lapse" report "$work/out.lapse" | grep -q "spans dropped" || fail "nothing said of dropped spans"
    ;;
esac
