#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
#
# examples.py OUTPUT: programs in several languages put a business row and a job in one
# transaction. The database is at PGHOST (see "server"). Prints TAP.
import pathlib
import shutil
import subprocess

from common import Node, Sql, end, folder, init_database, same, test

here = pathlib.Path(__file__).parent / "../../twjobd/postgresql/examples"
init_database().check_returncode()
a = Node("a")
sql = Sql()
same(a("TW.CREATE", "ratings", "MAXJOBS", 2), "+OK")
sql("create table orders (id int primary key);"
    " create role shop login in role timewheel_producer; grant insert on orders to shop")
environment = {"PGHOST": str(folder), "PGUSER": "shop", "PGDATABASE": "postgres",
               "PATH": "/usr/local/bin:/usr/bin:/bin"}


def compile_c():
    options = subprocess.run(["pkg-config", "--cflags", "--libs", "libpq"], check=True,
                             capture_output=True, text=True).stdout.split()
    subprocess.run(["gcc", "-Wall", "-Wextra", "-Werror", "-o", folder / "order",
                    here / "order.c", *options], check=True)
    return folder / "order"


def rows():
    return sql("select count(*) from orders"), sql("select count(*) from timewheel.job")


def order(command, number):
    return subprocess.run([*command, str(number)], env=environment, capture_output=True,
                          text=True)


def try_orders(command):
    """The first two orders have their jobs. The third order is refused by the queue, which is
    full."""
    sql("truncate orders;"
        " select timewheel.cancel('ratings', key) from unnest(array['order-1', 'order-2']) key")
    for number in 1, 2:
        done = order(command, number)
        same((done.returncode, done.stderr), (0, ""))
    same(rows(), ("2", "2"))
    same(sql("select convert_from(key, 'UTF8'), convert_from(body, 'UTF8'),"
             " due / 3600000 - timewheel.now() / 3600000 from timewheel.job order by id"),
         "order-1|1|48\norder-2|2|48")
    done = order(command, 3)
    assert done.returncode and "FULL" in done.stderr + done.stdout, done
    # The row exists already.
    assert order(command, 2).returncode
    same(rows(), ("2", "2"))


for name, command in (("C, libpq", lambda: [compile_c()]),
                      ("Python, psycopg2", lambda: ["/usr/bin/python3", here / "order.py"]),
                      ("PHP, pdo_pgsql", lambda: [shutil.which("php"), here / "order.php"])):
    @test(f"a row and a job in one transaction: {name}")
    def _():
        try_orders(command())


a.stop()
end()
