#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How often `lapse diff` shows a change that is not there, and how often one that is.

usage: rates.py false-alarms|power BUILD TRIALS

false-alarms: the same program on both sides, 5 repeats each, run in turn. Shown is a verdict `slower` or
              `appeared` for the total, or for any function (by itself or with what it calls) after correction.
power:        one function of 30 % of the time made 10 % slower, 10 repeats a side; shown is `slower` for it.

The workload of the power trials is sized by what is asked for: 340 ms a run at 4,000 Hz are 1,360 samples, 400 of
them in the function. Over ten runs its time has a standard error of 1.6 % (4,080 samples), the ratio of two sides
2.2 %: 10 % are 4.5 errors, of which the test takes 2.1 and the correction for other functions up to 0.5, and nine of
ten trials need 1.3. With 136 ms (1,630 samples) 10 % are 2.9 errors: two trials of three. `lapse power` does this sum
for any recording.

The bounds are those of the binomial distribution: a true rate at the limit (5 % for false alarms, 90 % for
power) passes 99.9 of 100 runs of this test. All rates are printed.
"""
import json, os, subprocess, sys, tempfile
from math import comb

FALSE_ALARMS, POWER, MISS = 0.05, 0.90, 0.001


def at_most(n, p):
    """Smallest k with P(Binomial(n, p) > k) < MISS."""
    below = 0.0
    for k in range(n + 1):
        below += comb(n, k) * p**k * (1 - p) ** (n - k)
        if 1 - below < MISS:
            return k
    return n


def clock_options(build, folder):
    """The perf clock reaches 4,000 Hz, where it may be used; the kernel's tick bounds the other."""
    out = os.path.join(folder, "probe")
    run = subprocess.run([build + "/lapse", "record", "-q", "--clock=perf", "-F", "4000", "-o", out, "--",
                          build + "/tests/statistical/workload", "20"], capture_output=True, text=True)
    text = subprocess.run([build + "/lapse", "report", out + ".lapse"], capture_output=True, text=True).stdout
    return (["--clock=perf", "-F", "4000"], 1) if run.returncode == 0 and "perf clock" in text else (["-F", "250"], 8)


def compare(build, folder, repeats, million, percent, options):
    program = build + "/tests/statistical/workload"
    out = os.path.join(folder, "pair")
    subprocess.run([build + "/lapse", "record", "-q", *options, "--repeat", str(repeats), "--interleave",
                    f"{program} {million} {percent}", "-o", out, "--", program, str(million), "0"],
                   check=True, stdout=subprocess.DEVNULL)
    text = subprocess.run([build + "/lapse", "diff", "--format=json", "--all", "--limit=0", out + ".lapse"],
                          check=True, capture_output=True, text=True).stdout
    os.unlink(out + ".lapse")
    return json.loads(text)


def slower(change):
    return change["verdict"] in ("slower", "appeared")


def false_alarms(build, folder, trials):
    options, scale = clock_options(build, folder)
    total = functions = 0
    for _ in range(trials):
        result = compare(build, folder, 5, 25 * scale, 0, options)
        total += slower(result["total"])
        functions += any(slower(change) for change in result["changes"] if change["kind"] != "path")
    limit = at_most(trials, FALSE_ALARMS)
    print(f"false alarms in {trials} comparisons of a program with itself, 5 repeats a side ({' '.join(options)}):")
    print(f"  total      {total:4d}  {100 * total / trials:5.1f} %")
    print(f"  functions  {functions:4d}  {100 * functions / trials:5.1f} %   (at most {limit} of each pass)")
    return total <= limit and functions <= limit


def power(build, folder, trials):
    options, scale = clock_options(build, folder)
    shown = self_shown = 0
    estimates = []
    for _ in range(trials):
        result = compare(build, folder, 10, 150 * scale, 10, options)
        changes = [c for c in result["changes"] if c["name"] == "changed"]
        self_shown += any(slower(c) for c in changes if c["kind"] == "self")
        shown += any(slower(c) for c in changes)
        estimates += [c["relative"] for c in changes if c["kind"] == "self"]
    least = trials - at_most(trials, 1 - POWER)
    print(f"a function of 30 % of the time 10 % slower, 10 repeats a side, {trials} trials ({' '.join(options)}):")
    print(f"  shown      {shown:4d}  {100 * shown / trials:5.1f} %   (by its self time {self_shown}; {least} pass)")
    if estimates:
        print(f"  estimates  {100 * min(estimates):+.1f} % to {100 * max(estimates):+.1f} %, mean "
              f"{100 * sum(estimates) / len(estimates):+.1f} %")
    return shown >= least


def main():
    test = {"false-alarms": false_alarms, "power": power}[sys.argv[1]]
    with tempfile.TemporaryDirectory() as folder:
        return 0 if test(os.path.abspath(sys.argv[2]), folder, int(sys.argv[3])) else 1


if __name__ == "__main__":
    sys.exit(main())
