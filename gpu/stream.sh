#!/bin/sh
# What streaming to a card reaches: a model whose weights do not fit the memory that they get on it, against the measured
# speed of copies. It needs this program alone, about 20 GB of disk and 24 GB of memory, and about five minutes:
#
#	gpu/stream.sh ./sluice [folder for the model]
set -eu
sluice=$1
folder=${2:-/tmp}
model=$folder/stream-8b-f16.gguf
export SLUICE_DEVICE="${SLUICE_DEVICE:-vulkan}"

[ -f "$model" ] || "$sluice" synth --shape llama-3.1-8b --quant F16 -o "$model"

# The plan: three tiers, and what to expect by the measured speed of copies.
"$sluice" plan "$model" --vram 6G --ctx 1024
# The same answer with all weights on the card and with most of them in memory.
for vram in 40G 6G; do
	"$sluice" run -m "$model" --ctx 1024 --vram $vram --temp 0 -n 8 --json "Say it." | sed 's/,"text".*//'
done
# Decoding, whose second line of figures says what share of the copies' speed it takes, and who waits for what.
"$sluice" bench -m "$model" --vram 6G -p 128 -n 16 -r 2 --trace "$folder/stream.json" --force
"$sluice" trace stalls "$folder/stream.json" | head -12
