<?php
// SPDX-License-Identifier: GPL-2.0-only
//
// kills.php messenger|laravel [COUNT]: a ledger over so many ends of workers, most by kill -9 and some by
// SIGTERM, 5 unless it is told, and some more of twjobd, while tasks are sent. Each task that was sent has
// to end. Prints TAP.

require __DIR__.'/tap.php';

[, $framework, $count] = $argv + [2 => 5];
require __DIR__.($framework === 'messenger' ? '/bus.php' : '/app.php');

use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Exception\TransportException;
use Symfony\Component\Messenger\Stamp\DelayStamp;
use Timewheel\Jobs\Refused;

$daemon = new Daemon('disk');
$daemon('TW.CREATE', 'messages', 'LEASE', '2', 'TRIES', $framework === 'messenger' ? '1000' : '0');
touch($ledger = "$daemon->folder/ledger");

/** Sends a task, due in up to 1.5 s. */
$send = $framework === 'messenger'
    ? static fn ($name) => transport($daemon->url)->send(
        new Envelope(new Order($name), [new DelayStamp(random_int(0, 1500))]))
    : static fn ($name) => laravel(['url' => $daemon->url, 'queue' => 'messages'])[0]
        ->later(random_int(0, 1), new Mail($name));

$start = static fn () => new Process([\PHP_BINARY, __DIR__.'/worker.php', $framework, $daemon->url, $ledger],
    [], "$daemon->folder/worker");
$lines = static fn () => file($ledger, \FILE_IGNORE_NEW_LINES);
$workers = [$start(), $start()];
$sent = [];
$restarts = 0;

/** A worker that ended, as Messenger's do when twjobd has given their job to another one, comes again. */
$tend = static function () use (&$workers, &$restarts, $start) {
    foreach ($workers as &$worker) {
        if (!$worker->runs()) {
            $worker = $start();
            ++$restarts;
        }
    }
};

for ($kills = $number = 0; $kills < $count; ++$kills) {
    $before = \count($lines());
    eventually(function () use (&$sent, &$number, $send, $tend, $lines, $before) {
        $name = 't'.++$number;
        try {
            $send($name);
            $sent[] = $name;
        } catch (TransportException | Refused) {
            // The task is not promised.
        }
        $tend();

        return \count($lines()) > $before + 10;
    }, 60);
    $workers[$kills % 2]->end($kills % 4 === 3 ? \SIGTERM : \SIGKILL);
    if ($kills % 3 === 1) {
        $daemon->stop($kills % 2 ? \SIGKILL : \SIGTERM);
        $daemon->start();
    }
}

$lost = [];
$done = function () use (&$lost, $sent, $lines, $tend, $daemon) {
    $tend();
    usleep(100000);

    return !($lost = array_diff($sent, $lines())) && $daemon->stats('messages')['jobs'] === 0;
};
try {
    eventually($done, 60);
} catch (Exception) {
    echo '# ', json_encode($daemon->stats('messages')), "\n";
}
$runs = \count(preg_grep('/fails/', $lines(), \PREG_GREP_INVERT));
echo "# $count kills of workers, ", \count($sent), " tasks sent, $runs runs ended, $restarts restarts\n";
echo $lost ? '# lost: '.implode(' ', $lost)."\n" : "# none was lost\n";
$good = !$lost && \count($sent) > 10 * $count && $daemon->stats('messages')['jobs'] === 0;
echo $good ? 'ok' : 'not ok', " 1 - each task that was sent has ended, by $framework over $count kills of workers\n1..1\n";
exit($good ? 0 : 1);
