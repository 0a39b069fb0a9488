# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
#
# TOOL BASH ZSH: what the scripts for both shells offer is what help of TOOL says.
# The script that reads this tests the rest, and has the functions "in_bash", for
# what is not the same for all tools, and "in_zsh". Prints TAP.
set -u
tool=$1 script=$2 zsh_script=$3
name=${tool##*/}
# The scripts ask the tool, and so does each zsh.
PATH=$(cd "${tool%/*}" && pwd):$PATH

. "${BASH_SOURCE[0]%/*}/../../../selftests/tap.sh"
. "$script"

# offers WORD...: prints what is offered for the last word, sorted
offers()
{
	COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
	"_$name"
	printf '%s\n' "${COMPREPLY[@]}" | sort -u | xargs
}

options_of()
{
	"$tool" help "$1" | grep -oE '^ {2}(-.,|   ) --[a-z-]+' | grep -oE -- '--.*' |
		sort | xargs
}

columns_of()
{
	"$tool" help "$1" | sed -n 's/^  [* ] \([A-Z0-9-]*\) .*/\L\1/p' | sort -u | xargs
}

verbs=$("$tool" help | sed -n 's/^  \([a-z]*\) .*/\1/p' | sort | xargs)

# bash_offers_help: bash offers the verbs, options and columns that help names
bash_offers_help()
{
	local verb

	same "registered for $name" "$(complete -p "$name")" "complete -F _$name $name"
	same 'verbs' "$(offers "$name" '')" "$verbs"
	same 'options without a verb' "$(offers "$name" -)" "$(options_of "$default")"
	for verb in $verbs; do
		same "$verb: options" "$(offers "$name" "$verb" -)" "$(options_of "$verb")"
		[ "$(columns_of "$verb")" ] || continue
		same "$verb: columns" "$(offers "$name" "$verb" -o '')" "$(columns_of "$verb")"
	done
}

# asks_zsh WORD...: prints what is offered, in a zsh without anything else
asks_zsh()
{
	zsh -f -c '
		compadd() { print -r compadd "$@" }
		_describe() { print -rl -- ${(P)2} }
		words=("${@:2}") CURRENT=$((# - 1))
		. $1' zsh "$zsh_script" "$@"
}

zsh_offers_help()
{
	local verb

	same 'zsh: verbs' "$(asks_zsh "$name" '' | sed 's/:.*//' | sort | xargs)" "$verbs"
	for verb in $verbs; do
		same "zsh: $verb: options" "$(asks_zsh "$name" "$verb" - |
			sed 's/:.*//' | sort | xargs)" "$(options_of "$verb")"
	done
	same 'zsh: options without a verb' "$(asks_zsh "$name" - | grep -c '^--version:print')" 1
}

offers_help()
{
	bash_offers_help
	in_bash
	if command -v zsh >/dev/null; then
		zsh_offers_help
		in_zsh
	else
		skip zsh "not installed"
	fi
	finish
}
