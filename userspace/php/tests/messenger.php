<?php
// SPDX-License-Identifier: GPL-2.0-only
//
// The transport with Messenger's bus, worker and commands. Prints TAP.

require __DIR__.'/tap.php';
require __DIR__.'/bus.php';

use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Exception\InvalidArgumentException;
use Symfony\Component\Messenger\Exception\MessageDecodingFailedException;
use Symfony\Component\Messenger\Exception\TransportException;
use Symfony\Component\Messenger\Stamp\DelayStamp;
use Symfony\Component\Messenger\Stamp\TransportMessageIdStamp;
use Symfony\Component\Messenger\Transport\Receiver\KeepaliveReceiverInterface;
use Symfony\Component\Messenger\Transport\Serialization\SerializerInterface;
use Timewheel\Messenger\Undecoded;

// Messenger has this from 7.2 on, Debian's is older: the interface is ours, and the same.
if (!interface_exists(KeepaliveReceiverInterface::class)) {
    eval('namespace Symfony\Component\Messenger\Transport\Receiver; use Symfony\Component\Messenger\Envelope;
        interface KeepaliveReceiverInterface extends ReceiverInterface {
        public function keepalive(Envelope $envelope, ?int $seconds = null): void; }');
}

/** A body that is no text. */
final class Bytes implements SerializerInterface
{
    public function decode(array $encodedEnvelope): Envelope
    {
        return new Envelope(new Order($encodedEnvelope['body']));
    }

    public function encode(Envelope $envelope): array
    {
        return ['body' => $envelope->getMessage()->name];
    }
}

$daemon = new Daemon();

function queue(): string
{
    return 'q'.bin2hex(random_bytes(6));
}

function order(string $name = 'a', int $delay = 0): Envelope
{
    return new Envelope(new Order($name), $delay ? [new DelayStamp($delay)] : []);
}

function one(iterable $envelopes): ?Envelope
{
    foreach ($envelopes as $envelope) {
        return $envelope;
    }

    return null;
}

/** An application whose handler fails, with a failure transport. */
function failing(string $queue, int $retries, ?Closure $handler = null): App
{
    global $daemon;

    return new App(transport($daemon->url, ['queue' => $queue]), transport($daemon->url, ['buried' => $queue]),
        $handler ?? static fn (Order $order) => throw new DomainException("no $order->name"), $retries);
}

$tests = [];
foreach (['a unix socket' => $daemon->url, 'TCP with a password' => $daemon->tcp] as $where => $url) {
    $tests["a message is dispatched, handled and ends, by $where"] = function () use ($daemon, $url) {
        $queue = queue();
        $handled = [];
        $app = new App(transport("$url?queue=$queue"), null, function (Order $order) use (&$handled) {
            $handled[] = $order->name;
        });
        $app->bus->dispatch(new Order('a'));
        $app->bus->dispatch(new Order('b'));
        same(2, $app->async->getMessageCount());
        $app->work(2);
        sort($handled);
        same(['a', 'b'], $handled);
        same(0, $daemon->stats($queue)['jobs']);
    };
}

exit(results($tests + [
    'a delay may have any length, and is never shortened' => function () use ($daemon) {
        $queue = queue();
        $before = microtime(true);
        $delay = 30 * 365 * 86400000 + 1;
        transport($daemon->url, ['queue' => $queue])->send(order('a', $delay));
        [$job] = $daemon->jobs($queue, 'STATE', 'delayed');
        $late = $job['due'] - $before * 1000 - $delay;
        same(true, $late >= -1 && $late < 10000, "due $late ms late");
    },
    'a message that is not due is not received' => function () use ($daemon) {
        $transport = transport($daemon->url, ['queue' => queue()]);
        $transport->send(order('later', 60000));
        same(null, one($transport->get()));
        same(1, $transport->getMessageCount());
    },
    'a worker that waits receives what comes meanwhile' => function () use ($daemon) {
        $transport = transport($daemon->url, ['queue' => queue(), 'block' => 20]);
        $transport->send(order('soon', 300));
        same('soon', one($transport->get())->getMessage()->name);
    },
    'a body may be any bytes' => function () use ($daemon) {
        $transport = transport($daemon->url, ['queue' => queue()], new Bytes());
        $transport->send(order($bytes = "\xff\0\n\r\n\x80"));
        same($bytes, one($transport->get())->getMessage()->name);
    },
    'a retry is another job, and the first one ends by the same commit' => function () use ($daemon) {
        $app = failing($queue = queue(), 3);
        $app->bus->dispatch(new Order('a'));
        $first = $daemon->jobs($queue)[0]['id'];
        $app->work();
        [$job] = $daemon->jobs($queue);
        same([1, true], [$daemon->stats($queue)['jobs'], $job['id'] > $first]);
        $job = Timewheel\Jobs\Connection::map($daemon('TW.GET', $queue, (string) $job['id']));
        same(false, str_contains($job['body'], 'Timewheel'), 'the body tells of the job before');
        $app->work(2);
        same(1, $daemon->stats($queue)['jobs']);
    },
    'a retry that cannot be put leaves the message as it was' => function () use ($daemon) {
        $app = failing($queue = queue(), 3);
        $app->bus->dispatch(new Order('a'));
        $daemon('TW.DRAIN', $queue);
        refused(TransportException::class, fn () => $app->work(), 'DRAINING', 'twjob resume');
        same('held', $daemon->jobs($queue)[0]['state']);
    },
    'a retry needs no room in a queue that is full' => function () use ($daemon) {
        $app = failing($queue = queue(), 3);
        $daemon('TW.CREATE', $queue, 'MAXJOBS', '1');
        $app->bus->dispatch(new Order('a'));
        $app->work();
        same(1, $daemon->stats($queue)['jobs']);
    },
    'a message that is rejected ends' => function () use ($daemon) {
        $transport = transport($daemon->url, ['queue' => $queue = queue()]);
        $transport->send(order());
        $transport->reject(one($transport->get()));
        same(0, $daemon->stats($queue)['jobs']);
    },
    'a message is failed after its last try, buried with the reason' => function () use ($daemon) {
        $app = failing($queue = queue(), 1);
        $app->bus->dispatch(new Order('a'));
        $app->work(2);
        [$job] = $daemon->jobs($queue);
        same('buried', $job['state']);
        contains($job['reason'], 'DomainException: no a');
        same([0, 1], [$app->async->getMessageCount(), $app->failed->getMessageCount()]);
    },
    'without a failure transport a message ends after its last try' => function () use ($daemon) {
        $app = new App(transport($daemon->url, ['queue' => $queue = queue()]), null,
            static fn () => throw new DomainException(), 0);
        $app->bus->dispatch(new Order('a'));
        $app->work();
        same(0, $daemon->stats($queue)['jobs']);
    },
    'failed messages are shown with class, time and reason' => function () use ($daemon) {
        $app = failing($queue = queue(), 0);
        $app->bus->dispatch(new Order('a'));
        $app->work();
        $id = "$queue:".$daemon->jobs($queue)[0]['id'];
        contains($app->command('show'), $id, 'Order', 'no a', date('Y-m-d'));
        contains($app->command('show', ['id' => $id]), 'DomainException', 'no a');
    },
    'a failed message is handled again and ends' => function () use ($daemon) {
        $fails = true;
        $handled = [];
        $app = failing($queue = queue(), 0, function (Order $order) use (&$fails, &$handled) {
            $fails ? throw new DomainException() : $handled[] = $order->name;
        });
        $app->bus->dispatch(new Order('a'));
        $app->work();
        $fails = false;
        $app->command('retry', ['id' => ["$queue:".$daemon->jobs($queue)[0]['id']], '--force' => true]);
        same([['a'], 0], [$handled, $daemon->stats($queue)['jobs']]);
    },
    'a failed message that fails again is in its queue again, and then failed again' => function () use ($daemon) {
        $app = failing($queue = queue(), 1);
        $app->bus->dispatch(new Order('a'));
        $app->work(2);
        $id = "$queue:".$daemon->jobs($queue)[0]['id'];
        $app->command('retry', ['id' => [$id], '--force' => true]);
        same([1, 0], [$daemon->stats($queue)['pending'], $app->failed->getMessageCount()]);
        same([null, null], array_map([$app->failed, 'find'], [$id, "$queue:".$daemon->jobs($queue)[0]['id']]));
        $app->work();
        same([1, 1], [$daemon->stats($queue)['jobs'], $app->failed->getMessageCount()]);
    },
    'a failed message is removed' => function () use ($daemon) {
        $app = failing($queue = queue(), 0);
        $app->bus->dispatch(new Order('a'));
        $app->work();
        $app->command('remove', ['id' => ["$queue:".$daemon->jobs($queue)[0]['id']], '--force' => true]);
        same(0, $daemon->stats($queue)['jobs']);
    },
    'a failed message of any of the queues is listed' => function () use ($daemon) {
        $queues = [queue(), queue()];
        foreach ($queues as $queue) {
            $app = failing($queue, 0);
            $app->failed = transport($daemon->url, ['buried' => implode(',', $queues)]);
            $app->bus->dispatch(new Order($queue));
            $app->work();
        }
        same(2, $app->failed->getMessageCount());
        same($queues, array_map(fn ($e) => $e->getMessage()->name, iterator_to_array($app->failed->all(), false)));
        same(1, \count(iterator_to_array($app->failed->all(1), false)));
    },
    'a message that kills its workers is failed after the tries of its queue' => function () use ($daemon) {
        $daemon('TW.CREATE', $queue = queue(), 'TRIES', '2');
        transport($daemon->url, ['queue' => $queue])->send(order());
        for ($try = 0; $try < 2; ++$try) {
            $worker = transport($daemon->url, ['queue' => $queue, 'block' => 20]);
            one($worker->get());
            unset($worker);
        }
        same(null, one(transport($daemon->url, ['queue' => $queue, 'block' => 1])->get()));
        $failed = transport($daemon->url, ['buried' => $queue]);
        same(1, $failed->getMessageCount());
        same('a', one($failed->all())->getMessage()->name);
    },
    'what cannot be decoded is buried with the reason, and the next one comes' => function () use ($daemon) {
        $transport = transport($daemon->url, ['queue' => $queue = queue()]);
        $transport->setup();
        foreach (['not of Messenger', "{}\nno message"] as $body) {
            $daemon('TW.PUT', $queue, $body);
            refused(MessageDecodingFailedException::class, fn () => one($transport->get()));
        }
        $transport->send(order('good'));
        same('good', one($transport->get())->getMessage()->name);
        $jobs = $daemon->jobs($queue, 'STATE', 'buried');
        same(2, \count($jobs));
        contains($jobs[0]['reason'], 'not put by Messenger');
    },
    'what cannot be decoded is listed as failed, is due again by a retry, and can be removed' => function () use ($daemon) {
        $app = failing($queue = queue(), 1);
        $app->async->setup();
        $daemon('TW.PUT', $queue, 'nonsense');
        refused(MessageDecodingFailedException::class, fn () => one($app->async->get()));
        $found = one($app->failed->all());
        same('nonsense', $found->getMessage()->body);
        $id = $found->last(TransportMessageIdStamp::class)->getId();
        contains($app->command('show'), $id, Undecoded::class, 'not put by');
        $app->command('retry', ['id' => [$id], '--force' => true]);
        same(['ready', 'nonsense'], [$daemon->jobs($queue)[0]['state'],
            Timewheel\Jobs\Connection::map($daemon('TW.GET', $queue, explode(':', $id)[1]))['body']]);
        refused(MessageDecodingFailedException::class, fn () => one($app->async->get()));
        $app->command('remove', ['id' => [$id], '--force' => true]);
        same(0, $daemon->stats($queue)['jobs']);
    },
    'a failure transport says which messages it does not bury' => function () use ($daemon) {
        $failed = transport($daemon->url, ['buried' => 'mails,calls']);
        refused(TransportException::class, fn () => $failed->send(order()), 'mails, calls', 'Add its queue');
    },
    'a queue of its own is a failure transport, too' => function () use ($daemon) {
        $app = failing($queue = queue(), 0);
        $app = new App($app->async, transport($daemon->url, ['queue' => "$queue-f"]),
            static fn () => throw new DomainException('no'), 0);
        $app->bus->dispatch(new Order('a'));
        $app->work();
        same([0, 1], [$daemon->stats($queue)['jobs'], $app->failed->getMessageCount()]);
        contains($app->command('show'), "$queue-f:", 'no');
        $id = one($app->failed->all())->last(TransportMessageIdStamp::class)->getId();
        $app->command('remove', ['id' => [$id], '--force' => true]);
        same(0, $daemon->stats("$queue-f")['jobs']);
    },
    'messages are listed and found by id' => function () use ($daemon) {
        $transport = transport($daemon->url, ['queue' => $queue = queue()]);
        for ($i = 0; $i < 120; ++$i) {
            $id = $transport->send(order("m$i", 60000))->last(TransportMessageIdStamp::class)->getId();
        }
        same(120, \count(iterator_to_array($transport->all(), false)));
        same(3, \count(iterator_to_array($transport->all(3), false)));
        same('m119', $transport->find($id)->getMessage()->name);
        transport($daemon->url, ['queue' => $other = queue()])->send(order());
        $others = "$other:".$daemon->jobs($other)[0]['id'];
        same([null, null, null], array_map([$transport, 'find'], ["$queue:999999", $others, 'x']));
    },
    'a message that is worked on stays the worker\'s by keepalive' => function () use ($daemon) {
        $transport = transport($daemon->url, ['queue' => $queue = queue(), 'lease' => 1]);
        same(true, $transport instanceof KeepaliveReceiverInterface);
        $transport->send(order());
        $envelope = one($transport->get());
        $transport->keepalive($envelope, 600);
        $id = (string) $daemon->jobs($queue)[0]['id'];
        same(true, Timewheel\Jobs\Connection::map($daemon('TW.GET', $queue, $id))['lease_left_ms'] > 500000);
        $transport->keepalive($envelope);
        $transport->ack($envelope);
        same(0, $daemon->stats($queue)['jobs']);
    },
    'a worker that dies gives back its message at once' => function () use ($daemon) {
        $dead = transport($daemon->url, ['queue' => $queue = queue()]);
        $dead->send(order());
        one($dead->get());
        unset($dead);
        same('a', one(transport($daemon->url, ['queue' => $queue, 'block' => 20])->get())->getMessage()->name);
    },
    'a message of which the lease is over cannot be acknowledged or sent again' => function () use ($daemon) {
        $transport = transport($daemon->url, ['queue' => $queue = queue(), 'lease' => 0.05]);
        $transport->send(order());
        $late = one($transport->get());
        $other = transport($daemon->url, ['queue' => $queue, 'block' => 20]);
        same('a', one($other->get())->getMessage()->name);
        refused(TransportException::class, fn () => $transport->ack($late), 'STALE', 'make the lease');
        refused(TransportException::class, fn () => $transport->send($late), 'STALE');
        same(1, $daemon->stats($queue)['jobs']);
    },
    'a queue that was dropped is made again' => function () use ($daemon) {
        $transport = transport($daemon->url, ['queue' => $queue = queue(), 'lease' => 7]);
        $transport->send(order());
        $daemon('TW.DROP', $queue);
        $transport->send(order('b'));
        same([1, 7000], [$daemon->stats($queue)['jobs'], $daemon->stats($queue)['lease_ms']]);
    },
    'a queue that is there stays as it is' => function () use ($daemon) {
        $daemon('TW.CREATE', $queue = queue(), 'LEASE', '9');
        $transport = transport($daemon->url, ['queue' => $queue, 'lease' => 5]);
        $transport->setup();
        same(9000, $daemon->stats($queue)['lease_ms']);
    },
    'a put of which the answer was lost is one message' => function () use ($daemon) {
        $daemon('TW.CREATE', $queue = queue());
        $transport = transport($daemon->behind('cut', 'TW.PUT'), ['queue' => $queue]);
        $transport->send(order('x'));
        $transport->send(order('y'));
        same(2, $daemon->stats($queue)['jobs']);
    },
    'a retry of which the answer was lost is one message' => function () use ($daemon) {
        $transport = transport($daemon->behind('cut', 'EXEC'), ['queue' => $queue = queue()]);
        $transport->send(order('x'));
        $id = $transport->send(one($transport->get()))->last(TransportMessageIdStamp::class)->getId();
        [$job] = $daemon->jobs($queue);
        same([1, "$queue:$job[id]"], [$daemon->stats($queue)['jobs'], $id]);
    },
    'a commit of which the connection ends in between is one' => function () use ($daemon) {
        foreach (['MULTI', 'TW.DELETE', 'TW.PUT'] as $verb) {
            $app = failing($queue = queue(), 0);
            $app->bus->dispatch(new Order('a'));
            $app->work();
            $failed = transport($daemon->behind('after', $verb), ['buried' => $queue]);
            $failed->send($failed->find("$queue:".$daemon->jobs($queue)[0]['id']));
            same([1, 1], [$daemon->stats($queue)['jobs'], $daemon->stats($queue)['pending']], $verb);
        }
    },
    'an acknowledgement of which the answer was lost is one' => function () use ($daemon) {
        $transport = transport($daemon->behind('cut', 'TW.ACK'), ['queue' => $queue = queue()]);
        $transport->send(order('x'));
        $transport->ack(one($transport->get()));
        same(0, $daemon->stats($queue)['jobs']);
    },
    'what twjobd cannot do now is sent again' => function () use ($daemon) {
        foreach (['BUSY', 'LOADING', 'UNAVAILABLE'] as $word) {
            $transport = transport($daemon->behind('once', 'TW.PUT', "$word not now"), ['queue' => $queue = queue()]);
            $transport->send(order());
            same(1, $daemon->stats($queue)['jobs'], $word);
        }
    },
    'calls wait for a twjobd that is restarted' => function () {
        $daemon = new Daemon('disk');
        $transport = transport($daemon->url, ['queue' => 'q']);
        $transport->send(order());
        $daemon->stop();
        new Process(['sh', '-c', "sleep 1; exec \$TWJOBD -c $daemon->folder/conf"]);
        $transport->send(order('b'));
        same(2, $transport->getMessageCount());
    },
    'an unreachable twjobd is said so at once' => function () use ($daemon) {
        foreach (["timewheel://$daemon->folder/none", 'timewheel://127.0.0.1:1'] as $url) {
            refused(TransportException::class, fn () => transport($url)->send(order()),
                'does not answer', 'systemctl start twjobd');
            refused(TransportException::class, fn () => one(transport($url)->get()), 'does not answer');
        }
    },
    'an address may be one of IPv6' => function () {
        $error = refused(TransportException::class, fn () => transport('timewheel://[::1]:1')->send(order()));
        same(false, str_contains($error->getMessage(), 'parse'), $error->getMessage());
    },
    'nobody waits for a twjobd that was never there' => function () {
        $daemon = new Daemon();
        $daemon->stop();
        new Process(['sh', '-c', "sleep 2; exec \$TWJOBD -c $daemon->folder/conf"]);
        refused(TransportException::class, fn () => transport($daemon->url)->send(order()), 'does not answer');
    },
    'a wrong password, and none, are said so' => function () use ($daemon) {
        foreach (["timewheel://:no@127.0.0.1:$daemon->port", "timewheel://127.0.0.1:$daemon->port"] as $url) {
            refused(TransportException::class, fn () => transport($url)->send(order()), 'Give the password');
        }
    },
    'a full queue and a body that is too large are said so, and a message that fits is put then' => function () use ($daemon) {
        $daemon('TW.CREATE', $queue = queue(), 'MAXJOBS', '1');
        $transport = transport($daemon->url, ['queue' => $queue]);
        refused(TransportException::class, fn () => $transport->send(order(str_repeat('x', 1 << 21))), 'max-body');
        $transport->send(order());
        refused(TransportException::class, fn () => $transport->send(order()), 'FULL', 'twjob create');
        same(1, $daemon->stats($queue)['jobs']);
    },
    'a twjobd that is too old is said so' => function () use ($daemon) {
        foreach (['TW.PUT', 'MULTI'] as $verb) {
            $transport = transport($daemon->behind('always', $verb, "ERR unknown command '$verb'"), ['queue' => queue()]);
            refused(TransportException::class, function () use ($transport) {
                $transport->send(order());
                $transport->send(one($transport->get()));
            }, 'unknown command', 'upgraded');
        }
    },
    'Composer is told the library\'s version, for it takes no folder without one' => function () {
        $folder = getenv('TIMEWHEEL_PHP');
        preg_match('/^VERSION\s*:=\s*(\S+)/m', file_get_contents("$folder/../lib/Makefile"), $found);
        same($found[1], json_decode(file_get_contents("$folder/composer.json"))->version ?? null);
    },
    'wrong options and URLs are said so' => function () {
        refused(InvalidArgumentException::class, fn () => transport('timewheel:///s?queues=a'), '"queues"', '"queue"');
        refused(InvalidArgumentException::class, fn () => transport('timewheel://'), 'timewheel:///run/twjobd/socket');
        same(false, (new Timewheel\Messenger\TransportFactory())->supports('redis://x', []));
    },
]));
