#version 460
#extension GL_GOOGLE_include_directive : require
// One split of attention for caches of halves, with the order of addition of attend_any.comp, which attend_rows.comp has
// as well: features one after the other, positions one after the other. merge.comp joins splits.
//
// A workgroup owns (KV head, split, row): all query heads of the KV head, so that keys and values are read once. Words
// of 16 bytes of a block are loaded by neighbouring threads while the block before is computed, and come by STAGED positions to
// shared memory. There a thread has a pair of a position and a query head for its score and weight, then two features
// of one or more query heads for all positions. Nothing is left to join but the splits, and no subgroup is needed.
// With FUSED the step has one row a sequence: queries are normalised and rotated here, and the split that ends at the
// row's own position does so with its key, stores key and value, and uses them as stored. The logarithms are of base 2.
//
// Shared memory: STAGED·(2·FEATURES + 16) bytes, QUERIES·(4·FEATURES + 564), and 4·FEATURES + 64·(QUERIES + 1).
//
// variant: attend_row
#include "lib/buffers.glsl"
#include "lib/step.glsl"
#include "lib/rope.glsl"
#include "lib/act.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 256;
layout(constant_id = 1) const uint FEATURES = 128; // of a head, a multiple of 8, at most twice the threads
layout(constant_id = 2) const uint QUERIES = 4;    // heads of a KV head
layout(constant_id = 3) const uint STAGED = 64;    // positions that shared memory has room for, a divisor of 64
layout(constant_id = 4) const uint FUSED = 0;
layout(constant_id = 5) const uint DIMS = 128;     // that rotate, if FUSED; 0: none
layout(constant_id = 6) const uint INTERLEAVED = 0;
layout(constant_id = 7) const uint NORMED = 0;     // if FUSED: each head of queries and keys is normalised first

layout(push_constant, scalar) uniform Push {
	uint64_t x;      // float32 rows: query heads, and if FUSED key heads and value heads
	Quads keys;      // the layer's, half precision
	Quads values;
	Floats parts;    // [row][head][MAXSPLITS][FEATURES + 4]: values, largest score, sum
	StepRows rows;
	Words tables;
	uint64_t angles;
	Words count;     // rows that are there; 0: all
	Floats queryGain; // of NORMED: by feature of a head; 0: ones
	Floats keyGain;
	uint xStride;    // in float32
	uint window;     // positions that are seen; 0: all
	float scale;     // of scores, times log2(e)
	float cap;       // scores s become cap·tanh(s/cap), cap times log2(e); 0: they stay
	float eps;       // of NORMED
	uint chunked;    // 1: the window is the row's own chunk of so many positions
};

#include "lib/own.glsl"

const float NOTHING = -1e30;
const uint WORDS = FEATURES / 8;                           // of 16 bytes, a position's
const uint LINE = WORDS + 1;                               // in shared memory, so that lines begin in different banks
const uint EACH = (64 * WORDS + THREADS - 1) / THREADS;    // words of a block, a thread's
const uint SCORES = (64 * QUERIES + THREADS - 1) / THREADS; // pairs of a position and a query head, a thread's
const uint TWOS = FEATURES / 2;                            // threads that share a query head's features
const uint TEAMS = THREADS / TWOS;                         // query heads that have such threads at once
const uint HEADS = (QUERIES + TEAMS - 1) / TEAMS;          // query heads, a thread's
const uint WEIGHTS = 17;                                   // fours of a query head's positions, and one to spare
const uint SLICE = 16;                                     // positions whose values are loaded at once

shared uvec4 staged[STAGED * LINE];
shared vec4 query[QUERIES * (FEATURES / 4 + 1)];
shared vec4 scores[QUERIES * WEIGHTS];
shared vec4 weights[QUERIES * WEIGHTS];
shared float keep[QUERIES];

uint thread = gl_LocalInvocationID.x;
uvec4 nextKeys[EACH]; // of the block that comes next, as loaded
uvec4 nextValues[EACH];
float score[SCORES];
float best[SCORES];
vec2 sums[HEADS];
float total[HEADS];

