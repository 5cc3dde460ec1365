#!/bin/sh
# What each type of the KV cache loses against f16 on a text: a row of a Markdown table for each, with the bits of a value of
# K and of V, the ratio of perplexities and its standard error, the median and the 99.9 % quantile of the KL divergence, and the
# share of positions with the same likeliest token. With the command of another engine, rows of its types follow, with what it
# prints: {kv} stands there for the type, {text}, {chunk} and {chunks} for the rest, and it prints JSON with "ppl".
#
#	cpu/kv.sh ./sluice TEXT ['COMMAND']
#
# TYPES are those of K and V, K/V where they differ; OTHERS those of the other engine, of which the first is what it is held
# against. MODEL is a file (none: the small embedded model), CHUNK the tokens of a chunk, CHUNKS how many there are, JOBS how
# many types run at once.
set -eu
sluice=$1 text=$2 other=${3:-} chunk=${CHUNK:-2048} chunks=${CHUNKS:-16}
types=${TYPES:-q8 q5 q4 tq4 tq3 q8/tq2}
others=${OTHERS:-f16 q8_0 q5_0 q4_0}

# measure compares a type; sh -c runs it, with all flags behind its name.
measure='kv=$0; exec "$@" --kv-k "${kv%/*}" --kv-v "${kv#*/}" --against f16'

echo "| type | bits of K, V | perplexity | of f16 | KL median | KL 99.9 % | same first token |"
echo "|---|---|---|---|---|---|---|"
printf '%s\n' $types |
	xargs -P "${JOBS:-1}" -I{} sh -c "$measure" {} "$sluice" perplexity ${MODEL:+-m "$MODEL"} -f "$text" -c "$chunk" \
		--chunks "$chunks" |
	tr '{},:"' '     ' | awk '{
		for (i = 1; i < NF; i++) v[$i] = $(i + 1)
		printf "| %s | %.3g, %.3g | %.5g | %.4f ± %.4f | %.5f | %.4f | %.2f %% |\n", v["kv"], v["bits_k"], v["bits_v"],
			v["ppl"], v["ratio"], v["ratio_err"], v["kl_median"], v["kl_p999"], 100 * v["same_top"]
	}' | sort -r -k4

[ -n "$other" ] || exit 0
first=
for kv in $others; do
	command=$(echo "$other" | sed "s|{kv}|$kv|g; s|{text}|$text|g; s|{chunk}|$chunk|g; s|{chunks}|$chunks|g")
	ppl=$(sh -c "$command" 2>/dev/null | sed -n 's/.*"ppl": *\([0-9.]*\).*/\1/p')
	first=${first:-$ppl}
	echo "$kv $ppl $first" | awk '{ printf "| their %s | | %.5g | %.4f | | | |\n", $1, $2, $2 / $3 }'
done
