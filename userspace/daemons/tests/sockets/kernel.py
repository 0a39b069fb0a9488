# SPDX-License-Identifier: GPL-2.0-only
#
# kernel OUTPUT STORE: tests of twjobd with wheels of the kernel, which go on while there is no
# daemon, and which other programs can open. The tests run in a guest, where OUTPUT has the
# programs, and may set its clock, unload its module and lower its limits. What a client gets of
# each verb, whatever the wheels are, is in the other modules.
import contextlib
import ctypes
import os
import pathlib
import re
import signal
import socket
import subprocess
import time

import timewheel

from daemon import *

DAY = 86400
WHEELS = pathlib.Path("/dev/timewheels")
PARAMETERS = pathlib.Path("/sys/module/timewheel/parameters")
CGROUP = pathlib.Path("/sys/fs/cgroup")
TRACING = pathlib.Path("/sys/kernel/tracing")


class KernelDaemon(Daemon):
    """A daemon whose service manager keeps the file of the queue "q" over a kill, if a test asks
    for that. Its messages are those of its last start."""
    wheels, kept, notify = "kernel", None, None

    def popen(self, command, **more):
        environment = dict(os.environ)
        if self.notify:
            environment["NOTIFY_SOCKET"] = self.notify.getsockname()
        if self.kept is None:
            return subprocess.Popen(command, env=environment, **more)
        environment |= {"LISTEN_FDS": "1", "LISTEN_FDNAMES": "jobs-q"}
        return subprocess.Popen(["sh", "-c", 'LISTEN_PID=$$ exec "$@"', "-", *command],
                                env=environment, pass_fds=[3],
                                preexec_fn=lambda: os.dup2(self.kept, 3), **more)

    def kill(self):
        self.stop(signal.SIGKILL)

    def kill_and_start(self):
        self.kill()
        self.start()

    def start_with_manager(self):
        """Starts the daemon anew, under a service manager."""
        self.kill()
        path = folder / "notify"
        path.unlink(missing_ok=True)
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.settimeout(20)
        self.notify.bind(str(path))
        self.start()

    def keep(self):
        """Keeps the file that the daemon gives its service manager for the queue "q"."""
        while self.kept is None:
            text, files, *_ = socket.recv_fds(self.notify, 4096, 1)
            if b"FDSTORE=1" in text and b"FDNAME=jobs-q" in text:
                self.kept, = files

    def forget(self):
        """Closes the kept file, and ends the service manager."""
        if self.kept is not None:
            os.close(self.kept)
        if self.notify:
            self.notify.close()
        self.kept = self.notify = None

    def messages(self):
        """Returns what the service manager has been told meanwhile."""
        texts = []
        self.notify.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                texts.append(self.notify.recv(4096).decode())
        self.notify.settimeout(20)
        return texts


def destroy_wheels():
    for wheel in WHEELS.iterdir() if WHEELS.exists() else ():
        timewheel.destroy(wheel.name)


def on_kernel(*settings, store=None):
    """Gives a test a daemon with the queue "q". A clock that the test sets is set back."""
    def run(function):
        def inner():
            daemon = KernelDaemon(store=store or folder / f"jobs-{Daemon.count}")
            ahead = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
            try:
                same(daemon("TW.CREATE", "q", *settings), "+OK")
                function(daemon)
                same(figure(daemon, None, b"mended"), 0)
            finally:
                set_clock(ahead)
                daemon.stop()
                daemon.forget()
                destroy_wheels()
        return inner
    return run


def set_clock(ahead):
    time.clock_settime(time.CLOCK_REALTIME, time.clock_gettime(time.CLOCK_BOOTTIME) + ahead)


def shift_clock(seconds):
    time.clock_settime(time.CLOCK_REALTIME, time.time() + seconds)


def opened():
    return timewheel.Wheel.open_named("jobs-q")


def many(daemon, count, *options):
    """Puts many jobs, and returns the first one's number."""
    first = None
    for begin in range(0, count, 1000):
        ids = at_once(daemon, *[("TW.PUT", "q", str(begin + i), *options)
                                for i in range(min(1000, count - begin))])
        assert all(isinstance(i, int) for i in ids), ids
        first = first or ids[0]
    return first


