// What a card can do at most, for measurements: reading memory, and multiplying from registers.
//
// read: a thread reads 16 bytes at a time, a grid apart from one another, four at once.
// peak: each warp adds to eight sums that do not wait for each other, by the matrix units; a word of each block goes to y.
//
// variant: probe
#include "lib/device.cuh"

struct ReadArgs {
	uint64_t x;
	uint64_t never; // written if all that was read is a number that it is not: so it must be read
	uint64_t quads; // a multiple of four times all threads
};

KERNEL(read, ReadArgs, 256) {
	uint64_t all = uint64_t(gridX()) * blockThreads();
	uint sum = 0;
	for (uint64_t i = uint64_t(blockX()) * blockThreads() + threadX(); i < a.quads; i += 4 * all) {
		const uint4 *x = at<uint4>(a.x) + i;
		uint4 p = loadOnce128(x), q = loadOnce128(x + all), r = loadOnce128(x + 2 * all), s = loadOnce128(x + 3 * all);
		sum ^= p.x ^ p.y ^ p.z ^ p.w ^ q.x ^ q.y ^ q.z ^ q.w ^ r.x ^ r.y ^ r.z ^ r.w ^ s.x ^ s.y ^ s.z ^ s.w;
	}
	if (sum == 0x9e3779b9u) {
		*at<uint>(a.never) = 1;
	}
}

struct PeakArgs {
	uint64_t y;
	uint seed, rounds;
};

constexpr uint sums = 8;

KERNEL(peakWhole, PeakArgs, 128) {
	uint x[4] = {a.seed, a.seed + 1, a.seed + 2, a.seed + 3}, w[2] = {a.seed, a.seed + threadX() % 3};
	int c[sums][4] = {};
	for (uint r = 0; r < a.rounds; r++) {
#pragma unroll
		for (uint i = 0; i < sums; i++) {
			mmaS8(c[i], x, w);
		}
	}
	uint left = 0;
#pragma unroll
	for (uint i = 0; i < sums; i++) {
		left += c[i][0] ^ c[i][1] ^ c[i][2] ^ c[i][3];
	}
	if (threadX() == 0) {
		at<uint>(a.y)[blockX()] = left;
	}
}

KERNEL(peakHalves, PeakArgs, 128) {
	uint x[4] = {a.seed, a.seed + 1, a.seed + 2, a.seed + 3}, w[2] = {a.seed, a.seed + threadX() % 3};
	float c[sums][4] = {};
	for (uint r = 0; r < a.rounds; r++) {
#pragma unroll
		for (uint i = 0; i < sums; i++) {
			mmaF16(c[i], x, w);
		}
	}
	float left = 0.0f;
#pragma unroll
	for (uint i = 0; i < sums; i++) {
		left = left + (c[i][0] + c[i][1]) + (c[i][2] + c[i][3]);
	}
	if (threadX() == 0) {
		at<uint>(a.y)[blockX()] = floatBits(left);
	}
}
