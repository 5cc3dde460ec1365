// Joins the splits of attend_coded.cu, in order, turns their sum back, and adds the part of the row's own block.
//
// A block owns a row's head. Memory: a float for each feature. Grid: heads, rows.
//
// variant: merge_coded
#include "lib/codes.cuh"
#include "lib/turned.cuh"

struct Args {
	uint64_t parts; // [row][head][mostSplits + 1][features + 4]: values, largest score, sum
	uint64_t y;
	uint64_t rows;
	uint64_t sinks; // a logit for each head that takes part in the sum, times log2(e); 0: none
	uint64_t count; // rows that are there; 0: all
	uint type;      // of values
	uint features;  // of a value
	uint power;     // of two that divides them: see lib/turned.cuh
	uint yStride;   // in float32
	float scale;    // 1/√features
	uint pad;
};

KERNEL(mergeCoded, Args, 64) {
	uint head = blockX(), r = blockY(), heads = gridX(), n = a.features, stride = n + 4;
	if (r >= rowsThere(a.count, ~0u)) {
		return;
	}
	float *turned = dynamicShared<float>();
	uint many = evenSplits(at<const Row>(a.rows)[r].position / 64);
	const float *from = at<const float>(a.parts) + (uint64_t(r) * heads + head) * (mostSplits + 1) * stride;
	const float *open = from + mostSplits * stride;
	float sink = a.sinks != 0 ? at<const float>(a.sinks)[head] : -1e30f, most = greater(sink, open[n]);
	for (uint s = 0; s < many; s++) {
		most = greater(most, from[s * stride + n]);
	}
	float sum = a.sinks != 0 ? exp2(sink - most) : 0.0f, own = exp2(open[n] - most);
	for (uint s = 0; s < many; s++) {
		sum = fma(exp2(from[s * stride + n] - most), from[s * stride + n + 1], sum);
	}
	sum = fma(own, open[n + 1], sum);
	for (uint d = threadX(); d < n; d += 64) {
		float v = 0;
		for (uint s = 0; s < many; s++) {
			v = fma(exp2(from[s * stride + n] - most), from[s * stride + d], v);
		}
		turned[d] = v;
	}
	if (isCoded(a.type)) {
		transform(turned, 1, n, a.power, a.scale, true);
	}
	for (uint d = threadX(); d < n; d += 64) {
		float back = isCoded(a.type) && flips(d) ? -turned[d] : turned[d];
		at<float>(a.y)[uint64_t(r) * a.yStride + head * n + d] = fma(own, open[d], back) / sum;
	}
}
