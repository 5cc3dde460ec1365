// What is done to each value of rows: y[r][i] = f(a[r][i], b[r][i]); and rows taken by number.
//
// A thread makes a value. Grid: blocks for a row's values, rows. y may be a or b, but not where rows have numbers.
//
// variant: each
#include "lib/act.cuh"

struct Args {
	uint64_t a, b, y;
	uint64_t numbers; // row r takes row numbers[r] of a; 0: row r
	uint64_t count;   // rows that are there; 0: all
	uint op, act;
	uint width;
	uint filled; // values of a row of y: those from width on become zero
	uint bWidth; // values of a row of b, the last of which stands for all that follow
	uint aStride, bStride, yStride; // in float32
	float factor;
	uint share; // rows of y that have the same row of a, one after the other
};

constexpr uint opSum = 1, opProduct = 2, opScaled = 3, opSoftCap = 4, opActivate = 5, opGate = 6;

KERNEL(each, Args, 256) {
	uint i = blockX() * blockThreads() + threadX(), r = blockY();
	if (i >= a.filled || (a.count != 0 && r >= *at<uint>(a.count))) {
		return;
	}
	float v = 0.0f;
	if (i < a.width) {
		uint from = a.numbers != 0 ? at<uint>(a.numbers)[r] : r / a.share;
		v = at<float>(a.a)[uint64_t(from) * a.aStride + i];
		bool two = a.op == opSum || a.op == opProduct || a.op == opGate;
		float w = two ? at<float>(a.b)[uint64_t(r) * a.bStride + lesser(i, a.bWidth - 1)] : 0.0f;
		switch (a.op) {
		case opSum:
			v = v + w;
			break;
		case opProduct:
			v = v * w;
			break;
		case opScaled:
			v = v * a.factor;
			break;
		case opSoftCap:
			v = a.factor * hyperbolic(v / a.factor);
			break;
		case opActivate:
			v = activate(a.act, v);
			break;
		case opGate:
			v = gated(a.act, v, w);
			break;
		}
	}
	at<float>(a.y)[uint64_t(r) * a.yStride + i] = v;
}
