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

// one is value i, 0 to 31, of a block.
#if defined(PLAIN)
float one(uint at, uint row, uint block, uint i) {
#if defined(F32)
	return uintBitsToFloat(weights.v[at + (block * 8 + i / 4) * 32 + row][i % 4]);
#else
	uint q = weights.v[at + (block * 4 + i / 8) * 32 + row][i % 8 / 2] >> (i % 2) * 16;
#if defined(BF16)
	return uintBitsToFloat(q << 16);
#else
	return fromHalf(q);
#endif
#endif
}
#else
float one(Block u, uint i) {
	int q = bitfieldExtract(int(i < 16 ? u.lo[i / 4] : u.hi[i % 16 / 4]), int(i % 4) * 8, 8);
#if defined(Q4_0)
	return u.scale * float(q - 8);
#elif defined(Q8_0)
	return u.scale * float(q);
#elif defined(Q4_K)
	precise float v = u.scale * float(q);
	v = v - u.low;
	return v;
#elif defined(SPLIT)
	return (i < 16 ? u.scale : u.otherScale) * float(q);
#elif defined(SPLITLOW)
	precise float v = (i < 16 ? u.scale : u.otherScale) * float(q);
	v = v - (i < 16 ? u.low : u.otherLow);
	return v;
#else
	return u.scale * float(i < 16 ? u.s0 : u.s1) * float(q - 32);
#endif
}
#endif

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
		y.v[to + i] = one(at, id % 32, block % 8, i % 32);
#else
		y.v[to + i] = one(u, i % 32);
#endif
	}
}
