// Convolves each channel with its weights over the last positions: y[r][c] = Σ w[c][j]·x[r-kept+j][c] + b[c], for j from 0
// to kept in order. The state is the inputs of the last positions kept, the oldest first: [kept][channels].
//
// A thread owns a channel of up to 64 rows of a span. Only the first of them reads the state that was there, before it
// leaves any, and those behind it leave other blocks. Grid: channels, spans, so many rows. y is not x.
//
// variant: conv
#include "lib/step.cuh"

struct Args {
	uint64_t x;
	uint64_t y;
	uint64_t weights;
	uint64_t bias;   // 0: none
	uint64_t states; // the layer's
	uint64_t spans;
	uint64_t tables;
	uint channels;
	uint xStride; // in float32
	uint yStride;
	uint kept; // 1 to 64
};

// convolve takes a thread's rows, with the last positions in an array of at least as many.
template <uint MOST> DEVICE void convolve(const Args &a, const Span &s, uint c, uint from) {
	const uint *tables = at<const uint>(a.tables);
	const float *weights = at<const float>(a.weights) + c * (a.kept + 1);
	uint kept = MOST <= 3 ? MOST : a.kept;
	float past[MOST], w[MOST + 1];
	for (uint j = 0; j <= kept; j++) {
		w[j] = weights[j];
	}
	for (uint j = 0; j < kept; j++) {
		past[j] = 0;
		if (from > 0) {
			past[j] = at<const float>(a.x)[uint64_t(s.row + from - kept + j) * a.xStride + c];
		} else if (s.position > 0) {
			past[j] = stateAt(a.states, kept * a.channels, tables, s, s.position - 1)[j * a.channels + c];
		}
	}
	for (uint i = from; i < lesser(from + 64, s.rows); i++) {
		float now = at<const float>(a.x)[uint64_t(s.row + i) * a.xStride + c], sum = w[0] * past[0];
		for (uint j = 1; j < kept; j++) {
			sum = fma(w[j], past[j], sum);
			past[j - 1] = past[j];
		}
		sum = fma(w[kept], now, sum);
		past[kept - 1] = now;
		if (a.bias != 0) {
			sum = sum + at<const float>(a.bias)[c];
		}
		at<float>(a.y)[uint64_t(s.row + i) * a.yStride + c] = sum;
		if (leaves(s, i)) {
			float *state = stateAt(a.states, kept * a.channels, tables, s, s.position + i);
			for (uint j = 0; j < kept; j++) {
				state[j * a.channels + c] = past[j];
			}
		}
	}
}

KERNEL(conv, Args, 64) {
	uint c = blockX() * 64 + threadX(), from = blockZ() * 64;
	Span s = at<const Span>(a.spans)[blockY()];
	if (c >= a.channels || from >= s.rows) {
		return;
	}
	if (a.kept == 3) {
		convolve<3>(a, s, c, from);
	} else if (a.kept == 2) {
		convolve<2>(a, s, c, from);
	} else {
		convolve<64>(a, s, c, from);
	}
}
