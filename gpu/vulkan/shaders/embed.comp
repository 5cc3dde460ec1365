#version 460
#extension GL_GOOGLE_include_directive : require
// Rows of a matrix by number, as float32: y[r] = w[id[r]]. An id below 0, -1-i, stands for what drawn[i] is by then.
//
// A thread makes four values. Grid: workgroups for a row's values, rows.
//
// variant: embed_q4_0 -DQ4_0
// variant: embed_q8_0 -DQ8_0
// variant: embed_q4_k -DQ4_K
// variant: embed_q6_k -DQ6_K
// variant: embed_split -DSPLIT
// variant: embed_split_low -DSPLITLOW
// variant: embed_f16 -DF16
// variant: embed_bf16 -DBF16
// variant: embed_f32 -DF32
#include "lib/buffers.glsl"
#include "lib/tile.glsl"
#include "lib/value.glsl"

layout(local_size_x = 64) in;

layout(push_constant, scalar) uniform Push {
	Quads weights;
	Words ids;
	Words drawn; // by the step before
	Floats y;
	uint width;
	uint yStride; // in float32
	uint tiles;   // of k in a row
};

void main() {
	uint id = ids.v[gl_WorkGroupID.y];
	if (int(id) < 0) {
		id = drawn.v[-1 - int(id)];
	}
	uint from = (gl_WorkGroupID.x * 64 + gl_LocalInvocationID.x) * 4;
	uint block = from / 32, at = (id / 32 * tiles + block / 8) * TILE, to = gl_WorkGroupID.y * yStride;
	if (from >= width) {
		return;
	}
#if !defined(PLAIN)
	Block u = unpack(load(weights, at, id % 32, block % 8 / BLOCKS), block % 8 / BLOCKS, block % BLOCKS);
#endif
	for (uint i = from; i < min(from + 4, width); i++) {
#if defined(PLAIN)
		y.v[to + i] = valueOf(weights, at, id % 32, block % 8, i % 32);
#else
		y.v[to + i] = valueOf(u, i % 32);
#endif
	}
}
