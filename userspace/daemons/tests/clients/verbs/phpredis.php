<?php
// SPDX-License-Identifier: GPL-2.0-only
//
// phpredis: see check.
require __DIR__ . '/speak.php';

$redis = new Redis();
if ($argv[1][0] === '/') {
	$redis->connect($argv[1]);
} else {
	$redis->connect('127.0.0.1', $argv[1]);
	$redis->auth('secret');
}
// Without it OK and BURIED are both true.
$redis->setOption(Redis::OPT_REPLY_LITERAL, true);

// An error is false, as is null.
function send($words)
{
	global $redis;

	$redis->clearLastError();
	$answer = $redis->rawCommand(...$words);
	if (!$answer && $redis->getLastError() !== null)
		throw new Exception($redis->getLastError());
	return $answer;
}

// Version 5 waits for more behind an error of EXEC, and version 6 does not tell the error.
function transaction($commands)
{
	global $redis;

	$multi = $redis->multi();
	foreach ($commands as $words)
		$multi->rawCommand(...$words);
	try {
		$answer = $multi->exec();
	} catch (RedisException $error) {
		$answer = false;
	}
	if (!is_array($answer))
		throw new Exception('EXECABORT');
	return $answer;
}

speak();
