#version 460
#extension GL_GOOGLE_include_directive : require
// Joins the splits of attend_any.comp, in order.
//
// A thread owns a feature of a head. Grid: workgroups for all features, rows.
//
// variant: merge_any
#include "lib/buffers.glsl"
#include "lib/step.glsl"

layout(local_size_x = 64) in;

layout(push_constant, scalar) uniform Push {
	Floats parts;
	Floats y;
	StepRows rows;
	Floats sinks;  // a logit for each head that takes part in the sum, times log2(e); 0: none
	Words count;   // rows that are there; 0: all
	uint heads;
	uint features; // of a value
	uint yStride;  // in float32
};

void main() {
	uint i = gl_WorkGroupID.x * 64 + gl_LocalInvocationID.x, r = gl_WorkGroupID.y;
	if (i >= heads * features || uint64_t(count) != 0 && r >= count.v[0]) {
		return;
	}
	uint head = i / features, n = splits(rows.v[r].position);
	uint from = (r * heads + head) * MAXSPLITS * (features + 4);
	float most = uint64_t(sinks) == 0 ? -1e30 : sinks.v[head];
	for (uint s = 0; s < n; s++) {
		most = max(most, parts.v[from + s * (features + 4) + features]);
	}
	precise float sum = uint64_t(sinks) == 0 ? 0.0 : exp2(sinks.v[head] - most), v = 0.0;
	for (uint s = 0; s < n; s++) {
		uint part = from + s * (features + 4);
		float weight = exp2(parts.v[part + features] - most);
		sum = fma(weight, parts.v[part + features + 1], sum);
		v = fma(weight, parts.v[part + i % features], v);
	}
	y.v[r * yStride + i] = v / sum;
}
