<?php
// SPDX-License-Identifier: GPL-2.0-only
//
// Predis: see check.
require 'Predis/Autoloader.php';
require __DIR__ . '/speak.php';
Predis\Autoloader::register();

$client = new Predis\Client($argv[1][0] === '/' ? ['scheme' => 'unix', 'path' => $argv[1]] :
			    ['port' => $argv[1], 'password' => 'secret']);

function send($words)
{
	global $client;

	$answer = $client->executeRaw($words, $error);
	if ($error)
		throw new Exception($answer);
	return $answer;
}

function transaction($commands)
{
	global $client;

	return $client->transaction(function ($multi) use ($commands) {
		foreach ($commands as $words)
			$multi->executeCommand(Predis\Command\RawCommand::create(...$words));
	});
}

speak();
