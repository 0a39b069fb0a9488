# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh
#
# The common part of the scripts beside it: the place of the cache, and the way of a
# Debian package into it. Scripts source this file.

cache=${TIMEWHEEL_CACHE:-${XDG_CACHE_HOME:-${HOME-}/.cache}/timewheel}
# Scripts read the output of tools, which has to be in one language.
export LC_ALL=C
# An ordinary user needs depmod and mke2fs, too.
PATH=$PATH:/usr/sbin:/sbin

die()
{
	echo "${0##*/}: $*" >&2
	exit 1
}

# lock_cache [PART]: lanes run in parallel, but only one script at a time fills the
# cache, or a PART of it that takes long. The script that has the lock may work in
# $tmp.
lock_cache()
{
	case $cache in
	*[[:space:]:]*)	die "$cache: the cache's path must have no space and no colon;" \
				"TIMEWHEEL_CACHE names another" ;;
	esac
	mkdir -p "$cache" && [ -w "$cache" ] ||
		die "$cache cannot be written; TIMEWHEEL_CACHE names another folder for the cache"
	exec 9>"$cache/lock${1:+-$1}"
	flock 9
	tmp=$cache/tmp${1:+-$1}
}

# make_tmp: makes $tmp, which is removed when the script ends, also by a signal. The
# signal then ends the script, and its caller sees that it was interrupted.
make_tmp()
{
	rm -rf "$tmp"
	mkdir "$tmp"
	trap 'rm -rf "$tmp"' EXIT
	for signal in HUP INT TERM; do
		# shellcheck disable=SC2064 # the value of $signal at this time
		trap "trap - EXIT $signal; rm -rf '$tmp'; kill -s $signal $$" $signal
	done
}

# place NAME: prints the folder in the cache for the packages that the calling script
# unpacks. Another release of Debian, or another version of the script, has another
# folder.
place()
{
	echo "$cache/$1-$debian-$(cksum <"$0" | cut -d' ' -f1)"
}

# machine_of PACKAGE: prints the machine that a kernel is for, by Debian's name
machine_of()
{
	case $1 in
	*-arm64)	echo arm64 ;;
	*-s390x)	echo s390x ;;
	*-powerpc64le)	echo ppc64el ;;
	*)		echo amd64 ;;
	esac
}

# debian is the release of Debian of this system, and llvm its version of LLVM for
# kernels. The script "deps" refuses other systems.
# shellcheck source=/dev/null
debian=$(. /etc/os-release 2>/dev/null && echo "${VERSION_CODENAME-}") || :
case $debian in
bookworm)	llvm=16 ;;
*)		llvm=19 ;;
esac

# llvm_of NAME: prints the option that makes LLVM build the kernel NAME and its
# modules, if LLVM is needed, as for KMSAN.
llvm_of()
{
	case $1 in
	*-kmsan)	echo LLVM=-$llvm ;;
	esac
}

# compiler_of NAME: prints the compiler of the kernel NAME
compiler_of()
{
	case $1 in
	*-kmsan)	echo clang-$llvm ;;
	*)		echo gcc ;;
	esac
}

# built_by COMPILER: prints a part of the name of a thing in the cache that a COMPILER
# of this system has built, because other releases use the cache, too.
built_by()
{
	echo "$debian-$("$1" -dumpfullversion 2>/dev/null || "$1" -dumpversion)"
}

# know_packages MACHINE [RELEASE]: lets apt know Debian's packages for this machine,
# or for another machine or release. The configuration and the package lists are in
# the cache, and the system's own lists stay as they are.
know_packages()
{
	apt=$cache/apt-$1${2:+-$2}
	mkdir -p "$apt/lists/partial" "$apt/archives/partial"
	: >"$apt/status"
	cat >"$apt/conf" <<-END
	APT::Architecture "$1";
	APT::Architectures { "$1"; "amd64"; };
	APT::Sandbox::User "root";
	Dir::State "$apt";
	Dir::State::status "$apt/status";
	Dir::Cache "$apt";
	END
	if [ "${2-}" ]; then
		# These are the mirrors that the system uses.
		# shellcheck disable=SC2016 # the variables are apt's
		apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' \
			'Created-By: Packages' |
			sed -En "s/ $debian(-security)? main$/ $2\1 main/p" \
			>"$apt/sources.list"
		cat >>"$apt/conf" <<-END
		Dir::Etc::SourceList "$apt/sources.list";
		Dir::Etc::SourceParts "-";
		END
	fi
	export APT_CONFIG="$apt/conf"
}

# try COMMAND...: runs COMMAND, and keeps in $said the output of all commands since
# the last that succeeded
try()
{
	if printed=$("$@" 2>&1); then
		said=
	else
		said="${said-}$printed
"
		return 1
	fi
}

# why: prints in a sentence why the commands that were tried have failed
why()
{
	case ${said-} in
	*"No space left"* | *"enough free space"*)
		echo "the disk is full: $(df -Ph / "$cache" 2>/dev/null |
			awk 'NR > 1 { print $4 " free in " $6 }' | sort -u | paste -sd,)" ;;
	*resolv* | *onnect* | *"timed out"* | *unreachable*)
		echo "there is no network, or no way to Debian's mirror:" \
			"$(echo "$said" | grep -m 1 -E 'resolv|onnect|timed out|unreachable')" ;;
	*)
		echo "${said:+$(echo "$said" | grep . | tail -n 1) }(Debian has it;" \
			"root may have to type: apt-get update)" ;;
	esac
}

# update_lists: fetches new package lists. It fails if they are the system's and the
# user is not root. An error of a mirror is kept, because it may explain why a later
# command fails.
update_lists()
{
	[ "${apt-}" ] || [ "$(id -u)" = 0 ] || return
	echo "fetching Debian's lists of packages" >&2
	try apt-get -qq update --error-on=any || :
}

# needed PACKAGE PATTERN [OPTION]: prints the packages that PACKAGE needs and whose
# names match PATTERN
needed()
{
	apt-cache depends --important ${3:+"$3"} "$1" | sed 's/^ *[A-Z][a-zA-Z]*: //' |
		grep -xE "$2" | sort -u
}

# unpack_into DIR PACKAGE...: downloads packages and unpacks them below DIR, without
# installing anything. Old package lists may name files that the mirror no longer has.
# A second try therefore uses new lists.
unpack_into()
{
	into=$1
	shift
	mkdir "$into/deb"
	set -- env -C "$into/deb" apt-get -qq -o APT::Sandbox::User=root download "$@"
	try "$@" || { update_lists && try "$@"; } ||
		die "cannot download what is needed: $(why)"
	for deb in "$into"/deb/*.deb; do
		try dpkg -x "$deb" "$into" || die "cannot unpack ${deb##*/}: $(why)"
	done
	rm -r "$into/deb"
}
