#!/bin/sh
# SPDX-License-Identifier: MIT
# Install the Debian packages that the given groups of cmake/packages.txt name, if any is missing.
# usage: cmake/setup.sh build|demo|test|bench|long|deb ...
set -eu
list=$(dirname "$0")/packages.txt
wanted=$(awk -v groups=" $* " '/^#/ { on = index(groups, " " $2 " ") > 0; next } on && NF { print $1 ":" $2 }' "$list")
missing=
for entry in $wanted; do
    package=${entry%%:*} instead=${entry#*:}
    [ -z "$instead" ] || ! command -v "$instead" >/dev/null || continue
    state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" -ne 0 ]; then
    echo "setup: these Debian packages are missing; as root: apt-get install$missing" >&2
    exit 1
fi
echo "setup: installing$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086 # a list of words
apt-get install -y -qq --no-install-recommends $missing >/dev/null
