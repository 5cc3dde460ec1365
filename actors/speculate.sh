#!/bin/sh
# How many times as fast answers are with guesses of n-grams as without, by task and number of sequences: a row of a Markdown
# table for each, with the quartiles of the turns, the share of guesses that were right, and tokens a second with guesses.
#
#	actors/speculate.sh [MODEL...]
#
# MODELs are files (none: the small embedded model). RUNS is how many turns there are, TASKS which, such as editing/1 (all:
# copying, editing and telling at 1, 4 and 8 sequences). With WEIGHTS, in MiB, the models are
# streamed, and guesses are right so often as the task says, whatever the model is: BenchmarkForced. With DRAFT, a file,
# that model guesses too: BenchmarkDraft. SLUICE_TEST_DEVICE is where it is computed: cuda, vulkan, or the processor. Where
# there is no Go, TEST is what `go test -c ./actors` made, and SLUICE_SHARED the reference data.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
runs=${RUNS:-9} tasks=${TASKS:-.} bench=Speculation
[ -z "${WEIGHTS:-}" ] || bench=Forced
[ -z "${DRAFT:-}" ] || bench=Draft

echo "| model | task | sequences | times as fast | quartiles | right | tokens/s |"
echo "|---|---|---|---|---|---|---|"
[ $# -gt 0 ] || set -- ""
for model; do
	[ -z "$model" ] || model=$(cd "$(dirname "$model")" && pwd)/$(basename "$model")
	(cd "$here/actors" && SLUICE_MODEL=$model SLUICE_WEIGHTS=${WEIGHTS:-} SLUICE_DRAFT=${DRAFT:-} ${TEST:-go test .} \
		-test.timeout 0 -test.run '^$' -test.bench "^Benchmark$bench\$/$tasks" -test.benchtime "${runs}x") |
		awk -v model="$(basename "${model:-embedded}" .gguf)" '/^Benchmark/ {
			split($1, name, "/")
			sub(/-[0-9]+$/, "", name[3])
			split("", v)
			for (i = 3; i < NF; i += 2) v[$(i + 1)] = $i
			printf "| %s | %s | %s | %.2f | %.2f to %.2f | %.0f %% | %.0f |\n", model, name[2], name[3], v["times"],
				v["least"], v["most"], 100 * v["right"], v["tokens/s"]
			fflush()
		} /FAIL|panic/ { print >"/dev/stderr" }'
done
