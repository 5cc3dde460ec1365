// Tiles of weights: 32 rows × 256 k, all 16-byte words of the 32 rows side by side, so that a row is a lane and 32
// lanes read 512 bytes in one go. A matrix is tiles of rows, each with its tiles of k in order; rows are padded to 32
// and k to 256 with zeros.
//
//	quants  NQ words of 16 bytes for each row: [word][row]
//	scales  what the type says below, [row]
//
// Packed is what a lane loads of a tile, Block 32 weights of it as eight words of four signed bytes.
//
//	Q4_0  word b: block b, the file's nibble order; scales: 8 halves d, 16 bytes.         y = d·(q-8)
//	Q8_0  words 2b, 2b+1: block b; scales: 8 halves d, 16 bytes.                          y = d·q
//	Q4_K  word b: sub-block b as in Q4_0; 8 scales, 8 minima, 16 bytes; d, dmin, 4 bytes. y = d·scale·q - dmin·min
//	Q6_K  word b: low nibbles of run b as in Q4_0; for each b 8 bytes of high pairs [b][row]: that of weight
//	      16s+4i+j is bits 4s+2·(i%2) of byte j of word i/2; 16 signed scales, 16 bytes; d, 2 bytes. y = d·scale·(q-32)
//	F16   word i: k 8i to 8i+7; BF16 alike
//	F32   word i: k 4i to 4i+3
//	SPLIT words 2b, 2b+1: block b as signed bytes; 16 float32 scales of 16 k each, 64 bytes.  y = scale·q
//	SPLITLOW  the same, and 16 float32 lows, 64 bytes.                                        y = scale·q - low

#if defined(Q4_0)
const uint NQ = 8, TILE = 9 * 32;
#elif defined(Q8_0)
const uint NQ = 16, TILE = 17 * 32;
#elif defined(Q4_K)
const uint NQ = 8, TILE = 9 * 32 + 8;
#elif defined(Q6_K)
const uint NQ = 8, TILE = 13 * 32 + 4;
#elif defined(F16) || defined(BF16)
#define PLAIN
const uint NQ = 32, TILE = 32 * 32;
#elif defined(F32)
#define PLAIN
const uint NQ = 64, TILE = 64 * 32;
#elif defined(SPLIT)
const uint NQ = 16, TILE = 20 * 32;
#elif defined(SPLITLOW)
const uint NQ = 16, TILE = 24 * 32;
#endif

// A lane takes a tile in parts of a few words, so that what it computes with and what it loads meanwhile fit its
// registers; BLOCKS are the blocks of 32 of a part.
// F32 is of routers: few rows, whose time is that of loads one after another.
#if defined(F32)
const uint WORDS = 16, PARTS = NQ / WORDS, QUADS = 64 / PARTS;
#elif defined(PLAIN)
const uint WORDS = 8, PARTS = NQ / WORDS, QUADS = 64 / PARTS; // QUADS: fours of weights of a part
#else
const uint WORDS = 4, PARTS = NQ / WORDS, BLOCKS = 8 / PARTS;
#endif

struct Packed {
	uvec4 q[WORDS];
#if !defined(PLAIN)
	uvec4 scales;
#endif
#if defined(SPLITLOW)
	uvec4 lows;
#elif defined(Q4_K)
	uint d;
#elif defined(Q6_K)
	uvec2 high[BLOCKS];
	uint d;
#endif
};

// load takes a part of a row of the tile that begins at 16-byte word at.
Packed load(Quads w, uint at, uint row, uint part) {
	Packed p;
	[[unroll]] for (uint i = 0; i < WORDS; i++) {
		p.q[i] = w.v[at + (part * WORDS + i) * 32 + row];
	}
#if defined(Q6_K)
	Pairs high = Pairs(uint64_t(w) + uint64_t(at + 8 * 32) * 16);
	[[unroll]] for (uint i = 0; i < BLOCKS; i++) {
		p.high[i] = high.v[(part * BLOCKS + i) * 32 + row];
	}
	p.scales = w.v[at + 12 * 32 + row];
	p.d = uint(Halves(uint64_t(w) + uint64_t(at + 13 * 32) * 16).v[row]);
#elif defined(SPLIT) || defined(SPLITLOW)
	p.scales = w.v[at + (NQ + part) * 32 + row];
#elif !defined(PLAIN)
	p.scales = w.v[at + NQ * 32 + row];
#endif
#if defined(SPLITLOW)
	p.lows = w.v[at + (NQ + 4 + part) * 32 + row];
#elif defined(Q4_K)
	p.d = Words(uint64_t(w) + uint64_t(at + 9 * 32) * 16).v[row];
#endif
	return p;
}

