// Splits of attention for many rows at once, with the bits of attend_any.cu: features one after the other, positions one
// after the other. merge_any.cu joins splits.
//
// A block owns (KV head, split, rows): 64 pairs of a row and a query head, by 64 positions at a time. A thread has 4 × 4
// scores, then 4 pairs × 4·WIDE features of the results, all in registers; keys come in slices of 16 features, values in
// slices of 16 positions, converted to float32 once for all pairs. Each slice is loaded while the one before is multiplied.
// Rows that lie in other sequences, or whose splits have another length, are taken in a turn of their own. The logarithms
// are of base 2.
//
// Memory: (max(16·64·WIDE, 2176) + 64·68 + 6·64)·4 bytes. Grid: KV heads, splits, groups of rows.
//
// variant: attend_rows_1 -DWIDE=1
// variant: attend_rows_2 -DWIDE=2
// variant: attend_rows_4 -DWIDE=4
// variant: attend_rows_8 -DWIDE=8
#include "lib/act.cuh"
#include "lib/cache.cuh"

constexpr float nothing = -1e30f;
constexpr uint grouped = 32;       // features of a key with one scale: two slices
constexpr uint line = 68;          // pairs in a line of shared memory, so that lines begin in different banks
constexpr uint slice = 16;         // features of keys, positions of values
constexpr uint values = 64 * WIDE; // features of a value
constexpr uint keysAt = slice * line; // where keys begin in a slice: [feature][pair], then [feature][position]

struct Args {
	uint64_t x;      // rows of query heads, float32
	uint64_t keys;   // the layer's
	uint64_t values;
	uint64_t parts;  // [row][head][mostSplits][values + 4]: values, largest score, sum
	uint64_t rows;
	uint64_t tables;
	uint64_t count;  // rows that are there; 0: all
	uint xStride;    // in float32, a multiple of four
	uint window;     // positions that are seen; 0: all
	float scale;     // of scores, times log2(e)
	float cap;       // scores s become cap·tanh(s/cap), cap times log2(e); 0: they stay
	uint chunked;    // 1: the window is the row's own chunk of so many positions
	uint type;       // of the cache
	uint features;   // of a key, whole groups
	uint queries;    // heads of a KV head, a divisor of 64
	uint size;       // rows, of which count are there
	uint pad;
};

// Memory is the block's.
struct Memory {
	float *slices;  // of keys and queries; or [position][feature] of values
	float *weights; // [position][pair]; before, [sixteenth of a pair's scores][pair]: the largest
	float *factors; // of a slice of keys
	float *best, *total, *keep;
	uint *lows, *highs; // which positions a pair sees, of this split
};

// Thread is what a thread has.
struct Thread {
	float scores[4][4];     // [pair][position]
	float sums[4][WIDE][4]; // [pair]
	uint4 held[WIDE > 2 ? WIDE : 2]; // of the slice that comes next, as loaded
	float factors[WIDE];    // of signed bytes
};

// Turn is what a turn has: rows of a sequence, with splits of one length.
struct Turn {
	Row leader;
	uint row, from, to, wholeFrom, wholeTo;
};

DEVICE float4 four(const float *p) { return *reinterpret_cast<const float4 *>(p); }

// bitsOf is four features of a run of the cache, the first of them a multiple of four.
DEVICE uint4 bitsOf(uint type, uint64_t run, uint n) {
	if (type == kvF32) {
		return at<const uint4>(run)[n / 4];
	}
	if (type == kvF16) {
		uint2 v = at<const uint2>(run)[n / 4];
		return {v.x, v.y, 0, 0};
	}
	return {at<const uint>(run)[n / 4], 0, 0, 0};
}

// opened is what bits say, without scales.
DEVICE float4 opened(uint type, uint4 w) {
	if (type == kvF32) {
		return {bitsFloat(w.x), bitsFloat(w.y), bitsFloat(w.z), bitsFloat(w.w)};
	}
	if (type == kvF16) {
		return {fromHalf(w.x & 0xffffu), fromHalf(w.x >> 16), fromHalf(w.y & 0xffffu), fromHalf(w.y >> 16)};
	}
	return {static_cast<float>(static_cast<int8_t>(w.x)), static_cast<float>(static_cast<int8_t>(w.x >> 8)),
		static_cast<float>(static_cast<int8_t>(w.x >> 16)), static_cast<float>(static_cast<int8_t>(w.x >> 24))};
}

