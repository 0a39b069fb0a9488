# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh
#
# Shared by the scripts beside it: where the cache lies, and how a Debian
# package gets there. Sourced, never run.

cache=${TIMEWHEEL_CACHE:-${XDG_CACHE_HOME:-${HOME-}/.cache}/timewheel}
# What tools print is read by scripts, which know one language.
export LC_ALL=C
# An ordinary user may run depmod and mke2fs, too.
PATH=$PATH:/usr/sbin:/sbin

die()
{
	echo "${0##*/}: $*" >&2
	exit 1
}

# Only one script at a time fills the cache, or the PART of it that takes long:
# lanes run in parallel. The script that has the lock may work in $tmp.
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

# Makes $tmp, which goes when the script ends, also by a signal. The signal ends the
# script after that: the caller is to see that it was interrupted.
make_tmp()
{
	rm -rf "$tmp"
	mkdir "$tmp"
	trap 'rm -rf "$tmp"' EXIT
	for signal in HUP INT TERM; do
		# shellcheck disable=SC2064 # this signal, now
		trap "trap - EXIT $signal; rm -rf '$tmp'; kill -s $signal $$" $signal
	done
}

# place NAME: the folder in the cache for what the script that asks unpacks: another
# release of Debian, or another script, has another one.
place()
{
	echo "$cache/$1-$debian-$(cksum <"$0" | cut -d' ' -f1)"
}

# machine_of PACKAGE: the machine that a kernel is for, as Debian calls it
machine_of()
{
	case $1 in
	*-arm64)	echo arm64 ;;
	*-s390x)	echo s390x ;;
	*-powerpc64le)	echo ppc64el ;;
	*)		echo amd64 ;;
	esac
}

# The release of Debian that this system is, and the version of LLVM that it has for
# kernels. "deps" refuses other systems.
# shellcheck source=/dev/null
debian=$(. /etc/os-release 2>/dev/null && echo "${VERSION_CODENAME-}") || :
case $debian in
bookworm)	llvm=16 ;;
*)		llvm=19 ;;
esac

# llvm_of NAME: tells make that LLVM builds the kernel NAME and its modules, if that is
# so: KMSAN is part of clang.
llvm_of()
{
	case $1 in
	*-kmsan)	echo LLVM=-$llvm ;;
	esac
}

# compiler_of NAME: what compiles the kernel NAME
compiler_of()
{
	case $1 in
	*-kmsan)	echo clang-$llvm ;;
	*)		echo gcc ;;
	esac
}

# built_by COMPILER: what the name of a thing in the cache has that a COMPILER of this
# system has built. Other releases use the cache, too.
built_by()
{
	echo "$debian-$("$1" -dumpfullversion 2>/dev/null || "$1" -dumpversion)"
}

# know_packages MACHINE [RELEASE]: has apt know Debian's packages for that machine too, or
# those of another release, by a configuration and package lists in the cache: this
# machine's own stay as they are.
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
		# The mirrors that this machine uses.
		# shellcheck disable=SC2016 # apt's variables
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

# try COMMAND...: run it, and keep in $said what commands print until one succeeds
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

# Why the commands that were tried have failed, in a sentence.
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

# Fails where the lists are not ours to bring up to date. What is said of a mirror
# that does not answer may tell why a later command fails.
update_lists()
{
	[ "${apt-}" ] || [ "$(id -u)" = 0 ] || return
	echo "fetching Debian's lists of packages" >&2
	try apt-get -qq update --error-on=any || :
}

# needed PACKAGE PATTERN [OPTION]: the packages that it needs, of which the names fit
needed()
{
	apt-cache depends --important ${3:+"$3"} "$1" | sed 's/^ *[A-Z][a-zA-Z]*: //' |
		grep -xE "$2" | sort -u
}

# unpack_into DIR PACKAGE...: download packages and unpack them below DIR
# without installing anything. Old package lists name files that the mirror
# dropped long ago, so there is one try with fresh lists.
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