def ack(daemon, job):
    same(daemon("TW.ACK", "q", job[1]), 1)


def is_stale(daemon, receipt):
    same(daemon("TW.ACK", "q", receipt)[:6], "-STALE")


def loaded(daemon):
    assert eventually(lambda: figure(daemon, "q", b"loading") == 0)


def first_job(daemon):
    """Returns how many seconds after a start that follows a kill the first job comes."""
    daemon("TW.PUT", "q", "now", "IN", 0.1)
    daemon.kill()
    time.sleep(0.2)
    begin = time.monotonic()
    daemon.start()
    job = take(daemon, seconds=30)
    same(job[3], "now")
    ack(daemon, job)
    return time.monotonic() - begin


@test("J4: the first job after a kill comes as soon as from an empty queue")
@on_kernel()
def _(daemon):
    # The wheel has kept turning, so no job is loaded, but a log of at most 4 MB is written back.
    empty = first_job(daemon)
    many(daemon, 5000, "IN", 10000)
    full = first_job(daemon)
    print(f"# the first job {empty:.2f} s after the start, {full:.2f} s with 5,000 pending")
    assert full < 2 * empty + 1
    same([figure(daemon, "q", name) for name in (b"loading", b"pending", b"jobs")],
         [0, 5000, 5000])


@test("J4: a job that was handed out while jobs were loaded stays with its worker")
@on_kernel()
def _(daemon):
    daemon("TW.PUT", "q", "held")
    many(daemon, 3000, "IN", 10000)
    daemon.kill()
    destroy_wheels()
    daemon.start_with_manager()
    job = take(daemon, seconds=30)
    daemon.kill()
    daemon.keep()
    daemon.start()
    loaded(daemon)
    same(counts(daemon), [3001, 3000, 1, 0])
    takes_nothing(daemon)
    ack(daemon, job)


@test("J4: what is held stays held over a kill, but for what is BOUND")
@on_kernel()
def _(daemon):
    # Without a service manager the job is given back at once.
    daemon("TW.PUT", "q", "x")
    plain = take(daemon)
    daemon.kill_and_start()
    again = take(daemon, seconds=20)
    same(again[2], 2)
    is_stale(daemon, plain[1])
    ack(daemon, again)

    daemon.start_with_manager()
    daemon.keep()
    daemon("TW.PUT", "q", "plain")
    plain = take(daemon)
    daemon("TW.PUT", "q", "bound")
    bound = Client(daemon.path)("TW.TAKE", "q", "BOUND")
    daemon.kill_and_start()
    # J3: the bound job comes again, because its connection has ended with the daemon.
    again = take(daemon, seconds=20)
    same((again[0], again[3]), (plain[0] + 1, "bound"))
    is_stale(daemon, bound[0][2])
    assert take(daemon, seconds=0.2) is None
    ack(daemon, plain)


@test("twjob work over planned restarts runs each job once")
@on_kernel()
def _(daemon):
    ran = folder / "ran"
    daemon.start_with_manager()
    daemon.keep()
    jobs = put(daemon, 20)
    work = subprocess.Popen([output / "twjob", "work", "--server", daemon.path, "q", "-j", "4",
                             "--", "sh", "-c", f"echo $TWJOB_ID >>{ran}; sleep 1"])
    for i in (1, 2, 3):
        assert eventually(lambda: ran.exists() and len(ran.read_text().split()) >= 4 * i)
        daemon.stop()
        daemon.start()
    assert eventually(lambda: counts(daemon)[0] == 0)
    work.terminate()
    same(work.wait(), 0)
    same(sorted(map(int, ran.read_text().split())), jobs)
    same(figure(daemon, "q", b"lapsed"), 0)


