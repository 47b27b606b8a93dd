#!/bin/bash
# SPDX-License-Identifier: MIT
# valgrind.sh LIBRARY HOSTS_FOLDER HOST... [-- COMMAND...]: hosts (and a command) under memcheck with LIBRARY
# preloaded. Output and status are those of a run without lapse, nothing hangs, and memcheck reports
# nothing in whose stack lapse has a part, but what valgrind.supp gives a reason for. What cannot run under valgrind by
# itself is said and left out. Of values not written before only addresses count: a walk looks at stack words
# that nobody has written, which is what scanning a stack means. Ends with 77 where there is no valgrind, or nothing ran.
set -u
library=$1 hosts=$2
shift 2
command -v valgrind > /dev/null || { echo "skipped: no valgrind"; exit 77; }
scratch=$(mktemp -d "${TMPDIR:-/tmp}/lapse-valgrind-XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
failed=0 ran=0

memcheck() { # NAME COMMAND...: NAME.log is memcheck's, NAME.out, .err, .status the program's
    local name=$1
    shift
    timeout -s KILL 100 "${environment[@]}" valgrind --tool=memcheck --undef-value-errors=no --trace-children=no --error-limit=no \
        --num-callers=30 --suppressions="${0%.sh}.supp" --log-file="$scratch/$name.log" "$@" \
        > "$scratch/$name.out" 2> "$scratch/$name.err" < /dev/null
    echo $? > "$scratch/$name.status"
}

check() { # COMMAND...
    local what=${1##*/} part
    environment=(env)
    memcheck plain "$@"
    if [ "$(cat "$scratch/plain.status")" != 0 ]; then
        echo "$what: not under valgrind (status $(cat "$scratch/plain.status") without lapse)"
        return
    fi
    environment=(env LD_PRELOAD="$library" LAPSE_HZ=199 LAPSE_OUT="$scratch/profile")
    memcheck lapse "$@"
    for part in status out err; do
        if ! cmp -s "$scratch/plain.$part" "$scratch/lapse.$part"; then
            echo "$what: $part differs, plain | profiled:"
            diff "$scratch/plain.$part" "$scratch/lapse.$part" | head -n 20
            failed=1
        fi
    done
    # Reports are paragraphs; the mapped files of ours are named in them.
    if awk 'BEGIN { bad = 1 } /^==[0-9]+== *$/ { if (text ~ /lapse/) { print text; bad = 0 } text = ""; next }
            !/Command:|Parent PID|Warning: client switching stacks|to suppress, use:|further instances/ { text = text "\n" $0 } END { if (text ~ /lapse/) { print text; bad = 0 } exit bad }' \
        "$scratch/lapse.log"; then
        echo "$what: memcheck reports lapse"
        failed=1
    fi
    [ -n "$(ls "$scratch"/profile*.folded 2> /dev/null)" ] && echo "$what: profiled" || echo "$what: too short for a profile"
    rm -f "$scratch"/profile*
    ran=1
}

while [ $# -gt 0 ] && [ "$1" != -- ]; do
    check "$hosts/$1"
    shift
done
[ $# -gt 1 ] && shift && check "$@"
[ $ran = 1 ] || exit 77
exit $failed
