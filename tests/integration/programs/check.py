# SPDX-License-Identifier: MIT
"""A real program plain and under `lapse record`: same output and status, and a true profile.

usage: check.py PROGRAM LAPSE [HOSTS_FOLDER]. Exit status 0, 1, or 77 for skipped. The programs stand in
programs.py; all figures are printed. Run by ctest (programs.cmake) and by hand.
"""
import json
import os
import pwd
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

from programs import PROGRAMS

PERIOD = 1 / 199
TEARDOWN = 0.00013  # what the kernel does for a process after its last instruction: no library can see it
# Where a stack of the main thread, of a thread, or of the loader's own work begins.
ROOTS = {"_start", "start_thread", "clone", "clone3", "__clone", "__clone3", "_dl_start_user"}
# Folders of programs that no PATH names.
FOLDERS = ["/lib/x86_64-linux-gnu", "/lib64", "/usr/lib/gcc/x86_64-linux-gnu/12", "/usr/lib/chromium",
           "/usr/lib/postgresql/15/bin", "/usr/sbin", "/usr/lib/git-core"]


def skip(why):
    print("skipped: " + why)
    sys.exit(77)


class Verdict:
    """All that is wrong is said before the end."""

    def __init__(self):
        self.failed = 0

    def require(self, truth, text):
        print(("ok: " if truth else "FAILED: ") + text, flush=True)
        self.failed += not truth


class Outcome:
    """One run of a command in an empty folder, killed with all its children after a time."""

    def __init__(self, command, folder, user, limit):
        self.folder = folder
        os.mkdir(folder)
        if user:
            os.chown(folder, user.pw_uid, user.pw_gid)
        start = time.monotonic()
        output = open(folder + ".stdout", "wb")
        errors = open(folder + ".stderr", "wb")
        identity = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}
        environment = {**os.environ, "LC_ALL": "C", "HOME": folder, "TMPDIR": folder}
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=errors,
                                   start_new_session=True, env=environment, **identity)
        previous = signal.signal(signal.SIGALRM, lambda *_: os.killpg(process.pid, signal.SIGKILL))
        signal.alarm(limit)
        _, status, usage = os.wait4(process.pid, 0)
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
        process.returncode = self.status = os.waitstatus_to_exitcode(status)
        self.seconds = time.monotonic() - start
        self.hung = self.seconds >= limit
        self.cpu = usage.ru_utime + usage.ru_stime
        self.stdout, self.stderr = (self.take(folder, end) for end in (".stdout", ".stderr"))

    def times(self):
        """CPU time of the shell and its children, as the builtin `times` put it into a file."""
        with open(self.folder + "/times", encoding="ascii") as text:
            return sum(60 * int(minutes) + float(seconds)
                       for minutes, seconds in re.findall(r"(\d+)m([0-9.]+)s", text.read()))

    @staticmethod
    def take(folder, end):
        with open(folder + end, "rb") as text:
            return text.read()


def entry_of(module, offset):
    """Is this the entry point of the program (or loader) of that name?"""
    for path in [shutil.which(module) or ""] + [folder + "/" + module for folder in FOLDERS]:
        try:
            with open(path, "rb") as file:
                head = file.read(64)
        except OSError:
            continue
        if head[:4] == b"\x7fELF":
            entry = struct.unpack_from("<Q", head, 24)[0]
            return entry == offset or entry - 0x400000 == offset
    return False


def is_root(name, known):
    if name not in known:
        place = re.fullmatch(r"(.*)\+0x([0-9a-f]+)", name)
        known[name] = name in ROOTS or bool(place and entry_of(place[1], int(place[2], 16)))
    return known[name]