@test("with the other kind of wheels the jobs are loaded, and the kernel's wheel is destroyed")
@on_kernel()
def _(daemon):
    daemon("TW.PUT", "q", "x")
    daemon.start_with_manager()
    daemon.keep()
    daemon.kill()
    assert (WHEELS / "jobs-q").exists()
    daemon.wheels = "process"
    daemon.messages()
    daemon.start()
    assert not (WHEELS / "jobs-q").exists()
    same(sum("FDSTOREREMOVE=1\nFDNAME=jobs-q" in text for text in daemon.messages()), 1)
    os.close(daemon.kept)
    daemon.kept = None
    assert take(daemon, seconds=20)
    # The job is handed out again, because no process knows any more that a worker had it.
    daemon.kill_and_start()
    ack(daemon, take(daemon, seconds=20))
    assert not any("FDSTORE=1" in text for text in daemon.messages())
    assert not (WHEELS / "jobs-q").exists()


@test("J4: leases end in time also if the clock is set back while there is no daemon")
@on_kernel("LEASE", 3)
def _(daemon):
    daemon.start_with_manager()
    daemon.keep()
    daemon("TW.PUT", "q", "x", "AT", 1000)
    begin = time.monotonic()
    job = take(daemon)
    daemon.kill()
    shift_clock(-DAY)
    daemon.start()
    again = take(daemon, seconds=20)
    same(again[2], 2)
    assert time.monotonic() - begin >= 3
    is_stale(daemon, job[1])
    ack(daemon, again)


@test("the clock is set back by a day: leases end as they would have ended")
@on_kernel("LEASE", 2)
def _(daemon):
    def old():
        """Returns a job that is due at any setting of the clock."""
        daemon("TW.PUT", "q", "old", "AT", 1000)
        return take(daemon)

    extended, acked = old(), None
    same(daemon("TW.EXTEND", "q", extended[1], 1500), "+OK")
    acked = old()
    same(daemon("TW.EXTEND", "q", acked[1], 1000), "+OK")
    begin = time.monotonic()
    lapsed = old()
    due = time.time() * 1000
    daemon("TW.PUT", "q", "due")
    shift_clock(-DAY)
    # Only jobs that are due by the present clock come.
    again = take(daemon, seconds=30)
    same((again[0], again[2]), (lapsed[0], 2))
    assert time.monotonic() - begin >= 2
    is_stale(daemon, lapsed[1])
    ack(daemon, again)
    with opened() as wheel:
        assert 1000e9 < wheel.get(extended[0]).left_ns <= 1500e9
    ack(daemon, acked)
    ack(daemon, extended)
    takes_nothing(daemon)
    same(daemon.said().count("the clock has been set back"), 1)
    # A job that was due is due again when the clock shows its time.
    shift_clock(DAY)
    job = take_job(daemon, seconds=30)
    assert job.body == b"due" and due - 100 <= job.due <= time.time() * 1000, job
    same(daemon("TW.ACK", "q", job.receipt), 1)
    same(counts(daemon), [0] * 4)


@test("the clock is set forward by a day: jobs are due by it, and leases end early")
@on_kernel("LEASE", 2)
def _(daemon):
    daemon("TW.PUT", "q", "held", "AT", 1000)
    held = take(daemon)
    later = daemon("TW.PUT", "q", "later", "IN", DAY - 60)
    daemon("TW.PUT", "q", "more", "IN", DAY + 600)
    shift_clock(DAY)
    again = take(daemon, seconds=30)
    same((again[0], again[2]), (held[0], 2))
    is_stale(daemon, held[1])
    ack(daemon, again)
    job = take_job(daemon, seconds=30)
    assert job.id == later and job.due <= time.time() * 1000, job
    same(daemon("TW.EXTEND", "q", job.receipt, 60), "+OK")
    takes_nothing(daemon)
    # The clock is set back again, and the receipt is still good.
    shift_clock(-DAY)
    time.sleep(1.5)
    same(daemon("TW.ACK", "q", job.receipt), 1)
    same(counts(daemon)[0], 1)


def fill(disk):
    @on_kernel(store=disk / "jobs")
    def inner(daemon):
        puts = 0
        while isinstance(answer := daemon("TW.PUT", "q", "x" * 60000), int):
            puts += 1
        same(answer[:5], "-FULL")
        assert puts > 20
        same(figure(daemon, None, b"disk_full"), 1)
        same(counts(daemon), [puts, puts, 0, 0])
        same(daemon("TW.PUT", "q", "x")[:5], "-FULL")
        for _ in range(puts):
            ack(daemon, take(daemon))
        assert eventually(lambda: figure(daemon, None, b"disk_full") == 0)
        assert daemon("TW.PUT", "q", "x") > 0
    inner()


