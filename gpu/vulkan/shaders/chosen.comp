#version 460
#extension GL_GOOGLE_include_directive : require
// Lists the experts that a router chose elsewhere, as route.comp lists them, from the weights of all: those that are not
// 0, ascending. A row that has fewer than USED goes on with the first expert, whose weight there is 0.
//
// A thread owns a row.
//
// variant: chosen
#include "lib/buffers.glsl"

layout(local_size_x = 64) in;
layout(constant_id = 0) const uint USED = 2;

layout(push_constant, scalar) uniform Push {
	Floats dense;   // [row][experts]
	Words ids;      // [row][USED]; all ones where the row is not there
	Floats weights; // [row][USED]
	Words count;    // rows that are there; 0: all
	uint rows;
	uint experts;
	uint stride;    // of dense, in float32
};

void main() {
	uint r = gl_WorkGroupID.x * 64 + gl_LocalInvocationID.x, n = 0;
	if (r >= rows) {
		return;
	}
	bool there = uint64_t(count) == 0 || r < count.v[0];
	for (uint e = 0; there && e < experts && n < USED; e++) {
		float w = dense.v[r * stride + e];
		if (w != 0.0) {
			ids.v[r * USED + n] = e;
			weights.v[r * USED + n] = w;
			n++;
		}
	}
	for (; n < USED; n++) {
		ids.v[r * USED + n] = there ? 0 : 0xffffffffu;
		weights.v[r * USED + n] = 0.0;
	}
}
