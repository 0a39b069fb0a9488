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

# Only one script at a time fills the cache, or the PART of it that takes long:
# lanes run in parallel.
lock_cache()
{
	mkdir -p "$cache"
	exec 9>"$cache/lock${1:+-$1}"
	flock 9
}

# Has apt know Debian's arm64 too, by a configuration and package lists in the
# cache: the machine's own stay as they are.
know_arm64()
{
	apt=$cache/apt
	mkdir -p "$apt/lists/partial" "$apt/archives/partial"
	: >"$apt/status"
	cat >"$apt/conf" <<-END
	APT::Architecture "arm64";
	APT::Architectures { "arm64"; "amd64"; };
	APT::Sandbox::User "root";
	Dir::State "$apt";
	Dir::State::status "$apt/status";
	Dir::Cache "$apt";
	END
	export APT_CONFIG="$apt/conf"
}

# Fails where the lists are not ours to bring up to date.
update_lists()
{
	[ "${apt-}" ] || [ "$(id -u)" = 0 ] || return
	apt-get -qq update >&2
}

# unpack_into DIR PACKAGE...: download packages and unpack them below DIR
# without installing anything. Old package lists name files that the mirror
# dropped long ago, so there is one try with fresh lists.
unpack_into()
{
	into=$1
	shift
	mkdir -p "$into/deb"
	(
		cd "$into/deb"
		get="apt-get -qq -o APT::Sandbox::User=root download"
		$get "$@" ||
		{ update_lists && $get "$@"; }
	) >&2 || die "cannot download $* (network down, or 'apt-get update' needed)"
	for deb in "$into"/deb/*.deb; do
		dpkg -x "$deb" "$into" || die "cannot unpack ${deb##*/}"
	done
	rm -r "$into/deb"
}
