#!/bin/sh
# SPDX-License-Identifier: MIT
# Run every benchmark that was built, one after the other, a headline before each.
# usage: bench/run.sh BUILD_DIR
set -eu
for program in "$1"/bench/*; do
    [ -f "$program" ] && [ -x "$program" ] || continue
    echo "# $(basename "$program")"
    timeout 600 "$program" || echo "# $(basename "$program"): exit status $?"
done
