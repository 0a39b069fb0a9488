# SPDX-License-Identifier: GPL-2.0-only
#
# sh calls.sh COMMAND...: system calls on wheels that a language's benchmark makes, in a guest
# with strace. COMMAND prints a line for each kind of touches, after 512 touches. Prints TAP.
# Go's and Node's own threads have other calls, which are not counted.
log=calls.log
touch='_IOC(_IOC_NONE, 0xbe, 0x5, 0)'

# Go interrupts a thread that has run for 10 ms, as under strace: a second call does the rest then.
GODEBUG=asyncpreemptoff=1 ./strace --seccomp-bpf -f -s 80 -e trace=ioctl,write -o $log "$@" 1 1
status=$?
TOUCH=$touch awk -v status=$status '
	function result(ok, name) {
		printf "%s %d - %s\n", ok ? "ok" : "not ok", ++results, name
		failed += !ok
	}
	# Tokens are registered before the first touch.
	/ioctl\(/ && index($0, ENVIRON["TOUCH"]) { single++ }
	/ioctl\(/ && /_IOC_NONE, 0xbe, / && (single || kinds) { calls++ }
	/write\([0-9]+, "= / {
		kinds++
		split($0, field, /\\t|\\n/)
		sub(/.*"= /, "", field[1])
		told = field[1] ", " field[2] ": system calls for 512 touches: " calls + 0
		if (field[2] ~ /singly/)
			result(single == 512 && calls == 512, told)
		else
			result(calls == (field[2] ~ / of 512/ ? 1 : 0), told)
		single = calls = 0
	}
	END {
		result(!status && kinds >= 5, "the benchmark ends with status " status)
		print "1.." results
		exit failed != 0
	}' $log
