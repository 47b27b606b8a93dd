#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the cases of engine/ through the commands. usage: engine.py LAPSE CASE...

A case is a header of `key: value` lines, then sections that begin with `--- NAME`:
  samples      TIME THREAD STACK            input of `lapse events`, with the header's options
  input-edges  TIME THREAD KIND DEPTH NAME  input of `lapse fold`, with the header's options
  folded       STACK VALUE                  what `lapse fold` gives (or the input of `lapse merge`)
  edges, intervals                          what `lapse events` gives
  error        the message contains this and the exit status is 2
  repairs      how many `lapse fold --repair` reports
  functions    NAME SELF TOTAL              what `lapse report` gives; its trees of callers and callees
                                            begin with these totals
"""
import subprocess
import sys


def read_case(path):
    header, sections, name = {}, {}, None
    for line in open(path, encoding="utf-8"):
        if line.startswith("--- "):
            name = line[4:].strip()
            sections[name] = ""
        elif name is None:
            key, value = line.split(":", 1)
            header[key] = value.strip()
        else:
            sections[name] += line
    return header, sections


def run(lapse, command, options, text):
    return subprocess.run([lapse, command] + options, input=text.encode(), capture_output=True)


def expect(what, got, wanted):
    if got != wanted:
        raise AssertionError("%s:\n got    %r\n wanted %r" % (what, got, wanted))


def check_samples(lapse, options, sections):
    plain = [o for o in options if not o.startswith("--form")]
    for form in ("edges", "intervals"):
        if form in sections:
            done = run(lapse, "events", plain + ["--form=" + form], sections["samples"])
            expect(form, done.stdout.decode(), sections[form])
            expect("status", done.returncode, 0)
    done = run(lapse, "events", options, sections["samples"])
    if "error" in sections:
        expect("status", done.returncode, 2)
        assert sections["error"].strip() in done.stderr.decode(), done.stderr
    if "folded" in sections:
        done = run(lapse, "fold", ["--strict"], done.stdout.decode())
        expect("folded", done.stdout.decode(), sections["folded"])


def check_edges(lapse, options, sections):
    done = run(lapse, "fold", options, sections["input-edges"])
    if "error" in sections:
        expect("status", done.returncode, 2)
        assert sections["error"].strip() in done.stderr.decode(), done.stderr
        expect("output of a refused input", done.stdout, b"")
        return
    expect("folded", done.stdout.decode(), sections["folded"])
    wanted = "lapse fold: %s repairs:" % sections["repairs"].strip()
    assert done.stderr.decode().startswith(wanted), done.stderr


def check_folded(lapse, sections):
    done = run(lapse, "merge", [], sections["folded"])
    wanted = "".join(sorted(sections["folded"].splitlines(True), key=lambda l: l.rsplit(" ", 1)[0]))
    expect("merged", done.stdout.decode(), wanted)
    if "functions" in sections:
        check_functions(lapse, sections)


def table(lapse, options, text):
    done = run(lapse, "report", ["--format=tsv", "--limit=0", "--minimum=0", *options, "-"], text)
    expect("status of report", (done.returncode, done.stderr), (0, b""))
    head, *rows = [line.split("\t") for line in done.stdout.decode().splitlines()]
    return [dict(zip(head, row)) for row in rows]


def stacks_of(text):
    for line in text.splitlines():
        stack, value = line.rsplit(" ", 1)
        yield stack.split(";"), int(value)


def check_functions(lapse, sections):
    """Tables against the section; children of the trees against a look at every line."""
    text = sections["folded"]
    wanted = [line.split("\t") for line in sections["functions"].splitlines()]
    rows = table(lapse, ["--sort=name"], text)
    expect("functions", [[r["function"], r["self_weight"], r["total_weight"]] for r in rows], wanted)
    for name, _, total in wanted:
        for view, step in (("callers", -1), ("callees", 1)):
            beside = {}
            for frames, value in stacks_of(text):
                if name not in frames:
                    continue
                at = frames.index(name) + step  # the outermost call stands for all of the sample
                if 0 <= at < len(frames):
                    beside[frames[at]] = beside.get(frames[at], 0) + value
            rows = table(lapse, ["--%s=%s" % (view, name)], text)
            expect(view, (rows[0]["function"], rows[0]["total_weight"]), (name, total))
            got = {r["function"]: int(r["total_weight"]) for r in rows if r["depth"] == "2"}
            expect(view + " of " + name, got, beside)


def main():
    lapse, failures = sys.argv[1], 0
    for path in sys.argv[2:]:
        header, sections = read_case(path)
        options = header.get("options", "").split()
        try:
            if "samples" in sections:
                check_samples(lapse, options, sections)
            elif "input-edges" in sections:
                check_edges(lapse, options, sections)
            else:
                check_folded(lapse, sections)
        except AssertionError as failure:
            failures += 1
            print("%s: %s" % (path, failure))
    print("%d cases, %d failed" % (len(sys.argv) - 2, failures))
    return 1 if failures or len(sys.argv) < 3 else 0


if __name__ == "__main__":
    sys.exit(main())
