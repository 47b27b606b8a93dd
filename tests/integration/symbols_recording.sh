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

# A program that writes jitdump and is killed, or comes to its end when it has an argument.
jit_program() {
cat >jit.c <<'E2'
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static FILE *dump;
static void put(const void *bytes, size_t size) { fwrite(bytes, size, 1, dump); }
static void put32(uint32_t value) { put(&value, 4); }
static void put64(uint64_t value) { put(&value, 8); }
static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}
/* for (; edi; edi--); ret */
static const unsigned char loop[] = { 0xff, 0xcf, 0x75, 0xfc, 0xc3 };
static void load(unsigned char *at, const char *name, const char *file, uint32_t line)
{
    uint64_t address = (uint64_t)at;
    memset(at, 0xcc, 64);
    memcpy(at, loop, sizeof loop);
    put32(2), put32(16 + 16 + 16 + (uint32_t)strlen(file) + 1), put64(now());
    put64(address), put64(1), put64(address), put32(line), put32(0), put(file, strlen(file) + 1);
    put32(0), put32(16 + 40 + (uint32_t)strlen(name) + 1 + sizeof loop), put64(now());
    put32((uint32_t)getpid()), put32((uint32_t)getpid());
    put64(address), put64(address), put64(sizeof loop), put64(line);
    put(name, strlen(name) + 1), put(at, sizeof loop);
    fflush(dump);
}
int main(int count, char **arguments)
{
    char path[64];
    unsigned turns = count > 1 ? 300000000 : 800000000;
    (void)arguments;
    snprintf(path, sizeof path, "jit-%d.dump", (int)getpid());
    dump = fopen(path, "w+");
    put32(0x4a695444), put32(1), put32(40), put32(62), put32(0), put32((uint32_t)getpid());
    put64(now()), put64(0);
    fflush(dump);
    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0);
    unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void (*work)(unsigned) = (void (*)(unsigned))code, (*other)(unsigned) = (void (*)(unsigned))(code + 1024);
    load(code, "early", "jit.lua", 11);
    work(turns);
    load(code, "late", "jit.lua", 21);
    work(turns);
    load(code + 1024, "alone", "jit.lua", 31);
    other(turns);
    memcpy(code + 2048, loop, sizeof loop); /* no name for this one: never that of a neighbour */
    for (int i = 0; i < 4; i++) /* the last second before the end is lost */
        ((void (*)(unsigned))(code + 2048))(turns);
    if (count < 2)
        raise(SIGKILL);
}
E2
gcc -O2 jit.c -o jit
}

for kind; do
    case $kind in
    elsewhere)
        # A symbolized recording reads the same without the program.
        g++ -O2 -g program.cc -o program
        record a ./program
        "$lapse" symbolize -o b.lapse a.lapse 2>said
        grep -qE '^lapse symbolize: [0-9]+ addresses: names of [0-9]+ \([0-9]+ before\), lines of [1-9][0-9]* \(0 before\)$' said ||
            fail "said: $(cat said)"
        "$lapse" symbolize -o b.lapse a.lapse 2>said && fail "an existing file was overwritten"
        [ "$(cat said)" = "lapse symbolize: b.lapse: is already there" ] || fail "said: $(cat said)"
        here=$(report a.lapse)
        has "$(report --no-inlines a.lapse)" "$function"
        lines=$("$lapse" report --format=tsv --lines="$function" a.lapse | cut -f1-7)
        # Which lines of the loop are hot is the compiler's affair.
        grep -qE 'program.cc.(9|10|11).0' <<<"$lines" || fail "no hot line 9 to 11: $lines"
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
    vanished)
        # Gone when the process names its functions: skipped, counted, said in the report.
        cat >gone.c <<'E2'
