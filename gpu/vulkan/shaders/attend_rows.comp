#version 460
#extension GL_GOOGLE_include_directive : require
// Splits of attention for many rows at once, with the bits of attend_any.comp: features one after the other, positions
// one after the other.
//
// A workgroup owns (KV head, split, ROWS rows): 64 pairs of a row and a query head, by blocks of 64 positions. A thread
// has 4 × 4 scores, then 4 pairs × VALUES/16 features of the results, all in registers; keys come in slices of 16
// features, values in slices of 16 positions, converted to float32 once for all pairs. Rows that lie in other
// sequences, or whose splits have another length, are taken in a turn of their own. The logarithms are of base 2. Shared
// memory: 18.5 KiB, and 8.5 KiB or 64·VALUES bytes.
//
// variant: attend_rows
#include "lib/buffers.glsl"
#include "lib/step.glsl"
#include "lib/act.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint TYPE = 1;
layout(constant_id = 1) const uint KEYS = 128;   // features of a key, whole slices
layout(constant_id = 2) const uint VALUES = 128; // features of a value, a multiple of 64
layout(constant_id = 3) const uint QUERIES = 4;  // heads of a KV head, a divisor of 64
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
	uint size;       // rows, of which count are there
};

const float NOTHING = -1e30;
const uint GROUPED = 32; // features of a key with one scale: two slices
const uint ROWS = 64 / QUERIES;
const uint PAIRS = 68;   // pairs in a line of shared memory, so that lines begin in different banks
const uint SLICE = 16;   // features of keys, positions of values
const uint WIDE = VALUES / 64; // vectors of features, a thread's

const uint KEY = SLICE * PAIRS / 4; // where keys begin in a slice: [feature][pair], then [feature][position]

shared vec4 slices[VALUES > 128 ? SLICE * VALUES / 4 : 2 * KEY]; // or [position][feature] of values
shared vec4 weights[64 * PAIRS / 4]; // [position][pair]: scores, then weights
shared float factors[64];               // of a slice of keys
shared float best[64], total[64], keep[64];
shared uint lows[64], highs[64];        // which positions a pair sees, of this split

vec4 scores[4]; // [pair][position]
vec4 sums[4 * WIDE];

// element is a feature of a run of the cache, without its scale.
float element(uint64_t run, uint at) {
	if (TYPE == KVF32) {
		return Floats(run).v[at];
	}
	return TYPE == KVF16 ? fromHalf(uint(Halves(run).v[at])) : float(int8_t(Bytes(run).v[at]));
}

// multiply adds a slice of features to scores. A barrier must have followed the slice.
void multiply(inout vec4 s[4]) {
	uint lines = PAIRS / 4, pair = gl_LocalInvocationID.x / 16, position = gl_LocalInvocationID.x % 16;
	[[unroll]] for (uint d = 0; d < SLICE; d++) {
		vec4 q = slices[d * lines + pair], k = slices[KEY + d * lines + position];
		[[unroll]] for (uint a = 0; a < 4; a++) {
			precise vec4 t = fma(vec4(q[a]), k, s[a]);
			s[a] = t;
		}
	}
}

