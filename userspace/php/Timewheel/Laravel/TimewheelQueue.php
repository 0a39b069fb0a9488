<?php
// SPDX-License-Identifier: LGPL-2.1-or-later
namespace Timewheel\Laravel;

use Illuminate\Contracts\Queue\Queue as QueueContract;
use Illuminate\Queue\Queue;
use Timewheel\Jobs\Connection;

/**
 * Laravel's jobs are jobs of twjobd. A command that twjobd refuses throws
 * Timewheel\Jobs\Refused.
 */
class TimewheelQueue extends Queue implements QueueContract
{
    public function __construct(
        private readonly Connection $twjobd,
        private readonly string $default,
        private readonly float $blockFor = 0,
        ?bool $afterCommit = null,
    ) {
        $this->dispatchAfterCommit = $afterCommit;
    }

    public function push($job, $data = '', $queue = null)
    {
        return $this->later(0, $job, $data, $queue);
    }

    public function later($delay, $job, $data = '', $queue = null)
    {
        return $this->enqueueUsing($job, $this->createPayload($job, $this->getQueue($queue), $data),
            $queue, $delay ?: null,
            fn ($payload, $queue, $delay) => $this->pushRaw($payload, $queue, ['delay' => $delay ?? 0]));
    }

    public function pushRaw($payload, $queue = null, array $options = [])
    {
        return $this->twjobd->put($this->getQueue($queue), $payload,
            $this->milliseconds($options['delay'] ?? 0));
    }

    /**
     * Returns the time until a point of time, exactly, as a job is never early; Laravel cuts off
     * to seconds.
     */
    private function milliseconds($delay): int
    {
        $delay = $this->parseDateInterval($delay);

        return $delay instanceof \DateTimeInterface
            ? (int) ceil(1000 * ((float) $delay->format('U.u') - microtime(true))) : 1000 * (int) $delay;
    }

    public function pop($queue = null)
    {
        $queue = $this->getQueue($queue);
        $wait = $this->blockFor;
        while ($job = $this->twjobd->take($queue, $wait)) {
            [, $id, $receipt, $attempt, , , $body] = $job;
            if (\is_array(json_decode($body, true))) {
                return new TimewheelJob($this->container, $this->twjobd, $this->connectionName, $queue,
                    (string) $id, $receipt, $attempt, $body);
            }
            $this->twjobd->answer('TW.BURY', $queue, $receipt, 'REASON', 'the job was not put by Laravel');
            $wait = 0;
        }

        return null;
    }

    public function size($queue = null)
    {
        return $this->figure($queue, 'pending') + $this->figure($queue, 'held');
    }

    public function getQueue($queue)
    {
        return $queue ?: $this->default;
    }

    private function figure(?string $queue, string $name): int
    {
        return Connection::map($this->twjobd->call('TW.STATS', $this->getQueue($queue)))[$name];
    }

    // Laravel asks for these from version 12 on. Its "pending" means the jobs that are due.

    public function pendingSize($queue = null)
    {
        return $this->figure($queue, 'due');
    }

    public function delayedSize($queue = null)
    {
        return $this->figure($queue, 'pending') - $this->figure($queue, 'due');
    }

    public function reservedSize($queue = null)
    {
        return $this->figure($queue, 'held');
    }

    public function creationTimeOfOldestPendingJob($queue = null)
    {
        return $this->figure($queue, 'due') ? time() - intdiv($this->figure($queue, 'oldest_ms'), 1000) : null;
    }
}
