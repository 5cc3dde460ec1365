// One split of attention to keys and values in bytes, of all positions that a row sees. Products are of 16 × 8 × 32 bytes, on
// matrix units. merge_any.cu joins splits.
//
// A block of threads owns (up to 8 query heads of a KV head, split, some rows), a warp 64 positions at a time: block b of them
// is that of warp b mod WARPS. Columns of products are pairs of a row and a head; rows of products are positions for the
// scores, then features for the values. Rows that a block has together are neighbours of one sequence whose own blocks are
// the same, and so are their splits.
//
// Queries are rounded to 24 bits with their sign, with one unit for the 32 features that share a key's scale; weights times
// scales of values to 23 bits, in units of the largest of 64 positions. They are multiplied byte by byte: whole numbers,
// exact in any order, which are joined from the highest on. So floats lose no more than they do by being added; and the order
// of all else depends on nothing but a position. The logarithms are of base 2.
//
// WIDE: the most features of a key or a value, which are whole 32. GROUPS: columns are 8 times as many. Memory: what Memory
// says. Grid: groups of query heads, splits, groups of rows.
//
// variant: attend_whole_128 -DWIDE=128 -DWARPS=8 -DGROUPS=1
// variant: attend_whole_128_rows -DWIDE=128 -DWARPS=8 -DGROUPS=2
// variant: attend_whole_256 -DWIDE=256 -DWARPS=8 -DGROUPS=1
#include "lib/act.cuh"
#include "lib/octets.cuh"

constexpr float mostQuery = 8388607, mostWeight = 8388592; // in whole units: of 24 bits with their sign, of 23
constexpr float least = 0x1p-100f; // what is less is nothing
constexpr uint grouped = 32;       // features of a key with one scale
constexpr uint weightLine = 68;    // floats of a column's weights: lines begin in different banks
constexpr uint wordLine = 56;      // words of a column's weights as bytes: 16 of each of three planes
constexpr uint planes = 3;
constexpr uint together = GROUPS == 1 ? 4 : 2; // parts of keys that are loaded at once: memory is far away

struct Args {
	uint64_t x;      // rows of query heads
	uint64_t keys;   // the layer's
	uint64_t values;
	uint64_t parts;  // [row][head][mostSplits][valueFeatures + 4]: values, largest score, sum
	uint64_t rows;
	uint64_t tables;
	uint64_t count;  // rows that are there; 0: all
	uint xStride;    // in float32
	uint window;     // positions that are seen; 0: all
	float scale;     // of scores, times log2(e)
	float cap;       // scores s become cap·tanh(s/cap), cap times log2(e); 0: they stay
	uint chunked;    // 1: the window is the row's own chunk of so many positions
	uint keyFeatures;
	uint valueFeatures;
	uint queries;    // heads of a KV head
	uint once;       // query heads of a block
	uint each;       // rows of a block
	uint size;       // rows
	uint pad;
};

// Memory is that of a block: for each column 100 bytes for each part of a query, 8 for what it sees and 12 for each warp; for
// each warp and column 496, or 4 for each feature of a value, which comes after.
struct Memory {
	uint *query;   // [plane][part][column][8 words]
	float *units;  // [part][column]: of queries
	uint *from;    // [column]: positions of the split that are seen begin
	uint *to;      // and end
	float *best;   // [warp][column]; in the end
	float *totals;
	float *gains;  // [warp][column]: units of weights
	float *weights; // [warp][column][weightLine]
	uint *words;    // [warp][column][wordLine]
	float *sums;    // in the end [warp][column][feature]
	uint parts, columns;
};

DEVICE Memory memoryOf(const Args &a, uint columns) {
	Memory m;
	m.parts = a.keyFeatures / 32;
	m.columns = columns;
	m.query = dynamicShared<uint>();
	m.units = reinterpret_cast<float *>(m.query + planes * 8 * m.parts * columns);
	m.from = reinterpret_cast<uint *>(m.units + m.parts * columns);
	m.to = m.from + columns;
	m.best = reinterpret_cast<float *>(m.to + columns);
	m.totals = m.best + WARPS * columns;
	m.gains = m.totals + WARPS * columns;
	float *rest = m.gains + WARPS * columns;
	m.weights = rest + (4 - (reinterpret_cast<uint64_t>(rest) / 4) % 4) % 4;
	m.words = reinterpret_cast<uint *>(m.weights + WARPS * columns * weightLine);
	m.sums = m.weights; // which are used before
	return m;
}

