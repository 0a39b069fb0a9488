<?php
// SPDX-License-Identifier: LGPL-2.1-or-later
namespace Timewheel\Jobs;

/**
 * Verbs of twjobd over phpredis. The class knows nothing of the frameworks.
 *
 * Each put has a key and each receipt is one delivery's, so that a command without an answer
 * can be sent again. The connection is never a persistent one: its end gives back the jobs
 * that it took.
 */
class Connection
{
    public const DEFAULT_PORT = 7076;

    /** Seconds for which a command is sent again while twjobd is restarted, or is busy. */
    private const PATIENCE = 5;
    private const CONNECT = 3;
    /** Seconds after which a connection without an answer is given up. */
    private const ANSWER = 30;
    private const AGAIN = ['BUSY', 'LOADING', 'UNAVAILABLE'];

    public readonly string $where;
    private ?\Redis $redis = null;
    /** Whether twjobd has ever answered. Before its first answer nobody waits for it. */
    private bool $met = false;

    private function __construct(
        private readonly string $host,
        private readonly int $port,
        #[\SensitiveParameter] private readonly ?string $password,
        private readonly string $create,
    ) {
        $this->where = $port ? "$host:$port" : $host;
    }

    /**
     * timewheel:///run/twjobd/socket or timewheel://:password@host:port.
     *
     * Queues that are not there are made with these words of TW.CREATE, as "LEASE 60".
     */
    public static function to(#[\SensitiveParameter] string $url, string $create): self
    {
        $url = strtok($url, '?');
        if (preg_match('~^timewheel://(/.+)$~', $url, $found)) {
            return new self(rawurldecode($found[1]), 0, null, $create);
        }
        $parts = parse_url($url) ?: [];
        if (($parts['scheme'] ?? '') !== 'timewheel' || !isset($parts['host'])) {
            throw new \InvalidArgumentException('The URL of twjobd is none. It has to be '
                .'timewheel:///run/twjobd/socket or timewheel://:PASSWORD@HOST:PORT.');
        }
        $password = isset($parts['pass']) ? rawurldecode($parts['pass']) : null;

        return new self(trim($parts['host'], '[]'), $parts['port'] ?? self::DEFAULT_PORT, $password, $create);
    }

    /** Makes another connection to the same daemon. */
    public function __clone()
    {
        $this->redis = null;
    }

    /**
     * Puts a job, due in so many milliseconds, in one commit with the end of another job, if @end
     * has the words for it. Returns the job's number.
     *
     * @param string[] $end
     */
    public function put(string $queue, string $body, int $delay = 0, array $end = []): int
    {
        $key = bin2hex(random_bytes(16));
        $put = ['TW.PUT', $queue, $body, 'KEY', $key];
        if ($delay > 0) {
            array_push($put, 'IN', sprintf('%d.%03d', intdiv($delay, 1000), $delay % 1000));
        }
        if ($end) {
            return $this->patiently($queue, $key, fn () => $this->together([$end, $put])[1][0]);
        }

        return $this->patiently($queue, $key, fn () => $this->once($put)[0]);
    }

    /** Takes a job: its queue, number, receipt, try, due time, key and body; or null. */
    public function take(string $queue, float $block = 0): ?array
    {
        $wait = $block > 0 ? ['BLOCK', (string) (int) ceil($block * 1000)] : [];
        $jobs = $this->call('TW.TAKE', $queue, 'BOUND', ...$wait);

        return $jobs ? $jobs[0] : null;
    }

    /** Gives the worker's answer to a job that it has: TW.ACK, TW.NACK, TW.BURY or TW.EXTEND. */
    public function answer(string $verb, string $queue, string $receipt, string ...$words): mixed
    {
        return $this->call($verb, $queue, $receipt, ...$words);
    }

    /** Returns the values of TW.STATS, TW.GET or a job of TW.LIST, by their names. */
    public static function map(array $answer): array
    {
        return array_column(array_chunk($answer, 2), 1, 0);
    }

    public function create(string $queue): void
    {
        $this->once(['TW.CREATE', $queue, ...explode(' ', $this->create), 'IFNEW']);
    }

    public function call(string $verb, string $queue, string ...$words): mixed
    {
        return $this->patiently($queue, null, fn () => $this->once([$verb, $queue, ...$words]),
            \in_array($verb, ['TW.ACK', 'TW.NACK', 'TW.BURY']));
    }

    /**
     * Returns the result of $send, which is called again after errors that pass. A command whose
     * answer was lost may have been carried out: then the put's key is held, or the receipt is
     * stale.
     */
    private function patiently(string $queue, ?string $key, \Closure $send, bool $ends = false): mixed
    {
        $end = microtime(true) + self::PATIENCE;
        $lost = $made = false;
        while (true) {
            try {
                return $send();
            } catch (Refused $refused) {
                $word = $refused->word;
                if ($lost && $key !== null && \in_array($word, ['HELD', 'STALE'])) {
                    $job = $this->call('TW.GETKEY', $queue, $key);
                    if ($job) {
                        return self::map($job)['id'];
                    }
                }
                if ($lost && $ends && $word === 'STALE') {
                    return 1;
                }
                if ($word === 'NOQUEUE' && !$made) {
                    $this->create($queue);
                    $made = true;
                    continue;
                }
                $passing = \in_array($word, self::AGAIN) || $word === 'UNREACHABLE' && $this->met;
                if (!$passing || microtime(true) > $end) {
                    throw $refused;
                }
                $lost = $lost || $word === 'UNREACHABLE';
                usleep(100000);
            }
        }
    }

    /** Carries out all these commands by one commit, or none of them. */
    private function together(array $commands): array
    {
        $this->once(['MULTI']);
        try {
            foreach ($commands as $command) {
                $this->once($command);
            }
        } catch (Refused $refused) {
            if ($refused->word !== 'UNREACHABLE') {
                $this->once(['DISCARD']);
            }
            throw $refused;
        }

        return $this->once(['EXEC'], $commands[array_key_last($commands)][1]);
    }

    private function once(array $words, ?string $queue = null): mixed
    {
        $what = $words[0].' of the queue '.($queue ?? $words[1] ?? '');
        try {
            $this->connect();
            $this->redis->clearLastError();
            $answer = $this->redis->rawCommand(...$words);
            $error = $answer === false ? $this->redis->getLastError() : null;
        } catch (\RedisException $exception) {
            $error = $this->error($exception);
        }
        if ($error !== null) {
            throw Refused::by($error, $what);
        }

        return $answer;
    }

    /**
     * Returns the text of an answer that is an error; all other exceptions are about the
     * connection.
     */
    private function error(\RedisException $exception): string
    {
        $text = $exception->getMessage();
        if (preg_match('/^(BUSY|BURIED|DRAINING|EXECABORT|FULL|HELD|LOADING|NOAUTH|NOPERM|NOPROTO'
                .'|NOQUEUE|STALE|TOOBIG|UNAVAILABLE|WRONGPASS|ERR)( |$)/', $text)) {
            return $text;
        }
        $this->redis = null;
        throw Refused::unreachable($this->where, $exception);
    }

    private function connect(): void
    {
        if ($this->redis !== null) {
            return;
        }
        $redis = new \Redis();
        // A failure gives an exception, and no warning.
        if (!@$redis->connect($this->host, $this->port, self::CONNECT, null, 0, self::ANSWER)) {
            throw new \RedisException('no connection');
        }
        $redis->setOption(\Redis::OPT_REPLY_LITERAL, true);
        // phpredis would otherwise connect again within a transaction, and send its rest outside.
        $redis->setOption(\Redis::OPT_MAX_RETRIES, 0);
        if ($this->port) {
            $redis->setOption(\Redis::OPT_TCP_KEEPALIVE, true);
        }
        if ($this->password !== null) {
            $redis->auth($this->password);
        }
        $this->redis = $redis;
        $this->met = true;
    }
}
