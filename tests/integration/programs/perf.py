# SPDX-License-Identifier: MIT
"""The same five functions as perf, in the same order where they differ by more than chance.

usage: perf.py PROGRAM LAPSE HOSTS_FOLDER. The program runs under `perf record` (software clock, user
code, frame pointers unused: self time needs no stacks) and under `lapse record`, apart, since one
would measure the other. Exit status 0, 1, or 77 for skipped (no perf, or it is not permitted).
"""
import math
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

from programs import write_functions, write_words

QUERY = ("create table t(a integer primary key, b); with recursive c(x) as (select 1 union all select x+1 from c "
         "where x<6000) insert into t select x, x*7919%1009 from c; "
         "select count(*), sum(p.b) from t p join t q on (p.b*q.a)%7=3;")
TOP = 5


def skip(why):
    print("skipped: " + why)
    sys.exit(77)


def command_of(program, folder, hosts):
    if program == "sqlite3":
        return ["sqlite3", ":memory:", QUERY], None
    if program == "xz":
        write_words(folder + "/words", 200000)
        return ["xz", "-T2", "--block-size=1MiB", "-3", "-k", "-c", folder + "/words"], None
    if program == "python":
        source = ("import threading\ndef f():\n  s = 0; d = {}\n  for i in range(3000000): s += i * i; d[i % 97] = str(i)\n"
                  "t = [threading.Thread(target=f) for _ in range(2)]\n[x.start() for x in t]; f(); [x.join() for x in t]\n")
        return [sys.executable, "-c", source], None
    if program == "cxx":
        return [hosts + "/exceptions", "2.5"], None
    write_functions(folder + "/many.c", 600)
    return ["gcc", "-O2", "-c", folder + "/many.c", "-o", folder + "/many.o"], "cc1"


def segments_of(path):
    """File offset, size and address minus offset of each executable segment."""
    with open(path, "rb") as file:
        head = file.read(64)
        count, size = struct.unpack_from("<H", head, 56)[0], struct.unpack_from("<H", head, 54)[0]
        file.seek(struct.unpack_from("<Q", head, 32)[0])
        for _ in range(count):
            kind, flags, offset, address, _, length = struct.unpack_from("<IIQQQQ", file.read(size))
            if kind == 1 and flags & 1:
                yield offset, length, address - offset


class Places:
    """From an address of a perf script to one in its module, by the mappings seen so far."""

    def __init__(self):
        self.mapped, self.segments = {}, {}

    def take(self, line):
        match = re.search(r"PERF_RECORD_MMAP2 (-?\d+)/.*\[0x([0-9a-f]+)\(0x([0-9a-f]+)\) @ (?:0x)?([0-9a-f]+) .*: .{4} (/.*)$", line)
        if match:
            start = int(match[2], 16)
            self.mapped.setdefault((match[1], match[5]), []).append((start, start + int(match[3], 16), int(match[4], 16)))

    def offset(self, pid, path, address):
        if path not in self.segments:
            self.segments[path] = list(segments_of(path)) if os.path.isfile(path) else []
        for start, end, offset in self.mapped.get((pid, path), []):
            at = address - start + offset
            for first, length, bias in self.segments[path]:
                if start <= address < end and first <= at < first + length:
                    return at + bias
        return 0


