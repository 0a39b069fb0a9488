<?php
// SPDX-License-Identifier: LGPL-2.1-or-later
namespace Timewheel\Laravel;

use Illuminate\Container\Container;
use Illuminate\Contracts\Queue\Job as JobContract;
use Illuminate\Queue\Jobs\Job;
use Timewheel\Jobs\Connection;

/** A job that a worker has. */
class TimewheelJob extends Job implements JobContract
{
    public function __construct(
        Container $container,
        private readonly Connection $twjobd,
        string $connectionName,
        string $queue,
        private readonly string $id,
        private readonly string $receipt,
        private readonly int $attempt,
        private readonly string $body,
    ) {
        $this->container = $container;
        $this->connectionName = $connectionName;
        $this->queue = $queue;
    }

    public function delete()
    {
        parent::delete();
        $this->twjobd->answer('TW.ACK', $this->queue, $this->receipt);
    }

    public function release($delay = 0)
    {
        parent::release($delay);
        $answer = $this->twjobd->answer('TW.NACK', $this->queue, $this->receipt,
            'IN', (string) max(0, $this->secondsUntil($delay)));
        if ($answer === 'BURIED') {
            throw new \RuntimeException("The job $this->id was released after the last try that the "
                ."queue $this->queue allows, and is buried. Laravel counts tries itself: "
                ."\"twjob create $this->queue --tries 0\"; \"twjob kick\" brings the job back.");
        }
    }

    public function attempts()
    {
        return $this->attempt;
    }

    public function getJobId()
    {
        return $this->id;
    }

    public function getRawBody()
    {
        return $this->body;
    }
}
