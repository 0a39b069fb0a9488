#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# order.py NUMBER adds an order, and a job that asks for a rating 48 hours later. One commit adds
# both or neither. The environment, as PGHOST, says where the database is.
import sys

import psycopg2

number = sys.argv[1]
# The block ends with a commit, or with a rollback after an exception.
with psycopg2.connect("") as db, db.cursor() as cursor:
    cursor.execute("insert into orders (id) values (%s)", (number,))
    cursor.execute("select timewheel.put_text('ratings', %s, now() + interval '48 hours',"
                   " key => %s)", (number, f"order-{number}"))