#include <stdio.h>
__attribute__((noinline)) unsigned spin(unsigned n) { for (unsigned i = 0; i < 300000000; i++) n = n * 1664525 + (n >> 3); return n; }
int main(int c, char **v) { unsigned n = spin((unsigned)c); return remove(v[0]) || n == 1; }
E2
        gcc -O2 gone.c -o gone
        record a ./gone
        text=$(report a.lapse)
        grep -q '^gone+0x' <<<"$text" || fail "no gone+0x in: $text"
        "$lapse" report a.lapse 2>&1 | grep -q '1 module.* could not be read' || fail "not counted: $("$lapse" report a.lapse 2>&1)"
        ;;
    budget)
        # Many modules and no time: the names that are missing at exit are there afterwards.
        mkdir many
        for number in $(seq 150); do
            sed "s/NAME/work_$number/" <<<'unsigned NAME(unsigned n) { for (unsigned i = 0; i < 6000000; i++) n = n * 1664525 + (n >> 3); return n; }' >many/$number.c
            gcc -O2 -shared -fPIC many/$number.c -o many/lib$number.so &
            [ $((number % 4)) != 0 ] || wait
        done
        wait
        cat >many.c <<'E2'
#include <dlfcn.h>
#include <stdio.h>
int main(void)
{
    unsigned sum = 1;
    for (int i = 1; i <= 150; i++) {
        char path[64], name[64];
        snprintf(path, sizeof path, "./many/lib%d.so", i);
        snprintf(name, sizeof name, "work_%d", i);
        unsigned (*work)(unsigned) = (unsigned (*)(unsigned))dlsym(dlopen(path, RTLD_NOW), name);
        sum = work(sum);
    }
    return sum == 7;
}
E2
        gcc -O2 many.c -o many_libraries -ldl
        LAPSE_EXIT_BUDGET_MS=1 LAPSE_VERBOSE=1 LAPSE_OUT=$work/short LAPSE_EXPORT=folded \
            LD_PRELOAD=$(dirname "$lapse")/liblapse.so ./many_libraries 2>said
        grep -qE 'LAPSE_EXIT_BUDGET_MS was not enough|longer than LAPSE_EXIT_BUDGET_MS' said || fail "nothing said: $(cat said)"
        unnamed=$(report short.lapse | grep '\.so+0x') && fail "names are missing afterwards: $unnamed"
        LAPSE_OUT=$work/long LAPSE_EXPORT=folded LD_PRELOAD=$(dirname "$lapse")/liblapse.so ./many_libraries
        grep -q 'lib[0-9]*.so+0x' long.folded && fail "names are missing without a limit"
        ;;
    rustc)
        need rustc
        cat >program.rs <<'E2'
mod shop {
    pub struct Till<T> { pub all: Vec<T> }
    impl Till<u32> {
        #[inline(never)]
        pub fn count(&mut self, mut seed: u32) -> u64 {
            let mut sum = 0u64;
            for x in self.all.iter_mut() {
                seed ^= seed << 13; seed ^= seed >> 17; seed ^= seed << 5;
                *x = seed;
                sum += (seed % 7) as u64;
            }
            sum
        }
    }
}
fn main() {
    let mut till = shop::Till { all: vec![0u32; 100000] };
    let mut sum = 0;
    for i in 0..1200 { sum += till.count(i + 1); }
    println!("{}", sum);
}
E2
        for mangling in default v0; do
            flags=
            [ $mangling = default ] || flags="-C symbol-mangling-version=$mangling"
            # shellcheck disable=SC2086
            rustc -g -O $flags program.rs -o program_$mangling 2>rustc.out || fail "rustc: $(tail -n 3 rustc.out)"
            record $mangling ./program_$mangling
            text=$(report --no-inlines $mangling.lapse)
            grep -q 'shop::Till<u32>.*::count' <<<"$text" || fail "no shop::Till<u32>::count: $text"
            report --no-inlines --demangle=none $mangling.lapse | grep -qE '^(_ZN|_R).*count' || fail "--demangle=none"
        done
        ;;
    debuginfod)
        # A server on this machine that knows one debug file: asked once, then the cache answers.
        need python3
        g++ -O2 -g -Wl,--build-id -Wl,--exclude-libs,ALL program.cc -o program
        id=$(readelf -n program | sed -n 's/.*Build ID: //p')
        mkdir -p "served/buildid/$id"
        objcopy --only-keep-debug program "served/buildid/$id/debuginfo"
        head -c 30M /dev/urandom >padding # so that there is progress to be seen
        objcopy --add-section .padding=padding "served/buildid/$id/debuginfo"
        strip program
        record a ./program
        cat >server.py <<'E2'
