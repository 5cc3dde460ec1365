// State-space scans and delta rules, as internal/ir has them: each head of a row changes its state, a matrix of keys ×
// values, and reads it. Rows are taken one after another, however many there are: a prompt has the bits of an answer.
//
// Eight lanes own a column of a head's state, for all rows of a span: lane l has every eighth key from l on, in registers.
// Between steps a block's state is [head][value][key]. Grid: columns, heads, spans. Order of addition: a lane's keys in
// order, then the lanes as a tree.
//
// variant: scan_16 -DMOST=16
// variant: scan_64 -DMOST=64
// variant: scan_128 -DMOST=128
// variant: scan_256 -DMOST=256
#include "lib/step.cuh"

struct Args {
	uint64_t q;      // rows of groups·keys
	uint64_t k;
	uint64_t v;      // rows of heads·values, as y
	uint64_t step;   // rows of heads: δ before its shift and softplus
	uint64_t beta;   // rows of heads, of the delta rule
	uint64_t y;
	uint64_t decay;  // A by head
	uint64_t shift;
	uint64_t skip;   // D by head; 0: none
	uint64_t states; // the layer's
	uint64_t spans;
	uint64_t tables;
	uint qStride;    // in float32
	uint kStride;
	uint vStride;
	uint stepStride;
	uint betaStride;
	uint yStride;
	float scale;
	uint keys;       // MOST at most
	uint values;
	uint groups;     // of heads with the same q and k
	uint tiled;      // 1: head h is of group h mod groups, else groups are neighbours
	uint delta;      // 1: the delta rule
};

constexpr uint each = MOST / 8; // keys of a lane, at most

// softplus is ln(1+eˣ). Where e^-|x| is small 1 + e^-|x| has lost it: ln(1+e) is 2·artanh(e/(2+e)), by its series.
DEVICE float softplus(float x) {
	float e = exp(-magnitude(x)), z = e / (2.0f + e), s = z * z, sum = 0;
#pragma unroll
	for (int n = 19; n > 0; n -= 2) {
		sum = sum * s + 1.0f / static_cast<float>(n);
	}
	return (x < 0.0f ? 0.0f : x) + 2.0f * z * sum;
}

// Column is what eight lanes own.
struct Column {
	uint lane8, head, group, own; // own: of the values of a row
	float state[each];
};

// Inputs are a row's, of a lane's keys.
struct Inputs { float key[each], query[each]; };

DEVICE Inputs fetch(const Args &a, const Column &c, uint row) {
	Inputs in;
	const float *k = at<const float>(a.k) + uint64_t(row) * a.kStride + c.group * a.keys;
	const float *q = at<const float>(a.q) + uint64_t(row) * a.qStride + c.group * a.keys;
#pragma unroll
	for (uint j = 0; j < each; j++) {
		uint n = j * 8 + c.lane8;
		in.key[j] = n < a.keys ? k[n] : 0.0f;
		in.query[j] = n < a.keys ? q[n] : 0.0f;
	}
	return in;
}

// next takes a row: it changes the state, and is what is read of it.
DEVICE float next(const Args &a, Column &c, const Inputs &in, uint row) {
	float value = at<const float>(a.v)[uint64_t(row) * a.vStride + c.own];
	float shift = at<const float>(a.shift)[c.head];
	float delta = softplus(at<const float>(a.step)[uint64_t(row) * a.stepStride + c.head] + shift);
	float keep = exp(at<const float>(a.decay)[c.head] * delta), add = delta * value, read = 0;
	if (a.delta != 0) {
		float known = 0;
#pragma unroll
		for (uint j = 0; j < each; j++) {
			known = fma(c.state[j], in.key[j], known);
		}
		float beta = at<const float>(a.beta)[uint64_t(row) * a.betaStride + c.head];
		add = beta * (value - keep * sum8(known));
	}
#pragma unroll
	for (uint j = 0; j < each; j++) {
		c.state[j] = fma(in.key[j], add, keep * c.state[j]);
		read = fma(c.state[j], in.query[j], read);
	}
	read = a.scale * sum8(read);
	return a.skip != 0 ? fma(at<const float>(a.skip)[c.head], value, read) : read;
}

KERNEL(scan, Args, 64) {
	Column c;
	c.lane8 = threadX() % 8;
	c.head = blockY();
	uint column = blockX() * 8 + threadX() / 8, heads = gridY(), values = heads * a.values * a.keys;
	Span s = at<const Span>(a.spans)[blockZ()];
	bool mine = column < a.values; // lanes of others take part in sums
	const uint *tables = at<const uint>(a.tables);
	c.group = a.tiled != 0 ? c.head % a.groups : c.head / (heads / a.groups);
	c.own = c.head * a.values + (mine ? column : 0);
	uint64_t from = uint64_t(c.own) * a.keys;
#pragma unroll
	for (uint j = 0; j < each; j++) {
		c.state[j] = 0;
		if (s.rows > 0 && s.position > 0 && j * 8 + c.lane8 < a.keys) {
			c.state[j] = stateAt(a.states, values, tables, s, s.position - 1)[from + j * 8 + c.lane8];
		}
	}
	Inputs in;
	if (s.rows > 0) {
		in = fetch(a, c, s.row);
	}
	for (uint i = 0; i < s.rows; i++) {
		Inputs now = in;
		if (i + 1 < s.rows) {
			in = fetch(a, c, s.row + i + 1);
		}
		float read = next(a, c, now, s.row + i);
		if (mine && c.lane8 == 0) {
			at<float>(a.y)[uint64_t(s.row + i) * a.yStride + c.own] = read;
		}
		if (!mine || !leaves(s, i)) {
			continue;
		}
		float *to = stateAt(a.states, values, tables, s, s.position + i) + from;
#pragma unroll
		for (uint j = 0; j < each; j++) {
			if (j * 8 + c.lane8 < a.keys) {
				to[j * 8 + c.lane8] = c.state[j];
			}
		}
	}
}
