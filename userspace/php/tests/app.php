<?php
// SPDX-License-Identifier: GPL-2.0-only
//
// Sets up what an application of Laravel has: the provider, a queue's manager and a worker. Without
// Laravel's class of an application, the container is one.

use Illuminate\Bus\Dispatcher as Bus;
use Illuminate\Container\Container;
use Illuminate\Contracts\Debug\ExceptionHandler;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Events\Dispatcher;
use Illuminate\Queue\InteractsWithQueue;
use Illuminate\Queue\QueueManager;
use Illuminate\Queue\Worker;
use Illuminate\Queue\WorkerOptions;
use Timewheel\Laravel\TimewheelServiceProvider;

/** This is a job as programs have it. */
final class Mail implements ShouldQueue
{
    use InteractsWithQueue;

    public static ?Closure $handler = null;

    public function __construct(public string $name)
    {
    }

    public function handle(): void
    {
        (self::$handler)($this);
    }
}

final class Reports implements ExceptionHandler
{
    public array $all = [];

    public function report(Throwable $e)
    {
        $this->all[] = $e;
    }

    public function shouldReport(Throwable $e)
    {
        return true;
    }

    public function render($request, Throwable $e)
    {
    }

    public function renderForConsole($output, Throwable $e)
    {
    }
}

/** @return array{Illuminate\Queue\QueueManager, Worker, Reports, Dispatcher} */
function laravel(array $config): array
{
    $app = new Container();
    Container::setInstance($app);
    $app['config'] = ['queue.default' => 'twjobd', 'queue.connections.twjobd' => ['driver' => 'timewheel'] + $config];
    $events = new Dispatcher($app);
    $app->instance(Illuminate\Contracts\Events\Dispatcher::class, $events);
    $app->instance('events', $events);
    $app->instance(Illuminate\Contracts\Bus\Dispatcher::class, new Bus($app));
    $app->instance(Container::class, $app);
    $app->instance(Illuminate\Contracts\Container\Container::class, $app);
    (new TimewheelServiceProvider($app))->register();
    $app->singleton('queue', static fn ($app) => new QueueManager($app));
    $reports = new Reports();

    return [$app['queue'], new Worker($app['queue'], $events, $reports, static fn () => false), $reports, $events];
}

function options(int $tries = 1, int $backoff = 0): WorkerOptions
{
    $options = new WorkerOptions();
    [$options->maxTries, $options->backoff, $options->sleep, $options->memory] = [$tries, $backoff, 0.01, 1024];

    return $options;
}
