#version 460
#extension GL_GOOGLE_include_directive : require
// Splits of attention for many rows at once, with the bits of attend_any.comp: features one after the other, positions
// one after the other.
//
// A workgroup owns (KV head, split, ROWS rows): 64 pairs of a row and a query head, by blocks of 64 positions. A thread
// has 4 × 4 scores, then 4 pairs × VALUES/16 features of the results, all in registers; keys come in slices of 16
// features, values in slices of 16 positions, converted to float32 once for all pairs. Each slice is loaded while the one
// before is multiplied. Rows that lie in other sequences, or whose splits have another length, are taken in a turn of
// their own. The logarithms are of base 2. Shared memory: 18.5 KiB, and 8.5 KiB or 64·VALUES bytes.
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
	Quads x;         // rows of query heads, float32
	uint64_t keys;   // the layer's
	uint64_t values;
	Floats parts;    // [row][head][MAXSPLITS][VALUES + 4]: values, largest score, sum
	StepRows rows;
	Words tables;
	Words count;     // rows that are there; 0: all
	uint xStride;    // in float32, a multiple of four
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
shared vec4 weights[64 * PAIRS / 4]; // [position][pair]; before, [sixteenth of a pair's scores][pair]: the largest
shared float factors[64];            // of a slice of keys
shared float best[64], total[64], keep[64];
shared uint lows[64], highs[64];     // which positions a pair sees, of this split

uint thread = gl_LocalInvocationID.x;
vec4 scores[4]; // [pair][position]
vec4 sums[4 * WIDE];
uvec4 held[WIDE > 2 ? WIDE : 2]; // of the slice that comes next, as loaded: four features of a query and of a key, or of values
float heldFactors[WIDE];  // of TYPE KVQ8

// bits is four features of a run of the cache, the first of them a multiple of four.
uvec4 bits(uint64_t run, uint at) {
	if (TYPE == KVF32) {
		return Quads(run).v[at / 4];
	}
	return TYPE == KVF16 ? uvec4(Pairs(run).v[at / 4], 0, 0) : uvec4(Words(run).v[at / 4], 0, 0, 0);
}

// opened is what bits says, without scales.
vec4 opened(uvec4 w) {
	if (TYPE == KVF32) {
		return uintBitsToFloat(w);
	}
	if (TYPE == KVF16) {
		return vec4(unpackHalf2x16(w.x), unpackHalf2x16(w.y));
	}
	return vec4(ivec4(w.xxxx << uvec4(24, 16, 8, 0)) >> 24);
}

// askKeys loads this thread's part of a slice of keys of a run, and of queries: four features of a position, and of a pair.
void askKeys(uint64_t run, uint row, uint slice) {
	uint m = thread / 4, d = slice + thread % 4 * 4, r = min(row + m / QUERIES, size - 1);
	held[0] = x.v[(r * xStride + (gl_WorkGroupID.x * QUERIES + m % QUERIES) * KEYS + d) / 4];
	held[1] = bits(run, m * KEYS + d);
	if (TYPE == KVQ8 && thread < 64) {
		heldFactors[0] = Floats(run + 64ul * KEYS).v[thread * (KEYS / GROUPED) + slice / GROUPED];
	}
}

// putKeys puts that where all threads see it.
void putKeys() {
	uint at = thread % 4 * 4 * PAIRS + thread / 4;
	vec4 q = uintBitsToFloat(held[0]), k = opened(held[1]);
	[[unroll]] for (uint j = 0; j < 4; j++) {
		slices[(at + j * PAIRS) / 4][at % 4] = q[j];
		slices[KEY + (at + j * PAIRS) / 4][at % 4] = k[j];
	}
	if (TYPE == KVQ8 && thread < 64) {
		factors[thread] = heldFactors[0];
	}
}

// askValues is askKeys of values, from a position of the run on.
void askValues(uint64_t run, uint slice) {
	[[unroll]] for (uint w = 0; w < WIDE; w++) {
		uint i = w * 256 + thread;
		held[w] = bits(run, slice * VALUES + 4 * i);
		if (TYPE == KVQ8) {
			heldFactors[w] = Floats(run + 64ul * VALUES).v[slice + i / (VALUES / 4)];
		}
	}
}

void putValues() {
	[[unroll]] for (uint w = 0; w < WIDE; w++) {
		vec4 v = opened(held[w]);
		slices[w * 256 + thread] = TYPE == KVQ8 ? v * heldFactors[w] : v;
	}
}

// multiply adds a slice of features to scores. A barrier must have followed the slice.
void multiply(inout vec4 s[4]) {
	uint lines = PAIRS / 4, pair = thread / 16, position = thread % 16;
	[[unroll]] for (uint d = 0; d < SLICE; d++) {
		vec4 q = slices[d * lines + pair], k = slices[KEY + d * lines + position];
		[[unroll]] for (uint a = 0; a < 4; a++) {
			precise vec4 t = fma(vec4(q[a]), k, s[a]);
			s[a] = t;
		}
	}
}

