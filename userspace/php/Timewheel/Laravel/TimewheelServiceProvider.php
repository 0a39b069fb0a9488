<?php
// SPDX-License-Identifier: LGPL-2.1-or-later
namespace Timewheel\Laravel;

use Illuminate\Support\ServiceProvider;

/** Makes the driver "timewheel" known to Laravel's queues. */
class TimewheelServiceProvider extends ServiceProvider
{
    public function register()
    {
        $this->callAfterResolving('queue',
            static fn ($manager) => $manager->addConnector('timewheel', static fn () => new Connector()));
    }
}
