// Copies some features of each head of rows to some of the heads of others: y[r][h·yHead + i] = x[r][h·xHead + i].
//
// A thread copies a value. Grid: blocks for the values of a row, rows. x and y share no memory.
//
// variant: head_copy
#include "lib/device.cuh"

struct Args {
	uint64_t x, y, count; // x and y of the first feature that is copied; count: of rows that are there, 0: all
	uint heads, width;    // width: features that are copied of each head
	uint xHead, yHead;    // features of a head
	uint xStride, yStride;
};

KERNEL(headCopy, Args, 64) {
	uint i = blockX() * 64 + threadX(), r = blockY(), head = i / a.width;
	if (head >= a.heads || (a.count != 0 && r >= *at<const uint>(a.count))) {
		return;
	}
	at<float>(a.y)[uint64_t(r) * a.yStride + head * a.yHead + i % a.width] =
		at<const float>(a.x)[uint64_t(r) * a.xStride + head * a.xHead + i % a.width];
}
