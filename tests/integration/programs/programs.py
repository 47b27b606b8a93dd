# SPDX-License-Identifier: MIT
"""The programs of check.py: what each needs, how its input is made, what its profile must show.

A program is a command (mostly a shell script) whose standard output is the same in every run.
`prepare(folder, hosts)` makes input files in `folder` and returns the command; it runs in an empty
folder of its own.
"""
import os
import random
import sys

PROGRAMS = {}


class Program:
    needs = []
    limit = 60              # seconds, then killed
    status = 0
    root = 0.98             # share of stacks that reach the root
    processes = 1           # at least so many that are long enough to be compared with their CPU time
    process_seconds = 0.2
    periods = 1             # of sampling, beside 5 %: the phase of a timer is random
    reaped = True           # all processes are waited for, so the tree's CPU time is known
    storm = False           # hundreds of short processes: compared with what the shell's `times` wrote into a file
    children = 0            # processes so short that their end in the kernel is more than 5 % of them
    silent = False          # has no output
    unprivileged = False
    unprofiled = False
    functions = []          # patterns that stacks must show

    def __init__(self, name):
        self.name = name

    def prepare(self, folder, hosts):
        return ["sh", "-c", self.script.replace("@DATA@", folder).replace("@HOSTS@", hosts)
                .replace("@PYTHON@", sys.executable)]


def program(cls):
    name = cls.__name__.lower()
    PROGRAMS[name] = cls(name)
    return cls


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def write_words(path, lines):
    numbers = random.Random(7)
    write(path, "".join("%d %x\n" % (numbers.randrange(1 << 30), numbers.randrange(1 << 40)) for _ in range(lines)))


def write_functions(path, count):
    """A C file that keeps the compiler busy."""
    body = ("int f%d(int a, int b) { int s = 0; for (int i = a; i < b; i++) { switch ((i + %d) %% 7) { "
            "case 0: s += i * b; break; case 3: s ^= s << 3; break; case 5: s -= f%d(i / 2, a); break; "
            "default: s += a; } } return s; }\n")
    write(path, "int f0(int a, int b) { return a + b; }\n" +
          "".join(body % (i, i, i - 1) for i in range(1, count)))


@program
class Sqlite3(Program):
    needs = ["sqlite3"]
    functions = ["sqlite3VdbeExec|libsqlite3|sqlite3_step"]
    script = ("exec sqlite3 :memory: 'create table t(a integer primary key, b); with recursive c(x) as (select 1 "
              "union all select x+1 from c where x<3000) insert into t select x, x*7919%1009 from c; "
              "select count(*), sum(p.b) from t p join t q on (p.b*q.a)%7=3;'")


class Packing(Program):
    lines = 350000

    def prepare(self, folder, hosts):
        write_words(folder + "/words", self.lines)
        return super().prepare(folder, hosts)


@program
class Xz(Packing):
    lines = 120000
    needs = ["xz"]
    script = "exec xz -T2 --block-size=2MiB -2 -k -c @DATA@/words"


@program
class Zstd(Packing):
    needs = ["zstd"]
    script = "exec zstd -q -T2 -12 -c @DATA@/words"


@program
class Sort(Packing):
    lines = 800000
    needs = ["sort"]
    script = "sort --parallel=2 -S 64M @DATA@/words | cksum; sort --parallel=2 -S 64M -n -r @DATA@/words | cksum"


@program
class Gcc(Program):
    needs = ["gcc"]
    functions = ["cc1"]
    script = "gcc -O1 -c @DATA@/many.c -o many.o && cksum < many.o"

    def prepare(self, folder, hosts):
        write_functions(folder + "/many.c", 400)
        return super().prepare(folder, hosts)


@program
class Make(Program):
    needs = ["make", "gcc"]
    script = "cp @DATA@/* . && make -s -j2 && cksum < all"
    processes = 4
    process_seconds = 0.15

    def prepare(self, folder, hosts):
        for i in range(8):
            write_functions("%s/part%d.c" % (folder, i), 80)
        write(folder + "/makefile", "objects = $(patsubst %.c,%.o,$(sort $(wildcard part*.c)))\n"
              "all: $(objects)\n\tcat $(objects) > all\n%.o: %.c\n\tgcc -O1 -c $< -o $@\n")
        return super().prepare(folder, hosts)


