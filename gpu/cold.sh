#!/bin/sh
# How long the first token takes from a cold start, and where the time goes, against reading the file: stage by stage, in
# milliseconds since loading began, with the bytes a second of each. It needs this program, awk, about 9 GB of disk and
# as much free memory, and about three minutes:
#
#	gpu/cold.sh ./sluice [folder for the model]
#
# SLUICE_DEVICE (vulkan), MODEL (a file of one's own) and RUNS (5) change what is measured. As root it is measured from
# the drive, too, with an empty page cache, unless DROP is 0.
set -eu
sluice=$1
folder=${2:-/tmp}
model=${MODEL:-$folder/cold-8b-q8.gguf}
runs=${RUNS:-5}
least=1 # what cat takes at best, in milliseconds
export SLUICE_DEVICE="${SLUICE_DEVICE:-vulkan}"

[ -f "$model" ] || "$sluice" synth --shape llama-3.1-8b --quant Q8_0 -o "$model" >&2
bytes=$(wc -c <"$model")
millis() { echo $(($(date +%s%N) / 1000000)); }

# What the machine is: cores, the card, how it reads.
"$sluice" doctor 2>&1 | grep -E 'io_uring|processor|GPU' || true
echo "model: $bytes bytes"

# reading prints how long cat takes for the file, from the memory or the drive.
reading() {
	least=0
	for _ in 1 2 3; do
		[ "$1" = memory ] || echo 3 >/proc/sys/vm/drop_caches
		from=$(millis)
		cat "$model" >/dev/null
		took=$(($(millis) - from))
		if [ "$least" = 0 ] || [ "$took" -lt "$least" ]; then least=$took; fi
	done
	awk -v ms="$least" -v n="$bytes" -v from="$1" \
		'BEGIN { printf "cat, from the %s: %d ms, %.2f GB/s\n", from, ms, n / ms / 1e6 }'
}

# once runs the model to its first token, and prints when what was done.
once() {
	from=$(millis)
	"$sluice" run -m "$model" --ctx 1024 -n 1 --temp 0 --json --log debug --log-format json "Say it." >"$folder/cold.out" 2>&1
	awk -v process=$(($(millis) - from)) -v cat="$least" '
		function at(name) { # what a line of JSON says of a name
			return match($0, "\"" name "\":[0-9.]+") ? substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3) : 0
		}
		function rate(ms) { return ms > 0 ? n / ms / 1e6 : 0 }
		/"message":"loaded"/ {
			opened = at("opened_ms"); laid = at("laid_ms"); asked = at("first_read_ms"); read = at("last_read_ms")
			home = at("home_ms"); ready = at("ready_ms"); n = at("bytes")
		}
		/"first_token_ms"/ { token = at("first_token_ms"); prefill = at("prefill_ms") }
		END {
			printf "opened %d, laid out %d, first read %d, last read %d (%.2f GB/s), last upload %d (%.2f GB/s), ",
				opened, laid, asked, read, rate(read - asked), home, rate(home - asked)
			printf "ready %d, first token %d (prompt %d), process %d; first token / cat = %.2f\n",
				ready, token, prefill, process, token / cat
		}' "$folder/cold.out"
}

once >/dev/null # fills the cache of kernels
reading memory
for _ in $(seq "$runs"); do once; done
if [ -w /proc/sys/vm/drop_caches ] && [ "${DROP:-1}" = 1 ]; then
	reading drive
	for _ in 1 2; do
		echo 3 >/proc/sys/vm/drop_caches
		once
	done
fi
rm -f "$folder/cold.out"
