// One split of attention to sealed blocks of whole numbers: codes, and bytes of keys or of values. Products are of
// 16 × 8 × 32 bytes, on matrix units. A row's own block is open, and attend_any.cu's; merge_coded.cu joins all parts.
//
// A block of threads owns (up to 8 query heads of a KV head, split, row), a warp 64 positions at a time: block b of them is
// that of warp b mod WARPS. Columns of products are heads; rows are positions for the scores, then features for the values.
// Of coded keys, queries are rotated, and rounded to bytes with one unit for the features that share a scale; with keys in
// bytes, to 16 bits with their sign, as two bytes. Weights times scales of values are rounded to 16 bits with their sign, in
// units of the block's largest scale; of sealed values in even levels a scale is 32 features'. So products are whole numbers,
// exact in any order; the order of all else depends on nothing but a position. The logarithms are of base 2.
//
// WIDE: the most features of a key or a value, which are whole 32. Memory: what Memory says. Grid: groups of query heads,
// splits, rows.
//
// variant: attend_bytes_128 -DWIDE=128 -DWARPS=8
// variant: attend_bytes_256 -DWIDE=256 -DWARPS=8
#include "lib/act.cuh"
#include "lib/join.cuh"
#include "lib/octets.cuh"
#include "lib/turned.cuh"

constexpr float mostWeight = 32639; // in whole units: two bytes with signs
constexpr uint grouped = 32;        // features of a key with one scale
constexpr uint weightLine = 68;     // floats of a head's weights: lines begin in different banks
constexpr uint wordLine = 40;       // words of a head's weights as bytes: 64 high ones, 64 low ones

struct Args {
	uint64_t x;      // rows of query heads
	uint64_t keys;   // the layer's
	uint64_t values;
	uint64_t parts;  // [row][head][mostSplits + 1][valueFeatures + 4]: values, largest score, sum
	uint64_t rows;
	uint64_t tables;
	uint64_t count;  // rows that are there; 0: all
	uint64_t keyLevels; // of a book: the positive ones, bytes in ascending order
	uint64_t valueLevels;
	uint xStride;    // in float32
	uint window;     // positions that are seen; 0: all
	float scale;     // of scores, times log2(e)
	float cap;       // scores s become cap·tanh(s/cap), cap times log2(e); 0: they stay
	uint chunked;    // 1: the window is the row's own chunk of so many positions
	uint type;       // of keys
	uint valueType;  // of values
	uint keyFeatures;
	uint valueFeatures;
	uint queries;    // heads of a KV head
	uint power;      // of two that divides keyFeatures: see lib/turned.cuh
	float unit;      // 1/√keyFeatures
	uint once;       // query heads of a block
	uint pad;
};

DEVICE bool oneScale(uint type) { return hasBook(type) || type == kvQ8; } // of a value's features
DEVICE int offsetBy(uint type) { return hasBook(type) || type == kvQ8 ? 0 : 1 << (codeBits(type) - 1); }

// Memory is that of a block: for each head 72 bytes for each part of a query, and 4 for each warp twice; for each warp and
// head 276, and 164 for each scale of a value, or 4 for each of its features, which comes after; floats of all queries.
struct Memory {
	uint *query;     // [high, low][part][head][8 words]
	float *units;    // [part][head]: of queries
	int *querySums;  // [part][head]: times what codes are more than levels
	float *best;     // [warp][head]; in the end
	float *totals;
	float *weights;  // [warp][head][weightLine]
	uint *words;     // [warp][scale][head][wordLine]
	int *wordSums;   // [warp][scale][head]
	float *turned;   // queries; in the end [warp][head][feature]
	uint parts, scales;
};

DEVICE Memory memoryOf(const Args &a) {
	Memory m;
	m.parts = a.keyFeatures / 32;
	m.scales = oneScale(a.valueType) ? 1 : a.valueFeatures / 32;
	m.query = dynamicShared<uint>();
	m.units = reinterpret_cast<float *>(m.query + 16 * m.parts * a.once);
	m.querySums = reinterpret_cast<int *>(m.units + m.parts * a.once);
	m.best = reinterpret_cast<float *>(m.querySums + m.parts * a.once);
	m.totals = m.best + WARPS * a.once;
	float *rest = m.totals + WARPS * a.once;
	m.turned = rest + (4 - (reinterpret_cast<uint64_t>(rest) / 4) % 4) % 4;
	m.weights = m.turned; // which is used before and after
	m.words = reinterpret_cast<uint *>(m.weights + WARPS * a.once * weightLine);
	m.wordSums = reinterpret_cast<int *>(m.words + WARPS * a.once * m.scales * wordLine);
	return m;
}