// Sums are what a lane has of two columns, 2·(lane mod 4) and the next, of eight.
struct Sums {
	float best[2], total[2], keep[2], gain[2]; // keep and gain: factors of what was added, and of a block
	float value[WIDE / 16][4];
};

DEVICE uint warp() { return threadX() / warpLanes; }

// columnOf is a column of a group: those behind the last one are the last one, and are not kept.
DEVICE uint columnOf(const Memory &m, uint g, uint column) { return lesser(8 * g + column, m.columns - 1); }

// A sum of products begins with this, so that its bits are those of the float 1.5·2²³ plus the sum.
constexpr int origin = 0x4b400000;

DEVICE float plain(int sum) { return bitsFloat(static_cast<uint>(sum)) - 0x1.8p23f; }

// Planes are the sums of products with the bytes of three planes.
struct Planes { int high[4], middle[4], low[4]; };

DEVICE void begin(Planes &p) {
#pragma unroll
	for (uint e = 0; e < 4; e++) {
		p.high[e] = p.middle[e] = p.low[e] = origin;
	}
}

// multiply adds the products of rows with words of planes, which lie so many uint2 apart.
DEVICE void multiply(Planes &p, const uint (&rows)[4], const uint2 *words, uint apart) {
	uint2 h = words[0], m = words[apart], l = words[2 * apart];
	const uint highs[2] = {h.x, h.y}, middles[2] = {m.x, m.y}, lows[2] = {l.x, l.y};
	mmaS8(p.high, rows, highs);
	mmaS8U8(p.middle, rows, middles);
	mmaS8U8(p.low, rows, lows);
}

DEVICE float joined(const Planes &p, uint e) {
	return fma(fma(plain(p.high[e]), 256.0f, plain(p.middle[e])), 256.0f, plain(p.low[e]));
}

// prepare rounds the queries of rows from r on.
DEVICE void prepare(const Args &a, const Memory &m, uint r, uint head) {
	uint all = m.columns * m.parts * 8;
	for (uint first = 0; first < all; first += blockThreads()) { // all threads, as they join what they have
		uint t = lesser(first + threadX(), all - 1), part = t / 8 / m.columns, c = t / 8 % m.columns, plane[planes] = {};
		const float *x = at<const float>(a.x) + uint64_t(r + c / a.once) * a.xStride +
			(head + c % a.once) * a.keyFeatures + part * 32 + t % 8 * 4;
		const float q[4] = {x[0], x[1], x[2], x[3]};
		float top = max8(float4{q[0], q[1], q[2], q[3]}), by = top < least ? 0.0f : mostQuery / top;
#pragma unroll
		for (uint i = 0; i < 4; i++) {
			float v = roundEven(lesser(greater(q[i] * by, -mostQuery), mostQuery));
			uint n = static_cast<uint>(static_cast<int>(v));
			plane[0] |= (n >> 16 & 0xffu) << (8 * i);
			plane[1] |= (n >> 8 & 0xffu) << (8 * i);
			plane[2] |= (n & 0xffu) << (8 * i);
		}
		if (first + threadX() < all) {
#pragma unroll
			for (uint p = 0; p < planes; p++) {
				m.query[p * all + t] = plane[p];
			}
			m.units[t / 8] = top < least ? 0.0f : top * (1 / mostQuery);
		}
	}
}

