# SPDX-License-Identifier: GPL-2.0-only
#
# Shared by the scripts beside it: where the cache lies, and how a Debian
# package gets there. Sourced, never run.

cache=${TIMEWHEEL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/timewheel}

die()
{
	echo "${0##*/}: $*" >&2
	exit 1
}

# Only one script at a time fills the cache: lanes run in parallel.
lock_cache()
{
	mkdir -p "$cache"
	exec 9>"$cache/lock"
	flock 9
}

# unpack_into DIR PACKAGE...: download packages and unpack them below DIR
# without installing anything. Old package lists name files that the mirror
# dropped long ago, so root gets one try with fresh lists.
unpack_into()
{
	into=$1
	shift
	mkdir -p "$into/deb"
	(
		cd "$into/deb"
		get="apt-get -qq -o APT::Sandbox::User=root download"
		$get "$@" ||
		{ [ "$(id -u)" = 0 ] && apt-get -qq update && $get "$@"; }
	) >&2 || die "cannot download $* (network down, or 'apt-get update' needed)"
	for deb in "$into"/deb/*.deb; do
		dpkg -x "$deb" "$into" || die "cannot unpack ${deb##*/}"
	done
	rm -r "$into/deb"
}
