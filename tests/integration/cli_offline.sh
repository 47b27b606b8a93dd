#!/bin/sh
# SPDX-License-Identifier: MIT
# The commands that work on files, at the edges: pipes, files that are missing or no files, outputs that
# cannot be written or would destroy an input, standard input twice, commands that are interrupted.
. "$(dirname "$0")/cli_common"

"$made" one.lapse stacks=20 samples=300 processes=2 seed=1
"$made" other.lapse stacks=20 samples=300 seed=2
printf 'main;a;b 3\nmain;c 4\n# said by hand\n\n' > text.folded
printf '0\t1\ta;b\n5\t1\ta;c\n9\t1\t\n' > samples
"$lapse" events samples > edges
mkdir folder
: > empty
head -c 3000 /dev/zero | tr '\0' 'q' > garbage
head -c 500 one.lapse > cut.lapse

# ---- inputs that are none ----
for command in report "view --no-open" "diff text.folded" "power --gate=total:>3%" "export --to=folded" \
               "symbolize -o -" "annotate main" recover events fold "import -o -" merge; do
    for input in missing folder garbage cut.lapse; do
        # shellcheck disable=SC2086 # several words
        status 2 "$lapse" $command $input
        empty out
        [ "$(wc -l < err)" -eq 1 ] || fail "not one line: lapse $command $input: $(cat err)"
        says err "$input"
    done
    # shellcheck disable=SC2086
    status 2 "$lapse" $command --no-such-option
    says err "--no-such-option"
done

# ---- names of files, commands, options and words that would steer a terminal ----
steering=$(printf 'x\033[1m\r\302\233\177y')
cp one.lapse "$steering.lapse"
printf 'main;a 3\n' > "$steering.folded"
harmless() {
    LC_ALL=C grep -qaE "$(printf '[\001-\010\013-\037\177]|\302[\200-\237]')" "$1" &&
        fail "$2: steers the terminal: $(cat -v "$1")"
}
for command in report "report --tree" "report --processes" diff power events export annotate "annotate main" recover \
               fold merge symbolize import record "record --" "report --sort" "report --thread" "export --to"; do
    for input in "$steering" "$steering.lapse" "$steering.folded"; do
        # shellcheck disable=SC2086 # several words
        "$lapse" $command "$input" "$input" > out 2> err < /dev/null
        harmless out "lapse $command"
        harmless err "lapse $command"
        # shellcheck disable=SC2086
        "$lapse" $command "--$input" > out 2> err < /dev/null
        harmless err "lapse $command --"
    done
done
"$lapse" "$steering" 2> err
harmless err "a command"
says err 'x\x1b[1m\x0d'
status 2 "$lapse" view --no-open "$steering"
harmless err "a page"
status 2 "$lapse" record -o "$steering/none/x" -- true
harmless err "an output"

status 2 "$lapse" report cut.lapse
says err "begins as a lapse recording"
status 2 "$lapse" import -o - one.lapse
says err "is a lapse recording already"

# ---- help: whole, or a failure that says so ----
for command in record report view diff power export symbolize annotate recover events fold import merge; do
    status 0 "$lapse" $command --help
    empty err
    says out "-h, --help"
    cp out by_option
    status 0 "$lapse" help $command
    cmp -s out by_option || fail "two helps for $command"
    for option in $(grep -oE '^ +(-[a-zA-Z], )?--[a-z-]+' by_option | grep -oE -e '--[a-z-]+'); do
        "$lapse" $command "$option" < /dev/null 2>&1 | grep -q "unrecognized" &&
            fail "$command does not know $option, which it explains"
    done
    status 2 sh -c "'$lapse' $command --help > /dev/full"
    says err "No space left"
done
status 2 sh -c "'$lapse' --help > /dev/full"
says err "No space left"

