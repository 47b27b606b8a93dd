#!/bin/sh
# SPDX-License-Identifier: MIT
# usage: install.sh BUILD_DIR SOURCE_DIR
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "install: $*" >&2; exit 1; }

cmake --install "$1" --prefix "$work/prefix" >/dev/null
for file in bin/lapse include/lapse.h include/lapse/diff.h share/man/man1/lapse.1 share/man/man3/lapse.3; do
    [ -f "$work/prefix/$file" ] || fail "$file was not installed"
done

cmake -S "$2/examples/consumer" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build "$work/build" >/dev/null
"$work/build/consumer" "$work/out" || fail "the consumer found no samples"
[ -s "$work/out.lapse" ] || fail "the consumer left no recording"

# By hand, as docs/LINKING.md has it: liblapse.a in front of the other libraries, and behind them.
libdir=$(dirname "$(find "$work/prefix" -name liblapse.a)")
for order in "-l:liblapse.a -lpthread -ldl" "-lpthread -ldl -l:liblapse.a"; do
    # shellcheck disable=SC2086 # flags are words
    cc "$2/examples/consumer/consumer.c" -I"$work/prefix/include" -L"$libdir" $order -Wl,@"$libdir/lapse/static.options" \
        -o "$work/by-hand" 2>"$work/err" || fail "by hand, $order: $(cat "$work/err")"
    rm -f "$work/hand"*
    "$work/by-hand" "$work/hand" || fail "the program linked with $order found no samples"
done

# The same by pkg-config.
PKG_CONFIG_PATH=$(find "$work/prefix" -name pkgconfig) && export PKG_CONFIG_PATH
# shellcheck disable=SC2046 # flags are words
cc "$2/examples/consumer/consumer.c" -o "$work/by-pc" $(pkg-config --cflags --libs lapse) \
    -Wl,-rpath,"$(pkg-config --variable=libdir lapse)"
"$work/by-pc" "$work/pc" || fail "the program built by pkg-config found no samples"

# Without a loader.
# shellcheck disable=SC2046
cc -static "$2/examples/consumer/consumer.c" -o "$work/static" $(pkg-config --cflags --libs --static lapse) 2>"$work/err" ||
    fail "static: $(cat "$work/err")"
"$work/static" "$work/static-out" || fail "the static program found no samples"

# The installed command finds the installed library.
"$work/prefix/bin/lapse" record -o "$work/rec" -- sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done' 2>"$work/err" ||
    fail "lapse record: $(cat "$work/err")"
[ -s "$work/rec.lapse" ] || fail "lapse record left no recording: $(cat "$work/err")"
