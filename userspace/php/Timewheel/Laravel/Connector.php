<?php
// SPDX-License-Identifier: LGPL-2.1-or-later
namespace Timewheel\Laravel;

use Illuminate\Queue\Connectors\ConnectorInterface;
use Timewheel\Jobs\Connection;

/** Makes the queue of a connection in config/queue.php; README.md tells of its options. */
class Connector implements ConnectorInterface
{
    public function connect(array $config)
    {
        $lease = $config['retry_after'] ?? 90;
        // Laravel counts the tries of its jobs itself.
        $connection = Connection::to($config['url'] ?? 'timewheel:///run/twjobd/socket', "LEASE $lease TRIES 0");

        return new TimewheelQueue($connection, $config['queue'] ?? 'default',
            (float) ($config['block_for'] ?? 0), $config['after_commit'] ?? null);
    }
}