// askKeys loads this thread's part of a slice of keys of a run, and of queries: four features of a position, and of a pair.
DEVICE void askKeys(Thread &t, const Args &a, uint64_t run, uint row, uint from) {
	uint m = threadX() / 4, d = from + threadX() % 4 * 4, r = lesser(row + m / a.queries, a.size - 1);
	uint head = blockX() * a.queries + m % a.queries;
	t.held[0] = at<const uint4>(a.x)[(uint64_t(r) * a.xStride + head * a.features + d) / 4];
	t.held[1] = bitsOf(a.type, run, m * a.features + d);
	if (a.type == kvQ8 && threadX() < 64) {
		t.factors[0] = at<const float>(run + 64ul * a.features)[threadX() * (a.features / grouped) + from / grouped];
	}
}

// putKeys puts that where all threads see it.
DEVICE void putKeys(const Memory &w, const Thread &t, uint type) {
	uint to = threadX() % 4 * 4 * line + threadX() / 4;
	float4 q = opened(kvF32, t.held[0]), k = opened(type, t.held[1]);
	w.slices[to] = q.x, w.slices[to + line] = q.y, w.slices[to + 2 * line] = q.z, w.slices[to + 3 * line] = q.w;
	to += keysAt;
	w.slices[to] = k.x, w.slices[to + line] = k.y, w.slices[to + 2 * line] = k.z, w.slices[to + 3 * line] = k.w;
	if (type == kvQ8 && threadX() < 64) {
		w.factors[threadX()] = t.factors[0];
	}
}

// askValues is askKeys of values, from a position of the run on.
DEVICE void askValues(Thread &t, const Args &a, uint64_t run, uint from) {
#pragma unroll
	for (uint n = 0; n < WIDE; n++) {
		uint i = n * 256 + threadX();
		t.held[n] = bitsOf(a.type, run, from * values + 4 * i);
		if (a.type == kvQ8) {
			t.factors[n] = at<const float>(run + 64ul * values)[from + i / (values / 4)];
		}
	}
}

DEVICE void putValues(const Memory &w, const Thread &t, uint type) {
#pragma unroll
	for (uint n = 0; n < WIDE; n++) {
		float4 v = opened(type, t.held[n]);
		if (type == kvQ8) {
			v = {v.x * t.factors[n], v.y * t.factors[n], v.z * t.factors[n], v.w * t.factors[n]};
		}
		*reinterpret_cast<float4 *>(w.slices + 4 * (n * 256 + threadX())) = v;
	}
}

