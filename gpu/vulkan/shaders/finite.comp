#version 460
#extension GL_GOOGLE_include_directive : require
// Finds rows with a value that is NaN or infinite. Such a value stays one through every kernel, so it is enough to look
// at what a step leaves.
//
// A thread looks at four values. Grid: workgroups for a row's values, rows.
//
// variant: finite
#include "lib/buffers.glsl"

layout(local_size_x = 64) in;

layout(push_constant, scalar) uniform Push {
	Words x;      // float32 rows
	Words status; // becomes 1 + a row that has one
	Words count;  // rows that are there
	uint width;
	uint xStride; // in float32
};

void main() {
	uint from = (gl_WorkGroupID.x * 64 + gl_LocalInvocationID.x) * 4, r = gl_WorkGroupID.y;
	if (r >= count.v[0]) {
		return;
	}
	for (uint i = from; i < min(from + 4, width); i++) {
		if ((x.v[r * xStride + i] & 0x7f800000u) == 0x7f800000u) {
			status.v[0] = r + 1;
		}
	}
}