import http.server, os, sys, time
class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, form, *values):
        with open("requests", "a") as log: log.write(form % values + "\n")
    def copyfile(self, source, to):
        while (part := source.read(1 << 20)):
            to.write(part)
            time.sleep(0.1)
os.chdir("served")
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
os.chdir("..")
open("port", "w").write(str(server.server_address[1]))
Handler.directory = "served"
Handler.__init__ = lambda self, *a, **k: http.server.SimpleHTTPRequestHandler.__init__(self, *a, directory="served", **k)
server.serve_forever()
E2
        python3 server.py 2>/dev/null &
        server=$!
        trap 'kill $server 2>/dev/null || true; rm -rf "$work"' EXIT
        for _ in $(seq 50); do [ -s port ] || sleep 0.1; done
        export DEBUGINFOD_CACHE_PATH=$work/cache
        report --no-inlines a.lapse | grep -q 'shop::till' && fail "named without a server"
        export DEBUGINFOD_URLS="http://127.0.0.1:$(cat port)"
        # On a terminal progress is shown.
        timeout 60 script -qec "$lapse report --no-inlines a.lapse" /dev/null >terminal 2>&1 </dev/null
        grep -q 'debuginfod: *[0-9]* %' terminal || fail "no progress: $(tr '\r' '\n' <terminal | head -n 5)"
        has "$(report --no-inlines a.lapse)" "$function"
        [ "$(grep -c "GET /buildid/$id/debuginfo.* 200" requests)" = 1 ] || fail "asked again: $(cat requests)"
        # Interrupted while it waits: the recording is as it was, and nothing lies beside it.
        cp a.lapse before.lapse
        for output in "" "-o part.lapse"; do
            result=0
            DEBUGINFOD_CACHE_PATH=$work/other timeout -s INT 1 "$lapse" symbolize $output a.lapse 2>/dev/null || result=$?
            [ $result = 124 ] || fail "not interrupted: status $result"
            rm -rf other
            [ "$(echo ./*.lapse*)" = "./a.lapse ./before.lapse" ] || fail "left behind: $(echo ./*.lapse*)"
            cmp a.lapse before.lapse
        done
        kill $server
        has "$(report --no-inlines a.lapse)" "$function"
        unset DEBUGINFOD_URLS
        ;;
    no_unwind)
        # Functions without unwind information have names all the same, each its own; without symbols they
        # are one stretch of code. Entries of the linkage table are told apart.
        cat >plain.c <<'E2'
#include <stdlib.h>
#define WORK(name) __attribute__((noinline)) unsigned name(unsigned x) \
    { for (unsigned i = 0; i < 150000000; i++) x = x * 1664525 + (x >> 3); return x; }
WORK(alpha) WORK(beta)
int main(int count, char **arguments) { (void)arguments; return (alpha(count) ^ beta(count)) == 7; }
E2
        gcc -O2 -g -fno-asynchronous-unwind-tables -Wl,--build-id plain.c -o plain
        export LAPSE_EXPORT=folded
        id=$(readelf -n plain | sed -n 's/.*Build ID: //p')
        mkdir -p "debug/.build-id/${id:0:2}"
        objcopy --only-keep-debug plain "debug/.build-id/${id:0:2}/${id:2}.debug"
        record named ./plain
        LAPSE_OUT=$work/own_plain LD_PRELOAD=$(dirname "$lapse")/liblapse.so ./plain
        strip plain
        record bare ./plain
        for name in alpha beta; do
            has "$(report named.lapse)" $name 0.3
            has "$(report --debug-dir="$work/debug" bare.lapse)" $name 0.3
            grep -q ";$name [0-9]" own_plain.folded || fail "no $name: $(cat own_plain.folded)"
        done
        [ "$(report bare.lapse | awk -F'\t' '/^plain\+0x/ && $3 > 0' | wc -l)" = 1 ] || fail "scattered: $(report bare.lapse)"
        cat >table.c <<'E2'
