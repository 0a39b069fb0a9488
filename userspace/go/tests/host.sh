#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# host.sh OUTPUT GO...: all that can be checked without a device, by the command GO.
# Prints TAP.
output=$1
shift
results=0 failed=0

# result NAME COMMAND...
result()
{
	local name=$1 said

	shift
	results=$((results + 1))
	if said=$("$@" 2>&1); then
		echo "ok $results - $name"
	else
		failed=1
		printf '%s\n' "$said" | sed 's/^/# /'
		echo "not ok $results - $name"
	fi
}

formatted()
{
	local found

	found=$(gofmt -l .) || return
	[ -z "$found" ] || {
		echo "gofmt would change: $found"
		return 1
	}
}

generated()
{
	../man/generate uapi.go | diff internal/uapi/uapi.go - ||
		{
			echo "run make -C userspace/go generate"
			return 1
		}
}

# A program of another module gets the package as doc.go says.
installs()
{
	local here=$PWD program=$output/program

	rm -rf "$program"
	mkdir -p "$program"
	cp examples/idle/main.go "$program"
	cd "$program" || return
	"$@" mod init example &&
		"$@" mod edit -require=timewheel@v0.0.0 &&
		"$@" mod edit -replace=timewheel="$here" &&
		"$@" build
	local status=$?
	cd "$here" || return
	return $status
}

cd "${0%/*}/.." || exit
mkdir -p "$output"
result "gofmt has nothing to change" formatted
result "go vet has nothing to say" "$@" vet ./...
result "uapi.go is as generated from the headers" generated
result "uapi.go has the layout and numbers of C" "$@" test -count=1 -run Header ./internal/uapi
result "every public name is described" "$@" test -count=1 -run Described ./internal/uapi
result "a program gets the package as its description says" installs "$@"
echo "1..$results"
exit $failed
