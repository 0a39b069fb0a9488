<?php
// SPDX-License-Identifier: LGPL-2.1-or-later
namespace Timewheel\Messenger;

use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Exception\MessageDecodingFailedException;
use Symfony\Component\Messenger\Exception\TransportException;
use Symfony\Component\Messenger\Stamp\ErrorDetailsStamp;
use Symfony\Component\Messenger\Stamp\RedeliveryStamp;
use Symfony\Component\Messenger\Stamp\SentToFailureTransportStamp;
use Symfony\Component\Messenger\Stamp\TransportMessageIdStamp;
use Symfony\Component\Messenger\Transport\Serialization\SerializerInterface;
use Timewheel\Jobs\Connection;

/**
 * A failure transport: the buried jobs of queues, with twjobd's reasons.
 *
 * A message that is sent to it is buried in its queue. A buried message ends when it was
 * handled, and is put again into its queue when it failed and is to be tried again.
 */
class BuriedTransport extends Transport
{
    /** @param string[] $buried */
    public function __construct(Connection $connection, SerializerInterface $serializer,
        private readonly array $buried)
    {
        parent::__construct($connection, $serializer, $buried[0]);
    }

    public function get(): iterable
    {
        return $this->all(1);
    }

    public function send(Envelope $envelope): Envelope
    {
        $stamp = $this->owed($envelope);
        if ($stamp === null || !\in_array($stamp->queue, $this->buried, true)) {
            throw new TransportException('This failure transport buries messages of the queues '
                .implode(', ', $this->buried).' of '.$this->connection->where.', and this one is of '
                .'none of them. Add its queue to "buried", or give its transport another '
                .'failure_transport.');
        }
        $id = $stamp->id;
        if ($stamp->receipt !== null) {
            $error = $envelope->last(ErrorDetailsStamp::class);
            $reason = $error ? $error->getExceptionClass().': '.$error->getExceptionMessage() : 'failed';
            $this->bury($stamp->queue, $stamp->receipt, $reason);
        } elseif ($envelope->getMessage() instanceof Undecoded) {
            $this->ask(fn () => $this->connection->call('TW.KICK', $stamp->queue, $id));
        } else {
            $again = $envelope->withoutAll(SentToFailureTransportStamp::class);
            $id = $this->put($stamp->queue, $again, $stamp);
        }
        $stamp->answered = true;

        return $envelope->with(new TransportMessageIdStamp("$stamp->queue:$id"));
    }

    public function getMessageCount(): int
    {
        return $this->count('buried');
    }

    public function all(?int $limit = null): iterable
    {
        foreach ($this->listed(['buried'], $limit) as [$queue, $job]) {
            yield $this->failed($queue, $job);
        }
    }

    public function find(mixed $id): ?Envelope
    {
        [$queue, $job] = $this->look($id);

        return ($job['state'] ?? null) === 'buried' ? $this->failed($queue, $job) : null;
    }

    protected function queues(): array
    {
        return $this->buried;
    }

    /** Returns the message with all that Messenger's commands tell of a failed one. */
    private function failed(string $queue, array $job): Envelope
    {
        $stamp = $this->found($queue, $job);
        try {
            $envelope = $this->received($job['body'], $stamp);
        } catch (MessageDecodingFailedException) {
            $envelope = new Envelope(new Undecoded($job['body']),
                [$stamp, new TransportMessageIdStamp("$queue:$stamp->id")]);
        }
        $reason = $job['reason'] ?? '';
        [$class, $text] = preg_match('/^([\w\\\\]+): (.*)$/s', $reason, $parts)
            ? [$parts[1], $parts[2]] : ['', $reason];
        $at = new \DateTimeImmutable('@'.intdiv($job['failed'] ?? 0, 1000));

        return $envelope->with(new SentToFailureTransportStamp($queue),
            new RedeliveryStamp(0, $at->setTimezone(new \DateTimeZone(date_default_timezone_get()))),
            new ErrorDetailsStamp($class, 0, $text));
    }
}
