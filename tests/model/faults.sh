#!/bin/sh
# SPDX-License-Identifier: MIT
# A model that finds nothing proves nothing: each of the faults that MODEL lists in its first comment
# ("FAULT=number settings what") must be found. usage: faults.sh MODEL FOLDER
set -eu
model=$1 folder=$2
command -v spin > /dev/null || { echo "skipped: no spin"; exit 77; }
mkdir -p "$folder"
cd "$folder"
sed -n 's/^ \* *FAULT=\([0-9][0-9]*\)\(\( -D[A-Z_]*=[0-9]*\)*\).*/\1\2/p' "$model" > faults.txt
[ -s faults.txt ] || { echo "$model lists no faults"; exit 1; }
missed=
while read -r number settings; do
    # shellcheck disable=SC2086
    spin -DFAULT="$number" $settings -a "$model"
    cc -O0 -DSAFETY -DCOLLAPSE -w -o pan pan.c # found soon: compiling is what takes the time
    ./pan -m1000000 > result.txt
    grep -q 'errors: 0' result.txt && missed="$missed $number"
    echo "fault $number $settings: $(grep -E '^pan:' result.txt || echo 'not found')"
done < faults.txt
[ -z "$missed" ] || { echo "not found:$missed"; exit 1; }
