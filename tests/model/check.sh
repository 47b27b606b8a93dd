#!/bin/sh
# SPDX-License-Identifier: MIT
# Check a model exhaustively. usage: check.sh MODEL FOLDER [-DNAME=VALUE ...]
set -eu
model=$1 folder=$2
shift 2
command -v spin > /dev/null || { echo "skipped: no spin"; exit 77; }
mkdir -p "$folder"
cd "$folder"
spin "$@" -a "$model"
cc -O2 -DSAFETY -DCOLLAPSE -w -o pan pan.c
./pan -m1000000 > result.txt
grep -E 'errors:|states, stored' result.txt
grep -q 'errors: 0' result.txt
! grep -q 'max search depth too small' result.txt
