# SPDX-License-Identifier: GPL-2.0-only
#
# Plots of the tables in the current directory. Colours tell the wheel (blue),
# limits (grey) and the others apart, and stay the same in all plots.
set terminal svg size 900,560 font "sans,13" background "white"
set datafile separator "\t"
set datafile missing "?"
set key outside right top Left reverse samplen 2 noenhanced
set grid ytics lc rgb "#dddddd"
set border 3
set tics nomirror
set logscale y
set xlabel "timers"

colour(name) = \
	name eq "wheel" ? 0x1f4fd8 : name eq "wheel-id" ? 0x6f9bff : \
	name eq "wheel-mapped" ? 0x00a0c0 : \
	name eq "store" || name eq "cas" || name eq "ioctl" ? 0x999999 : \
	name eq "timerfd" ? 0x000000 : name eq "linked-wheel" ? 0x7a4a00 : \
	name eq "heap4" ? 0xc08a30 : name eq "map-scan" ? 0xb8a9d9 : \
	name eq "map-ring" ? 0x7030a0 : name eq "libuv" ? 0xd62728 : \
	name eq "libevent-heap" ? 0xff7f0e : name eq "libevent-common" ? 0xe6b800 : \
	name eq "libev" ? 0x2ca02c : 0xe377c2
width(name) = strstrt(name, "wheel") == 1 ? 3 : 1.5

columns_of(table) = int(system("head -n 1 ".table." | awk -F '\t' '{ print NF }'"))
name_of(table, i) = system(sprintf("head -n 1 %s | cut -f %d", table, i))

do for [which in "touch arm cancel"] {
	table = "native-".which.".tsv"
	columns = columns_of(table)
	set output "native-".which.".svg"
	set title which eq "touch" ? "Touch: put a random timer's deadline back" : \
		which eq "arm" ? "Arm a timer, in batches of 512 after as many cancels" : \
		"Cancel a random timer, in batches of 512"
	set ylabel "ns each"
	set logscale x
	set format x "10^{%L}"
	plot for [i = 2:columns] table using 1:(column(i)) skip 1 \
		with linespoints pt 7 ps 0.6 lw width(name_of(table, i)) \
		lc rgb colour(name_of(table, i)) title name_of(table, i)
}

# The time that callbacks keep a thread, and the time of a look of the wheel, when all is due
# at once.
table = "native-stall.tsv"
columns = columns_of(table)
set output "native-stall.svg"
unset logscale x
unset key
set key top right noenhanced
set title "All due in one tick: the longest piece of work"
set ylabel "ms: all callbacks, or one look of the wheel's"
set xlabel ""
set xtics rotate by -40 noenhanced
set style data histogram
set style histogram clustered gap 1
set style fill solid 0.9 border -1
set yrange [1e-4:*]
plot for [i = 2:columns] table using (column(i)):xtic(1) skip 1 \
	lc rgb (i == 2 ? 0x6f9bff : 0x1f4fd8) title name_of(table, i)." timers"
