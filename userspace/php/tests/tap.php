<?php
// SPDX-License-Identifier: GPL-2.0-only
//
// What the tests share: TAP, a twjobd with wheels of its process, and what may stand before it.
// The classes of frameworks are Debian's. A warning, or a deprecation of our own, is an error.

foreach (['Symfony/Component/Messenger', 'Symfony/Component/EventDispatcher', 'Symfony/Component/Console',
        'Illuminate/Queue', 'Illuminate/Events', 'Illuminate/Bus'] as $part) {
    if (is_file("/usr/share/php/$part/autoload.php")) {
        require_once "/usr/share/php/$part/autoload.php";
    }
}
require getenv('TIMEWHEEL_PHP').'/Timewheel/autoload.php';

error_reporting(\E_ALL);
set_error_handler(static function (int $kind, string $text, string $file, int $line): bool {
    if (str_starts_with($file, '/usr/share/php/') || !(error_reporting() & $kind)) {
        return false;
    }
    throw new ErrorException($text, 0, $kind, $file, $line);
});
ini_set('display_errors', 'stderr');

function same(mixed $wanted, mixed $found, string $what = ''): void
{
    if ($wanted !== $found) {
        throw new Exception("$what: ".var_export($found, true).', not '.var_export($wanted, true));
    }
}

function contains(string $text, string ...$words): void
{
    foreach ($words as $word) {
        str_contains($text, $word) || throw new Exception("\"$word\" is not in: $text");
    }
}

/** The exception that the call throws, of this class and with these words. */
function refused(string $class, Closure $call, string ...$words): Throwable
{
    try {
        $call();
    } catch (Throwable $error) {
        $error instanceof $class || throw $error;
        contains($error->getMessage(), ...$words);

        return $error;
    }
    throw new Exception('nothing was refused');
}

function eventually(Closure $check, float $seconds = 30): mixed
{
    for ($end = microtime(true) + $seconds; !($found = $check()); usleep(20000)) {
        microtime(true) < $end || throw new Exception('this never came');
    }

    return $found;
}

/** Its text, and where it was thrown. */
function debug_trace(Throwable $error): array
{
    $lines = [get_class($error).': '.$error->getMessage(), $error->getFile().':'.$error->getLine()];
    foreach ($error->getTrace() as $frame) {
        $lines[] = ($frame['file'] ?? '').':'.($frame['line'] ?? '').' '.$frame['function'];
    }

    return $lines;
}

/** Functions by the sentences that they hold. Returns the exit status. */
function results(array $tests): int
{
    $number = $failed = 0;
    foreach ($tests as $name => $test) {
        ++$number;
        try {
            $test();
            echo "ok $number - $name\n";
        } catch (Throwable $error) {
            $failed = 1;
            foreach (debug_trace($error) as $line) {
                echo '# ', strtr($line, "\n", ' '), "\n";
            }
            echo "not ok $number - $name\n";
        }
    }
    echo "1..$number\n";

    return $failed;
}

/** Processes of a test, which end with it. */
final class Process
{
    private static array $all = [];
    public readonly int $pid;
    private $process;

    public function __construct(array $words, array $environment = [], ?string $log = null)
    {
        $this->process = proc_open($words, [['file', '/dev/null', 'r'], 2 => ['file', $log ?? '/dev/null', 'a'],
            1 => ['file', $log ?? '/dev/null', 'a']], $pipes, null, $environment + getenv());
        $this->pid = proc_get_status($this->process)['pid'];
        self::$all ?: register_shutdown_function(static function () {
            foreach (self::$all as $process) {
                $process->end(\SIGKILL);
            }
        });
        self::$all[] = $this;
    }

    public function runs(): bool
    {
        return $this->process !== null && proc_get_status($this->process)['running'];
    }

    public function end(int $signal): void
    {
        if ($this->process !== null) {
            proc_terminate($this->process, $signal);
            proc_close($this->process);
            $this->process = null;
        }
    }
}

final class Daemon
{
    public const PASSWORD = 'se:cr@t';

    public readonly string $url;
    public readonly string $tcp;
    public readonly string $folder;
    public readonly int $port;
    private Process $process;
    private ?Redis $redis = null;

    public function __construct(string $store = 'memory')
    {
        $this->folder = trim(shell_exec('mktemp -d'));
        register_shutdown_function(fn () => exec("rm -rf $this->folder"));
        $socket = stream_socket_server('tcp://127.0.0.1:0');
        $this->port = (int) substr(strrchr(stream_socket_get_name($socket, false), ':'), 1);
        fclose($socket);
        $this->url = "timewheel://$this->folder/socket";
        $this->tcp = 'timewheel://:'.rawurlencode(self::PASSWORD)."@127.0.0.1:$this->port";
        $store = $store === 'disk' ? "$this->folder/jobs" : $store;
        file_put_contents("$this->folder/conf", "listen = $this->folder/socket\n"
            ."listen = 127.0.0.1:$this->port\npassword = ".self::PASSWORD."\n"
            ."store = $store\nwheels = process\nmax-body = 1048576\n");
        $this->start();
    }

    public function start(): void
    {
        $this->process = new Process([getenv('TWJOBD'), '-c', "$this->folder/conf"], [], "$this->folder/log");
        eventually(function () {
            $this->process->runs() || throw new Exception(file_get_contents("$this->folder/log"));
            try {
                $this->redis = new Redis();

                return @$this->redis->connect("$this->folder/socket") && $this->redis->ping();
            } catch (RedisException) {
                return false;
            }
        });
        $this->redis->setOption(Redis::OPT_REPLY_LITERAL, true);
    }

    public function stop(int $signal = \SIGTERM): void
    {
        $this->process->end($signal);
    }

    public function __invoke(string ...$words): mixed
    {
        return $this->redis->rawCommand(...$words);
    }

    public function stats(string $queue): array
    {
        return Timewheel\Jobs\Connection::map($this('TW.STATS', $queue));
    }

    public function jobs(string $queue, string ...$words): array
    {
        return array_map([Timewheel\Jobs\Connection::class, 'map'],
            $this('TW.LIST', $queue, 'COUNT', '1000', ...$words)[1]);
    }

    /** The URL of a proxy before it, see proxy.php. */
    public function behind(string $what, string $verb, string $text = ''): string
    {
        $path = "$this->folder/proxy-".bin2hex(random_bytes(4));
        new Process([\PHP_BINARY, __DIR__.'/proxy.php', $path, "$this->folder/socket", $what, $verb, $text]);
        eventually(fn () => @stream_socket_client("unix://$path"));

        return "timewheel://$path";
    }
}