// Sums are what a lane has: of two heads, which are columns 2·(lane mod 4) and the next.
struct Sums {
	float best[2], total[2], keep[2], gain[2]; // keep and gain: factors of what was added, and of a block
	float value[WIDE / 16][4];
};

DEVICE uint warp() { return threadX() / warpLanes; }

// headOf is the head of a column: columns behind the last head are the last one's, and are not kept.
DEVICE uint headOf(const Args &a, uint column) { return lesser(column, a.once - 1); }

// prepare brings the queries of a row, rotated if keys are codes, and rounded.
DEVICE void prepare(const Args &a, const Memory &m, const float *from) {
	uint features = a.keyFeatures, parts = m.parts;
	for (uint t = threadX(); t < a.once * features; t += blockThreads()) {
		m.turned[t] = isCoded(a.type) && flips(t % features) ? -from[t] : from[t];
	}
	if (isCoded(a.type)) {
		transform(m.turned, a.once, features, a.power, a.unit, false);
	}
	sync();
	float *most = m.best; // of parts: at most as many as warps
	uint all = a.once * parts * 8;
	for (uint first = 0; first < all; first += blockThreads()) { // all threads, as they join what they have
		uint t = lesser(first + threadX(), all - 1), part = t / 8 / a.once, h = t / 8 % a.once;
		float top = max8(*reinterpret_cast<const float4 *>(m.turned + h * features + part * 32 + t % 8 * 4));
		if (t % 8 == 0) {
			most[t / 8] = top;
		}
	}
	sync();
	for (uint first = 0; first < all; first += blockThreads()) {
		uint t = lesser(first + threadX(), all - 1), part = t / 8 / a.once, h = t / 8 % a.once, high = 0, low = 0, top = 0;
		for (uint i = 0; i < parts; i++) { // all of them, with a book
			top = hasBook(a.type) || i == part ? greater(top, floatBits(most[i * a.once + h])) : top;
		}
		float limit = a.type == kvQ8 ? mostWeight : 127.0f, unit = bitsFloat(top) * (1 / limit), by = unit > 0 ? 1 / unit : 0.0f;
		for (uint i = 0; i < 4; i++) {
			float q = m.turned[h * features + part * 32 + t % 8 * 4 + i] * by;
			int n = static_cast<int>(roundEven(lesser(greater(q, -limit), limit)));
			high |= (static_cast<uint>(a.type == kvQ8 ? (n + 128) >> 8 : n) & 0xffu) << (8 * i);
			low |= (static_cast<uint>(n) & 0xffu) << (8 * i);
		}
		int sum = dot4(high, 0x01010101u, 0);
		sum += shuffleXor(sum, 1);
		sum += shuffleXor(sum, 2);
		sum += shuffleXor(sum, 4);
		if (first + threadX() < all) {
			m.query[t] = high;
			m.query[all + t] = low;
			m.units[t / 8] = unit;
			m.querySums[t / 8] = offsetBy(a.type) * sum;
		}
	}
	sync();
}

// scorePart adds the products of the queries with a part of 64 keys to scores, or to sums that have one scale.
// [tile][column of row group(), and of row group() + 8]
template <uint type>
DEVICE void scorePart(const Args &a, const Memory &m, const Book &book, const Keys &k, uint part, int (&sums)[tiles][4],
	float (&s)[tiles][4]) {
	const uint2 *q = reinterpret_cast<const uint2 *>(m.query) + (part * a.once + headOf(a, group())) * 4 + fourth();
	uint2 high = q[0], low = q[4 * m.parts * a.once];
	const uint highs[2] = {high.x, high.y}, lows[2] = {low.x, low.y};
	uint of[2] = {part * a.once + headOf(a, 2 * fourth()), part * a.once + headOf(a, 2 * fourth() + 1)};
#pragma unroll
	for (uint i = 0; i < tiles; i++) {
		uint2 x = bytesOf<type>(book, k.row[2 * i]), y = bytesOf<type>(book, k.row[2 * i + 1]);
		const uint rows[4] = {x.x, y.x, x.y, y.y};
		mmaS8(sums[i], rows, highs);
		if (type == kvQ8) {
#pragma unroll
			for (uint e = 0; e < 4; e++) {
				sums[i][e] *= 256;
			}
			mmaS8(sums[i], rows, lows);
		}
#pragma unroll
		for (uint e = 0; e < 4 && !hasBook(type); e++) {
			int sum = type == kvQ8 ? sums[i][e] : sums[i][e] - m.querySums[of[e % 2]];
			s[i][e] = fma(static_cast<float>(sum) * k.factor[2 * i + e / 2], m.units[of[e % 2]], s[i][e]);
			sums[i][e] = 0;
		}
	}
}

