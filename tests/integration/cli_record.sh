#!/bin/sh
# SPDX-License-Identifier: MIT
# lapse record: exit statuses, signals, names of files, what it refuses and what it says.
. "$(dirname "$0")/cli_common"

# The command's own status and output, whatever they are.
status 0 "$lapse" record -o a -- "$burn" 100
printf 'burnt\n' | cmp -s - out || fail "standard output is not the command's own"
says err "a.lapse"
says err "burn"
# Who is killed loses the ticks that were due and had not come: long enough for some to come on a loaded machine.
status 7 "$lapse" record -q -o b -- "$burn" 50 exit=7
empty err
status 143 "$lapse" record -q -o c -- "$burn" 200 signal=15
status 137 "$lapse" record -q -o d -- "$burn" 200 signal=9
status 139 "$lapse" record -o e -- "$burn" 200 signal=11
says err "signal 11"
for file in a b c d e; do
    status 0 "$lapse" report $file.lapse
done

# Nothing is overwritten.
status 0 "$lapse" record -q -o a -- "$burn" 50
[ -f a.1.lapse ] || fail "no a.1.lapse beside a.lapse"
cp a.lapse before
status 0 "$lapse" record -q -o a.lapse -- "$burn" 50
cmp -s a.lapse before || fail "a.lapse was overwritten"
[ -f a.2.lapse ] || fail "no a.2.lapse"
status 0 "$lapse" record -q -- "$burn" 50
set -- lapse-cli-burn-*.lapse
[ -f "$1" ] || fail "no file of the default name"
[ "$(stat -c %a a.lapse)" = 600 ] || fail "others can read a.lapse"

# What cannot be run, or not be written, is said before anything runs.
status 127 "$lapse" record -- no-such-command
says err "not found"
status 127 "$lapse" record -- ./no-such-file
: > plain
status 126 "$lapse" record -- ./plain
says err "Permission denied"
status 126 "$lapse" record -- /
status 2 "$lapse" record -o no/such/folder/x -- touch ran
says err "not run"
[ ! -e ran ] || fail "the command ran though nothing could be written"
if [ "$(id -u)" -ne 0 ]; then
    mkdir locked && chmod 500 locked
    status 2 "$lapse" record -o locked/x -- touch ran
    [ ! -e ran ] || fail "the command ran though the folder cannot be written"
fi
mkfifo pipe
mkdir folder
for name in - '' . .. folder/ folder/.. /dev/null pipe /dev/stdout /dev/fd/1 /proc/self/fd/2; do
    status 2 "$lapse" record -o "$name" -- touch ran
    says err "not run"
done
[ ! -e ran ] || fail "the command ran though its recording has no name"
printf '#!/no/such/interpreter\n' > orphan
printf 'touch ran \000\n' > binary
chmod +x orphan binary
status 127 "$lapse" record -- ./orphan
says err "interpreter"
status 126 "$lapse" record -- ./binary
[ ! -e ran ] || fail "what is no text was given to a shell"
for option in --signal=9 --signal=32 --signal=65 --toggle-signal=19 --toggle-signal=27; do
    status 2 "$lapse" record $option -- touch ran
    says err "signal"
done
[ ! -e ran ] || fail "the command ran with a signal that cannot be had"
status 2 "$lapse" record
status 2 "$lapse" record -F 0 -- true
says err "1 to 10000"
status 2 "$lapse" record --clock=sundial -- true
status 2 "$lapse" record --export=pictures -- true
status 2 "$lapse" record --no-such-option -- true

# No samples, no file; why is said. At 1 Hz a tick falls due within two milliseconds once in 500 runs.
status 0 "$lapse" record -F 1 -o none -- true
says err "nothing was sampled"
status 0 "$lapse" record -o none -- "$burn-static" 50
says err "linked statically"
[ ! -e none.lapse ] || fail "an empty recording was left"

# Options of the command stay its own, and more outputs are there on request only.
status 0 "$lapse" record -q -o f --export=folded,events -- "$burn" 100
says f.folded "burn "
says f.events "# lapse events 1"
[ ! -e a.folded ] || fail "folded text without being asked"
status 0 "$lapse" record -q -o g sh -c 'test "$0" = -o' -o

