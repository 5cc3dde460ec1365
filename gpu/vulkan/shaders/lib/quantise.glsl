// Quantised activations. A row of k values, padded with zeros to whole 256, is k signed bytes, then for each 32 of
// them a pair: the float32 scale d, and the sums of the first and the last 16 bytes as two int16. A row takes
// k·5/4 bytes.
//
// Arithmetic: d = amax·(1/127), byte = round to even (v·(127/amax)); all zero where amax is. So |byte| ≤ 127.

const float per127 = 1.0 / 127.0;

// Lanes are joined in eights, by their numbers within a subgroup: a subgroup has eight lanes or more.
float max8(float v) {
	v = max(v, subgroupShuffleXor(v, 1));
	v = max(v, subgroupShuffleXor(v, 2));
	return max(v, subgroupShuffleXor(v, 4));
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
	float amax = max8(max(max(abs(v.x), abs(v.y)), max(abs(v.z), abs(v.w))));
	ivec4 q = ivec4(roundEven(v * (amax > 0.0 ? 127.0 / amax : 0.0)));
	int sum = (q.x + q.y) + (q.z + q.w);
	sum += subgroupShuffleXor(sum, 1);
	sum += subgroupShuffleXor(sum, 2);
	int other = subgroupShuffleXor(sum, 4);
	bool upper = (gl_SubgroupInvocationID & 4) != 0;
	uint lo = uint(upper ? other : sum), hi = uint(upper ? sum : other);
	uint bytes = (uint(q.x) & 0xffu) | (uint(q.y) & 0xffu) << 8 | (uint(q.z) & 0xffu) << 16 | uint(q.w) << 24;
	return Quantised(bytes, uvec2(floatBitsToUint(amax * per127), lo & 0xffffu | hi << 16));
}
