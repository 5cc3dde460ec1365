#version 460
#extension GL_GOOGLE_include_directive : require
// One split of attention: the positions of a few blocks, for all query heads of a KV head. merge.comp joins splits.
//
// A workgroup owns (KV head, split, rows). LANES threads share a position, each FEATURES/LANES of its features in
// words of 16 bytes; GROUPS of them take positions in turn. A group keeps for each query head the largest score, the
// sum of weights and the weighted values; groups are joined in order at the end. The logarithms are of base 2.
// It does so for ROWS rows, one after the other: where they are of one sequence and its splits are of one block, that is
// read once.
// With FUSED the step has one row a sequence: queries are normalised and rotated here, and the split that ends at the row's own
// position does so with its key, stores key and value, and uses them as stored.
//
// Shared memory: (QUERIES + 2)·FEATURES·4 bytes, (QUERIES + 1)·64, and AT_ONCE·GROUPS·(FEATURES + 3)·4. Subgroups: LANES or more.
//
// variant: attend
#include "lib/buffers.glsl"
#include "lib/step.glsl"
#include "lib/rope.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 256;
layout(constant_id = 1) const uint LANES = 16;
layout(constant_id = 2) const uint FEATURES = 128; // of a head
layout(constant_id = 3) const uint QUERIES = 4;    // heads of a KV head
layout(constant_id = 4) const uint AT_ONCE = 1;    // query heads that are joined at once
layout(constant_id = 5) const uint FUSED = 0;
layout(constant_id = 6) const uint DIMS = 128;     // that rotate, if FUSED; 0: none
layout(constant_id = 7) const uint INTERLEAVED = 0;
layout(constant_id = 9) const uint ROWS = 1;   // more than one only if not FUSED
layout(constant_id = 8) const uint NORMED = 0; // if FUSED: each head of queries and keys is normalised first

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
	uint size;       // rows, of which count are there
};

const uint WORDS = FEATURES / (8 * LANES); // of 16 bytes, a lane's
const uint GROUPS = THREADS / LANES;
const uint EACH = 64 / GROUPS; // positions of a block, a group's
const float NOTHING = -1e30;

#include "lib/own.glsl"

shared vec4 query[QUERIES * FEATURES / 4];
shared vec4 joinedValues[AT_ONCE * GROUPS * FEATURES / 4];
shared float joinedScores[AT_ONCE * GROUPS];
shared float joinedSums[AT_ONCE * GROUPS];
shared float joinedWeights[AT_ONCE * GROUPS];

uint current;    // the row
uint loaded = 0xffffffffu; // where the block lies that was fetched last
const uint ASKED = (QUERIES * FEATURES + THREADS - 1) / THREADS;
float nextQuery[ROWS > 1 ? ASKED : 1]; // of the row that comes next
uvec4 nextKeys[EACH * WORDS]; // of the block that comes next, as loaded
uvec4 nextValues[EACH * WORDS];
float best[QUERIES];
float total[QUERIES];
vec4 sums[QUERIES * WORDS * 2];

// ask loads the queries of a row, if there is one.
void ask(uint row) {
	Floats from = Floats(x + 4ul * (row * xStride + gl_WorkGroupID.x * QUERIES * FEATURES));
	[[unroll]] for (uint n = 0; n < ASKED; n++) {
		uint i = n * THREADS + gl_LocalInvocationID.x;
		if (row < size && i < QUERIES * FEATURES) {
			nextQuery[ROWS > 1 ? n : 0] = from.v[i];
		}
	}
}

// prepare puts a row's queries where all threads see them.
void prepare(Row row, bool owner) {
	if (NORMED != 0) {
		sumSquares(x + 4ul * (current * xStride));
		barrier();
	}
	for (uint i = gl_LocalInvocationID.x; ROWS == 1 && i < QUERIES * FEATURES; i += THREADS) {
		query[i / 4][i % 4] = turnedQuery(current, i) * scale;
	}
	if (ROWS > 1) {
		[[unroll]] for (uint n = 0; n < ASKED; n++) {
			uint i = n * THREADS + gl_LocalInvocationID.x;
			if (i < QUERIES * FEATURES) {
				query[i / 4][i % 4] = nextQuery[ROWS > 1 ? n : 0] * scale;
			}
		}
		ask(current + 1);
	}
	if (FUSED != 0 && owner) {
		putOwn(row, current);
	}
	barrier();
}

