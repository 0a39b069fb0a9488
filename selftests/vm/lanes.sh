# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
#
# Lanes of selftests/check: the source builds, and the kernel's tools find nothing in
# it. The scripts of this folder work.

lane_build()
{
	for kernel in $KERNELS; do
		attempt "builds for $kernel with W=1, no warning" "$vm/build" "$kernel"
	done
	attempt "builds for the smallest configuration with W=1, no warning" \
		"$vm/build" 6.1-cloud "$out/build/smallest" -j2 \
		KCFLAGS="-include $PWD/$vm/config/smallest.h"
}

# sparse_is_silent KERNEL DIR: whether sparse has nothing to say, and has looked at
# all files. C=2 would not run sparse where Debian's headers lack a script that looks
# for it, and is therefore not used.
sparse_is_silent()
{
	"$vm/build" "$1" "$2" KBUILD_CHECKSRC=2 CF=-D__CHECK_ENDIAN__ &&
		[ "$(grep -c '^ *CHECK ' "$2/build.log")" = "$(find kmod -name '*.c' | wc -l)" ]
}

lane_sparse()
{
	for kernel in 6.1-cloud 6.12-cloud; do
		attempt "sparse is silent for $kernel" sparse_is_silent "$kernel" \
			"$out/sparse/$kernel"
	done
}

# silent IGNORE FILE...: whether checkpatch has nothing to say. A file that was silent
# before has a mark in the cache, which depends on its content, and is not checked
# again, because the check of all files takes minutes.
silent()
{
	local ignore=$1 file mark known=${scripts%/*}/silent files=() marks=()

	shift
	mkdir -p "$known"
	find "$known" -type f -mtime +60 -delete
	for file; do
		mark=$known/$({ echo "$ignore $file" && cat "$file"; } | sha256sum | cut -d' ' -f1)
		[ -e "$mark" ] || { files+=("$file") && marks+=("$mark"); }
	done
	[ ${#files[@]} = 0 ] || {
		perl "$scripts/checkpatch.pl" --no-tree --strict --terse --no-summary \
			--ignore "$ignore" -f "${files[@]}" && touch "${marks[@]}"
	}
}

# checked KIND IGNORE FILE...: expects that checkpatch has nothing to say of the files
checked()
{
	local kind=$1 ignore=$2

	shift 2
	[ $# = 0 ] || attempt "checkpatch --strict has nothing to say of $# files: $kind" \
		silent "$ignore" "$@"
}

# checkpatch is made for code inside the kernel. Code for user space, and the header
# for it, has no BIT(), u16, strscpy() and the like. _Static_assert is not CamelCase.
# FIXTURE_DATA(x) *self is no multiplication. The shim of the core's user-space build
# defines names that the kernel's code uses. Tracepoints are laid out by fields, not
# as calls. An older kernel's names are CamelCase, and the macros for what it lacks
# are empty.
lane_style()
{
	local scripts file
	local user=BIT_MACRO,PREFER_KERNEL_TYPES,PREFER_DEFINED_ATTRIBUTE_MACRO,CAMELCASE
	user+=,STRCPY,PREFER_FALLTHROUGH,ENOSYS
	local tests=$user,SPACING,MACRO_WITH_FLOW_CONTROL,COMPLEX_MACRO,MACRO_ARG_REUSE
	local shim=$tests,MACRO_ARG_PRECEDENCE,NEW_TYPEDEFS,MEMORY_BARRIER
	shim+=,MACRO_ARG_UNUSED,UNCOMMENTED_DEFINITION,CONST_STRUCT
	local kmod=() user_files=() test_files=() shim_files=()

	scripts=$($vm/source)/scripts || return
	for file in $(find kmod selftests userspace -name '*.[ch]'); do
		case $file in
		kmod/trace.h | kmod/compat.h) ;;
		selftests/core/shim/* | */native/shim/* | userspace/lib/process/linux/* | \
		userspace/lib/process/core.h | userspace/lib/process/kernel.h)
			shim_files+=("$file") ;;
		selftests/* | */tests/*)		test_files+=("$file") ;;
		userspace/* | kmod/include/uapi/*)	user_files+=("$file") ;;
		*)					kmod+=("$file") ;;
		esac
	done
	checked "the module" NONE "${kmod[@]}"
	checked "tracepoints" PARENTHESIS_ALIGNMENT,OPEN_ENDED_LINE kmod/trace.h
	checked "what older kernels lack" CAMELCASE,MACRO_ARG_UNUSED kmod/compat.h
	checked "user space" "$user" "${user_files[@]}"
	checked "tests" "$tests" "${test_files[@]}"
	checked "the kernel in user space" "$shim" "${shim_files[@]}"
	# shellcheck disable=SC2046 # each file is a word
	attempt "kernel-doc is complete" perl "$scripts/kernel-doc" -none -Wall -Werror \
		$(find kmod -name '*.[ch]') userspace/lib/timewheel.h
}

# This lane tests that guests and lanes are started, refused and interrupted as they
# should be.
lane_harness()
{
	planned $vm/test
	planned selftests/mutants/run --places
}
