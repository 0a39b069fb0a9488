# SPDX-License-Identifier: GPL-2.0-only
#
# sh guest.sh PROGRAM...: runs programs of "go test -c" in a guest. Their output becomes TAP.
# A program that ends without a result has failed.
for program; do
	./"$program" -test.v -test.timeout 300s 2>&1
	echo "=== END $program $?"
done | awk '
	function result(ok, name) {
		results++
		failed += !ok
		printf "%s %d - %s%s\n", ok ? "ok" : "not ok", results, name, skipped
		skipped = ""
		fflush()
	}
	/^ *--- (PASS|FAIL|SKIP): / {
		if ($2 == "SKIP:")
			skipped = " # SKIP"
		else if ($2 == "FAIL:")
			bad = 1
		result($2 != "FAIL:", $3)
		next
	}
	/^=== END/ {
		if ($4 != 0 && !bad || $4 == 0 && bad)
			result(0, $3 " ends with status " $4)
		bad = 0
		next
	}
	/^=== |^PASS$|^FAIL$/ { next }
	{ print "# " $0 }
	END {
		print "1.." results + 0
		exit failed != 0
	}'