// fetch loads what this group owns of the block that begins at position first.
void fetch(Row row, uint first) {
	uint group = gl_LocalInvocationID.x / LANES, lane = gl_LocalInvocationID.x % LANES;
	uint at = cacheAt(block(tables, row, first), gl_NumWorkGroups.x, gl_WorkGroupID.x, first, FEATURES) / 8;
	if (ROWS > 1 && at == loaded) {
		return;
	}
	loaded = at;
	[[unroll]] for (uint i = 0; i < EACH; i++) {
		[[unroll]] for (uint w = 0; w < WORDS; w++) {
			uint word = (i * GROUPS + group) * (FEATURES / 8) + lane * WORDS + w;
			nextKeys[i * WORDS + w] = keys.v[at + word];
			nextValues[i * WORDS + w] = values.v[at + word];
		}
	}
}

// attendBlock takes the positions of the block fetched, from first, that are between from and to.
void attendBlock(Row row, uint first, uint from, uint to, bool owner) {
	uint group = gl_LocalInvocationID.x / LANES, lane = gl_LocalInvocationID.x % LANES;
	uvec4 v[EACH * WORDS];
	float s[QUERIES * EACH];
	[[unroll]] for (uint i = 0; i < EACH; i++) {
		uint p = first + i * GROUPS + group;
		bool own = FUSED != 0 && owner && p == row.position, seen = p >= from && p < to;
		[[unroll]] for (uint q = 0; q < QUERIES; q++) {
			s[q * EACH + i] = 0.0;
		}
		[[unroll]] for (uint w = 0; w < WORDS; w++) {
			uint word = lane * WORDS + w;
			uvec4 k = own ? ownKey[word] : nextKeys[i * WORDS + w];
			v[i * WORDS + w] = own ? ownValue[word] : nextValues[i * WORDS + w];
			if (!seen) {
				v[i * WORDS + w] = uvec4(0); // the cache may hold anything there
			}
			vec4 a = low(k), b = high(k);
			[[unroll]] for (uint q = 0; q < QUERIES; q++) {
				uint at = (q * FEATURES + word * 8) / 4;
				precise vec4 part = a * query[at];
				part = fma(b, query[at + 1], part);
				precise float sum = s[q * EACH + i] + ((part.x + part.y) + (part.z + part.w));
				s[q * EACH + i] = sum;
			}
		}
	}
	if (first + 64 < to) {
		fetch(row, first + 64);
	}
	[[unroll]] for (uint n = 1; n < LANES; n *= 2) {
		[[unroll]] for (uint i = 0; i < QUERIES * EACH; i++) {
			precise float sum = s[i] + subgroupShuffleXor(s[i], n);
			s[i] = sum;
		}
	}
	[[unroll]] for (uint q = 0; q < QUERIES; q++) {
		float most = best[q];
		[[unroll]] for (uint i = 0; i < EACH; i++) {
			uint p = first + i * GROUPS + group;
			float score = cap > 0.0 ? cap * tanh(s[q * EACH + i] / cap) : s[q * EACH + i];
			s[q * EACH + i] = p >= from && p < to ? score : 2 * NOTHING;
			most = max(most, s[q * EACH + i]);
		}
		float keep = exp2(best[q] - most);
		best[q] = most;
		precise float t = total[q] * keep;
		[[unroll]] for (uint w = 0; w < WORDS * 2; w++) {
			sums[q * WORDS * 2 + w] *= keep;
		}
		[[unroll]] for (uint i = 0; i < EACH; i++) {
			s[q * EACH + i] = exp2(s[q * EACH + i] - most);
			t = t + s[q * EACH + i];
		}
		total[q] = t;
	}
	[[unroll]] for (uint i = 0; i < EACH * WORDS; i++) {
		vec4 a = low(v[i]), b = high(v[i]);
		[[unroll]] for (uint q = 0; q < QUERIES; q++) {
			uint at = (q * WORDS + i % WORDS) * 2;
			vec4 weight = vec4(s[q * EACH + i / WORDS]);
			precise vec4 c = sums[at], d = sums[at + 1];
			c = fma(weight, a, c);
			d = fma(weight, b, d);
			sums[at] = c;
			sums[at + 1] = d;
		}
	}
}

