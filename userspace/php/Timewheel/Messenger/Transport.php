<?php
// SPDX-License-Identifier: LGPL-2.1-or-later
namespace Timewheel\Messenger;

use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Exception\LogicException;
use Symfony\Component\Messenger\Exception\MessageDecodingFailedException;
use Symfony\Component\Messenger\Exception\TransportException;
use Symfony\Component\Messenger\Stamp\DelayStamp;
use Symfony\Component\Messenger\Stamp\TransportMessageIdStamp;
use Symfony\Component\Messenger\Transport\Receiver\ListableReceiverInterface;
use Symfony\Component\Messenger\Transport\Receiver\MessageCountAwareInterface;
use Symfony\Component\Messenger\Transport\Serialization\SerializerInterface;
use Symfony\Component\Messenger\Transport\SetupableTransportInterface;
use Symfony\Component\Messenger\Transport\TransportInterface;
use Timewheel\Jobs\Connection;
use Timewheel\Jobs\Refused;

/**
 * Messenger's messages are the jobs of one queue of twjobd.
 *
 * A job's body is the message's headers as one line of JSON, and then its body as it is.
 */
class Transport implements TransportInterface, ListableReceiverInterface, MessageCountAwareInterface,
    SetupableTransportInterface, Keepalive
{
    /** The number of jobs in one answer to TW.LIST. */
    private const PAGE = 100;

    private ?Connection $extender = null;

    public function __construct(
        protected readonly Connection $connection,
        private readonly SerializerInterface $serializer,
        private readonly string $queue,
        private readonly float $block = 0,
    ) {
    }

    public function get(): iterable
    {
        $job = $this->ask(fn () => $this->connection->take($this->queue, $this->block));
        if ($job === null) {
            return [];
        }
        [$queue, $id, $receipt, , , , $body] = $job;
        try {
            return [$this->received($body, new ReceivedStamp($this->connection->where, $queue, $id, $receipt))];
        } catch (MessageDecodingFailedException $error) {
            $this->bury($queue, $receipt, $error->getMessage());
            throw $error;
        }
    }

    public function ack(Envelope $envelope): void
    {
        $stamp = $this->stamp($envelope);
        if (!$stamp->answered) {
            $this->ask(fn () => $this->connection->call(...$stamp->end()));
            $stamp->answered = true;
        }
    }

    /**
     * Messenger has sent the message again, or to a failure transport, or does not want it any
     * more.
     */
    public function reject(Envelope $envelope): void
    {
        $this->ack($envelope);
    }

    /**
     * Sends a message. If a worker sends the one that it has, one commit puts it and ends its job.
     */
    public function send(Envelope $envelope): Envelope
    {
        $stamp = $this->owed($envelope);
        $id = $this->put($this->queue, $envelope, $stamp);
        if ($stamp !== null) {
            $stamp->answered = true;
        }

        return $envelope->with(new TransportMessageIdStamp("$this->queue:$id"));
    }

    public function keepalive(Envelope $envelope, ?int $seconds = null): void
    {
        $stamp = $this->stamp($envelope);
        if ($stamp->receipt === null || $stamp->answered) {
            return;
        }
        // A signal may bring this call while the other connection is in the middle of a command.
        $this->extender ??= clone $this->connection;
        $words = $seconds === null ? [] : [(string) $seconds];
        $this->ask(fn () => $this->extender->answer('TW.EXTEND', $stamp->queue, $stamp->receipt, ...$words));
    }

    public function setup(): void
    {
        foreach ($this->queues() as $queue) {
            $this->ask(fn () => $this->connection->create($queue));
        }
    }

    public function getMessageCount(): int
    {
        return $this->count('pending');
    }

    public function all(?int $limit = null): iterable
    {
        foreach ($this->listed(['delayed', 'ready'], $limit) as [$queue, $job]) {
            yield $this->received($job['body'], $this->found($queue, $job));
        }
    }

    public function find(mixed $id): ?Envelope
    {
        [$queue, $job] = $this->look($id);

        return $job === null ? null : $this->received($job['body'], $this->found($queue, $job));
    }

    /** @return string[] */
    protected function queues(): array
    {
        return [$this->queue];
    }

    protected function ask(\Closure $what): mixed
    {
        try {
            return $what();
        } catch (Refused $refused) {
            throw new TransportException($refused->getMessage(), 0, $refused);
        }
    }

    protected function put(string $queue, Envelope $envelope, ?ReceivedStamp $ends): int
    {
        $encoded = $this->serializer->encode($envelope->withoutAll(TransportMessageIdStamp::class));
        $body = json_encode((object) ($encoded['headers'] ?? []), \JSON_THROW_ON_ERROR)."\n".$encoded['body'];
        $delay = $envelope->last(DelayStamp::class)?->getDelay() ?? 0;

        return $this->ask(fn () => $this->connection->put($queue, $body, $delay, $ends?->end() ?? []));
    }

    protected function bury(string $queue, string $receipt, string $reason): void
    {
        $this->ask(fn () => $this->connection->answer('TW.BURY', $queue, $receipt, 'REASON', $reason));
    }

    protected function received(string $body, ReceivedStamp $stamp): Envelope
    {
        [$headers, $text] = explode("\n", $body, 2) + [1 => ''];
        $headers = json_decode($headers, true);
        if (!\is_array($headers)) {
            throw new MessageDecodingFailedException("The job $stamp->id of the queue $stamp->queue "
                .'was not put by Messenger.');
        }
        $envelope = $this->serializer->decode(['body' => $text, 'headers' => $headers]);

        return $envelope->with($stamp, new TransportMessageIdStamp("$stamp->queue:$stamp->id"));
    }

    protected function found(string $queue, array $job): ReceivedStamp
    {
        return new ReceivedStamp($this->connection->where, $queue, $job['id']);
    }

    /** Returns the job of this daemon for a received message that has not been answered. */
    protected function owed(Envelope $envelope): ?ReceivedStamp
    {
        $stamp = $envelope->last(ReceivedStamp::class);

        return $stamp?->where === $this->connection->where && !$stamp->answered ? $stamp : null;
    }

    /** Returns the queue and the job of an id that a stamp has. */
    protected function look(mixed $id): array
    {
        [$queue, $number] = explode(':', (string) $id, 2) + [1 => ''];
        if (!\in_array($queue, $this->queues(), true) || !ctype_digit($number)) {
            return [$queue, null];
        }
        $job = $this->ask(fn () => $this->connection->call('TW.GET', $queue, $number));

        return [$queue, $job ? Connection::map($job) : null];
    }

    protected function count(string $figure): int
    {
        return array_sum(array_map(fn ($queue) => $this->ask(
            fn () => Connection::map($this->connection->call('TW.STATS', $queue))[$figure]), $this->queues()));
    }

    /** Returns queues and jobs, with their bodies, in these states. */
    protected function listed(array $states, ?int $limit): iterable
    {
        foreach ($this->queues() as $queue) {
            $cursor = '0';
            do {
                [$cursor, $jobs] = $this->ask(fn () => $this->connection->call('TW.LIST', $queue,
                    'CURSOR', (string) $cursor, 'COUNT', (string) self::PAGE));
                foreach (array_map([Connection::class, 'map'], $jobs) as $job) {
                    if ($limit === 0) {
                        return;
                    }
                    [, $job] = $this->look("$queue:$job[id]");
                    if ($job !== null && \in_array($job['state'], $states)) {
                        yield [$queue, $job];
                        $limit = $limit === null ? null : $limit - 1;
                    }
                }
            } while ((int) $cursor !== 0);
        }
    }

    private function stamp(Envelope $envelope): ReceivedStamp
    {
        return $envelope->last(ReceivedStamp::class)
            ?? throw new LogicException('The message was not received from twjobd.');
    }
}
