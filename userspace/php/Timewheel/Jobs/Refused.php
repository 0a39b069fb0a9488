<?php
// SPDX-License-Identifier: LGPL-2.1-or-later
namespace Timewheel\Jobs;

/**
 * Tells what twjobd has not done, why, and what to do.
 *
 * twjob-protocol(7) lists the codes; UNREACHABLE, which is none of them, stands for a daemon
 * that does not answer.
 */
class Refused extends \RuntimeException
{
    private const ADVICE = [
        'BUSY' => 'Send it again later.',
        'DRAINING' => 'An administrator drains this queue; "twjob resume QUEUE" ends that.',
        'ERR' => 'If twjobd is older than php-timewheel it has to be upgraded: '
            .'"apt install timewheel-jobs"; else an option is wrong.',
        'FULL' => 'Wait until workers have done some jobs, or give the queue more room: '
            .'"twjob create QUEUE --max-jobs N".',
        'LOADING' => 'Send it again later.',
        'NOAUTH' => 'Give the password of twjobd.conf(5) in the URL: '
            .'timewheel://:PASSWORD@HOST:PORT.',
        'NOPERM' => 'Ask the administrator of twjobd to allow it, see twjobd.conf(5).',
        'NOQUEUE' => 'Make the queue: "twjob create QUEUE".',
        'STALE' => 'The lease was over or the connection was lost, so that another worker may have '
            .'the job; make the lease of the queue longer than its jobs take.',
        'TOOBIG' => 'Keep the data elsewhere and put a reference, or raise max-body in '
            .'twjobd.conf(5).',
        'UNAVAILABLE' => 'Look at the log of twjobd, and send it again later.',
        'UNREACHABLE' => 'Start it by "systemctl start twjobd", or correct the URL.',
        'WRONGPASS' => 'Give the password of twjobd.conf(5) in the URL: '
            .'timewheel://:PASSWORD@HOST:PORT.',
    ];

    private function __construct(
        public readonly string $word,
        string $message,
        ?\Throwable $previous = null,
    ) {
        parent::__construct($message, 0, $previous);
    }

    /**
     * Makes it of an error of twjobd. The error of a transaction tells the command that was
     * refused.
     */
    public static function by(string $error, string $what): self
    {
        $text = preg_replace('/^EXECABORT \d+: /', '', $error);
        $word = preg_match('/^[A-Z]+(?= |$)/', $text, $found) ? $found[0] : 'ERR';
        $advice = self::ADVICE[$word] ?? 'See twjob-protocol(7).';

        return new self($word, "$what: twjobd refuses it: ".rtrim($text, '.').". $advice");
    }

    public static function unreachable(string $where, \Throwable $error): self
    {
        return new self('UNREACHABLE', "twjobd does not answer at $where: "
            .trim($error->getMessage()).'. '.self::ADVICE['UNREACHABLE'], $error);
    }
}
