// Quantised activations. A row of k values, padded with zeros to whole 256, is k signed bytes, then for each 32 of
// them a pair: the float32 scale d, and the sums of the first and the last 16 bytes as two int16. A row takes
// k·5/4 bytes.
//
// Arithmetic: d = amax·(1/127), byte = round to even (v·(127/amax)); all zero where amax is. So |byte| ≤ 127. Where a
// value is NaN or infinite so is d, and with it whatever the row is multiplied by: nothing wrong looks like a number.

#include "lib/divide.glsl"

const float per127 = 1.0 / 127.0;

// Lanes are joined in eights, by their numbers within a subgroup: a subgroup has eight lanes or more.
//
// max8 compares magnitudes by their bits: so NaN is the largest, where max() may forget it.
float max8(vec4 v) {
	uvec4 b = floatBitsToUint(v) & 0x7fffffffu;
	uint m = max(max(b.x, b.y), max(b.z, b.w));
	m = max(m, subgroupShuffleXor(m, 1));
	m = max(m, subgroupShuffleXor(m, 2));
	return uintBitsToFloat(max(m, subgroupShuffleXor(m, 4)));
}

float sum8(float v) {
	precise float s = v;
	s = s + subgroupShuffleXor(s, 1);
	s = s + subgroupShuffleXor(s, 2);
	s = s + subgroupShuffleXor(s, 4);
	return s;
}

struct Quantised {
	uint bytes;  // this lane's four
	uvec2 scale; // of all 32, with their sums; the same in each lane
};

// quantise8 quantises 32 values: four of each of eight lanes.
Quantised quantise8(vec4 v) {
	float amax = max8(v);
	ivec4 q = ivec4(roundEven(v * (amax > 0.0 ? divided(127.0, amax) : 0.0)));
	int sum = (q.x + q.y) + (q.z + q.w);
	sum += subgroupShuffleXor(sum, 1);
	sum += subgroupShuffleXor(sum, 2);
	int other = subgroupShuffleXor(sum, 4);
	bool upper = (gl_SubgroupInvocationID & 4) != 0;
	uint lo = uint(upper ? other : sum), hi = uint(upper ? sum : other);
	uint bytes = (uint(q.x) & 0xffu) | (uint(q.y) & 0xffu) << 8 | (uint(q.z) & 0xffu) << 16 | uint(q.w) << 24;
	return Quantised(bytes, uvec2(floatBitsToUint(amax * per127), lo & 0xffffu | hi << 16));
}
