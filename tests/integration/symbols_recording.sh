#!/bin/bash
# SPDX-License-Identifier: MIT
# Recordings of real programs get right names: symbols_recording.sh LAPSE KIND... (run by hand as well)
set -eu
lapse=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
    echo "$*"
    exit 1
}
need() {
    command -v "$1" >/dev/null || { echo "no $1"; exit 77; }
}
record() { # NAME COMMAND...
    timeout 120 "$lapse" record -o "$1.lapse" "${@:2}" >"$1.out" 2>&1 || fail "record $*: $(cat "$1.out")"
    [ -f "$1.lapse" ] || fail "record $*: no recording: $(cat "$1.out")"
}
report() { # RECORDING OPTIONS...
    timeout 60 "$lapse" report --limit=0 --format=tsv "$@"
}
has() { # TEXT FUNCTION [SHARE]: self share of the function is at least that (a quarter)
    awk -F'\t' -v name="$2" -v share="${3:-0.25}" '$1 == name && $3 > share { found = 1 } END { exit !found }' <<<"$1" ||
        fail "no $2 in: $1"
}

cat >program.cc <<'E2'
#include <cstdio>
#include <vector>
namespace shop {
struct till {
    static inline unsigned mix(unsigned x) { x ^= x << 13; x ^= x >> 17; return x ^ x << 5; }
    __attribute__((noinline)) static unsigned long count(std::vector<unsigned> &all, unsigned seed)
    {
        unsigned long sum = 0;
        for (auto &x : all) {
            x = seed = mix(seed);
            sum += x % 7;
        }
        return sum;
    }
};
}
int main()
{
    std::vector<unsigned> all(100000);
    unsigned long sum = 0;
    for (int i = 0; i < 1200; i++)
        sum += shop::till::count(all, i + 1);
    std::printf("%lu\n", sum);
}
E2
function='shop::till::count(std::vector<unsigned int, std::allocator<unsigned int> >&, unsigned int)'

for kind; do
    case $kind in
    elsewhere)
        # A symbolized recording reads the same without the program.
        g++ -O2 -g program.cc -o program
        record a ./program
        "$lapse" symbolize -o b.lapse a.lapse 2>/dev/null
        "$lapse" symbolize -o b.lapse a.lapse 2>/dev/null && fail "an existing file was overwritten"
        here=$(report a.lapse)
        has "$(report --no-inlines a.lapse)" "$function"
        lines=$("$lapse" report --format=tsv --lines="$function" a.lapse | cut -f1-7)
        grep -q 'program.cc.10' <<<"$lines" || fail "no hot line 10: $lines"
        mkdir away
        mv program away/
        [ "$(report b.lapse)" = "$here" ] || fail "report differs without the program"
        [ "$("$lapse" report --format=tsv --lines="$function" b.lapse | cut -f1-7)" = "$lines" ] ||
            fail "lines differ without the program"
        [ "$(report --symfs="$work/nothing" b.lapse)" = "$here" ] || fail "report differs with --symfs"
        # In place: the same bytes.
        mv away/program .
        cp a.lapse c.lapse
        "$lapse" symbolize c.lapse 2>/dev/null
        cmp b.lapse c.lapse
        # Instructions: their shares make up the whole.
        need objdump
        "$lapse" annotate "$function" a.lapse >listing 2>/dev/null
        awk '$2 == "%" { sum += $1 } /ret/ { code = 1 } /program.cc:10/ { line = 1 }
            END { exit !(sum > 99 && sum < 101 && code && line) }' listing || fail "listing: $(cat listing)"
        ;;
    changed)
        # Another build at the module's path is refused and named; the recording's own names stay.
        g++ -O2 -g program.cc -o program
        record a ./program
        g++ -O0 -g -DOTHER program.cc -o program
        text=$(report --no-inlines a.lapse 2>notes)
        grep -q 'not the file that ran' notes || fail "not refused: $(cat notes)"
        has "$text" "$function"
        ;;
    stripped)
        # Nothing but the separate debug file knows the name.
        g++ -O2 -g -Wl,--build-id -Wl,--exclude-libs,ALL program.cc -o program
        id=$(readelf -n program | sed -n 's/.*Build ID: //p')
        mkdir -p "debug/.build-id/${id:0:2}"
        objcopy --only-keep-debug program "debug/.build-id/${id:0:2}/${id:2}.debug"
        strip program
        record a ./program
        report a.lapse | grep -q 'shop::till' && fail "a stripped program has names"
        has "$(report --no-inlines --debug-dir="$work/debug" a.lapse)" "$function"
        ;;
    rust)
        # Names as rustc mangles them: legacy and v0.
        cat >rust.c <<'E2'