@program
class Python(Program):
    script = "exec @PYTHON@ @DATA@/main.py"
    processes = 3

    def prepare(self, folder, hosts):
        write(folder + "/main.py", "import subprocess, sys, threading\n"
              "def count(n, to=None):\n    s = 0\n    for i in range(n): s += i * i % 7\n    return s\n"
              "if len(sys.argv) > 1: print(count(int(sys.argv[1]))); sys.exit(0)\n"
              "threads = [threading.Thread(target=count, args=(2000000,)) for _ in range(4)]\n"
              "for t in threads: t.start()\n"
              "children = [subprocess.Popen([sys.executable, __file__, '5000000'], stdout=subprocess.PIPE) for _ in '12']\n"
              "print([child.communicate()[0] for child in children])\n"
              "for t in threads: t.join()\n"
              "print(subprocess.run(['echo', 'done'], capture_output=True, close_fds=True).stdout)\n")
        return super().prepare(folder, hosts)


@program
class Perl(Program):
    needs = ["perl"]
    script = ("exec perl -e 'my %h; for my $i (1..1800000) { $h{$i*7919%10007} .= $i%10; } "
              "my $s = 0; for (sort keys %h) { $s += tr/3// for $h{$_}; } print \"$s\\n\"; "
              "my $pid = fork; if (!$pid) { my $x = 0; $x += $_*$_%7 for 1..9000000; print \"$x\\n\"; exit 3 } "
              "waitpid $pid, 0; print $?>>8, \"\\n\"'")
    processes = 2


@program
class Git(Program):
    needs = ["git"]
    script = ("export GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_DATE='@1700000000 +0000' GIT_COMMITTER_DATE='@1700000000 +0000'; "
              "git init -q -b main . && git config user.name n && git config user.email e@e && git config gc.auto 0 && "
              "git config pack.threads 2 && git config core.compression 9 && cp -r @DATA@/tree . && git add . && "
              "git commit -qm one && for i in 1 2 3; do for f in tree/*; do echo $i >> $f; done; git commit -qam $i; done && "
              "git gc -q --aggressive && git fsck --full 2>/dev/null && git log --format=%H && "
              "git count-objects -v | grep -E '^(in-pack|count)'")

    def prepare(self, folder, hosts):
        os.mkdir(folder + "/tree")
        for i in range(40):
            write_words("%s/tree/f%d" % (folder, i), 6000 + 50 * i)
        return super().prepare(folder, hosts)


@program
class Openssl(Program):
    needs = ["openssl"]
    root = 0.95  # hand-written assembly: all of 275 samples
    functions = ["libcrypto"]
    script = "openssl speed -seconds 1 -bytes 4096 sha256 aes-128-cbc >/dev/null 2>&1; echo $?"


@program
class Bash(Program):
    needs = ["bash"]
    periods = 2  # several hundred processes, their phases spread evenly
    storm = True
    children = 1100  # most of them subshells of half a millisecond
    script = ("exec bash -c 'for i in {1..300}; do x=$(echo $i | tr 1-5 a-e); [ -n \"$x\" ] || exit 9; (exit 3); done; "
              "s=0; for ((i = 0; i < 150000; i++)); do ((s += i % 7)); done; "
              "echo $s; seq 100 | while read n; do /bin/true; /bin/echo $n; done | cksum; times >times; trap \"echo bye\" EXIT; exit 5'")
    status = 5


@program
class Short_Children(Program):
    """Two milliseconds each, shorter than a period: all the time of most lies in late ticks and in how they end."""
    needs = ["bash"]
    periods = 4
    storm = True
    processes = 0
    script = ("exec bash -c 'for ((i = 0; i < 250; i++)); do @HOSTS@/../hosts/short_children 7; s=$((s + $?)); done; "
              "times >times; echo $s; exit $((s != 1750))'")


@program
class Ssh_Keygen(Program):
    needs = ["ssh-keygen"]
    root = 0.95  # libcrypto's assembly: all of 355 samples
    script = ("ssh-keygen -q -t rsa -b 2048 -N '' -f key </dev/null && ssh-keygen -l -f key | cut -c1-4; "
              "ssh-keygen -q -t ed25519 -a 100 -N secret -f other && ssh-keygen -y -P secret -f other | cut -c1-11")


@program
class Cxx(Program):
    root = 0.99
    functions = ["_Unwind_RaiseException"]
    script = "@HOSTS@/exceptions 1.5; echo $?"


