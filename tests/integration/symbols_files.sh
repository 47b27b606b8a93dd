#!/bin/bash
# SPDX-License-Identifier: MIT
# Build one program in the given ways and compare names, inline chains and lines of random addresses
# (symbols_compare.py prints the rates). Run by hand: symbols_files.sh LAPSE_ADDRESSES SOURCE_DIR
# ADDRESSES PARTS KIND...
set -eu
tool=$1 source=$2 addresses=$3 parts=$4
shift 4
here=$(dirname "$(readlink -f "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

compile() { # OUTPUT FLAGS...
    local output=$1
    shift
    g++ -std=c++17 -O2 -g -fPIC -shared -DPARTS="$parts" "$@" "$source/bench/symbols_program.cc" -o "$output"
}
compare() { # FILE OPTIONS...
    timeout 600 python3 "$here/symbols_compare.py" "$tool" "$1" "$addresses" "${@:2}"
}
need() {
    command -v "$1" >/dev/null || { echo "no $1"; exit 77; }
}
# Files that must be refused or read within their bounds, without a wrong name and without waiting.
refuse() { # FILE
    local out
    out=$(echo 0x1200 | timeout 20 "$tool" "$1" 2>/dev/null) || { echo "$1: failed or hung"; exit 1; }
    [ "$(head -n 1 <<<"$out")" = "??" ] || { echo "$1: named $out"; exit 1; }
}

for kind; do
    case $kind in
    dwarf5) compile dwarf5.so -gdwarf-5; compare dwarf5.so ;;
    dwarf4) compile dwarf4.so -gdwarf-4; compare dwarf4.so ;;
    dwarf3) compile dwarf3.so -gdwarf-3 -gstrict-dwarf; compare dwarf3.so ;;
    dwz)
        need dwz
        compile dwz.so
        cp dwz.so whole.so
        cp dwz.so dwz2.so
        dwz -m alternate.dwz dwz.so dwz2.so
        # The references read the file from before: llvm-symbolizer knows no alternate files.
        compare dwz.so --debug-file whole.so
        dwz dwz2.so -o single.so 2>/dev/null || true
        ;;
    split)
        compile split.so -gsplit-dwarf
        compare split.so
        compile split4.so -gdwarf-4 -gsplit-dwarf
        compare split4.so
        ;;
    package)
        need llvm-dwp
        compile package.so -gdwarf-5 -gsplit-dwarf
        llvm-dwp -e package.so -o package.so.dwp
        rm -f ./*.dwo
        compare package.so
        if command -v dwp >/dev/null; then
            compile package4.so -gdwarf-4 -gsplit-dwarf
            dwp -e package4.so -o package4.so.dwp
            rm -f ./*.dwo
            compare package4.so
        fi
        ;;
    separate)
        compile separate.so -Wl,--build-id=none
        cp separate.so whole.so
        objcopy --only-keep-debug separate.so separate.debug
        strip separate.so
        objcopy --add-gnu-debuglink=separate.debug separate.so
        compare separate.so --debug-file whole.so
        compile by_id.so -Wl,--build-id
        id=$(readelf -n by_id.so | sed -n 's/.*Build ID: //p')
        mkdir -p "debug/.build-id/${id:0:2}"
        cp by_id.so whole_id.so
        objcopy --only-keep-debug by_id.so "debug/.build-id/${id:0:2}/${id:2}.debug"
        strip by_id.so
        compare by_id.so --debug-file whole_id.so --debug-dir "$work/debug"
        ;;
    compressed)
        compile zlib.so -gz=zlib
        compare zlib.so
        compile older.so -gz=zlib-gnu
        compare older.so
        # libelf reads zstd from 0.189 on. An older one leaves the names, and it is said.
        compile plain.so
        if objcopy --compress-debug-sections=zstd plain.so zstd.so 2>/dev/null; then
            at=$(nm plain.so | sed -n 's/^\([0-9a-f]*\) t .*numbers.*/0x\1/p' | head -n 1)
            "$tool" plain.so <<<"$at" >plain.txt
            "$tool" zstd.so <<<"$at" >zstd.txt 2>said
            cmp -s plain.txt zstd.txt ||
                { grep -q 'this libelf cannot read' said && [ "$(head -n 1 zstd.txt)" = "$(tail -n 3 plain.txt | head -n 1)" ]; } ||
                { echo "zstd: $(cat zstd.txt said)"; exit 1; }
        fi
        ;;
    clang)
        need clang++
        clang++ -std=c++17 -O2 -g -fPIC -shared -DPARTS="$parts" "$source/bench/symbols_program.cc" -o clang.so
        compare clang.so
        ;;
    lto)
        compile lto.so -flto -ffunction-sections -Wl,--gc-sections
        compare lto.so
        ;;
    tables_only)
        need clang++
        clang++ -std=c++17 -O2 -gline-tables-only -fPIC -shared -DPARTS="$parts" \
            "$source/bench/symbols_program.cc" -o tables.so
        compare tables.so
        compile g1.so -g1
        compare g1.so
        ;;
    mini)
        # As Fedora ships files: only symbols, packed in .gnu_debugdata.
        compile mini.so
        cp mini.so symbols_only.so
        strip -g symbols_only.so
        objcopy --only-keep-debug symbols_only.so mini.debug
        xz -k mini.debug
        strip mini.so
        objcopy --add-section .gnu_debugdata=mini.debug.xz mini.so
        compare mini.so --debug-file symbols_only.so
        ;;
    c_o3)
        gcc -std=gnu11 -D_GNU_SOURCE -DLAPSE_VERSION='"x"' -O3 -g -fPIC -shared -flto -w -I"$source/include" \
            -I"$source/export" "$source"/export/{call_tree,diff,text,wire,output,heap,intern,index,estimate,distributions}.c \
            -o c.so
        compare c.so
        ;;
    libc)
        file=$(readlink -f /lib/x86_64-linux-gnu/libc.so.6)
        id=$(readelf -n "$file" | sed -n 's/.*Build ID: //p')
        debug=/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug
        [ -f "$debug" ] || { echo "no debug file of libc"; exit 77; }
        compare "$file" --debug-file "$debug"
        ;;
    hostile)
        compile good.so -Wl,--build-id=none
        for size in 1 63 64 100 1000 5000; do
            head -c $size good.so >"cut$size.so"
            refuse "cut$size.so"
        done
        truncate -s 4G sparse.so
        refuse sparse.so
        mkfifo fifo.so
        refuse fifo.so
        refuse /dev/zero
        refuse "$work"
        # Longer cuts, and a file that only claims to be huge: no crash, whatever is named.
        size=$(stat -c %s good.so)
        for part in 3 5 7 9; do
            head -c $((size * part / 10)) good.so >long.so
            echo 0x1200 | timeout 20 "$tool" long.so >/dev/null
        done
        cp good.so huge.so
        truncate -s 4G huge.so
        compare huge.so --debug-file good.so
        # Debuglinks in a circle, and to itself.
        cp good.so a.so
        strip a.so
        cp a.so b.so
        cp a.so linked.so
        cp a.so self.so
        objcopy --add-gnu-debuglink=b.so a.so 2>/dev/null
        objcopy --add-gnu-debuglink=a.so b.so 2>/dev/null
        objcopy --add-gnu-debuglink=self.so self.so 2>/dev/null || true
        for file in a.so b.so self.so; do
            timeout 20 "$tool" "$file" >/dev/null <<<0x1200
        done
        # A debuglink whose file has another checksum gives no names.
        objcopy --only-keep-debug good.so other.debug
        objcopy --add-gnu-debuglink=other.debug linked.so
        echo x >>other.debug
        at=$(nm good.so | sed -n 's/^\([0-9a-f]*\) t .*numbers.*/0x\1/p' | head -n 1)
        [ "$("$tool" linked.so <<<"$at" | head -n 1)" = "??" ] || { echo "wrong checksum was taken"; exit 1; }
        # A .dwo file that is cut between its opening and its reading: no names, and it is said.
        cat >cutter.c <<'E2'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <libelf.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
