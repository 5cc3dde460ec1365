#version 460
#extension GL_GOOGLE_include_directive : require
// One split of attention for heads of any size, caches of any type, keys and values of different sizes: what
// attend.comp is too special for. merge_any.comp joins splits.
//
// A workgroup owns (AT_ONCE query heads of a KV head, split, row): keys and values are read once for all of them. Thread:
// a position of a block of 64 for the scores, then every 64th feature of the values. Order of addition, whatever AT_ONCE
// is: features one after the other; positions one after the other. The logarithms are of base 2. Shared memory:
// AT_ONCE·(KEYS + 128)·4 bytes.
//
// variant: attend_any
#include "lib/buffers.glsl"
#include "lib/step.glsl"
#include "lib/act.glsl"

layout(local_size_x = 64) in;
layout(constant_id = 0) const uint TYPE = 1;      // of keys
layout(constant_id = 1) const uint KEYS = 128;    // features of a key
layout(constant_id = 2) const uint VALUES = 128;  // features of a value
layout(constant_id = 3) const uint QUERIES = 1;   // heads of a KV head
layout(constant_id = 4) const uint AT_ONCE = 1;   // of these; a divisor
layout(constant_id = 5) const uint VALUETYPE = 1; // of values
layout(constant_id = 6) const uint OPEN = 0;      // 1: a row's own block alone, which is the part behind the splits
#include "lib/cache.glsl"

