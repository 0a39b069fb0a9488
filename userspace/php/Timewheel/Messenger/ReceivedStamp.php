<?php
// SPDX-License-Identifier: LGPL-2.1-or-later
namespace Timewheel\Messenger;

use Symfony\Component\Messenger\Stamp\NonSendableStampInterface;

/** The job of a received message. A job that was found in a list has no receipt. */
final class ReceivedStamp implements NonSendableStampInterface
{
    /** Whether the worker has answered already, as by a retry, which ends the job itself. */
    public bool $answered = false;

    public function __construct(
        public readonly string $where,
        public readonly string $queue,
        public readonly string $id,
        public readonly ?string $receipt = null,
    ) {
    }

    /** Returns the words that end the job. */
    public function end(): array
    {
        return $this->receipt === null ? ['TW.DELETE', $this->queue, $this->id]
            : ['TW.ACK', $this->queue, $this->receipt];
    }
}