Elf *elf_memory(char *image, size_t size)
{
    struct stat status;
    Elf *(*real)(char *, size_t) = (Elf *(*)(char *, size_t))dlsym(RTLD_NEXT, "elf_memory");
    const char *path = getenv("CUT_FILE");
    if (!stat(path, &status) && (size_t)status.st_size == size && truncate(path, 4096))
        abort();
    return real(image, size);
}
E2
        gcc -shared -fPIC cutter.c -o cutter.so
        compile split.so -gsplit-dwarf
        dwo=$(echo ./*.dwo)
        at=$(nm split.so | sed -n 's/^\([0-9a-f]*\) t .*numbers.*/0x\1/p' | head -n 1)
        [ "$("$tool" split.so <<<"$at" | head -n 1)" != "??" ] || { echo "no name before the cut"; exit 1; }
        [ "$(CUT_FILE=$dwo LD_PRELOAD=./cutter.so "$tool" split.so <<<"$at" 2>said | head -n 1)" = "??" ] ||
            { echo "named out of a cut .dwo"; exit 1; }
        grep -q 'dwo: became shorter' said || { echo "not said: $(cat said)"; exit 1; }
        # Bytes of the debug information changed at random: any answer, but an answer.
        python3 - good.so "$tool" <<'PYTHON'
import random, re, subprocess, sys
good, tool = sys.argv[1:3]
data = open(good, "rb").read()
text, debug = None, []
for line in subprocess.run(["readelf", "-SW", good], capture_output=True, text=True).stdout.splitlines():
    found = re.match(r"\s*\[\s*\d+\]\s+(\S+)\s+\w+\s+(\w+)\s+(\w+)\s+(\w+)", line)
    if found and found[1] == ".text":
        text = int(found[2], 16), int(found[4], 16)
    if found and found[1].startswith(".debug"):
        debug.append((int(found[3], 16), int(found[4], 16)))
for seed in range(40):
    random.seed(seed)
    changed = bytearray(data)
    for _ in range(random.choice((1, 10, 1000))):
        start, size = random.choice(debug)
        changed[start + random.randrange(size)] = random.randrange(256)
    open("changed.so", "wb").write(changed)
    wanted = "".join("%#x\n" % (text[0] + random.randrange(text[1])) for _ in range(300))
    done = subprocess.run([tool, "changed.so"], input=wanted.encode(), capture_output=True, timeout=60)
    if done.returncode:
        sys.exit("seed %d: status %d" % (seed, done.returncode))
print("40 files with changed debug information: 40 answers")
PYTHON
        ;;
    *) echo "unknown kind $kind"; exit 2 ;;
    esac
done
