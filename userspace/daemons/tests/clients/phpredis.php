<?php
// SPDX-License-Identifier: GPL-2.0-only
//
// phpredis.php PORT PROXY: tests phpredis with twjobd. See ioredis.js.

[, $port, $proxy] = $argv;
$failed = 0;

function expect($condition, $what)
{
	global $failed;

	if ($condition)
		return;
	echo "# $what\n";
	$failed = 1;
}

// Connects with the option that gives simple answers as texts, such as OK and BURIED. Otherwise
// they are true.
function connect($to, $persistent = null)
{
	$redis = new Redis();
	if ($persistent)
		$redis->pconnect('127.0.0.1', $to, 0, $persistent);
	else
		$redis->connect('127.0.0.1', $to);
	$redis->auth('secret');
	$redis->setOption(Redis::OPT_REPLY_LITERAL, true);
	return $redis;
}

function pipelines($redis)
{
	$pipeline = $redis->multi(Redis::PIPELINE);
	for ($i = 0; $i < 100; $i++)
		$pipeline->rawCommand('TW.PUT', 'pipe', "$i");
	$ids = $pipeline->exec();
	expect(count(array_unique($ids)) === 100 && array_filter($ids, 'is_int') === $ids,
	       '100 puts were answered ' . json_encode($ids));
}

// The take waits longer than PHP does by default.
function blocks($redis, $port)
{
	$blocking = connect($port);
	$blocking->setOption(Redis::OPT_READ_TIMEOUT, -1);
	$redis->rawCommand('TW.PUT', 'waited', 'body', 'IN', '5');
	[$job] = $blocking->rawCommand('TW.TAKE', 'waited', 'BLOCK', '0');
	expect($job[6] === 'body', 'a take that waited got no job');
	expect($redis->rawCommand('TW.ACK', 'waited', $job[2]) === 1, 'no ack');
	$hasty = connect($port);
	try {
		$hasty->rawCommand('TW.TAKE', 'waited', 'BLOCK', '0');
		expect(false, 'a take without a setting waited');
	} catch (RedisException $error) {
	}
}

// The command ends with an exception, and the next command connects again.
function is_cut($redis, ...$words)
{
	try {
		$answer = $redis->rawCommand('TW.PUT', ...$words);
		expect(false, "$words[1]: answered " . json_encode($answer));
	} catch (RedisException $error) {
	}
	expect($redis->rawCommand('PING') === 'PONG', "$words[1]: not connected again");
}

$redis = connect($port);
pipelines($redis);
blocks($redis, $port);

$redis = connect($proxy);
is_cut($redis, 'unkeyed', 'cut-a');
$redis->setOption(Redis::OPT_MAX_RETRIES, 10);
is_cut($redis, 'unkeyed', 'cut-b');
is_cut($redis, 'keyed', 'kill-c', 'KEY', 'c');
$answer = $redis->rawCommand('TW.PUT', 'keyed', 'kill-c', 'KEY', 'c');
expect($answer[1] === 'EXISTS', 'a put with a key, repeated: ' . json_encode($answer));

// Two objects share one persistent connection, as two requests do.
$redis = connect($proxy, 'puts');
is_cut($redis, 'set', 'cut-d');
unset($redis);
$redis = connect($proxy, 'puts');
is_cut($redis, 'set', 'kill-e');
exit($failed);