// multiply adds a slice of features to scores. A barrier must have followed the slice.
DEVICE void multiply(const Memory &w, float (&s)[4][4]) {
	const float *pairs = w.slices + threadX() / 16 * 4, *positions = w.slices + keysAt + threadX() % 16 * 4;
#pragma unroll
	for (uint d = 0; d < slice; d++) {
		float4 q = four(pairs + d * line), k = four(positions + d * line);
		float of[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
		for (uint i = 0; i < 4; i++) {
			s[i][0] = fma(of[i], k.x, s[i][0]);
			s[i][1] = fma(of[i], k.y, s[i][1]);
			s[i][2] = fma(of[i], k.z, s[i][2]);
			s[i][3] = fma(of[i], k.w, s[i][3]);
		}
	}
}

// score sets scores to products of queries with the keys of a run, whose first slice was asked for, and asks for values.
DEVICE void score(Thread &t, const Memory &w, const Args &a, uint64_t keysRun, uint64_t valuesRun, uint row) {
	float part[4][4]; // the products of features with one scale
#pragma unroll
	for (uint i = 0; i < 16; i++) {
		t.scores[i / 4][i % 4] = part[i / 4][i % 4] = 0;
	}
	for (uint from = 0; from < a.features; from += slice) {
		sync();
		putKeys(w, t, a.type);
		sync();
		if (from + slice < a.features) {
			askKeys(t, a, keysRun, row, from + slice);
		} else {
			askValues(t, a, valuesRun, 0);
		}
		if (a.type != kvQ8) {
			multiply(w, t.scores);
			continue;
		}
		multiply(w, part);
		if (from % grouped != 0) {
			const float *factors = w.factors + threadX() % 16 * 4;
#pragma unroll
			for (uint i = 0; i < 16; i++) {
				t.scores[i / 4][i % 4] = fma(part[i / 4][i % 4], factors[i % 4], t.scores[i / 4][i % 4]);
				part[i / 4][i % 4] = 0;
			}
		}
	}
}

// weigh turns scores into weights.
DEVICE void weigh(Thread &t, const Memory &w, const Args &a, uint first) {
	uint pair = threadX() / 16 * 4, position = threadX() % 16 * 4;
#pragma unroll
	for (uint i = 0; i < 4; i++) {
		float most = 2 * nothing;
#pragma unroll
		for (uint j = 0; j < 4; j++) {
			uint p = first + position + j;
			float s = t.scores[i][j] * a.scale;
			s = a.cap > 0 ? a.cap * hyperbolic(s / a.cap) : s;
			t.scores[i][j] = p >= w.lows[pair + i] && p < w.highs[pair + i] ? s : 2 * nothing;
			most = greater(most, t.scores[i][j]);
		}
		w.weights[threadX() % 16 * line + pair + i] = most;
	}
	sync();
	if (threadX() < 64) {
		float most = w.best[threadX()];
		for (uint i = 0; i < 16; i++) {
			most = greater(most, w.weights[i * line + threadX()]);
		}
		w.keep[threadX()] = exp2(w.best[threadX()] - most);
		w.best[threadX()] = most;
	}
	sync();
#pragma unroll
	for (uint j = 0; j < 4; j++) {
#pragma unroll
		for (uint i = 0; i < 4; i++) {
			uint p = first + position + j;
			bool seen = p >= w.lows[pair + i] && p < w.highs[pair + i];
			w.weights[(position + j) * line + pair + i] = seen ? exp2(t.scores[i][j] - w.best[pair + i]) : 0.0f;
		}
	}
	sync();
	if (threadX() < 64) {
		float total = w.total[threadX()] * w.keep[threadX()];
		uint low = w.lows[threadX()], high = w.highs[threadX()];
		for (uint i = low > first ? low - first : 0; i < 64 && first + i < high; i++) {
			total = total + w.weights[i * line + threadX()];
		}
		w.total[threadX()] = total;
	}
}

// add adds weighted values of a run, whose first slice was asked for, and asks for the next run's keys, if there is one.
// What a pair does not see is not added, not even as nothing: it may be infinite.
DEVICE void add(Thread &t, const Memory &w, const Args &a, uint64_t run, uint64_t next, const Turn &turn, uint first) {
	uint pair = threadX() / 16 * 4, part = threadX() % 16 * 4;
	bool whole = first >= turn.wholeFrom && first + 64 <= turn.wholeTo;
#pragma unroll
	for (uint i = 0; i < 4 * WIDE * 4; i++) {
		float &s = t.sums[i / (4 * WIDE)][i / 4 % WIDE][i % 4];
		s = s * w.keep[pair + i / (4 * WIDE)];
	}
	for (uint from = 0; from < 64; from += slice) {
		sync();
		putValues(w, t, a.type);
		sync();
		if (from + slice < 64) {
			askValues(t, a, run, from + slice);
		} else if (next != 0) {
			askKeys(t, a, next, turn.row, 0);
		}
#pragma unroll
		for (uint i = 0; i < slice; i++) {
			float4 weights = four(w.weights + (from + i) * line + pair);
			float of[4] = {weights.x, weights.y, weights.z, weights.w};
			uint p = first + from + i;
#pragma unroll
			for (uint j = 0; j < 4; j++) {
				if (whole || (p >= w.lows[pair + j] && p < w.highs[pair + j])) {
#pragma unroll
					for (uint n = 0; n < WIDE; n++) {
						float4 v = four(w.slices + i * values + n * 64 + part);
						float(&s)[4] = t.sums[j][n];
						s[0] = fma(of[j], v.x, s[0]), s[1] = fma(of[j], v.y, s[1]);
						s[2] = fma(of[j], v.z, s[2]), s[3] = fma(of[j], v.w, s[3]);
					}
				}
			}
		}
	}
}

// store writes the parts of the pairs of a turn.
DEVICE void store(const Thread &t, const Memory &w, const Args &a, uint row) {
	uint heads = gridX() * a.queries;
#pragma unroll
	for (uint i = 0; i < 4; i++) {
		uint m = threadX() / 16 * 4 + i;
		if (w.highs[m] == 0) {
			continue;
		}
		uint64_t head = uint64_t(row + m / a.queries) * heads + blockX() * a.queries + m % a.queries;
		float *to = at<float>(a.parts) + (head * mostSplits + blockY()) * (values + 4);
#pragma unroll
		for (uint n = 0; n < WIDE; n++) {
			*reinterpret_cast<float4 *>(to + n * 64 + threadX() % 16 * 4) = {t.sums[i][n][0], t.sums[i][n][1], t.sums[i][n][2],
				t.sums[i][n][3]};
		}
		if (threadX() % 16 == 0) {
			to[values] = w.best[m];
			to[values + 1] = w.total[m];
		}
	}
}

// take computes a turn.
DEVICE void take(Thread &t, const Memory &w, const Args &a, const Turn &turn) {
	uint64_t keyBytes = runBytes(a.type, a.features, grouped), valueBytes = runBytes(a.type, values, values), run = 0;
	const uint *tables = at<const uint>(a.tables);
#pragma unroll
	for (uint i = 0; i < 16 * WIDE; i++) {
		t.sums[i / (4 * WIDE)][i / 4 % WIDE][i % 4] = 0;
	}
	if (turn.from < turn.to) {
		run = uint64_t(blockOf(tables, turn.leader, turn.from)) * gridX() + blockX();
		askKeys(t, a, a.keys + run * keyBytes, turn.row, 0);
	}
	for (uint first = turn.from / 64 * 64; first < turn.to; first += 64) {
		uint64_t of = a.values + run * valueBytes, next = 0;
		score(t, w, a, a.keys + run * keyBytes, of, turn.row);
		weigh(t, w, a, first);
		if (first + 64 < turn.to) {
			run = uint64_t(blockOf(tables, turn.leader, first + 64)) * gridX() + blockX();
			next = a.keys + run * keyBytes;
		}
		add(t, w, a, of, next, turn, first);
	}
	store(t, w, a, turn.row);
}

// begin finds what the rows of a turn see, and says so to all.
DEVICE Turn begin(const Memory &w, const Args &a, Row leader, uint row, uint here) {
	uint length = splitLength(leader.position), start = blockY() * length;
	Turn turn = {leader, row, ~0u, 0, 0, ~0u};
	for (uint i = 0; i < 64 / a.queries; i++) {
		Row r = at<const Row>(a.rows)[lesser(row + i, here - 1)];
		uint low = 0, high = 0;
		bool mine = row + i < here && r.table == leader.table && splitLength(r.position) == length;
		if (mine && start <= r.position) {
			high = lesser(start + length, r.position + 1);
			low = greater(start, firstSeen(r, a.window, a.chunked));
			if (low < high) {
				turn.from = lesser(turn.from, low);
				turn.to = greater(turn.to, high);
			}
			turn.wholeFrom = greater(turn.wholeFrom, low);
			turn.wholeTo = lesser(turn.wholeTo, high);
		}
		if (threadX() < a.queries) {
			uint m = i * a.queries + threadX();
			w.lows[m] = low;
			w.highs[m] = high;
			w.best[m] = nothing;
			w.total[m] = 0;
		}
	}
	turn.from = lesser(turn.from, turn.to);
	return turn;
}

KERNEL(attendRows, Args, 256) {
	Memory w;
	w.slices = dynamicShared<float>();
	w.weights = w.slices + greater(slice * values, 2 * keysAt);
	w.factors = w.weights + 64 * line;
	w.best = w.factors + 64;
	w.total = w.best + 64;
	w.keep = w.total + 64;
	w.lows = reinterpret_cast<uint *>(w.keep + 64);
	w.highs = w.lows + 64;
	uint row = blockZ() * (64 / a.queries), here = lesser(rowsThere(a.count, a.size), row + 64 / a.queries);
	Thread t;
	for (uint lead = row; lead < here; lead++) {
		Row leader = at<const Row>(a.rows)[lead];
		bool fresh = true;
		for (uint r = row; r < lead; r++) {
			Row other = at<const Row>(a.rows)[r];
			fresh = fresh && (other.table != leader.table || splitLength(other.position) != splitLength(leader.position));
		}
		if (!fresh) {
			continue; // it was in the turn of that one
		}
		sync();
		Turn turn = begin(w, a, leader, row, here);
		sync();
		take(t, w, a, turn);
	}
}
