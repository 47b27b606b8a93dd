#!/bin/sh
# SPDX-License-Identifier: MIT
# lapse diff on real runs: exit statuses, outputs for CI, and the recipe of docs/CI.md as it is written.
# usage: diff.sh BUILD_DIR SOURCE_DIR
set -eu
lapse=$1/lapse program=$1/tests/statistical/workload
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "diff: $*" >&2; exit 1; }
expect() { # STATUS ARGUMENT...
    wanted=$1
    shift
    status=0
    "$lapse" diff "$@" >"$work/said" 2>"$work/errors" || status=$?
    [ $status = "$wanted" ] || { cat "$work/said" "$work/errors" >&2; fail "status $status of: $*; $wanted expected"; }
}
cd "$work"

# The second command does three times as much in its first function, 60 % more in all.
"$lapse" record -q --repeat 6 --warmup 1 --interleave "$program 60 200" -o pair -- "$program" 60 0 >/dev/null
expect 1 --gate 'total:>3%' pair.lapse
expect 1 --gate 'func:changed:>10%' pair.lapse
expect 0 --gate 'total:>150%' pair.lapse
expect 0 --gate 'func:larger:>30%' pair.lapse
expect 2 --gate 'total>3%' pair.lapse
expect 2 missing.lapse
expect 2 --format=none pair.lapse
expect 0 pair.lapse # without a gate there is nothing to fail

# A gate that names nothing on either side is an error in every output; a regression shown beside it counts more.
typo='func:chnaged:>10%'
GITHUB_ACTIONS=true expect 2 --github --junit typo.xml --gate "$typo" --gate 'total:>150%' pair.lapse
grep -q "gate '$typo' names nothing" errors || fail "no word on stderr of a gate that names nothing"
grep -q '^  error .*chnaged' said && grep -q '^::error title=Performance gate::func:chnaged' said || fail "nor in the text"
grep -q 'errors="1"' typo.xml && grep -q '<error type="gate"' typo.xml || fail "nor in junit"
expect 2 --format=json --gate "$typo" pair.lapse
grep -q '"verdict":"error"' said && grep -q '"unmatched_gates":\["func:chnaged:>10%"\]' said || fail "nor in json"
expect 2 --format=markdown --gate "$typo" pair.lapse
grep -q '^\*\*Error' said && grep -q '`func:chnaged' said || fail "nor in markdown"
expect 2 --strict --gate "$typo" pair.lapse
expect 2 --gate 'self:chnaged_*:>10%' pair.lapse
expect 1 --gate "$typo" --gate 'total:>3%' pair.lapse
"$lapse" power --gate "$typo" pair.lapse >/dev/null 2>&1 && fail "power takes a gate that names nothing"

# Power: the runs and samples are those of the first command, names are whole.
"$lapse" power --gate 'total:>3%' --gate 'func:changed:>10%' pair.lapse >power.txt
samples=$("$lapse" diff --format=tsv pair.lapse | awk -F'\t' '$1 == "total" { printf "%.0f", $9 / 6 }')
grep -q "^total (100.0 % of the time, $samples samples a run)" power.txt || fail "power of the total: $(cat power.txt)"
grep -q '^changed (.*needs [0-9]* runs a side' power.txt || fail "power of a function: $(cat power.txt)"

# Functions that are on one side only: a new one counts in whole, one that is gone passes.
for i in 1 2 3 4 5; do
    echo "main;kept 1000
main;gone 30$i" >base$i.folded
    echo "main;kept 1000
main;fresh 30$i" >new$i.folded
done
sides=$(for i in 1 2 3 4 5; do printf ' --base base%s.folded --new new%s.folded' $i $i; done)
expect 1 --gate 'func:fresh:>5%' $sides
expect 0 --gate 'func:gone:>5%' $sides

# Runs and variants are those that were asked for.
"$lapse" diff --format=json pair.lapse >pair.json
python3 - <<'END' || fail "not the runs that were asked for"
import json
pair = json.load(open("pair.json"))
assert pair["base"]["runs"] == 6 and pair["new"]["runs"] == 6, pair
assert pair["total"]["verdict"] == "slower" and 0.4 < pair["total"]["relative"] < 0.8, pair["total"]
END

# Strict: one short run a side cannot tell 1 %, and the message says what to do.
"$lapse" record -q -o one -- "$program" 20 >/dev/null
"$lapse" record -q -o two -- "$program" 20 >/dev/null
expect 3 --strict --gate 'total:>1%' one.lapse two.lapse
grep -q "not enough samples to tell" errors || fail "no reason for status 3"
expect 0 --gate 'total:>1%' one.lapse two.lapse
grep -q "run-to-run" said || fail "one run a side: nothing said of run-to-run noise"

