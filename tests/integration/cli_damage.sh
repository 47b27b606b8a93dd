#!/bin/sh
# SPDX-License-Identifier: MIT
# Spools that are cut or damaged, disks that are full, processes that were killed.
. "$(dirname "$0")/cli_common"

"$made" made.lapse stacks=20 samples=200 processes=2
size=$(stat -c %s made.lapse)
cut=1
while [ "$cut" -lt "$size" ]; do
    head -c "$cut" made.lapse > cut.lapse
    "$lapse" report cut.lapse > out 2> err
    got=$?
    [ "$got" -eq 0 ] || [ "$got" -eq 2 ] || fail "status $got at $cut bytes"
    cut=$((cut + 97))
done
head -c $((size - 10)) made.lapse > cut.lapse
status 0 "$lapse" report cut.lapse
says out "ends in the middle of a chunk"

# recover: outputs, and words about what is missing.
status 0 "$lapse" recover cut.lapse
[ -s cut.folded ] && [ -s cut.events ] || fail "recover left no outputs"
says err "ends in the middle of a chunk"
status 0 "$lapse" recover cut.lapse
[ -s cut.1.folded ] || fail "recover overwrote or left out"
: > nothing.lapse
status 2 "$lapse" recover nothing.lapse
says err "empty"

# SIGKILL in the middle: what was written is there.
"$burn" 100000 > /dev/null 2>&1 &
kill -9 $!
"$lapse" record -q -o killed -- sh -c "$burn 100000 & sleep 1.5; kill -9 \$!"
status 0 "$lapse" report killed.lapse
says out "without an end mark"
says out "burn"

# What never ends is not copied until the disk or the memory is full; a pipe is read once.
mkfifo pipe
for command in report diff "export --to=folded" "recover -o zero" events fold merge import \
               "symbolize -o zero" "annotate burn" "power --gate total:>3%"; do
    status 2 "$lapse" $command /dev/zero
    [ "$(wc -l < err)" -eq 1 ] || fail "$command said: $(cat err)"
done
: > nothing.txt
for file in pipe /dev/null nothing.txt; do
    cat /dev/null > pipe &
    status 2 "$lapse" import -o imported "$file"
    kill $! 2> /dev/null
done
[ ! -e imported ] || fail "a recording was made of nothing"
status 2 "$lapse" symbolize -o named.lapse pipe

# A full disk: the command's own status, and words; needs a mount.
if [ "$(id -u)" -eq 0 ] && mkdir tiny && mount -t tmpfs -o size=64k tmpfs tiny 2> /dev/null; then
    dd if=/dev/zero of=tiny/fill bs=1k count=52 2> /dev/null
    status 5 "$lapse" record -o tiny/x -- "$burn" 300 exit=5
    dd if=/dev/zero of=tiny/fill bs=1k count=64 2> /dev/null
    status 5 "$lapse" record -o tiny/y -- "$burn" 300 exit=5
    [ -s err ] || fail "a full disk was not mentioned"
    status 2 "$lapse" export --to=folded -o tiny/z.folded made.lapse
    [ ! -s tiny/z.folded ] || fail "half a file was left"
    umount tiny
fi
status 2 sh -c "'$lapse' report made.lapse > /dev/full"
finish
