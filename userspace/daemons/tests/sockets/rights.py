# SPDX-License-Identifier: GPL-2.0-only
#
# Tests of the lines "allow".
import os
import re
import time

from daemon import *


# The lines "allow" tell of these two users of this machine.
SOMEBODY, OTHER = 1234, 1235

CLASSES = {
    "put": [("TW.PUT", "sms", "x")],
    "take": [("TW.TAKE", "sms")],
    "answer": [(f"TW.{v}", "sms", "0-0-0-0") for v in ("ACK", "NACK", "EXTEND", "BURY")],
    "cancel": [("TW.CANCEL", "sms", 1), ("TW.CANCELKEY", "sms", "k"), ("TW.DELETE", "sms", 1),
               ("TW.MOVE", "sms", 1, "IN", 5), ("TW.MOVEKEY", "sms", "k", "IN", 5),
               ("TW.KICK", "sms", 1), ("TW.KICK", "sms", "ALL", 1)],
    "look": [("TW.GET", "sms", 1), ("TW.GETKEY", "sms", "k"), ("TW.LIST", "sms"),
             ("TW.DONE", "sms"), ("TW.RULES", "sms"), ("TW.STATS", "sms"), ("TW.STATS",),
             ("TW.METRICS",), ("TW.QUEUES",)],
    "admin": [("TW.PAUSE", "sms"), ("TW.RESUME", "sms"), ("TW.DRAIN", "sms"),
              ("TW.DROP", "sms"), ("TW.CREATE", "sms")],
}
FREE = [("PING",), ("ECHO", "x"), ("INFO",), ("TIME",), ("COMMAND",), ("CLIENT", "ID"),
        ("CLIENT", "INFO"), ("CLIENT", "LIST"), ("SELECT", 0), ("HELLO",), ("RESET",)]


@test("before the password no command is carried out")
@with_daemon(OPEN, SECRET, settings=())
def _(daemon):
    client = Tcp()
    for command in [c for commands in CLASSES.values() for c in commands] + [
            ("PING",), ("INFO",), ("COMMAND",), ("HELLO", 2)]:
        same(client(*command)[:8], "-NOAUTH ")
    refuses(client, """WRONGPASS | AUTH | wrong | default wrong
                       WRONGPASS | HELLO 2 AUTH default | wrong | 'correct hors'""")
    same(client("TW.QUEUES")[:8], "-NOAUTH ")
    same((client("AUTH", PASSWORD), client("TW.QUEUES")), ("+OK", [b"q"]))
    client = Tcp()
    same(len(client("HELLO", 2, "AUTH", "default", PASSWORD, "SETNAME", "me")), 12)
    same(client("TW.QUEUES"), [b"q"])


class As(Client):
    """A connection comes from a process of this user."""

    def __init__(self, daemon, uid):
        os.chmod(folder, 0o711)
        os.chmod(daemon.path, 0o666)
        os.seteuid(uid)
        try:
            super().__init__(daemon.path)
        finally:
            os.seteuid(0)


def lacks(answer, word, queue="the queue sms"):
    same(answer, f'-NOPERM "{word}" is not allowed for {queue}: see allow in twjobd.conf(5)')


def is_free(answer):
    return not str(answer).startswith("-NOPERM")


def with_queues(*lines, **options):
    def run(function):
        @with_daemon(*lines, **options)
        def inner(daemon):
            for queue in ("sms", "mail-a", "mail-b", "mail", "other"):
                same(daemon("TW.CREATE", queue), "+OK")
            function(daemon)
        return inner
    return run


@test("without a line everybody may do everything", needs_root=True)
@with_queues()
def _(daemon):
    client = As(daemon, SOMEBODY)
    for commands in CLASSES.values():
        for command in commands:
            assert is_free(client(*command)), command
    same(client("CLIENT", "LIST").count(b"\n"), 2)


