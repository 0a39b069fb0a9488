#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
#
# rows.py OUTPUT: tests that a job's row decides what two daemons do with the job, whatever their
# wheels and their receipts say. Prints TAP.
import os
import signal
import subprocess
import threading
import time

from common import (Client, Node, Sql, end, eventually, figure, folder, init_database, program,
                    same, state, take, take_unsent, test)

init_database().check_returncode()
a, b = Node("a"), Node("b")
sql = Sql()
same(a("TW.CREATE", "q", "LEASE", 30), "+OK")
assert eventually(lambda: isinstance(b("TW.PUT", "q", "x"), int))
b("TW.ACK", "q", take(b)[1])


def change(job, what):
    """Changes a row without its owner, whose token stays as it is."""
    sql(f"update timewheel.job set {what} where id = {job}")


def put(delay):
    return a("TW.PUT", "q", "x", "IN", delay)


for what, row in (("is due later", "due = due + 3000"),
                  ("is with a worker", "held_until = timewheel.now() + 3000")):
    @test(f"a job that {what} by its row is not handed out")
    def _():
        job = put(0.2)
        change(job, row)
        same(take(a, seconds=1), None)
        got = take(a)
        same(got[0], job)
        same(a("TW.ACK", "q", got[1]), 1)


@test("a limit needs a store on one machine")
def _():
    for settings in (("LIMIT", 1), ("RATE", 1, 1), ("GROUPLIMIT", 1), ("GROUPRATE", 1, 1)):
        same(a("TW.CREATE", "limited", *settings), "-ERR a limit needs a store on one machine")
    same(a("TW.PUT", "q", "x", "GROUP", "g"), "-ERR a limit needs a store on one machine")
    same(a("TW.CREATE", "q", "LIMIT", 0, "RATE", 0, 0, "LEASE", 30), "+OK")


@test("a receipt of a delivery before ends nothing")
def _():
    job = put(0)
    receipt = take(a)[1]
    change(job, "version = version + 1")
    for node in (a, b):
        for verb in ("TW.ACK", "TW.NACK", "TW.BURY", "TW.EXTEND"):
            same(node(verb, "q", receipt)[:6], "-STALE")
        same(node("TW.ACK", "q", receipt, receipt), [0, 0])
    same(state(a, job), "held")
    change(job, "version = version - 1")
    same(a("TW.ACK", "q", receipt), 1)


@test("a receipt whose lease is over by the row ends nothing")
def _():
    job = put(0)
    receipt = take(a)[1]
    change(job, "held_until = 1")
    same(b("TW.ACK", "q", receipt)[:6], "-STALE")
    same(state(b, job), "ready")
    change(job, "held_until = timewheel.now() + 9000")
    same(b("TW.ACK", "q", receipt), 1)


@test("a delivery that no worker has got counts no try")
def _():
    large = a("TW.PUT", "q", b"x" * 900000, "IN", 1000)
    job = put(0)
    for attempt in (1, 2, 3):
        for _ in range(2):
            take_unsent(a, job, large)
        got = take(a)
        same((got[0], got[2]), (job, attempt))
        same(a("TW.NACK", "q", got[1]), "+OK")
    same([a("TW.DELETE", "q", number) for number in (large, job)], [1, 1])


@test("of many answers at once to one delivery the first one ends it")
def _():
    clients = [Client(a.path) for _ in range(6)]
    for _ in range(5):
        put(0)
        receipt = take(a)[1]
        for client in clients:
            for verb in ("TW.ACK", "TW.NACK", "TW.ACK"):
                client.send(verb, "q", receipt)
        answers = [str(client.answer())[:6] for client in clients for _ in range(3)]
        same(sorted(answers), ["-STALE"] * 17 + ["1"])
    assert eventually(lambda: a("TW.STATS", "q")[1] == 0)


