# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
#
# Lanes of selftests/check: the kselftests, in guests.

# Programs that are for lanes of their own: what counts instructions, what takes
# too long in real time, and what sends the machine to sleep.
ICOUNT_PROGS="callback counts"
WARP_PROGS="hours"
SUSPEND_PROGS="suspend"
# These programs have the kernel fail, which a debug kernel does.
DEBUG_PROGS="shortage sweep"
# These programs give the kernel every structure, and threads and processes at once.
CALLER_PROGS="abi errors leases listing named named_sharing periods policies poll races sharing stats
	touch_words"
# These programs have the kernel change its own code, of which QEMU does not always
# tell the other CPUs that it emulates: on one CPU.
SINGLE_PROGS="trace"

# guest LANE SCALE PROGRAMS OPTION...: PROGRAMS of the selftests in a guest, with
# the length of long tests scaled. $bits has flags for the compiler, as of a
# 32-bit build, $emulated the kernel of another machine, for which it has to compile.
# Only one lane at a time builds.
guest()
{
	local lane=$1 scale=$2 programs=$3 bits=${bits-}
	local tests=$out/tests${emulated-}${bits%% *}

	shift 3
	attempt "selftests build without a warning" flock "$out" \
		"$vm/cross" "${emulated:-6.1-cloud}" make -sk -C selftests \
		OUTPUT="$tests" USERCFLAGS="-Werror $bits"
	# shellcheck disable=SC2046,SC2086 # one word each
	TW_SCALE=$scale $vm/run -o "$out/$lane" "$@" $(printf "$tests/%s " $programs)
}

programs()
{
	basename -s .c selftests/*.c |
		grep -vxF "$(printf '%s\n' $ICOUNT_PROGS $WARP_PROGS \
			$SUSPEND_PROGS $DEBUG_PROGS $SINGLE_PROGS)"
}

# suite LANE SCALE OPTION...: all programs that are not for lanes of their own
suite()
{
	local lane=$1 scale=$2

	shift 2
	guest "$lane" "$scale" "$(programs)" "$@"
	guest "$lane/single" "$scale" "$SINGLE_PROGS" "$@" -c 1
}

lane_6.1-cloud()
{
	suite 6.1-cloud 0.15 -k 6.1-cloud -t 900
}

# Memory, locks, life times and leaks watched by the kernel, and how much of the
# module has run. Half of a token's generation is soon through, so that this runs, too.
lane_debug()
{
	local module=$out/debug/module

	attempt "builds for 6.12-debug with its lines counted" \
		"$vm/build" 6.12-debug "$module" GCOV_PROFILE=y \
		KCFLAGS=-DTW_FIRST_GENERATION=0xfff0
	TW_FIXED_GENERATION=1 guest debug 0.02 \
		"$(programs) $SINGLE_PROGS $DEBUG_PROGS $SUSPEND_PROGS" \
		-k 6.12-debug -t 2400 -M "$module/timewheel.ko"
	planned selftests/debug/coverage "$module" "$out/debug/data"
}

# Data races.
lane_kcsan()
{
	suite kcsan 0.02 -k 6.12-kcsan -t 3000
}

# Memory that was never written. What KMSAN knows of a page takes two further ones.
lane_kmsan()
{
	suite kmsan 0.02 -k 6.12-kmsan -m 3072 -t 3000
}

# 32-bit callers of a 64-bit kernel, which is preemptible almost everywhere; kselftest
# casts pointers to intmax_t. All programs, of 64 bits, too, run on this kernel in the matrix.
lane_ia32()
{
	bits="-m32 -static -Wno-pointer-to-int-cast" \
		guest ia32 0.05 "$CALLER_PROGS" -k 6.12-rt -t 900
}

# variant KERNEL HOW: a lane of the matrix. A guest's CPUs share the machine's, so
# 8 of them take long over little; slub_debug fills what is freed, and looks at it.
# Only "long" has the tests in full length, which takes some memory.
variant()
{
	local bits= emulated= cpus=2 scale=0.05 seconds=1200 options=()

	case $2 in
	sparse)	attempt "sparse is silent" sparse_is_silent "$1" "$out/$1+$2/module"
		return ;;
	[0-9]*)	cpus=${2%cpu*} ;;
	ia32)	bits="-m32 -static -Wno-pointer-to-int-cast" ;;
	slub)	options=(-a slub_debug=FZPU) ;;
	long)	scale=1 seconds=3600 options=(-m 4096) ;;
	esac
	# The packaged kernels for real time know x32, if they are asked to.
	[ "${1#*-}" != rt ] || options+=(-a syscall.x32=y)
	if [[ " $($vm/kernels emulated) " = *" $1 "* ]]; then
		bits=-static emulated=$1
	fi
	suite "$1+$2" "$scale" -k "$1" -c "$cpus" -t "$seconds" \
		"${options[@]}"
}

# Callers whose structures are those of the first release, on a module that has made
# each of them larger: commands' arguments, and what they point to.
lane_grown()
{
	local source=$out/grown/source module=$out/grown/module
	local header=kmod/include/uapi/linux/timewheel.h

	mkdir -p "$source"
	cp -r Kbuild kmod "$source"
	awk '
		/^struct timewheel_/ { grows = $2 !~ /^timewheel_(event|entry)$/ }
		/^};/ && grows { print "\t__aligned_u64\tgrown;" }
		/^};/ { grows = 0 }
		{ print }' $header >"$source/$header"
	attempt "builds with structures that have grown" \
		"$vm/build" -s "$source" 6.1-cloud "$module"
	guest grown 0.1 "abi errors listing" -k 6.1-cloud -t 300 \
		-M "$module/timewheel.ko"
}

lane_icount()
{
	icount icount 0.1
}

# icount LANE SCALE: what counts instructions. A tenth of a million tokens shows, too, what would
# do work for each.
icount()
{
	guest "$1" "$2" "$ICOUNT_PROGS" -k 6.1-cloud -t 600 --icount
}

# What "make check" has in a shorter form.
lane_long()
{
	icount long/icount 1
	guest long/sweep 1 sweep -k 6.12-debug -t 3600
	planned make -s -C selftests/core check
	planned make -s -C selftests/model check LARGE=1
	make -s -C userspace/daemons OUTPUT="$out/long/build" check check-jobs check-power \
		check-wheels
}

lane_warp()
{
	TW_HOURS=48 guest warp 1 "$WARP_PROGS" -k 6.1-cloud -t 600 --warp
}

lane_suspend()
{
	local kernel

	for kernel in 6.1-cloud 6.12-cloud 6.1-rt; do
		guest "suspend/$kernel" 1 "$SUSPEND_PROGS" -k "$kernel" -t 120
	done
}

# That what is said to be tested is.
lane_hostile()
{
	planned selftests/hostile_check
}
