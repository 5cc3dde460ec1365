#version 460
#extension GL_GOOGLE_include_directive : require
// Joins the splits of attend_coded.comp, in order, turns their sum back, and adds the part of the row's own block.
//
// A workgroup owns a row's head. Grid: heads, rows. Shared memory: 4·VALUES bytes.
//
// variant: merge_coded
#include "lib/buffers.glsl"
#include "lib/step.glsl"

layout(local_size_x = 64) in;
layout(constant_id = 0) const uint TYPE = 5;     // of values
layout(constant_id = 1) const uint VALUES = 128; // features of a value
layout(constant_id = 2) const uint POWER = 128;  // of two that divides VALUES
#include "lib/codes.glsl"

layout(push_constant, scalar) uniform Push {
	Floats parts;  // [row][head][MAXSPLITS + 1][VALUES + 4]: values, largest score, sum
	Floats y;
	StepRows rows;
	Floats sinks;  // a logit for each head that takes part in the sum, times log2(e); 0: none
	Words count;   // rows that are there; 0: all
	uint yStride;  // in float32
	float scale;   // 1/√VALUES
};

const uint THREADS = 64, PART = VALUES + 4;

shared float turned[VALUES];
#include "lib/turned.glsl"

void main() {
	uint head = gl_WorkGroupID.x, r = gl_WorkGroupID.y, heads = gl_NumWorkGroups.x, thread = gl_LocalInvocationID.x;
	if (uint64_t(count) != 0 && r >= count.v[0]) {
		return;
	}
	uint n = splits(rows.v[r].position), from = (r * heads + head) * (MAXSPLITS + 1) * PART, open = from + MAXSPLITS * PART;
	bool sunk = uint64_t(sinks) != 0;
	float most = max(sunk ? sinks.v[head] : -1e30, parts.v[open + VALUES]);
	for (uint s = 0; s < n; s++) {
		most = max(most, parts.v[from + s * PART + VALUES]);
	}
	precise float sum = sunk ? exp2(sinks.v[head] - most) : 0.0;
	for (uint s = 0; s < n; s++) {
		sum = fma(exp2(parts.v[from + s * PART + VALUES] - most), parts.v[from + s * PART + VALUES + 1], sum);
	}
	float own = exp2(parts.v[open + VALUES] - most);
	sum = fma(own, parts.v[open + VALUES + 1], sum);
	for (uint d = thread; d < VALUES; d += THREADS) {
		precise float v = 0.0;
		for (uint s = 0; s < n; s++) {
			v = fma(exp2(parts.v[from + s * PART + VALUES] - most), parts.v[from + s * PART + d], v);
		}
		turned[d] = v;
	}
	if (isCoded(TYPE)) {
		transform(1, VALUES, POWER, scale, true);
	}
	for (uint d = thread; d < VALUES; d += THREADS) {
		float back = turned[d];
		precise float v = fma(own, parts.v[open + d], isCoded(TYPE) && flips(d) ? -back : back);
		y.v[r * yStride + head * VALUES + d] = v / sum;
	}
}