@program
class Node(Program):
    needs = ["node"]
    root = 0.95  # JIT-compiled: all of 187 samples
    processes = 2
    limit = 90
    script = "exec node @DATA@/main.js"

    def prepare(self, folder, hosts):
        write(folder + "/main.js", "const { Worker, isMainThread, parentPort } = require('worker_threads');\n"
              "const { execFileSync } = require('child_process');\n"
              "function work(n) { let m = new Map(), s = 0; for (let i = 0; i < n; i++) { const k = (i * 7919) % 1009; "
              "m.set(k, (m.get(k) || 0) + i % 3); s += JSON.stringify({ a: i, b: [k] }).length; } return s + m.size; }\n"
              "if (process.argv[2]) { console.log(work(700000)); process.exit(4); }\n"
              "if (!isMainThread) { parentPort.postMessage(work(900000)); return; }\n"
              "const w = new Worker(__filename); w.on('message', v => { console.log('worker', v);\n"
              "try { execFileSync(process.execPath, [__filename, 'child']); } catch (e) { console.log(e.status, String(e.stdout)); } });\n"
              "console.log(work(900000));\n")
        return super().prepare(folder, hosts)


@program
class Redis(Program):
    needs = ["redis-server", "redis-benchmark", "redis-cli"]
    processes = 2
    script = ("redis-server --port 0 --unixsocket $PWD/s --daemonize no --save '' --dir $PWD >log 2>&1 & pid=$!\n"
              "for i in $(seq 100); do redis-cli -s s ping >/dev/null 2>&1 && break; sleep 0.05; done\n"
              "redis-benchmark -s s -q -n 120000 -P 8 -t set,get,lpush,zadd >bench 2>&1; echo benchmark $?\n"
              "redis-cli -s s eval 'local s = 0; for i = 1, 3000000 do s = s + i % 7 end; return s' 0\n"
              "redis-cli -s s bgsave; while redis-cli -s s info persistence | grep -q bgsave_in_progress:1; do sleep 0.05; done\n"
              "redis-cli -s s info persistence | grep -a last_bgsave_status\n"
              "kill -TERM $pid; wait $pid; echo server $?; tail -1 log | cut -d' ' -f6-")


@program
class Nginx(Program):
    needs = ["/usr/sbin/nginx"]
    processes = 3  # both workers and the client
    process_seconds = 0.2
    script = ("mkdir www && head -c 3000 @DATA@/words > www/index.html && "
              "sed s,@HERE@,$PWD,g @DATA@/conf > conf && /usr/sbin/nginx -p $PWD -e $PWD/error -c $PWD/conf & pid=$!\n"
              "@PYTHON@ @DATA@/load.py $PWD/s 20000; kill -QUIT $pid; wait $pid; echo server $?; wc -l < access")

    def prepare(self, folder, hosts):
        write_words(folder + "/words", 1000)
        write(folder + "/conf", "daemon off; worker_processes 2; pid @HERE@/pid; error_log @HERE@/error;\n"
              "events { worker_connections 64; }\nhttp { access_log @HERE@/access; keepalive_requests 1000000;\n"
              "gzip on; gzip_comp_level 6; gzip_types *; client_body_temp_path @HERE@/a; proxy_temp_path @HERE@/b;\n"
              "fastcgi_temp_path @HERE@/c; uwsgi_temp_path @HERE@/d; scgi_temp_path @HERE@/e;\n"
              "server { listen unix:@HERE@/s; root @HERE@/www; default_type text/plain; } }\n")
        write(folder + "/load.py", "import hashlib, socket, sys, threading, time\n"
              "def connect():\n    for _ in range(200):\n        try:\n            s = socket.socket(socket.AF_UNIX); "
              "s.connect(sys.argv[1]); return s\n        except OSError: time.sleep(0.05)\n"
              "def load(n, sums):\n    s = connect()\n    f = s.makefile('rb')\n    body = b''\n    for _ in range(n):\n"
              "        s.sendall(b'GET / HTTP/1.1\\r\\nHost: x\\r\\nAccept-Encoding: gzip\\r\\n\\r\\n')\n"
              "        while f.readline() != b'\\r\\n': pass\n        body = b''\n        while True:\n"
              "            size = int(f.readline(), 16); body += f.read(size); f.readline()\n            if not size: break\n"
              "    sums.append(hashlib.md5(body).hexdigest())\n"
              "sums = []\nthreads = [threading.Thread(target=load, args=(int(sys.argv[2]) // 4, sums)) for _ in range(4)]\n"
              "[t.start() for t in threads]; [t.join() for t in threads]; print(sums)\n")
        return super().prepare(folder, hosts)


