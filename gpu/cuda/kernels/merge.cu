// Joins the splits of attend.cu, in order, to rows of activations: quantised, or float32.
//
// A thread owns four features of a head. Grid: blocks for all features, rows.
//
// variant: merge
#include "lib/join.cuh"
#include "lib/quantise.cuh"
#include "lib/step.cuh"

struct Args {
	uint64_t parts; // [row][head][mostSplits][features + 4]: values, largest score, sum
	uint64_t y;     // rows, padded to 256 values: quantised ones with zeros, the padding of others is not written
	uint64_t rows;
	uint64_t sinks; // a logit for each head that takes part in the sum, times log2(e); 0: none
	uint64_t count; // rows that are there; 0: all
	uint heads;
	uint features; // of a head, a multiple of four
	uint yStride;  // in float32, of float32 rows
	uint quantise;
	uint one;      // 1: splits are joined already
};

KERNEL(merge, Args, 64) {
	uint i = (blockX() * 64 + threadX()) * 4, r = blockY(), width = a.heads * a.features;
	if (r >= rowsThere(a.count, ~0u)) {
		return;
	}
	bool inside = i < width;
	uint head = inside ? i / a.features : 0, d = i % a.features;
	uint n = a.one != 0 ? 1 : splits(at<const Row>(a.rows)[r].position);
	const float *from = at<const float>(a.parts) + (uint64_t(r) * a.heads + head) * mostSplits * (a.features + 4);
	// All parts are loaded at once: one after the other would wait for memory as often.
	float best[mostSplits], sums[mostSplits];
	float4 values[mostSplits];
#pragma unroll
	for (uint s = 0; s < mostSplits; s++) {
		const float *part = from + s * (a.features + 4);
		bool there = s < n;
		best[s] = there ? part[a.features] : nothing;
		sums[s] = there ? part[a.features + 1] : 0.0f;
		values[s] = there ? *reinterpret_cast<const float4 *>(part + d) : float4{0, 0, 0, 0};
	}
	float most = nothing, sum = 0;
	float4 v = {0, 0, 0, 0};
#pragma unroll
	for (uint s = 0; s < mostSplits; s++) {
		if (s < n) {
			float before = most;
			most = greater(before, best[s]);
			Factors f = factorsOf(before, best[s], most);
			sum = joined(f, sum, sums[s]);
			v = {joined(f, v.x, values[s].x), joined(f, v.y, values[s].y), joined(f, v.z, values[s].z),
				joined(f, v.w, values[s].w)};
		}
	}
	if (a.sinks != 0) {
		float sink = at<const float>(a.sinks)[head], all = greater(most, sink);
		Factors f = factorsOf(most, sink, all);
		sum = joined(f, sum, 1.0f);
		v = {joined(f, v.x, 0.0f), joined(f, v.y, 0.0f), joined(f, v.z, 0.0f), joined(f, v.w, 0.0f)};
	}
	// Whether a zero has a sign depends on how many splits there were.
	v = inside ? float4{v.x / sum + 0.0f, v.y / sum + 0.0f, v.z / sum + 0.0f, v.w / sum + 0.0f} : float4{0, 0, 0, 0};
	if (a.quantise == 0) {
		if (inside) {
			*reinterpret_cast<float4 *>(at<float>(a.y) + uint64_t(r) * a.yStride + i) = v;
		}
		return;
	}
	uint k = (width + 255) / 256 * 256;
	Quantised q = quantise8(v);
	quantisedWords(a.y, r, k)[i / 4] = q.bytes;
	if (i % 32 == 0) {
		quantisedScales(a.y, r, k)[i / 32] = q.scale;
	}
}
