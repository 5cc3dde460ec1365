#version 460
#extension GL_GOOGLE_include_directive : require
// Joins the splits of attend.comp, in order, to rows of activations: quantised, or float32.
//
// A thread owns four features of a head. Grid: workgroups for all features, rows.
// Subgroups: at least 8 lanes.
//
// variant: merge
#include "lib/buffers.glsl"
#include "lib/quantise.glsl"
#include "lib/step.glsl"

layout(local_size_x = 64) in;
layout(constant_id = 0) const uint FEATURES = 128; // of a head
layout(constant_id = 1) const uint HEADS = 1;
layout(constant_id = 2) const uint QUANTISE = 1;

layout(push_constant, scalar) uniform Push {
	Floats parts;
	uint64_t y;   // rows, padded to 256 values: quantised ones with zeros, the padding of others is not written
	StepRows rows;
	Floats sinks; // a logit for each head that takes part in the sum, times log2(e); 0: none
	uint yStride; // in float32, of float32 rows
};

void main() {
	uint at = (gl_WorkGroupID.x * 64 + gl_LocalInvocationID.x) * 4, r = gl_WorkGroupID.y;
	bool inside = at < HEADS * FEATURES;
	if (!inside && QUANTISE == 0) {
		return;
	}
	uint head = inside ? at / FEATURES : 0, d = at % FEATURES, n = splits(rows.v[r].position);
	uint from = (r * HEADS + head) * MAXSPLITS * (FEATURES + 4);
	// All parts are loaded at once: one after the other would wait for memory as often.
	float best[MAXSPLITS], sums[MAXSPLITS];
	vec4 values[MAXSPLITS];
	[[unroll]] for (uint s = 0; s < MAXSPLITS; s++) {
		uint part = from + s * (FEATURES + 4);
		bool there = s < n;
		best[s] = there ? parts.v[part + FEATURES] : -1e30;
		sums[s] = there ? parts.v[part + FEATURES + 1] : 0.0;
		values[s] = there ? Vectors(uint64_t(parts)).v[(part + d) / 4] : vec4(0);
	}
	float most = uint64_t(sinks) == 0 ? -1e30 : sinks.v[head];
	[[unroll]] for (uint s = 0; s < MAXSPLITS; s++) {
		most = max(most, best[s]);
	}
	precise float sum = uint64_t(sinks) == 0 ? 0.0 : exp2(sinks.v[head] - most);
	precise vec4 v = vec4(0);
	[[unroll]] for (uint s = 0; s < MAXSPLITS; s++) {
		float weight = s < n ? exp2(best[s] - most) : 0.0;
		sum = fma(weight, sums[s], sum);
		v = fma(vec4(weight), values[s], v);
	}
	v = inside ? v / sum : vec4(0);
	if (QUANTISE == 0) {
		Vectors(y).v[(r * yStride + at) / 4] = v;
		return;
	}
	const uint K = (HEADS * FEATURES + 255) / 256 * 256;
	Quantised q = quantise8(v);
	Words(y).v[(r * (K * 5 / 4) + at) / 4] = q.bytes;
	if (at % 32 == 0) {
		Pairs(y).v[r * (K * 5 / 32) + K / 8 + at / 32] = q.scale;
	}
}
