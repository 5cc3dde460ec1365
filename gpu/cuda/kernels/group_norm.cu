// Norms of groups of a row's features: RMS or layer, with weight and bias or without.
//
// A block owns a row's group. Grid: groups of a row, rows. y may be x. Memory: a float for each thread.
// Sums: a thread's values in order, a block's threads apart, then the threads' as a tree: the number of threads, a power
// of two, is chosen by the group's size. Of squares of RMS norms of groups smaller than 1024: every 16th value in order,
// then these 16 in order, as attention has it.
//
// variant: group_norm
#include "lib/device.cuh"

struct Args {
	uint64_t x, y, gain, bias; // gain 0: ones; bias 0: none
	uint64_t count;            // rows that are there; 0: all
	uint layer;                // 1: subtract the mean
	uint group;                // features
	uint gainGroups;           // 1: gain is by feature of the row, not of the group
	uint biasGroups;
	uint xStride, yStride; // in float32
	float eps;
	uint pad;
};

DEVICE float total(float own) {
	float *sums = dynamicShared<float>();
	sync();
	sums[threadX()] = own;
	for (uint n = blockThreads() / 2; n > 0; n /= 2) {
		sync();
		if (threadX() < n) {
			sums[threadX()] = sums[threadX()] + sums[threadX() + n];
		}
	}
	sync();
	return sums[0];
}

DEVICE float inOrder(float own) {
	float *sums = dynamicShared<float>();
	sync();
	sums[threadX()] = own;
	sync();
	float s = 0.0f;
	for (uint i = 0; i < 16; i++) {
		s = s + sums[i];
	}
	return s;
}

KERNEL(groupNorm, Args, 256) {
	uint g = blockX(), r = blockY();
	if (a.count != 0 && r >= *at<uint>(a.count)) {
		return;
	}
	const float *x = at<float>(a.x) + uint64_t(r) * a.xStride + uint64_t(g) * a.group;
	float *y = at<float>(a.y) + uint64_t(r) * a.yStride + uint64_t(g) * a.group, mean = 0.0f, size = static_cast<float>(a.group);
	if (a.layer != 0) {
		float s = 0.0f;
		for (uint i = threadX(); i < a.group; i += blockThreads()) {
			s = s + x[i];
		}
		mean = total(s) / size;
	}
	bool few = a.layer == 0 && a.group < 1024;
	uint step = few ? 16 : blockThreads();
	float squares = 0.0f;
	for (uint i = threadX(); i < a.group && threadX() < step; i += step) {
		float d = x[i] - mean;
		squares = fma(d, d, squares);
	}
	float scale = 1.0f / squareRoot((few ? inOrder(squares) : total(squares)) / size + a.eps);
	for (uint i = threadX(); i < a.group; i += blockThreads()) {
		float v = (x[i] - mean) * scale;
		if (a.gain != 0) {
			v = v * at<float>(a.gain)[uint64_t(a.gainGroups) * g * a.group + i];
		}
		if (a.bias != 0) {
			v = v + at<float>(a.bias)[uint64_t(a.biasGroups) * g * a.group + i];
		}
		y[i] = v;
	}
}
