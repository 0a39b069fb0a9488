<?php
// SPDX-License-Identifier: LGPL-2.1-or-later
//
// php order.php NUMBER: an order, and a job that asks for a rating 48 hours later. Both are
// there, or neither. PGHOST and the like say where the database is.
$number = $argv[1];
$db = new PDO('pgsql:', getenv('PGUSER') ?: null);
// An exception ends the program, and with the connection the transaction.
$db->setAttribute(PDO::ATTR_ERRMODE, PDO::ERRMODE_EXCEPTION);
$db->beginTransaction();
$db->prepare('insert into orders (id) values (?)')->execute([$number]);
$db->prepare("select timewheel.put_text('ratings', ?, now() + interval '48 hours', key => ?)")
    ->execute([$number, "order-$number"]);
$db->commit();
