# SPDX-License-Identifier: GPL-2.0-only
#
# Tests of jobs that come again by a rule.
import random
import signal
import time

from daemon import *


@each_store("TW.RULES lists the jobs that come again, and no others, page by page")
@in_stores()
def _(daemon):
    same(daemon("TW.CREATE", "r"), "+OK")
    ids = []
    for i in range(3):
        for queue in "qr":
            daemon("TW.PUT", queue, "x", "KEY", f"job-{i}", "IN", 3600)
            job = daemon("TW.EVERY", queue, f"rule-{i}", "@yearly", "TZ", "Europe/Berlin",
                         "MISSED", "none", "TRIES", 3, "x")[0]
            ids += [job] if queue == "q" else []
    same(daemon("TW.CANCELKEY", "q", "rule-1"), 1)
    rules, cursor = page(daemon, verb="TW.RULES")
    same((cursor, [rule["id"] for rule in rules]), (0, [ids[0], ids[2]]))
    whole = get(daemon, ids[0])
    del whole["body"]
    same(rules[0], whole)
    same([whole[name] for name in ("rule", "zone", "missed", "overlap", "tries")],
         [b"@yearly", b"Europe/Berlin", b"none", 0, 3])
    same([job for job in page(daemon)[0] if "rule" in job], rules)
    first, cursor = page(daemon, "COUNT", 1, verb="TW.RULES")
    same(first, rules[:1])
    same(page(daemon, "CURSOR", cursor, verb="TW.RULES")[0], rules[1:])


def rule(node, queue="q"):
    """Returns what is told of the only job of a queue, which comes again."""
    jobs, _ = page(node, verb="TW.RULES", queue=queue)
    same(len(jobs), 1)
    return jobs[0]


def rules_end(*nodes, queue="q"):
    """No node knows a rule any more, and there is no job."""
    for node in nodes:
        assert eventually(lambda: figure(node, None, b"rules") == 0)
        assert eventually(lambda: [figure(node, queue, name) for name in (b"jobs", b"bytes")]
                          == [0, 0])


@each_store("a rule is put at one node, taken at another, and goes on after an ACK at a third")
@on_nodes("TRIES", 3)
def _(*nodes):
    same(every(nodes[0], "FREQ=SECONDLY", "MISSED", "all", "body"), "NEW")
    before = None
    for i in range(4):
        job = take_job(nodes[(i + 1) % 3])
        same((job.attempt, job.body, named(job)), (1, b"body", job.due))
        if before:
            same((job.id, job.due), (before.id, before.due + 1000))
            same(nodes[i % 3]("TW.ACK", "q", before.receipt)[:6], "-STALE")
        for node in nodes:
            same(state(node, job.id), "held")
        same(nodes[(i + 2) % 3]("TW.ACK", "q", job.receipt), 1)
        before = job
    same([figure(node, None, b"rules") for node in nodes], [1] * 3)
    same(nodes[1]("TW.CANCELKEY", "q", "e"), 1)
    rules_end(*nodes)


@each_store("a rule again, another one, and a job with its key")
@on_nodes()
def _(a, b, c):
    same(every(a, "@hourly", "body"), "NEW")
    same(every(b, "@hourly", "body"), "EXISTS")
    first = rule(a)
    same(first["due"] % 3600000, 0)
    same(every(c, "@hourly", "MISSED", "all", "body"), "REPLACED")
    same(every(b, "0 12 * * *", "TZ", "UTC", "OVERLAP", "more"), "REPLACED")
    same((rule(a)["due"] % 86400000, rule(c)["rule"]), (43200000, b"0 12 * * *"))
    same(every(a, "@hourly", "body"), "REPLACED")
    same([rule(c)[name] for name in ("id", "due")], [first["id"], first["due"]])
    same(b("TW.PUT", "q", "x", "KEY", "e", "REPLACE"),
         "-ERR the key is that of a rule, see TW.EVERY")
    same(b("TW.PUT", "q", "x", "KEY", "e"), [first["id"], b"EXISTS"])
    same(take_job(a, seconds=0.1), None)
    # This occurrence comes earlier this time, and then the one that follows it.
    same(c("TW.KICK", "q", first["id"]), 1)
    job = take_job(b)
    same((job.id, named(job), job.body), (first["id"], first["due"], b"body"))
    same(every(c, "@hourly", "body"), "EXISTS")
    refuses(c, "HELD the job is being worked on | TW. | EVERY q e @daily body | CANCELKEY q e")
    same(a("TW.ACK", "q", job.receipt), 1)
    same(rule(b)["due"], first["due"] + 3600000)
    same([c("TW.CANCELKEY", "q", "e") for _ in range(2)], [1, 0])
    rules_end(a, b, c)
    same(b("TW.PUT", "q", "x", "KEY", "e", "IN", 1000)[1], b"NEW")
    same(every(a, "@hourly", "body"), "-ERR the key is that of a job without a rule")