@test("many clients that take at once: each gets a job, and waits only if it asked to")
def _():
    jobs = [put(0) for _ in range(50)]
    # The job that this token wakes cannot be taken.
    change(jobs[7], "due = due + 3000")
    clients = [Client(a.path) for _ in range(40)]
    for client in clients:
        client.send("TW.TAKE", "q")
        client.send("TW.TAKE", "q")
    answers = [client.answer() for client in clients for _ in range(2)]
    got = [job for answer in answers if answer for job in answer]
    same(sorted(job[1] for job in got), jobs[:7] + jobs[8:])
    for client in clients:
        client.send("TW.TAKE", "q", "BLOCK", 9000)
    jobs = [jobs[7]] + [put(0) for _ in clients[1:]]
    more = [job for client in clients for job in client.answer()]
    same(sorted(job[1] for job in more), jobs)
    same(a("TW.ACK", "q", *[job[2] for job in got + more]), [1] * 89)


@test("an open transaction that has put a job with a key delays no other puts")
def _():
    sql("begin")
    sql("select timewheel.put('q', 'x', key => 'open')")
    clients = [Client(a.path) for _ in range(2)]
    for _ in range(5):
        clients[0].send("TW.PUT", "q", "x", "KEY", "open")
        clients[1].send("TW.PUT", "q", "x", "IN", 1000, "KEY", "other")
        same(clients[0].answer()[:5], "-BUSY")
        same(a("TW.CANCEL", "q", clients[1].answer()[0]), 1)
    sql("rollback")
    job, new = a("TW.PUT", "q", "x", "IN", 1000, "KEY", "open")
    same(new, b"NEW")
    same(sql("select timewheel.put('q', 'x', key => 'open')"), str(job))
    same(b("TW.CANCEL", "q", job), 1)


@test("a queue is dropped while a program has locked a job of it: nobody else waits")
def _():
    same(a("TW.CREATE", "dropped"), "+OK")
    jobs = [a("TW.PUT", "dropped", "x", "IN", 1000) for _ in range(30)]
    left = ("select count(*) from timewheel.job j join timewheel.queue q on q.id = j.queue"
            " where q.name = 'dropped'")
    sql(f"begin; select from timewheel.job where id = {jobs[9]} for update")
    same(a("TW.DROP", "dropped"), "+OK")
    assert eventually(lambda: Sql()(left) == "1")
    end_of_test = time.monotonic() + 2.5
    while time.monotonic() < end_of_test:
        assert isinstance(put(1000), int)
    assert "lock timeout" not in a.said()
    sql("rollback")
    assert eventually(lambda: sql(left) == "0")
    assert eventually(lambda: sql("select count(*) from timewheel.queue where dropped") == "0")


@test("no lock that any role can take keeps a put with a key waiting")
def _():
    stranger = Sql()
    stranger("create role stranger; set role stranger; begin")
    assert "permission denied" in stranger(
        "savepoint s; lock table timewheel.key_lock in access share mode")
    stranger("rollback to s")
    sql("begin; set local lock_timeout = '5s'")
    sql("select timewheel.put('q', 'x', key => 'open')")
    same(sql("select count(*) from pg_locks where locktype in ('advisory', 'userlock')"), "0")
    # Each schema has such a lock, as far as a number tells that any role can read.
    same(stranger("select count(pg_advisory_xact_lock(oid::int, 0)) > 2 from pg_namespace"), "t")
    sql("select timewheel.put('q', 'x', key => 'also open')")
    sql("commit")
    job, new = a("TW.PUT", "q", "x", "IN", 1000, "KEY", "free")
    same(new, b"NEW")
    stranger("rollback; reset role; drop role stranger")
    same([a("TW.CANCELKEY", "q", key) for key in ("open", "also open", "free")], [1] * 3)


@test("metrics: claims that a row has refused")
def _():
    before = a.metric("stale_claims_total")
    change(put(0.1), "buried = true")
    same(take(a, seconds=0.5), None)
    same(a.metric("stale_claims_total"), before + 1)


@test("metrics: the length of the inbox")
def _():
    same(a.metric("inbox_jobs"), 0)
    # No node has this queue.
    sql("insert into timewheel.job (id, queue, due, size, body)"
        " select i, 999, 0, 65, 'x' from generate_series(-3, -1) i")
    same(a.metric("inbox_jobs"), 3)
    sql("delete from timewheel.job where queue = 999")
    same(a.metric("inbox_jobs"), 0)


