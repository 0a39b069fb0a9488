# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
#
# Lanes of selftests/check: the manual.

# The manual: the pages beside the headers, and the programs in them.
lane_man()
{
	local build=$out/man/build

	planned make -s -C userspace/man check OUTPUT="$build"
	# shellcheck disable=SC2046 # one word each
	$vm/run -o "$out/man" -k 6.1-cloud -f "$(command -v perl)" \
		-f "$build/examples/timewheel_language_7.pl" \
		$(find "$build/examples" -type f ! -name '*.*' | sort) \
		"perl timewheel_language_7.pl"
	planned selftests/named_tests userspace/README.md
}
