// Adds up what the experts of a row made, by their weights: y[r] = Σ w[r][i]·x[r·used + i], in order of i.
//
// A thread makes a value. Grid: blocks for a row's values, rows. y may be the residual.
//
// variant: combine
#include "lib/step.cuh"

struct Args {
	uint64_t x;
	uint64_t weights;  // 0: ones
	uint64_t residual; // rows like y that are added; 0: none
	uint64_t y;
	uint64_t count; // rows that are there; 0: all
	uint width;
	uint xStride; // in float32
	uint yStride; // of y and residual
	uint used;
};

KERNEL(combine, Args, 256) {
	uint i = blockX() * 256 + threadX(), r = blockY();
	if (i >= a.width || r >= rowsThere(a.count, ~0u)) {
		return;
	}
	const float *weights = at<const float>(a.weights) + r * a.used;
	const float *x = at<const float>(a.x) + uint64_t(r) * a.used * a.xStride + i;
	uint64_t to = uint64_t(r) * a.yStride + i;
	float sum = 0;
	for (uint s = 0; s < a.used; s++) {
		sum = fma(a.weights != 0 ? weights[s] : 1.0f, x[uint64_t(s) * a.xStride], sum);
	}
	if (a.residual != 0) {
		sum = sum + at<const float>(a.residual)[to];
	}
	at<float>(a.y)[to] = sum;
}