#define SPIN(symbol) \
    __attribute__((noinline)) unsigned symbol##_(unsigned n) __asm__(#symbol); \
    unsigned symbol##_(unsigned n) { for (unsigned i = 0; i < 150000000; i++) n = n * 1664525 + (n >> 3); return n; }
SPIN(_ZN4core3ptr9read_slow17h0123456789abcdefE)
SPIN(_RNvNtCs1234_7mycrate3foo3bar)
int main(int c, char **v)
{
    (void)v;
    return (_ZN4core3ptr9read_slow17h0123456789abcdefE_(c) ^ _RNvNtCs1234_7mycrate3foo3bar_(c)) == 7;
}
E2
        gcc -O2 -g rust.c -o rust
        record a ./rust
        text=$(report a.lapse)
        has "$(sed 's/::h0123456789abcdef//; s/\[[0-9a-f]*\]//' <<<"$text")" core::ptr::read_slow
        has "$(sed 's/\[[0-9a-f]*\]//' <<<"$text")" mycrate::foo::bar
        report --demangle=none a.lapse | grep -q '^_RNvNtCs1234_7mycrate3foo3bar' || fail "--demangle=none"
        ;;
    node)
        need node
        cat >hot.js <<'E2'
function hotLoop(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) % 1000003; return s; }
let t = 0;
for (let k = 0; k < 300; k++) t += hotLoop(1000000);
console.log(t);
E2
        record a node --perf-basic-prof hot.js
        report a.lapse | cut -f1 | grep -q 'hotLoop' || fail "no hotLoop: $(report a.lapse | head -n 20)"
        ;;
    reused)
        # Two libraries, one after the other at the same address, for the same time each.
        for name in first second; do
            echo "unsigned ${name}_work(unsigned n) { for (unsigned i = 0; i < 300000000; i++) n = n * 1664525 + (n >> 3); return n; }" >$name.c
            gcc -O2 -g -fPIC -shared $name.c -o lib$name.so
        done
        cat >reuse.c <<'E2'
#include <dlfcn.h>
#include <stdio.h>
static void *run(const char *file, const char *name)
{
    void *library = dlopen(file, RTLD_NOW);
    unsigned (*work)(unsigned) = (unsigned (*)(unsigned))dlsym(library, name);
    if (work(3) == 1)
        puts("");
    dlclose(library);
    return (void *)work;
}
int main(void)
{
    void *a = run("./libfirst.so", "first_work"), *b = run("./libsecond.so", "second_work");
    return printf("%s\n", a == b ? "same" : "other") < 0;
}
E2
        gcc -O2 -g reuse.c -o reuse -ldl
        record a ./reuse
        grep -q same a.out || { echo "the loader chose another address"; exit 77; }
        for recording in a.lapse b.lapse; do
            [ -f b.lapse ] || "$lapse" symbolize -o b.lapse a.lapse 2>/dev/null
            text=$(report $recording)
            has "$text" first_work 0.42
            has "$text" second_work 0.42
        done
        # What the process itself writes at its end.
        LAPSE_OUT=$work/exit LAPSE_EXPORT=folded,events LD_PRELOAD=$(dirname "$lapse")/liblapse.so ./reuse >/dev/null
        for name in first second; do
            awk -v name="$name" '{ all += $NF } $0 ~ ";" name "_work [0-9]+$" { part += $NF }
                END { exit !(part > 0.42 * all) }' exit.folded || fail "no $name in: $(cat exit.folded)"
            [ "$(grep -c "start.*${name}_work" exit.events)" = 1 ] || fail "events: $(grep _work exit.events)"
        done
        mkdir away
        mv lib*.so away/
        text=$(report b.lapse)
        has "$text" first_work 0.42
        has "$text" second_work 0.42
        ;;
    *) fail "unknown kind $kind" ;;
    esac
    echo "$kind: right"
done