@test("metrics: how long ago the oldest transaction began")
def _():
    other = Sql()
    other("begin isolation level repeatable read; select 1")
    for _ in range(30):
        put(1000)
    assert a.metric("oldest_xmin_age") >= 30
    other("rollback")
    assert eventually(lambda: a.metric("oldest_xmin_age") < 30)


class Late:
    """Lets b's statements see rows as they were a second before b locks them."""

    def __enter__(self):
        sql("begin;"
            " alter table timewheel.job rename to job_rows;"
            " create function timewheel.late() returns boolean language sql volatile as"
            "  'select current_setting(''application_name'') <> ''b'' or"
            "   pg_sleep(1) is not null';"
            " create view timewheel.job as"
            "  select * from timewheel.job_rows where timewheel.late();"
            " commit")

    def __exit__(self, *_):
        sql("begin; drop view timewheel.job; drop function timewheel.late();"
            " alter table timewheel.job_rows rename to job; commit")


def at_once(*words):
    """Sends a verb to b, and returns the list to which its answer will be added."""
    answers = []
    thread = threading.Thread(target=lambda: answers.append(b(*words)))
    thread.start()
    assert eventually(lambda: sql(
        "select count(*) from pg_stat_activity\n"
        " where application_name = 'b' and wait_event = 'PgSleep'") == "1")
    return thread, answers


@test("a delivery that ends while another answer to it is under way")
def _():
    job = put(0)
    receipt = take(a)[1]
    with Late():
        thread, answers = at_once("TW.ACK", "q", receipt)
        same(a("TW.NACK", "q", receipt), "+OK")
        got = take(a)
        same(got[0], job)
        thread.join()
        same(answers[0][:6], "-STALE")
        same(state(a, job), "held")
    same(a("TW.ACK", "q", got[1]), 1)


@test("a job that a worker gets while another program puts it by its key")
def _():
    job = a("TW.PUT", "q", "v1", "KEY", "k", "IN", 1000)[0]
    with Late():
        thread, answers = at_once("TW.PUT", "q", "v2", "KEY", "k", "REPLACE")
        same(a("TW.MOVE", "q", job, "IN", 0), 1)
        got = take(a)
        same((got[0], got[3]), (job, "v1"))
        thread.join()
        same(answers[0][:5], "-HELD")
    same(a("TW.ACK", "q", got[1]), 1)


def told(node, job, *names):
    """Returns what TW.GET tells of a job by these names."""
    answer = node("TW.GET", "q", job)
    return [answer[answer.index(n) + 1] if n in answer else None for n in names]


def damage(word):
    """Lets bodies that begin with the word lose their first part."""
    sql("create extension if not exists pg_surgery")
    toast = sql("select reltoastrelid::regclass from pg_class"
                " where oid = 'timewheel.job'::regclass")
    sql(f"select heap_force_kill('{toast}'::regclass, array_agg(ctid)) from {toast}"
        f" where starts_with(encode(chunk_data, 'escape'), '{word}')")


@test("a job whose body cannot be read is buried, says why, and keeps no other waiting")
def _():
    long = 3000 * "y"
    jobs = [a("TW.PUT", "q", body + long, "IN", 1) for body in ("x", "damaged", "y", "damaged")]
    rule = a("TW.EVERY", "q", "often", "FREQ=SECONDLY", "damaged" + long)[0]
    damaged = {jobs[1], jobs[3], rule}
    before, got = figure(a, "q", b"buried"), []
    damage("damaged")
    end_of_test = time.monotonic() + 25
    while time.monotonic() < end_of_test and (
            len(got) < 2 or figure(a, "q", b"buried") < before + 3):
        answer = a("TW.TAKE", "q", "COUNT", 9, "BLOCK", 1000)
        got += [job[1] for job in answer or [] if isinstance(job, list)]
    same(sorted(got), [jobs[0], jobs[2]])
    same(sql("select string_agg(id::text, ' ' order by id) from timewheel.job"
             f" where buried and id >= {jobs[0]}"), " ".join(map(str, sorted(damaged))))
    for job in damaged:
        same(sql("select convert_from(reason, 'UTF8'), attempts from timewheel.job"
                 f" where id = {job}"), "its body could not be read|0")
    assert f"job {jobs[1]} of the queue \"q\" is buried" in a.said()
    # By now both nodes know the jobs.
    same(b("TW.KICK", "q", jobs[1]), 1)
    same(a("TW.MOVE", "q", jobs[1], "IN", 0), 1)
    same(take(a, seconds=1), None)
    assert isinstance(put(1000), int)
    same([a("TW.DELETE", "q", job) for job in jobs + [rule]], [1] * 5)


