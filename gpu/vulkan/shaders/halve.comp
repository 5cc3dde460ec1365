#version 460
#extension GL_GOOGLE_include_directive : require
// Rows of activations in half precision, as matmul_f16.comp takes them: once, not in each of its workgroups.
//
// A thread has eight values. Grid: workgroups for a row, rows.
//
// variant: halve -DBYTES
// variant: halve_float
#include "lib/buffers.glsl"

layout(local_size_x = 64) in;

layout(push_constant, scalar) uniform Push {
	Quads x;     // BYTES: quantised rows; else float32 rows of whole 256
	Quads y;     // rows of whole 256
	uint kTiles; // 256 values each
};

vec4 bytes(uint v) { return vec4(bitfieldExtract(ivec4(int(v)) >> ivec4(0, 8, 16, 24), 0, 8)); }

void main() {
	uint at = gl_WorkGroupID.x * 64 + gl_LocalInvocationID.x, row = gl_WorkGroupID.y;
	if (at >= kTiles * 32) {
		return;
	}
#if defined(BYTES)
	uvec2 q = Pairs(uint64_t(x)).v[row * (kTiles * 40) + at];
	float d = Floats(uint64_t(x)).v[2 * (row * (kTiles * 40) + kTiles * 32 + at / 4)];
	vec4 a = bytes(q.x) * d, b = bytes(q.y) * d;
#else
	uint from = row * (kTiles * 64) + 2 * at;
	vec4 a = uintBitsToFloat(x.v[from]), b = uintBitsToFloat(x.v[from + 1]);
#endif
	y.v[row * (kTiles * 32) + at] = uvec4(packHalf2x16(a.xy), packHalf2x16(a.zw), packHalf2x16(b.xy), packHalf2x16(b.zw));
}
