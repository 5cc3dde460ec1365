#version 460
#extension GL_GOOGLE_include_directive : require
// Packs rows as files have them (internal/quant) into tiles (lib/tile.glsl). Rows of SPLIT, which no file has, come as
// what tiles have of a row, one tile after the other. BF16 is packed as F16.
//
// A workgroup owns a tile of 32 rows × 256 k: lane a row. Grid: tiles of k, tiles of rows.
//
// variant: repack_q4_0 -DQ4_0
// variant: repack_q8_0 -DQ8_0
// variant: repack_q4_k -DQ4_K
// variant: repack_q6_k -DQ6_K
// variant: repack_f16 -DF16
// variant: repack_f32 -DF32
// variant: repack_split -DSPLIT
// variant: repack_split_low -DSPLITLOW
#include "lib/buffers.glsl"
#include "lib/tile.glsl"

layout(local_size_x = 32) in;

layout(push_constant, scalar) uniform Push {
	Halves file;   // whole rows
	Quads tiles;
	uint rows;     // in file; the last tile's other rows become zeros
	uint rowBytes; // of a row in file
	uint first;    // tile of rows that the first 32 go to
	uint step;     // to the tile of the next 32
};

uint64_t tile; // this workgroup's

uint word(uint at) { return uint(file.v[at / 2]) | uint(file.v[at / 2 + 1]) << 16; }

void putQuad(uint i, uvec4 v) { Quads(tile).v[i * 32 + gl_LocalInvocationID.x] = v; }

uint rowStart() { return (gl_WorkGroupID.y * 32 + gl_LocalInvocationID.x) * rowBytes; }

bool inside() { return gl_WorkGroupID.y * 32 + gl_LocalInvocationID.x < rows; }

#if defined(Q4_0) || defined(Q8_0)
#if defined(Q4_0)
const uint BLOCK = 18;
#else
const uint BLOCK = 34;
#endif

void pack() {
	uvec4 scales = uvec4(0);
	for (uint b = 0; b < 8; b++) {
		uint block = gl_WorkGroupID.x * 8 + b, at = rowStart() + block * BLOCK;
		bool there = inside() && (block + 1) * BLOCK <= rowBytes;
		for (uint i = 0; i < NQ / 8; i++) {
			uvec4 q = uvec4(0);
			if (there) {
				for (uint j = 0; j < 4; j++) {
					q[j] = word(at + 2 + i * 16 + j * 4);
				}
			}
			putQuad(b * (NQ / 8) + i, q);
		}
		if (there) {
			scales[b / 2] |= uint(file.v[at / 2]) << (b % 2) * 16;
		}
	}
	putQuad(NQ, scales);
}
#elif defined(F16)
void pack() {
	for (uint i = 0; i < 32; i++) {
		uvec4 q = uvec4(0);
		for (uint j = 0; j < 8; j++) {
			uint at = (gl_WorkGroupID.x * 256 + i * 8 + j) * 2;
			if (inside() && at < rowBytes) {
				q[j / 2] |= uint(file.v[(rowStart() + at) / 2]) << (j % 2) * 16;
			}
		}
		putQuad(i, q);
	}
}
#elif defined(F32)
void pack() {
	for (uint i = 0; i < 64; i++) {
		uvec4 q = uvec4(0);
		for (uint j = 0; j < 4; j++) {
			uint at = (gl_WorkGroupID.x * 256 + i * 4 + j) * 4;
			if (inside() && at < rowBytes) {
				q[j] = word(rowStart() + at);
			}
		}
		putQuad(i, q);
	}
}
#elif defined(SPLIT) || defined(SPLITLOW)
void pack() {
	uint at = rowStart() + gl_WorkGroupID.x * (TILE / 2); // a 32nd of a tile, in bytes
	for (uint i = 0; i < TILE / 32; i++, at += 16) {
		putQuad(i, inside() ? uvec4(word(at), word(at + 4), word(at + 8), word(at + 12)) : uvec4(0));
	}
}
#else
// nibbles are the low or high nibbles of two runs of 16 bytes as one run in the order of Q4_0.
uvec4 nibbles(uint lo, uint hi, bool upper) {
	uvec4 q;
	for (uint i = 0; i < 4; i++) {
		uint a = word(lo + i * 4), b = word(hi + i * 4);
		q[i] = upper ? (a >> 4) & 0x0f0f0f0fu | b & 0xf0f0f0f0u : a & 0x0f0f0f0fu | (b & 0x0f0f0f0fu) << 4;
	}
	return q;
}

uint byteAt(uint at) { return uint(file.v[at / 2]) >> (at % 2) * 8 & 0xffu; }

#if defined(Q4_K)
void pack() {
	uint at = rowStart() + gl_WorkGroupID.x * 144, lane = gl_LocalInvocationID.x;
	uvec4 scales = uvec4(0);
	for (uint b = 0; b < 8; b++) {
		uint from = at + 16 + b / 2 * 32;
		putQuad(b, inside() ? nibbles(from, from + 16, b % 2 == 1) : uvec4(0));
		if (inside()) {
			uint s = at + 4 + b;
			uint scale = b < 4 ? byteAt(s) & 63u : byteAt(s + 4) & 15u | byteAt(s - 4) >> 6 << 4;
			uint low = b < 4 ? byteAt(s + 4) & 63u : byteAt(s + 4) >> 4 | byteAt(s) >> 6 << 4;
			scales[b / 4] |= scale << b % 4 * 8;
			scales[2 + b / 4] |= low << b % 4 * 8;
		}
	}
	putQuad(8, scales);
	Words(tile + 9 * 32 * 16).v[lane] = inside() ? word(at) : 0;
}
#else
void pack() {
	uint at = rowStart() + gl_WorkGroupID.x * 210, lane = gl_LocalInvocationID.x;
	for (uint b = 0; b < 8; b++) {
		uint from = at + b / 4 * 64 + b % 2 * 32, high = at + 128 + b / 4 * 32, shift = b % 4 * 2;
		putQuad(b, inside() ? nibbles(from, from + 16, b % 4 >= 2) : uvec4(0));
		uvec2 pairs = uvec2(0);
		for (uint i = 0; i < 4 && inside(); i++) {
			pairs[i / 2] |= (word(high + i * 4) >> shift & 0x03030303u) << i % 2 * 2;
			pairs[i / 2] |= (word(high + 16 + i * 4) >> shift & 0x03030303u) << i % 2 * 2 + 4;
		}
		Pairs(tile + 8 * 32 * 16).v[b * 32 + lane] = pairs;
	}
	uvec4 scales = uvec4(0);
	for (uint i = 0; i < 4 && inside(); i++) {
		scales[i] = word(at + 192 + i * 4);
	}
	putQuad(12, scales);
	Halves(tile + 13 * 32 * 16).v[lane] = inside() ? file.v[(at + 208) / 2] : uint16_t(0);
}
#endif
#endif

void main() {
	uint index = (first + gl_WorkGroupID.y * step) * gl_NumWorkGroups.x + gl_WorkGroupID.x;
	tile = uint64_t(tiles) + uint64_t(index) * TILE * 16;
	pack();
}
