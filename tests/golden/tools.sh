#!/bin/sh
# SPDX-License-Identifier: MIT
# lapse events, fold and merge at the edges of what they read: empty input, CRLF, a missing last
# newline, odd and long names, bad lines, recordings. usage: tools.sh LAPSE MAKE_RECORDING
set -eu
lapse=$1 make_recording=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
failed=0

# expect WHAT WANTED: compares with standard input
expect() {
    printf '%b' "$2" > wanted
    cat > got
    cmp -s got wanted || { failed=1; echo "$1:"; diff wanted got | head -n 5 || :; }
}

# refused WHAT MESSAGE COMMAND...: exit status 2, one line on standard error
refused() {
    what=$1 message=$2
    shift 2
    status=0
    "$@" > out 2> err || status=$?
    if [ $status != 2 ] || [ "$(wc -l < err)" != 1 ] || [ "$(cat err)" != "$message" ]; then
        failed=1
        echo "$what: status $status, $(cat err)"
    fi
}

: > empty
"$lapse" events empty | expect "no samples" ''
"$lapse" fold empty | expect "no events" ''
"$lapse" merge empty | expect "no stacks" ''
"$lapse" merge < empty | expect "standard input" ''

printf '0\t1\ta\r\n5\t1\ta;b\r\n9\t1\t' > crlf
"$lapse" events crlf | "$lapse" fold | expect "CRLF, no last newline" 'a 5\na;b 4\n'

printf '0\tt 1\toperator new(int);x\\;y;a\\tb;\303\244;\\\\\n4\tt 1\t\n' > odd
"$lapse" events odd | "$lapse" fold > odd.folded
expect "odd names" 'operator new(int);x\\;y;a\\tb;\0303\0244;\\\\ 4\n' < odd.folded
"$lapse" merge odd.folded odd.folded | expect "odd names merged" \
    'operator new(int);x\\;y;a\\tb;\0303\0244;\\\\ 8\n'

long=$(head -c 65536 /dev/zero | tr '\0' 'n')
printf '0\t1\t%s;%s\n7\t1\t\n' "$long" "$long" > long
"$lapse" events long | "$lapse" fold | wc -c | tr -d ' ' | expect "names of 64 KiB" '131076\n'

printf '0\t1\ta\nbad\n1\t1\ta;;b\n3\t1\t\n' > bad
refused "bad sample" 'lapse events: bad:2: the time is not a whole number' "$lapse" events bad
"$lapse" events --skip-bad bad 2> err | "$lapse" fold | expect "bad samples skipped" 'a 3\n'
expect "bad samples counted" 'lapse events: 2 bad lines skipped\n' < err
printf '0\t1\tstart\t0\ta\nbad\n3\t1\tend\t0\ta\n4\t1\tstart\tx\ta\n' > bad.edges
"$lapse" fold --skip-bad bad.edges 2> err | expect "bad events skipped" 'a 3\n'
expect "bad events counted" 'lapse fold: 2 bad lines skipped\n' < err
printf 'a 1\nbad\na;b x\nb 2\n' > bad.folded
"$lapse" merge --skip-bad bad.folded 2> err | expect "bad stacks skipped" 'a 1\nb 2\n'
expect "bad stacks counted" 'lapse merge: 2 bad lines skipped\n' < err
refused "bad stack" 'lapse merge: bad.folded:2: no value after the stack (expected STACK SPACE VALUE)' \
    "$lapse" merge bad.folded
printf '0\t1\tbegin\t0\ta\n' > kind
refused "unknown kind" 'lapse fold: kind:1: unknown kind of event (expected start or end)' \
    "$lapse" fold kind
refused "both filters" 'lapse events: --min-samples and --confirm exclude each other: one filters frames, the other whole stacks' "$lapse" events --min-samples=2 --confirm=2 empty
refused "no file" 'lapse merge: none: No such file or directory' "$lapse" merge none
refused "a folder" 'lapse fold: .: Is a directory' "$lapse" fold .
refused "no number" "lapse events: --period: 'x' is not a whole number" "$lapse" events --period=x
refused "two inputs" "lapse fold: one input only; 'b' is too many" "$lapse" fold a b
refused "no option" "lapse merge: unrecognized option '--no'" "$lapse" merge --no

printf '0\t1\ta\n5\t1\ta;b\n30\t1\ta\n' > gap
"$lapse" events --gap=20 --period=2 --close=open gap | expect "gap" \
    '0\t1\tstart\t0\ta\n5\t1\tstart\t1\tb\n7\t1\tend\t1\tb\tinferred\n7\t1\tend\t0\ta\tinferred\n30\t1\tstart\t0\ta\tinferred\n'
"$lapse" events --bounds --close=at=40 gap | expect "bounds" \
    '0\t1\tstart\t0\ta\t0\t0\n5\t1\tstart\t1\tb\t0\t5\n30\t1\tend\t1\tb\t5\t30\n40\t1\tend\t0\ta\t30\t-\n'
"$lapse" events --form=intervals --stream gap | expect "stream" '5\t30\t1\t1\tb\n0\t30\t1\t0\ta\n'

"$lapse" events --close=at=3 gap | tail -n 1 | expect "no end before the last sample" '30\t1\tend\t0\ta\n'
"$lapse" events --confirm=2 gap | expect "an unconfirmed last stack" ''
"$lapse" events --min-samples=2 gap | expect "frames seen once" '0\t1\tstart\t0\ta\n30\t1\tend\t0\ta\n'

# A recursive function whose outer frames are cut off: either f may be meant.
printf '0\t1\tm;f;f\n5\t1\t[truncated];f;g\n9\t1\t\n' > recursive
"$lapse" events --explain recursive 2> err > events
expect "every place is told" 'lapse events: time 5 thread 1: cut stack of 2 frames at depth 1, 1 agree: not taken\nlapse events: time 5 thread 1: cut stack of 2 frames at depth 2, 1 agree: taken, ambiguous\n' < err
grep ambiguous events | expect "and the event is marked" '5\t1\tstart\t3\tg\tambiguous\n'
printf '0\t1\tm;a;b\n5\t1\t[truncated];a;c\n' > plain
"$lapse" events --explain --close=open plain 2> err | grep '^5' | expect "by names alone" \
    '5\t1\tend\t2\tb\tinferred\n5\t1\tstart\t2\tc\tinferred\n'
expect "one place" 'lapse events: time 5 thread 1: cut stack of 2 frames at depth 1, 1 agree: taken, inferred\n' < err

"$make_recording" one.lapse samples=2000 cut=1 processes=2 seed=1
"$make_recording" two.lapse samples=900 seed=2
"$lapse" events one.lapse 2> /dev/null > from_file
"$lapse" events - < one.lapse 2> /dev/null | cmp - from_file || failed=1
cat one.lapse | "$lapse" events 2> /dev/null | cmp - from_file || failed=1
"$lapse" fold from_file > one.times
LC_ALL=C
export LC_ALL
"$lapse" events --form=intervals one.lapse 2> /dev/null | sort > sorted_intervals
"$lapse" events --form=intervals --stream one.lapse 2> /dev/null | sort | cmp - sorted_intervals ||
    failed=1
[ -s one.times ] || { failed=1; echo "a recording without events"; }
"$lapse" merge one.lapse two.lapse > both 2> /dev/null
"$lapse" merge one.lapse > 1.folded 2> /dev/null
"$lapse" merge two.lapse > 2.folded 2> /dev/null
"$lapse" merge 2.folded 1.folded 2> /dev/null | cmp - both || failed=1
"$lapse" merge two.lapse 1.folded 2> /dev/null | cmp - both || failed=1
exit $failed