#if defined(PLAIN)
// quad is weights 4i to 4i+3 of a part.
vec4 quad(Packed p, uint i) {
#if defined(F32)
	return uintBitsToFloat(p.q[i]);
#elif defined(BF16)
	uvec2 q = i % 2 == 0 ? p.q[i / 2].xy : p.q[i / 2].zw;
	return uintBitsToFloat(uvec4(q.x << 16, q.x & 0xffff0000u, q.y << 16, q.y & 0xffff0000u));
#else
	uvec2 q = i % 2 == 0 ? p.q[i / 2].xy : p.q[i / 2].zw;
	return vec4(unpackHalf2x16(q.x), unpackHalf2x16(q.y));
#endif
}
#else
struct Block {
	uvec4 lo, hi; // weights 0 to 15, 16 to 31
	float scale, low;
#if defined(SPLIT) || defined(SPLITLOW)
	float otherScale, otherLow; // of 16 to 31
#endif
	int s0, s1;
};

// byte b of four words, in order.
uint byteOf(uvec4 v, uint b) { return bitfieldExtract(v[b / 4], int(b % 4) * 8, 8); }

// unpack takes block b of a part.
Block unpack(Packed p, uint part, uint b) {
	Block u;
#if defined(Q8_0) || defined(SPLIT) || defined(SPLITLOW)
	u.lo = p.q[2 * b];
	u.hi = p.q[2 * b + 1];
#else
	u.lo = p.q[b] & 0x0f0f0f0fu;
	u.hi = (p.q[b] >> 4) & 0x0f0f0f0fu;
#endif
#if defined(Q4_0) || defined(Q8_0)
	u.scale = fromHalf(p.scales[(part * BLOCKS + b) / 2] >> (b % 2) * 16);
#elif defined(Q4_K)
	vec2 d = unpackHalf2x16(p.d);
	u.scale = d.x * float(byteOf(p.scales, part * BLOCKS + b));
	u.low = d.y * float(byteOf(p.scales, 8 + part * BLOCKS + b));
#elif defined(SPLIT) || defined(SPLITLOW)
	u.scale = uintBitsToFloat(p.scales[2 * b]);
	u.otherScale = uintBitsToFloat(p.scales[2 * b + 1]);
#if defined(SPLITLOW)
	u.low = uintBitsToFloat(p.lows[2 * b]);
	u.otherLow = uintBitsToFloat(p.lows[2 * b + 1]);
#endif
#elif defined(Q6_K)
	// Words 0 and 1 of lo and hi take their pairs from high.x, 2 and 3 from high.y.
	uvec4 pairs = uvec4(p.high[b].x, p.high[b].x >> 2, p.high[b].y, p.high[b].y >> 2);
	u.lo |= (pairs & 0x03030303u) << 4;
	u.hi |= pairs & 0x30303030u;
	u.scale = fromHalf(p.d);
	int s = int(p.scales[(part * BLOCKS + b) / 2]);
	u.s0 = bitfieldExtract(s, int(b % 2) * 16, 8);
	u.s1 = bitfieldExtract(s, int(b % 2) * 16 + 8, 8);
#endif
	return u;
}

// Raw is one block of a row as it lies in memory: what uses it comes later than the loads.
struct Raw {
	uvec4 lo;
#if defined(Q8_0) || defined(SPLIT) || defined(SPLITLOW)
	uvec4 hi;
#endif
#if defined(Q4_K)
	uint scale, low, d;
#elif defined(Q6_K)
	uvec2 high;
	uint scale, d;
#elif defined(SPLIT) || defined(SPLITLOW)
	uvec2 scale;
#else
	uint scale;
#endif
#if defined(SPLITLOW)
	uvec2 low;
#endif
};