// scorePart adds the products of the queries with a part of 64 keys to scores: [tile][column of row group(), and of row
// group() + 8].
DEVICE void scorePart(const Memory &m, const Keys &k, uint part, float (&s)[GROUPS][tiles][4]) {
#pragma unroll
	for (uint g = 0; g < GROUPS; g++) {
		const uint2 *q = reinterpret_cast<const uint2 *>(m.query) + (part * m.columns + columnOf(m, g, group())) * 4 + fourth();
		const float *units = m.units + part * m.columns;
		const float unit[2] = {units[columnOf(m, g, 2 * fourth())], units[columnOf(m, g, 2 * fourth() + 1)]};
#pragma unroll
		for (uint i = 0; i < tiles; i++) {
			const uint rows[4] = {k.row[2 * i].x, k.row[2 * i + 1].x, k.row[2 * i].y, k.row[2 * i + 1].y};
			Planes p;
			begin(p);
			multiply(p, rows, q, 4 * m.parts * m.columns);
#pragma unroll
			for (uint e = 0; e < 4; e++) {
				s[g][i][e] = fma(joined(p, e) * k.factor[2 * i + e / 2], unit[e % 2], s[g][i][e]);
			}
		}
	}
}

// score is the products of the queries with 64 keys.
DEVICE void score(const Args &a, const Memory &m, uint64_t run, float (&s)[GROUPS][tiles][4]) {
	Keys k[together];
#pragma unroll 1
	for (uint part = 0; part < m.parts; part += together) {
#pragma unroll
		for (uint i = 0; i < together; i++) {
			if (part + i < m.parts) {
				askKeys<kvQ8>(k[i], run, a.keyFeatures, part + i);
			}
		}
#pragma unroll
		for (uint i = 0; i < together; i++) {
			if (part + i < m.parts) {
				scorePart(m, k[i], part + i, s);
			}
		}
	}
}

// spread turns scores of a block's positions, of which a column sees some, into weights relative to the largest, and says
// what these weigh beside what was added.
DEVICE void spread(const Args &a, const Memory &m, uint g, float (&s)[tiles][4], uint first, Sums &to) {
	float *weights = m.weights + warp() * m.columns * weightLine;
#pragma unroll
	for (uint c = 0; c < 2; c++) {
		float top = nothing, all = 0;
		uint column = columnOf(m, g, 2 * fourth() + c), low = m.from[column], high = m.to[column];
#pragma unroll
		for (uint i = 0; i < 2 * tiles; i++) {
			float &v = s[i / 2][i % 2 * 2 + c];
			uint p = first + 8 * i + group();
			v = v * a.scale;
			if (a.cap > 0) {
				v = a.cap * hyperbolic(v / a.cap);
			}
			v = p >= low && p < high ? v : 2 * nothing;
			top = maximum(top, v);
		}
		top = largest(top);
#pragma unroll
		for (uint i = 0; i < 2 * tiles; i++) {
			uint p = first + 8 * i + group();
			float w = weightOf(s[i / 2][i % 2 * 2 + c] - top);
			w = p >= low && p < high ? w : 0.0f;
			all = all + w;
			if (8 * g + 2 * fourth() + c < m.columns) {
				weights[column * weightLine + 8 * i + group()] = w;
			}
		}
		float most = maximum(to.best[c], top);
		to.keep[c] = exp2(to.best[c] - most);
		to.gain[c] = exp2(top - most);
		to.best[c] = most;
		to.total[c] = fma(sum(all), to.gain[c], to.total[c] * to.keep[c]);
	}
}

