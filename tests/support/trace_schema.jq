# SPDX-License-Identifier: MIT
# A line for each thing in a trace that is against the trace event format, or
# that a viewer would drop. jq -r -f trace_schema.jq TRACE
#
# An arrow whose end is in no slice of its track is what Perfetto counts as
# flow_no_enclosing_slice and leaves out.

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

# $slices: of all tracks by their number, as text.
def is_enclosed($slices):
	(.ts | ns) as $at |
	any($slices[.tid | tostring] // [] | .[]; (.ts | ns) <= $at and (.ts + .dur | ns) >= $at);

(if (.traceEvents | type) != "array" then "no traceEvents" else empty end),
(.traceEvents as $all |
	([$all[] | select(.ph == "X")] | group_by(.tid) |
		map({key: (.[0].tid | tostring), value: .}) | from_entries) as $slices |
	# Each entry by itself.
	($all[] |
		if (.ph | IN("X", "b", "e", "s", "f", "i", "M") | not) then wrong("phase")
		elif (.pid | type) != "number" or (.name | type) != "string" then wrong("entry")
		elif .ph == "M" then empty
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
		select([.[].ph] != ["b", "e"] or .[0].name != .[1].name) | .[0] | wrong("request")),
	([$all[] | select(.ph == "s" or .ph == "f")] | group_by(.id)[] |
		select([.[].ph] != ["s", "f"] or .[0].name != .[1].name) | .[0] | wrong("arrow")),
	($all[] | select((.ph == "s" or .ph == "f") and
		(all($slices[][]; .dur | type == "number")) and (is_enclosed($slices) | not)) |
		wrong("arrow in no slice")),
	# Every track has a name.
	([$all[] | select(.ph == "M" and .name == "thread_name") | .tid] as $named |
		[$all[] | select(.ph != "M") | .tid] | unique[] | select(IN($named[]) | not) |
		"no name for track \(.)"))
