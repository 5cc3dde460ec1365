#!/bin/sh
# What share of questions about single sentences of a long text a model answers with each type of the KV cache: a row of a
# Markdown table for each type, a column for each length. A text is prose of FILE with sentences in between, such as "The
# secret code of Anna is 4821.", and the question, after the whole text, is which code somebody has.
#
#	cpu/needle.sh ./sluice FILE
#
# TYPES are those of K and V, K/V where they differ, or auto:BITS. MODEL is a file (none: the small embedded model), LENGTHS are thousands of
# tokens, TEXTS how many texts there are of each length, with four questions each.
set -eu
sluice=$1 file=$2
types=${TYPES:-f16 q8 q5 q4 tq4 tq3 q8/tq2} lengths=${LENGTHS:-1 2 4 8 12} texts=${TEXTS:-1}
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -r "$folder"' EXIT

# Requests: one file for each question, named by length, text and question, and beside it the answer that is right.
tr -cd 'A-Za-z0-9 .,;\n' <"$file" | tr '\n' ' ' | tr -s ' ' | awk -v lengths="$lengths" -v texts="$texts" -v folder="$folder" '{
	split("Anna Boris Clara David Emma Felix Greta Hugo", names, " ")
	n = split(lengths, k, " ")
	srand(7)
	for (i = 1; i <= n; i++) for (t = 0; t < texts; t++) {
		size = int(k[i] * 1024 * 3.4 - 400)
		from = 1 + t * size
		text = ""
		for (q = 1; q <= 4; q++) {
			code[q] = 1000 + int(rand() * 9000)
			who[q] = names[q + 4 * (t % 2)]
			text = text substr($0, from + (q - 1) * int(size / 4), int(size / 8))
			text = text ". The secret code of " who[q] " is " code[q] ". "
			text = text substr($0, from + (q - 1) * int(size / 4) + int(size / 8), int(size / 8))
		}
		for (q = 1; q <= 4; q++) {
			name = folder "/" k[i] "-" t "-" q
			printf "{\"temperature\": 0, \"max_tokens\": 24, \"messages\": [{\"role\": \"user\", \"content\": " > name ".json"
			printf "\"%s\\n\\nWhat is the secret code of %s?\"}]}", text, who[q] >> name ".json"
			print code[q] > name ".code"
			close(name ".json")
			close(name ".code")
		}
	}
}'

# ask starts a server with a type of K and one of V, and prints the shares by length.
ask() {
	case $1 in
	auto*) set -- --kv "$1" ;;
	*) set -- --kv-k "${1%/*}" --kv-v "${1#*/}" ;;
	esac
	"$sluice" serve ${MODEL:+-m "$MODEL"} "$@" --ctx 16384 --addr 127.0.0.1:0 \
		>"$folder/log" 2>&1 &
	server=$!
	until at=$(sed -n 's|^\(http://[0-9.:]*\) serves.*|\1|p' "$folder/log") && [ -n "$at" ]; do
		kill -0 "$server"
		sleep 0.2
	done
	for k in $lengths; do
		right=0 all=0
		for q in "$folder/$k"-*.json; do
			answer=$(curl -sf -H 'Content-Type: application/json' -d "@$q" "$at/v1/chat/completions")
			all=$((all + 1))
			case $answer in *"$(cat "${q%.json}.code")"*) right=$((right + 1)) ;; esac
		done
		printf ' %d/%d |' "$right" "$all"
	done
	kill "$server"
	wait "$server" || true
	server=
}

echo "| type |$(printf ' %sK |' $lengths)"
echo "|---|$(printf '%s' $lengths | sed 's/[0-9]*/---|/g')"
for kv in $types; do
	printf '| %s |' "$kv"
	ask "$kv"
	echo
done
