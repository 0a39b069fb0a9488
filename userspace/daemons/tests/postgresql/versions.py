#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
#
# versions.py OUTPUT: tests that tables of each older version become tables of the newest version,
# and that programs and tables of different versions refuse each other. versions/N.sql has the
# functions of version N. The database is at PGHOST (see "server"). Prints TAP.
import pathlib
import re
import subprocess

from common import Node, Sql, end, eventually, figure, folder, init_database, same, take, test

here = pathlib.Path(__file__).parent
steps = sorted((here / "../../twjobd/postgresql").glob("tables-*.sql"))
newest = len(steps)
sql = Sql()


def database(name):
    """Makes an empty database, and returns its place."""
    sql(f"create database {name}")
    return f"postgresql:///{name}?host={folder}&user=postgres"


def run(name, *options):
    done = subprocess.run(["psql", "-qtAX", "-v", "ON_ERROR_STOP=1", "-d", name, *options],
                          text=True, capture_output=True)
    same((done.returncode, done.stderr), (0, ""))
    return done.stdout.strip()


def dump(name):
    """Returns the content of the database without the times at which the steps were made."""
    text = subprocess.run(["pg_dump", "-sn", "timewheel", name], text=True, check=True,
                          capture_output=True).stdout
    return re.sub(r"\\(un)?restrict .*", "", text)


where = database("fresh")
init_database(where).check_returncode()


@test("each step tells its version, and --init-database again changes nothing")
def _():
    versions = "select string_agg(version::text, ' ' order by version) from timewheel.schema"
    same(run("fresh", "-c", versions), " ".join(str(i + 1) for i in range(newest)))
    before = dump("fresh"), run("fresh", "-c", "select * from timewheel.schema")
    init_database(where).check_returncode()
    same((dump("fresh"), run("fresh", "-c", "select * from timewheel.schema")), before)


for version in range(1, newest):
    @test(f"tables of version {version} become the newest ones, and keep their jobs")
    def _():
        name = f"old{version}"
        place = database(name)
        files = [*steps[:version], here / f"versions/{version}.sql"]
        run(name, "-1c", "set client_min_messages = warning",
            *(word for file in files for word in ("-f", str(file))))
        run(name, "-c", "insert into timewheel.queue (name, lease, tries, max_jobs, max_bytes)\n"
            "values ('q', 30000, 3, 100, 1000000)")
        job = int(run(name, "-c", "select timewheel.put('q', 'old', key => 'k')"))
        buried = int(run(name, "-c", "select timewheel.put('q', 'buried')"))
        run(name, "-c", f"update timewheel.job set buried = true where id = {buried}")
        # Later versions count buried jobs.
        if version > 2:
            run(name, "-c", "insert into timewheel.delta (queue, jobs, bytes, buried)\n"
                f"select queue, 0, 0, 1 from timewheel.job where id = {buried}")
        node = Node(name, where=place, wait=False)
        assert eventually(lambda: node.process.poll(), 20)
        assert f"tables have version {version}, this program {newest}: run" in node.said()
        done = init_database(place)
        same((done.returncode, done.stderr), (0, ""))
        same(dump(name), dump("fresh"))
        node.start()
        got = take(node)
        same((got[0], got[3]), (job, "old"))
        same(node("TW.ACK", "q", got[1]), 1)
        assert eventually(lambda: figure(node, "q", b"buried") == 1, 3)
        same(node("TW.KICK", "q", buried), 1)
        same(take(node)[0], buried)
        node.stop()


@test("nodes that are running when the tables get a new version end with its name")
def _():
    node = Node("running", where=where)
    same(node("TW.CREATE", "q"), "+OK")
    # The step to a newer version also adds a version, and its functions raise the epoch.
    run("fresh", "-c", f"insert into timewheel.schema values ({newest + 1});\n"
        "update timewheel.node set epoch = epoch + 1")
    assert eventually(lambda: node.process.poll(), 5)
    said = f"tables have version {newest + 1}, this program {newest}: use that of other nodes"
    assert said in node.said(), node.said()
    done = init_database(where)
    same(done.returncode, 1)
    assert said in done.stderr, done.stderr


end()