class Profile:
    """What lapse says of a recording."""

    def __init__(self, lapse, path):
        report = subprocess.run([lapse, "report", "--processes", "--format=json", "--limit=0", path],
                                stdout=subprocess.PIPE, check=True)
        report = json.loads(report.stdout)
        self.processes = report["processes"]
        self.notes = report["notes"]
        self.seconds = report["weight"] * 1e-9
        self.samples = report["samples"]
        folded = subprocess.run([lapse, "export", "--to=folded", path],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
        self.stacks = [line.rsplit(" ", 1) for line in folded.stdout.decode(errors="replace").splitlines()]
        self.roots = {}
        for stack, weight in self.stacks:
            root = stack.split(";", 1)[0]
            self.roots[root] = self.roots.get(root, 0) + int(weight)

    def root_share(self):
        """Of the stacks that were seen: time that no tick fell into has none."""
        known = {}
        seen = sum(weight for name, weight in self.roots.items() if name != "[not sampled]")
        return sum(weight for name, weight in self.roots.items() if is_root(name, known)) / max(seen, 1)


def check_processes(verdict, program, profile):
    """Each process against the CPU time that the kernel counted for it. Beside the 5 %, the phase of a
    timer is random: up to a period for each thread of those few that these programs have."""
    worst, count = 1.0, 0
    for process in profile.processes:
        cpu, seconds = process.get("cpu_ns", 0) * 1e-9, process["weight"] * 1e-9
        if cpu < program.process_seconds:
            continue
        count += 1
        ratio = seconds / cpu
        if abs(seconds - cpu) > 0.05 * cpu + program.periods * PERIOD:
            verdict.require(False, "%s: profile %.3f s, CPU time %.3f s" % (process["name"][:60], seconds, cpu))
        if abs(ratio - 1) > abs(worst - 1):
            worst = ratio
    verdict.require(True, "%d processes of %.2f s and more, worst ratio %.3f"
                    % (count, program.process_seconds, worst))
    verdict.require(count >= program.processes, "at least %d of them" % program.processes)


def check_profile(verdict, program, profile, plain, recorded):
    ratio = profile.seconds / max(recorded.cpu, 1e-9)
    if program.storm:
        cpu = recorded.times()
        spare = 0.05 * cpu + program.periods * PERIOD
        verdict.require(-spare - program.children * TEARDOWN <= profile.seconds - cpu <= spare,
                        "profile %.3f s, shell and children %.3f s (%.3f s plain)"
                        % (profile.seconds, cpu, plain.times()))
    elif program.reaped:
        verdict.require(abs(profile.seconds - recorded.cpu) <= 0.05 * recorded.cpu + program.periods * PERIOD,
                        "profile %.3f s, getrusage %.3f s" % (profile.seconds, recorded.cpu))
    check_processes(verdict, program, profile)
    share = profile.root_share()
    verdict.require(share >= program.root, "%.2f %% reach the root (%.0f wanted)" % (100 * share, 100 * program.root))
    own = [stack for stack, _ in profile.stacks if "lapse_" in stack or "liblapse" in stack]
    verdict.require(not own, "no frame of lapse's own: %s" % own[:3])
    for name in program.functions:
        seen = sum(int(weight) for stack, weight in profile.stacks if re.search(name, stack))
        verdict.require(seen > 0, "%s: %d samples" % (name, seen))
    print("roots: " + ", ".join("%s %d" % pair for pair in
                                sorted(profile.roots.items(), key=lambda pair: -pair[1])[:8]))
    print("figures\t%s\t%d processes\t%d samples\t%.3f s\ttotal/CPU %.3f\troot %.2f %%"
          % (program.name, len(profile.processes), profile.samples, profile.seconds, ratio, 100 * share))


def user_for(program):
    """Servers that refuse root run as nobody when we are root."""
    return pwd.getpwnam("nobody") if program.unprivileged and os.getuid() == 0 else None


def run(program, lapse, hosts, folder):
    verdict, user = Verdict(), user_for(program)
    os.chmod(folder, 0o755)
    shared = folder + "/shared"
    os.mkdir(shared)
    recording = folder + "/recording/of.lapse"
    os.mkdir(folder + "/recording")
    command = program.prepare(shared, hosts)
    if user:
        os.chown(folder + "/recording", user.pw_uid, user.pw_gid)
        for path, folders, files in os.walk(shared):
            for name in [path] + [os.path.join(path, name) for name in folders + files]:
                os.chown(name, user.pw_uid, user.pw_gid)
    plain = Outcome(command, folder + "/plain", user, program.limit)
    recorded = Outcome([lapse, "record", "-q", "-o", recording, "--"] + command, folder + "/recorded", user,
                       program.limit)
    verdict.require(not plain.hung and not recorded.hung, "no hang: %.1f s plain, %.1f s recorded (%.2f and %.2f s CPU)"
                    % (plain.seconds, recorded.seconds, plain.cpu, recorded.cpu))
    verdict.require(plain.status == recorded.status == program.status,
                    "status %d plain, %d recorded" % (plain.status, recorded.status))
    same = plain.stdout == recorded.stdout
    verdict.require(same and (plain.stdout or program.silent), "same output, %d bytes" % len(plain.stdout))
    if verdict.failed:
        print("stdout plain: %r\nstdout recorded: %r" % (plain.stdout[-1000:], recorded.stdout[-1000:]))
        print("stderr plain: %r\nstderr recorded: %r" % (plain.stderr[-1000:], recorded.stderr[-1000:]))
    if program.unprofiled:
        verdict.require(b"linked statically" in recorded.stderr, "lapse says why there is no profile")
    verdict.require(os.path.exists(recording) != program.unprofiled, "profile " +
                    ("absent" if program.unprofiled else "present"))
    if os.path.exists(recording):
        check_profile(verdict, program, Profile(lapse, recording), plain, recorded)
        if os.environ.get("LAPSE_TEST_KEEP"):
            shutil.copy(recording, os.environ["LAPSE_TEST_KEEP"] + "/" + program.name + ".lapse")
    return verdict.failed


def main():
    program, lapse = PROGRAMS[sys.argv[1]], os.path.realpath(sys.argv[2])
    for name in program.needs:
        if not (shutil.which(name) or os.path.exists(name)):
            skip("no " + name)
    folder = tempfile.mkdtemp(prefix="lapse-programs-")
    try:
        failed = run(program, lapse, sys.argv[3] if len(sys.argv) > 3 else "", folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if failed else 0)


main()
