// What every kernel needs. A kernel is compiled twice from one source: by clang for a card (lib/card.cuh), and with
// SLUICE_HOST as C++ for the processor (lib/host.cuh), where the threads of a block are fibers; tests run that one.
// Both have the same names, and the same arithmetic: no product is contracted with a sum unless it is written as fma.
//
//	KERNEL(name, Args, threads)   a kernel of blocks of at most so many threads; its arguments are `a`, one structure
//	KERNEL_BLOCKS(…, blocks)      the same, of which a processor of the card shall hold so many blocks at once
//	DEVICE                        before a function that kernels call
//	SHARED T name[N];             memory of a block, of a size that is known; not defined at first
//	dynamicShared<T>()            memory of a block, of the size that the launch says; 16-byte aligned
//	CONSTANT T name[] = {…};      a table
//	threadX() blockX() gridX() …  numbers of the thread, its block, and blocks; blockThreads() of a block's threads
//	sync() syncWarp()             barriers of all threads of a block, or of the 32 of a warp
//	shuffle(v, lane) shuffleXor(v, mask) ballot(p)   within a warp, by all of its lanes
//	load128(p) loadOnce128(p)     16 bytes that nothing writes while the kernel runs; Once: and are not wanted again
//	load64(p) load32(p) load16(p)  8, 4 and 2 of them
//	prefetch(p)           says that memory is read soon
//	copyAsync16(shared, global) commit() waitGroups<N>()   copies that go on beside; N: groups that may still be under way
//	loadMatrices(v, row)          ldmatrix, four at once
//	mmaS8(c, a, b) mmaF16(c, a, b)   m16n8k32 of signed bytes, m16n8k16 of halves: registers as PTX numbers them
//	mmaS8U8(c, a, b)              m16n8k32 of signed bytes, of which b's have no sign
//	mmaS8Half(c, a0, a1, b)       m16n8k16 of signed bytes
#pragma once

using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using uint = unsigned int;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long;
using uint64_t = unsigned long;

struct alignas(8) uint2 { uint x, y; };
struct alignas(16) uint4 { uint x, y, z, w; };
struct alignas(16) int4 { int x, y, z, w; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };

constexpr uint warpLanes = 32;

#ifdef SLUICE_HOST
#include "host.cuh"
#else
#include "card.cuh"
#endif

// at is memory at an address of the arguments.
template <class T> DEVICE T *at(uint64_t address) { return reinterpret_cast<T *>(address); }

template <class T> DEVICE T lesser(T a, T b) { return b < a ? b : a; }
template <class T> DEVICE T greater(T a, T b) { return a < b ? b : a; }

DEVICE uint lane() { return threadX() % warpLanes; }
DEVICE float bitsFloat(uint v) { return __builtin_bit_cast(float, v); }
DEVICE uint floatBits(float v) { return __builtin_bit_cast(uint, v); }
DEVICE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
DEVICE float squareRoot(float v) { return __builtin_sqrtf(v); }
DEVICE float magnitude(float v) { return bitsFloat(floatBits(v) & 0x7fffffffu); }

// roundEven rounds to the nearest whole number, ties to even.
DEVICE float roundEven(float v) { return __builtin_rintf(v); }

template <class T> DEVICE T shuffleXor(T v, uint mask) { return shuffle(v, lane() ^ mask); }

// Lanes are joined in eights, as in Vulkan's shaders.
DEVICE float sum8(float v) {
	v = v + shuffleXor(v, 1);
	v = v + shuffleXor(v, 2);
	return v + shuffleXor(v, 4);
}

// max8 compares magnitudes by their bits: so NaN is the largest.
DEVICE float max8(float4 v) {
	uint m = greater(greater(floatBits(v.x) & 0x7fffffffu, floatBits(v.y) & 0x7fffffffu),
		greater(floatBits(v.z) & 0x7fffffffu, floatBits(v.w) & 0x7fffffffu));
	m = greater(m, shuffleXor(m, 1));
	m = greater(m, shuffleXor(m, 2));
	return bitsFloat(greater(m, shuffleXor(m, 4)));
}

// expOf is q(r)·2ⁿ, with q the polynomial of e^r for |r| ≤ ln 2 / 2 that cpu/vec has.
DEVICE float expOf(float r, int n) {
	float q = fma(bitsFloat(0x3ab688bbu), r, bitsFloat(0x3c0905edu));
	q = fma(q, r, bitsFloat(0x3d2aaa8cu));
	q = fma(q, r, bitsFloat(0x3e2aaa6eu));
	q = fma(q, r, 0.5f);
	q = fma(q, r, 1.0f);
	q = fma(q, r, 1.0f);
	return q * bitsFloat((static_cast<uint>(n) << 23) + 0x3f800000u);
}

// exp is e to the x as cpu/vec has it, bit for bit: 0 below -87, e to the 88 from there on; NaN stays NaN.
DEVICE float exp(float x) {
	if (x < -87.0f) {
		return 0.0f;
	}
	x = x > 88.0f ? 88.0f : x;
	float t = fma(x, 0x1.715476p+0f, 0x1.8p23f), n = t - 0x1.8p23f;
	float r = fma(n, -0x1.62e4p-1f, x);
	r = fma(n, -0x1.7f7d1cp-20f, r);
	return expOf(r, static_cast<int>(floatBits(t)));
}

// exp2 is 2 to the x: 0 below -126, 2 to the 127 from there on; NaN stays NaN.
DEVICE float exp2(float x) {
	if (x < -126.0f) {
		return 0.0f;
	}
	x = x > 127.0f ? 127.0f : x;
	float t = x + 0x1.8p23f, n = t - 0x1.8p23f;
	return expOf((x - n) * 0x1.62e43p-1f, static_cast<int>(floatBits(t)));
}