@test("a right permits the verbs of its class, and no others", needs_root=True)
def _():
    for right in (*CLASSES, "all"):
        daemon = Daemon(f"allow = sms {right} uid={SOMEBODY}")
        same(daemon("TW.CREATE", "sms"), "+OK")
        client = As(daemon, SOMEBODY)
        for word, commands in CLASSES.items():
            for command in commands:
                got = client(*command)
                if right in (word, "all") or (right, word) == ("take", "answer"):
                    assert is_free(got), (right, command, got)
                else:
                    lacks(got, word, "the queue sms" if len(command) > 1 else "any queue")
        for command in FREE:
            assert is_free(client(*command)), command
        for word, commands in CLASSES.items():
            for command in commands:
                assert is_free(daemon(*command)), command
                lacks(As(daemon, OTHER)(*command), word,
                      "the queue sms" if len(command) > 1 else "any queue")
        daemon.stop()


@test("what is refused changes nothing", needs_root=True)
@with_queues(f"allow = sms put uid={SOMEBODY}")
def _(daemon):
    client = As(daemon, SOMEBODY)
    job = client("TW.PUT", "sms", "x", "KEY", "k", "IN", 1000)[0]
    before = daemon("TW.GET", "sms", job), daemon("TW.STATS", "sms")
    for word in ("take", "answer", "cancel", "look", "admin"):
        for command in CLASSES[word]:
            assert not is_free(client(*command)), command
    assert not is_free(client("TW.PUT", "mail", "x"))
    assert not is_free(client("TW.CREATE", "new"))
    assert not is_free(client("TW.PUT", "none", "x"))
    same((daemon("TW.GET", "sms", job), daemon("TW.STATS", "sms")), before)
    same(figure(daemon, "mail", b"jobs"), 0)
    same(len(daemon("TW.QUEUES")), 5)


@test("who may put and not cancel replaces no job", needs_root=True)
@with_queues(f"allow = sms put uid={SOMEBODY}", f"allow = mail put,cancel uid={SOMEBODY}")
def _(daemon):
    client = As(daemon, SOMEBODY)
    job = client("TW.PUT", "sms", "REPLACE", "KEY", "REPLACE")[0]
    same(client("TW.PUT", "sms", "y", "KEY", "REPLACE"), [job, b"EXISTS"])
    lacks(client("TW.PUT", "sms", "y", "KEY", "REPLACE", "REPLACE"), "cancel")
    lacks(client("TW.PUT", "sms", "y", "IN", 5, "KEY", "k", "UNIQUE", 5, "replace"), "cancel")
    lacks(client("TW.EVERY", "sms", "k", "@daily", "x"), "cancel")
    same(daemon("TW.GET", "sms", job)[11], b"REPLACE")
    same(client("TW.PUT", "mail", "y", "KEY", "k", "REPLACE")[1], b"NEW")
    same(client("TW.EVERY", "mail", "e", "@daily", "x")[1], b"NEW")


@test("names of queues and their beginnings; lines add up", needs_root=True)
@with_queues(f"allow = sms,mail-* put uid={SOMEBODY}", f"allow = mail-a look uid={SOMEBODY}",
             "allow = * put,look uid=nobody", f"allow = other look,take uid={OTHER}")
def _(daemon):
    client = As(daemon, SOMEBODY)
    for queue in ("sms", "mail-a", "mail-b"):
        assert client("TW.PUT", queue, "x") > 0
    for queue in ("mail", "other", "sm", "smsx", "SMS", "", "*", "sms\0", "mail"):
        assert not is_free(client("TW.PUT", queue, "x")), queue
    assert client("TW.LIST", "mail-a")[1]
    lacks(client("TW.LIST", "mail-b"), "look", "the queue mail-b")
    same(client("TW.QUEUES"), [b"mail-a"])
    same(As(daemon, OTHER)("TW.QUEUES"), [b"other"])
    everywhere = As(daemon, 65534)
    for queue in ("sms", "mail", "other"):
        assert everywhere("TW.PUT", queue, "x") > 0
    same(sorted(everywhere("TW.QUEUES")), sorted(daemon("TW.QUEUES")))
    lacks(everywhere("TW.TAKE", "sms"), "take")
    lacks(client("TW.PUT", "x" * 500, "x"), "put", "the queue " + "x" * 32)


