// Quantised activations, as Vulkan's lib/quantise.glsl has them, bit for bit. A row of k values, padded with zeros to
// whole 256, is k signed bytes, then for each 32 of them a pair: the float32 scale d, and the sums of the first and the
// last 16 bytes as two int16. A row takes k·5/4 bytes.
//
// d = amax·(1/127), byte = round to even (v·(127/amax)); all zero where amax is. Where a value is NaN or infinite so is d.
#pragma once
#include "device.cuh"

struct Quantised {
	uint bytes;  // this lane's four
	uint2 scale; // of all 32, with their sums; the same in each of eight lanes
};

// quantise8 quantises 32 values: four of each of eight lanes.
DEVICE Quantised quantise8(float4 v) {
	float amax = max8(v), by = amax > 0.0f ? 127.0f / amax : 0.0f;
	int x = static_cast<int>(roundEven(v.x * by)), y = static_cast<int>(roundEven(v.y * by));
	int z = static_cast<int>(roundEven(v.z * by)), w = static_cast<int>(roundEven(v.w * by));
	int sum = (x + y) + (z + w);
	sum += shuffleXor(sum, 1);
	sum += shuffleXor(sum, 2);
	int other = shuffleXor(sum, 4);
	bool upper = (threadX() & 4) != 0;
	uint lo = upper ? other : sum, hi = upper ? sum : other;
	uint bytes = (x & 0xffu) | (y & 0xffu) << 8 | (z & 0xffu) << 16 | static_cast<uint>(w) << 24;
	return {bytes, {floatBits(amax * (1.0f / 127.0f)), (lo & 0xffffu) | hi << 16}};
}

// Where the parts of row r of quantised activations of k values lie, k a multiple of 256.
DEVICE uint *quantisedWords(uint64_t y, uint64_t r, uint k) { return at<uint>(y + r * k * 5 / 4); }
DEVICE uint2 *quantisedScales(uint64_t y, uint64_t r, uint k) { return at<uint2>(y + r * k * 5 / 4 + k); }
