#version 460
#extension GL_GOOGLE_include_directive : require
// Adds up what the experts of a row made, by their weights: y[r] = Σ w[r][i]·x[r·USED + i], in order of i.
//
// A thread makes a value. Grid: workgroups for a row's values, rows. y may be the residual.
//
// variant: combine
#include "lib/buffers.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint USED = 2;

layout(push_constant, scalar) uniform Push {
	Floats x;
	Floats weights;  // 0: ones
	Floats residual; // rows like y that are added; 0: none
	Floats y;
	Words count;     // rows that are there; 0: all
	uint width;
	uint xStride;    // in float32
	uint yStride;    // of y and residual
};

void main() {
	uint i = gl_WorkGroupID.x * 256 + gl_LocalInvocationID.x, r = gl_WorkGroupID.y;
	if (i >= width || uint64_t(count) != 0 && r >= count.v[0]) {
		return;
	}
	precise float sum = 0.0;
	for (uint s = 0; s < USED; s++) {
		float weight = uint64_t(weights) == 0 ? 1.0 : weights.v[r * USED + s];
		sum = fma(weight, x.v[(r * USED + s) * xStride + i], sum);
	}
	if (uint64_t(residual) != 0) {
		sum = sum + residual.v[r * yStride + i];
	}
	y.v[r * yStride + i] = sum;
}