def perf_functions(perf, command, comm, folder, unnamed):
    """Samples by function. In stripped files perf takes the nearest symbol before a pc for its
    function; where lapse knows of a nameless one that begins between the two, that one is meant."""
    data = folder + "/perf.data"
    run = subprocess.run([perf, "record", "-q", "-e", "cpu-clock:u", "-F", "997", "-o", data, "--"] + command,
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if run.returncode or not os.path.exists(data):
        skip("perf record: " + run.stderr.decode(errors="replace").strip()[-200:])
    script = subprocess.run([perf, "script", "-i", data, "--show-mmap-events", "-F", "comm,pid,ip,sym,symoff,dso"],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    counts, places = {}, Places()
    for line in script.stdout.decode(errors="replace").splitlines():
        places.take(line)
        match = re.match(r"\s*(.+?)\s+(\d+)\s+([0-9a-f]+) (.*) \((.*)\)$", line)
        if not match or (comm and match[1] != comm):
            continue
        module, symbol = os.path.basename(match[5]), re.match(r"(.*)\+0x([0-9a-f]+)$", match[4])
        at, distance = places.offset(match[2], match[5], int(match[3], 16)), int(symbol[2], 16) if symbol else 1 << 62
        if symbol and symbol[1].endswith("@plt"):
            distance = 1 << 62  # PLT entries share one entry in the unwind table, so they are one to lapse
        begins = max((start for start in unnamed.get(module, []) if at - distance < start <= at), default=None)
        name = "%s+0x%x" % (module, begins) if begins is not None else symbol[1] if symbol else module
        counts[name] = counts.get(name, 0) + 1
    return counts


def lapse_functions(lapse, command, comm, folder):
    """Self samples by function, and the starts of those without a name by module."""
    recording = folder + "/of.lapse"
    subprocess.run([lapse, "record", "-q", "-F", "997", "--clock=perf", "-o", recording, "--"] + command, check=True,
                   stdout=subprocess.DEVNULL)
    folded = subprocess.run([lapse, "export", "--to=folded", "--no-inlines", "--processes", recording], check=True,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    counts, unnamed = {}, {}
    for line in folded.stdout.decode(errors="replace").splitlines():
        stack, weight = line.rsplit(" ", 1)
        frames = stack.split(";")
        if frames[-1] == "[not sampled]" or (comm and comm not in frames[0]):
            continue
        counts[frames[-1]] = counts.get(frames[-1], 0) + int(weight)
        place = re.match(r"(.*)\+0x([0-9a-f]+)$", frames[-1])
        if place:
            unnamed.setdefault(place[1], set()).add(int(place[2], 16))
    return counts, unnamed


def plain(name):
    """Both demangle, in styles of their own; clones and versions of one function are one."""
    return re.sub(r"\(.*|@.*|\.(constprop|isra|part|cold)\b.*|^void |^int ", "", name).strip()


def shares(counts):
    total, merged = max(sum(counts.values()), 1), {}
    for name, count in counts.items():
        merged[plain(name)] = merged.get(plain(name), 0) + count / total
    return merged, total


def compare(ours, theirs):
    """Shares of one function in two runs differ by chance by the root of both variances; four of
    those, and 1.5 % of the whole for what two runs of one program differ by."""
    (mine, mine_count), (perfs, perf_count) = shares(ours), shares(theirs)
    print("%d samples of lapse, %d of perf" % (mine_count, perf_count))
    failed = mine_count < 300 or perf_count < 300

    def margin(p, q):
        return 4 * math.sqrt(p * (1 - p) / mine_count + q * (1 - q) / perf_count) + 0.015
    top = sorted(perfs, key=lambda name: -perfs[name])[:TOP]
    for name in top + [name for name in sorted(mine, key=lambda name: -mine[name])[:TOP] if name not in top]:
        p, q = mine.get(name, 0), perfs.get(name, 0)
        good = abs(p - q) <= margin(p, q)
        failed |= not good
        print("%s %-50.50s lapse %6.2f %%  perf %6.2f %%  +- %.2f"
              % ("ok:    " if good else "FAILED:", name, 100 * p, 100 * q, 100 * margin(p, q)))
    for i, first in enumerate(top):
        for second in top[i + 1:]:
            apart = perfs[first] - perfs[second] > margin(perfs[first], perfs[second])
            if apart and mine.get(first, 0) <= mine.get(second, 0):
                print("FAILED: %s before %s in perf, after it in lapse" % (first, second))
                failed = True
    return failed


def main():
    program, lapse, hosts = sys.argv[1], os.path.realpath(sys.argv[2]), sys.argv[3]
    perf = shutil.which("perf")
    if not perf:
        skip("no perf")
    folder = tempfile.mkdtemp(prefix="lapse-perf-")
    try:
        command, comm = command_of(program, folder, hosts)
        if not shutil.which(command[0]):
            skip("no " + command[0])
        ours, unnamed = lapse_functions(lapse, command, comm, folder)
        theirs = perf_functions(perf, command, comm, folder, unnamed)
        failed = compare(ours, theirs)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if failed else 0)


main()
