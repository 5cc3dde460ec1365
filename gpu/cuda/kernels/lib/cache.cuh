// Keys and values of one layer in the three types of caches. One of them, for one sequence's block and KV head, is a run:
// 64 positions × features of halves (as lib/step.cuh says), of float32, or of signed bytes and behind those, for each
// position, the float32 scales of every so many features, by which bytes are multiplied.
#pragma once
#include "step.cuh"

constexpr uint kvF16 = 1, kvF32 = 2, kvQ8 = 3; // as gpu/cuda numbers them

DEVICE uint scalesOf(uint features, uint grouped) { return (features + grouped - 1) / grouped; }

// runBytes is the memory of a run.
DEVICE uint64_t runBytes(uint type, uint features, uint grouped) {
	uint each = type == kvF32 ? 4 * features : 2 * features;
	if (type == kvQ8) {
		each = features + 4 * scalesOf(features, grouped);
	}
	return 64ul * each;
}
