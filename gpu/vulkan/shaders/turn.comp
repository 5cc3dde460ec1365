#version 460
#extension GL_GOOGLE_include_directive : require
// Rotates the heads of rows by their positions: what rope.comp does, on values of their own.
//
// A thread owns a pair of features that rotate, or a feature that stays. Grid: workgroups for a row, rows. y may be x.
//
// variant: turn
#include "lib/buffers.glsl"

layout(local_size_x = 64) in;

layout(push_constant, scalar) uniform Push {
	Floats x;
	Floats y;
	Floats angles;    // [row][dims/2] cosine and sine
	Words count;      // rows that are there; 0: all
	uint heads;
	uint features;    // of a head
	uint dims;        // that rotate, from the first
	uint interleaved; // 1: pairs are neighbours
	uint xStride;     // in float32
	uint yStride;
};

void main() {
	uint t = gl_WorkGroupID.x * 64 + gl_LocalInvocationID.x, r = gl_WorkGroupID.y;
	uint each = features - dims / 2, head = t / each, i = t % each;
	if (head >= heads || uint64_t(count) != 0 && r >= count.v[0]) {
		return;
	}
	uint from = r * xStride + head * features, to = r * yStride + head * features;
	if (i >= dims / 2) {
		y.v[to + dims / 2 + i] = x.v[from + dims / 2 + i];
		return;
	}
	uint first = interleaved != 0 ? 2 * i : i, second = interleaved != 0 ? 2 * i + 1 : i + dims / 2;
	float p = x.v[from + first], q = x.v[from + second];
	float c = angles.v[r * dims + 2 * i], s = angles.v[r * dims + 2 * i + 1];
	precise float a = q * -s, b = p * s; // as lib/rope.glsl, bit for bit
	a = fma(p, c, a);
	b = fma(q, c, b);
	y.v[to + first] = a;
	y.v[to + second] = b;
}