@test("max-body is that of the table, for SQL and for each node, until it is made another one")
def _():
    a("TW.ACK", "q", *[job[2] for job in a("TW.TAKE", "q", "COUNT", 1000) or []], "none")
    job = int(sql("select timewheel.put('q', convert_to(repeat('x', 300000), 'UTF8'))"))
    config = folder / "b.conf"
    for lines in ("max-body = 200000\n", "max-body = 400000\n"):
        with open(config, "a") as file:
            file.write(lines)
        done = subprocess.run([program, "-c", config, "--init-database"])
        same(done.returncode, 0)
        config.write_text(config.read_text().removesuffix(lines))
        most = int(lines.split()[-1])
        time.sleep(1.5)
        for length in (most, most + 1):
            fits = length == most
            text = f"convert_to(repeat('x', {length}), 'UTF8')"
            for statement in (
                    f"select timewheel.put('q', {text}, now() + interval '1 hour')",
                    f"select timewheel.put('q', {text}, now() + interval '1 hour', 'long', true)",
                    f"update timewheel.job set body = {text} where id = {job}"):
                sql("begin")
                same("TOOBIG" in sql(statement), not fits)
                sql("rollback")
            for node in (a, b):
                answer = Client(node.path)("TW.PUT", "q", "x" * length, "IN", 1000)
                same(str(answer)[:7] == "-TOOBIG", not fits)
                if fits:
                    same(node("TW.CANCEL", "q", answer), 1)
        # A job that existed before is still handed out.
        got = take(a)
        same((got[0], len(got[3])), (job, 300000))
        same(a("TW.NACK", "q", got[1]), "+OK")
    same(a("TW.DELETE", "q", job), 1)
    init_database().check_returncode()


def dead_rows():
    return int(sql("select n_dead_tup from pg_stat_user_tables where relname = 'job'"))


def use(rounds):
    for _ in range(rounds):
        for _ in range(600):
            a.client.send("TW.PUT", "r", "x")
        for _ in range(600):
            a.client.answer()
        jobs = a("TW.TAKE", "r", "COUNT", 600)
        same(a("TW.ACK", "r", *[job[2] for job in jobs]), [1] * 600)


@test("dead rows are removed, and those of an open transaction's time when it ends")
def _():
    a("TW.CREATE", "r", "LEASE", 30)
    use(2)
    assert eventually(lambda: dead_rows() < 200)
    other = Sql()
    other("begin isolation level repeatable read; select 1")
    use(2)
    time.sleep(2.5)
    assert dead_rows() > 2000
    other("rollback")
    assert eventually(lambda: dead_rows() < 200)


def rows_read(index):
    return int(sql("select pg_stat_clear_snapshot();"
                   " select idx_tup_read from pg_stat_user_indexes"
                   f" where indexrelname = '{index}'").strip())


def add_dead(count, due, more=""):
    """Adds a dead node with so many jobs. No node has their queue: they stay in the inbox."""
    sql("begin;"
        " insert into timewheel.node overriding system value values (99, 'dead', 1);"
        " insert into timewheel.node_lease values (99, 1);"
        " insert into timewheel.job (id, queue, node, due, size, body)"
        f"  select i, 999, 99, timewheel.now() + {due}, 65, 'x'"
        f"  from generate_series(1000000, {1000000 + count - 1}) i;"
        f" {more} commit; analyze timewheel.job")


