// Splits of attention for caches of halves, by products of 16 × 8 × 16 halves whose sums are float32. merge.cu joins splits.
//
// A block owns (KV head, split, rows): pairs of a row and a query head, one after the other, by 64 positions at a time.
// TEAMS warps share DEEP times 16 pairs: each has a part of the positions for the scores, then of the features for the results; where
// it is one, weights stay in its registers. Scores are queries × keys, a chain of products over the features; results
// weights × values, a chain over the positions. So all that a pair has is added up in the same order, whatever pairs are
// beside it and however many warps share it: answers, one row at once, have the bits of prompts. Queries and weights are
// rounded to halves, as keys and values are; sums of weights are of the rounded ones, every fourth two positions in order,
// then these as a tree. Rows that lie in another sequence than those before, or whose splits have another length, are taken
// in a turn of their own: nothing of a sequence comes near another one's results. Where rows are alone in their sequences
// queries are normalised and rotated here, and the split that ends at the row's own position does so with its key, stores
// key and value, and uses them as stored. The logarithms are of base 2.
//
// With JOIN a block takes all splits of its rows, one after the other, and joins them as merge.cu does: for prompts, whose
// rows fill the card without splits. Its parts are one of each row. Blocks whose rows see most come first.
//
// Memory: a ring of keys and values, which come by asynchronous copies; queries; weights; the row's own key and value.
// Grid: KV heads × parts of their query heads, splits, groups of rows. Threads: 32·TEAMS for each DEEP times 16 pairs.
//
// variant: attend_16 -DFEATURES=16 -DTEAMS=1 -DDEEP=1
// variant: attend_32 -DFEATURES=32 -DTEAMS=1 -DDEEP=1
// variant: attend_64 -DFEATURES=64 -DTEAMS=1 -DDEEP=2
// variant: attend_64_few -DFEATURES=64 -DTEAMS=4 -DDEEP=1
// variant: attend_64_join -DFEATURES=64 -DTEAMS=1 -DDEEP=1 -DJOIN=1
// variant: attend_80_few -DFEATURES=80 -DTEAMS=4 -DDEEP=1
// variant: attend_96_few -DFEATURES=96 -DTEAMS=4 -DDEEP=1
// variant: attend_96_join -DFEATURES=96 -DTEAMS=1 -DDEEP=1 -DJOIN=1
// variant: attend_128 -DFEATURES=128 -DTEAMS=1 -DDEEP=2
// variant: attend_128_few -DFEATURES=128 -DTEAMS=4 -DDEEP=1
// variant: attend_128_join -DFEATURES=128 -DTEAMS=1 -DDEEP=1 -DJOIN=1
// variant: attend_256 -DFEATURES=256 -DTEAMS=2 -DDEEP=1
// variant: attend_256_few -DFEATURES=256 -DTEAMS=4 -DDEEP=1
// variant: attend_256_join -DFEATURES=256 -DTEAMS=2 -DDEEP=1 -DJOIN=1
#include "lib/own.cuh"
#include "lib/scores.cuh"

struct Args {
	uint64_t x;      // float32 rows: query heads, and if alone key heads and value heads
	uint64_t keys;   // the layer's, half precision
	uint64_t values;
	uint64_t parts;  // [row][head][mostSplits][FEATURES + 4]: values, largest score, sum
	uint64_t rows;
	uint64_t tables;
	uint64_t angles;
	uint64_t count;  // rows that are there; 0: all
	uint64_t queryGain; // of norms: by feature of a head; 0: ones
	uint64_t keyGain;
	uint xStride; // in float32
	uint window;  // positions that are seen; 0: all
	float scale;  // of scores, times log2(e)
	float cap;    // scores s become cap·tanh(s/cap), cap times log2(e); 0: they stay
	float eps;
	uint chunked; // 1: the window is the row's own chunk of so many positions
	uint size;    // rows, of which count are there
	uint kvHeads;
	uint queries; // heads of a KV head
	uint alone;
	uint norms;   // if alone: each head of queries and keys is normalised first
	uint dims;    // that rotate, if alone; 0: none
	uint interleaved;
	uint stages;  // of the ring: 1 to 3
};

// Work is what a block has to do, and where its memory lies.
struct Work {
	uint16_t *ring;    // [stage][keys, values][64][line]
	uint16_t *query;   // [pair][line]
	uint16_t *weights; // [pair][weightLine]
	uint16_t *own;     // a key, a value
	float *tops;       // [16 pairs][team][16]: the largest score
	float *squares;    // [head][16], then what heads are multiplied by
	uint pairs;        // that there is room for
	uint kv;           // head
	uint first, heads; // query heads of it
	uint each, row, here; // rows: a block's, its first one, all that are there
};

