# SPDX-License-Identifier: MIT
# A line for each thing in a trace that is against the trace event format, or
# that a viewer would drop. jq -r -f trace_schema.jq TRACE
#
# An arrow whose end is in no slice of its track is what Perfetto counts as
# flow_no_enclosing_slice and leaves out. It goes through the file in order, so
# that slice has to come before the arrow's end there, too.

# Times are decimal numbers of nanoseconds; as whole numbers they compare well.
def ns: . * 1000 | round;

def wrong($what): "\($what): \(tojson)";

# Slices of a track, in their order, nest: each ends before the slice that it is
# in, or begins after its end.
def check_nesting:
	reduce .[] as $slice ({open: [], found: []};
		($slice.ts | ns) as $from | ($from + ($slice.dur | ns)) as $until |
		.open |= map(select(. > $from)) |
		if .open | any(. < $until) then .found += [$slice | wrong("slices cross")] else . end |
		.open += [$until]) |
	.found[];

# Arrows that begin or end after all slices of their track that came before.
def check_arrows:
	reduce .[] as $entry ({until: {}, found: []};
		($entry.tid | tostring) as $track | ($entry.ts | ns) as $at |
		if $entry.ph == "X" then
			.until[$track] = ([.until[$track] // 0, $at + ($entry.dur | ns)] | max)
		elif $entry.ph | IN("s", "f") | not then .
		elif (.until[$track] // -1) < $at then .found += [$entry | wrong("arrow in no slice")]
		else . end) |
	.found[];

# Names of processes and threads, and the order of these.
def is_metadata:
	if .name | IN("process_name", "thread_name") then .args.name | type == "string"
	else .name == "thread_sort_index" and (.args.sort_index | type) == "number" end and
	(.name == "process_name" or (.tid | type) == "number");

# Both ends of a pair by their phases, with one name and one category.
def is_pair($from; $to):
	[.[].ph] == [$from, $to] and (map({name, cat}) | unique | length) == 1;

(if (.traceEvents | type) != "array" then "no traceEvents" else empty end),
(.traceEvents as $all |
	([$all[] | select(.ph == "X")] | group_by(.tid) |
		map({key: (.[0].tid | tostring), value: .}) | from_entries) as $slices |
	# Each entry by itself.
	($all[] |
		if (.ph | IN("X", "b", "e", "s", "f", "i", "M") | not) then wrong("phase")
		elif (.pid | type) != "number" or (.name | type) != "string" then wrong("entry")
		elif .ph == "M" then if is_metadata then empty else wrong("metadata") end
		elif (.cat | type) != "string" then wrong("no category")
		elif has("args") and (.args | type) != "object" then wrong("arguments")
		elif (.tid | type) != "number" or (.ts | type) != "number" or .ts < 0 then wrong("place")
		elif .ph == "X" and ((.dur | type) != "number" or .dur < 0) then wrong("slice is open")
		elif (.ph | IN("b", "e", "s", "f")) and .id == null then wrong("no id")
		elif .ph == "f" and .bp != "e" then wrong("arrow binds to the next slice")
		elif .ph == "i" and (.s | IN("t", "p", "g") | not) then wrong("scope")
		else empty end),
	# In the order of time, on each track and so in all.
	([$all[] | select(.ph != "M")] |
		range(1; length) as $i | select(.[$i - 1].ts > .[$i].ts) | .[$i] | wrong("earlier")),
	($slices[] | select(all(.dur | type == "number")) | check_nesting),
	# Requests and arrows have both ends, once, in this order.
	([$all[] | select(.ph == "b" or .ph == "e")] | group_by(.id)[] |
		select(is_pair("b"; "e") | not) | .[0] | wrong("request")),
	([$all[] | select(.ph == "s" or .ph == "f")] | group_by(.id)[] |
		select(is_pair("s"; "f") | not) | .[0] | wrong("arrow")),
	([$all[] | select(.ph != "M")] |
		select(all(.ph != "X" or (.dur | type) == "number")) | check_arrows),
	# Every track has a name.
	([$all[] | select(.ph == "M" and .name == "thread_name") | .tid] as $named |
		[$all[] | select(.ph != "M") | .tid] | unique[] | select(IN($named[]) | not) |
		"no name for track \(.)"))