def remove_dead():
    sql("delete from timewheel.job where queue = 999; delete from timewheel.node where id = 99;"
        " delete from timewheel.node_lease where node = 99")


@test("what is done slice by slice reads each row a few times only, and metrics few")
def _():
    sql("insert into timewheel.rule select i, '', '', 0, 0, false, 0, 0, false, 0"
        " from generate_series(1, 30000) i; analyze timewheel.rule")
    before, rules_before = rows_read("job_pkey"), rows_read("rule_pkey")
    same(a.metric("rules"), 30000)
    # The last job is due soon.
    add_dead(40000, "300000 + 3600000 * (i < 1039999)::int",
        " create table public.moved (id bigint, nth bigserial);"
        " create function note_move() returns trigger language plpgsql as"
        "  'begin insert into public.moved values (old.id); return null; end';"
        " create trigger note_move after update on timewheel.job for each row"
        "  when (old.node = 99) execute function note_move();")
    assert eventually(lambda: sql(
        "select count(*) from timewheel.job where node = 99") == "0")
    same(sql("select id from moved order by nth limit 1"), "1039999")
    sql("drop trigger note_move on timewheel.job")
    time.sleep(1.5)
    read = rows_read("job_pkey") - before
    print(f"# {read} of 40000 rows read")
    assert read < 120000
    same(rows_read("rule_pkey") - rules_before, 10000)
    remove_dead()
    sql("delete from timewheel.rule")
    same(a.metric("rules"), 0)


@test("nodes that work on one dead node in turns go on from where they were")
def _():
    # Between two slices another node has the row of the dead one, again and again.
    begun, stop = threading.Event(), threading.Event()

    def take_turns():
        other = Sql()
        while not stop.is_set():
            other("begin; select from timewheel.node where id = 99 for update;"
                  " select pg_sleep(0.02); commit")
            begun.set()
            time.sleep(0.02)

    turns = threading.Thread(target=take_turns)
    turns.start()
    begun.wait()
    add_dead(50000, 3600000)
    begin = time.monotonic()
    moved = eventually(lambda: sql("select exists (select from timewheel.job"
                                   " where queue = 999 and node is null)") == "t")
    print(f"# after {time.monotonic() - begin:.1f} s")
    stop.set()
    turns.join()
    remove_dead()
    assert moved


def puts_until_full(queue, most=5000, body="x"):
    """Returns how many jobs of one statement a transaction puts until it is refused."""
    return int(sql(f"""with recursive p (n) as (
        select 0 union all select n + 1 from p where n < {most} and
        pg_temp.try_put('{queue}', '{body}')) select max(n) from p"""))


@test("SQL: MAXJOBS and MAXBYTES are exact in a transaction, also with what was just committed")
def _():
    same(a("TW.CREATE", "few", "MAXJOBS", 100), "+OK")
    same(a("TW.CREATE", "small", "MAXBYTES", 10 * 65 + 64), "+OK")
    sql("create function pg_temp.try_put(q text, b text) returns boolean language plpgsql as $$"
        " begin return timewheel.put_text(q, b) > 0;"
        " exception when sqlstate 'TWL01' then return false; end $$")
    sql("begin")
    same([puts_until_full("few"), puts_until_full("small")], [100, 10])
    sql("savepoint s")
    same(sql("select count(*) from (select timewheel.cancel('few', j.id)\n"
             " from timewheel.job j join timewheel.queue q on q.id = j.queue\n"
             " where q.name = 'few' limit 7) c"), "7")
    same(puts_until_full("few"), 7)
    sql("rollback to s")
    same(puts_until_full("few"), 0)
    sql("rollback")
    # A node may count the jobs between two statements.
    for queue, most in (("few", 100), ("small", 10)):
        for _ in range(most - 5):
            same(puts_until_full(queue, 1), 1)
        sql("begin")
        same([puts_until_full(queue, 3), puts_until_full(queue)], [3, 2])
        sql("rollback")
        same([puts_until_full(queue, 1) for _ in range(6)], [1] * 5 + [0])
    assert "FULL" in sql("select timewheel.put('small', 'y', key => 'k')")
    for queue in "few", "small":
        same(b("TW.DROP", queue), "+OK")