// Range is the positions of a turn's split.
struct Range {
	uint from, to;           // what any of its rows sees
	uint wholeFrom, wholeTo; // what all of them see
	uint own;    // the row's own position, which is not stored yet; all ones: there is none
	uint length; // of splits
	Row leader;
};

DEVICE Work workOf(const Args &a) {
	Work w;
	w.pairs = blockThreads() / (32 * TEAMS) * (16 * DEEP);
	w.heads = lesser(a.queries, w.pairs);
	uint parts = (a.queries + w.heads - 1) / w.heads;
	w.each = a.alone != 0 ? 1 : w.pairs / w.heads;
	w.kv = blockX() / parts;
	w.first = blockX() % parts * w.heads;
	w.heads = lesser(w.heads, a.queries - w.first);
	w.row = (joins ? (a.size + w.each - 1) / w.each - 1 - blockZ() : blockZ()) * w.each;
	w.here = rowsThere(a.count, a.size);
	w.ring = dynamicShared<uint16_t>();
	w.query = w.ring + a.stages * (2 * 64 * line);
	w.weights = w.query + w.pairs * line;
	w.own = w.weights + (TEAMS > 1 ? w.pairs * weightLine : 0);
	w.tops = reinterpret_cast<float *>(w.own + 2 * FEATURES);
	w.squares = w.tops + w.pairs * TEAMS;
	return w;
}

// stageOf is where the 64 positions from first on are put.
DEVICE uint16_t *stageOf(const Work &w, const Args &a, const Range &g, uint first) {
	return w.ring + (first - g.from / 64 * 64) / 64 % a.stages * (2 * 64 * line);
}

// fetch begins to load 64 positions, the row's own aside. What is not seen by anybody is zeros: the cache may hold
// anything there.
DEVICE void fetch(const Work &w, const Args &a, const Range &g, uint first) {
	if (first < g.to) {
		constexpr uint words = FEATURES / 8;
		uint16_t *stage = stageOf(w, a, g, first);
		uint block = blockOf(at<const uint>(a.tables), g.leader, first);
		uint64_t from = cacheAt(block, a.kvHeads, w.kv, 0, FEATURES);
		const uint16_t *keys = at<const uint16_t>(a.keys) + from, *values = at<const uint16_t>(a.values) + from;
		for (uint i = threadX(); i < 64 * words; i += blockThreads()) {
			uint p = i / words, d = i % words * 8;
			bool seen = first + p >= g.from && first + p < g.to;
			if (first + p != g.own) {
				copyAsync16If(stage + p * line + d, keys + p * FEATURES + d, seen);
				copyAsync16If(stage + (64 + p) * line + d, values + p * FEATURES + d, seen);
			}
		}
	}
	commit();
}

// putOwn puts the row's own key and value among the 64 positions that they belong to.
DEVICE void putOwn(const Work &w, const Args &a, const Range &g, uint first) {
	if (g.own < first || g.own >= first + 64) {
		return;
	}
	uint16_t *stage = stageOf(w, a, g, first);
	for (uint d = threadX(); d < FEATURES; d += blockThreads()) {
		stage[(g.own - first) * line + d] = w.own[d];
		stage[(64 + g.own - first) * line + d] = w.own[FEATURES + d];
	}
}

DEVICE const float *headAt(const Args &a, uint row, uint head) {
	return at<const float>(a.x) + uint64_t(row) * a.xStride + head * FEATURES;
}

// headOf is a query head of the block's, or the key head behind them, of its first row.
DEVICE Head headOf(const Work &w, const Args &a, uint row, uint i) {
	bool query = i < w.heads, norms = a.alone != 0 && a.norms != 0;
	uint head = query ? w.kv * a.queries + w.first + i : a.kvHeads * a.queries + w.kv;
	return {headAt(a, row, head), at<const float>(query ? a.queryGain : a.keyGain),
		norms ? w.squares[(w.heads + 1) * 16 + i] : 1.0f, norms};
}

// norm prepares what heads are multiplied by.
DEVICE void norm(const Work &w, const Args &a) {
	uint n = w.heads + 1;
	for (uint i = threadX(); i < n * 16; i += blockThreads()) {
		w.squares[i] = sixteenth(headOf(w, a, w.row, i / 16).x, FEATURES, i % 16);
	}
	sync();
	for (uint i = threadX(); i < n; i += blockThreads()) {
		w.squares[n * 16 + i] = headScale(w.squares + i * 16, FEATURES, a.eps);
	}
	sync();
}

