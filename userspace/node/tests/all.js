// SPDX-License-Identifier: GPL-2.0-only
//
// node all.js FILE...: runs the tests in these files; prints TAP, with one plan for all.
'use strict';

for (const file of process.argv.slice(2))
	require(`./${file}`);
