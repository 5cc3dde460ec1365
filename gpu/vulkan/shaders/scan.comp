#version 460
#extension GL_GOOGLE_include_directive : require
// State-space scans and delta rules, as internal/ir has them: each head of a row changes its state, a matrix of KEYS ×
// VALUES, and reads it. Rows are taken one after another, however many there are: a prompt has the bits of an answer.
//
// Eight lanes own a column of a head's state, for all rows of a span: lane l has every eighth key from l on, in
// registers. Between steps a block's state is [head][value][key]. Grid: columns, heads, spans. Order of addition: a
// lane's keys in order, then the lanes as a tree. Subgroups: at least 8 lanes.
//
// variant: scan
#include "lib/buffers.glsl"
#include "lib/quantise.glsl"
#include "lib/step.glsl"
#include "lib/state.glsl"

layout(local_size_x = 64) in;
layout(constant_id = 0) const uint KEYS = 128;
layout(constant_id = 1) const uint VALUES = 64;
layout(constant_id = 2) const uint GROUPS = 1; // of heads with the same q and k
layout(constant_id = 3) const uint TILED = 0;  // 1: head h is of group h mod GROUPS, else groups are neighbours
layout(constant_id = 4) const uint DELTA = 0;  // 1: the delta rule

layout(push_constant, scalar) uniform Push {
	Floats q;        // rows of GROUPS·KEYS
	Floats k;
	Floats v;        // rows of heads·VALUES, as y
	Floats step;     // rows of heads: δ before its shift and softplus
	Floats beta;     // rows of heads, of the delta rule
	Floats y;
	Floats decay;    // A by head
	Floats shift;
	Floats skip;     // D by head; 0: none
	uint64_t states; // the layer's
	Spans spans;
	Words tables;
	uint qStride;    // in float32
	uint kStride;
	uint vStride;
	uint stepStride;
	uint betaStride;
	uint yStride;
	float scale;
};

const uint EACH = (KEYS + 7) / 8; // keys of a lane

// softplus is ln(1+eˣ). Where e^-|x| is small 1 + e^-|x| has lost it: ln(1+e) is 2·artanh(e/(2+e)), by its series.
float softplus(float x) {
	float e = exp(-abs(x)), z = e / (2.0 + e), s = z * z, sum = 0.0;
	[[unroll]] for (int n = 19; n > 0; n -= 2) {
		sum = sum * s + 1.0 / float(n);
	}
	return (x < 0.0 ? 0.0 : x) + 2.0 * z * sum;
}

float keys[EACH], queries[EACH]; // of the row that comes next

void fetch(uint row, uint group) {
	[[unroll]] for (uint i = 0; i < EACH; i++) {
		uint n = i * 8 + gl_LocalInvocationID.x % 8;
		keys[i] = n < KEYS ? k.v[row * kStride + group * KEYS + n] : 0.0;
		queries[i] = n < KEYS ? q.v[row * qStride + group * KEYS + n] : 0.0;
	}
}

void main() {
	uint lane = gl_LocalInvocationID.x % 8, column = gl_WorkGroupID.x * 8 + gl_LocalInvocationID.x / 8;
	uint head = gl_WorkGroupID.y, heads = gl_NumWorkGroups.y, values = heads * VALUES * KEYS;
	Span s = spans.v[gl_WorkGroupID.z];
	if (column >= VALUES || s.rows == 0) {
		return;
	}
	uint group = TILED != 0 ? head % GROUPS : head / (heads / GROUPS), own = head * VALUES + column;
	float state[EACH];
	[[unroll]] for (uint i = 0; i < EACH; i++) {
		state[i] = 0.0;
		if (s.position > 0 && i * 8 + lane < KEYS) {
			state[i] = stateAt(states, values, tables, s, s.position - 1).v[own * KEYS + i * 8 + lane];
		}
	}
	fetch(s.row, group);
	for (uint i = 0; i < s.rows; i++) {
		uint row = s.row + i;
		float key[EACH], query[EACH], value = v.v[row * vStride + own];
		float delta = softplus(step.v[row * stepStride + head] + shift.v[head]);
		precise float keep = exp(decay.v[head] * delta), add = delta * value, read = 0.0;
		[[unroll]] for (uint j = 0; j < EACH; j++) {
			key[j] = keys[j];
			query[j] = queries[j];
		}
		if (i + 1 < s.rows) {
			fetch(row + 1, group);
		}
		if (DELTA != 0) {
			precise float known = 0.0;
			[[unroll]] for (uint j = 0; j < EACH; j++) {
				known = fma(state[j], key[j], known);
			}
			add = beta.v[row * betaStride + head] * (value - keep * sum8(known));
		}
		[[unroll]] for (uint j = 0; j < EACH; j++) {
			precise float next = fma(key[j], add, keep * state[j]);
			state[j] = next;
			read = fma(next, query[j], read);
		}
		read = scale * sum8(read);
		if (uint64_t(skip) != 0) {
			read = fma(skip.v[head], value, read);
		}
		if (lane == 0) {
			y.v[row * yStride + own] = read;
		}
		if (leaves(s, i)) {
			Floats to = stateAt(states, values, tables, s, s.position + i);
			[[unroll]] for (uint j = 0; j < EACH; j++) {
				if (j * 8 + lane < KEYS) {
					to.v[own * KEYS + j * 8 + lane] = state[j];
				}
			}
		}
	}
}