// keep stores the key and the value of a row that is alone.
DEVICE void keep(const Work &w, const Args &a, const Turn &turn) {
	Row row = at<const Row>(a.rows)[w.row];
	uint64_t to = cacheAt(blockOf(at<const uint>(a.tables), row, row.position), a.kvHeads, w.kv, row.position, FEATURES);
	Head key = headOf(w, a, w.row, w.heads);
	const float *value = headAt(a, w.row, a.kvHeads * a.queries + a.kvHeads + w.kv);
	for (uint d = threadX(); d < FEATURES; d += blockThreads()) {
		uint16_t k = toHalf(turnedAt(key, turn, d)), v = toHalf(value[d]);
		w.own[d] = k;
		w.own[FEATURES + d] = v;
		if (w.first == 0) {
			at<uint16_t>(a.keys)[to + d] = k;
			at<uint16_t>(a.values)[to + d] = v;
		}
	}
}

// prepareFours is prepare for queries that are as they are multiplied, four values at a time: many loads are under way at
// once, as blocks of a prompt that is short have not much else to do.
DEVICE void prepareFours(const Work &w, const Args &a) {
	constexpr uint fours = FEATURES / 4, all = 16 * DEEP * fours, each = (all + 32 * TEAMS - 1) / (32 * TEAMS); // of a thread
#pragma unroll 8
	for (uint j = 0; j < each; j++) {
		uint i = threadX() + j * blockThreads(), pair = i / fours, d = i % fours * 4, row = w.row + pair / w.heads;
		float4 v = {0, 0, 0, 0};
		if (all % (32 * TEAMS) != 0 && pair >= w.pairs) {
			break;
		}
		if (pair < w.each * w.heads && row < w.here) {
			v = *reinterpret_cast<const float4 *>(headAt(a, row, w.kv * a.queries + w.first + pair % w.heads) + d);
		}
		*reinterpret_cast<uint2 *>(w.query + pair * line + d) = {toHalf(v.x * a.scale) | toHalf(v.y * a.scale) << 16,
			toHalf(v.z * a.scale) | toHalf(v.w * a.scale) << 16};
	}
}

// prepare puts the queries of all pairs where all threads see them; of no row they are zeros.
DEVICE void prepare(const Work &w, const Args &a, bool owner) {
	if (a.alone != 0 && a.norms != 0) {
		norm(w, a);
	}
	if (a.alone == 0 && (a.x | a.xStride * 4) % 16 == 0) {
		prepareFours(w, a);
	} else {
		for (uint i = threadX(); i < w.pairs * FEATURES; i += blockThreads()) {
			uint pair = i / FEATURES, d = i % FEATURES, row = w.row + pair / w.heads;
			float v = 0;
			if (pair < w.each * w.heads && row < w.here) {
				Turn turn = {at<const float>(a.angles) + uint64_t(row) * a.dims, a.alone != 0 ? a.dims : 0, a.interleaved};
				v = turnedAt(headOf(w, a, row, pair % w.heads), turn, d) * a.scale;
			}
			w.query[pair * line + d] = toHalf(v);
		}
	}
	if (owner) {
		keep(w, a, {at<const float>(a.angles) + uint64_t(w.row) * a.dims, a.dims, a.interleaved});
	}
	sync();
}

// take adds 64 positions, from first on, to a warp's state. plain: all pairs see all of them, and nothing is capped.
DEVICE void take(State (&m)[DEEP], const Work &w, const Args &a, const uint16_t *stage, uint first, bool plain) {
	uint warp = threadX() / 32, tile = warp / TEAMS * DEEP, team = warp % TEAMS, group = lane() / 4;
	Scores s[DEEP];
	float most[DEEP][2];
	uint p[DEEP][eighths][2];
	score(s, m, w.query + tile * 16 * line, stage + team * eighths * 8 * line);
#pragma unroll
	for (uint t = 0; t < DEEP; t++) {
		if (!plain) {
			limit(s[t], m[t], first + team * eighths * 8, a.cap);
		}
		largest(most[t], s[t]);
	}
	if (TEAMS > 1) {
		share(most, w.tops + tile * TEAMS * 16, team);
	}
	uint16_t *weights = w.weights + tile * 16 * weightLine;
#pragma unroll
	for (uint t = 0; t < DEEP; t++) {
		most[t][0] = maximum(m[t].pair[0].best, most[t][0]);
		most[t][1] = maximum(m[t].pair[1].best, most[t][1]);
		weigh(p[t], s[t], most[t]);
		lower(m[t], most[t]);
		for (uint j = 0; j < eighths && TEAMS > 1; j++) {
			uint16_t *to = weights + (t * 16 + group) * weightLine + (team * eighths + j) * 8 + lane() % 4 * 2;
			*reinterpret_cast<uint *>(to) = p[t][j][0];
			*reinterpret_cast<uint *>(to + 8 * weightLine) = p[t][j][1];
		}
	}
	if (TEAMS > 1) {
		sync();
	}
#pragma unroll
	for (uint k = 0; k < 4; k++) {
		uint part[DEEP][4];
#pragma unroll
		for (uint t = 0; t < DEEP; t++) {
			if (TEAMS > 1) {
				left4(part[t], weights + t * 16 * weightLine + k * 16, weightLine);
			} else {
				constexpr uint n = TEAMS > 1 ? 0 : 2; // a warp has them all
				part[t][0] = p[t][n * k][0], part[t][1] = p[t][n * k][1];
				part[t][2] = p[t][n * k + n / 2][0], part[t][3] = p[t][n * k + n / 2][1];
			}
		}
		add(m, part, stage + (64 + k * 16) * line, team);
	}
}

