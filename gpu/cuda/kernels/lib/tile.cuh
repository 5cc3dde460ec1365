// Tiles of weights, 32 rows × 256 k: those of Vulkan's lib/tile.glsl, which describes them, with the same arithmetic.
// A module is of one layout, which a macro names.
#pragma once
#include "device.cuh"

// quantWords is the 16-byte words of quants of a row, tileWords of a tile with what follows them.
#if defined(Q4_0)
constexpr uint quantWords = 8, tileWords = 9 * 32;
#elif defined(Q8_0)
constexpr uint quantWords = 16, tileWords = 17 * 32;
#elif defined(Q4_K)
constexpr uint quantWords = 8, tileWords = 9 * 32 + 8;
#elif defined(Q6_K)
constexpr uint quantWords = 8, tileWords = 13 * 32 + 4;
#elif defined(F16) || defined(BF16)
#define FLOATS
constexpr uint quantWords = 32, tileWords = 32 * 32;
#elif defined(F32)
#define FLOATS
constexpr uint quantWords = 64, tileWords = 64 * 32;
#elif defined(SPLIT)
constexpr uint quantWords = 16, tileWords = 20 * 32;
#elif defined(SPLIT_LOW)
#define SPLIT
constexpr uint quantWords = 16, tileWords = 24 * 32;
#endif

// BYTES: quants are whole bytes, two words a block of 32.
#if defined(Q8_0) || defined(SPLIT)
#define BYTES
#endif

// A lane takes a tile in parts of a few words, so that what it computes with and what it loads meanwhile fit its
// registers; blocks are the blocks of 32 of a part, fours its fours of weights.
#if defined(F32)
constexpr uint words = 16, parts = quantWords / words, fours = 64 / parts;
#elif defined(FLOATS)
constexpr uint words = 8, parts = quantWords / words, fours = 64 / parts;
#else
constexpr uint words = 4, parts = quantWords / words, blocks = 8 / parts;
#endif

// wordOf is one of the four words of 16 bytes.
DEVICE uint wordOf(uint4 v, uint i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }

// Packed is what a lane loads of a part.
struct Packed {
	uint4 q[words];
#if !defined(FLOATS)
	uint4 scales;
#endif
#if defined(SPLIT_LOW)
	uint4 lows;
#elif defined(Q4_K)
	uint d;
#elif defined(Q6_K)
	uint2 high[blocks];
	uint d;
#endif
};

// loadPart takes a part of a row of a tile.
DEVICE Packed loadPart(const uint4 *tile, uint row, uint part) {
	Packed p;
#pragma unroll
	for (uint i = 0; i < words; i++) {
		p.q[i] = loadOnce128(tile + (part * words + i) * 32 + row);
	}
#if defined(Q6_K)
	const uint2 *high = reinterpret_cast<const uint2 *>(tile + 8 * 32);
#pragma unroll
	for (uint i = 0; i < blocks; i++) {
		p.high[i] = load64(high + (part * blocks + i) * 32 + row);
	}
	p.scales = load128(tile + 12 * 32 + row);
	p.d = load16(reinterpret_cast<const uint16_t *>(tile + 13 * 32) + row);
#elif defined(SPLIT)
	p.scales = loadOnce128(tile + (quantWords + part) * 32 + row);
#elif !defined(FLOATS)
	p.scales = load128(tile + quantWords * 32 + row);
#endif
#if defined(SPLIT_LOW)
	p.lows = loadOnce128(tile + (quantWords + 4 + part) * 32 + row);
#elif defined(Q4_K)
	p.d = load32(reinterpret_cast<const uint *>(tile + 9 * 32) + row);
#endif
	return p;
}

#if defined(FLOATS)
// four is weights 4i to 4i+3 of a list of words.
DEVICE float4 four(const uint4 *q, uint i) {
#if defined(F32)
	return {bitsFloat(q[i].x), bitsFloat(q[i].y), bitsFloat(q[i].z), bitsFloat(q[i].w)};
#else
	uint lo = i % 2 == 0 ? q[i / 2].x : q[i / 2].z, hi = i % 2 == 0 ? q[i / 2].y : q[i / 2].w;
#if defined(BF16)
	return {bitsFloat(lo << 16), bitsFloat(lo & 0xffff0000u), bitsFloat(hi << 16), bitsFloat(hi & 0xffff0000u)};
#else
	return {fromHalf(lo & 0xffffu), fromHalf(lo >> 16), fromHalf(hi & 0xffffu), fromHalf(hi >> 16)};
#endif
#endif
}

