#!/bin/sh
# SPDX-License-Identifier: MIT
# Profile an unmodified sqlite3 on a heavy join, print the report, leave a flame graph.
# usage: examples/demo.sh BUILD_DIR OUTPUT_DIR
set -eu
lapse=$1/lapse
out=$2
mkdir -p "$out"
rm -f "$out"/sqlite3.lapse "$out"/sqlite3.html "$out"/sqlite3.folded

cat >"$out/join.sql" <<'SQL'
CREATE TABLE customer(id INTEGER PRIMARY KEY, name TEXT, town INTEGER);
CREATE TABLE purchase(id INTEGER PRIMARY KEY, customer INTEGER, price INTEGER);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
INSERT INTO customer SELECT i, 'customer ' || i * 7919 % 60000, i % 97 FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400000)
INSERT INTO purchase SELECT i, i * 31 % 60000 + 1, i * 17 % 1000 FROM n;
SELECT town, count(*), sum(price) FROM purchase JOIN customer ON customer.id = purchase.customer
    WHERE name LIKE '%9%' GROUP BY town ORDER BY 3 DESC LIMIT 3;
SELECT count(*) FROM customer a JOIN customer b ON a.town = b.town AND a.id < b.id WHERE a.name < b.name;
SQL

echo "profiling: sqlite3 :memory: < $out/join.sql"
"$lapse" record -o "$out/sqlite3" -- sqlite3 :memory: <"$out/join.sql" >/dev/null
echo
"$lapse" report --limit=15 "$out/sqlite3.lapse"
"$lapse" export --to=html -o "$out/sqlite3.html" "$out/sqlite3.lapse"
echo
echo "flame graph: $out/sqlite3.html"
