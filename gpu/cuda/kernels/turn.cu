// Rotates the heads of rows by their positions.
//
// A thread owns a pair of features that rotate, or a feature that stays. Grid: blocks for a row, rows. y may be x.
//
// variant: turn
#include "lib/device.cuh"

struct Args {
	uint64_t x, y;
	uint64_t angles; // [row][dims/2] cosine and sine
	uint64_t count;  // rows that are there; 0: all
	uint heads;
	uint features;         // of a head
	uint dims;             // that rotate, from the first
	uint interleaved;      // 1: pairs are neighbours
	uint xStride, yStride; // in float32
};

KERNEL(turn, Args, 64) {
	uint t = blockX() * blockThreads() + threadX(), r = blockY();
	uint each = a.features - a.dims / 2, head = t / each, i = t % each;
	if (head >= a.heads || (a.count != 0 && r >= *at<uint>(a.count))) {
		return;
	}
	const float *x = at<float>(a.x) + uint64_t(r) * a.xStride + uint64_t(head) * a.features;
	float *y = at<float>(a.y) + uint64_t(r) * a.yStride + uint64_t(head) * a.features;
	if (i >= a.dims / 2) {
		y[a.dims / 2 + i] = x[a.dims / 2 + i];
		return;
	}
	uint first = a.interleaved != 0 ? 2 * i : i, second = a.interleaved != 0 ? 2 * i + 1 : i + a.dims / 2;
	float p = x[first], q = x[second];
	const float *angle = at<float>(a.angles) + uint64_t(r) * a.dims + 2 * i;
	float c = angle[0], s = angle[1];
	y[first] = fma(p, c, q * -s);
	y[second] = fma(q, c, p * s);
}
