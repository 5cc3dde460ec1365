#version 460
#extension GL_GOOGLE_include_directive : require
// RMS norm of rows, or none, and what then becomes of them: float32 rows or quantised activations.
//
// A workgroup owns a row. Shared memory: K/8 bytes. Subgroups: at least 8 lanes.
// The arithmetic is that of the prologue of matvec.comp, bit for bit.
//
// variant: norm
#include "lib/buffers.glsl"
#include "lib/quantise.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 8;
layout(constant_id = 1) const uint KTILES = 1;   // 256 values each
layout(constant_id = 2) const uint NORM = 1;     // 0: values as they are
layout(constant_id = 3) const uint QUANTISE = 1; // 0: float32, zero from width to the end of the last 256

layout(push_constant, scalar) uniform Push {
	uint64_t x;   // float32 rows
	uint64_t y;   // float32 or quantised rows
	Floats gain;
	uint width;
	uint xStride; // in float32
	uint yStride; // in float32, of float32 rows
	float eps;
};

const uint K = KTILES * 256, COLUMNS = 1;
shared float blockSums[K / 32];
#include "lib/norm.glsl"

void main() {
	uint lane = gl_LocalInvocationID.x % 8, row = gl_WorkGroupID.x;
	float scale = 1.0;
	read(0, x + 4ul * (row * xStride));
	if (NORM != 0) {
		readGain();
		sumSquares(0);
		barrier();
		scale = normScale(0);
	}
	[[unroll]] for (uint i = 0; i < EACH; i++) {
		uint b = own(i);
		if (b >= K / 32) {
			break;
		}
		vec4 v = NORM != 0 ? normed(0, i, scale) : held[i];
		if (QUANTISE == 0) {
			Vectors(y).v[(row * yStride + b * 32) / 4 + lane] = v;
			continue;
		}
		Quantised q = quantise8(v);
		Words(y).v[row * (K * 5 / 16) + b * 8 + lane] = q.bytes;
		if (lane == 0) {
			Pairs(y).v[row * (K * 5 / 32) + K / 8 + b] = q.scale;
		}
	}
}
