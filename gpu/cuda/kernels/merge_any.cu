// Joins the splits of attend_any.cu, or attend_whole.cu, in order.
//
// A thread owns a feature of a head. Grid: blocks for all features, rows.
//
// variant: merge_any
#include "lib/step.cuh"

struct Args {
	uint64_t parts;
	uint64_t y;
	uint64_t rows;
	uint64_t sinks; // a logit for each head that takes part in the sum, times log2(e); 0: none
	uint64_t count; // rows that are there; 0: all
	uint heads;
	uint features; // of a value
	uint yStride;  // in float32
	uint even;     // 1: splits divide a row's blocks evenly, its own included
};

KERNEL(mergeAny, Args, 64) {
	uint i = blockX() * 64 + threadX(), r = blockY();
	if (i >= a.heads * a.features || r >= rowsThere(a.count, ~0u)) {
		return;
	}
	uint head = i / a.features, position = at<const Row>(a.rows)[r].position, stride = a.features + 4;
	uint n = a.even != 0 ? evenSplits(position / 64 + 1) : splits(position);
	const float *from = at<const float>(a.parts) + (uint64_t(r) * a.heads + head) * mostSplits * stride;
	float sink = a.sinks != 0 ? at<const float>(a.sinks)[head] : -1e30f, most = sink;
	for (uint s = 0; s < n; s++) {
		most = greater(most, from[s * stride + a.features]);
	}
	float sum = a.sinks != 0 ? exp2(sink - most) : 0.0f, v = 0;
	for (uint s = 0; s < n; s++) {
		const float *part = from + s * stride;
		float weight = exp2(part[a.features] - most);
		sum = fma(weight, part[a.features + 1], sum);
		v = fma(weight, part[i % a.features], v);
	}
	at<float>(a.y)[uint64_t(r) * a.yStride + i] = v / sum;
}