@test("metrics tell of queues that the client may look at", needs_root=True)
@with_queues(f"allow = mail* look uid={SOMEBODY}")
def _(daemon):
    def told(client):
        text = client("TW.METRICS").decode()
        assert "twjobd_mended_total 0" in text
        return [set(re.findall(name + r'\{queue="([^"]+)"', text))
                for name in ("twjobd_jobs", "twjobd_lateness_seconds_bucket")]

    same(told(As(daemon, SOMEBODY)), [{"mail-a", "mail-b", "mail"}] * 2)
    same(told(daemon), [{"sms", "mail-a", "mail-b", "mail", "other"}] * 2)


@test("a take of several queues needs the right for each", needs_root=True)
@with_queues(f"allow = sms,mail-* take uid={SOMEBODY}")
def _(daemon):
    client = As(daemon, SOMEBODY)
    for queue in ("sms", "mail-b", "other"):
        assert daemon("TW.PUT", queue, "x") > 0
    lacks(client("TW.TAKE", "sms", "mail-b", "other", "COUNT", 9), "take", "the queue other")
    lacks(client("TW.TAKE", "other", "sms"), "take", "the queue other")
    lacks(client("TW.TAKE", "sms", "none"), "take", "the queue none")
    same([figure(daemon, q, b"held") for q in ("sms", "mail-b", "other")], [0, 0, 0])
    same([j[0] for j in client("TW.TAKE", "sms", "mail-b", "COUNT", 9)], [b"sms", b"mail-b"])
    same(client("TW.TAKE", "sms", "BLOCK", 10), None)


@test("a transaction with a command that is not allowed changes nothing", needs_root=True)
@with_queues(f"allow = sms put uid={SOMEBODY}")
def _(daemon):
    client = As(daemon, SOMEBODY)
    put = ("TW.PUT", "sms", "x")
    for refused in (("TW.PUT", "mail", "x"), ("TW.CANCEL", "sms", 1), ("TW.GET", "sms", 1),
                    ("TW.PUT", "sms", "x", "KEY", "k", "REPLACE")):
        assert gathered(client, put, refused, put).startswith("-EXECABORT 2: NOPERM")
    same(figure(daemon, "sms", b"jobs"), 0)
    same(len(gathered(client, put, put)), 2)
    same(figure(daemon, "sms", b"jobs"), 2)
    # The rights at the time of EXEC count, not the rights at the time of MULTI.
    same(client("MULTI"), "+OK")
    same(client(*put), "+QUEUED")
    same(reload(daemon, f"allow = mail put uid={SOMEBODY}"), "")
    assert client("EXEC").startswith("-EXECABORT 1: NOPERM")
    same(figure(daemon, "sms", b"jobs"), 2)


@test("a client sees and wakes those of its user only, unless it may admin all queues",
      needs_root=True)
@with_queues(f"allow = sms take,admin uid={SOMEBODY}", f"allow = * take uid={OTHER}",
             "allow = * admin uid=nobody")
def _(daemon):
    def wait(uid):
        waiter = As(daemon, uid)
        number = waiter("CLIENT", "ID")
        waiter.send("TW.TAKE", "sms", "BLOCK", 0)
        return waiter, number

    one, first = wait(SOMEBODY)
    other, second = wait(OTHER)
    client = As(daemon, SOMEBODY)
    listed = re.findall(r"\bid=(\d+)", client("CLIENT", "LIST").decode())
    same(sorted(listed), sorted(str(n) for n in (first, client("CLIENT", "ID"))))
    lacks(client("CLIENT", "UNBLOCK", second), "admin", "the queue *")
    assert not has_answer(other)
    same(client("CLIENT", "UNBLOCK", 99999), 0)
    same((client("CLIENT", "UNBLOCK", first), one.answer()), (1, None))
    for admin in (As(daemon, 65534), daemon):
        same(admin("CLIENT", "LIST").count(b"\n"), daemon("CLIENT", "LIST").count(b"\n"))
        same((admin("CLIENT", "UNBLOCK", second), other.answer()), (1, None))
        other.send("TW.TAKE", "sms", "BLOCK", 0)
        time.sleep(0.1)