// fetch loads words of keys, or of values, of the block that begins at position first.
void fetch(Quads from, inout uvec4 next[EACH], Row row, uint first) {
	uint at = cacheAt(block(tables, row, first), gl_NumWorkGroups.x, gl_WorkGroupID.x, first, FEATURES) / 8;
	[[unroll]] for (uint i = 0; i < EACH; i++) {
		uint word = i * THREADS + thread;
		if (word < 64 * WORDS) {
			next[i] = from.v[at + word];
		}
	}
}

// stage puts words of the STAGED positions from number begin of a block where all threads see them; own is the number of the
// row's own position, if its key and value are here.
void stage(uvec4 next[EACH], uint begin, uint own, bool key) {
	[[unroll]] for (uint i = 0; i < EACH; i++) {
		uint word = i * THREADS + thread, p = word / WORDS;
		if (p >= begin && p < begin + STAGED) {
			uvec4 w = next[i];
			if (FUSED != 0 && p == own) {
				w = key ? ownKey[word % WORDS] : ownValue[word % WORDS];
			}
			staged[(p - begin) * LINE + word % WORDS] = w;
		}
	}
}

// multiply computes scores of the positions that are staged.
void multiply(uint begin) {
	[[unroll]] for (uint i = 0; i < SCORES; i++) {
		uint n = i * THREADS + thread, p = n / QUERIES, q = n % QUERIES;
		if (p < begin || p >= begin + STAGED) {
			continue;
		}
		float s = 0.0;
		[[unroll]] for (uint w = 0; w < WORDS; w++) {
			uvec4 k = staged[(p - begin) * LINE + w];
			uint at = q * (FEATURES / 4 + 1) + 2 * w;
			vec4 a = low(k), b = high(k), c = query[at], d = query[at + 1];
			[[unroll]] for (uint j = 0; j < 4; j++) {
				precise float t = fma(c[j], a[j], s);
				s = t;
			}
			[[unroll]] for (uint j = 0; j < 4; j++) {
				precise float t = fma(d[j], b[j], s);
				s = t;
			}
		}
		score[i] = s;
	}
}

// weigh turns the scores of a block into weights. A barrier must follow.
void weigh(uint first, uint from, uint to) {
	[[unroll]] for (uint i = 0; i < SCORES; i++) {
		uint n = i * THREADS + thread, p = n / QUERIES, q = n % QUERIES;
		precise float s = score[i] * scale;
		s = cap > 0.0 ? cap * hyperbolic(s / cap) : s;
		score[i] = first + p >= from && first + p < to ? s : 2.0 * NOTHING;
		if (n < 64 * QUERIES) {
			scores[q * WEIGHTS + p / 4][p % 4] = score[i];
		}
	}
	barrier();
	[[unroll]] for (uint i = 0; i < SCORES; i++) {
		uint n = i * THREADS + thread, p = n / QUERIES, q = n % QUERIES;
		if (n >= 64 * QUERIES) {
			continue;
		}
		vec4 all = scores[q * WEIGHTS];
		[[unroll]] for (uint j = 1; j < 16; j++) {
			all = max(all, scores[q * WEIGHTS + j]);
		}
		float most = max(best[i], max(max(all.x, all.y), max(all.z, all.w)));
		if (p == 0) {
			keep[q] = exp2(best[i] - most);
		}
		best[i] = most;
		weights[q * WEIGHTS + p / 4][p % 4] = first + p >= from && first + p < to ? exp2(score[i] - most) : 0.0;
	}
}