// score sets scores to products of queries with the keys of a run.
void score(uint64_t run, uint row, uint first, uint least, uint most) {
	uint thread = gl_LocalInvocationID.x, kv = gl_WorkGroupID.x;
	[[unroll]] for (uint a = 0; a < 4; a++) {
		scores[a] = vec4(0);
	}
	vec4 part[4] = scores; // the products of features with one scale
	for (uint slice = 0; slice < KEYS; slice += SLICE) {
		barrier();
		for (uint i = thread; i < 64 * SLICE; i += 256) {
			uint d = i % SLICE, m = i / SLICE, p = first + m, at = d * PAIRS + m;
			uint r = min(row + m / QUERIES, size - 1);
			slices[at / 4][at % 4] = x.v[r * xStride + (kv * QUERIES + m % QUERIES) * KEYS + slice + d];
			slices[KEY + at / 4][at % 4] = p >= least && p < most ? element(run, m * KEYS + slice + d) : 0.0;
		}
		if (TYPE == KVQ8 && thread < 64) {
			factors[thread] = Floats(run + 64ul * KEYS).v[thread * (KEYS / GROUPED) + slice / GROUPED];
		}
		barrier();
		if (TYPE != KVQ8) {
			multiply(scores);
			continue;
		}
		multiply(part);
		if (slice % GROUPED != 0) {
			vec4 factor;
			[[unroll]] for (uint b = 0; b < 4; b++) {
				factor[b] = factors[thread % 16 * 4 + b];
			}
			[[unroll]] for (uint a = 0; a < 4; a++) {
				precise vec4 t = fma(part[a], factor, scores[a]);
				scores[a] = t;
				part[a] = vec4(0);
			}
		}
	}
}

// weigh turns scores into weights, and scales what there is so far.
void weigh(uint first) {
	uint thread = gl_LocalInvocationID.x, pair = thread / 16 * 4, position = thread % 16 * 4;
	[[unroll]] for (uint b = 0; b < 4; b++) {
		vec4 column;
		[[unroll]] for (uint a = 0; a < 4; a++) {
			uint p = first + position + b;
			precise float s = scores[a][b] * scale;
			s = cap > 0.0 ? cap * hyperbolic(s / cap) : s;
			column[a] = p >= lows[pair + a] && p < highs[pair + a] ? s : 2.0 * NOTHING;
		}
		weights[((position + b) * PAIRS + pair) / 4] = column;
	}
	barrier();
	if (thread < 64) {
		float most = best[thread];
		for (uint i = 0; i < 64; i++) {
			most = max(most, weights[(i * PAIRS + thread) / 4][thread % 4]);
		}
		keep[thread] = exp2(best[thread] - most);
		best[thread] = most;
	}
	barrier();
	for (uint i = thread; i < 64 * 64; i += 256) {
		uint m = i % 64, p = first + i / 64, at = (i / 64 * PAIRS + m) / 4;
		bool seen = p >= lows[m] && p < highs[m];
		weights[at][m % 4] = seen ? exp2(weights[at][m % 4] - best[m]) : 0.0;
	}
	barrier();
	if (thread < 64) {
		precise float t = total[thread] * keep[thread];
		for (uint i = 0; i < 64; i++) {
			if (first + i >= lows[thread] && first + i < highs[thread]) {
				t = t + weights[(i * PAIRS + thread) / 4][thread % 4];
			}
		}
		total[thread] = t;
	}
}

// add adds weighted values of a run. What a pair does not see is not added, not even as nothing: it may be infinite.
void add(uint64_t run, uint first, uint least, uint most, bool whole) {
	uint thread = gl_LocalInvocationID.x, pair = thread / 16, part = thread % 16;
	[[unroll]] for (uint a = 0; a < 4; a++) {
		[[unroll]] for (uint w = 0; w < WIDE; w++) {
			precise vec4 s = sums[a * WIDE + w] * keep[pair * 4 + a];
			sums[a * WIDE + w] = s;
		}
	}
	for (uint slice = 0; slice < 64; slice += SLICE) {
		barrier();
		for (uint i = thread; i < SLICE * VALUES; i += 256) {
			uint at = slice + i / VALUES, p = first + at;
			float v = 0.0;
			if (p >= least && p < most) {
				v = element(run, at * VALUES + i % VALUES);
				if (TYPE == KVQ8) {
					v *= Floats(run + 64ul * VALUES).v[at];
				}
			}
			slices[i / 4][i % 4] = v;
		}
		barrier();
		[[unroll]] for (uint i = 0; i < SLICE; i++) {
			vec4 weight = weights[(slice + i) * PAIRS / 4 + pair];
			uint p = first + slice + i;
			[[unroll]] for (uint a = 0; a < 4; a++) {
				if (whole || p >= lows[pair * 4 + a] && p < highs[pair * 4 + a]) {
					[[unroll]] for (uint w = 0; w < WIDE; w++) {
						precise vec4 s = fma(vec4(weight[a]), slices[i * VALUES / 4 + w * 16 + part], sums[a * WIDE + w]);
						sums[a * WIDE + w] = s;
					}
				}
			}
		}
	}
}

