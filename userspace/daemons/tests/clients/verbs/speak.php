<?php
// SPDX-License-Identifier: GPL-2.0-only
//
// What the clients for PHP share: see check. They have functions send() and transaction(), which
// answer, or throw an exception with the error.

function text($answer)
{
	if ($answer === null || $answer === false)
		return 'nil';
	if (is_array($answer))
		return '[' . implode('|', array_map('text', $answer)) . ']';
	return (string)$answer;
}

function speak()
{
	$gathered = null;
	while (($line = fgets(STDIN)) !== false) {
		$words = explode(' ', rtrim($line, "\n"));
		if ($words === ['MULTI']) {
			$gathered = [];
			continue;
		}
		if ($gathered !== null && $words !== ['EXEC']) {
			$gathered[] = $words;
			continue;
		}
		try {
			$answer = text($gathered === null ? send($words) : transaction($gathered));
		} catch (Exception $error) {
			$answer = '!' . $error->getMessage();
		}
		$gathered = null;
		echo str_replace("\n", ' ', $answer), "\n";
	}
}
