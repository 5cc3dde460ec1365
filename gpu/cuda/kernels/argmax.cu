// The index of a row's largest value; of equal ones the first. Two launches: parts of rows, then the parts.
//
// A block owns a part of a row. Grid: parts, rows; the second time one part. NaN is never the largest.
//
// variant: argmax
#include "lib/device.cuh"

struct Args {
	uint64_t x;    // float32 rows, or the pairs that the first launch wrote
	uint64_t y;    // [row][part] pairs, or [row] indices
	uint64_t copy; // of the indices; 0: none
	uint width;    // values of a row, or parts
	uint xStride;  // from row to row, in values
	uint join;     // 1: x is pairs of value and index, y is indices
	uint pad;
};

constexpr uint threads = 256, none = ~0u;

struct Best {
	float value;
	uint index;
};

DEVICE Best better(Best b, Best than) {
	return b.value > than.value || (b.value == than.value && b.index < than.index) ? b : than;
}

KERNEL(argmax, Args, threads) {
	SHARED uint2 held[threads / 32]; // by warp: a value's bits, an index
	uint thread = threadX(), row = blockY(), parts = gridX();
	uint each = (a.width + parts - 1) / parts, from = blockX() * each, to = lesser(from + each, a.width);
	Best best = {-__builtin_inff(), none};
	for (uint i = from + thread; i < to; i += threads) {
		uint64_t k = uint64_t(row) * a.xStride + i;
		const uint *x = at<const uint>(a.x);
		best = better(a.join != 0 ? Best{bitsFloat(x[2 * k]), x[2 * k + 1]} : Best{bitsFloat(x[k]), i}, best);
	}
	for (uint n = 16; n > 0; n /= 2) {
		best = better({shuffleXor(best.value, n), shuffleXor(best.index, n)}, best);
	}
	if (thread % 32 == 0) {
		held[thread / 32] = {floatBits(best.value), best.index};
	}
	sync();
	if (thread != 0) {
		return;
	}
	for (uint i = 1; i < threads / 32; i++) {
		best = better({bitsFloat(held[i].x), held[i].y}, best);
	}
	if (a.join == 0) {
		at<uint2>(a.y)[row * parts + blockX()] = {floatBits(best.value), best.index};
		return;
	}
	uint index = best.index == none ? 0 : best.index;
	at<uint>(a.y)[row] = index;
	if (a.copy != 0) {
		at<uint>(a.copy)[row] = index;
	}
}
