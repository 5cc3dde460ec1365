#version 460
#extension GL_GOOGLE_include_directive : require
// Splits of attention for caches of halves, by products of 16 × 16 squares of half precision whose sums are float32.
// merge.comp joins splits.
//
// A workgroup owns (KV head, split, rows): PAIRS pairs of a row and a query head, one after the other, by blocks of 64
// positions. Scores are keys × queries, results values × weights, both with pairs as columns: sums of weights are a product
// with ones. So all that a pair has is added up in the same order, whatever pairs are beside it, how many squares of
// them there are, and which subgroup has a square: answers, one row at once, have the bits of prompts. Queries and
// weights are rounded to halves, as keys and values are. Rows that lie in another sequence than those before, or whose
// splits have another length, are taken in a turn of their own: nothing of a sequence comes near another one's results.
// With FUSED the step has one row a sequence: queries are normalised and rotated here, and the split that ends at the row's own
// position does so with its key, stores key and value, and uses them as stored. The logarithms are of base 2.
//
// Shared memory: as attention_matrix.go says. Subgroups: 32 lanes where MATRIX.
//
// variant: attend_matrix -DMATRIX
// variant: attend_squares
#include "lib/buffers.glsl"
#include "lib/step.glsl"
#include "lib/rope.glsl"
#include "lib/act.glsl"
#if defined(MATRIX)
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 256;  // 128 if TILES is 1, or FEATURES no multiple of 32
layout(constant_id = 1) const uint FEATURES = 128; // of a head, a multiple of 16
layout(constant_id = 2) const uint QUERIES = 4;    // heads of a KV head, PAIRS at most
layout(constant_id = 3) const uint TILES = 4;      // squares of pairs: 1, 2 or 4
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
	uint xStride;    // in float32, a multiple of four
	uint window;     // positions that are seen; 0: all
	float scale;     // of scores, times log2(e)
	float cap;       // scores s become cap·tanh(s/cap), cap times log2(e); 0: they stay
	float eps;       // of NORMED
	uint chunked;    // 1: the window is the row's own chunk of so many positions
	uint size;       // rows, of which count are there
};

#include "lib/own.glsl"

const float NOTHING = -1e30;
const uint PAIRS = 16 * TILES;
const uint ROWS = FUSED != 0 ? 1 : PAIRS / QUERIES;
const uint TEAMS = THREADS / 32 / TILES;    // of 32 threads, that share a square of pairs
const uint ACROSS = 4 / TEAMS;              // squares of positions, a team's
const uint DOWN = (FEATURES / 16 + TEAMS - 1) / TEAMS; // squares of features, a team's
const bool WHOLE = FEATURES / 16 % TEAMS == 0;
const uint EACH = FEATURES * 8 / THREADS;   // words of 16 bytes of a block's keys, a thread's
const uint LOADS = (PAIRS * FEATURES / 4 + THREADS - 1) / THREADS; // of four features of queries, a thread's
const uint LINE = (FEATURES + 8) / 4;       // in shared memory, in fours: lines begin in different banks
const uint SCORES = PAIRS + 8;              // a position's
const uint WEIGHTS = 18;                    // a pair's, in fours
const uint SHARE = THREADS / PAIRS;         // threads that share a pair's weights
const uint OWN = 64 / SHARE;                // positions, one of these threads'
const uint OUT = 20;                        // from pair to pair of results that are stored

#if defined(MATRIX)
#define FOUR f16vec4
FOUR four(uvec2 v) { return f16vec4(unpackFloat2x16(v.x), unpackFloat2x16(v.y)); }
#define LEFT coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define RIGHT coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB>
#define SQUARE coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
#define ROWWISE gl_CooperativeMatrixLayoutRowMajor
#define COLUMNWISE gl_CooperativeMatrixLayoutColumnMajor
#define QUERY held // until keys come
#else
#define FOUR uvec2
FOUR four(uvec2 v) { return v; }
#define SQUARE float[8]
#define QUERY query
shared FOUR query[PAIRS * LINE];
#endif

shared FOUR held[64 * LINE]; // [position][feature] of keys, then of values
shared float scores[64 * SCORES]; // [position][pair]
shared FOUR weights[PAIRS * WEIGHTS]; // [pair][position]
shared float tops[THREADS]; // [share][pair]: the largest score
shared float best[PAIRS], keep[PAIRS];
shared uint lows[PAIRS], highs[PAIRS]; // which positions a pair sees, of this split
shared Row mine[ROWS]; // the workgroup's rows

