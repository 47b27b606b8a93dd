#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs one example and looks for what it promises in its recording. usage: check.sh NAME BUILD_DIR
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$1" >&2; cat "$work/report" >&2; exit 1; }
plugin=
[ "$1" != plugin_host ] || plugin=$2/examples/example-plugin.so
# shellcheck disable=SC2086 # empty for most
"$2/examples/example-$1" "$work/out" $plugin
case $1 in
thread_pool) key=request values="search checkout" ;;
plugin_host) key=plugin values="round" ;;
scopes) key=document values="good bad" ;;
esac
"$2/lapse" report --by=$key --format=tsv "$work/out.lapse" >"$work/report"
for value in $values; do
    grep -q "^$value" "$work/report" || fail "no samples with $key=$value"
done
"$2/lapse" report "$work/out.lapse" >"$work/report"
case $1 in
thread_pool) "$2/lapse" export --to=chrome "$work/out.lapse" >"$work/trace"
    grep -q '"cat":"span"' "$work/trace" || fail "no spans" ;;
plugin_host) grep -q convolve "$work/report" || fail "no samples in the plugin" ;;
scopes) ! grep -q housekeeping "$work/report" || fail "paused code was sampled" ;;
esac
