#version 460
#extension GL_GOOGLE_include_directive : require
// The index of a row's largest value; of equal ones the first. Two dispatches: parts of rows, then the parts.
//
// A workgroup owns a part of a row. Grid: parts, rows; the second time one part. NaN is never the largest.
//
// variant: argmax
#include "lib/buffers.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint JOIN = 0; // 1: x is pairs of value and index, y is indices

layout(push_constant, scalar) uniform Push {
	Words x;    // float32 rows, or the pairs that the first dispatch wrote
	Words y;    // [row][part] pairs, or [row] indices
	Words copy; // of the indices; 0: none
	uint width;   // values of a row, or parts
	uint xStride; // from row to row, in values
};

shared float values[256];
shared uint indices[256];

bool better(float v, uint i, float than, uint at) { return v > than || v == than && i < at; }

void main() {
	uint thread = gl_LocalInvocationID.x, row = gl_WorkGroupID.y, parts = gl_NumWorkGroups.x;
	uint each = (width + parts - 1) / parts, from = gl_WorkGroupID.x * each, to = min(from + each, width);
	float best = -uintBitsToFloat(0x7f800000u);
	uint at = 0xffffffffu;
	for (uint i = from + thread; i < to; i += 256) {
		uint k = row * xStride + i;
		float v = uintBitsToFloat(JOIN != 0 ? x.v[2 * k] : x.v[k]);
		uint index = JOIN != 0 ? x.v[2 * k + 1] : i;
		if (better(v, index, best, at)) {
			best = v;
			at = index;
		}
	}
	values[thread] = best;
	indices[thread] = at;
	for (uint n = 128; n > 0; n /= 2) {
		barrier();
		if (thread < n && better(values[thread + n], indices[thread + n], values[thread], indices[thread])) {
			values[thread] = values[thread + n];
			indices[thread] = indices[thread + n];
		}
	}
	if (thread != 0) {
		return;
	}
	if (JOIN != 0) {
		uint index = indices[0] == 0xffffffffu ? 0 : indices[0];
		y.v[row] = index;
		if (uint64_t(copy) != 0) {
			copy.v[row] = index;
		}
	} else {
		y.v[2 * (row * parts + gl_WorkGroupID.x)] = floatBitsToUint(values[0]);
		y.v[2 * (row * parts + gl_WorkGroupID.x) + 1] = indices[0];
	}
}
