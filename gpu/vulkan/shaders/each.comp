#version 460
#extension GL_GOOGLE_include_directive : require
// What is done to each value of rows: y[r][i] = f(a[r][i], b[r][i]); and rows taken by number.
//
// A thread makes a value. Grid: workgroups for a row's values, rows. y may be a or b, but not where rows have numbers.
//
// variant: each
#include "lib/buffers.glsl"
#include "lib/act.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint OP = 0; // elements.go numbers them
layout(constant_id = 1) const uint ACT = 0;

const uint COPY = 0, ADD = 1, MUL = 2, SCALE = 3, SOFTCAP = 4, ACTIVATE = 5, GATE = 6;

layout(push_constant, scalar) uniform Push {
	Floats a;
	Floats b;
	Floats y;
	Words numbers; // row r takes row numbers[r] of a; 0: row r
	Words count;   // rows that are there; 0: all
	uint width;
	uint filled;   // values of a row of y: those from width on become zero
	uint bWidth;   // values of a row of b, the last of which stands for all that follow
	uint aStride;  // in float32, as the others
	uint bStride;
	uint yStride;
	float factor;
	uint share;    // rows of y that have the same row of a, one after the other
};

void main() {
	uint i = gl_WorkGroupID.x * 256 + gl_LocalInvocationID.x, r = gl_WorkGroupID.y;
	if (i >= filled || uint64_t(count) != 0 && r >= count.v[0]) {
		return;
	}
	float v = 0.0;
	if (i < width) {
		v = a.v[(uint64_t(numbers) != 0 ? numbers.v[r] : r / share) * aStride + i];
		float w = OP == ADD || OP == MUL || OP == GATE ? b.v[r * bStride + min(i, bWidth - 1)] : 0.0;
		switch (OP) {
		case ADD:
			v += w;
			break;
		case MUL:
			v *= w;
			break;
		case SCALE:
			v *= factor;
			break;
		case SOFTCAP:
			v = factor * hyperbolic(v / factor);
			break;
		case ACTIVATE:
			v = activate(ACT, v);
			break;
		case GATE:
			v = gated(ACT, v, w);
			break;
		}
	}
	y.v[r * yStride + i] = v;
}