# What other programs read.
GITHUB_ACTIONS=true expect 1 --github --junit junit.xml --gate 'total:>3%' --gate 'func:changed:>10%' pair.lapse
grep -q '^::error' said || fail "no GitHub annotation"
GITHUB_ACTIONS='' expect 1 --github --gate 'total:>3%' pair.lapse
! grep -q '^::' said || fail "annotations outside of GitHub Actions"
python3 - <<'END' || fail "junit is not what its readers want"
import xml.etree.ElementTree as tree
root = tree.parse("junit.xml").getroot()
suites = [root] if root.tag == "testsuite" else root.findall("testsuite")
cases = [case for suite in suites for case in suite.iter("testcase")]
failed = [case for case in cases if case.find("failure") is not None]
assert cases and failed and all(case.get("name") for case in cases)
assert sum(int(s.get("failures")) for s in suites) == len(failed)
END
"$lapse" diff --format=markdown pair.lapse | grep -q '^|' || fail "markdown has no table"
"$lapse" diff --format=tsv --all pair.lapse | awk -F'\t' 'NR == 1 { n = NF } NF != n { exit 1 }' || fail "tsv is ragged"

# The page holds the calls of both sides; its data reads as JSON.
"$lapse" diff --html page.html pair.lapse >/dev/null
python3 - <<'END' || fail "the page's data is not what it draws from"
import json
text = open("page.html").read()
nodes = json.loads(text.split("const data = ")[1].split(";\nconst nodes")[0].replace(",\n]", "]"))["nodes"]
assert all(node[0] < i for i, node in enumerate(nodes) if i)
changed = [node for node in nodes if node[1] == "changed"]
assert changed and changed[0][3] > changed[0][2] and changed[0][6] == 2, changed
assert "http" not in text
END

# Each call path has an interval of its own: a function that got slower under one caller and faster under another
# has not changed in whole, and noise stays grey.
for i in 1 2 3 4 5 6; do
    echo "main;a;work 10${i}0
main;b;work 10${i}5
main;c;work 9${i}5" >was$i.folded
    echo "main;a;work 13${i}0
main;b;work 7${i}5
main;c;work 9$((7 - i))8" >is$i.folded
done
"$lapse" diff --html paths.html $(for i in 1 2 3 4 5 6; do printf ' --base was%s.folded --new is%s.folded' $i $i; done) >/dev/null
python3 - <<'END' || fail "call paths of the page do not have intervals of their own"
import json
nodes = json.loads(open("paths.html").read().split("const data = ")[1].split(";\nconst nodes")[0].replace(",\n]", "]"))["nodes"]
path = lambda i: (path(nodes[i][0]) + ";" if nodes[i][0] else "") + nodes[i][1]
at = {path(i): node for i, node in enumerate(nodes) if i}
for name in "main;a", "main;a;work":
    assert at[name][6] == 2 and 0.1 < at[name][4] < 0.3 < at[name][5] < 0.5, at[name]
for name in "main;b", "main;b;work":
    assert at[name][6] == 2 and at[name][5] < -0.1, at[name]
for name in "main", "main;c", "main;c;work":
    assert at[name][6] == 0 and at[name][4] < 0 < at[name][5], at[name]
END

# A series ends with the first run that fails, and keeps what was whole.
printf '#!/bin/sh\necho >>count\n[ $(wc -l <count) -lt 3 ] || exit 7\nexec "%s" 20\n' "$program" >breaks
chmod +x breaks
status=0
"$lapse" record -q --repeat 5 -o broken -- ./breaks >/dev/null 2>errors || status=$?
[ $status = 7 ] || fail "status $status of a failing run"
grep -q "run 3 of 5" errors || fail "not said which run failed: $(cat errors)"
[ "$(wc -l <count)" = 3 ] || fail "runs after the failing one"

# Work grows with what there is: a stack of 60,000 frames takes 0.2 s, and took a minute when each node looked at all
# above it. A function above itself is counted once.
for value in 100 120; do
    awk -v value=$value 'BEGIN { printf "root"; for (i = 0; i < 60000; i++) printf ";f%d", i; print " " value
                                 print "root;twice;between;twice;leaf " 2 * value }' >deep-$value.folded
done
timeout 10 "$lapse" diff --all --limit=0 --format=tsv deep-100.folded deep-120.folded >deep.tsv ||
    fail "status $? of a deep stack"
awk -F'\t' '$3 == 200 && $4 == 240 && $NF == "twice" { found = 1 } END { exit !found }' deep.tsv || {
    grep twice deep.tsv | cut -c 1-300 >&2
    fail "a function above itself"
}

# The recipe, word by word.
sed -n '/<!-- recipe: begin -->/,/<!-- recipe: end -->/p' "$2/docs/CI.md" | grep -v '^<!--\|^```' >recipe
grep -q interleave recipe || fail "no recipe in docs/CI.md"
printf '#!/bin/sh\nexec "%s" 40 0\n' "$program" >base
printf '#!/bin/sh\nexec "%s" 40 200\n' "$program" >new
chmod +x base new
status=0
PATH=$(dirname "$lapse"):$PATH BASE=./base NEW=./new GITHUB_STEP_SUMMARY=$work/summary.md \
    sh -eu recipe >recipe.out 2>&1 || status=$?
[ $status = 1 ] || { cat recipe.out; fail "status $status of the recipe on a slower program"; }
[ -s lapse.xml ] && [ -s summary.md ] || fail "the recipe left no outputs"
