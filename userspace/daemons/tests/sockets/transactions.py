# SPDX-License-Identifier: GPL-2.0-only
#
# Tests of MULTI, EXEC and DISCARD.
from daemon import *


@each_store("a transaction is carried out as a whole")
@in_stores()
def _(daemon):
    same(daemon("TW.CREATE", "next", "MAXJOBS", 2), "+OK")
    same(gathered(daemon), [])
    job = daemon("TW.PUT", "q", "x")
    _, receipt, *_ = take(daemon)
    got = gathered(daemon, ("TW.ACK", "q", receipt), ("TW.PUT", "next", "y", "KEY", "k"),
                   ("PING",))
    same((got[0], got[1][1], got[2]), (1, b"NEW", "+PONG"))
    same(state(daemon, job), None)
    same(daemon("TW.GETKEY", "next", "k")[11], b"y")
    same(daemon("TW.GETKEY", "next", "other"), None)
    # Nothing is changed, because the queue "next" has room for one more job only.
    job = daemon("TW.PUT", "q", "x")
    _, receipt, *_ = take(daemon)
    same(gathered(daemon, ("TW.ACK", "q", receipt), ("TW.PUT", "next", "y"),
                  ("TW.CANCELKEY", "next", "k"), ("TW.PUT", "next", "y"),
                  ("TW.PUT", "next", "y")),
         "-EXECABORT 5: FULL the queue has its 2 jobs")
    same((state(daemon, job), daemon("TW.STATS", "next")[1]), ("held", 1))
    same(state(daemon, daemon("TW.GETKEY", "next", "k")[1], "next"), "ready")
    same(gathered(daemon, ("TW.ACK", "q", receipt)), [1])
    same(gathered(daemon, ("TW.PUT", "none", "x"))[:21], "-EXECABORT 1: NOQUEUE")
    # The token of a put that was undone has gone, and so has the put's key.
    same(gathered(daemon, ("TW.PUT", "q", "x", "KEY", "z"), ("TW.ACK", "q", receipt))[:19],
         "-EXECABORT 2: STALE")
    same(daemon("TW.PUT", "q", "x", "KEY", "z")[1], b"NEW")
    same(daemon("TW.STATS")[1], 0)


@each_store("a job is changed once in a transaction, whatever others have changed before")
@with_queue()
def _(daemon):
    job, other = (daemon("TW.PUT", "q", "x", "IN", 1000) for _ in range(2))
    same(gathered(daemon, ("TW.MOVE", "q", job, "IN", 5), ("TW.CANCEL", "q", job)),
         "-EXECABORT 2: ERR the transaction has changed this job")
    # Changes before the transaction in the same turn are no error, and stay.
    answers = at_once(
        daemon, ("TW.MOVE", "q", job, "IN", 2000), ("TW.PUT", "q", "y", "KEY", "k"),
        ("MULTI",), ("TW.CANCEL", "q", job), ("TW.CANCEL", "q", other), ("EXEC",),
        ("MULTI",), ("TW.CANCELKEY", "q", "k"), ("TW.CANCEL", "q", "x"), ("EXEC",))
    same(answers[5], [1, 1])
    assert answers[9].startswith("-EXECABORT 2: ERR not a number"), answers
    same(daemon("TW.STATS", "q")[1], 1)
    same(daemon("TW.GETKEY", "q", "k")[11], b"y")


@each_store("what cannot be in a transaction is refused, and EXEC refuses the rest")
@with_daemon(SECRET, settings=())
def _(daemon):
    for wrong in (("TW.TAKE", "q"), ("TW.EXTEND", "q", "1-1-1-1"), ("TW.CREATE", "r"),
                  ("TW.KICK", "q", "ALL", 3), ("TW.LIST", "q"), ("TW.DONE", "q"),
                  ("TW.RULES", "q"), ("NONE",), ("TW.PUT", "q"),
                  ("TW.PUT", "q", b"x" * 1048577)):
        same(daemon("MULTI"), "+OK")
        same(daemon("TW.PUT", "q", "x"), "+QUEUED")
        assert daemon(*wrong).startswith("-"), wrong
        assert daemon("EXEC").startswith("-EXECABORT "), wrong
    same(daemon("EXEC"), "-ERR EXEC without MULTI")
    same(daemon("DISCARD"), "-ERR DISCARD without MULTI")
    assert daemon("WATCH", "a").startswith("-ERR there is nothing to watch")
    same(daemon("UNWATCH"), "+OK")
    for end in ("DISCARD", "RESET"):
        same(daemon("MULTI"), "+OK")
        assert daemon("MULTI").startswith("-ERR MULTI calls")
        same(daemon("TW.PUT", "q", "x"), "+QUEUED")
        daemon(end)
        same(daemon("PING"), "+PONG")
    same(daemon("MULTI"), "+OK")
    for _ in range(1000):
        same(daemon("TW.PUT", "q", "x"), "+QUEUED")
    assert daemon("TW.PUT", "q", "x").startswith("-TOOBIG")
    assert daemon("EXEC").startswith("-EXECABORT ")
    same(daemon("TW.STATS", "q")[1], 0)
    same(len(gathered(daemon, *[("TW.PUT", "q", "x")] * 1000)), 1000)
    same(daemon("TW.STATS", "q")[1], 1000)