#include <stdlib.h>
int main(void)
{
    long sum = 0;
    for (int i = 0; i < 60000000; i++)
        sum += labs(sum - i) & atol("7");
    return sum == 7;
}
E2
        gcc -O2 -fno-builtin -Wl,-z,lazy table.c -o table
        record table ./table
        report table.lapse | cut -f1 | grep -q '^table+0x' && fail "an entry without a name: $(report table.lapse)"
        report table.lapse | grep -qE '^(labs|atol)@plt' || fail "no entry: $(report table.lapse)"
        unset LAPSE_EXPORT
        ;;
    jit_dump)
        # Two functions, one after the other at the same address, written as jitdump with lines; the
        # process is killed. Names go by time.
        jit_program
        timeout 60 "$lapse" record -q -o a.lapse ./jit && fail "not killed"
        text=$(report a.lapse)
        for name in early late alone '[anon:exec]'; do
            has "$text" "$name" 0.1
        done
        "$lapse" report --format=tsv --lines=alone a.lapse | grep -q 'jit.lua.31' || fail "no line of alone"
        ;;
    jit_at_exit)
        # The process itself reads the same at its end. Where one place had two functions, its folded text,
        # which has no times, names the last.
        jit_program
        mkdir elsewhere
        LAPSE_OUT=$work/own LAPSE_EXPORT=folded LD_PRELOAD=$(dirname "$lapse")/liblapse.so ./jit ends
        mv jit-*.dump elsewhere/
        text=$(report own.lapse)
        for name in early late alone '[anon:exec]'; do
            has "$text" "$name" 0.1
        done
        "$lapse" report --format=tsv --lines=alone own.lapse | grep -q 'jit.lua.31' || fail "no line of alone"
        for name in late alone '[anon:exec]'; do
            grep -qF ";$name " own.folded || fail "no $name: $(cat own.folded)"
        done
        grep -qE 'early|exec\]\+0x' own.folded && fail "wrong name: $(cat own.folded)"
        # Under record both read it; nothing is told twice.
        record both ./jit ends
        [ "$(strings -n 5 both.lapse | grep -c early)" = 1 ] || fail "told twice: $(strings -n 5 both.lapse | grep early)"
        ;;
    jit_stale)
        # A perf map that is not this program's names nothing: of an earlier process or program of this
        # number, behind a link, of somebody else. The program is loaded at the addresses that it names.
        gcc -O2 -x c - -o jit <<'E2'
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
int main(int count, char **arguments)
{
    char path[64];
    const char *kind = count > 1 ? arguments[1] : "";
    static const unsigned char loop[] = { 0xff, 0xcf, 0x75, 0xfc, 0xc3 };
    unsigned char *code = mmap((void *)0x10000000, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    if (strcmp(kind, "earlier")) {
        FILE *map = fopen(strcmp(kind, "link") ? path : "real.map", "w");
        fprintf(map, "10000000 5 from_the_map\n");
        fclose(map);
    }
    if (!strcmp(kind, "link") && symlink("real.map", path))
        return 1;
    if (!strcmp(kind, "old")) {
        struct timespec times[2] = { { time(NULL) - 5, 0 }, { time(NULL) - 5, 0 } };
        utimensat(AT_FDCWD, path, times, 0);
    }
    if (!strcmp(kind, "foreign") && chown(path, 65534, 65534))
        return 77;
    memcpy(code, loop, sizeof loop);
    ((void (*)(unsigned))code)(200000000);
    return 0;
}
E2
        preload=$(dirname "$lapse")/liblapse.so
        for how in fresh old link foreign earlier; do
            result=0
            if [ $how = earlier ]; then
                LAPSE_OUT=$work/$how LAPSE_EXPORT=folded LD_PRELOAD=$preload bash -c \
                    'echo "10000000 5 from_the_map" >"/tmp/perf-$$.map"; echo $$ >pid; sleep 0.1; exec ./jit earlier' || result=$?
            else
                LAPSE_OUT=$work/$how LAPSE_EXPORT=folded LD_PRELOAD=$preload bash -c \
                    'echo $$ >pid; exec ./jit "$1"' bash $how || result=$?
            fi
            rm -f "/tmp/perf-$(cat pid).map"
            [ $result = 0 ] || [ $how$result = foreign77 ] || fail "$how: status $result"
            text=$(cat $how*.folded)
            if [ $how = fresh ]; then
                grep -q 'from_the_map' <<<"$text" || fail "fresh: not named: $text"
            else
                grep -q '\[anon:exec\]' <<<"$text" || fail "$how: $text"
                grep -q 'from_the_map' <<<"$text" && [ $result = 0 ] && fail "$how: believed: $text"
            fi
        done
        ;;
    java)
        # The JVM faults on purpose, has stacks of its own and writes its perf map as the last thing.
        need javac
        cat >Hot.java <<'E2'