@test("J5: a full disk refuses puts by name, and all other commands are carried out")
def _():
    disk = folder / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "none", disk], check=True)
    try:
        fill(disk)
    finally:
        subprocess.run(["umount", disk], check=True)


@test("J3: the wheel's token of a buried job waits, and keeps the key")
@on_kernel()
def _(daemon):
    other = daemon("TW.PUT", "q", "x", "IN", 1000)
    job = daemon("TW.PUT", "q", "x", "KEY", "k")[0]
    with opened() as wheel:
        for end in ("TW.KICK", "q", "ALL", 9), ("TW.CANCELKEY", "q", "k"):
            _, receipt, attempt, _ = take(daemon)
            same((attempt, daemon("TW.BURY", "q", receipt)), (1, "+OK"))
            is_stale(daemon, receipt)
            assert take(daemon, seconds=0.2) is None
            same(counts(daemon), [2, 1, 0, 1])
            # The stamp is one of the three tokens.
            same((wheel.info().pending, wheel.info().held), (3, 0))
            same(daemon("TW.PUT", "q", "other", "KEY", "k"), [job, b"BURIED"])
            same(daemon(*end), 1)
        same(daemon("TW.CANCEL", "q", other), 1)
        same(wheel.info().pending, 1)


@test("commands that come before there is another wheel change nothing, and say so")
@on_kernel()
def _(daemon):
    daemon("TW.PUT", "q", "x", "IN", 0.1)
    daemon("TW.PUT", "q", "x", "KEY", "k")
    receipt = take(daemon, seconds=30)[1]
    destroy_wheels()
    expected = """-UNAVAILABLE PUT q x | TAKE q | CANCEL q 1 | MOVE q 1 IN 1 | KICK q 1 |
                  DELETE q 1 | GET q 1 | ACK q $ | NACK q $ | EXTEND q $ | BURY q $
                  -LOADING PUT q x KEY k | PUT q x KEY k REPLACE | CANCELKEY q k | MOVEKEY q k IN 1
                  [ LIST q
                  0 KICK q ALL 10
                  +OK PAUSE q | RESUME q"""
    # The first of these commands finds out. The store alone can answer the last four.
    rows = [(row.split()[0], ("TW." + command.strip()).replace("$", receipt).split())
            for row in re.sub(r"\|\s+", "| ", expected).splitlines()
            for command in row.strip().split(" ", 1)[1].split("|")]
    daemon.client.socket.sendall(b"".join(encoded(command) for _, command in rows))
    for begin, command in rows:
        answer = str(daemon.client.answer())
        assert answer.startswith(begin), (command, answer)
    # Nothing was changed, and both jobs come.
    same(counts(daemon)[0], 2)
    for _ in range(2):
        job = take(daemon, seconds=30)
        same(job[3], "x")
        ack(daemon, job)


@test("J6: the daemon finds and counts each change of a token by another program")
def _():
    daemon = KernelDaemon(store=folder / "backstop")
    same(daemon("TW.CREATE", "q"), "+OK")
    missing, late = (daemon("TW.PUT", "q", "x", "IN", 3) for _ in range(2))
    time.sleep(2.5)
    same(figure(daemon, None, b"mended"), 0)
    with opened() as wheel:
        wheel.cancel(missing)
        wheel.move(late, 3600)
        wheel.register(123456, 3600, cookie=123456)
    assert eventually(lambda: figure(daemon, None, b"mended") == 3)
    same(sorted(take(daemon, seconds=30)[0] for _ in range(2)), sorted((missing, late)))
    same(figure(daemon, "q", b"pending"), 0)
    daemon.stop()
    destroy_wheels()


