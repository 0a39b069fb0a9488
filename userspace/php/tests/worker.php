<?php
// SPDX-License-Identifier: GPL-2.0-only
//
// worker.php messenger|laravel URL LEDGER: a worker of kills.php. What it has handled is a line in LEDGER;
// of each task whose name ends in 0 or 5 the first try fails.

require __DIR__.'/tap.php';

use Symfony\Component\Messenger\Event\WorkerStartedEvent;

[, $framework, $url, $ledger] = $argv;

function handle(string $name): void
{
    global $ledger;
    usleep(10000);
    $fails = \in_array(substr($name, -1), ['0', '5'])
        && !str_contains(file_get_contents($ledger), "$name fails\n");
    file_put_contents($ledger, $name.($fails ? " fails\n" : "\n"), \FILE_APPEND);
    !$fails || throw new DomainException('the first try fails');
}

if ($framework === 'messenger') {
    require __DIR__.'/bus.php';
    $app = new App(transport($url, ['block' => 0.2]), null, static fn (Order $order) => handle($order->name), 1000);
    // As messenger:consume does it.
    pcntl_async_signals(true);
    $app->events->addListener(WorkerStartedEvent::class,
        static fn ($event) => pcntl_signal(\SIGTERM, static fn () => $event->getWorker()->stop()));
    $app->work(\PHP_INT_MAX);
} else {
    require __DIR__.'/app.php';
    Mail::$handler = static fn (Mail $mail) => handle($mail->name);
    [, $worker] = laravel(['url' => $url, 'queue' => 'messages', 'block_for' => 0.2]);
    $worker->daemon('twjobd', 'messages', options(0));
}
