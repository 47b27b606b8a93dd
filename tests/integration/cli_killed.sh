#!/bin/sh
# SPDX-License-Identifier: MIT
# A process that kills itself while what its last samples point at is new: labels, spans, a module.
# Rounds, since the drain thread's own time could come by chance.
. "$(dirname "$0")/cli_common"
killed=$build/tests/integration/cli-killed

for round in 1 2; do
    status 137 "$lapse" record -q -o killed -- "$killed" "$build/tests/integration/libcli-killed-late.so"
    status 0 "$lapse" export --to=folded --label-root=phase -o folded killed.lapse
    # Label, library's name, function: of the last samples too, which were still in the ring.
    grep -q '^\[phase=early\];.*;work_early;' folded || fail "round $round: the first label"
    grep -q '^\[phase=late\];.*;work_late;' folded || fail "round $round: the label or the library of the last"
    ! grep -v '^\[phase=' folded | grep 'work_' || fail "round $round: samples without their label"
    ! grep '+0x' folded || fail "round $round: addresses without a name"
    status 0 "$lapse" export --to=chrome -o trace killed.lapse
    [ "$(grep -o '"early span"' trace | wc -l)" = 2 ] || fail "round $round: edges of the first span"
    [ "$(grep -o '"last span"' trace | wc -l)" = 4 ] || fail "round $round: edges of the last two spans"
    [ "$failures" -eq 0 ] || cat folded >&2
    rm -f killed.lapse
done
finish