@test("SQL: with a key that a job has, a full queue refuses only what makes it larger")
def _():
    same(a("TW.CREATE", "one", "MAXJOBS", 1, "MAXBYTES", 70), "+OK")
    put = "select timewheel.put('one', '{}', now() + interval '1 hour', '{}', {})"
    job = sql(put.format("xxxx", "k", False))
    same(sql(put.format("xxxxx", "k", False)), job)
    same(sql(put.format("yyyyy", "k", True)), job)
    for words in (("yyyyyy", "k", True), ("x", "l", False)):
        assert "FULL" in sql(put.format(*words)), words
    same(a("TW.DRAIN", "one"), "+OK")
    same(sql(put.format("xxxxx", "k", False)), job)
    for words in (("yyyyy", "k", True), ("x", "l", False)):
        assert "DRAINING" in sql(put.format(*words)), words
    same(b("TW.DROP", "one"), "+OK")


@test("SQL: a put costs as much in a long transaction as in a short one")
def _():
    before = rows_read("delta_queue")
    sql("select count(timewheel.put('q', 'x', now() + interval '1 hour'))"
        " from generate_series(1, 3000)")
    time.sleep(1.5)
    read = rows_read("delta_queue") - before
    print(f"# {read} rows read for 3000 puts")
    assert 3000 <= read < 30 * 3000


@test("SQL: what no node has counted is a few rows, also while there is no node")
def _():
    queue = sql("select id from timewheel.queue where name = 'q'")
    sql("begin")
    sql(f"insert into timewheel.delta select {queue}, 0, 0 from generate_series(1, 101)")
    sql("select timewheel.put('q', 'x')")
    rows = int(sql(f"select count(*) from timewheel.delta where queue = {queue}"))
    sql("rollback")
    assert rows < 100, rows


def make_certificate(name):
    key, certificate = folder / f"{name}.key", folder / f"{name}.crt"
    subprocess.run(["openssl", "req", "-x509", "-nodes", "-days", "2", "-newkey", "ec",
                    "-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", f"/CN={name}",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key,
                    "-out", certificate], check=True, capture_output=True)
    owner = folder.stat()
    os.chown(key, owner.st_uid, owner.st_gid)
    key.chmod(0o600)
    return certificate


@test("TLS: a server whose certificate does not verify is refused")
def _():
    right, wrong = make_certificate("right"), make_certificate("wrong")
    for setting in ("ssl_cert_file = '{}'".format(right),
                    "ssl_key_file = '{}'".format(right.with_suffix(".key")), "ssl = on"):
        sql(f"alter system set {setting}")
    sql("select pg_reload_conf()")

    def tls(name, host, root):
        return Node(name, wait=False, where=f"postgresql://{host}/postgres?user=postgres"
                    f"&sslmode=verify-full&sslrootcert={root}")
    nodes = {"certificate verify failed": tls("wrong-root", "127.0.0.1", wrong),
             "does not match host name": tls("wrong-name", "localhost", right)}
    good = tls("tls", "127.0.0.1", right)
    assert eventually(good.can_connect)
    same(state(good, put(1000)), "delayed")
    same(sql("select count(*) from pg_stat_ssl join pg_stat_activity using (pid)\n"
             " where application_name = 'tls' and ssl"), "1")
    for text, node in nodes.items():
        assert eventually(lambda: text in node.said()), node.said()
        assert not node.can_connect()
        node.stop(signal.SIGKILL)
    good.stop()