@each_store("a rule ends with its job, by any verb, and after its last occurrence")
@on_nodes()
def _(a, b, c):
    for node, verb in (b, "TW.CANCEL"), (c, "TW.DELETE"):
        same(every(a, "@hourly", "body"), "NEW")
        same(node(verb, "q", rule(a)["id"]), 1)
        rules_end(a, b, c)
    # The first of these two occurrences is the present second.
    same(every(a, "FREQ=SECONDLY;COUNT=2", "MISSED", "all", "body"), "NEW")
    first = take_job(b)
    same(c("TW.ACK", "q", first.receipt), 1)
    second = take_job(a, seconds=0.1)
    if second:
        same((second.due, c("TW.ACK", "q", second.receipt)), (first.due + 1000, 1))
    rules_end(a, b, c)
    same(every(a, "FREQ=SECONDLY", "body"), "NEW")
    same(a("TW.PAUSE", "q"), "+OK")
    same(take_job(a, seconds=1.5), None)
    same(a("TW.RESUME", "q"), "+OK")
    assert take_job(a)
    same(a("TW.DROP", "q"), "+OK")
    assert eventually(lambda: figure(a, None, b"rules") == 0)


@each_store("MISSED: the last, all or none of those that no worker has taken")
@on_nodes()
def _(a, b, c):
    missed = {"last": b, "all": a, "none": a}
    for which in missed:
        same(a("TW.CREATE", which), "+OK")
        same(every(a, "FREQ=SECONDLY;INTERVAL=2", "MISSED", which, "body", queue=which), "NEW")
    begin = time.time() * 1000
    time.sleep(4.5)
    at, jobs = time.time() * 1000, {}
    for which, node in missed.items():
        job = jobs[which] = take_job(node, which)
        same((job.attempt, named(job)), (1, job.due))
        # The answer tells that a worker has the job, and which occurrence the job is.
        same([get(c, job.id, which)[name] for name in ("state", "due")], [b"held", job.due])
        same(take_job(c, which, seconds=0.1), None)
        same(c("TW.ACK", which, job.receipt), 1)
    assert at - 2000 < jobs["last"].due <= time.time() * 1000
    assert jobs["all"].due <= begin + 2000
    assert jobs["none"].due > at
    same(take_job(c, "all").due, jobs["all"].due + 2000)


@each_store("OVERLAP: the next occurrence may begin while one is worked on")
@on_nodes()
def _(a, b, c):
    same(every(a, "FREQ=SECONDLY", "body"), "NEW")
    first = take_job(b)
    same(take_job(c, seconds=1.5), None)
    same(a("TW.ACK", "q", first.receipt), 1)
    second = take_job(c)
    assert second.due >= first.due + 1000
    same(b("TW.ACK", "q", second.receipt), 1)
    same(every(b, "FREQ=SECONDLY", "OVERLAP", "body"), "REPLACED")
    first, second = take_job(c), take_job(a)
    assert named(second) > named(first) and second.id != first.id
    for job in (first, second):
        same((job.attempt, state(b, job.id), job.body), (1, "held", b"body"))
    same(b("TW.ACK", "q", first.receipt), 1)
    same(b("TW.CANCELKEY", "q", "e"), 1)
    # The occurrence that a worker has is a job of its own.
    same(c("TW.ACK", "q", second.receipt), 1)
    rules_end(a, b, c)


@each_store("a rule goes on beside an occurrence that is buried")
@on_nodes("TRIES", 1)
def _(a, b, c):
    same(every(a, "FREQ=SECONDLY", "body"), "NEW")
    first = take_job(b)
    same(c("TW.NACK", "q", first.receipt), "+BURIED")
    second = take_job(a)
    same(second.id, first.id)
    assert first.key < second.key
    same(b("TW.BURY", "q", second.receipt), "+OK")
    same(sorted(job["key"] for job in page(c, "STATE", "buried")[0]), [first.key, second.key])
    same(c("TW.CANCELKEY", "q", "e"), 1)
    same(a("TW.KICK", "q", "ALL", 9), 2)
    again = [take_job(c), take_job(b)]
    same(sorted(job.key for job in again), [first.key, second.key])
    for job in again:
        same((job.body, job.attempt, b("TW.ACK", "q", job.receipt)), (b"body", 1, 1))
    rules_end(a, b, c)