// weigh turns weights into bytes: half a warp has a column, a lane four positions of it.
DEVICE void weigh(const Args &a, const Memory &m, uint64_t run) {
	uint quad = lane() % 16;
	float4 f = *(at<const float4>(run + 64ul * a.valueFeatures) + quad);
	const float factor[4] = {f.x, f.y, f.z, f.w};
	for (uint first = 0; first < m.columns; first += 2) { // all lanes, as they join what they have
		uint of = warp() * m.columns + lesser(first + lane() / 16, m.columns - 1), top = 0, n[4];
		float4 w = *reinterpret_cast<const float4 *>(m.weights + of * weightLine + quad * 4);
		float v[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
		for (uint i = 0; i < 4; i++) {
			v[i] = v[i] > 0 ? v[i] * factor[i] : 0.0f; // what is not seen may have any scale
			top = greater(top, floatBits(v[i]) & 0x7fffffffu);
		}
#pragma unroll
		for (uint by = 1; by < 16; by *= 2) {
			top = greater(top, shuffleXor(top, by));
		}
		float most = bitsFloat(top), by = most < least ? 0.0f : mostWeight / most;
#pragma unroll
		for (uint i = 0; i < 4; i++) {
			n[i] = floatBits(v[i] * by + 0x1p23f); // whose low 23 bits are the whole number
		}
		uint *to = m.words + of * wordLine + quad;
		to[0] = permute(permute(n[0], n[1], 0x0062), permute(n[2], n[3], 0x0062), 0x5410);
		to[16] = permute(permute(n[0], n[1], 0x0051), permute(n[2], n[3], 0x0051), 0x5410);
		to[32] = permute(permute(n[0], n[1], 0x0040), permute(n[2], n[3], 0x0040), 0x5410);
		if (quad == 0) {
			m.gains[of] = most < least ? 0.0f : most * (1 / mostWeight);
		}
	}
}

// add adds a run of values, with the weights as bytes, whose first part is loaded.
DEVICE void add(const Args &a, const Memory &m, uint64_t run, Raw &loaded, Sums (&s)[GROUPS]) {
	uint n = a.valueFeatures;
	Raw raw[2] = {loaded};
#pragma unroll
	for (uint f = 0; f < WIDE / 32; f++) {
		if (32 * f >= n) {
			continue;
		}
		if (32 * f + 32 < n) {
			askValues<kvQ8>(raw[(f + 1) % 2], run, n, 32 * f + 32);
		}
		Planes p[GROUPS][2];
#pragma unroll
		for (uint side = 0; side < 2; side++) {
			uint rows[2][4];
			rowsOf<kvQ8>(rows, Book{}, raw[f % 2], side);
#pragma unroll
			for (uint g = 0; g < GROUPS; g++) {
				const uint *words = m.words + (warp() * m.columns + columnOf(m, g, group())) * wordLine;
				const uint2 *w = reinterpret_cast<const uint2 *>(words) + side * 4 + fourth();
#pragma unroll
				for (uint t = 0; t < 2; t++) {
					if (side == 0) {
						begin(p[g][t]);
					}
					multiply(p[g][t], rows[t], w, 8);
				}
			}
		}
#pragma unroll
		for (uint g = 0; g < GROUPS; g++) {
			const float *gains = m.gains + warp() * m.columns;
			const float unit[2] = {gains[columnOf(m, g, 2 * fourth())], gains[columnOf(m, g, 2 * fourth() + 1)]};
#pragma unroll
			for (uint e = 0; e < 8; e++) {
				uint c = e % 2;
				float &v = s[g].value[2 * f + e / 4][e % 4];
				float sum = fma(joined(p[g][e / 4], e % 4) * unit[c], s[g].gain[c], v * s[g].keep[c]);
				v = s[g].gain[c] == 0 && s[g].keep[c] == 1 ? v : sum; // of a block that another row sees, too
			}
		}
	}
}

// join writes the parts of a split: the sums of warps, in order.
DEVICE void join(const Args &a, const Memory &m, uint64_t row, uint head, uint heads, const Sums (&s)[GROUPS]) {
	uint n = a.valueFeatures, columns = m.columns;
	sync();
#pragma unroll
	for (uint i = 0; i < 2 * GROUPS; i++) {
		const Sums &from = s[i / 2];
		uint c = i % 2, column = 8 * (i / 2) + 2 * fourth() + c, of = warp() * columns + column;
		if (column >= columns) {
			continue;
		}
#pragma unroll
		for (uint f = 0; f < WIDE / 16; f++) {
			if (f * 16 < n) {
				m.sums[of * n + featureOf(kvQ8, f, 0)] = from.value[f][c];
				m.sums[of * n + featureOf(kvQ8, f, 1)] = from.value[f][2 + c];
			}
		}
		if (group() == 0) {
			m.best[of] = from.best[c];
			m.totals[of] = from.total[c];
		}
	}
	sync();
	float *parts = at<float>(a.parts) + blockY() * (n + 4);
	for (uint t = threadX(); t < columns; t += blockThreads()) {
		float most = nothing, total = 0;
		for (uint i = 0; i < WARPS; i++) {
			most = maximum(most, m.best[i * columns + t]);
		}
		for (uint i = 0; i < WARPS; i++) {
			float by = exp2(m.best[i * columns + t] - most);
			m.best[i * columns + t] = by;
			total = fma(m.totals[i * columns + t], by, total);
		}
		float *part = parts + ((row + t / a.once) * heads + head + t % a.once) * mostSplits * (n + 4);
		part[n] = most;
		part[n + 1] = total;
	}
	sync();
	for (uint t = threadX(); t < columns * n; t += blockThreads()) {
		float v = 0;
		for (uint i = 0; i < WARPS; i++) {
			v = fma(m.sums[i * columns * n + t], m.best[i * columns + t / n], v);
		}
		parts[((row + t / n / a.once) * heads + head + t / n % a.once) * mostSplits * (n + 4) + t % n] = v;
	}
}

// attend computes so many rows from r on, of one sequence and with the same blocks.
DEVICE void attend(const Args &a, uint r, uint many) {
	uint head = blockX() * a.once, heads = gridX() * a.once;
	const Row *rows = at<const Row>(a.rows) + r;
	Row row = rows[0];
	uint blocks = row.position / 64 + 1, length = evenLength(blocks), start = blockY() * length, begin = ~0u, end = 0;
	if (start >= 64 * blocks) {
		return;
	}
	Memory m = memoryOf(a, many * a.once);
	for (uint i = 0; i < many; i++) {
		uint from = greater(start, firstSeen(rows[i], a.window, a.chunked)), to = lesser(start + length, rows[i].position + 1);
		begin = lesser(begin, from);
		end = greater(end, to);
		for (uint h = threadX(); h < a.once; h += blockThreads()) {
			m.from[i * a.once + h] = from;
			m.to[i * a.once + h] = to;
		}
	}
	Runs runs = {runBytes(kvQ8, a.keyFeatures, grouped), runBytes(kvQ8, a.valueFeatures, a.valueFeatures), heads / a.queries,
		head / a.queries};
	const uint *tables = at<const uint>(a.tables);
	uint first = (begin / 64 + (warp() + WARPS - begin / 64 % WARPS) % WARPS) * 64;
	if (first < end) {
		ahead(a.keys, a.values, runs, uint64_t(blockOf(tables, row, first)) * runs.heads + runs.head);
	}
	prepare(a, m, r, head);
	sync();
	Sums s[GROUPS];
#pragma unroll
	for (uint g = 0; g < GROUPS; g++) {
		s[g] = {{nothing, nothing}};
	}
	for (; first < end; first += 64 * WARPS) {
		uint64_t run = uint64_t(blockOf(tables, row, first)) * runs.heads + runs.head, values = a.values + run * runs.valueBytes;
		if (first + 64 * WARPS < end) {
			ahead(a.keys, a.values, runs, uint64_t(blockOf(tables, row, first + 64 * WARPS)) * runs.heads + runs.head);
		}
		float scores[GROUPS][tiles][4] = {};
		score(a, m, a.keys + run * runs.keyBytes, scores);
		Raw loaded;
		askValues<kvQ8>(loaded, values, a.valueFeatures, 0);
#pragma unroll
		for (uint g = 0; g < GROUPS; g++) {
			spread(a, m, g, scores[g], first, s[g]);
		}
		syncWarp();
		weigh(a, m, values);
		syncWarp();
		add(a, m, values, loaded, s);
		syncWarp();
	}
	join(a, m, r, head, heads, s);
	sync();
}

KERNEL(attendWhole, Args, 32 * WARPS) {
	const Row *rows = at<const Row>(a.rows);
	uint r = blockZ() * a.each, end = lesser(rowsThere(a.count, a.size), r + a.each);
	while (r < end) {
		uint many = 1;
		while (r + many < end && rows[r + many].table == rows[r].table && rows[r + many].position / 64 == rows[r].position / 64) {
			many++;
		}
		attend(a, r, many);
		r += many;
	}
}
