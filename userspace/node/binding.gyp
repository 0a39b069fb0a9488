# SPDX-License-Identifier: LGPL-2.1-or-later
#
# "npm install" builds the native half by this file. It needs libtimewheel-dev and pkg-config.
{
	"targets": [{
		"target_name": "timewheel",
		"sources": ["<!@(echo src/*.c)"],
		"defines": ["_GNU_SOURCE"],
		"cflags": ["-std=gnu11", "-Wno-unused-parameter",
			"-Wno-missing-field-initializers",
			"<!@(pkg-config --cflags libtimewheel)"],
		"libraries": ["<!@(pkg-config --libs libtimewheel)"],
	}],
}