// valueAt is value k of a row of a tile.
DEVICE float valueAt(const uint4 *tile, uint row, uint k) {
#if defined(F32)
	return reinterpret_cast<const float *>(tile + k / 4 * 32 + row)[k % 4];
#else
	uint h = reinterpret_cast<const uint16_t *>(tile + k / 8 * 32 + row)[k % 8];
#if defined(BF16)
	return bitsFloat(h << 16);
#else
	return fromHalf(h);
#endif
#endif
}
#else
// Block is 32 weights, as words of four bytes: what their format subtracts from all is still in them.
struct Block {
	uint4 lo, hi; // 0 to 15, 16 to 31
	float scale, low;
	float otherScale, otherLow; // of 16 to 31, where scales are of 16
	int s0, s1;
};

DEVICE uint4 masked(uint4 v, uint shift) {
	return {v.x >> shift & 0x0f0f0f0fu, v.y >> shift & 0x0f0f0f0fu, v.z >> shift & 0x0f0f0f0fu, v.w >> shift & 0x0f0f0f0fu};
}

// raised adds the high pairs of a block of Q6_K: words 0 and 1 take theirs from x, 2 and 3 from y.
DEVICE void raise(Block &u, uint2 high) {
	u.lo.x |= (high.x & 0x03030303u) << 4;
	u.lo.y |= (high.x >> 2 & 0x03030303u) << 4;
	u.lo.z |= (high.y & 0x03030303u) << 4;
	u.lo.w |= (high.y >> 2 & 0x03030303u) << 4;
	u.hi.x |= high.x & 0x30303030u;
	u.hi.y |= high.x >> 2 & 0x30303030u;
	u.hi.z |= high.y & 0x30303030u;
	u.hi.w |= high.y >> 2 & 0x30303030u;
}

DEVICE int signedByte(uint v) { return static_cast<int8_t>(v); }

// unpack takes block b of a part.
DEVICE Block unpack(const Packed &p, uint part, uint b) {
	Block u;
#if defined(BYTES)
	u.lo = p.q[2 * b];
	u.hi = p.q[2 * b + 1];
#else
	u.lo = masked(p.q[b], 0);
	u.hi = masked(p.q[b], 4);
#endif
	uint at = part * blocks + b; // of the tile
	(void)at;
#if defined(Q4_0) || defined(Q8_0)
	u.scale = fromHalf(wordOf(p.scales, at / 2) >> at % 2 * 16 & 0xffffu);
#elif defined(Q4_K)
	uint shift = at % 4 * 8;
	u.scale = fromHalf(p.d & 0xffffu) * static_cast<float>((at < 4 ? p.scales.x : p.scales.y) >> shift & 0xffu);
	u.low = fromHalf(p.d >> 16) * static_cast<float>((at < 4 ? p.scales.z : p.scales.w) >> shift & 0xffu);
#elif defined(Q6_K)
	raise(u, p.high[b]);
	u.scale = fromHalf(p.d);
	uint s = wordOf(p.scales, at / 2) >> at % 2 * 16;
	u.s0 = signedByte(s);
	u.s1 = signedByte(s >> 8);
#else
	u.scale = bitsFloat(wordOf(p.scales, 2 * b));
	u.otherScale = bitsFloat(wordOf(p.scales, 2 * b + 1));
#if defined(SPLIT_LOW)
	u.low = bitsFloat(wordOf(p.lows, 2 * b));
	u.otherLow = bitsFloat(wordOf(p.lows, 2 * b + 1));
#endif
#endif
	return u;
}

