// Lists the experts that a router chose elsewhere, as route.cu lists them, from the weights of all: those that are not 0,
// ascending. A row that has fewer than are used goes on with the first expert, whose weight there is 0.
//
// A thread owns a row.
//
// variant: chosen
#include "lib/step.cuh"

struct Args {
	uint64_t dense;   // [row][experts]
	uint64_t ids;     // [row][used]; all ones where the row is not there
	uint64_t weights; // [row][used]
	uint64_t count;   // rows that are there; 0: all
	uint rows;
	uint experts;
	uint used;
	uint stride; // of dense, in float32
};

KERNEL(chosen, Args, 64) {
	uint r = blockX() * 64 + threadX(), n = 0;
	if (r >= a.rows) {
		return;
	}
	bool there = r < rowsThere(a.count, a.rows);
	uint *ids = at<uint>(a.ids) + r * a.used;
	float *weights = at<float>(a.weights) + r * a.used;
	for (uint e = 0; there && e < a.experts && n < a.used; e++) {
		float w = at<const float>(a.dense)[uint64_t(r) * a.stride + e];
		if (w != 0.0f) {
			ids[n] = e;
			weights[n] = w;
			n++;
		}
	}
	for (; n < a.used; n++) {
		ids[n] = there ? 0 : ~0u;
		weights[n] = 0;
	}
}