// store writes the parts of the pairs of a turn.
void store(uint row, uint split) {
	uint thread = gl_LocalInvocationID.x, heads = gl_NumWorkGroups.x * QUERIES;
	[[unroll]] for (uint a = 0; a < 4; a++) {
		uint m = thread / 16 * 4 + a, head = gl_WorkGroupID.x * QUERIES + m % QUERIES;
		uint at = (((row + m / QUERIES) * heads + head) * MAXSPLITS + split) * (VALUES + 2);
		if (highs[m] == 0) {
			continue;
		}
		[[unroll]] for (uint w = 0; w < WIDE; w++) {
			[[unroll]] for (uint j = 0; j < 4; j++) {
				parts.v[at + w * 64 + thread % 16 * 4 + j] = sums[a * WIDE + w][j];
			}
		}
		if (thread % 16 == 0) {
			parts.v[at + VALUES] = best[m];
			parts.v[at + VALUES + 1] = total[m];
		}
	}
}

// turn computes the rows of a sequence, with splits of one length, of a workgroup's; from and to are what they see
// together, wholeFrom and wholeTo what each of them sees.
void turn(Row leader, uint row, uint split, uint from, uint to, uint wholeFrom, uint wholeTo) {
	[[unroll]] for (uint i = 0; i < 4 * WIDE; i++) {
		sums[i] = vec4(0);
	}
	for (uint first = from / 64 * 64; first < to; first += 64) {
		uint64_t run = uint64_t(block(tables, leader, first)) * gl_NumWorkGroups.x + gl_WorkGroupID.x;
		score(keys + run * runBytes(KEYS, GROUPED), row, first, from, to);
		weigh(first);
		barrier();
		add(values + run * runBytes(VALUES, VALUES), first, from, to, first >= wholeFrom && first + 64 <= wholeTo);
	}
	store(row, split);
}

void main() {
	uint thread = gl_LocalInvocationID.x, row = gl_WorkGroupID.z * ROWS, split = gl_WorkGroupID.y;
	uint here = min(uint64_t(count) != 0 ? min(size, count.v[0]) : size, row + ROWS);
	for (uint lead = row; lead < here; lead++) {
		Row leader = rows.v[lead];
		uint length = splitLength(leader.position), begin = split * length, from = ~0u, to = 0, wholeFrom = 0, wholeTo = ~0u;
		bool first = true;
		for (uint r = row; r < lead; r++) {
			Row other = rows.v[r];
			first = first && (other.table != leader.table || splitLength(other.position) != length);
		}
		if (!first) {
			continue; // it was in the turn of that one
		}
		barrier();
		for (uint r = row; r < row + ROWS; r++) {
			uint low = 0, high = 0;
			Row other = rows.v[min(r, here - 1)];
			if (r < here && other.table == leader.table && splitLength(other.position) == length && begin <= other.position) {
				high = min(begin + length, other.position + 1);
				low = max(begin, firstSeen(other, window, chunked));
				if (low < high) {
					from = min(from, low);
					to = max(to, high);
				}
				wholeFrom = max(wholeFrom, low);
				wholeTo = min(wholeTo, high);
			}
			if (thread < QUERIES) {
				uint m = (r - row) * QUERIES + thread;
				lows[m] = low;
				highs[m] = high;
				best[m] = NOTHING;
				total[m] = 0.0;
			}
		}
		barrier();
		turn(leader, row, split, min(from, to), to, wholeFrom, wholeTo);
	}
}
