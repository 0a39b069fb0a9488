<?php
// SPDX-License-Identifier: GPL-2.0-only
//
// The driver with Laravel's own queue, worker and bus. Prints TAP.

require __DIR__.'/tap.php';
require __DIR__.'/app.php';

use Illuminate\Queue\Events\JobFailed;
use Timewheel\Jobs\Refused;

$daemon = new Daemon();

function queue(): string
{
    return 'q'.bin2hex(random_bytes(6));
}

function connection(string $url, array $config = [])
{
    return laravel($config + ['url' => $url, 'queue' => queue()])[0]->connection();
}

$tests = [];
foreach (['a unix socket' => $daemon->url, 'TCP with a password' => $daemon->tcp] as $where => $url) {
    $tests["jobs are pushed, popped and deleted, by $where"] = function () use ($daemon, $url) {
        $queue = connection($url);
        $queue->push(new Mail('a'));
        same(1, $queue->size());
        $job = $queue->pop();
        same([Mail::class, 1, null, 1], [$job->resolveName(), $job->attempts(), $queue->pop(), $queue->size()]);
        $job->delete();
        same(0, $queue->size());
    };
}

exit(results($tests + [
    'a job runs by Laravel\'s worker and ends' => function () use ($daemon) {
        [$manager, $worker] = laravel(['url' => $daemon->url, 'queue' => $queue = queue()]);
        $ran = [];
        Mail::$handler = function (Mail $mail) use (&$ran) { $ran[] = $mail->name; };
        $manager->push(new Mail('a'));
        $worker->runNextJob('twjobd', $queue, options());
        same([['a'], 0], [$ran, $daemon->stats($queue)['jobs']]);
    },
    'a job for later is due then, after any delay' => function () use ($daemon) {
        $queue = connection($daemon->url, ['queue' => $name = queue()]);
        $queue->later($delay = 30 * 365 * 86400, new Mail('a'));
        $queue->later($at = DateTime::createFromFormat('U.u', (time() + 3600).'.999'), new Mail('b'));
        same([null, 2], [$queue->pop(), $queue->size()]);
        $due = array_column($daemon->jobs($name), 'due');
        same(true, $due[0] >= (time() + $delay - 20) * 1000 && $due[0] < (time() + $delay + 2) * 1000);
        $late = $due[1] - 1000 * (float) $at->format('U.u');
        same(true, $late > -1 && $late < 20000, "due $late ms late");
    },
    'a worker that waits gets what comes meanwhile' => function () use ($daemon) {
        $queue = connection($daemon->url, ['block_for' => 20]);
        $queue->later(1, new Mail('a'));
        same(1, $queue->pop()->attempts());
    },
    'a job that is released comes again with its tries, and not before its delay' => function () use ($daemon) {
        $queue = connection($daemon->url, ['queue' => $name = queue()]);
        $queue->push(new Mail('a'));
        for ($try = 1; $try < 15; ++$try) {
            $job = $queue->pop();
            same($try, $job->attempts());
            $job->release();
        }
        $queue->pop()->release(600);
        same([null, 'delayed'], [$queue->pop(), $daemon->jobs($name)[0]['state']]);
    },
    'a job that fails comes again after its backoff, and is failed after its last try' => function () use ($daemon) {
        [$manager, $worker, $reports, $events] = laravel(['url' => $daemon->url, 'queue' => $queue = queue()]);
        Mail::$handler = static fn () => throw new DomainException('no');
        $failed = [];
        $events->listen(JobFailed::class, function ($event) use (&$failed) {
            $failed[] = $event->exception->getMessage();
        });
        $manager->push(new Mail('a'));
        $worker->runNextJob('twjobd', $queue, options(2, 600));
        [$job] = $daemon->jobs($queue);
        same(['delayed', []], [$job['state'], $failed]);
        $daemon('TW.MOVE', $queue, (string) $job['id'], 'IN', '0');
        $worker->runNextJob('twjobd', $queue, options(2, 600));
        same([['no'], 0, 2], [$failed, $daemon->stats($queue)['jobs'], \count($reports->all)]);
    },
    'a release after the queue\'s last try is said so, and the job is kept' => function () use ($daemon) {
        $daemon('TW.CREATE', $name = queue(), 'TRIES', '1');
        $queue = connection($daemon->url, ['queue' => $name]);
        $queue->push(new Mail('a'));
        $job = $queue->pop();
        refused(RuntimeException::class, fn () => $job->release(), 'is buried', '--tries 0');
        same('buried', $daemon->jobs($name)[0]['state']);
    },
    'a job that Laravel did not put is buried with the reason, and the next one comes' => function () use ($daemon) {
        $queue = connection($daemon->url, ['queue' => $name = queue()]);
        $queue->size();
        $daemon('TW.PUT', $name, 'no json');
        same(null, $queue->pop());
        $queue->push(new Mail('a'));
        same(1, $queue->pop()->attempts());
        same('the job was not put by Laravel', $daemon->jobs($name, 'STATE', 'buried')[0]['reason']);
    },
    'a job that a worker has can be pushed again, and is not lost' => function () use ($daemon) {
        $queue = connection($daemon->url);
        $queue->push(new Mail('a'));
        $job = $queue->pop();
        $queue->pushRaw($job->getRawBody());
        $job->delete();
        same(1, $queue->size());
    },
    'a worker that dies gives back its job at once' => function () use ($daemon) {
        $dead = connection($daemon->url, ['queue' => $name = queue()]);
        $dead->push(new Mail('a'));
        $dead->pop();
        unset($dead);
        laravel([]);
        gc_collect_cycles();
        same(2, connection($daemon->url, ['queue' => $name, 'block_for' => 20])->pop()->attempts());
    },
    'a job of which the lease is over cannot be deleted or released' => function () use ($daemon) {
        $queue = connection($daemon->url, ['queue' => $name = queue(), 'retry_after' => 0.05, 'block_for' => 20]);
        $queue->push(new Mail('a'));
        $job = $queue->pop();
        same(2, $queue->pop()->attempts());
        refused(Refused::class, fn () => $job->delete(), 'STALE', 'make the lease');
        refused(Refused::class, fn () => $job->release(), 'STALE');
        same(1, $queue->size());
    },
    'figures of a queue, as Laravel 12 asks for them' => function () use ($daemon) {
        $queue = connection($daemon->url);
        $queue->push(new Mail('a'));
        $queue->push(new Mail('b'));
        $queue->later(600, new Mail('c'));
        $queue->pop();
        eventually(fn () => $queue->pendingSize() === 1);
        same([1, 1, 1, 3], [$queue->pendingSize(), $queue->delayedSize(), $queue->reservedSize(), $queue->size()]);
        same(true, abs(time() - $queue->creationTimeOfOldestPendingJob()) < 20);
    },
    'what had no answer is done once' => function () use ($daemon) {
        foreach (['TW.PUT', 'TW.ACK', 'TW.NACK'] as $verb) {
            $queue = connection($daemon->behind('cut', $verb), ['queue' => $name = queue()]);
            $queue->push(new Mail('a'));
            $job = $queue->pop();
            $verb === 'TW.NACK' ? $job->release(600) : $job->delete();
            same($verb === 'TW.NACK' ? 1 : 0, $daemon->stats($name)['jobs'], $verb);
        }
    },
    'what twjobd refuses is a RuntimeException that says what to do' => function () use ($daemon) {
        $push = static fn ($url, $name = null) => fn () => connection($url, ['queue' => $name ?? queue()])
            ->push(new Mail('a'));
        $daemon('TW.CREATE', $full = queue(), 'MAXJOBS', '1');
        $push($daemon->url, $full)();
        refused(RuntimeException::class, $push("timewheel://$daemon->folder/none"), 'systemctl start twjobd');
        refused(RuntimeException::class, $push("timewheel://:no@127.0.0.1:$daemon->port"), 'Give the password');
        refused(RuntimeException::class, $push($daemon->url, $full), 'FULL', 'twjob create');
        refused(RuntimeException::class, $push($daemon->behind('always', 'TW.PUT', "ERR unknown command 'TW.PUT'")),
            'unknown command', 'upgraded');
        refused(RuntimeException::class, fn () => connection($daemon->url)->pushRaw(str_repeat('x', 1 << 21)),
            'TOOBIG', 'max-body');
        refused(InvalidArgumentException::class, $push('redis://x'), 'timewheel:///run/twjobd/socket');
    },
    'a worker that cannot reach twjobd reports it and goes on' => function () use ($daemon) {
        [, $worker, $reports] = laravel(['url' => "timewheel://$daemon->folder/none"]);
        $worker->runNextJob('twjobd', 'q', options());
        contains($reports->all[0]->getMessage(), 'systemctl start twjobd');
    },
]));