@program
class Postgres(Program):
    needs = ["/usr/lib/postgresql/15/bin/postgres"]
    unprivileged = True
    limit = 120
    processes = 2
    process_seconds = 0.2
    reaped = False
    script = ("b=/usr/lib/postgresql/15/bin; $b/initdb -D d -U u --no-sync >init 2>&1 || { cat init; exit 1; }\n"
              "$b/postgres -D d -k $PWD -c listen_addresses= -c fsync=off >log 2>&1 & pid=$!\n"
              "for i in $(seq 200); do $b/psql -h $PWD -U u -c 'select 1' postgres >/dev/null 2>&1 && break; sleep 0.05; done\n"
              "q() { $b/psql -h $PWD -U u -At -c \"$1\" postgres; }\n"
              "q 'create table t as select x a, x*7919%1009 b from generate_series(1,3000) x'; "
              "q 'select count(*) from t p join t q on (p.b*q.a)%7=3' & q 'select sum(length(md5(x::text))) from generate_series(1,700000) x' > two & "
              "wait %2 %3; cat two; q 'set max_parallel_workers_per_gather=2; set parallel_setup_cost=0; set min_parallel_table_scan_size=0; "
              "select count(*), sum(b) from t'\nkill -INT $pid; wait $pid; echo server $?")


@program
class Ffmpeg(Program):
    needs = ["ffmpeg"]
    root = 0.95  # x264 is hand-written assembly: all of 483 samples
    limit = 120
    script = ("exec ffmpeg -nostdin -v error -f lavfi -i testsrc2=size=640x360:rate=25:duration=12 -c:v libx264 -preset medium "
              "-threads 2 -x264-params threads=2 -f framecrc -fflags +bitexact -flags:v +bitexact -")


@program
class Imagemagick(Program):
    needs = ["convert"]
    script = "convert -seed 5 -size 700x700 plasma:fractal -blur 0x6 -resize 150% -colors 64 -depth 8 gray:out && wc -c < out"


@program
class Tmux(Program):
    needs = ["tmux"]
    reaped = False
    process_seconds = 0.2
    script = ("t='tmux -S ./s -f /dev/null'; export SHELL=/bin/sh; $t new-session -d -x 80 -y 24 "
              "'@PYTHON@ -c \"print(sum(i*i%7 for i in range(6000000)))\"; seq 30000; seq 5; tmux -S ./s wait-for -S done; sleep 30'; "
              "$t wait-for done; sleep 0.3; $t capture-pane -p | grep -v '^$' | tail -6; $t list-windows -F '#{window_index}'; $t kill-server; echo $?")


@program
class Chromium(Program):
    needs = ["chromium"]
    unprivileged = True
    root = 0.95  # 98.9 to 100 % of some 130 samples
    limit = 120
    reaped = False
    process_seconds = 0.15
    periods = 8
    script = ("exec chromium --headless=new --disable-gpu --no-first-run --user-data-dir=$PWD/profile --dump-dom "
              "--virtual-time-budget=20000 file://@DATA@/page.html 2>errors")

    def prepare(self, folder, hosts):
        write(folder + "/page.html", "<body><script>let s = 0, t = []; for (let i = 0; i < 4e7; i++) { s = (s * 31 + i) % 1000003; "
              "if (i % 1000 == 0) t.push('<p>' + s + '</p>'); } document.body.innerHTML = t.slice(0, 400).join('') + s;</script></body>")
        return super().prepare(folder, hosts)


@program
class Go_Static(Program):
    """Nothing to load a library into: said, and the program is left alone."""
    needs = ["/usr/lib/go-1.19/bin/go"]
    unprofiled = True
    status = 6
    limit = 90

    def prepare(self, folder, hosts):
        write(folder + "/main.go", "package main\nimport (\"fmt\"; \"os\")\nfunc work(n int, c chan int) { s := 0; for i := 0; i < n; i++ "
              "{ s += i * i % 7 }; c <- s }\nfunc main() { c := make(chan int); for i := 0; i < 4; i++ { go work(50000000, c) }\n"
              "t := 0; for i := 0; i < 4; i++ { t += <-c }; fmt.Println(t, len(os.Args)); os.Exit(6) }\n")
        environment = {**os.environ, "CGO_ENABLED": "0", "GOCACHE": folder + "/cache", "GOFLAGS": "-mod=mod", "GO111MODULE": "off"}
        os.spawnve(os.P_WAIT, self.needs[0], ["go", "build", "-o", folder + "/program", folder + "/main.go"], environment)
        return [folder + "/program"]