// score is the products of the queries with 64 keys. Two parts of these are loaded at once: memory is far away.
template <uint type>
DEVICE void score(const Args &a, const Memory &m, const Book &book, uint64_t run, float (&s)[tiles][4]) {
	int sums[tiles][4] = {};
	Keys now, next;
#pragma unroll 1
	for (uint part = 0; part < m.parts; part += 2) {
		askKeys<type>(now, run, a.keyFeatures, part);
		if (part + 1 < m.parts) {
			askKeys<type>(next, run, a.keyFeatures, part + 1);
		}
		scorePart<type>(a, m, book, now, part, sums, s);
		if (part + 1 < m.parts) {
			scorePart<type>(a, m, book, next, part + 1, sums, s);
		}
	}
	if (hasBook(type)) {
		askFactors<type>(now, run, a.keyFeatures, 0);
	}
#pragma unroll
	for (uint i = 0; i < tiles && hasBook(type); i++) {
#pragma unroll
		for (uint e = 0; e < 4; e++) {
			s[i][e] = static_cast<float>(sums[i][e]) * now.factor[2 * i + e / 2] * m.units[headOf(a, 2 * fourth() + e % 2)];
		}
	}
}

DEVICE void scoreAny(const Args &a, const Memory &m, const Book &book, uint64_t run, float (&s)[tiles][4]) {
	switch (a.type) {
	case kvQ8: return score<kvQ8>(a, m, book, run, s);
	case kvQ5: return score<kvQ5>(a, m, book, run, s);
	case kvQ4: return score<kvQ4>(a, m, book, run, s);
	case kvTQ4: return score<kvTQ4>(a, m, book, run, s);
	case kvTQ3: return score<kvTQ3>(a, m, book, run, s);
	}
}

// spread turns scores of a block's positions, of which [low, high) are seen, into weights relative to the largest, and says
// what these weigh beside what was added.
DEVICE void spread(const Args &a, const Memory &m, float (&s)[tiles][4], uint low, uint high, Sums &to) {
	float *weights = m.weights + warp() * a.once * weightLine;
#pragma unroll
	for (uint c = 0; c < 2; c++) {
		float top = nothing, all = 0;
		uint head = 2 * fourth() + c;
#pragma unroll
		for (uint i = 0; i < 2 * tiles; i++) {
			float &v = s[i / 2][i % 2 * 2 + c];
			uint p = 8 * i + group();
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
			uint p = 8 * i + group();
			float w = weightOf(s[i / 2][i % 2 * 2 + c] - top);
			w = p >= low && p < high ? w : 0.0f;
			all = all + w;
			if (head < a.once) {
				weights[head * weightLine + p] = w;
			}
		}
		float most = maximum(to.best[c], top);
		to.keep[c] = exp2(to.best[c] - most);
		to.gain[c] = exp2(top - most);
		to.best[c] = most;
		to.total[c] = fma(sum(all), to.gain[c], to.total[c] * to.keep[c]);
	}
}

// largestScale is the largest scale of values in bytes, of positions [low, high) of a run.
DEVICE float largestScale(const float *scales, uint low, uint high) {
	float most = 0;
	for (uint p = lane(); p < 64; p += warpLanes) {
		most = greater(most, p >= low && p < high ? scales[p] : 0.0f);
	}
	most = greater(most, shuffleXor(most, 1));
	most = greater(most, shuffleXor(most, 2));
	return largest(most);
}

