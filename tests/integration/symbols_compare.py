#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compare the offline symbolizer with llvm-symbolizer, addr2line and eu-addr2line.

usage: symbols_compare.py LAPSE_ADDRESSES FILE COUNT [--debug-dir DIR] [--limit PERCENT] [--seed N]

Random text addresses of FILE are named by all four. An address agrees when functions, inline chain
and lines equal those of llvm-symbolizer, or, where llvm-symbolizer and addr2line differ from each
other, those of addr2line (binutils or elfutils). Names of one symbol's aliases are equal. Prints one
line of counts and some of the disagreements; exit code 1 when more than --limit percent disagree.
"""
import argparse, bisect, os, random, re, subprocess, sys


def run(command, text=""):
    return subprocess.run(command, input=text, capture_output=True, text=True, errors="replace", timeout=900).stdout


def text_ranges(path):
    ranges = []
    for line in run(["readelf", "-SW", path]).splitlines():
        found = re.match(r"\s*\[\s*\d+\]\s+(\S+)\s+(\w+)\s+([0-9a-f]+)\s+([0-9a-f]+)\s+([0-9a-f]+)\s+\w+\s+(\w*)", line)
        if found and found[1] == ".text" and found[2] in ("PROGBITS", "NOBITS"):
            ranges.append((int(found[3], 16), int(found[5], 16)))
    return ranges


def aliases(path):
    """Symbol name to the set of addresses it stands at."""
    places = {}
    for flags in ([], ["-D"]):
        for line in run(["nm", *flags, path]).splitlines():
            parts = line.split()
            if len(parts) == 3 and parts[1] in "tTwWiuV":
                places.setdefault(re.sub(r"@.*", "", parts[2]), set()).add(int(parts[0], 16))
    return places


def frames(lines):
    """[(function, file, line)] innermost first, of one address's lines."""
    result = []
    for function, place in zip(lines[::2], lines[1::2]):
        place = re.sub(r" \(discriminator \d+\)$", "", place)
        place = re.sub(r":(\d+|\?):\d+$", r":\1", place) if place.count(":") > 1 else place
        file, _, line = place.rpartition(":")
        number = int(line) if line.isdigit() else 0
        result.append((function, os.path.normpath(file) if number and file not in ("", "??") else "", number))
    return result


def by_blank(output, count):
    groups = [group.split("\n") for group in output.rstrip("\n").split("\n\n")]
    return [frames(group) for group in groups]


def by_echo(output):
    groups = []
    for line in output.splitlines():
        if re.fullmatch(r"0x[0-9a-f]+(: .*)?", line):
            groups.append([])
        elif groups:
            groups[-1].append(line)
    return [frames(group) for group in groups]


def elfutils(file, addresses):
    """Answers of eu-addr2line, outermost function and line only: for addresses without inlined calls."""
    text = "".join("%#x\n" % address for address in addresses)
    return by_echo(run(["eu-addr2line", "-a", "-f", "-e", file], text)) if addresses else []


def same_function(a, b, places):
    clean = lambda name: re.sub(r"@.*", "", name)
    a, b = clean(a), clean(b)
    return a == b or bool(places.get(a, set()) & places.get(b, set())) or {a, b} <= {"??", ""}


def same(mine, theirs, places, outermost_clone=False):
    if len(mine) != len(theirs):
        return False
    for i, (x, y) in enumerate(zip(mine, theirs)):
        if x[2] != y[2] or (x[1] and y[1] and os.path.basename(x[1]) != os.path.basename(y[1])):
            return False
        if same_function(x[0], y[0], places):
            continue
        # addr2line takes the outermost name from DWARF, which does not know clones and cold parts.
        stem = lambda name: re.sub(r"\.(cold|part|constprop|isra|localalias|lto_priv|llvm)(\.\d+)*", "", name)
        if not (outermost_clone and i == len(mine) - 1 and same_function(stem(x[0]), stem(y[0]), places)):
            return False
    return True


def classify(mine, llvm):
    if len(mine) != len(llvm):
        return "inline chain"
    if any(x[0] != y[0] for x, y in zip(mine, llvm)):
        return "function"
    if any(x[2] != y[2] for x, y in zip(mine, llvm)):
        return "line"
    return "file"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool"); parser.add_argument("file"); parser.add_argument("count", type=int)
    parser.add_argument("--debug-dir"); parser.add_argument("--debug-file")
    parser.add_argument("--limit", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    random.seed(options.seed)
    ranges = text_ranges(options.file)
    total = sum(size for _, size in ranges)
    if not total:
        sys.exit("no text section in " + options.file)
    addresses = []
    for _ in range(options.count):
        at = random.randrange(total)
        for start, size in ranges:
            if at < size:
                addresses.append(start + at)
                break
            at -= size
    text = "".join("%#x\n" % address for address in addresses)
    extra = ["--debug-dir", options.debug_dir] if options.debug_dir else []
    reference = options.debug_file or options.file
    mine = by_blank(run([options.tool, "--mangled", *extra, options.file], text), len(addresses))
    llvm = by_blank(run(["llvm-symbolizer", "--no-demangle", "--obj=" + reference], text), len(addresses))
    gnu = by_echo(run(["addr2line", "-a", "-i", "-f", "-e", reference], text))
    places = aliases(options.file)
    for name, addresses_of in aliases(reference).items():
        places.setdefault(name, set()).update(addresses_of)
    if not len(mine) == len(llvm) == len(gnu) == len(addresses):
        sys.exit("numbers of answers differ: %d %d %d of %d" % (len(mine), len(llvm), len(gnu), len(addresses)))
    suspects = [i for i in range(len(addresses)) if not same(mine[i], llvm[i], places)]
    split = [i for i in suspects if same(mine[i], gnu[i], places, True)]
    rest = [i for i in suspects if i not in set(split)]
    # Where those two differ from each other, elfutils' opinion counts as well. Between functions
    # llvm-symbolizer shows labels of other sections, and binutils the function before.
    plain = [i for i in rest if len(mine[i]) == 1 and not same(llvm[i], gnu[i], places, True)]
    third = {i for i, answer in zip(plain, elfutils(reference, [addresses[i] for i in plain]))
             if same(mine[i], answer, places, True)}
    wrong, kinds = [i for i in rest if i not in third], {}
    for i in wrong:
        kinds.setdefault(classify(mine[i], llvm[i]), []).append(i)
    named = sum(1 for item in mine if item[0][0] != "??")
    inlined = sum(1 for item in mine if len(item) > 1)
    rate = 100.0 * len(wrong) / len(addresses)
    print("%s: %d addresses, %d named, %d with inlined frames; llvm differs and addr2line agrees: %d, eu-addr2line: %d; disagree: %d (%.3f %%)%s"
          % (os.path.basename(options.file), len(addresses), named, inlined, len(split), len(third), len(wrong), rate,
             "".join("; %s: %d" % (kind, len(items)) for kind, items in kinds.items())))
    for kind, items in kinds.items():
        for i in items[:3]:
            print("  %s at %#x\n    lapse %s\n    llvm  %s\n    gnu   %s" % (kind, addresses[i], mine[i], llvm[i], gnu[i]))
    if named < len(addresses) // 2:
        sys.exit("most addresses have no name")
    sys.exit(rate > options.limit)


if __name__ == "__main__":
    main()