# Children, a pipe, a script without an interpreter line; a daemon that goes on.
printf '%s 60\n%s 60 | cat\n' "$burn" "$burn" > script
chmod +x script
status 0 "$lapse" record -q -o h -- ./script
status 0 "$lapse" report --processes --format=tsv h.lapse
[ "$(grep -c cli-burn out)" -eq 2 ] || fail "not two cli-burn in h.lapse"
status 0 "$lapse" record -o i -- "$burn" 60 daemon=500
says err "goes on recording into"
status 0 "$lapse" report i.lapse
# The daemon's own time is in the folder that was named, which becomes a recording once it has ended.
tries=0
until "$lapse" recover -o late .lapse-run-* > out 2> err || [ $((tries += 1)) -gt 40 ]; do sleep 0.5; done
says late.folded "burn "
[ -z "$(find . -name '.lapse-run-*')" ] || fail "the folder of the spools is still there"

# A process that is making its ring when the command ends holds a file which is none yet: it is waited for.
cat > begins <<'END'
(exec 5> "$LAPSE_RINGS/1-1"; : > begun; sleep 0.05; LD_PRELOAD=$1 exec "$0" 400) > begins.out 2>&1 &
while [ ! -e begun ]; do sleep 0.01; done
END
status 0 "$lapse" record -o begins -- env LD_PRELOAD= sh -c "$(cat begins)" "$burn" "$build/liblapse.so"
says err "goes on recording into"
tries=0
until "$lapse" recover -o begun .lapse-run-* > out 2> err || [ $((tries += 1)) -gt 40 ]; do sleep 0.5; done

# CPU time of processes that no library can be loaded into is told, and is nobody's sample.
status 0 "$lapse" record -o tree -- sh -c "'$burn' 100; env -u LD_PRELOAD '$burn' 200; :"
grep -q 'of CPU time lie in no profile' err || fail "record says nothing of a process without a profile"
"$lapse" report --processes --format=json tree.lapse > tree.json
python3 - tree.json << 'END' || fail "CPU time in no profile: $(grep -o '[^"]*in no profile[^"]*' tree.json)"
import json, re, sys
report = json.load(open(sys.argv[1]))
missing, all = [float(text) for note in report["notes"] for text in
                re.findall(r"([0-9.]+) s of ([0-9.]+) s of CPU time lie in no profile", note)[0:1] for text in text]
sys.exit(not (0.15 < missing < 0.3 and abs(all - missing - report["weight"] * 1e-9) < 0.02 and all < 0.45))
END

# LD_PRELOAD of others stays, behind ours.
LD_PRELOAD=libm.so.6 status 0 "$lapse" record -q -o j -- sh -c 'echo "$LD_PRELOAD"'
says out "liblapse.so:libm.so.6"

# A signal to lapse record reaches the command; one to the whole group reaches it once.
cat > waiter <<'END'
trap 'echo term >> seen; exit 9' TERM
trap 'echo int >> seen' INT
trap 'echo usr1 >> seen' USR1
echo $$ > pid
while :; do :; done
END
"$lapse" record -q -o k -- sh waiter &
recorder=$!
until [ -s pid ]; do sleep 0.05; done
kill -USR1 $recorder
sleep 0.3
kill -TERM $recorder
wait $recorder
[ $? -eq 9 ] || fail "the trap's status was lost"
[ "$(tr '\n' ' ' < seen)" = "usr1 term " ] || fail "signals seen: $(cat seen)"

# A signal at any moment: before, while and after the command runs. No folder stays behind.
for moment in 0.000 0.003 0.006 0.009 0.012 0.015 0.02 0.03 0.05 0.07 0.075 0.08 0.085 0.09 0.095 0.1; do
    "$lapse" record -q -o moments -- "$burn" 60 > /dev/null 2>&1 &
    recorder=$!
    sleep $moment
    kill -TERM $recorder 2> /dev/null
    wait $recorder
done
[ -z "$(find . -name '.lapse-run-*')" ] || fail "a signal left a folder of spools"

# And in the moment between the command's end and the end of the run: held until the recording is there.
LD_PRELOAD=$build/tests/integration/libcli-held-signal.so "$lapse" record -q -o held -- "$burn" 150 > out 2> err
[ $? -eq 143 ] || fail "the signal was lost"
[ -f held.lapse ] || fail "a signal just after the command's end took the recording"
[ -z "$(find . -name '.lapse-run-*')" ] || fail "a signal just after the command's end left a folder of spools"

# Closed descriptors: the command finds them closed, and no message gets into a file.
sh -c 'ls /proc/self/fd' > fds.own 2> /dev/null <&- 3<&-
"$lapse" record -q -o fds -- sh -c 'ls /proc/self/fd' > fds.recorded 2> /dev/null <&- 3<&-
cmp -s fds.own fds.recorded || fail "descriptors: $(cat fds.own) became $(cat fds.recorded)"
"$lapse" record -o closed -- "$burn" 100 <&- >&- 2>&- || fail "status $? with closed descriptors"
status 0 "$lapse" report closed.lapse
finish
