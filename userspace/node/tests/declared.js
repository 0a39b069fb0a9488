// SPDX-License-Identifier: GPL-2.0-only
//
// Reads the names in index.d.ts of the package.
'use strict';

const fs = require('node:fs');
const path = require('node:path');

const folder = path.dirname(require.resolve('timewheel'));
const text = fs.readFileSync(path.join(folder, 'index.d.ts'), 'utf8')
	.replace(/\/\*.*?\*\//gs, '');

// Returns the lines between the braces of the declaration that begins with @begin.
function body(begin) {
	const rest = text.slice(text.search(new RegExp(`^${begin}\\b`, 'm')));

	return rest.slice(rest.indexOf('{\n') + 2, rest.search(/^\}/m));
}

// Returns the members that are declared there, static ones or all others, in the order of
// names.
function members(begin, statics = false) {
	const found = body(begin).matchAll(/^\t(static )?(?:readonly )?([\w[\].]+)\??[(:<]/gm);
	const names = [...found].filter(([, isStatic]) => !!isStatic === statics)
		.map(([, , name]) => name);

	return [...new Set(names)].sort();
}

function exported() {
	const found = text.matchAll(/^export (?:const|class|function) (\w+)/gm);

	return [...found].map(([, name]) => name).sort();
}

module.exports = { exported, members };
