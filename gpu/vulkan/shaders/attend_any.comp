#version 460
#extension GL_GOOGLE_include_directive : require
// One split of attention for heads of any size, caches of any type, keys and values of different sizes: what
// attend.comp is too special for. merge_any.comp joins splits.
//
// A workgroup owns (query head, split, row). Thread: a position of a block of 64 for the scores, then every 64th
// feature of the values. Order of addition: features one after the other; positions one after the other. The
// logarithms are of base 2. Shared memory: (KEYS + 128)·4 bytes.
//
// variant: attend_any
#include "lib/buffers.glsl"
#include "lib/step.glsl"
#include "lib/act.glsl"

layout(local_size_x = 64) in;
layout(constant_id = 0) const uint TYPE = 1;
layout(constant_id = 1) const uint KEYS = 128;   // features of a key
layout(constant_id = 2) const uint VALUES = 128; // features of a value
layout(constant_id = 3) const uint QUERIES = 1;  // heads of a KV head
#include "lib/cache.glsl"

layout(push_constant, scalar) uniform Push {
	Floats x;        // rows of query heads
	uint64_t keys;   // the layer's
	uint64_t values;
	Floats parts;    // [row][head][MAXSPLITS][VALUES + 2]: values, largest score, sum
	StepRows rows;
	Words tables;
	Words count;     // rows that are there; 0: all
	uint xStride;    // in float32
	uint window;     // positions that are seen; 0: all
	float scale;     // of scores, times log2(e)
	float cap;       // scores s become cap·tanh(s/cap), cap times log2(e); 0: they stay
	uint chunked;    // 1: the window is the row's own chunk of so many positions
};

const float NOTHING = -1e30;
const uint GROUPED = 32;                  // features of a key with one scale
const uint EACH = (VALUES + 63) / 64;     // features of a thread
const uint KEYSCALES = (KEYS + GROUPED - 1) / GROUPED;

shared float query[KEYS];
shared float weights[64];
shared float largest[64];

// score is the product of the query with the key of a position of a run.
float score(uint64_t run, uint position) {
	uint at = position * KEYS;
	precise float sum = 0.0;
	if (TYPE == KVF32) {
		for (uint d = 0; d < KEYS; d++) {
			sum = fma(query[d], Floats(run).v[at + d], sum);
		}
	} else if (TYPE == KVF16) {
		for (uint d = 0; d < KEYS; d++) {
			sum = fma(query[d], fromHalf(uint(Halves(run).v[at + d])), sum);
		}
	} else {
		for (uint g = 0; g < KEYSCALES; g++) {
			precise float part = 0.0;
			for (uint d = g * GROUPED; d < min((g + 1) * GROUPED, KEYS); d++) {
				part = fma(query[d], float(int8_t(Bytes(run).v[at + d])), part);
			}
			sum = fma(part, Floats(run + 64ul * KEYS).v[position * KEYSCALES + g], sum);
		}
	}
	precise float s = sum * scale;
	return cap > 0.0 ? cap * hyperbolic(s / cap) : s;
}

// value is a feature of the value of a position of a run.
float value(uint64_t run, uint position, uint d) {
	uint at = position * VALUES + d;
	if (TYPE == KVF32) {
		return Floats(run).v[at];
	}
	if (TYPE == KVF16) {
		return fromHalf(uint(Halves(run).v[at]));
	}
	return float(int8_t(Bytes(run).v[at])) * Floats(run + 64ul * VALUES).v[position];
}

void main() {
	uint head = gl_WorkGroupID.x, split = gl_WorkGroupID.y, r = gl_WorkGroupID.z, thread = gl_LocalInvocationID.x;
	uint heads = gl_NumWorkGroups.x, kvHeads = heads / QUERIES;
	if (uint64_t(count) != 0 && r >= count.v[0]) {
		return;
	}
	Row row = rows.v[r];
	uint length = splitLength(row.position), begin = split * length;
	if (begin > row.position) {
		return;
	}
	uint to = min(begin + length, row.position + 1);
	uint from = max(begin, firstSeen(row, window, chunked));
	for (uint d = thread; d < KEYS; d += 64) {
		query[d] = x.v[r * xStride + head * KEYS + d];
	}
	float best = NOTHING, total = 0.0, sums[EACH];
	[[unroll]] for (uint e = 0; e < EACH; e++) {
		sums[e] = 0.0;
	}
	barrier();
	for (uint first = from / 64 * 64; first < to; first += 64) {
		uint64_t run = uint64_t(block(tables, row, first)) * kvHeads + head / QUERIES;
		uint p = first + thread;
		bool seen = p >= from && p < to;
		float s = seen ? score(keys + run * runBytes(KEYS, GROUPED), thread) : 2.0 * NOTHING;
		largest[thread] = s;
		for (uint n = 32; n > 0; n /= 2) {
			barrier();
			if (thread < n) {
				largest[thread] = max(largest[thread], largest[thread + n]);
			}
		}
		barrier();
		float most = max(best, largest[0]), keep = exp2(best - most);
		best = most;
		weights[thread] = seen ? exp2(s - most) : 0.0;
		barrier();
		uint low = from > first ? from - first : 0, high = min(to - first, 64);
		precise float t = total * keep;
		for (uint i = low; i < high; i++) {
			t = t + weights[i];
		}
		total = t;
		[[unroll]] for (uint e = 0; e < EACH; e++) {
			uint d = e * 64 + thread;
			if (d < VALUES) {
				precise float v = sums[e] * keep;
				for (uint i = low; i < high; i++) {
					v = fma(weights[i], value(values + run * runBytes(VALUES, VALUES), i, d), v);
				}
				sums[e] = v;
			}
		}
	}
	uint at = ((r * heads + head) * MAXSPLITS + split) * (VALUES + 2);
	[[unroll]] for (uint e = 0; e < EACH; e++) {
		uint d = e * 64 + thread;
		if (d < VALUES) {
			parts.v[at + d] = sums[e];
		}
	}
	if (thread == 0) {
		parts.v[at + VALUES] = best;
		parts.v[at + VALUES + 1] = total;
	}
}