// join adds up what the groups have of a few query heads, from q on, and stores it.
void join(uint q, uint split) {
	uint group = gl_LocalInvocationID.x / LANES, lane = gl_LocalInvocationID.x % LANES;
	[[unroll]] for (uint j = 0; j < AT_ONCE; j++) {
		[[unroll]] for (uint w = 0; w < WORDS * 2; w++) {
			joinedValues[(j * GROUPS + group) * FEATURES / 4 + lane * WORDS * 2 + w] = sums[(q + j) * WORDS * 2 + w];
		}
		if (lane == 0) {
			joinedScores[j * GROUPS + group] = best[q + j];
			joinedSums[j * GROUPS + group] = total[q + j];
		}
	}
	barrier();
	uint heads = gl_NumWorkGroups.x * QUERIES, first = (current * heads + gl_WorkGroupID.x * QUERIES + q) * MAXSPLITS + split;
	for (uint o = gl_LocalInvocationID.x; o < AT_ONCE * GROUPS; o += THREADS) {
		float most = NOTHING;
		[[unroll]] for (uint g = 0; g < GROUPS; g++) {
			most = max(most, joinedScores[o / GROUPS * GROUPS + g]);
		}
		joinedWeights[o] = exp2(joinedScores[o] - most);
		if (o % GROUPS == 0) {
			parts.v[(first + o / GROUPS * MAXSPLITS) * (FEATURES + 4) + FEATURES] = most;
		}
	}
	barrier();
	for (uint o = gl_LocalInvocationID.x; o < AT_ONCE * FEATURES; o += THREADS) {
		uint j = o / FEATURES, d = o % FEATURES, at = (first + j * MAXSPLITS) * (FEATURES + 4);
		precise float value = 0, sum = 0;
		[[unroll]] for (uint g = 0; g < GROUPS; g++) {
			value = fma(joinedWeights[j * GROUPS + g], joinedValues[((j * GROUPS + g) * FEATURES + d) / 4][d % 4], value);
		}
		parts.v[at + d] = value;
		if (d == 0) {
			[[unroll]] for (uint g = 0; g < GROUPS; g++) {
				sum = fma(joinedWeights[j * GROUPS + g], joinedSums[j * GROUPS + g], sum);
			}
			parts.v[at + FEATURES + 1] = sum;
		}
	}
	barrier();
}

// attendRow computes a row's split.
void attendRow(uint split) {
	Row row = rows.v[current];
	uint length = splitLength(row.position), begin = split * length;
	if (begin > row.position) {
		if (ROWS > 1) {
			ask(current + 1);
		}
		return;
	}
	uint to = min(begin + length, row.position + 1);
	uint from = max(begin, firstSeen(row, window, chunked));
	bool owner = to == row.position + 1;
	if (from < to) {
		fetch(row, from / 64 * 64);
	}
	prepare(row, owner);
	[[unroll]] for (uint q = 0; q < QUERIES; q++) {
		best[q] = NOTHING;
		total[q] = 0.0;
		[[unroll]] for (uint w = 0; w < WORDS * 2; w++) {
			sums[q * WORDS * 2 + w] = vec4(0);
		}
	}
	for (uint first = from / 64 * 64; first < to; first += 64) {
		attendBlock(row, first, from, to, owner);
	}
	[[unroll]] for (uint q = 0; q < QUERIES; q += AT_ONCE) {
		join(q, split);
	}
}

void main() {
	uint here = uint64_t(count) != 0 ? min(size, count.v[0]) : size;
	if (ROWS > 1) {
		ask(gl_WorkGroupID.z * ROWS);
	}
	for (uint i = 0; i < ROWS; i++) {
		current = gl_WorkGroupID.z * ROWS + i;
		if (current >= here) {
			return;
		}
		attendRow(gl_WorkGroupID.y);
	}
}
