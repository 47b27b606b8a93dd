#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: soak.sh LIBRARY MINUTES
# Two redis servers side by side, one under lapse at 1,000 Hz. redis-benchmark loads them in turns, in
# random order within each pair, for MINUTES. Wanted: throughput of the profiled server at least 98 % of
# the other (median of the pairs: what else runs on the machine hits single turns), and, after the
# first minute under load (the second of both), no growth of its memory that the other does not show. Exit 0, 1, 77 (no redis).
set -u
library=$1 minutes=$2
command -v redis-server >/dev/null && command -v redis-benchmark >/dev/null || { echo "no redis"; exit 77; }
folder=$(mktemp -d)
servers=()
stop() {
    for pid in "${servers[@]}"; do kill -TERM "$pid" 2>/dev/null; done
    wait 2>/dev/null
    rm -rf "$folder"
}
trap stop EXIT

serve() { # NAME [VARIABLE=VALUE...]
    local name=$1
    shift
    env "$@" redis-server --port 0 --unixsocket "$folder/$name" --save '' --appendonly no \
        --dir "$folder" --logfile /dev/null >/dev/null 2>&1 &
    servers+=($!)
    for _ in $(seq 100); do [ -S "$folder/$name" ] && return; sleep 0.05; done
    echo "redis-server does not start"
    exit 1
}

load() { # NAME REQUESTS: nanoseconds that it took
    local start
    start=$(date +%s%N)
    redis-benchmark -s "$folder/$1" -t set,get -n "$2" -c 20 -r 10000 -q >/dev/null 2>&1
    echo $(($(date +%s%N) - start))
}

resident() { awk '/^RssAnon/ { print $2 }' "/proc/$1/status"; }

serve plain
serve profiled LD_PRELOAD="$library" LAPSE_HZ=1000 LAPSE_OUT="$folder/soak-%p" LAPSE_EXPORT=folded
load plain 20000 >/dev/null
load profiled 20000 >/dev/null
# About three seconds a turn.
requests=$((20000 * 3000000000 / $(load plain 20000)))
first=()
start=$SECONDS pairs=0
while [ $((SECONDS - start)) -lt $((minutes * 60)) ]; do
    if [ $((RANDOM % 2)) = 0 ]; then
        plain=$(load plain "$requests"); profiled=$(load profiled "$requests")
    else
        profiled=$(load profiled "$requests"); plain=$(load plain "$requests")
    fi
    pairs=$((pairs + 1))
    echo "$plain $profiled" >>"$folder/pairs"
    if [ ${#first[@]} = 0 ] && [ $((SECONDS - start)) -ge 120 ]; then
        first=("$(resident "${servers[0]}")" "$(resident "${servers[1]}")")
    fi
done
last=("$(resident "${servers[0]}")" "$(resident "${servers[1]}")")
[ ${#first[@]} = 0 ] && first=("${last[@]}")
growth=$((last[1] - first[1] - (last[0] - first[0])))
kill -TERM "${servers[1]}"
wait "${servers[1]}"
status=$?
samples=$(awk '{ n += $NF } END { print n + 0 }' "$folder"/soak-*.folded)
awk '{ print $1 / $2; a += $1; b += $2 } END { print a / b > "/dev/stderr" }' "$folder/pairs" \
    2>"$folder/total" | sort -n >"$folder/ratios"
median=$(awk '{ r[NR] = $1 } END { print NR % 2 ? r[(NR + 1) / 2] : (r[NR / 2] + r[NR / 2 + 1]) / 2 }' "$folder/ratios")
echo "$pairs pairs of $requests requests (twice), $samples samples: throughput $median of plain (median), $(cat "$folder/total") (total)"
echo "memory: ${first[1]} kB after two minutes, ${last[1]} kB at the end, $growth kB more than the other grew; status $status"
awk -v ratio="$median" -v growth="$growth" -v status="$status" -v samples="$samples" \
    'BEGIN { exit !(ratio >= 0.98 && growth <= 512 && status == 0 && samples > 0) }'