// add adds the weighted values that are staged, of positions that the row sees: others may be anything.
void add(uint begin, uint low, uint high) {
	uint team = thread / TWOS, two = thread % TWOS;
	if (team >= TEAMS) {
		return;
	}
	for (uint slice = max(begin, low / SLICE * SLICE); slice < min(begin + STAGED, high); slice += SLICE) {
		vec2 v[SLICE];
		[[unroll]] for (uint j = 0; j < SLICE; j++) {
			v[j] = unpackHalf2x16(staged[(slice - begin + j) * LINE + two / 4][two % 4]);
		}
		[[unroll]] for (uint i = 0; i < HEADS; i++) {
			uint q = min(i * TEAMS + team, QUERIES - 1);
			[[unroll]] for (uint j = 0; j < SLICE; j++) {
				float w = weights[q * WEIGHTS + slice / 4 + j / 4][j % 4];
				if (slice + j >= low && slice + j < high) {
					precise vec2 s = fma(vec2(w), v[j], sums[i]);
					precise float t = total[i] + w;
					sums[i] = s;
					total[i] = t;
				}
			}
		}
	}
}

// attendBlock takes the positions of the block fetched, from first, that are between from and to.
void attendBlock(Row row, uint first, uint from, uint to, uint own) {
	for (uint begin = 0; begin < 64; begin += STAGED) {
		barrier();
		stage(nextKeys, begin, own, true);
		barrier();
		multiply(begin);
	}
	bool more = first + 64 < to;
	if (more) {
		fetch(keys, nextKeys, row, first + 64);
	}
	weigh(first, from, to);
	for (uint begin = 0; begin < 64; begin += STAGED) {
		if (begin > 0) {
			barrier();
		}
		stage(nextValues, begin, own, false);
		barrier();
		if (begin == 0) {
			[[unroll]] for (uint i = 0; i < HEADS; i++) {
				float k = keep[min(i * TEAMS + thread / TWOS, QUERIES - 1)];
				precise vec2 s = sums[i] * k;
				precise float t = total[i] * k;
				sums[i] = s;
				total[i] = t;
			}
		}
		add(begin, from > first ? from - first : 0, min(to - first, 64));
	}
	if (more) {
		fetch(values, nextValues, row, first + 64);
	}
}

// store writes what the split has.
void store(uint r, uint split) {
	uint heads = gl_NumWorkGroups.x * QUERIES, head = r * heads + gl_WorkGroupID.x * QUERIES;
	uint team = thread / TWOS, two = thread % TWOS;
	[[unroll]] for (uint i = 0; i < HEADS; i++) {
		uint q = i * TEAMS + team, at = ((head + q) * MAXSPLITS + split) * (FEATURES + 4);
		if (team < TEAMS && q < QUERIES) {
			parts.v[at + 2 * two] = sums[i].x;
			parts.v[at + 2 * two + 1] = sums[i].y;
			if (two == 0) {
				parts.v[at + FEATURES + 1] = total[i];
			}
		}
	}
	if (thread < QUERIES) {
		parts.v[((head + thread) * MAXSPLITS + split) * (FEATURES + 4) + FEATURES] = best[0];
	}
}

void main() {
	uint r = gl_WorkGroupID.z, split = gl_WorkGroupID.y;
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
	bool owner = to == row.position + 1;
	uint first = from / 64 * 64;
	if (from < to) {
		fetch(keys, nextKeys, row, first);
		fetch(values, nextValues, row, first);
	}
	if (NORMED != 0) {
		sumSquares(x + 4ul * (r * xStride));
		barrier();
	}
	for (uint i = thread; i < QUERIES * FEATURES; i += THREADS) {
		uint at = i / FEATURES * (FEATURES / 4 + 1) + i % FEATURES / 4;
		query[at][i % 4] = turnedQuery(r, i);
	}
	if (FUSED != 0 && owner) {
		putOwn(row, r);
	}
	[[unroll]] for (uint i = 0; i < SCORES; i++) {
		best[i] = NOTHING;
	}
	[[unroll]] for (uint i = 0; i < HEADS; i++) {
		sums[i] = vec2(0);
		total[i] = 0.0;
	}
	for (; first < to; first += 64) {
		attendBlock(row, first, from, to, FUSED != 0 && owner ? row.position - first : 64);
	}
	store(r, split);
}
