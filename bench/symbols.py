#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Names of 100,000 distinct addresses of a binary with more than 200 MB of debug information: lapse
beside llvm-symbolizer and eu-addr2line -i, fed the same list in the same run.

usage: symbols.py LAPSE_ADDRESSES SOURCE [LIMIT]

The binary is made here: one translation unit is compiled once, copied 66 times under other names and
linked into one library. Prints TSV: tool, addresses, seconds, peak memory in KiB. A tool that takes
longer than LIMIT seconds (else than 30 times lapse's time and a minute) is ended and its row says so
with ">".
"""
import os, random, re, resource, signal, subprocess, sys, tempfile, time

COPIES, ADDRESSES = 66, 100000


def build(folder, source):
    run = lambda *command: subprocess.run(command, cwd=folder, check=True)
    run("g++", "-std=c++17", "-O2", "-g", "-fPIC", "-DPARTS=12", "-c", source, "-o", "part.o")
    parts = []
    for copy in range(COPIES):
        run("objcopy", "--prefix-symbols=copy%d_" % copy, "part.o", "copy%d.o" % copy)
        parts.append("copy%d.o" % copy)
    run("g++", "-shared", "-nostdlib", "-Wl,--unresolved-symbols=ignore-all", "-Wl,--build-id", "-o",
        "big.so", *parts)
    for part in parts:
        os.unlink(os.path.join(folder, part))
    return os.path.join(folder, "big.so")


def sections(path):
    text, debug = None, 0
    for line in subprocess.run(["readelf", "-SW", path], capture_output=True, text=True).stdout.splitlines():
        found = re.match(r"\s*\[\s*\d+\]\s+(\S+)\s+\w+\s+(\w+)\s+\w+\s+(\w+)", line)
        if found and found[1] == ".text":
            text = (int(found[2], 16), int(found[3], 16))
        elif found and found[1].startswith(".debug"):
            debug += int(found[3], 16)
    return text, debug


def measure(command, addresses, limit):
    """Seconds and peak KiB; negative seconds when it was ended at the limit."""
    with open(addresses) as given, open(os.devnull, "w") as nothing:
        start = time.monotonic()
        child = subprocess.Popen(command, stdin=given, stdout=nothing, stderr=nothing)
        ended = False
        while True:
            pid, _, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            if not ended and time.monotonic() - start > limit:
                child.send_signal(signal.SIGKILL)
                ended = True
            time.sleep(0.005)
        child.returncode = 0
        seconds = time.monotonic() - start
        return (-seconds if ended else seconds), usage.ru_maxrss


def main():
    tool, source = sys.argv[1:3]
    fixed = float(sys.argv[3]) if len(sys.argv) > 3 else None
    random.seed(1)
    with tempfile.TemporaryDirectory(prefix="lapse-symbols-") as folder:
        binary = build(folder, os.path.abspath(source))
        (start, size), debug = sections(binary)
        addresses = os.path.join(folder, "addresses")
        with open(addresses, "w") as out:
            out.writelines("%#x\n" % address for address in random.sample(range(start, start + size), ADDRESSES))
        print("# %.0f MB of debug information, %.0f MB of code" % (debug / 1e6, size / 1e6))
        print("tool\taddresses\tseconds\tpeak KiB", flush=True)
        limit = fixed or 600
        for name, command in (("lapse", [tool, binary]), ("llvm-symbolizer", ["llvm-symbolizer", "--obj=" + binary]),
                              ("eu-addr2line", ["eu-addr2line", "-i", "-f", "-e", binary])):
            seconds, peak = measure(command, addresses, limit)
            print("%s\t%d\t%s%.2f\t%d" % (name, ADDRESSES, ">" if seconds < 0 else "", abs(seconds), peak), flush=True)
            if name == "lapse" and not fixed:
                limit = max(60, 30 * seconds)


main()
