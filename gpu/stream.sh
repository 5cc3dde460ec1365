#!/bin/sh
# What streaming to a card reaches, against what plans expect: of models whose weights do not fit the memory that they get
# on it. It needs this program alone, 20 GB of disk and 24 GB of memory. Each case takes one to three minutes, most of them
# for its model, which is removed behind the last case that uses it:
#
#	gpu/stream.sh ./sluice [FOLDER [CASE...]]
#
# Cases are dense (8 B of F16), large (eight layers of 70 B of F16), tiers (a mixture of 30 B in three tiers) and beside (the
# same with experts computed by the processor). Each ends with lines that begin with its name: expected, measured and
# their ratio, in the long run and, of tiers, from cold. SMALL=1 tries the script itself with models of some MB.
set -eu
sluice=$1
folder=${2:-/tmp}
[ $# -lt 2 ] && shift $# || shift 2
cases=${*:-dense large tiers beside}
export SLUICE_DEVICE="${SLUICE_DEVICE:-vulkan}"

# model makes one, unless it is there: FILE SHAPE TYPE, and more.
model() {
	file=$folder/stream-$1.gguf shape=$2 type=$3
	shift 3
	[ -f "$file" ] || "$sluice" synth --shape "$shape" --quant "$type" -o "$file" "$@"
}

# measure runs a case: NAME, and what of the model is where. Of three tiers the long run begins when every expert has been
# chosen once: after a hundred tokens.
measure() {
	name=$1 runs=2
	[ "$name" = tiers ] && runs=7
	shift
	echo "== $name: $*"
	"$sluice" plan "$file" --ctx 1024 "$@" | sed -n '/^expected/,$p'
	# Hardly a prompt: so the run before those that count begins with slots that are empty.
	"$sluice" bench -m "$file" "$@" -p 2 -n 32 -r "$runs" --trace "$folder/stream.json" --force >"$folder/stream.txt"
	cat "$folder/stream.txt"
	"$sluice" trace stalls "$folder/stream.json" | head -12
	grep -E '^(the plan expects|in the run before|copied to)' "$folder/stream.txt" | sed "s/^/$name: /"
	rm -f "$folder/stream.json" "$folder/stream.txt"
}

# Sizes as they are measured, and as the script is tried.
if [ -z "${SMALL:-}" ]; then
	dense=llama-3.1-8b large=llama-3.1-70b mixture=qwen3-30b-a3b layers=8 few=48 vocab=128256
	of_dense='--vram 6G' of_large='--vram 6G' of_tiers='--vram 8G --ram 12G' of_beside='--vram 8G --cpu-experts 28'
else
	dense=smollm2-135m large=smollm2-135m mixture=qwen3-30b-a3b layers=2 few=1 vocab=8192
	of_dense='--vram 24M' of_large='--vram 16M' of_tiers='--vram 100M --ram 200M' of_beside='--cpu-experts 1'
fi

for name in $cases; do
	case $name in
	dense)
		model dense $dense F16
		measure dense $of_dense
		rm -f "$file"
		;;
	large)
		model large $large F16 --layers $layers
		measure large $of_large
		rm -f "$file"
		;;
	tiers | beside)
		model mixture $mixture Q4_K_M --layers $few --vocab $vocab
		[ $name = tiers ] && measure tiers $of_tiers || measure beside $of_beside
		case " $cases " in
		*" tiers beside "*) [ $name = tiers ] || rm -f "$file" ;;
		*) rm -f "$file" ;;
		esac
		;;
	*) echo "there is no case $name" && exit 2 ;;
	esac
done