// blockAt is block b, 0 to 7, of a row of a tile.
DEVICE Block blockAt(const uint4 *tile, uint row, uint b) {
	Block u;
#if defined(BYTES)
	u.lo = load128(tile + 2 * b * 32 + row);
	u.hi = load128(tile + (2 * b + 1) * 32 + row);
#else
	uint4 q = load128(tile + b * 32 + row);
	u.lo = masked(q, 0);
	u.hi = masked(q, 4);
#endif
#if defined(Q4_0) || defined(Q8_0)
	u.scale = fromHalf(load16(reinterpret_cast<const uint16_t *>(tile + quantWords * 32 + row) + b));
#elif defined(Q4_K)
	const uint8_t *scales = reinterpret_cast<const uint8_t *>(tile + 8 * 32 + row);
	uint d = load32(reinterpret_cast<const uint *>(tile + 9 * 32) + row);
	u.scale = fromHalf(d & 0xffffu) * static_cast<float>(scales[b]);
	u.low = fromHalf(d >> 16) * static_cast<float>(scales[8 + b]);
#elif defined(Q6_K)
	raise(u, load64(reinterpret_cast<const uint2 *>(tile + 8 * 32) + b * 32 + row));
	u.scale = fromHalf(load16(reinterpret_cast<const uint16_t *>(tile + 13 * 32) + row));
	uint s = load16(reinterpret_cast<const uint16_t *>(tile + 12 * 32 + row) + b);
	u.s0 = signedByte(s);
	u.s1 = signedByte(s >> 8);
#else
	uint2 s = load64(reinterpret_cast<const uint2 *>(tile + (quantWords + b / 2) * 32 + row) + b % 2);
	u.scale = bitsFloat(s.x);
	u.otherScale = bitsFloat(s.y);
#if defined(SPLIT_LOW)
	uint2 l = load64(reinterpret_cast<const uint2 *>(tile + (quantWords + 4 + b / 2) * 32 + row) + b % 2);
	u.low = bitsFloat(l.x);
	u.otherLow = bitsFloat(l.y);
#endif
#endif
	return u;
}

// valueOf is value i, 0 to 31, of a block.
DEVICE float valueOf(const Block &u, uint i) {
	float q = static_cast<float>(signedByte(wordOf(i < 16 ? u.lo : u.hi, i % 16 / 4) >> i % 4 * 8));
#if defined(Q4_0)
	return u.scale * (q - 8.0f);
#elif defined(Q8_0)
	return u.scale * q;
#elif defined(Q4_K)
	return u.scale * q - u.low;
#elif defined(Q6_K)
	return u.scale * static_cast<float>(i < 16 ? u.s0 : u.s1) * (q - 32.0f);
#elif defined(SPLIT_LOW)
	return (i < 16 ? u.scale : u.otherScale) * q - (i < 16 ? u.low : u.otherLow);
#else
	return (i < 16 ? u.scale : u.otherScale) * q;
#endif
}

DEVICE int dot16(uint4 a, uint4 b) { return dot4(a.w, b.w, dot4(a.z, b.z, dot4(a.y, b.y, dot4(a.x, b.x, 0)))); }

// add is acc plus a block's product with activations x0, x1 of scale d and sums of 16. The whole numbers are exact
// and below 2²⁴ in magnitude, so their conversion to float is exact too.
DEVICE float add(float acc, const Block &u, uint4 x0, uint4 x1, uint2 scale) {
	float d = bitsFloat(scale.x);
	int sum0 = static_cast<int16_t>(scale.y), sum1 = static_cast<int>(scale.y) >> 16;
	(void)sum0, (void)sum1;
	int first = dot16(u.lo, x0), second = dot16(u.hi, x1);
#if defined(Q4_0)
	return fma(u.scale * d, static_cast<float>(first + second - 8 * (sum0 + sum1)), acc);
#elif defined(Q8_0)
	return fma(u.scale * d, static_cast<float>(first + second), acc);
#elif defined(Q4_K)
	acc = fma(u.scale * d, static_cast<float>(first + second), acc);
	return fma(-u.low, d * static_cast<float>(sum0 + sum1), acc);
#elif defined(Q6_K)
	int both = u.s0 * (first - 32 * sum0) + u.s1 * (second - 32 * sum1);
	return fma(u.scale * d, static_cast<float>(both), acc);
#else
	acc = fma(u.scale * d, static_cast<float>(first), acc);
	acc = fma(u.otherScale * d, static_cast<float>(second), acc);
#if defined(SPLIT_LOW)
	acc = fma(-u.low, d * static_cast<float>(sum0), acc);
	acc = fma(-u.otherLow, d * static_cast<float>(sum1), acc);
#endif
	return acc;
#endif
}
#endif
