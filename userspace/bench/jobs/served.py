#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
#
# served.py OUTPUT JOBS: kills a node that owned so many jobs, each with a key and a body of
# 100 bytes, of which one in 1000 is due, and the others in an hour or later. From then on a
# program puts a job at the other node every 20 ms, which is due at once, and a worker takes it
# there, as well as the dead node's jobs that are due. Prints when the latter came, how long the
# former waited, and when the other node owns all jobs. The script "takeover" calls this.
import pathlib
import signal
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "daemons/tests/postgresql"))
from common import Client, Node, Sql, eventually, init_database

jobs = int(sys.argv[2])
init_database().check_returncode()
dead, node = Node("dead"), Node("other")
sql = Sql()
dead("TW.CREATE", "q", "MAXJOBS", 16000000, "MAXBYTES", 1 << 40)
first = dead("TW.PUT", "q", "x", "IN", 3600)
assert eventually(lambda: isinstance(node("TW.GET", "q", first), list))
owner = sql("select node from timewheel.job")
sql(f"""insert into timewheel.job (id, queue, node, due, size, key, body)
	select 1000000 + i, queue, node, case when i % 1000 = 0 then 0 else due + i end, 180,
	('order-' || i)::bytea, repeat('x', 100)::bytea
	from timewheel.job, generate_series(1, {jobs}) i""")
sql("vacuum analyze timewheel.job")
assert dead.metric("fenced_total") == 0, "the machine is too busy for a lease"
dead.stop(signal.SIGKILL)
begin = time.monotonic()
lease = int(sql(f"select until from timewheel.node_lease where node = {owner}")) / 1000
stop = False
puts, waits, taken_over = [], [], []


def put():
    client = Client(node.path)
    while not stop:
        start = time.monotonic()
        assert client("TW.PUT", "q", repr(start)) > 0
        puts.append(time.monotonic() - start)
        time.sleep(0.02)


def note_taken_over():
    taken_over.append(time.time() - lease)
    if len(taken_over) == jobs // 1000:
        print(f"the {jobs // 1000} jobs that were due came {taken_over[0]:.1f} to "
              f"{taken_over[-1]:.1f} s after the end of the dead node's lease", flush=True)


def work():
    client = Client(node.path)
    while not stop or len(waits) < len(puts):
        for job in client("TW.TAKE", "q", "BLOCK", 1000) or []:
            if job[6][:1] == b"x":
                note_taken_over()
            else:
                waits.append(time.monotonic() - float(job[6]))
            assert client("TW.ACK", "q", job[2]) == 1


def remain(where):
    return sql(f"select exists (select from timewheel.job where node {where})") == "t"


threads = [threading.Thread(target=what) for what in (put, work)]
for thread in threads:
    thread.start()
while remain(f"= {owner}") or remain("is null"):
    time.sleep(1)
whole = time.monotonic() - begin
stop = True
for thread in threads:
    thread.join()
assert len(taken_over) == jobs // 1000, len(taken_over)
print(f"all {jobs} jobs with another node after {whole:.0f} s")
for what, times in (("answers to PUT", puts), ("from PUT to TAKE", waits)):
    times.sort()
    print(f"{what}: {len(times)} jobs, median {times[len(times) // 2] * 1000:.0f} ms, "
          f"99 of 100 within {times[len(times) * 99 // 100] * 1000:.0f} ms, "
          f"longest {times[-1] * 1000:.0f} ms")