public class Hot {
    static long hotLoop(int[] all, int seed) {
        long sum = 0;
        for (int i = 0; i < all.length; i++) {
            seed ^= seed << 13; seed ^= seed >>> 17; seed ^= seed << 5;
            sum += (all[i] = seed) & 7;
        }
        return sum;
    }
    static int endless(int n) { return endless(n + 1) + 1; }
    public static void main(String[] arguments) throws Exception {
        int[] all = new int[100000];
        long sum = 0, caught = 0;
        for (int i = 0; i < 3000; i++) sum += hotLoop(all, i + 1);
        Object nothing = null;
        for (int i = 0; i < 100000; i++) try { nothing.hashCode(); } catch (NullPointerException e) { caught++; }
        try { endless(0); } catch (StackOverflowError e) { caught++; }
        long[] sums = new long[3];
        Thread[] threads = new Thread[3];
        for (int t = 0; t < 3; t++) {
            int own = t;
            threads[t] = new Thread(() -> { int[] mine = new int[100000]; for (int i = 0; i < 500; i++) sums[own] += hotLoop(mine, own + i + 1); });
            threads[t].start();
        }
        for (Thread thread : threads) thread.join();
        byte[][] garbage = new byte[1000][];
        for (int i = 0; i < 200000; i++) garbage[i % 1000] = new byte[1000];
        System.out.println(sum + " " + caught + " " + sums[0] + " " + sums[1] + " " + sums[2]);
        System.exit(3);
    }
}
E2
        javac Hot.java || { echo "javac is not usable"; exit 77; }
        map="-XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit"
        wanted=$(java $map Hot) && fail "the program's status is not its own"
        [ -n "$wanted" ] || { echo "no java with perf maps"; exit 77; }
        for options in "" "-XX:+PreserveFramePointer"; do
            rm -f java.*
            result=0
            found=$(LAPSE_HZ=997 LAPSE_OUT=$work/java LAPSE_EXPORT=folded LD_PRELOAD=$(dirname "$lapse")/liblapse.so \
                java $map $options Hot) || result=$?
            [ "$found" = "$wanted" ] && [ $result = 3 ] || fail "java $options: status $result, $found instead of $wanted"
            has "$(report java.lapse)" 'long Hot.hotLoop(int[], int)'
            awk '{ all += $NF } /^\[unwind failed\]/ { lost += $NF } /\[anon:exec\]/ { unnamed += $NF }
                END { print all " samples, " lost + 0 " without their outer frames, " unnamed + 0 " with code without a name"
                    exit lost > all / 50 || unnamed > all / 20 }' java.folded || fail "java $options: see above"
        done
        ;;
    luajit)
        # Without a map its code is nobody's; with one, written by the program, it has names.
        need luajit
        cat >hot.lua <<'E2'