uint thread = gl_LocalInvocationID.x, team = thread / 32, lane = thread % 32;
uint tile = team / TEAMS, part = team % TEAMS; // the team's square of pairs, and which of its teams this is
uvec4 nextKeys[EACH]; // as loaded
uvec4 nextValues[EACH];
SQUARE sums[DOWN];
SQUARE total; // of weights: all rows are the same
#if defined(MATRIX)
RIGHT queries[FEATURES / 16];
#else
// A square of which 32 threads have each row lane%16, every second column from lane/16.
float half1(uvec2 v, uint i) { return unpackHalf2x16(v[i / 2 % 2])[i % 2]; }
float heldAt(uint position, uint d) { return half1(held[position * LINE + d / 4], d); }
#endif

// uniformly is one of the workgroup's rows, of which the compiler knows that all threads have the same: else threads of a
// subgroup may be at different places when they multiply squares.
Row uniformly(uint i) {
#if defined(MATRIX)
	return Row(subgroupBroadcastFirst(mine[i].position), subgroupBroadcastFirst(mine[i].table));
#else
	return mine[i];
#endif
}

// clear sets a square to zero.
void clear(inout SQUARE s) {
#if defined(MATRIX)
	s = SQUARE(0.0);
#else
	[[unroll]] for (uint e = 0; e < 8; e++) {
		s[e] = 0.0;
	}
#endif
}

// ask loads words of keys, or of values, of the block that begins at position first.
void ask(Quads from, inout uvec4 next[EACH], Row row, uint first) {
	uint at = cacheAt(block(tables, row, first), gl_NumWorkGroups.x, gl_WorkGroupID.x, first, FEATURES) / 8;
	[[unroll]] for (uint i = 0; i < EACH; i++) {
		next[i] = from.v[at + i * THREADS + thread];
	}
}

// put puts them where all threads see them; the row's own key or value, at position own, as it was stored.
void put(uvec4 next[EACH], uint first, uint from, uint to, uint own, bool key) {
	[[unroll]] for (uint i = 0; i < EACH; i++) {
		uint word = i * THREADS + thread, p = word / (FEATURES / 8), at = p * LINE + word % (FEATURES / 8) * 2;
		uvec4 v = next[i];
		if (FUSED != 0 && first + p == own) {
			v = key ? ownKey[word % (FEATURES / 8)] : ownValue[word % (FEATURES / 8)];
		}
		if (!key && (first + p < from || first + p >= to)) {
			v = uvec4(0); // the cache may hold anything there
		}
		held[at] = four(v.xy);
		held[at + 1] = four(v.zw);
	}
}

// hold puts four features of a pair's query, number i of all, where all threads see them.
void hold(uint i, vec4 q) {
	q *= scale;
	QUERY[i / (FEATURES / 4) * LINE + i % (FEATURES / 4)] = four(uvec2(packHalf2x16(q.xy), packHalf2x16(q.zw)));
}

// prepare loads the queries of all pairs; of no row they are zeros.
void prepare(uint firstRow, uint here) {
	if (FUSED != 0) {
		for (uint i = thread; i < PAIRS * FEATURES / 4; i += THREADS) {
			vec4 q = vec4(0);
			if (i < QUERIES * FEATURES / 4) {
				[[unroll]] for (uint j = 0; j < 4; j++) {
					q[j] = turnedQuery(firstRow, i * 4 + j);
				}
			}
			hold(i, q);
		}
	} else {
		vec4 q[LOADS];
		[[unroll]] for (uint j = 0; j < LOADS; j++) { // all of them before the first is used
			uint i = j * THREADS + thread, pair = i / (FEATURES / 4), d = i % (FEATURES / 4);
			uint row = firstRow + pair / QUERIES, head = gl_WorkGroupID.x * QUERIES + pair % QUERIES;
			q[j] = vec4(0);
			if (pair < ROWS * QUERIES && row < here) {
				q[j] = Vectors(x).v[(row * xStride + head * FEATURES) / 4 + d];
			}
		}
		[[unroll]] for (uint j = 0; j < LOADS; j++) {
			if (j * THREADS + thread < PAIRS * FEATURES / 4) {
				hold(j * THREADS + thread, q[j]);
			}
		}
	}
	barrier();
#if defined(MATRIX)
	[[unroll]] for (uint k = 0; k < FEATURES / 16; k++) {
		coopMatLoad(queries[k], QUERY, tile * 16 * LINE + k * 4, LINE, COLUMNWISE);
	}
	barrier();
#endif
}