@test("a wheel that is destroyed under the daemon is made again")
@on_kernel()
def _(daemon):
    many(daemon, 500, "IN", 0.5)
    destroy_wheels()
    ack(daemon, take(daemon, seconds=30))
    loaded(daemon)
    bodies = []
    while len(bodies) < 499 and (jobs := Client(daemon.path)("TW.TAKE", "q", "COUNT", 100,
                                                            "BLOCK", 20000)):
        bodies += [job[6] for job in jobs]
        daemon("TW.ACK", "q", *(job[2] for job in jobs))
    same((len(set(bodies)), counts(daemon)), (499, [0] * 4))
    # A daemon with nothing to do finds out, too.
    destroy_wheels()
    assert eventually(lambda: isinstance(daemon("TW.PUT", "q", "x"), int))
    ack(daemon, take(daemon, seconds=30))
    assert "has been destroyed" in daemon.said()


@test("a store in memory ends with its process, though the wheel outlives it")
@on_kernel("LEASE", 60, store="memory")
def _(daemon):
    put(daemon, 2)
    old = take(daemon)
    daemon.kill_and_start()
    same(daemon("TW.QUEUES"), [])
    same(daemon("TW.CREATE", "q", "LEASE", 60), "+OK")
    takes_nothing(daemon)
    same(counts(daemon), [0] * 4)
    same(daemon("TW.PUT", "q", "new"), 1)
    new = take(daemon)
    same(new[3], "new")
    is_stale(daemon, old[1])
    ack(daemon, new)


@test("without the module the daemon starts, and takes the jobs up when the module is loaded")
@on_kernel("LEASE", 2)
def _(daemon):
    same(daemon("TW.PUT", "q", "x", "KEY", "k")[1], b"NEW")
    daemon.kill()
    destroy_wheels()
    subprocess.run(["rmmod", "timewheel"], check=True)
    try:
        daemon.start()
        same((daemon("TW.QUEUES"), figure(daemon, "q", b"jobs")), ([b"q"], 1))
        refuses(daemon, """UNAVAILABLE | TW. | PUT q x | TAKE q | CREATE more
                           UNAVAILABLE | TW.CREATE | q LEASE 7""")
        same((figure(daemon, "q", b"lease_ms"), daemon("TW.QUEUES")), (2000, [b"q"]))
        time.sleep(1.2)
        same(daemon.said().count('queue "q": there is no device'), 1)
    finally:
        subprocess.run(["insmod", "/timewheel.ko"], check=True)
    job = take_job(daemon, seconds=30)
    same((job.key, daemon("TW.ACK", "q", job.receipt)), (b"k", 1))
    same([daemon("TW.CREATE", "more"), daemon("TW.DROP", "more")], ["+OK"] * 2)


@test("wheels of the kernel are told")
@on_kernel()
def _(daemon):
    assert b"wheels:kernel\r\n" in daemon("INFO")
    assert b"\ntwjobd_process_wheels 0\n" in daemon("TW.METRICS")
    same(figure(daemon, None, b"process_wheels"), 0)


@test("a second daemon with the same prefix is told so, whatever the settings of the wheels are")
@on_kernel("LEASE", 2)
def _(daemon):
    daemon.stop()
    other = KernelDaemon(store=folder / "other")
    for lease in (2, 3):
        same(other("TW.CREATE", "q", "LEASE", lease), "+OK")
        other("TW.PUT", "q", "x")
        job = take(other, seconds=20)
        same(other("TW.EXTEND", "q", job[1], 60), "+OK")
        daemon.start()
        same(daemon.process.wait(20), 1)
        same(daemon.said().count('the wheel "jobs-q" is another twjobd\'s: set wheel-prefix'), 1)
        # The worker still has its job.
        ack(other, job)
    same(figure(other, None, b"mended"), 0)
    other.stop()
    destroy_wheels()
    daemon.start()


@contextlib.contextmanager
def parameter(name, value):
    """Sets a parameter of the module for a while."""
    path = PARAMETERS / name
    before = path.read_text()
    path.write_text(str(value))
    try:
        yield
    finally:
        path.write_text(before)


def is_untouched(daemon):
    """Checks that a refused TW.CREATE has left the queue "q", with one job, as it was."""
    same((figure(daemon, "q", b"max_jobs"), daemon("TW.QUEUES")), (100000, [b"q"]))
    daemon("TW.PUT", "q", "now")
    ack(daemon, take(daemon, seconds=30))
    same(counts(daemon)[0], 1)