// score sets scores to products of queries with the keys of a run, whose first slice was asked for, and asks for values.
void score(uint64_t keysRun, uint64_t valuesRun, uint row) {
	[[unroll]] for (uint a = 0; a < 4; a++) {
		scores[a] = vec4(0);
	}
	vec4 part[4] = scores; // the products of features with one scale
	for (uint slice = 0; slice < KEYS; slice += SLICE) {
		barrier();
		putKeys();
		barrier();
		if (slice + SLICE < KEYS) {
			askKeys(keysRun, row, slice + SLICE);
		} else {
			askValues(valuesRun, 0);
		}
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

// weigh turns scores into weights.
void weigh(uint first) {
	uint pair = thread / 16 * 4, position = thread % 16 * 4;
	vec4 most;
	[[unroll]] for (uint a = 0; a < 4; a++) {
		[[unroll]] for (uint b = 0; b < 4; b++) {
			uint p = first + position + b;
			precise float s = scores[a][b] * scale;
			s = cap > 0.0 ? cap * hyperbolic(s / cap) : s;
			scores[a][b] = p >= lows[pair + a] && p < highs[pair + a] ? s : 2.0 * NOTHING;
		}
		most[a] = max(max(scores[a].x, scores[a].y), max(scores[a].z, scores[a].w));
	}
	weights[(thread % 16 * PAIRS + pair) / 4] = most;
	barrier();
	if (thread < 64) {
		float m = best[thread];
		[[unroll]] for (uint i = 0; i < 16; i++) {
			m = max(m, weights[(i * PAIRS + thread) / 4][thread % 4]);
		}
		keep[thread] = exp2(best[thread] - m);
		best[thread] = m;
	}
	barrier();
	[[unroll]] for (uint b = 0; b < 4; b++) {
		vec4 column;
		uint p = first + position + b;
		[[unroll]] for (uint a = 0; a < 4; a++) {
			bool seen = p >= lows[pair + a] && p < highs[pair + a];
			column[a] = seen ? exp2(scores[a][b] - best[pair + a]) : 0.0;
		}
		weights[((position + b) * PAIRS + pair) / 4] = column;
	}
	barrier();
	if (thread < 64) {
		precise float t = total[thread] * keep[thread];
		uint low = lows[thread], high = highs[thread];
		for (uint i = 0; i < 64; i++) {
			float w = weights[(i * PAIRS + thread) / 4][thread % 4];
			if (first + i >= low && first + i < high) {
				t = t + w;
			}
		}
		total[thread] = t;
	}
}

// add adds weighted values of a run, whose first slice was asked for, and asks for the next run's keys, if there is one.
// What a pair does not see is not added, not even as nothing: it may be infinite.
void add(uint64_t run, uint64_t next, uint row, uint first, bool whole) {
	uint pair = thread / 16, part = thread % 16;
	[[unroll]] for (uint a = 0; a < 4; a++) {
		[[unroll]] for (uint w = 0; w < WIDE; w++) {
			precise vec4 s = sums[a * WIDE + w] * keep[pair * 4 + a];
			sums[a * WIDE + w] = s;
		}
	}
	for (uint slice = 0; slice < 64; slice += SLICE) {
		barrier();
		putValues();
		barrier();
		if (slice + SLICE < 64) {
			askValues(run, slice + SLICE);
		} else if (next != 0) {
			askKeys(next, row, 0);
		}
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
	uint heads = gl_NumWorkGroups.x * QUERIES;
	[[unroll]] for (uint a = 0; a < 4; a++) {
		uint m = thread / 16 * 4 + a, head = gl_WorkGroupID.x * QUERIES + m % QUERIES;
		uint at = (((row + m / QUERIES) * heads + head) * MAXSPLITS + split) * (VALUES + 4);
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

// runOf is the number of this KV head's run that has a position of a sequence.
uint64_t runOf(Row leader, uint position) {
	return uint64_t(block(tables, leader, position)) * gl_NumWorkGroups.x + gl_WorkGroupID.x;
}

// turn computes the rows of a sequence, with splits of one length, of a workgroup's; from and to are what they see
// together, wholeFrom and wholeTo what each of them sees.
void turn(Row leader, uint row, uint split, uint from, uint to, uint wholeFrom, uint wholeTo) {
	[[unroll]] for (uint i = 0; i < 4 * WIDE; i++) {
		sums[i] = vec4(0);
	}
	uint64_t run = from < to ? runOf(leader, from) : 0;
	if (from < to) {
		askKeys(keys + run * runBytes(TYPE, KEYS, GROUPED), row, 0);
	}
	for (uint first = from / 64 * 64; first < to; first += 64) {
		uint64_t of = values + run * runBytes(TYPE, VALUES, VALUES), next = 0;
		score(keys + run * runBytes(TYPE, KEYS, GROUPED), of, row);
		weigh(first);
		if (first + 64 < to) {
			run = runOf(leader, first + 64);
			next = keys + run * runBytes(TYPE, KEYS, GROUPED);
		}
		add(of, next, row, first, first >= wholeFrom && first + 64 <= wholeTo);
	}
	store(row, split);
}

void main() {
	uint row = gl_WorkGroupID.z * ROWS, split = gl_WorkGroupID.y;
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