// score multiplies keys by queries.
void score() {
	[[unroll]] for (uint i = 0; i < ACROSS; i++) {
		uint row = (part * ACROSS + i) * 16;
		SQUARE s;
		clear(s);
#if defined(MATRIX)
		[[unroll]] for (uint k = 0; k < FEATURES / 16; k++) {
			LEFT key;
			coopMatLoad(key, held, row * LINE + k * 4, LINE, ROWWISE);
			s = coopMatMulAdd(key, queries[k], s);
		}
		coopMatStore(s, scores, row * SCORES + tile * 16, SCORES, ROWWISE);
#else
		[[unroll]] for (uint e = 0; e < 8; e++) {
			uint pair = tile * 16 + lane / 16 + 2 * e;
			for (uint d = 0; d < FEATURES; d++) {
				precise float sum = fma(heldAt(row + lane % 16, d), half1(query[pair * LINE + d / 4], d), s[e]);
				s[e] = sum;
			}
			scores[(row + lane % 16) * SCORES + pair] = s[e];
		}
#endif
	}
}

// weigh makes weights of scores, and of the largest that pairs had before what is left of their sums.
void weigh(uint first) {
	uint pair = thread % PAIRS, from = thread / PAIRS * OWN;
	float s[OWN], most = 2 * NOTHING;
	[[unroll]] for (uint i = 0; i < OWN; i++) {
		float v = scores[(from + i) * SCORES + pair];
		v = cap > 0.0 ? cap * tanh(v / cap) : v;
		uint p = first + from + i;
		s[i] = p >= lows[pair] && p < highs[pair] ? v : 2 * NOTHING;
		most = max(most, s[i]);
	}
	tops[thread] = most;
	barrier();
	float before = best[pair];
	most = before;
	[[unroll]] for (uint i = 0; i < SHARE; i++) {
		most = max(most, tops[i * PAIRS + pair]);
	}
	[[unroll]] for (uint i = 0; i < OWN; i += 4) {
		uvec2 v = uvec2(packHalf2x16(vec2(exp2(s[i] - most), exp2(s[i + 1] - most))),
			packHalf2x16(vec2(exp2(s[i + 2] - most), exp2(s[i + 3] - most))));
		weights[pair * WEIGHTS + (from + i) / 4] = four(v);
	}
	if (thread < PAIRS) {
		keep[pair] = exp2(before - most);
	}
	barrier();
	if (thread < PAIRS) {
		best[pair] = most;
	}
}

// add multiplies values by weights, and adds that to what is kept of the sums.
void add() {
#if defined(MATRIX)
	SQUARE kept;
	coopMatLoad(kept, keep, tile * 16, 0, ROWWISE);
	RIGHT weight[4];
	total *= kept;
	[[unroll]] for (uint k = 0; k < 4; k++) {
		coopMatLoad(weight[k], weights, tile * 16 * WEIGHTS + k * 4, WEIGHTS, COLUMNWISE);
		total = coopMatMulAdd(LEFT(float16_t(1.0)), weight[k], total);
	}
	[[unroll]] for (uint f = 0; f < DOWN; f++) {
		uint d = (part * DOWN + f) * 16;
		sums[f] *= kept;
		[[unroll]] for (uint k = 0; k < 4 && (WHOLE || d < FEATURES); k++) {
			LEFT value;
			coopMatLoad(value, held, k * 16 * LINE + d / 4, LINE, COLUMNWISE);
			sums[f] = coopMatMulAdd(value, weight[k], sums[f]);
		}
	}
#else
	[[unroll]] for (uint e = 0; e < 8; e++) {
		uint pair = tile * 16 + lane / 16 + 2 * e;
		precise float t = total[e] * keep[pair];
		[[unroll]] for (uint f = 0; f < DOWN; f++) {
			sums[f][e] *= keep[pair];
		}
		for (uint k = 0; k < 64; k++) {
			float w = half1(weights[pair * WEIGHTS + k / 4], k);
			t = t + w;
			[[unroll]] for (uint f = 0; f < DOWN; f++) {
				uint d = (part * DOWN + f) * 16 + lane % 16;
				if (d < FEATURES) {
					precise float sum = fma(heldAt(k, d), w, sums[f][e]);
					sums[f][e] = sum;
				}
			}
		}
		total[e] = t;
	}
#endif
}

// apart keeps a team's writes to scores apart from its reads.
void apart() {
#if defined(MATRIX)
	subgroupBarrier();
#else
	barrier();
#endif
}

// spread writes a square to the team's part of scores: pair by pair.
void spread(SQUARE s) {
#if defined(MATRIX)
	coopMatStore(s, scores, team * 16 * OUT, OUT, COLUMNWISE);
#else
	[[unroll]] for (uint e = 0; e < 8; e++) {
		scores[team * 16 * OUT + (lane / 16 + 2 * e) * OUT + lane % 16] = s[e];
	}
#endif
}

// partAt is where a pair's part begins.
uint partAt(uint firstRow, uint pair) {
	uint heads = gl_NumWorkGroups.x * QUERIES, head = gl_WorkGroupID.x * QUERIES + pair % QUERIES;
	return (((firstRow + pair / QUERIES) * heads + head) * MAXSPLITS + gl_WorkGroupID.y) * (FEATURES + 4);
}