def comes_and_goes(daemon, *settings):
    same([daemon("TW.CREATE", "more", *settings), daemon("TW.DROP", "more")], ["+OK"] * 2)
    is_untouched(daemon)


@test("J5: a control group with too little memory for a queue's wheel refuses it")
@on_kernel()
def _(daemon):
    daemon("TW.PUT", "q", "later", "IN", 1000)
    # After these commands the daemon has the memory of its own that a queue needs.
    comes_and_goes(daemon)
    comes_and_goes(daemon)
    group = CGROUP / "twjobd-test"
    group.mkdir()
    (group / "memory.max").write_text("250000")
    (group / "cgroup.procs").write_text(str(daemon.process.pid))
    refuses(daemon, "FULL | TW.CREATE | more MAXJOBS 16000000")
    # With this limit any other command would make the kernel kill the daemon.
    (group / "memory.max").write_text("max")
    is_untouched(daemon)
    comes_and_goes(daemon, "MAXJOBS", 16000000)
    (CGROUP / "cgroup.procs").write_text(str(daemon.process.pid))
    group.rmdir()


@test("J5: the kernel's limit of a user's tokens is for a daemon without CAP_SYS_RESOURCE")
@on_kernel()
def _(daemon):
    daemon("TW.PUT", "q", "later", "IN", 1000)
    popen = daemon.popen
    daemon.popen = lambda command, **more: popen(
        command, preexec_fn=lambda: ctypes.CDLL(None).prctl(24, 24, 0, 0, 0), **more)
    with parameter("max_user_tokens", 150000):
        daemon.stop()
        daemon.start()
        for queue in "more", "q MAXJOBS 200000":
            refuses(daemon, f"FULL | TW.CREATE | {queue}")
            is_untouched(daemon)
    comes_and_goes(daemon)


@test("J5: the kernel's limit of all tokens can leave even an existing queue without a wheel")
@on_kernel()
def _(daemon):
    daemon("TW.PUT", "q", "later", "IN", 1000)
    with parameter("max_all_tokens", 150000):
        for queue in "more", "q MAXJOBS 200000":
            refuses(daemon, f"FULL | TW.CREATE | {queue}")
            is_untouched(daemon)
        daemon.kill()
        destroy_wheels()
        (PARAMETERS / "max_all_tokens").write_text("1000")
        daemon.start()
        refuses(daemon, "UNAVAILABLE | TW. | PUT q x | TAKE q")
        same(counts(daemon)[0], 1)
        time.sleep(1.5)
        # The log has one line, although the daemon tries again and again.
        assert re.fullmatch(".*raise the module's limits.*\n", daemon.said()), daemon.said()
    loaded(daemon)
    is_untouched(daemon)


def lists_for_stats(daemon):
    """Returns how often the daemon lists tokens between reading TW.STATS and answering it."""
    events = TRACING / "events/raw_syscalls/sys_enter"
    # These are the numbers of ioctl, sendto and recvfrom.
    (events / "filter").write_text(f"common_pid == {daemon.process.pid} && "
                                   "(id == 16 || id == 44 || id == 45)")
    (TRACING / "trace").write_text("")
    (events / "enable").write_text("1")
    figure(daemon, "q", b"due")
    (events / "enable").write_text("0")
    text, _, _ = (TRACING / "trace").read_text().partition(": NR 44 ")
    _, _, text = text.rpartition(": NR 45 ")
    # The daemon does something else before it answers, so only TIMEWHEEL_IOC_LIST counts.
    return len(re.findall(r": NR 16 \(\w+, be07, ", text))


@test("figures of a large queue are counted in slices")
@on_kernel()
def _(daemon):
    many(daemon, 12000, "IN", 10000)
    same(figure(daemon, "q", b"due"), 0)
    many(daemon, 3, "AT", 1000)
    lists = lists_for_stats(daemon)
    print(f"# {lists} lists for one answer")
    # The daemon may also be walking through all jobs. If each slice listed from the first token on,
    # there would be a thousand lists.
    assert 10 < lists < 200, lists
    assert eventually(lambda: figure(daemon, "q", b"due") == 3)


end()
