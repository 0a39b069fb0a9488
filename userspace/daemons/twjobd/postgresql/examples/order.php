<?php
// SPDX-License-Identifier: LGPL-2.1-or-later
//
// php order.php NUMBER adds an order, and a job that asks for a rating 48 hours later. One commit
// adds both or neither. The environment, as PGHOST, says where the database is.
$number = $argv[1];
$db = new PDO('pgsql:', getenv('PGUSER') ?: null);
// An exception ends the program, and the end of the connection ends the transaction.
$db->setAttribute(PDO::ATTR_ERRMODE, PDO::ERRMODE_EXCEPTION);
$db->beginTransaction();
$db->prepare('insert into orders (id) values (?)')->execute([$number]);
$db->prepare("select timewheel.put_text('ratings', ?, now() + interval '48 hours', key => ?)")
    ->execute([$number, "order-$number"]);
$db->commit();
