# SPDX-License-Identifier: MIT
# The demo beside a database: what it makes of its measurements. The database
# itself is not started here.

setup() {
	tools=${top_srcdir:-$PWD}/tools/dev
	build=${top_builddir:-$PWD}
	cd "$BATS_TEST_TMPDIR" || return 1
}

# phase NAME LABEL FACTOR: 200 transactions in two seconds, 1 to 200 ms long
# times FACTOR, the longer ones in the second of them.
phase() {
	local i
	echo "$2" >"$1.label"
	for i in {1..200}; do
		echo "0 $i $((i * 1000 * $3)) 0 $((1000 + (i > 100))) 17"
	done >"$1.transactions"
}

@test "percentiles, ratios and cached shares are those of the measurements" {
	phase alone "nobody" 1
	phase beside "a scan <&>" 2
	# The first line is from before the phase, the last after its end.
	printf '%s\n' '999.5 0 1000' '1000.5 600 1000' '1001 990 1000' '1001.5 250 1000' >alone.cached
	printf '%s\n' '1000.25 1000 1000' >beside.cached
	echo 0 >alone.read
	echo 5400000 >beside.read
	run "$tools/neighbour_figures" . out.svg alone beside
	[ "$status" = 0 ]
	[[ ${lines[1]} =~ ^"nobody "\ +198\.00\ +1\.00\ +200\ +25\.0\ +0$ ]]
	[[ ${lines[2]} =~ ^"a scan <&> "\ +396\.00\ +2\.00\ +200\ +100\.0\ +5$ ]]
	# Two lines a phase; 99 and 199 ms between 10 and 1000, the shares at half
	# and a whole second.
	[ "$(grep -c '<polyline' out.svg)" = 4 ]
	grep -q 'stroke="#444444" stroke-width="2" points="70.0,150.5 710.0,117.1"' out.svg
	grep -q 'stroke="#444444" stroke-width="2" points="390.0,398.0 710.0,312.2"' out.svg
	grep -q 'beside a scan &lt;&amp;>' out.svg
}

@test "measurements that are missing or empty are named" {
	phase alone "nobody" 1
	echo '999 1 1' >alone.cached
	run "$tools/neighbour_figures" . out.svg alone
	[ "$status" != 0 ]
	[ "$output" = "neighbour_figures: ./alone.cached has no line of the phase" ]
	: >alone.transactions
	run "$tools/neighbour_figures" . out.svg alone
	[ "$status" != 0 ]
	[ "$output" = "neighbour_figures: ./alone.transactions has no transaction" ]
	rm alone.transactions
	run "$tools/neighbour_figures" . out.svg alone
	[ "$status" != 0 ]
	[ "$output" = "neighbour_figures: ./alone.transactions: No such file or directory" ]
	[ ! -e out.svg ]
}

@test "without PostgreSQL the demo says what to install, and leaves nothing" {
	NEIGHBOUR_DIR=$PWD NEIGHBOUR_POSTGRES=$PWD run "$tools/neighbour" "$build"
	[ "$status" = 1 ]
	[ "$output" = "neighbour: PostgreSQL is not installed; on Debian: apt-get install postgresql" ]
	[ -z "$(ls)" ]
}
