# SPDX-License-Identifier: MIT
"""Programs under LD_PRELOAD=liblapse.so: their profiles against what the kernel says of them.

usage: check.py CASE LIBRARY HOSTS_FOLDER. Exit status 0, 1, or 77 for skipped. Needs python3-minimal.
Each run has a folder of its own; all figures are printed.
"""
import glob
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

CASE, LIBRARY, HOSTS = sys.argv[1:4]
PERIOD = 5025125e-9  # of 199 Hz


class Run:
    """One program, run to its end in an empty folder."""

    def __init__(self, arguments, environment=None, limit=60, output=None):
        self.folder = tempfile.mkdtemp(prefix="lapse-preload-")
        self.status, usage = self.spawn(arguments, environment or {}, limit, output)
        self.cpu = usage.ru_utime + usage.ru_stime
        self.rss_kib = usage.ru_maxrss
        self.lines, self.facts = {}, {}
        for name in glob.glob(self.folder + "/*.folded"):
            self.read_folded(name)
        for name in glob.glob(self.folder + "/*.events"):
            self.read_facts(name)
        self.files = sorted(os.listdir(self.folder))
        with open(self.folder + ".stderr", encoding="utf-8") as text:
            self.stderr = text.read()
        os.unlink(self.folder + ".stderr")
        shutil.rmtree(self.folder)

    def spawn(self, arguments, environment, limit, output):
        pid = os.fork()
        if pid == 0:
            os.chdir(self.folder)
            signal.alarm(limit)
            sink = os.open(output or "/dev/null", os.O_WRONLY)
            os.dup2(sink, 1)
            os.dup2(os.open(self.folder + ".stderr", os.O_WRONLY | os.O_CREAT, 0o600), 2)
            os.execvpe(arguments[0], arguments, {**os.environ, "LD_PRELOAD": LIBRARY, **environment})
        _, status, usage = os.wait4(pid, 0)
        return status, usage

    def read_folded(self, name):
        with open(name, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                stack, weight = line.rstrip("\n").rsplit(" ", 1)
                self.lines[stack] = self.lines.get(stack, 0) + int(weight)

    def read_facts(self, name):
        with open(name, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if not line.startswith("# "):
                    break
                words = line.split()
                self.facts[words[1]] = words[2]

    def samples(self):
        return sum(self.lines.values())

    def share(self, test):
        return sum(weight for stack, weight in self.lines.items() if test(stack)) / max(self.samples(), 1)

    def cut_share(self):
        return self.share(lambda stack: stack.startswith(("[unwind failed]", "[truncated]")))


def require(truth, text):
    print(("ok: " if truth else "FAILED: ") + text)
    if not truth:
        sys.exit(1)


def program(name):
    path = shutil.which(name)
    if not path:
        print("skipped: no " + name)
        sys.exit(77)
    return path


def check_total(what, run, period=PERIOD, tolerance=0.03, reach=0.99):
    """Weights against getrusage. Beside the tolerance, the phase of each thread's timer is random:
    half a period and its spread for the few threads of these programs."""
    seconds = run.samples() * period
    require(run.status == 0, "%s ended with 0 (%d)" % (what, run.status))
    require(abs(seconds - run.cpu) <= tolerance * run.cpu,
            "%s: profile %.3f s, getrusage %.3f s (%+.2f %%)" % (what, seconds, run.cpu, 100 * (seconds / run.cpu - 1)))
    require(1 - run.cut_share() >= reach, "%s: %.2f %% reach the root" % (what, 100 - 100 * run.cut_share()))


def case_sqlite():
    query = ("with recursive c(x) as (select 1 union all select x+1 from c where x<%d) "
             "select count(*) from c a join c b on (a.x*b.x)%%7=3;")
    run = Run([program("sqlite3"), ":memory:", query % 6500])
    check_total("sqlite3", run)


def case_xz():
    data = tempfile.NamedTemporaryFile(prefix="lapse-preload-")
    words = b"".join(b"%d %x\n" % (i * 7919 % 100003, i * i) for i in range(250000))
    data.write(words)
    data.flush()
    run = Run([program("xz"), "-T2", "--block-size=2MiB", "-9", "-k", "-c", data.name])
    check_total("xz -T2", run)
    workers = run.share(lambda stack: "lzma" in stack or "start_thread" in stack or "clone" in stack or ";" in stack)
    require(workers > 0.9, "xz -T2: %.1f %% have stacks" % (100 * workers))


def case_python():
    source = ("import threading\n"
              "def f():\n  s = 0\n  for i in range(9000000): s += i * i\n"
              "t = [threading.Thread(target=f) for _ in range(4)]\n"
              "[x.start() for x in t]; f(); [x.join() for x in t]\n")
    run = Run([program("python3"), "-c", source])
    check_total("python3", run)
    require(int(run.facts.get("unsampled_threads", 0)) == 0, "python3: every thread was sampled")


def case_exceptions():
    run = Run([HOSTS + "/exceptions", "3.2"])
    # The unwinder of C++ changes stacks by hand while it lands: some pcs there have no rule.
    check_total("exceptions", run, reach=0.97)
    require(run.share(lambda stack: "_Unwind_RaiseException" in stack) > 0.05, "throws were seen")


def case_shares():
    """Shares of about 1:2:4:8 of 15, each within four standard errors of what the program measured, retried with
    doubled duration. The errors are those of the signals that came: expiries that the kernel merged
    into one (on a loaded machine most) are no further looks."""
    seconds = 2.0
    while True:
        with tempfile.NamedTemporaryFile("r", prefix="lapse-preload-") as truth:
            run = Run([HOSTS + "/shares", str(seconds)], output=truth.name)
            measured = [float(word) for word in truth.read().split()]
        require(len(measured) == 4, "the program says what it measured")
        total = int(run.facts["ticks"])
        worst = 0
        for part, spent in zip((1, 2, 4, 8), measured):
            p = spent / sum(measured)
            seen = run.share(lambda stack: "share_%d" % part in stack)
            error = math.sqrt(p * (1 - p) / max(total, 1))
            worst = max(worst, abs(seen - p) / error)
            print("share_%d: %.4f, wanted %.4f +- %.4f" % (part, seen, p, error))
        if worst <= 4 or seconds >= 8:
            break
        seconds *= 2
    require(worst <= 4, "shares within four standard errors (%.2f), %d samples" % (worst, total))
    require(run.cut_share() == 0, "all reach the root")


def case_nothing():
    """1 Hz: a tick falls into a process of 1 ms once in a thousand runs."""
    for _ in range(2):
        run = Run(["true"], {"LAPSE_HZ": "1"})
        if not run.files:
            break
    require(run.status == 0 and not run.files, "true leaves no files: %s" % run.files)


def case_malloc():
    run = Run([HOSTS + "/own_malloc"], {"LAPSE_HZ": "1000"})
    require(run.status == 0, "no malloc from lapse (status %d)" % run.status)
    require(run.samples() > 100, "%d samples" % run.samples())


def case_late():
    """2,000 threads of 1 to 5 ms. A thread of t ms has floor or ceil of t/period expiries; the sum over
    n threads has a variance below n/4, so four standard errors are 2*sqrt(n) periods; 2 % are the
    kernel's part of a thread's end, after its own last look at its clock."""
    count = 2000
    run = Run([HOSTS + "/threads", "short", str(count), "1000", "5000"])
    seconds, error = run.samples() * PERIOD, 2 * math.sqrt(count) * PERIOD + 0.02 * run.cpu
    require(run.status == 0, "ended with 0")
    require(abs(seconds - run.cpu) <= error,
            "profile %.3f s, getrusage %.3f s, tolerance %.3f s" % (seconds, run.cpu, error))
    require(int(run.facts["late_ticks"]) > 0, "%s late ticks" % run.facts["late_ticks"])


def case_living():
    count = 2000 if CASE == "living" else 5000
    run = Run([HOSTS + "/threads", "living", str(count)])
    if os.WIFEXITED(run.status) and os.WEXITSTATUS(run.status) == 77:
        sys.exit(77)
    require(run.status == 0, "%d living threads" % count)
    require(int(run.facts.get("unsampled_threads", 0)) == 0, "all were sampled")


def case_short():
    """Memory of dead threads is reused: ten thousand threads cost what a few cost."""
    few = Run([HOSTS + "/threads", "short", "200", "0", "100"])
    many = Run([HOSTS + "/threads", "short", "10000", "0", "100"])
    require(many.status == 0, "10,000 short threads")
    require(many.rss_kib < few.rss_kib + 4096, "memory %d KiB, with 200 threads %d KiB" % (many.rss_kib, few.rss_kib))


def case_exits():
    run = Run([HOSTS + "/threads", "exits", "3"], {"LAPSE_HZ": "1000"})
    require(run.status == 0, "threads that end while they are sampled (status %d)" % run.status)
    require(run.samples() > 500, "%d samples" % run.samples())


def case_outlives():
    """The first thread has ended: nothing is to be had of it, its list of mappings and its memory included."""
    run = Run([HOSTS + "/threads", "outlives", "0.4"], {"LAPSE_HZ": "1000"})
    require(os.waitstatus_to_exitcode(run.status) == 17, "the last thread ends the process (status %d)" % run.status)
    reach, there = 1 - run.cut_share(), run.share(lambda stack: "outlive;" in stack and "gamma" in stack)
    require(run.samples() > 300 and reach >= 0.98, "%.1f %% of %d samples reach the root" % (100 * reach, run.samples()))
    require(there > 0.8, "%.1f %% in the library that was loaded after it" % (100 * there))


def case_own_frames():
    """Ticks held back around a fork are delivered inside our fork; nothing of that is the host's."""
    run = Run([HOSTS + "/forks", "150"], {"LAPSE_HZ": "1000"})
    require(run.status == 0, "forks of a big process (status %d)" % run.status)
    symbols = os.popen("nm %s" % LIBRARY).read().split("\n")
    own = {line.split()[2] for line in symbols if len(line.split()) == 3} - {"_init", "_fini"}
    require("lapse_session_fork_parent" in own, "%d symbols of lapse's own" % len(own))
    own = [stack for stack in run.lines if own & set(stack.split(";"))]
    require(not own, "no frame of lapse's own in %d stacks: %s" % (len(run.lines), own[:3]))
    inside = run.share(lambda stack: "fork_and_wait" in stack)
    require(run.samples() > 50 and inside > 0.3, "%d samples, %.0f %% around forks" % (run.samples(), 100 * inside))


def case_fast():
    """1,000 Hz: ticks merge at the kernel's HZ, weights do not."""
    run = Run([HOSTS + "/shares", "3.1"], {"LAPSE_HZ": "1000"})
    check_total("1,000 Hz", run, period=1e-3)
    print("ticks %s, merged %s" % (run.facts["ticks"], run.facts["merged_ticks"]))


def case_options():
    run = Run(["true"], {"LAPSE_HZ": "abc"})
    require(run.status == 0 and not run.files, "a bad option leaves the host alone")
    run = Run([HOSTS + "/shares", "0.5"], {"LAPSE_EXPORT": "none", "LAPSE_OUT": "x-%e"})
    require(run.files == ["x-shares.lapse"], "only the spool: %s" % run.files)
    run = Run([HOSTS + "/shares", "0.5"], {"LAPSE_DELAY": "100"})
    require(not run.files, "nothing before the delay is over: %s" % run.files)
    # The duration is of the clock, what is sampled is CPU time: on a loaded machine there may be none yet.
    for duration in (0.5, 1, 2):
        run = Run([HOSTS + "/shares", str(4 * duration)], {"LAPSE_DURATION": str(duration)})
        if run.samples():
            break
    require(0 < run.samples() * PERIOD < 1.6 * duration,
            "stopped after %.1f seconds: %d samples" % (duration, run.samples()))
    run = Run([HOSTS + "/shares", "0.5"], {"LAPSE_START": "paused"})
    require(not run.files, "paused from the start: %s" % run.files)
    run = Run(["sh", "-c", "%s/shares 0.3; %s/shares 0.3" % (HOSTS, HOSTS)], {"LAPSE_OUT": "same", "LAPSE_EXPORT": "none"})
    require({"same.lapse", "same.1.lapse"} <= set(run.files), "nothing is overwritten: %s" % run.files)


def case_messages():
    run = Run([HOSTS + "/shares", "0.3"])
    require(run.stderr == "", "silent when all is well: %r" % run.stderr)
    run = Run(["true"], {"LAPSE_HZ": "abc"})
    require(run.stderr == "lapse: LAPSE_HZ=abc: not a number from 1 to 10000; this process is not profiled\n",
            "a bad option: %r" % run.stderr)
    run = Run([HOSTS + "/shares", "0.5"], {"LAPSE_OUT": "/proc/none/x"})
    require(run.status == 0 and run.stderr.startswith("lapse: /proc/none/x: cannot be written: no such folder") and
            run.stderr.count("\n") == 2, "a folder that is not there: %r" % run.stderr)
    run = Run([HOSTS + "/shares", "0.5"], {"LAPSE_OUT": "/proc/none/x", "LAPSE_QUIET": "1"})
    require(run.status == 0 and run.stderr == "", "and quiet: %r" % run.stderr)


def run_raw(mode, sampled):
    run = Run([HOSTS + "/raw_signal", mode])
    late = int(run.facts["late_ticks"]) / max(run.samples(), 1)
    require(run.status == 0, "%s: the program's own ticks come (%d)" % (mode, run.status))
    require(late <= 1 - sampled, "%s: %.1f %% of the CPU time is sampled" % (mode, 100 - 100 * late))
    return run


def case_raw_signal():
    """A handler set by a raw system call is found by the next setitimer, pthread_create or turn of the
    drain thread, chained to and replaced; one that insists keeps the signal."""
    for mode, sampled in (("plain", 0.85), ("bare", 0.55), ("chain", 0.85), ("thread", 0.85)):
        run = run_raw(mode, sampled)
        require(run.stderr == "", "%s: nothing is said: %r" % (mode, run.stderr))
        require(int(run.facts["signal_taken"]) == (mode != "thread"), "%s: counted" % mode)
    run = run_raw("wait", 0.85)
    require(run.stderr == "" and run.facts["signal_taken"] == "0", "wait: nothing is said: %r" % run.stderr)
    run = run_raw("fight", 0)
    require(run.stderr.startswith("lapse: the program sets a handler of its own for signal 27 by raw system calls; ") and
            run.stderr.count("\n") == 1, "fight: one line: %r" % run.stderr)
    require(1 < int(run.facts["signal_taken"]) <= 10, "fight: given up: " + run.facts["signal_taken"])


def case_raw_threads():
    """Threads that block everything by a raw system call cannot be sampled: said, and their time is there.
    One that clone() made is sampled at once, though no other thread ever ticks."""
    run = Run([HOSTS + "/raw_signal", "blocked"])
    check_total("blocked", run, tolerance=0.1)
    lost = run.share(lambda stack: "[not sampled]" in stack)
    require(0.75 <= lost <= 0.97 and run.facts["unsampled_threads"] == "1",
            "blocked: %.1f %% not sampled, %s thread" % (100 * lost, run.facts["unsampled_threads"]))
    run = Run([HOSTS + "/raw_signal", "clone"])
    seen = run.share(lambda stack: "in_clone" in stack)
    require(run.status == 0 and seen > 0.9, "clone: %.1f %% of %d samples" % (100 * seen, run.samples()))
    require(run.samples() * PERIOD > 0.35, "clone: %.3f s" % (run.samples() * PERIOD))


def case_before():
    """An image before an exec, without lapse, has used CPU time: counted, in no sample."""
    script = ("import os, time\nwhile time.process_time() < 0.2: pass\n"
              "os.execve('%s', ['shares', '0.6'], {**os.environ, 'LD_PRELOAD': '%s'})" % (HOSTS + "/shares", LIBRARY))
    run = Run([program("python3"), "-c", script], {"LD_PRELOAD": ""})
    before, seconds = int(run.facts["before_ns"]) / 1e9, run.samples() * PERIOD
    require(run.status == 0 and before >= 0.2, "%.3f s before the exec" % before)
    require(abs(before + seconds - run.cpu) <= 0.05 * run.cpu, "%.3f s and %.3f s are %.3f s" % (before, seconds, run.cpu))


def case_gperftools():
    """Another sampling profiler of the same signal in the process: both preloaded, in either order."""
    peers = sorted(glob.glob("/usr/lib/x86_64-linux-gnu/libprofiler.so*"))
    if not peers:
        print("skipped: no libprofiler.so (libgoogle-perftools-dev)")
        sys.exit(77)
    # 300 threads of 3 ms on average, each with a phase of its own: 180 samples, standard error 8.5.
    for host, tolerance in ((["/shares", "1"], 0.05), (["/threads", "short", "300", "1000", "5000"], 0.2)):
        for first, second in ((LIBRARY, peers[0]), (peers[0], LIBRARY)):
            run = Run([HOSTS + host[0]] + host[1:], {"LD_PRELOAD": first + " " + second, "CPUPROFILE": "peer.prof"})
            check_total("%s, %s first" % (host[0], os.path.basename(first)), run, tolerance=tolerance)
            ticks = int(re.search("interrupts/evictions/bytes = ([0-9]+)", run.stderr).group(1))
            require(ticks >= 0.5 * 100 * run.cpu, "gperftools: %d ticks of %.0f" % (ticks, 100 * run.cpu))
            require(run.facts["signal_taken"] == "0", "nobody took the signal from anybody")


def case_cgo():
    """A Go program with C in it, profiled by Go's own runtime/pprof at the same time. Its threads begin
    with every signal blocked and let go of them by raw system calls; it ends by one, too."""
    go = program("/usr/lib/go-1.19/bin/go")
    here, lapse = os.path.dirname(os.path.abspath(__file__)), os.path.dirname(LIBRARY) + "/lapse"
    program("gcc")
    with tempfile.TemporaryDirectory(prefix="lapse-cgo-") as folder:
        for name in ("cgo.go", "go.mod"):
            shutil.copy(here + "/cgo/" + name, folder)
        environment = {**os.environ, "HOME": folder, "GOPROXY": "off", "GOFLAGS": "-mod=mod", "CGO_ENABLED": "1"}
        subprocess.run([go, "build", "-o", "host", "."], cwd=folder, env=environment, check=True)
        subprocess.run([lapse, "record", "--quiet", "-o", "r.lapse", "--", "./host", "own.prof"], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL, timeout=60)
        own = subprocess.run([go, "tool", "pprof", "-top", "-unit=ms", "host", "own.prof"], cwd=folder, env=environment,
                             check=True, capture_output=True, text=True).stdout
        ours = subprocess.run([lapse, "report", "r.lapse"], cwd=folder, check=True, capture_output=True, text=True).stdout
    print(own[:600] + ours[:900])
    go_seconds = float(re.search(r"Total samples = ([0-9.]+)ms", own).group(1)) / 1000
    seconds = float(re.search(r"([0-9.]+) s of CPU time", ours).group(1))
    require(abs(seconds - go_seconds) <= 0.1 * seconds + 0.1, "lapse %.3f s, Go %.3f s" % (seconds, go_seconds))
    require("in_c" in ours and "inGo" in ours and "in_c" in own and "inGo" in own, "both see C and Go")
    require("the rest ran before" not in ours, "nothing is missing")
    cut, samples = re.search(r"([0-9]+) stacks without", ours), int(re.search(r"in ([0-9]+) samples", ours).group(1))
    require(not cut or int(cut.group(1)) <= 0.05 * samples, "goroutines end where they began")


CASES = {name[5:]: value for name, value in globals().items() if name.startswith("case_")}
CASES["living_5000"] = case_living
CASES[CASE]()
