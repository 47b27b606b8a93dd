#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Progress of `lapse export`: on a terminal a line that is gone at the end, also when writing fails;
nothing of it elsewhere. Ctrl-C leaves no part of an output, and the old one as it was.
usage: export_progress.py LAPSE MAKE_RECORDING

Progress shows after a second. So that this takes no second of work, each export is stopped when it has
opened the recording, and goes on two seconds later."""
import os
import signal
import sys
import tempfile
import time

lapse, made = (os.path.abspath(path) for path in sys.argv[1:])
RECORDING = "made.lapse"
LINE = b"\rlapse export: reading, "
ERASE = b"\r\x1b[K"


def start(terminal, *arguments):
    """The process, and where its messages can be read."""
    command = [lapse, "export", *arguments, RECORDING]
    if terminal:
        pid, messages = os.forkpty()
    else:
        messages, to = os.pipe()
        pid = os.fork()
    if not pid:
        if not terminal:
            os.dup2(to, 2)
        os.execv(lapse, command)
    if not terminal:
        os.close(to)
    return pid, messages


def has_open(pid, path):
    folder = f"/proc/{pid}/fd"
    try:
        return any(os.readlink(f"{folder}/{fd}") == path for fd in os.listdir(folder))
    except FileNotFoundError:
        return False


def hold(pid):
    path = os.path.realpath(RECORDING)
    deadline = time.monotonic() + 30
    while not has_open(pid, path):
        assert time.monotonic() < deadline, "the recording is never opened"
    os.kill(pid, signal.SIGSTOP)


def read(messages, until=None):
    """All of it, or up to some bytes."""
    text = b""
    while until is None or until not in text:
        try:
            part = os.read(messages, 65536)
        except OSError:  # how a terminal ends
            part = b""
        if not part:
            break
        text += part
    return text


def content(path):
    with open(path, "rb") as file:
        return file.read()


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    assert os.spawnv(os.P_WAIT, made, [made, RECORDING, "stacks=500", "samples=1500000", "threads=4"]) == 0
    with open("old.json", "w") as file:
        file.write("old")
    shown, shown_text = start(True, "--to=folded", "-o", "shown.folded")
    quiet, quiet_text = start(False, "--to=folded", "-o", "quiet.folded")
    full, full_text = start(True, "--to=chrome", "-o", "/dev/full")
    stopped, stopped_text = start(True, "--to=chrome", "-o", "old.json")
    everyone = [shown, quiet, full, stopped]
    for pid in everyone:
        hold(pid)
    time.sleep(2.1)
    for pid in everyone:
        os.kill(pid, signal.SIGCONT)

    text = read(stopped_text, until=LINE)
    assert LINE in text, text
    os.write(stopped_text, b"\x03")
    read(stopped_text)
    status = os.waitpid(stopped, 0)[1]
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGINT, status
    assert content("old.json") == b"old"

    text = read(shown_text)
    assert os.waitpid(shown, 0)[1] == 0, text
    assert LINE in text and text.rindex(ERASE) > text.rindex(LINE), text
    percents = [int(part.split(b"%")[0]) for part in text.split(LINE)[1:]]
    assert all(0 <= percent <= 100 for percent in percents), percents

    text = read(quiet_text)
    assert os.waitpid(quiet, 0)[1] == 0, text
    assert b"reading" not in text and b"\r" not in text and b"\x1b" not in text, text
    assert content("shown.folded") == content("quiet.folded") != b""

    text = read(full_text)
    assert os.WEXITSTATUS(os.waitpid(full, 0)[1]) == 2, text
    message = text.rindex(b"lapse export: ")
    assert b"No space left" in text[message:], text
    assert text.rindex(ERASE) < message and text.rindex(ERASE) > text.rindex(LINE), text

    assert sorted(os.listdir(".")) == ["made.lapse", "old.json", "quiet.folded", "shown.folded"], os.listdir(".")
