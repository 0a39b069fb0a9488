<?php
// SPDX-License-Identifier: GPL-2.0-only
//
// Sets up what an application of Symfony has: a bus, a worker with its listeners, and the commands
// for failed messages, over the transports "async" and "failed".

use Symfony\Component\Console\Tester\CommandTester;
use Symfony\Component\EventDispatcher\EventDispatcher;
use Symfony\Component\Messenger\Command\FailedMessagesRemoveCommand;
use Symfony\Component\Messenger\Command\FailedMessagesRetryCommand;
use Symfony\Component\Messenger\Command\FailedMessagesShowCommand;
use Symfony\Component\Messenger\EventListener\AddErrorDetailsStampListener;
use Symfony\Component\Messenger\EventListener\SendFailedMessageForRetryListener;
use Symfony\Component\Messenger\EventListener\SendFailedMessageToFailureTransportListener;
use Symfony\Component\Messenger\EventListener\StopWorkerOnMessageLimitListener;
use Symfony\Component\Messenger\Handler\HandlersLocator;
use Symfony\Component\Messenger\MessageBus;
use Symfony\Component\Messenger\Middleware\HandleMessageMiddleware;
use Symfony\Component\Messenger\Middleware\SendMessageMiddleware;
use Symfony\Component\Messenger\Retry\MultiplierRetryStrategy;
use Symfony\Component\Messenger\Transport\Sender\SendersLocator;
use Symfony\Component\Messenger\Transport\Serialization\PhpSerializer;
use Symfony\Component\Messenger\Transport\TransportInterface;
use Symfony\Component\Messenger\Worker;
use Symfony\Contracts\Service\ServiceProviderInterface;
use Timewheel\Messenger\TransportFactory;

final class Order
{
    public function __construct(public string $name)
    {
    }
}

function transport(string $url, array $options = [], $serializer = new PhpSerializer()): TransportInterface
{
    return (new TransportFactory())->createTransport($url, $options, $serializer);
}

final class Services implements ServiceProviderInterface
{
    public function __construct(private array $services)
    {
    }

    public function get(string $id): mixed
    {
        return $this->services[$id];
    }

    public function has(string $id): bool
    {
        return isset($this->services[$id]);
    }

    public function getProvidedServices(): array
    {
        return array_map(get_class(...), $this->services);
    }
}

final class App
{
    public readonly MessageBus $bus;
    public readonly EventDispatcher $events;

    public function __construct(public TransportInterface $async, public ?TransportInterface $failed = null,
        ?Closure $handler = null, int $retries = 3, int $delay = 0)
    {
        $all = new Services(array_filter(['async' => $async, 'failed' => $failed]));
        $handlers = [Order::class => [$handler ?? static fn () => null]];
        $this->bus = new MessageBus([new SendMessageMiddleware(new SendersLocator([Order::class => ['async']], $all)),
            new HandleMessageMiddleware(new HandlersLocator($handlers))]);
        $this->events = new EventDispatcher();
        $strategy = new MultiplierRetryStrategy($retries, $delay, 1);
        $this->events->addSubscriber(new AddErrorDetailsStampListener());
        $this->events->addSubscriber(new SendFailedMessageForRetryListener($all,
            new Services(['async' => $strategy, 'failed' => $strategy])));
        if ($failed) {
            $this->events->addSubscriber(new SendFailedMessageToFailureTransportListener(
                new Services(['async' => $failed, 'failed' => $failed])));
        }
    }

    /** Handles so many messages. */
    public function work(int $count = 1): void
    {
        $limit = new StopWorkerOnMessageLimitListener($count);
        $this->events->addSubscriber($limit);
        try {
            (new Worker(['async' => $this->async], $this->bus, $this->events))->run(['sleep' => 10000]);
        } finally {
            $this->events->removeSubscriber($limit);
        }
    }

    /** Returns the output of a command. */
    public function command(string $which, array $arguments = []): string
    {
        $services = new Services(['failed' => $this->failed]);
        $command = match ($which) {
            'show' => new FailedMessagesShowCommand('failed', $services),
            'retry' => new FailedMessagesRetryCommand('failed', $services, $this->bus, $this->events),
            'remove' => new FailedMessagesRemoveCommand('failed', $services),
        };
        $tester = new CommandTester($command);
        $tester->execute($arguments, ['interactive' => false]);

        return $tester->getDisplay();
    }
}
