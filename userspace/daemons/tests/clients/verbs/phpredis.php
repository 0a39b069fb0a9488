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

// An error is false or null, as is an answer that is null.
function answer($answer)
{
	global $redis;

	if (!is_array($answer) && !$answer && $redis->getLastError() !== null)
		throw new Exception($redis->getLastError());
	return $answer;
}

function send($words)
{
	global $redis;

	$redis->clearLastError();
	return answer($redis->rawCommand(...$words));
}

function transaction($commands)
{
	global $redis;

	$redis->clearLastError();
	$multi = $redis->multi();
	foreach ($commands as $words)
		$multi->rawCommand(...$words);
	$answer = answer($multi->exec());
	// Version 6 tells no error here.
	if (!is_array($answer))
		throw new Exception('EXECABORT');
	return $answer;
}

speak();