def password_file(name, text):
    path = folder / name
    path.write_text(text)
    return path


BILLING = password_file("billing", "for billing\nmore\n")
LOOKERS = password_file("lookers", "for lookers\n")


@test("a password gives what its lines tell, by TCP and besides what the user may do",
      needs_root=True)
@with_queues(OPEN, f"allow = sms put password={BILLING}", f"allow = mail put password={BILLING}",
             f"allow = * look password={LOOKERS}", f"allow = other put uid={SOMEBODY}")
def _(daemon):
    tcp = Tcp()
    assert tcp("TW.PUT", "sms", "x").startswith("-NOAUTH")
    assert tcp("AUTH", "billing", "for").startswith("-WRONGPASS")
    assert tcp("TW.PUT", "sms", "x").startswith("-NOAUTH")
    same(tcp("AUTH", "anybody", "for billing"), "+OK")
    for queue in ("sms", "mail"):
        assert tcp("TW.PUT", queue, "x") > 0
    lacks(tcp("TW.PUT", "other", "x"), "put", "the queue other")
    lacks(tcp("TW.LIST", "sms"), "look")
    same(tcp("RESET"), "+RESET")
    assert tcp("TW.PUT", "sms", "x") > 0
    assert tcp("AUTH", "wrong").startswith("-WRONGPASS")
    assert tcp("TW.PUT", "sms", "x") > 0
    same(len(tcp("HELLO", 2, "AUTH", "x", "for lookers")), 12)
    lacks(tcp("TW.PUT", "sms", "x"), "put")
    same(len(tcp("TW.QUEUES")), 5)
    local = As(daemon, SOMEBODY)
    lacks(local("TW.PUT", "sms", "x"), "put")
    same(local("AUTH", "for billing"), "+OK")
    for queue in ("sms", "other"):
        assert local("TW.PUT", queue, "x") > 0


@test("the password of all connections permits nothing by itself, unless it has a line")
def _():
    shared = password_file("shared", PASSWORD)
    daemon = Daemon(OPEN, f"password-file = {shared}", f"allow = sms all password={BILLING}",
                    f"allow = sms all uid={SOMEBODY}")
    tcp = Tcp()
    same(tcp("AUTH", PASSWORD), "+OK")
    same(tcp("PING"), "+PONG")
    lacks(tcp("TW.CREATE", "sms"), "admin")
    # The last password that was given counts.
    same((tcp("AUTH", "for billing"), tcp("TW.CREATE", "sms")), ("+OK", "+OK"))
    same(tcp("AUTH", PASSWORD), "+OK")
    lacks(tcp("TW.CREATE", "sms"), "admin")
    same(reload(daemon, OPEN, f"password-file = {shared}",
                f"allow = sms all password={shared}"), "")
    same(Tcp()("PING"), "-NOAUTH Authentication required.")
    tcp = Tcp()
    same((tcp("AUTH", PASSWORD), tcp("TW.CREATE", "sms")), ("+OK", "+OK"))
    daemon.stop()
    daemon = Daemon(OPEN, "password = none", f"allow = sms all password={BILLING}")
    tcp = Tcp()
    lacks(tcp("TW.CREATE", "sms"), "admin")
    same((tcp("AUTH", "for billing"), tcp("TW.CREATE", "sms")), ("+OK", "+OK"))
    daemon.stop()


