# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
#
# Lanes of selftests/check: the library.

# shellcheck disable=SC2046 # one word each
lane_lib()
{
	local build=$out/lib/build kernel program

	lib()
	{
		make -s -C userspace/lib OUTPUT="$build" "$@"
	}
	attempt "libtimewheel builds without a warning" \
		lib CFLAGS="-O2 -g -Werror" all tests examples
	planned lib check-abi
	planned lib check-install
	# Wheels of the process need no guest.
	planned "$build/tests/lib_process-static"
	# A test runs this daemon.
	mv "$build/examples/fdstore" "$build"
	# The worker shares its wheel with other processes.
	for program in "$build"/examples/*; do
		[ "${program##*/}" = worker ] || TIMEWHEEL=process \
			attempt "example ${program##*/} on a wheel of the process" "$program"
	done
	# One test needs a kernel without tcp_diag, all other tests a kernel with it.
	for kernel in 6.1-cloud 6.12-cloud; do
		$vm/run -o "$out/lib/$kernel" -k "$kernel" -f "$build/fdstore" -d tcp_diag \
			$(find "$build/tests" -type f -perm /1 ! -name 'lib_tcp*' \
				! -name 'lib_process*' | sort) \
			"$build"/examples/* "$build/tests/lib_tcp -T no_tcp_diag" \
			"$build/tests/lib_tcp-static -T no_tcp_diag" \
			'rmmod tcp_diag && ./lib_tcp -t no_tcp_diag'
	done
}

lane_native()
{
	planned make -s -C userspace/lib OUTPUT="$out/native" check-native
}