// joinAll joins a split with those before, and begins the next one.
DEVICE void joinAll(State &m) {
#pragma unroll
	for (uint i = 0; i < 2; i++) {
		Pair &p = m.pair[i];
		float total = p.total + shuffleXor(p.total, 1), before = p.most;
		total = total + shuffleXor(total, 2);
		p.most = greater(before, p.best);
		Factors f = factorsOf(before, p.best, p.most);
		p.all = joined(f, p.all, total);
		p.best = nothing;
		p.total = 0;
#pragma unroll
		for (uint d = 0; d < down && joins; d++) {
#pragma unroll
			for (uint n = 0; n < 2; n++) {
#pragma unroll
				for (uint e = 2 * i; e < 2 * i + 2; e++) {
					float &sum = m.joined[joins ? d : 0][n][e];
					sum = joined(f, sum, m.sums[d][n][e]);
					m.sums[d][n][e] = 0;
				}
			}
		}
	}
}

// store writes what a warp has of 16 pairs, if they are of rows from first to, but not including, last.
DEVICE void store(State &m, const Work &w, const Args &a, uint tile, uint first, uint last) {
	uint team = threadX() / 32 % TEAMS;
#pragma unroll
	for (uint i = 0; i < 2; i++) {
		float best = m.pair[i].best, total = m.pair[i].total + shuffleXor(m.pair[i].total, 1);
		total = total + shuffleXor(total, 2);
		if (joins) {
			best = m.pair[i].most, total = m.pair[i].all;
		}
		uint pair = tile * 16 + lane() / 4 + 8 * i, row = w.row + pair / w.heads;
		if (pair >= w.each * w.heads || row < first || row >= last) {
			continue;
		}
		uint64_t head = uint64_t(row) * a.kvHeads * a.queries + w.kv * a.queries + w.first + pair % w.heads;
		float *to = at<float>(a.parts) + (head * mostSplits + blockY()) * (FEATURES + 4);
#pragma unroll
		for (uint f = 0; f < down; f++) {
			if (steps % TEAMS == 0 || f * TEAMS + team < steps) {
#pragma unroll
				for (uint n = 0; n < 2; n++) {
					uint d = (f * TEAMS + team) * 16 + n * 8 + lane() % 4 * 2;
					const float *sums = joins ? m.joined[joins ? f : 0][n] : m.sums[f][n];
					*reinterpret_cast<float2 *>(to + d) = {sums[2 * i], sums[2 * i + 1]};
				}
			}
		}
		if (team == 0 && lane() % 4 == 0) {
			to[FEATURES] = best;
			to[FEATURES + 1] = total;
		}
	}
}

// endOf is the end of the positions that a block takes from start on.
DEVICE uint endOf(uint start, uint length) { return joins ? ~0u : start + length; }

// begin clears a warp's state of 16 pairs for rows from first to, but not including, last.
DEVICE void begin(State &m, const Work &w, const Args &a, uint tile, uint first, uint last, uint length) {
	uint start = blockY() * length;
#pragma unroll
	for (uint i = 0; i < 2; i++) {
		uint pair = tile * 16 + lane() / 4 + 8 * i, row = w.row + pair / w.heads;
		m.pair[i] = {1, 0, nothing, 0, nothing, 0};
		if (pair < w.each * w.heads && row >= first && row < last) {
			Row r = at<const Row>(a.rows)[row];
			m.pair[i].low = firstSeen(r, a.window, a.chunked);
			m.pair[i].high = lesser(endOf(start, length), r.position + 1);
		}
#pragma unroll
		for (uint f = 0; f < down; f++) {
#pragma unroll
			for (uint n = 0; n < 2; n++) {
				m.sums[f][n][2 * i] = m.sums[f][n][2 * i + 1] = 0;
				m.joined[joins ? f : 0][n][2 * i] = m.joined[joins ? f : 0][n][2 * i + 1] = 0;
			}
		}
	}
}

