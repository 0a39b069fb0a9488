#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# host.sh OUTPUT: checks all that needs no device, by Go as the environment sets it up. Prints
# TAP.
cd "${0%/*}/.." || exit
here=$PWD output=$1
module=$(sed -n 's/^module //p' go.mod)
folder=${module#*.git/}
version=$(sed -n 's/^VERSION[ 	:=]*/v/p' ../lib/Makefile)
. ../../selftests/tap.sh

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

# A comment is before each public name: function, method, type, field, constant and variable.
# gofmt has put all of them where they are looked for.
described()
{
	find . jobs -maxdepth 1 -name '*.go' ! -name '*_test.go' -exec awk '
		/^(type|const|var) .*[({]$/ { inside = 1 }
		/^[)}]/ { inside = 0 }
		/^(func (\([^)]*\) )?|type |const |var )[A-Z]/ || inside && /^\t[A-Z]/ {
			seen++
			if (before !~ /^\t*\/\//) {
				print FILENAME ": " $0
				bad = 1
			}
		}
		{ before = $0 }
		END { exit bad || seen < 200 }' {} +
}

# builds COMMAND...: runs COMMAND, and then builds a program in a module of its own with this
# module
builds()
(
	program=$output/program
	rm -rf "$program"
	mkdir -p "$program"
	cp examples/idle/main.go "$program"
	cd "$program" && go mod init example && "$@" && go build
)

replaced()
{
	go mod edit -require="$module@$version" -replace="$module=$here"
}

# fetches NAME PROXY: go fetches the module into an empty cache, NAME, and asks nobody
# besides. What go remembers of a version is not used, as a version here can change.
fetches()
{
	export GODEBUG=goindex=0
	export GOPATH=$output/$1 GOPROXY=$2 GOSUMDB=off GOFLAGS="-mod=mod -modcacherw"
	rm -rf "$GOPATH"
}

# repository ADDRESS: makes the repository that git finds at ADDRESS, with a tag as releases
# have
repository()
{
	local repository=$output/repository
	local git=(git -C "$repository" -c user.name=test -c user.email=test@example.org)

	rm -rf "$repository"
	mkdir -p "$repository/${folder%/*}"
	cp -r "$here" "$repository/$folder"
	export GIT_CONFIG_GLOBAL=/dev/null
	"${git[@]}" init -q && "${git[@]}" add . && "${git[@]}" commit -q -m all &&
		"${git[@]}" tag "$folder/$version" || return
	export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=url.file://$repository.insteadOf
	export GIT_CONFIG_VALUE_0=https://$1
}

from_repository()
{
	repository "${module%%.git/*}" && fetches from-repository direct &&
		go get "$module@$version"
}

from_another_repository()
{
	local address=git.example.org/copies/timewheel

	repository "$address" && fetches from-another direct && go mod edit \
		-require="$module@$version" -replace="$module=$address.git/$folder@$version"
}

# The cache in which go keeps what it has fetched is laid out as a proxy is.
from_proxy()
{
	fetches from-proxy "file://$output/from-repository/pkg/mod/cache/download"
	go get "$module@$version"
}

mkdir -p "$output"
attempt "gofmt has nothing to change" formatted
attempt "go vet has nothing to say" go vet ./...
attempt "uapi.go is as generated from the headers" generated
attempt "uapi.go has the layout and numbers of C" go test -count=1 ./internal/uapi
attempt "every public name is described" described
attempt "README.md names the module's version" grep -qF "$module@$version" README.md
attempt "a program gets the module from a checkout" builds replaced
attempt "a program gets the module from a repository" builds from_repository
attempt "a program gets the module from another repository" builds from_another_repository
attempt "a program gets the module from a proxy" builds from_proxy
finish
