#version 460
#extension GL_GOOGLE_include_directive : require
// Convolves each channel with its weights over the last positions: y[r][c] = Σ w[c][j]·x[r-KEPT+j][c] + b[c], for j from
// 0 to KEPT in order. The state is the inputs of the last KEPT positions, the oldest first: [KEPT][channels].
//
// A thread owns a channel of up to 64 rows of a span. Only the first of them reads the state that was there, before it
// leaves any, and those behind it leave other blocks. Grid: channels, spans, so many rows. y is not x.
//
// variant: conv
#include "lib/buffers.glsl"
#include "lib/step.glsl"
#include "lib/state.glsl"

layout(local_size_x = 64) in;
layout(constant_id = 0) const uint KEPT = 3; // 1 to 64

layout(push_constant, scalar) uniform Push {
	Floats x;
	Floats y;
	Floats weights;
	Floats bias;     // 0: none
	uint64_t states; // the layer's
	Spans spans;
	Words tables;
	uint channels;
	uint xStride;    // in float32
	uint yStride;
};

void main() {
	uint c = gl_WorkGroupID.x * 64 + gl_LocalInvocationID.x, from = gl_WorkGroupID.z * 64;
	Span s = spans.v[gl_WorkGroupID.y];
	if (c >= channels || from >= s.rows) {
		return;
	}
	float past[KEPT], w[KEPT + 1];
	[[unroll]] for (uint j = 0; j <= KEPT; j++) {
		w[j] = weights.v[c * (KEPT + 1) + j];
	}
	[[unroll]] for (uint j = 0; j < KEPT; j++) {
		if (from > 0) {
			past[j] = x.v[(s.row + from - KEPT + j) * xStride + c];
		} else if (s.position > 0) {
			past[j] = stateAt(states, KEPT * channels, tables, s, s.position - 1).v[j * channels + c];
		} else {
			past[j] = 0.0;
		}
	}
	for (uint i = from; i < min(from + 64, s.rows); i++) {
		float now = x.v[(s.row + i) * xStride + c];
		precise float sum = w[0] * past[0];
		[[unroll]] for (uint j = 1; j < KEPT; j++) {
			sum = fma(w[j], past[j], sum);
			past[j - 1] = past[j];
		}
		sum = fma(w[KEPT], now, sum);
		past[KEPT - 1] = now;
		if (uint64_t(bias) != 0) {
			sum = sum + bias.v[c];
		}
		y.v[(s.row + i) * yStride + c] = sum;
		if (leaves(s, i)) {
			Floats state = stateAt(states, KEPT * channels, tables, s, s.position + i);
			[[unroll]] for (uint j = 0; j < KEPT; j++) {
				state.v[j * channels + c] = past[j];
			}
		}
	}
}
