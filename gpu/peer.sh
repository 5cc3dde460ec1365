#!/bin/sh
# How fast models are on a card, in turns with another engine: of each case a line for prompts, answers and single steps,
# with the medians of both and our rate as a multiple of theirs. It needs this program, the other one's, and 19 GB of
# disk; a case takes half a minute to a minute:
#
#	gpu/peer.sh ./sluice 'COMMAND' [FOLDER [CASE...]]
#
# COMMAND is what --compare of sluice bench takes. Cases are file types of 8 B (Q4_0, Q4_K_M, Q6_K, Q8_0, F16), which are
# made, measured and removed, deep (8 B Q4_K_M behind 8192 positions), eight (eight sequences of it), long (a prompt of
# 4096), fast (with --fast-prefill), small (1.7 B) and mixture (30 B with 3 B active). RUNS is how many turns there are (2).
set -eu
sluice=$1 other=$2
folder=${3:-/tmp}
[ $# -lt 3 ] && shift $# || shift 3
cases=${*:-Q4_0 Q4_K_M deep eight long fast Q6_K Q8_0 F16 small mixture}
export SLUICE_DEVICE="${SLUICE_DEVICE:-vulkan}"

# measure runs a case: FILE SHAPE TYPE, and flags of bench.
measure() {
	file=$folder/peer-$1.gguf shape=$2 type=$3
	shift 3
	[ -f "$file" ] || "$sluice" synth --shape "$shape" --quant "$type" -o "$file" >/dev/null 2>&1
	"$sluice" bench -m "$file" -n 64 -r "${RUNS:-2}" "$@" --compare "them: $other" 2>&1 |
		awk -v name="$name" '$NF == "them" || /rror|fail/ { print name ": " $0 }'
}

for name in $cases; do
	case $name in
	Q4_K_M) measure Q4_K_M llama-3.1-8b Q4_K_M ;;
	deep) measure Q4_K_M llama-3.1-8b Q4_K_M --depth 8192 ;;
	eight) measure Q4_K_M llama-3.1-8b Q4_K_M --seqs 8 -p 128 ;;
	long) measure Q4_K_M llama-3.1-8b Q4_K_M -p 4096 ;;
	fast) measure Q4_K_M llama-3.1-8b Q4_K_M --fast-prefill ;;
	small) measure small smollm2-1.7b Q4_K_M ;;
	mixture) measure mixture qwen3-30b-a3b Q4_K_M ;;
	*) measure "$name" llama-3.1-8b "$name" ;;
	esac
	case " Q4_K_M deep eight long fast " in
	*" $name "*) ;; # these have a file together
	*) rm -f "$file" ;;
	esac
done
rm -f "$folder/peer-Q4_K_M.gguf"