# ---- pipes are as good as files ----
mkfifo pipe
through() { # INPUT COMMAND...: the same by standard input and through a named pipe as from the file
    input=$1
    shift
    status 0 "$lapse" "$@" "$input"
    sed 's/standard input//' out > wanted
    status 0 sh -c 'cat "$1" | "$2" "$3" ${4:+"$4"} -' sh "$input" "$lapse" "$@"
    cmp -s out wanted || fail "standard input: $* $input"
    cat "$input" > pipe &
    status 0 "$lapse" "$@" pipe
    cmp -s out wanted || fail "a named pipe: $* $input"
    wait $!
}
for input in one.lapse text.folded; do
    through $input report --format=tsv
    through $input report --tree
    through $input merge
    through $input export --to=folded
done
through one.lapse events
through samples events
through edges fold
status 0 "$lapse" report - < text.folded
says out "7 in 7 samples"
status 0 sh -c "cat text.folded | '$lapse' merge - one.lapse"
grep -q "^main;a;b 3" out || fail "merge of a pipe and a file"

# ---- standard input, twice ----
for command in report "merge other.lapse" "export --to=folded" diff "import -o -"; do
    # shellcheck disable=SC2086
    status 2 "$lapse" $command - - < one.lapse
    says err "standard input is named 2 times"
    empty out
done
status 0 "$lapse" merge text.folded text.folded
says out "main;a;b 6"

# ---- outputs ----
cp one.lapse kept.lapse
for command in "export --to=folded -o kept.lapse kept.lapse" "import -o text.folded text.folded" \
               "diff -o kept.lapse one.lapse kept.lapse" "diff --junit ./kept.lapse one.lapse kept.lapse" \
               "symbolize -o kept.lapse kept.lapse"; do
    # shellcheck disable=SC2086
    status 2 "$lapse" $command
    [ "$(wc -l < err)" -eq 1 ] || fail "not one line: $command"
done
cmp -s one.lapse kept.lapse || fail "an input was written over"
for command in "export --to=html one.lapse" "import text.folded" "diff one.lapse other.lapse"; do
    # shellcheck disable=SC2086
    status 2 "$lapse" $command -o folder
    says err "Is a directory"
    # shellcheck disable=SC2086
    status 2 "$lapse" $command -o nowhere/x
    says err "nowhere/x: No such file"
    # shellcheck disable=SC2086
    status 2 "$lapse" $command -o /dev/full
    says err "/dev/full: No space left"
    printf 'before' > target
    ln -sf target link
    # shellcheck disable=SC2086
    status 0 "$lapse" $command -o link
    [ -L link ] && [ "$(head -c 6 target)" != before ] || fail "a link was replaced: $command"
done
# The first bytes tell what an input is, in gzip or not.
"$lapse" export --to=speedscope -o guess.json one.lapse 2> /dev/null
"$lapse" export --to=pprof -o guess.packed one.lapse 2> /dev/null
gzip -dc guess.packed > guess.pprof
gzip -kc guess.json > guess.json.gz
printf '  prog 7 1.5: 10 cpu-clock:  55aa f+0x1 (/x)\n' > guess.perf
printf 'main;f 1\n' > guess.folded
for input in guess.json guess.json.gz guess.packed guess.pprof guess.perf guess.folded; do
    status 0 "$lapse" import -o guessed.lapse "$input"
    status 0 "$lapse" export --to=folded guessed.lapse
    [ -s out ] || fail "nothing came out of $input"
    rm guessed.lapse
done
printf 'precious' > recording
printf 'a b\n' > bad.folded
status 2 "$lapse" import -o recording bad.folded
[ "$(cat recording)" = precious ] || fail "an import that failed took what was there"
for command in "report one.lapse" "report --tree one.lapse" "diff one.lapse other.lapse" "events samples" \
               "fold edges" "merge one.lapse" "export --to=folded one.lapse" "export --to=chrome one.lapse" \
               "import -o - text.folded" "symbolize -o - one.lapse"; do
    status 2 sh -c "'$lapse' $command > /dev/full"
    says err "No space left"
    status 2 sh -c "'$lapse' $command >&-"
    says err "Bad file descriptor"
done