layout(push_constant, scalar) uniform Push {
	Floats x;        // rows of query heads
	uint64_t keys;   // the layer's
	uint64_t values;
	Floats parts;    // [row][head][MAXSPLITS + OPEN][VALUES + 4]: values, largest score, sum
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

shared float query[AT_ONCE * KEYS];
shared float weights[AT_ONCE * 64];
shared float largest[AT_ONCE * 64];

float scores[AT_ONCE];

// times adds a feature of a key to the products of all queries.
void times(inout float sums[AT_ONCE], uint d, float key) {
	[[unroll]] for (uint a = 0; a < AT_ONCE; a++) {
		precise float s = fma(query[a * KEYS + d], key, sums[a]);
		sums[a] = s;
	}
}

// score sets scores to the products of the queries with the key of a position of a run.
void score(uint64_t run, uint position) {
	uint at = position * KEYS;
	[[unroll]] for (uint a = 0; a < AT_ONCE; a++) {
		scores[a] = 0.0;
	}
	if (TYPE == KVF32) {
		for (uint d = 0; d < KEYS; d++) {
			times(scores, d, Floats(run).v[at + d]);
		}
	} else if (TYPE == KVF16) {
		for (uint d = 0; d < KEYS; d++) {
			times(scores, d, fromHalf(uint(Halves(run).v[at + d])));
		}
	} else {
		for (uint g = 0; g < KEYSCALES; g++) {
			float parts[AT_ONCE], factor = Floats(run + 64ul * KEYS).v[position * KEYSCALES + g];
			[[unroll]] for (uint a = 0; a < AT_ONCE; a++) {
				parts[a] = 0.0;
			}
			for (uint d = g * GROUPED; d < min((g + 1) * GROUPED, KEYS); d++) {
				times(parts, d, float(int8_t(Bytes(run).v[at + d])));
			}
			[[unroll]] for (uint a = 0; a < AT_ONCE; a++) {
				precise float s = fma(parts[a], factor, scores[a]);
				scores[a] = s;
			}
		}
	}
	[[unroll]] for (uint a = 0; a < AT_ONCE; a++) {
		precise float s = scores[a] * scale;
		scores[a] = cap > 0.0 ? cap * hyperbolic(s / cap) : s;
	}
}

// value is a feature of the value of a position of a run.
float value(uint64_t run, uint position, uint d) {
	uint at = position * VALUES + d;
	if (VALUETYPE == KVF32) {
		return Floats(run).v[at];
	}
	if (VALUETYPE == KVF16) {
		return fromHalf(uint(Halves(run).v[at]));
	}
	return float(int8_t(Bytes(run).v[at])) * Floats(run + 64ul * VALUES).v[position];
}

void main() {
	uint head = gl_WorkGroupID.x * AT_ONCE, split = gl_WorkGroupID.y, r = gl_WorkGroupID.z;
	uint heads = gl_NumWorkGroups.x * AT_ONCE, kvHeads = heads / QUERIES, thread = gl_LocalInvocationID.x;
	if (uint64_t(count) != 0 && r >= count.v[0]) {
		return;
	}
	Row row = rows.v[r];
	uint length = splitLength(row.position), begin = split * length;
	if (OPEN != 0) {
		length = 64;
		begin = row.position / 64 * 64;
		split = MAXSPLITS;
	}
	if (begin > row.position) {
		return;
	}
	uint to = min(begin + length, row.position + 1);
	uint from = max(begin, firstSeen(row, window, chunked));
	for (uint d = thread; d < AT_ONCE * KEYS; d += 64) {
		query[d] = x.v[r * xStride + head * KEYS + d];
	}
	float best[AT_ONCE], total[AT_ONCE], keep[AT_ONCE], sums[EACH * AT_ONCE];
	[[unroll]] for (uint a = 0; a < AT_ONCE; a++) {
		best[a] = NOTHING;
		total[a] = 0.0;
	}
	[[unroll]] for (uint e = 0; e < EACH * AT_ONCE; e++) {
		sums[e] = 0.0;
	}
	barrier();
	for (uint first = from / 64 * 64; first < to; first += 64) {
		uint64_t run = uint64_t(block(tables, row, first)) * kvHeads + head / QUERIES;
		uint p = first + thread;
		bool seen = p >= from && p < to;
		if (seen) {
			score(keys + run * runBytes(TYPE, KEYS, GROUPED), thread);
		}
		[[unroll]] for (uint a = 0; a < AT_ONCE; a++) {
			scores[a] = seen ? scores[a] : 2.0 * NOTHING;
			largest[a * 64 + thread] = scores[a];
		}
		for (uint n = 32; n > 0; n /= 2) {
			barrier();
			[[unroll]] for (uint a = 0; a < AT_ONCE; a++) {
				if (thread < n) {
					largest[a * 64 + thread] = max(largest[a * 64 + thread], largest[a * 64 + thread + n]);
				}
			}
		}
		barrier();
		[[unroll]] for (uint a = 0; a < AT_ONCE; a++) {
			float most = max(best[a], largest[a * 64]);
			keep[a] = exp2(best[a] - most);
			best[a] = most;
			weights[a * 64 + thread] = seen ? exp2(scores[a] - most) : 0.0;
		}
		barrier();
		uint low = from > first ? from - first : 0, high = min(to - first, 64);
		[[unroll]] for (uint a = 0; a < AT_ONCE; a++) {
			precise float t = total[a] * keep[a];
			for (uint i = low; i < high; i++) {
				t = t + weights[a * 64 + i];
			}
			total[a] = t;
		}
		[[unroll]] for (uint e = 0; e < EACH; e++) {
			uint d = e * 64 + thread;
			if (d < VALUES) {
				[[unroll]] for (uint a = 0; a < AT_ONCE; a++) {
					precise float s = sums[e * AT_ONCE + a] * keep[a];
					sums[e * AT_ONCE + a] = s;
				}
				for (uint i = low; i < high; i++) {
					float v = value(values + run * runBytes(VALUETYPE, VALUES, VALUES), i, d);
					[[unroll]] for (uint a = 0; a < AT_ONCE; a++) {
						precise float s = fma(weights[a * 64 + i], v, sums[e * AT_ONCE + a]);
						sums[e * AT_ONCE + a] = s;
					}
				}
			}
		}
	}
	[[unroll]] for (uint a = 0; a < AT_ONCE; a++) {
		uint at = ((r * heads + head + a) * (MAXSPLITS + OPEN) + split) * (VALUES + 4);
		[[unroll]] for (uint e = 0; e < EACH; e++) {
			uint d = e * 64 + thread;
			if (d < VALUES) {
				parts.v[at + d] = sums[e * AT_ONCE + a];
			}
		}
		if (thread == 0) {
			parts.v[at + VALUES] = best[a];
			parts.v[at + VALUES + 1] = total[a];
		}
	}
}
