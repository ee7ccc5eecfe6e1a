# SPDX-License-Identifier: MIT
# Which targets hold. Input: all lines of a run, each with its `item` and `round`.
# $targets: the file of that name; arguments: the items that were to be measured.
# Prints a row for each of their targets.
def middle: sort | if length == 0 then null else
	(.[(length - 1) / 2 | floor] + .[length / 2 | floor]) / 2 end;
def figure: if . == null then "" else . * 1000 | round / 1000 | tostring end;
def named($name): reduce ($name | split("."))[] as $key (.; .[$key]?);
def ours($item): map(select(.item == $item and (has("peer") | not)));
def by_round($item; value): ours($item) | map({key: (.round | tostring), value: value}) | from_entries;
def by_round($item): by_round($item; .median);
# How much more ours takes than another subject, each by its floor.
def beyond_floor($item; $other): by_round($other; .ratio) as $ratios
	| ours($item) | map(select($ratios[.round | tostring] > 0) | .ratio / $ratios[.round | tostring]);
# Of each round, so that what changes between rounds is on both sides.
def values($item; $figure):
	if $figure == "floor" then ours($item) | map(.ratio)
	elif $figure == "floor_second" then ours($item) | map(.floor_second.ratio)
	elif $figure | test("^=.*/floor$") then beyond_floor($item; $figure[1:-6])
	elif $figure | startswith("=") then by_round($figure[1:]) as $other
		| ours($item) | map(select($other[.round | tostring] > 0) | .median / $other[.round | tostring])
	elif $figure | contains("/") then ($figure | split("/")) as $names
		| ours($item) | map(select(named($names[1]) > 0) | named($names[0]) / named($names[1]))
	elif ours($item) | any(has($figure)) then ours($item) | map(.[$figure])
	else by_round($item) as $own
		| map(select(.item == $item and .peer != null and (.peer | sub(" [0-9][0-9.]*"; "")) == $figure)
			| (.ours // $own[.round | tostring]) / .median)
	end | map(numbers);
. as $lines
| $targets | split("\n")[] | select(test("^[^#\t]+\t")) | split("\t")
| . as [$item, $name, $bound] | select(any($ARGS.positional[]; . == $item))
| ($bound | split(" ")) as [$relation, $limit]
| ($lines | values($item; $name) | middle) as $middle
| "| `\($item)` | \($name) | \({"<=": "≤", ">=": "≥"}[$relation]) \($limit) | \($middle | figure) | "
	+ (if $middle == null then "not measured"
		elif ($relation == "<=" and $middle <= ($limit | tonumber))
			or ($relation == ">=" and $middle >= ($limit | tonumber)) then "holds"
		else "**missed**" end) + " |"
