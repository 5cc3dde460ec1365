#version 460
#extension GL_GOOGLE_include_directive : require
// Multiplies each head of rows by a matrix of its own: y[r][o] = Σ w[o][k]·x[r][h·width + k], where output o is of head
// h = o / each. The matrices lie as one, one after the other. Activations stay float32, whatever the weights are.
//
// A workgroup owns a tile of 32 outputs for COLUMNS rows. Lane: an output. Slot (32 threads): every SLOTS-th block of 32 k.
// Order of addition: within a slot's blocks, k in order; then the slots in order. There are eight slots, or as many
// as there are blocks: so a row has the same bits among any others. Shared memory: THREADS·COLUMNS·4 bytes.
//
// variant: head_linear_q4_0 -DQ4_0
// variant: head_linear_q8_0 -DQ8_0
// variant: head_linear_q4_k -DQ4_K
// variant: head_linear_q6_k -DQ6_K
// variant: head_linear_split -DSPLIT
// variant: head_linear_split_low -DSPLITLOW
// variant: head_linear_f16 -DF16
// variant: head_linear_bf16 -DBF16
// variant: head_linear_f32 -DF32
#include "lib/buffers.glsl"
#include "lib/tile.glsl"
#include "lib/value.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 32;
layout(constant_id = 1) const uint COLUMNS = 1;

layout(push_constant, scalar) uniform Push {
	Quads weights;
	Floats x;
	Floats y;
	Words count;  // rows that are there; 0: all
	uint rows;    // outputs, of all heads
	uint each;    // outputs of a head
	uint width;   // features of a head of x
	uint tiles;   // of k in a row of weights
	uint xStride; // in float32
	uint yStride;
};

const uint SLOTS = THREADS / 32;

shared float partial[THREADS * COLUMNS];

void main() {
	uint lane = gl_LocalInvocationID.x % 32, slot = gl_LocalInvocationID.x / 32, first = gl_WorkGroupID.y * COLUMNS;
	if (uint64_t(count) != 0 && first >= count.v[0]) {
		return;
	}
	uint o = gl_WorkGroupID.x * 32 + lane, from = min(o, rows - 1) / each * width;
	float sums[COLUMNS];
	[[unroll]] for (uint c = 0; c < COLUMNS; c++) {
		sums[c] = 0.0;
	}
	for (uint block = slot; block * 32 < width; block += SLOTS) {
		uint at = (gl_WorkGroupID.x * tiles + block / 8) * TILE, n = min(32, width - block * 32);
#if !defined(PLAIN)
		Block u = blockOf(rawAt(weights, at, lane, block % 8));
#endif
		for (uint i = 0; i < n; i++) {
#if defined(PLAIN)
			float w = valueOf(weights, at, lane, block % 8, i);
#else
			float w = valueOf(u, i);
#endif
			[[unroll]] for (uint c = 0; c < COLUMNS; c++) {
				precise float s = fma(w, x.v[(first + c) * xStride + from + block * 32 + i], sums[c]);
				sums[c] = s;
			}
		}
	}
	[[unroll]] for (uint c = 0; c < COLUMNS; c++) {
		partial[c * THREADS + gl_LocalInvocationID.x] = sums[c];
	}
	barrier();
	for (uint c = slot; c < COLUMNS; c += SLOTS) {
		precise float s = partial[c * THREADS + lane];
		for (uint i = 1; i < SLOTS; i++) {
			s = s + partial[c * THREADS + i * 32 + lane];
		}
		if (o < rows && (uint64_t(count) == 0 || first + c < count.v[0])) {
			y.v[(first + c) * yStride + o] = s;
		}
	}
}
