#!/bin/sh
# How fast answers go on behind long texts with each type of the KV cache: a row of a Markdown table for each type and depth,
# with tokens a second, what f16 is to them, and what attention alone takes of its time in f16: by how much a step
# takes longer than behind nothing. With the command of another engine, its tokens a second in turns with ours, at as many bits.
#
#	cpu/depth.sh ./sluice MODEL ['peer bench -m {model} -t {threads} -p {prompt} -n {tokens} --depth {depth} -r 1 --kv {kv}']
#
# TYPES are those of K and V, of which the first is what others are held against, DEPTHS the positions, DEVICE where it is
# computed, SEQS how many sequences there are, TOKENS and RUNS how many tokens of how many runs, THREADS those that compute.
set -eu
sluice=$1 model=$2 other=${3:-}
types=${TYPES:-f16 q8 q5 q4 tq4 tq3} depths=${DEPTHS:-8192 32768}

rows=$(mktemp)
trap 'rm "$rows"' EXIT

echo "| type | depth | tokens/s | of f16 | attention's time of f16's | other engine | times as fast |"
echo "|---|---|---|---|---|---|---|"
for kv in $types; do
	case $kv in
	q?) theirs=${kv}_0 ;;
	tq?) theirs=q4_0 ;;
	*) theirs=$kv ;;
	esac
	compare=$(printf '%s' "$other" | sed "s/{kv}/$theirs/g")
	"$sluice" bench -m "$model" --kv-k "${kv%/*}" --kv-v "${kv#*/}" -p 1 -n "${TOKENS:-32}" -r "${RUNS:-3}" \
		--depth "0,$(echo "$depths" | tr ' ' ,)" ${THREADS:+-t "$THREADS"} ${DEVICE:+--device "$DEVICE"} \
		${SEQS:+--seqs "$SEQS"} ${compare:+--compare "$compare"} --markdown | sed "s|^|$kv |" >>"$rows"
	awk -F ' *[|] *' -v kv="$kv" -v depths="$depths" '
		$2 == "a step" && NF == 8 { rate[$1, $3] = $5; if (first == "") first = $1 }
		$2 == "a step" && NF > 8 { theirs[$1, $3] = $6; times[$1, $3] = $7 }
		function attention(kv, d) { return 1 / rate[kv, d] - 1 / rate[kv, 0] }
		END {
			n = split(depths, at, " ")
			for (i = 1; i <= n; i++) {
				d = at[i]
				printf "| %s | %d | %.1f | %.2f | %.2f | %s | %s |\n", kv, d, rate[kv, d], rate[kv, d] / rate[first, d],
					attention(kv, d) / attention(first, d), theirs[kv, d], times[kv, d]
			}
		}' "$rows"
done