// waitFor waits until all but the last so many of a ring's stages are there, for this thread's part.
DEVICE void waitFor(uint stages) {
	if (stages >= 3) {
		waitGroups<1>();
	} else {
		waitGroups<0>();
	}
}

// go takes the positions of a turn, 64 at a time, while the next ones come.
DEVICE void go(State (&m)[DEEP], const Work &w, const Args &a, const Range &g) {
	for (uint first = g.from / 64 * 64; first < g.to; first += 64) {
		if (a.stages == 1) {
			sync();
			fetch(w, a, g, first);
		}
		waitFor(a.stages);
		putOwn(w, a, g, first);
		sync();
		if (a.stages > 1) {
			fetch(w, a, g, first + (a.stages - 1) * 64);
		}
		bool plain = a.cap <= 0 && first >= g.wholeFrom && first + 64 <= g.wholeTo;
		take(m, w, a, stageOf(w, a, g, first), first, plain);
		if (joins && ((first + 64) % g.length == 0 || first + 64 >= g.to)) {
#pragma unroll
			for (uint t = 0; t < DEEP; t++) {
				joinAll(m[t]);
			}
		}
	}
	waitGroups<0>();
	sync();
}

// rangeOf is the positions that rows from first to, but not including, last see of this split.
DEVICE Range rangeOf(const Args &a, uint first, uint last, uint length) {
	uint start = blockY() * length;
	Range g = {~0u, 0, 0, ~0u, ~0u, length, at<const Row>(a.rows)[first]};
	for (uint r = first; r < last; r++) {
		Row row = at<const Row>(a.rows)[r];
		uint low = greater(start, firstSeen(row, a.window, a.chunked)), high = lesser(endOf(start, length), row.position + 1);
		g.wholeFrom = greater(g.wholeFrom, low);
		g.wholeTo = lesser(g.wholeTo, high);
		if (start <= row.position) {
			g.from = lesser(g.from, low);
			g.to = greater(g.to, high);
		}
	}
	g.from = lesser(g.from, g.to);
	if (a.alone != 0 && g.to == g.leader.position + 1) {
		g.own = g.leader.position;
	}
	return g;
}

// takeTurn takes rows from first to, but not including, last, which are of one sequence and have splits of one length. The
// block's first turn loads the queries of all its rows.
DEVICE void takeTurn(State (&m)[DEEP], const Work &w, const Args &a, uint first, uint last, uint length, bool fresh) {
	Range g = rangeOf(a, first, last, length);
	for (uint i = 0; i + 1 < a.stages; i++) {
		fetch(w, a, g, g.from / 64 * 64 + i * 64);
	}
	uint tile = threadX() / 32 / TEAMS * DEEP;
	if (fresh) {
		prepare(w, a, g.own != ~0u);
	}
#pragma unroll
	for (uint t = 0; t < DEEP; t++) {
		for (uint k = 0; k < steps && holds && fresh; k++) {
			left4(m[t].query[holds ? k : 0], w.query + (tile + t) * 16 * line + k * 16, line);
		}
		begin(m[t], w, a, tile + t, first, last, length);
	}
	go(m, w, a, g);
#pragma unroll
	for (uint t = 0; t < DEEP; t++) {
		store(m[t], w, a, tile + t, first, last);
	}
}

KERNEL(attend, Args, 256) {
	Work w = workOf(a);
	uint end = lesser(w.row + w.each, w.here);
	State m[DEEP];
	bool fresh = true;
	for (uint first = w.row; first < end;) {
		Row row = at<const Row>(a.rows)[first];
		uint length = splitLength(row.position), last = first + 1;
		bool some = blockY() * length <= row.position;
		for (; last < end; last++) {
			Row next = at<const Row>(a.rows)[last];
			if (next.table != row.table || splitLength(next.position) != length) {
				break;
			}
			some = some || blockY() * length <= next.position;
		}
		if (some) {
			takeTurn(m, w, a, first, last, length, fresh);
			fresh = false;
		}
		first = last;
	}
}