# ---- interrupted: nothing is left ----
awk 'BEGIN { for (i = 0; i < 1000000; i++) printf "main;f%d;g%d %d\n", i % 977, i, i + 1 }' > large.folded
"$made" large.lapse samples=2000000 stacks=2000
mkdir left
for command in "export --to=html -o left/x large.lapse" "export --to=events -o left/x large.lapse" \
               "import -o left/x large.folded"; do
    for after in 0.1 0.4; do
        # shellcheck disable=SC2086
        timeout -s INT $after "$lapse" $command > out 2> err
        [ -z "$(ls left)" ] || [ "$(ls left)" = x ] || fail "left behind by $command: $(ls left)"
        rm -f left/x
    done
done
mkdir spill
TMPDIR=spill timeout -s INT 0.3 "$lapse" merge large.folded > out 2> err
[ -z "$(ls spill)" ] || fail "left behind by merge"
rm -f large.folded large.lapse

# ---- report ----
status 2 "$lapse" report --from=2 --until=1 one.lapse
says err "--until is not after --from"
status 2 "$lapse" report --callers=no_such_function one.lapse
empty out

# Callers and callees of a recording are those of its folded text.
"$lapse" export --to=folded --unit=ns -o one.folded one.lapse
for view in callers callees; do
    for function in $(cut -d';' -f2 one.folded | grep -o '^function_[0-9]*' | sort -u | head -n 5); do
        for input in one.lapse one.folded; do
            status 0 "$lapse" report --format=tsv --limit=0 --minimum=0 --$view="$function" $input
            cut -f1,2,6 out | sort > table.$input
        done
        cmp -s table.one.lapse table.one.folded || fail "$view of $function: $(diff table.one.*)"
    done
done

# ---- merge ----
"$made" same.lapse stacks=20 samples=300 processes=2 seed=1 build=2
status 0 "$lapse" merge --by-name one.lapse same.lapse
cp out by_name
status 0 "$lapse" merge one.lapse one.lapse
cmp -s out by_name || fail "builds by name are not one"
status 0 "$lapse" merge one.lapse same.lapse
cp out apart
grep -q ' \[[^ ;]* 01010101\]' out && grep -q ' \[[^ ;]* 21212121\]' out || fail "builds are not told apart"
sed -E 's/ \[[^ ;]+ [0-9a-f]{8}\]//g' apart > plain
status 0 "$lapse" merge plain
cmp -s out by_name || fail "builds told apart do not add up to the whole"
cat same.lapse > pipe &
status 0 "$lapse" merge pipe one.lapse
cmp -s out apart || fail "builds are not told apart through a pipe"
wait $!
printf 'a;b;c;d 7\n' > whole
printf '[truncated];c;d 5\n' > two
status 0 "$lapse" merge whole two
says err "two is cut at 2 frames, whole is deeper; --depth=2"
status 0 "$lapse" merge --depth=2 whole two
[ "$(cat out)" = '[truncated];c;d 12' ] && [ ! -s err ] || fail "brought to one depth: $(cat out err)"
printf 'a 1.5\n' > decimals
status 2 "$lapse" merge decimals
says err "decimals:1: the value is not a whole number"
printf 'a 18446744073709551615\n' > most
status 2 "$lapse" merge most most
says err "more than 64 bits"
status 2 "$lapse" merge --depth=99999999999 whole
says err "too large"
# Stacks without weight in every format, a very deep one, and one that is too deep to be shown whole.
printf 'a;b 0\nc 0\n' > weightless.folded
{ seq 65536 | paste -sd ';' | tr '\n' ' '; echo 5; } > deep.folded
{ seq 65537 | paste -sd ';' | tr '\n' ' '; echo 5; } > deeper.folded
for format in folded events html pprof chrome perfetto speedscope firefox callgrind svg; do
    timeout 20 "$lapse" export --to=$format weightless.folded > out 2> err
    got=$?
    [ "$got" -eq 0 ] || [ "$got" -eq 2 ] || fail "$format of stacks without weight: status $got"
done
status 0 timeout 20 "$lapse" export --to=folded deep.folded
cmp -s out deep.folded || fail "a deep stack was changed"
status 2 "$lapse" report deeper.folded
says err "deeper.folded:1: a stack of more than 65,536 frames"
finish
