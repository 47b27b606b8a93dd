#!/bin/sh
# SPDX-License-Identifier: MIT
# Check a model exhaustively. usage: check.sh MODEL FOLDER [-DNAME=VALUE ...]; with -DLIVENESS=1 its LTL
# formula, under weak fairness, in place of deadlocks.
set -eu
model=$1 folder=$2
shift 2
command -v spin > /dev/null || { echo "skipped: no spin"; exit 77; }
mkdir -p "$folder"
cd "$folder"
spin "$@" -a "$model"
case " $* " in
*' -DLIVENESS=1 '*) kind=-DNFAIR=3 options='-a -f' ;;
*) kind=-DSAFETY options= ;;
esac
cc -O2 $kind -DCOLLAPSE -w -o pan pan.c
# shellcheck disable=SC2086
./pan -m1000000 $options > result.txt
grep -E 'errors:|states, stored|elapsed' result.txt
grep -q 'errors: 0' result.txt
! grep -q 'max search depth too small' result.txt