@test("without room for a job of the occurrence that a worker has, the next one waits for its end")
@with_queue("MAXJOBS", 1)
def _(daemon):
    same(every(daemon, "FREQ=SECONDLY;COUNT=3", "MISSED", "all", "OVERLAP", "body"), "NEW")
    refuses(daemon, "FULL | TW.EVERY q f @hourly | body")
    first = take_job(daemon)
    same(take_job(daemon, seconds=1.5), None)
    refuses(daemon, "FULL | TW.BURY q $receipt |", receipt=first.receipt)
    same(daemon("TW.ACK", "q", first.receipt), 1)
    second = take_job(daemon)
    assert second.due > first.due
    same(daemon("TW.ACK", "q", second.receipt), 1)
    rules_end(daemon)


@each_store("each second has an occurrence, and none after it was acknowledged, by kills")
@on_nodes("LEASE", 1, "TRIES", 0)
def _(*nodes):
    seed = random.randrange(1000)
    print(f"# seed {seed}")
    chance = random.Random(seed)
    same(every(nodes[0], "FREQ=SECONDLY", "MISSED", "all", "OVERLAP", "body"), "NEW")
    seen, acked, kills = set(), set(), 0
    while kills < 4:
        node = chance.choice(nodes)
        job = take_job(node, seconds=0.2)
        if not job:
            continue
        same(named(job), job.due)
        assert job.due not in acked, job
        seen.add(job.due)
        client = Client(node.path)
        client.send("TW.ACK", "q", job.receipt)
        if len(acked) <= kills:
            same(client.answer(), 1)
            acked.add(job.due)
            continue
        time.sleep(chance.random() / 200)
        node.stop(signal.SIGKILL)
        node.start()
        kills += 1
    first, last = min(seen), max(seen)
    missing = set(range(first, last, 1000)) - seen
    # Jobs of the nodes that were killed last still belong to these nodes.
    while missing and time.time() * 1000 < last + 15000:
        for node in nodes:
            job = take_job(node, seconds=0.2)
            if job:
                assert job.due not in acked, job
                missing.discard(job.due)
                same(node("TW.ACK", "q", job.receipt), 1)
                acked.add(job.due)
    same(missing, set())
    print(f"# {len(seen)} occurrences, {len(acked)} acknowledged")


def write_zone(hours):
    """Writes the file of a time zone that is always this many hours east of Greenwich."""
    block = (b"TZif2" + bytes(31) + (1).to_bytes(4, "big") + (4).to_bytes(4, "big")
             + (hours * 3600).to_bytes(4, "big") + bytes(2) + b"XXX\0")
    new = ZONES / "new"
    new.write_bytes(block * 2 + b"\nXXX-%d\n" % hours)
    new.rename(ZONES / "Town")


@each_store("a time zone's new file moves the occurrence, but none that a worker has")
@on_nodes()
def _(a, b, c):
    write_zone(1)
    same(every(a, "30 12 * * *", "TZ", "Town", "body"), "NEW")
    before = rule(a)["due"]
    same(before % 86400000, 41400000)
    write_zone(2)
    assert eventually(lambda: rule(a)["due"] == before - 3600000)
    same(b("TW.KICK", "q", rule(a)["id"]), 1)
    job = take_job(c)
    # The key tells the time of the town.
    same(named(job), before + 3600000)
    write_zone(3)
    time.sleep(3)
    same(rule(a)["due"], job.due)
    same(b("TW.ACK", "q", job.receipt), 1)
    same(rule(a)["due"], before - 7200000 + 86400000)
    same(a("TW.CANCELKEY", "q", "e"), 1)
    rules_end(a, b, c)


@each_store("who does not know a rule's zone hands nothing out, and counts no delivery")
@on_nodes()
def _(a, b, c):
    write_zone(1)
    same(every(a, "30 12 * * *", "TZ", "Town", "body"), "NEW")
    (ZONES / "Town").unlink()
    same(b("TW.KICK", "q", rule(a)["id"]), 1)

    def is_refused():
        same(take_job(b, seconds=1), None)
        return "the rule \"30 12" in b.said()
    assert eventually(is_refused), b.said()
    write_zone(1)
    job = take_job(b)
    same((job.attempt, a("TW.ACK", "q", job.receipt)), (1, 1))