// rawAt loads block 0 to 7 of a row of the tile that begins at 16-byte word at.
Raw rawAt(Quads w, uint at, uint row, uint block) {
	Raw r;
#if defined(Q8_0) || defined(SPLIT) || defined(SPLITLOW)
	r.lo = w.v[at + 2 * block * 32 + row];
	r.hi = w.v[at + (2 * block + 1) * 32 + row];
#else
	r.lo = w.v[at + block * 32 + row];
#endif
#if defined(Q4_0) || defined(Q8_0)
	r.scale = uint(Halves(uint64_t(w) + 16ul * (at + NQ * 32 + row)).v[block]);
#elif defined(Q4_K)
	Bytes scales = Bytes(uint64_t(w) + 16ul * (at + 8 * 32 + row));
	r.scale = uint(scales.v[block]);
	r.low = uint(scales.v[8 + block]);
	r.d = Words(uint64_t(w) + 16ul * (at + 9 * 32)).v[row];
#elif defined(Q6_K)
	r.high = Pairs(uint64_t(w) + 16ul * (at + 8 * 32)).v[block * 32 + row];
	r.scale = uint(Halves(uint64_t(w) + 16ul * (at + 12 * 32 + row)).v[block]);
	r.d = uint(Halves(uint64_t(w) + 16ul * (at + 13 * 32)).v[row]);
#else
	r.scale = Pairs(uint64_t(w) + 16ul * (at + (NQ + block / 2) * 32 + row)).v[block % 2];
#if defined(SPLITLOW)
	r.low = Pairs(uint64_t(w) + 16ul * (at + (NQ + 4 + block / 2) * 32 + row)).v[block % 2];
#endif
#endif
	return r;
}

// blockOf is what unpack makes of it.
Block blockOf(Raw r) {
	Block u;
#if defined(Q8_0) || defined(SPLIT) || defined(SPLITLOW)
	u.lo = r.lo;
	u.hi = r.hi;
#else
	u.lo = r.lo & 0x0f0f0f0fu;
	u.hi = (r.lo >> 4) & 0x0f0f0f0fu;
#endif
#if defined(Q4_0) || defined(Q8_0)
	u.scale = fromHalf(r.scale);
#elif defined(Q4_K)
	vec2 d = unpackHalf2x16(r.d);
	u.scale = d.x * float(r.scale);
	u.low = d.y * float(r.low);
#elif defined(Q6_K)
	uvec4 pairs = uvec4(r.high.x, r.high.x >> 2, r.high.y, r.high.y >> 2);
	u.lo |= (pairs & 0x03030303u) << 4;
	u.hi |= pairs & 0x30303030u;
	u.scale = fromHalf(r.d);
	u.s0 = bitfieldExtract(int(r.scale), 0, 8);
	u.s1 = bitfieldExtract(int(r.scale), 8, 8);
#else
	u.scale = uintBitsToFloat(r.scale.x);
	u.otherScale = uintBitsToFloat(r.scale.y);
#if defined(SPLITLOW)
	u.low = uintBitsToFloat(r.low.x);
	u.otherLow = uintBitsToFloat(r.low.y);
#endif
#endif
	return u;
}

// centred is four weights less what their format subtracts from all: a signed byte each.
uint centred(uint q) {
#if defined(Q4_0)
	return ((q | 0x80808080u) - 0x08080808u) ^ 0x80808080u;
#elif defined(Q6_K)
	return ((q | 0x80808080u) - 0x20202020u) ^ 0x80808080u;
#else
	return q;
#endif
}

#include "lib/dot4.glsl"

int dot16(uvec4 a, uvec4 b) {
	return dot4(a.x, b.x) + dot4(a.y, b.y) + dot4(a.z, b.z) + dot4(a.w, b.w);
}

// add is acc plus a block's product with activations x0, x1 of scale d and sums of 16. The whole numbers are exact
// and below 2²⁴ in magnitude, so their conversion to float is exact too.
float add(float acc, Block u, uvec4 x0, uvec4 x1, float d, int sum0, int sum1) {
	precise float r = acc;
#if defined(Q4_0)
	r = fma(u.scale * d, float(dot16(u.lo, x0) + dot16(u.hi, x1) - 8 * (sum0 + sum1)), r);
#elif defined(Q8_0)
	r = fma(u.scale * d, float(dot16(u.lo, x0) + dot16(u.hi, x1)), r);
#elif defined(Q4_K)
	r = fma(u.scale * d, float(dot16(u.lo, x0) + dot16(u.hi, x1)), r);
	r = fma(-u.low, d * float(sum0 + sum1), r);
#elif defined(Q6_K)
	r = fma(u.scale * d, float(u.s0 * (dot16(u.lo, x0) - 32 * sum0) + u.s1 * (dot16(u.hi, x1) - 32 * sum1)), r);
#elif defined(SPLIT) || defined(SPLITLOW)
	r = fma(u.scale * d, float(dot16(u.lo, x0)), r);
	r = fma(u.otherScale * d, float(dot16(u.hi, x1)), r);
#if defined(SPLITLOW)
	r = fma(-u.low, d * float(sum0), r);
	r = fma(-u.otherLow, d * float(sum1), r);
#endif
#endif
	return r;
}
#endif