// weigh turns weights into bytes: half a warp has a head, a lane four positions of it. most: the largest scale, of bytes.
DEVICE void weigh(const Args &a, const Memory &m, uint64_t run, float most) {
	const uint16_t *factors = at<const uint16_t>(run + valueCodeBytes(a.valueType, a.valueFeatures));
	uint quad = lane() % 16;
	for (uint part = 0; part < m.scales; part++) {
		float top = a.valueType == kvQ8 ? most : fromHalf(load16(factors + 64 * m.scales + part));
		float by = top > 0 ? mostWeight / top : 0.0f, factor[4];
		if (a.valueType == kvQ8) {
			float4 f = *(at<const float4>(run + 64ul * a.valueFeatures) + quad);
			factor[0] = f.x * by, factor[1] = f.y * by, factor[2] = f.z * by, factor[3] = f.w * by;
		} else {
			uint2 f = load64(factors + part * 64 + quad * 4);
			factor[0] = fromHalf(f.x & 0xffffu) * by, factor[1] = fromHalf(f.x >> 16) * by;
			factor[2] = fromHalf(f.y & 0xffffu) * by, factor[3] = fromHalf(f.y >> 16) * by;
		}
		for (uint first = 0; first < a.once; first += 2) { // all lanes, as they add what they have
			uint head = headOf(a, first + lane() / 16), to = (warp() * m.scales + part) * a.once + head, n[4];
			float4 w = *reinterpret_cast<const float4 *>(m.weights + (warp() * a.once + head) * weightLine + quad * 4);
			const float weights[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
			for (uint i = 0; i < 4; i++) {
				float v = weights[i] * factor[i];
				v = a.valueType == kvQ8 && !(weights[i] > 0) ? 0.0f : v; // what is not seen may have any scale
				n[i] = floatBits(v + 0x1.8p23f);                         // whose low bits are the whole number
			}
			m.words[to * wordLine + quad] =
				permute(permute(n[0] + 128, n[1] + 128, 0x0051), permute(n[2] + 128, n[3] + 128, 0x0051), 0x5410);
			m.words[to * wordLine + 16 + quad] =
				permute(permute(n[0], n[1], 0x0040), permute(n[2], n[3], 0x0040), 0x5410);
			if (oneScale(a.valueType)) {
				continue;
			}
			int sum = static_cast<int>(n[0] + n[1] + n[2] + n[3] - 4 * 0x4b400000u);
			sum += shuffleXor(sum, 1);
			sum += shuffleXor(sum, 2);
			sum += shuffleXor(sum, 4);
			sum += shuffleXor(sum, 8);
			m.wordSums[to] = sum;
		}
	}
}

// add adds a run of values, with the weights as bytes.
template <uint type>
DEVICE void add(const Args &a, const Memory &m, const Book &book, uint64_t run, float most, Sums &s) {
	uint n = a.valueFeatures;
	const uint16_t *factors = at<const uint16_t>(run + valueCodeBytes(type, n)) + 64 * m.scales;
#pragma unroll
	for (uint f = 0; f < WIDE / 32; f++) {
		if (32 * f >= n) {
			continue;
		}
		Raw raw;
		askValues<type>(raw, run, n, 32 * f);
		uint part = hasBook(type) || type == kvQ8 ? 0 : f, of = (warp() * m.scales + part) * a.once;
		int high[2][4] = {}, low[2][4] = {};
#pragma unroll
		for (uint side = 0; side < 2; side++) {
			const uint2 *w = reinterpret_cast<const uint2 *>(m.words + (of + headOf(a, group())) * wordLine) + side * 4 + fourth();
			const uint highs[2] = {w[0].x, w[0].y}, lows[2] = {w[8].x, w[8].y};
			uint rows[2][4];
			rowsOf<type>(rows, book, raw, side);
#pragma unroll
			for (uint t = 0; t < 2; t++) {
				mmaS8(high[t], rows[t], highs);
				mmaS8(low[t], rows[t], lows);
			}
		}
		float unit = (type == kvQ8 ? most : fromHalf(load16(factors + part))) * (1.0f / mostWeight);
#pragma unroll
		for (uint e = 0; e < 8; e++) {
			int all = high[e / 4][e % 4] * 256 + low[e / 4][e % 4];
			if (offsetBy(type) != 0) {
				all -= offsetBy(type) * m.wordSums[of + headOf(a, 2 * fourth() + e % 2)];
			}
			float &v = s.value[2 * f + e / 4][e % 4];
			v = fma(static_cast<float>(all) * unit, s.gain[e % 2], v * s.keep[e % 2]);
		}
	}
}

DEVICE void addAny(const Args &a, const Memory &m, const Book &book, uint64_t run, float most, Sums &s) {
	switch (a.valueType) {
	case kvQ8: return add<kvQ8>(a, m, book, run, most, s);
	case kvQ5: return add<kvQ5>(a, m, book, run, most, s);
	case kvQ4: return add<kvQ4>(a, m, book, run, most, s);
	case kvTQ4: return add<kvTQ4>(a, m, book, run, most, s);
	case kvTQ3: return add<kvTQ3>(a, m, book, run, most, s);
	case kvTQ2: return add<kvTQ2>(a, m, book, run, most, s);
	}
}

// join writes the parts of a split: the sums of warps, in order.
DEVICE void join(const Args &a, const Memory &m, float *part, uint each, const Sums &s) {
	uint n = a.valueFeatures;
	sync();
#pragma unroll
	for (uint c = 0; c < 2; c++) {
		uint head = 2 * fourth() + c, of = warp() * a.once + head;
		if (head >= a.once) {
			continue;
		}
#pragma unroll
		for (uint f = 0; f < WIDE / 16; f++) {
			if (f * 16 < n) {
				m.turned[of * n + featureOf(a.valueType, f, 0)] = s.value[f][c];
				m.turned[of * n + featureOf(a.valueType, f, 1)] = s.value[f][2 + c];
			}
		}
		if (group() == 0) {
			m.best[of] = s.best[c];
			m.totals[of] = s.total[c];
		}
	}
	sync();
	for (uint t = threadX(); t < a.once; t += blockThreads()) {
		float most = nothing, total = 0;
		for (uint i = 0; i < WARPS; i++) {
			most = greater(most, m.best[i * a.once + t]);
		}
		for (uint i = 0; i < WARPS; i++) {
			float by = exp2(m.best[i * a.once + t] - most);
			m.best[i * a.once + t] = by;
			total = fma(m.totals[i * a.once + t], by, total);
		}
		part[t * each + n] = most;
		part[t * each + n + 1] = total;
	}
	sync();
	for (uint t = threadX(); t < a.once * n; t += blockThreads()) {
		float v = 0;
		for (uint i = 0; i < WARPS; i++) {
			v = fma(m.turned[i * a.once * n + t], m.best[i * a.once + t / n], v);
		}
		part[t / n * each + t % n] = v;
	}
}

DEVICE uint64_t runAt(const Args &a, const Runs &r, Row row, uint first) {
	return uint64_t(blockOf(at<const uint>(a.tables), row, first)) * r.heads + r.head;
}

KERNEL(attendBytes, Args, 32 * WARPS) {
	uint head = blockX() * a.once, split = blockY(), r = blockZ(), heads = gridX() * a.once, n = a.valueFeatures;
	if (r >= rowsThere(a.count, ~0u)) {
		return;
	}
	Row row = at<const Row>(a.rows)[r];
	uint blocks = row.position / 64, length = evenLength(blocks), start = split * length;
	if (start >= 64 * blocks) {
		return;
	}
	uint to = lesser(start + length, 64 * blocks);
	uint from = greater(start, firstSeen(row, a.window, a.chunked)), each = (mostSplits + 1) * (n + 4);
	float *part = at<float>(a.parts) + (uint64_t(r) * heads + head) * each + split * (n + 4);
	if (from >= to) { // nothing of the split is seen
		for (uint t = threadX(); t < a.once * (n + 4); t += blockThreads()) {
			part[t / (n + 4) * each + t % (n + 4)] = t % (n + 4) == n ? nothing : 0.0f;
		}
		return;
	}
	Runs runs = {keyRunBytes(a.type, a.keyFeatures, grouped), valueRunBytes(a.valueType, n), heads / a.queries, head / a.queries};
	uint first = (from / 64 + (warp() + WARPS - from / 64 % WARPS) % WARPS) * 64;
	if (first < to) {
		ahead(a.keys, a.values, runs, runAt(a, runs, row, first));
	}
	Memory m = memoryOf(a);
	prepare(a, m, at<const float>(a.x) + uint64_t(r) * a.xStride + head * a.keyFeatures);
	Book keyBook = bookOf(a.type, a.keyLevels), valueBook = bookOf(a.valueType, a.valueLevels);
	Sums s = {{nothing, nothing}};
	for (; first < to; first += 64 * WARPS) {
		uint64_t run = runAt(a, runs, row, first), values = a.values + run * runs.valueBytes;
		uint low = from > first ? from - first : 0, high = lesser(to - first, 64u);
		if (first + 64 * WARPS < to) {
			ahead(a.keys, a.values, runs, runAt(a, runs, row, first + 64 * WARPS));
		}
		float scores[tiles][4] = {};
		scoreAny(a, m, keyBook, a.keys + run * runs.keyBytes, scores);
		spread(a, m, scores, low, high, s);
		float most = a.valueType == kvQ8 ? largestScale(at<const float>(values + 64ul * n), low, high) : 0.0f;
		syncWarp();
		weigh(a, m, values, most);
		syncWarp();
		addAny(a, m, valueBook, values, most, s);
	}
	join(a, m, part, each, s);
}