local function hotLoop(n) local s = 0 for i = 1, n do s = (s * 31 + i) % 1000003 end return s end
local t = 0
for k = 1, 60 do t = t + hotLoop(1000000) end
print(t)
if arg[1] then
    local util, ffi = require("jit.util"), require("ffi")
    ffi.cdef("int getpid(void);")
    local map = io.open("/tmp/perf-" .. ffi.C.getpid() .. ".map", "w")
    for trace = 1, 100 do
        local code, address = util.tracemc(trace)
        if code then map:write(string.format("%x %x lua_trace_%d\n", address % 2^48, #code, trace)) end
    end
    map:close()
    os.remove(arg[1])
end
E2
        wanted=$(luajit hot.lua)
        for map in "" map; do
            found=$(LAPSE_OUT=$work/lua$map LAPSE_EXPORT=folded LD_PRELOAD=$(dirname "$lapse")/liblapse.so luajit hot.lua $map)
            [ "$found" = "$wanted" ] || fail "luajit: $found instead of $wanted"
        done
        has "$(report lua.lapse)" '[anon:exec]' 0.9
        has "$(report luamap.lapse | sed 's/^lua_trace_[0-9]*/lua_trace/')" lua_trace 0.9
        grep -q '^_start;' luamap.folded || fail "no whole stack: $(cat luamap.folded)"
        ;;
    python)
        # Its own perf maps, and jitdump files (3.13), whose code is gone before the end.
        python=
        for name in python3.14 python3.13 python3.12 python3; do
            python=$("$name" -c 'import sys; sys.activate_stack_trampoline; print(sys.executable)' 2>/dev/null) && break
        done
        [ -n "$python" ] || { echo "no Python 3.12 or later"; exit 77; }
        cat >hot.py <<'E2'
def hot_loop(n):
    s = 0
    for i in range(n):
        s = (s * 31 + i) % 1000003
    return s
print(sum(hot_loop(200000) for k in range(15)))
E2
        for how in perf perf_jit; do
            "$python" -X $how -c 'import sys; sys.exit(not sys.is_stack_trampoline_active())' 2>/dev/null || continue
            LAPSE_OUT=$work/$how LAPSE_EXPORT=folded LD_PRELOAD=$(dirname "$lapse")/liblapse.so "$python" -X $how hot.py >/dev/null
            report $how.lapse | awk -F'\t' '$1 ~ /^py::hot_loop:.*hot.py$/ && $6 > 0.5 { found = 1 } END { exit !found }' ||
                fail "$how: no hot_loop: $(report $how.lapse | head -n 20)"
            echo "$how: named"
        done
        ;;
    jit_killed)
        need node
        cat >hot.js <<'E2'
function hotLoop(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) % 1000003; return s; }
let t = 0;
for (let k = 0; k < 300; k++) t += hotLoop(1000000);
if (process.argv[2]) process.kill(process.pid, "SIGKILL");
console.log(t);
E2
        timeout 60 "$lapse" record -q -o a.lapse node --perf-basic-prof hot.js killed && fail "not killed"
        report a.lapse | cut -f1 | grep -q hotLoop || fail "no hotLoop: $(report a.lapse | head -n 20)"
        # A jitdump file alone.
        record b node --perf-prof hot.js
        report b.lapse | cut -f1 | grep -q hotLoop || fail "no hotLoop: $(report b.lapse | head -n 20)"
        ;;
    jit_namespace)
        # Its own process numbers and its own /tmp, both gone with the process.
        need unshare
        unshare -m -p -f true 2>/dev/null || { echo "no namespaces here"; exit 77; }
        case $lapse in /tmp/*) echo "the build lies in /tmp, which the namespace hides"; exit 77 ;; esac
        gcc -O2 -x c - -o jit <<'E2'
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void)
{
    char path[64];
    static const unsigned char loop[] = { 0xff, 0xcf, 0x75, 0xfc, 0xc3 };
    unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    FILE *map = fopen(path, "w");
    fprintf(map, "%lx %zx inner_work\n", (unsigned long)code, sizeof loop);
    fclose(map);
    memcpy(code, loop, sizeof loop);
    for (int i = 0; i < 8; i++)
        ((void (*)(unsigned))code)(400000000);
    raise(SIGKILL);
}
E2
        # The spool has to stay within its reach, so what is hidden is /tmp, and we are elsewhere.
        away=$(mktemp -d /var/tmp/lapse-XXXXXX)
        trap 'rm -rf "$work" "$away"' EXIT
        cp jit "$away"
        timeout 60 "$lapse" record -q -o "$away/a.lapse" unshare -m -p -f sh -c \
            "mount -t tmpfs none /tmp && mount -t proc none /proc && '$away/jit'; kill -9 \$\$" || true
        mv "$away/a.lapse" .
        has "$(report a.lapse)" inner_work 0.5
        ;;
    *) fail "unknown kind $kind" ;;
    esac
    echo "$kind: right"
done
