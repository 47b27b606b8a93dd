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
    # Every sample that was recorded is in the file; late ticks are beside them.
    held=$("$build/lapse" report --format=tsv --limit=0 "$work/out.lapse" |
        awk -F'\t' 'NR > 1 && $1 != "[not sampled]" { n += $11 } END { print n + 0 }')
    [ "$held" = "$recorded" ] || fail "$recorded samples recorded, $held in the file"
    ;;
*)
    timeout 100 "$programs/states" "$work/out" "$2" || fail "$2: status $?"
    ;;
esac
