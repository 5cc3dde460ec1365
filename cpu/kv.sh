#!/bin/sh
# What each type of the KV cache loses against f16 on a text: a row of a Markdown table for each, with the bits of a value of
# K and of V, the ratio of perplexities and its standard error, the median and the 99.9 % quantile of the KL divergence, and the
# share of positions with the same likeliest token. With the command of another engine, rows of its types follow, against its
# own f16: the command writes the logits of the ids in the file {ids} to the file {out}, with a cache of the type {kv}.
#
#	cpu/kv.sh ./sluice TEXT ['peer logits -m MODEL --kv {kv} --tokens @{ids} -o {out}']
#
# TYPES are those of K and V, K/V where they differ; OTHERS those of the other engine with the bits of a value, of which the
# first is what it is held against. MODEL is a file (none: the small embedded model), CHUNK the tokens of a chunk, CHUNKS how
# many there are, THREADS those that compute. Where there is no Go, MEASURE is cmd/sluice/internal/measure/others, built.
set -eu
sluice=$1 text=$2 other=${3:-} chunk=${CHUNK:-2048} chunks=${CHUNKS:-16}
types=${TYPES:-q8 q5 q4 tq4 tq3 q8/tq2}
others=${OTHERS:-f16 q8_0=8.5 q5_0=5.5 q4_0=4.5}

echo "| type | bits of K, V | perplexity | of f16 | KL median | KL 99.9 % | same first token |"
echo "|---|---|---|---|---|---|---|"
for kv in $types; do
	"$sluice" perplexity ${MODEL:+-m "$MODEL"} ${THREADS:+--threads "$THREADS"} -f "$text" -c "$chunk" --chunks "$chunks" \
		--kv-k "${kv%/*}" --kv-v "${kv#*/}" --against f16 --json
done | awk '{
	gsub(/[{},:"]/, " ")
	for (i = 1; i < NF; i++) v[$i] = $(i + 1)
	printf "| %s | %.3g, %.3g | %.5g | %.4f ± %.4f | %.5f | %.4f | %.2f %% |\n", v["kv"], v["bits_k"], v["bits_v"],
		v["ppl"], v["ratio"], v["ratio_err"], v["kl_median"], v["kl_p999"], 100 * v["same_top"]
	fflush()
}'

[ -n "$other" ] || exit 0
ids=$(mktemp)
trap 'rm "$ids"' EXIT
"$sluice" tokenize ${MODEL:+-m "$MODEL"} <"$text" >"$ids"
here=$(cd "$(dirname "$0")/.." && pwd)
(cd "$here" && ${MEASURE:-go run ./cmd/sluice/internal/measure/others} -ids "$ids" -chunk "$chunk" -chunks "$chunks" "$other" $others)