// store writes the sums of the pairs of a turn, which are from pair first to, but not including, last.
void store(uint firstRow, uint first, uint last) {
	[[unroll]] for (uint f = 0; f < DOWN; f++) {
		uint d = (part * DOWN + f) * 16;
		spread(sums[f]);
		apart();
		[[unroll]] for (uint i = lane; i < 64; i += 32) {
			uint pair = tile * 16 + i / 4, at = (team * 16 + i / 4) * OUT + i % 4 * 4;
			if (pair >= first && pair < last && d < FEATURES) {
				Vectors(uint64_t(parts)).v[(partAt(firstRow, pair) + d) / 4 + i % 4] =
					vec4(scores[at], scores[at + 1], scores[at + 2], scores[at + 3]);
			}
		}
		apart();
	}
	spread(total);
	apart();
	uint pair = tile * 16 + lane % 16;
	if (part == 0 && lane < 16 && pair >= first && pair < last) {
		uint at = partAt(firstRow, pair) + FEATURES;
		parts.v[at] = best[pair];
		parts.v[at + 1] = scores[(team * 16 + lane) * OUT];
	}
	barrier();
}

// attend takes a turn: rows from first to, but not including, last, of one sequence and with splits of one length; some of
// them have this split. The first turn loads the queries of all.
void attend(uint firstRow, uint first, uint last, uint length, bool fresh, uint here) {
	uint begin = gl_WorkGroupID.y * length, from = 0xffffffffu, to = 0;
	for (uint r = first; r < last; r++) {
		Row row = uniformly(r - firstRow);
		if (begin <= row.position) {
			from = min(from, max(begin, firstSeen(row, window, chunked)));
			to = max(to, min(begin + length, row.position + 1));
		}
	}
	Row leader = uniformly(first - firstRow);
	uint own = FUSED != 0 && to == leader.position + 1 ? leader.position : 0xffffffffu;
	if (from < to) {
		ask(keys, nextKeys, leader, from / 64 * 64);
		ask(values, nextValues, leader, from / 64 * 64);
	}
	if (fresh) {
		prepare(firstRow, here);
	}
	if (thread < PAIRS) {
		uint r = firstRow + thread / QUERIES;
		bool takes = thread < ROWS * QUERIES && r >= first && r < last;
		Row row = mine[takes ? r - firstRow : first - firstRow];
		lows[thread] = takes ? firstSeen(row, window, chunked) : 1;
		highs[thread] = takes ? min(begin + length, row.position + 1) : 0;
		best[thread] = NOTHING;
	}
	if (FUSED != 0 && own != 0xffffffffu) {
		putOwn(leader, first);
	}
	[[unroll]] for (uint f = 0; f < DOWN; f++) {
		clear(sums[f]);
	}
	clear(total);
	for (uint at = from / 64 * 64; at < to; at += 64) {
		barrier();
		put(nextKeys, at, from, to, own, true);
		if (TILES > 1 && at > from) {
			ask(values, nextValues, leader, at);
		}
		barrier();
		score();
		barrier();
		put(nextValues, at, from, to, own, false);
		if (at + 64 < to) {
			ask(keys, nextKeys, leader, at + 64);
			if (TILES == 1) {
				ask(values, nextValues, leader, at + 64);
			}
		}
		weigh(at);
		add();
	}
	barrier();
	// Pairs of rows whose last split is an earlier one have no part here, or one that nobody reads.
	store(firstRow, (first - firstRow) * QUERIES, (last - firstRow) * QUERIES);
}

void main() {
	uint here = uint64_t(count) != 0 ? min(size, count.v[0]) : size, firstRow = gl_WorkGroupID.z * ROWS;
	if (firstRow >= here) {
		return;
	}
	uint end = min(firstRow + ROWS, here);
	if (thread < end - firstRow) {
		mine[thread] = rows.v[firstRow + thread];
	}
	barrier();
	bool fresh = true;
	for (uint first = firstRow; first < end;) {
		Row row = uniformly(first - firstRow);
		uint length = splitLength(row.position), last = first + 1;
		bool some = gl_WorkGroupID.y * length <= row.position;
		for (; last < end; last++) {
			Row next = uniformly(last - firstRow);
			if (next.table != row.table || splitLength(next.position) != length) {
				break;
			}
			some = some || gl_WorkGroupID.y * length <= next.position;
		}
		if (some) {
			if (fresh && NORMED != 0) {
				sumSquares(x + 4ul * (first * xStride));
				barrier();
			}
			attend(firstRow, first, last, length, fresh, here);
			fresh = false;
		}
		first = last;
	}
}
