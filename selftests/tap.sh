# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=dash disable=SC2034
#
# Results as TAP, for the scripts that read this file. What is said by the command of a
# result that is bad goes into comments before it.
results=0 failed=0 good=
told=${TMPDIR:-/tmp}/tap.$$

# result STATUS NAME: a result, good if the status is 0
result()
{
	results=$((results + 1))
	if [ "$1" = 0 ]; then
		good=yes
		echo "ok $results - $2"
		return
	fi
	good='' failed=1
	echo "not ok $results - $2"
}

# attempt NAME COMMAND...: good if the command succeeds
attempt()
{
	local name=$1

	shift
	if "$@" >"$told" 2>&1; then
		result 0 "$name"
	else
		tail -n 40 "$told" | sed 's/^/# /'
		result 1 "$name"
	fi
	rm -f "$told"
}

# same NAME GOT WANTED
same()
{
	if [ "$2" = "$3" ]; then
		result 0 "$1"
		return
	fi
	printf '# got:    %s\n# wanted: %s\n' "$2" "$3"
	result 1 "$1"
}

# skip NAME WHY
skip()
{
	results=$((results + 1))
	echo "ok $results - $1 # SKIP $2"
}

# Prints the plan, and ends the script.
finish()
{
	echo "1..$results"
	exit $failed
}
