// Finds rows with a value that is NaN or infinite. Such a value stays one through every kernel, so it is enough to look
// at what a step leaves.
//
// A thread looks at four values. Grid: blocks for a row's values, rows.
//
// variant: finite
#include "lib/device.cuh"

struct Args {
	uint64_t x;      // float32 rows
	uint64_t status; // becomes 1 + a row that has one
	uint64_t count;  // rows that are there
	uint width, stride;
};

KERNEL(finite, Args, 64) {
	uint from = (blockX() * blockThreads() + threadX()) * 4, r = blockY();
	if (r >= *at<uint>(a.count)) {
		return;
	}
	for (uint i = from; i < lesser(from + 4, a.width); i++) {
		if ((at<uint>(a.x)[uint64_t(r) * a.stride + i] & 0x7f800000u) == 0x7f800000u) {
			*at<uint>(a.status) = r + 1;
		}
	}
}
