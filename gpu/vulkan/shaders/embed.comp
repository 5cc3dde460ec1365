#version 460
#extension GL_GOOGLE_include_directive : require
// Rows of a matrix by number, as float32: y[r] = w[id[r]].
//
// A thread makes 32 values. Grid: rows. Threads walk the blocks of a row.
//
// variant: embed_q4_0 -DQ4_0
// variant: embed_q8_0 -DQ8_0
// variant: embed_q4_k -DQ4_K
// variant: embed_q6_k -DQ6_K
// variant: embed_f16 -DF16
#include "lib/buffers.glsl"
#include "lib/tile.glsl"

layout(local_size_x = 64) in;

layout(push_constant, scalar) uniform Push {
	Quads weights;
	Words ids;
	Floats y;
	uint width;
	uint yStride; // in float32
	uint tiles;   // of k in a row
};

void main() {
	uint id = ids.v[gl_WorkGroupID.x];
	for (uint block = gl_LocalInvocationID.x; block * 32 < width; block += 64) {
		uint at = (id / 32 * tiles + block / 8) * TILE, to = gl_WorkGroupID.x * yStride + block * 32;
		uint n = min(32, width - block * 32);
#if defined(F16)
		for (uint i = 0; i < n; i++) {
			uvec4 q = weights.v[at + (block % 8 * 4 + i / 8) * 32 + id % 32];
			y.v[to + i] = fromHalf(q[i % 8 / 2] >> (i % 2) * 16);
		}
#else
		Block u = unpack(load(weights, at, id % 32, block % 8 / BLOCKS), block % 8 / BLOCKS, block % BLOCKS);
		for (uint i = 0; i < n; i++) {
			int q = bitfieldExtract(int(i < 16 ? u.lo[i / 4] : u.hi[i % 16 / 4]), int(i % 4) * 8, 8);
#if defined(Q4_0)
			y.v[to + i] = u.scale * float(q - 8);
#elif defined(Q8_0)
			y.v[to + i] = u.scale * float(q);
#elif defined(Q4_K)
			precise float v = u.scale * float(q);
			v = v - u.low;
			y.v[to + i] = v;
#else
			y.v[to + i] = u.scale * float(i < 16 ? u.s0 : u.s1) * float(q - 32);
#endif
		}
#endif
	}
}