@test("tables of another version are refused, with a sentence, and not changed")
def _():
    sentence = "its tables have version 99, this program"
    same(init_database().returncode, 0)
    sql("insert into timewheel.schema values (99)")
    tables = "select string_agg(relname || relfilenode, ' ' order by oid) from pg_class"
    before = sql(tables)
    result = init_database()
    same(result.returncode, 1)
    assert sentence in result.stderr, result.stderr
    same(sql(tables), before)
    # A running daemon asks with each connection.
    sql("select pg_terminate_backend(pid, 2000) from pg_stat_activity\n"
        " where application_name = 'b'")
    same(b.process.wait(9), 1)
    assert sentence in b.said()
    b.process = subprocess.Popen([program, "-c", folder / "b.conf"], stderr=b.log)
    same(b.process.wait(9), 1)
    sql("delete from timewheel.schema where version = 99")
    sql("create temporary table versions as table timewheel.schema")
    sql("delete from timewheel.schema")
    result = init_database()
    same(result.returncode, 1)
    assert "its tables do not tell their version" in result.stderr, result.stderr
    sql("insert into timewheel.schema table versions")
    b.start()
    same(state(b, put(1000)), "delayed")


def refused(node):
    return str(Client(node.path)("TW.PUT", "q", "x", "IN", 1000))[:12] == "-UNAVAILABLE"


@test("while tables are missing, or do not tell their version, nodes wait and say so")
def _():
    b.stop()
    sql("create schema away; alter table timewheel.job set schema away")
    assert eventually(lambda: refused(a))
    sql("alter table away.job set schema timewheel")
    assert eventually(lambda: not refused(a))
    sql("alter schema timewheel rename to not_yet")
    assert eventually(lambda: refused(a))
    b.start(wait=False)
    assert eventually(lambda: "it has no jobs: run twjobd-postgresql" in b.said())
    sql("alter schema not_yet rename to timewheel")
    assert eventually(lambda: not refused(a))
    assert eventually(b.can_connect)
    sql("alter table timewheel.schema rename to away;"
        " create table timewheel.schema (like timewheel.away)")
    sql("select pg_terminate_backend(pid, 2000) from pg_stat_activity\n"
        " where application_name in ('a', 'b')")
    assert eventually(lambda: refused(a))
    assert "its tables do not tell their version" in a.said()
    sql("drop table timewheel.schema; alter table timewheel.away rename to schema")
    assert eventually(lambda: not refused(a) and not refused(b))
    # The node says each kind of error once.
    same([n.said().count("it has no jobs") for n in (a, b)], [2, 1])


@test("a job's own LEASE, TRIES and BACKOFF are in its row, and SQL puts a job without any")
def _():
    names = b"lease_ms", b"tries", b"backoff_ms", b"backoff_most_ms"
    job = a("TW.PUT", "q", "x", "KEY", "own", "IN", 100, "LEASE", 1, "TRIES", 3,
            "BACKOFF", 100, 150)[0]
    same(told(b, job, *names), [1000, 3, 100000, 150000])
    same(b("TW.PUT", "q", "x", "KEY", "own", "REPLACE", "LEASE", 7, "IN", 100)[1], b"REPLACED")
    same(told(a, job, *names), [7000, None, None, None])
    sql("select timewheel.put('q', 'y', key => 'own', replace => true)")
    same(told(b, job, *names), [None] * 4)
    same(a("TW.DELETE", "q", job), 1)


@test("KEEPBURIED and BACKOFF of a queue count at each node")
def _():
    same(a("TW.CREATE", "kept", "BACKOFF", 50, 60), "+OK")
    assert eventually(lambda: isinstance(b("TW.PUT", "kept", "x"), int))
    job, receipt, *_ = take(b, "kept")
    same(b("TW.NACK", "kept", receipt), "+OK")
    assert 49 < b("TW.GET", "kept", job)[5] / 1000 - time.time() < 60
    same(b("TW.MOVE", "kept", job, "IN", 0), 1)
    same(b("TW.BURY", "kept", take(b, "kept")[1]), "+OK")
    same(a("TW.CREATE", "kept", "KEEPBURIED", 1), "+OK")
    assert eventually(lambda: b("TW.GET", "kept", job) is None)
    assert eventually(lambda: a("TW.STATS", "kept")[1] == 0)
    same(a("TW.DROP", "kept"), "+OK")


for node in (a, b):
    node.stop()
end()
