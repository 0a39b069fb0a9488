<?php
// SPDX-License-Identifier: LGPL-2.1-or-later
namespace Timewheel\Messenger;

use Symfony\Component\Messenger\Exception\InvalidArgumentException;
use Symfony\Component\Messenger\Transport\Serialization\SerializerInterface;
use Symfony\Component\Messenger\Transport\TransportFactoryInterface;
use Symfony\Component\Messenger\Transport\TransportInterface;
use Timewheel\Jobs\Connection;

/**
 * Makes transports of timewheel:///run/twjobd/socket?queue=mails, whose options may as well be
 * in the array; README.md tells of them.
 */
class TransportFactory implements TransportFactoryInterface
{
    private const DEFAULTS = ['queue' => 'messages', 'lease' => 3600, 'block' => 0, 'buried' => ''];

    public function createTransport(#[\SensitiveParameter] string $dsn,
        #[\SensitiveParameter] array $options, SerializerInterface $serializer): TransportInterface
    {
        parse_str(parse_url(preg_replace('~^[^:]*:///~', 'file:///', $dsn), \PHP_URL_QUERY) ?: '', $query);
        unset($options['transport_name']);
        $options = $query + $options + self::DEFAULTS;
        if ($wrong = array_diff_key($options, self::DEFAULTS)) {
            throw new InvalidArgumentException('Transports of twjobd have no option "'
                .implode('", "', array_keys($wrong)).'"; they have "'
                .implode('", "', array_keys(self::DEFAULTS)).'".');
        }
        try {
            $connection = Connection::to($dsn, "LEASE $options[lease]");
        } catch (\InvalidArgumentException $error) {
            throw new InvalidArgumentException($error->getMessage(), 0, $error);
        }
        if ($options['buried'] !== '') {
            return new BuriedTransport($connection, $serializer, explode(',', $options['buried']));
        }

        return new Transport($connection, $serializer, $options['queue'], (float) $options['block']);
    }

    public function supports(#[\SensitiveParameter] string $dsn,
        #[\SensitiveParameter] array $options): bool
    {
        return str_starts_with($dsn, 'timewheel://');
    }
}
