# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
#
# TOOL BASH ZSH: what the scripts for both shells offer is what help of TOOL says.
# The script that reads this tests the rest, and has the functions "in_bash", for
# what is not the same for all tools, and "in_zsh". Prints TAP.
set -u
tool=$1 script=$2 zsh_script=$3
name=${tool##*/}
results=0 failed=0

# result WHAT GOT WANTED
result()
{
	results=$((results + 1))
	if [ "$2" = "$3" ]; then
		echo "ok $results $1"
		return
	fi
	echo "not ok $results $1"
	printf '# got:    %s\n# wanted: %s\n' "$2" "$3"
	failed=1
}

. "$script"

# offers WORD...: what is offered for the last word, sorted
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

# bash_offers_help: verbs, options and columns
bash_offers_help()
{
	local verb

	result "registered for $name" "$(complete -p "$name")" "complete -F _$name $name"
	result 'verbs' "$(offers "$name" '')" "$verbs"
	result 'options without a verb' "$(offers "$name" -)" "$(options_of "$default")"
	for verb in $verbs; do
		result "$verb: options" "$(offers "$name" "$verb" -)" "$(options_of "$verb")"
		[ "$(columns_of "$verb")" ] || continue
		result "$verb: columns" "$(offers "$name" "$verb" -o '')" "$(columns_of "$verb")"
	done
}

# asks_zsh WORD...: what _arguments is asked for, in a zsh without anything else
asks_zsh()
{
	zsh -f -c '
		_arguments() { shift; print -rl -- "$@" }
		_describe() { print -rl -- ${(P)2} }
		words=("${@:2}") CURRENT=$((# - 1))
		. $1' zsh "$zsh_script" "$@"
}

zsh_offers_help()
{
	local verb

	result 'zsh: verbs' "$(asks_zsh "$name" '' | sed 's/:.*//' | sort | xargs)" "$verbs"
	for verb in $verbs; do
		result "zsh: $verb: options" "$(asks_zsh "$name" "$verb" '' |
			sed -n 's/^\(([^)]*)\)\?\(--[a-z-]*\)\[.*/\2/p' |
			sort | xargs)" "$(options_of "$verb")"
	done
	result 'zsh: options without a verb' "$(asks_zsh "$name" --version '' |
		grep -c -e '--version\[')" 1
}

finish()
{
	bash_offers_help
	in_bash
	if command -v zsh >/dev/null; then
		zsh_offers_help
		in_zsh
	else
		results=$((results + 1))
		echo "ok $results zsh # SKIP not installed"
	fi
	echo "1..$results"
	exit $failed
}