@test("lines are reloaded, also for connections that are there", needs_root=True)
@with_queues(OPEN, f"allow = sms put uid={SOMEBODY}", f"allow = sms put password={BILLING}")
def _(daemon):
    local, tcp = As(daemon, SOMEBODY), Tcp()
    same(tcp("AUTH", "for billing"), "+OK")
    for client in (local, tcp):
        assert client("TW.PUT", "sms", "x") > 0
    same(reload(daemon, OPEN, f"allow = * look uid={SOMEBODY}",
                f"allow = mail put password={BILLING}"), "")
    lacks(local("TW.PUT", "sms", "x"), "put")
    same(len(local("TW.QUEUES")), 5)
    lacks(tcp("TW.PUT", "sms", "x"), "put")
    assert tcp("TW.PUT", "mail", "x") > 0
    # A configuration with an error changes nothing.
    assert "has no such right" in reload(daemon, OPEN, f"allow = sms pu uid={SOMEBODY}")
    lacks(local("TW.PUT", "sms", "x"), "put")
    BILLING.write_text("another")
    same(reload(daemon, OPEN, f"allow = mail put password={BILLING}"), "")
    assert tcp("TW.PUT", "mail", "x") > 0
    assert Tcp()("AUTH", "for billing").startswith("-WRONGPASS")
    same(Tcp()("AUTH", "another"), "+OK")
    BILLING.write_text("for billing\n")
    same(reload(daemon, OPEN, "password = none"), "")
    for client in (local, tcp):
        assert client("TW.PUT", "sms", "x") > 0


@test("a wrong line is an error that says what to write")
def _():
    for wrong, error in {
        "sms put": "is not queues, rights and who: "
                   "write it as in sms,mail-* put,take uid=www-data",
        "sms put uid=0 uid=1": "is not queues, rights and who: "
                               "write it as in sms,mail-* put,take uid=www-data",
        **{f"{queues} put uid=0":
           'has a wrong name of queues: write names, or how they begin and "*", as in sms,mail-*'
           for queues in ("a.b", "sms,", ",sms", "a,,b", "*a", "a*b", "**", "x" * 32)},
        **{f"sms {rights} uid=0": "has no such right: "
           "write some of put,take,answer,cancel,look,admin or all"
           for rights in ("delete", "put,", ",put", "put,,take", "pu", "puts")},
        **{f"sms put uid={user}": "names no user of this machine: "
           "write uid= and a user's name or number"
           for user in ("", "no-such-user", "-1", "1x", "4294967295", "18446744073709551616")},
        **{f"sms put {who}": "does not end with who: "
           "write uid=USER, or password= and the path of a file"
           for who in ("www-data", "gid=0", "password=", "password=secret", "UID=0")},
        f"{'a,' * 127}ab put uid=0": "has too long a list of queues: write two lines",
        f"sms put password=/{'x' * 255}": "has too long a path",
        f"sms {'put,' * 500}put uid=0": "is too long: write two lines",
    }.items():
        same(says("", f"allow = {wrong}"), (2, f'2: allow: "{wrong}" {error}'))
    line = "allow = sms put uid=0"
    same(says(*[line] * 65), (2, f'65: allow: "{line[8:]}" is one line too many: '
                                 "there are at most 64"))
    missing, empty = folder / "missing", password_file("empty", "\n")
    same(says(f"allow = sms put password={missing}"),
         (2, f"0: the password's file {missing}: No such file or directory"))
    same(says(f"allow = sms put password={empty}"),
         (2, f"0: the password's file {empty} has no first line of 1 to 127 bytes"))
    same(says(OPEN, "allow = sms put uid=0")[0], 2)
    for right in (f"{'a,' * 127}a put uid=0", "* all uid=4294967294", "a-* PUT,take uid=nobody",
                  f"{'x' * 31},{'y' * 31}*\tput  uid=0"):
        same(says(f"allow = {right}"), (0, ""))
    same(says(*[line] * 64), (0, ""))
    same(says(OPEN, f"allow = sms put password={BILLING}"), (0, ""))
