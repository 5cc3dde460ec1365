#version 460
#extension GL_GOOGLE_include_directive : require
// Rows of activations in half precision, as matmul_f16.comp takes them: once, not in each of its workgroups. A row with
// values that halves do not reach is made smaller by a power of two, and what makes the products large again is left
// behind all rows. What is NaN or infinite stays so.
//
// A workgroup has a row, a thread eight values at a time. Grid: rows.
//
// variant: halve -DBYTES
// variant: halve_float
#include "lib/buffers.glsl"

const uint THREADS = 256;
layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
	Quads x;     // BYTES: quantised rows; else float32 rows of whole 256
	Quads y;     // rows of whole 256, then a float32 for each row
	uint kTiles; // 256 values each
};

struct Eight { vec4 a, b; };

vec4 bytes(uint v) { return vec4(bitfieldExtract(ivec4(int(v)) >> ivec4(0, 8, 16, 24), 0, 8)); }

Eight eight(uint row, uint at) {
#if defined(BYTES)
	uvec2 q = Pairs(uint64_t(x)).v[row * (kTiles * 40) + at];
	float d = Floats(uint64_t(x)).v[2 * (row * (kTiles * 40) + kTiles * 32 + at / 4)];
	return Eight(bytes(q.x) * d, bytes(q.y) * d);
#else
	uint from = row * (kTiles * 64) + 2 * at;
	return Eight(uintBitsToFloat(x.v[from]), uintBitsToFloat(x.v[from + 1]));
#endif
}

shared uint largest[THREADS]; // magnitudes, whose bits are ordered as they are

void main() {
	uint lane = gl_LocalInvocationID.x, row = gl_WorkGroupID.x, eights = kTiles * 32, top = 0;
	for (uint at = lane; at < eights; at += THREADS) {
		Eight v = eight(row, at);
		uvec4 m = max(floatBitsToUint(v.a) & 0x7fffffffu, floatBitsToUint(v.b) & 0x7fffffffu);
		top = max(top, max(max(m.x, m.y), max(m.z, m.w)));
	}
	largest[lane] = top;
	for (uint n = THREADS / 2; n > 0; n /= 2) {
		barrier();
		if (lane < n) {
			largest[lane] = max(largest[lane], largest[lane + n]);
		}
	}
	barrier();
	const uint one = 127, most = one + 14; // exponents, of 1 and of the largest values below 2^15
	uint exponent = largest[0] >> 23, down = exponent > most ? exponent - most : 0;
	float smaller = uintBitsToFloat((one - down) << 23);
	for (uint at = lane; at < eights; at += THREADS) {
		Eight v = eight(row, at);
		v.a *= smaller;
		v.b *= smaller;
		y.v[row * eights + at] =
			uvec4(packHalf2x16(v.a.xy), packHalf2x16(v.a.zw), packHalf2x16(v.b.xy), packHalf2x16(v.b.zw));
	}
	if (lane == 0) {
		Floats(uint64_t(y) + 16 * uint64_t(gl_NumWorkGroups.x * eights)).v[row] = uintBitsToFloat((one + down) << 23);
	}
}
