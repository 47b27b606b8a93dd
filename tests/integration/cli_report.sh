#!/bin/sh
# SPDX-License-Identifier: MIT
# lapse report and export on made-up recordings and folded text.
. "$(dirname "$0")/cli_common"

"$made" made.lapse stacks=40 samples=400 processes=2 labels=1 late=1 cut=1 seed=3
printf 'main;work;leaf 30\nmain;work 10\nmain;\033[31mred 10\nmain;idle 50\n' > text.folded

status 0 "$lapse" report made.lapse
says out "2 processes, 4 threads"
status 0 "$lapse" report --format=json made.lapse
python3 -c 'import json, sys; p = json.load(open("out")); f = p["functions"]
assert p["samples"] == 800 and f, p
assert all(x["self_low"] <= x["self"] <= x["self_high"] for x in f)
assert abs(sum(x["self_weight"] for x in json.loads(open("out").read())["functions"])) <= p["weight"]' ||
    fail "the JSON of report"
status 0 "$lapse" report --format=json --limit=0 made.lapse
python3 -c 'import json; p = json.load(open("out"))
assert sum(x["self_weight"] for x in p["functions"]) == p["weight"]' || fail "self does not add up"
for form in text tsv json; do
    for what in --threads --processes --tree "--tree --inverted" --functions; do
        # shellcheck disable=SC2086 # two words
        status 0 "$lapse" report --format=$form $what made.lapse
        [ "$form" != json ] || python3 -m json.tool out > /dev/null || fail "JSON of $what"
    done
done
status 0 "$lapse" report --format=tsv --threads made.lapse
[ "$(wc -l < out)" -eq 5 ] || fail "not four threads"
status 0 "$lapse" report --thread=1001 --format=json made.lapse
python3 -c 'import json; assert json.load(open("out"))["samples"] == 200' || fail "one thread of four"
status 0 "$lapse" report --process=1001 --format=json made.lapse
python3 -c 'import json; assert json.load(open("out"))["samples"] == 400' || fail "one process of two"
status 2 "$lapse" report --thread=5 made.lapse
status 2 "$lapse" report --callers=no_such_function made.lapse
status 2 "$lapse" report --callees=function_ made.lapse
says err "functions have that in their name"

# Folded text: shares by hand.
status 0 "$lapse" report --format=tsv text.folded
[ "$(awk -F'\t' '$1 == "idle" { print $3 }' out)" = 0.500000 ] || fail "idle is not one half"
[ "$(awk -F'\t' '$1 == "work" { print $3, $6 }' out)" = "0.100000 0.400000" ] || fail "work: $(cat out)"
status 0 "$lapse" report --format=tsv --callers=leaf text.folded
[ "$(cut -f1,2 out | tail -n +2 | tr '\t\n' '= ')" = "1=leaf 2=work 3=main " ] || fail "callers: $(cat out)"
status 0 "$lapse" report --format=tsv --minimum=0 --callees=work text.folded
[ "$(cut -f1,2,6 out | tail -n +2 | tr '\t\n' '= ')" = "1=work=40 2=leaf=30 " ] || fail "callees: $(cat out)"
status 2 "$lapse" report --from=1 text.folded
status 0 "$lapse" report - < text.folded
cat made.lapse | status 0 "$lapse" report -

# A name must not move the terminal, nor colour a pipe.
status 0 "$lapse" report text.folded
grep -q "$(printf '\033')" out && fail "an escape sequence came through"
says out '\x1b[31mred'
status 0 "$lapse" report --color=always text.folded
grep -q "$(printf '\033')" out || fail "no colour though asked for"

# Wrong usage.
status 2 "$lapse" report
status 2 "$lapse" report no-such-file
status 2 "$lapse" report --format=xml made.lapse
status 2 "$lapse" report --sort=size made.lapse
status 2 "$lapse" report --minimum=200 made.lapse
echo 'no weight' > bad
status 2 "$lapse" report bad
says err "bad:1:"
status 2 "$lapse" reprot made.lapse
says err "did you mean 'report'"
status 2 "$lapse"
status 0 "$lapse" help report
says out "usage: lapse report"
status 0 "$lapse" --version
for command in record report export recover events fold merge; do
    status 0 "$lapse" $command --help
    empty err
done

# Export: folded again is the same, sums hold, units.
status 0 "$lapse" export --to=folded -o one.folded made.lapse
sum=$(awk '{ s += $NF } END { print s }' one.folded)
status 0 "$lapse" export --to=folded one.folded
cmp -s out one.folded || fail "folded text changes when exported again"
LC_ALL=C sort -c one.folded || fail "folded text is not sorted"
for frame in --threads --processes --labels "--threads --processes --labels"; do
    # shellcheck disable=SC2086
    status 0 "$lapse" export --to=folded $frame made.lapse
    [ "$(awk '{ s += $NF } END { print s }' out)" -eq "$sum" ] || fail "$frame: the sum changed"
done
says out "[made pid=1000];[worker-1 tid=1001];[request=alpha];"
status 0 "$lapse" export --to=folded --unit=us made.lapse
[ "$(awk '{ s += $NF } END { print s }' out)" -eq $((sum * 5000)) ] || fail "microseconds"
status 0 "$lapse" export --to=events made.lapse
[ "$(grep -c "$(printf '\tstart\t')" out)" -eq "$(grep -c "$(printf '\tend\t')" out)" ] ||
    fail "starts and ends do not match"
cp out made.events
awk -F '\t' '!/^#/ { if (!($2 in first)) first[$2] = $1; last[$2] = $1 }
    END { for (thread in first) sum += last[thread] - first[thread]; printf "%d\n", sum }' made.events > lived
status 0 "$lapse" fold made.events
[ "$(awk '{ s += $NF } END { printf "%d\n", s }' out)" -eq "$(cat lived)" ] || fail "events, folded, last no longer"
status 0 "$lapse" export --to=intervals made.lapse
for format in events intervals chrome perfetto; do
    status 2 "$lapse" export --to=$format text.folded
    says err "no times"
    empty out
done
status 2 "$lapse" export made.lapse
status 2 "$lapse" export --to=nonsense made.lapse
status 2 "$lapse" export --to=folded -o no/such/folder made.lapse
status 0 "$lapse" export -o picture.svg made.lapse
status 0 "$lapse" export --to=folded -o /dev/null made.lapse

# Who reads may stop early.
"$made" large.lapse stacks=20000 samples=60000 depth=60
"$lapse" report --tree --minimum=0 large.lapse 2> err | head -n 3 > out
empty err
"$lapse" export --to=folded large.lapse 2> err | head -n 3 > out
[ "$(wc -l < out)" -eq 3 ] || fail "no three lines"
empty err
finish
