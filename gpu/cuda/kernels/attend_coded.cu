// One split of attention to sealed blocks: keys and values in codes, or in other types. A row's own block is open, and
// attend_any.cu's; merge_coded.cu joins all parts.
//
// A block of threads owns (ONCE query heads of a KV head, split, row), each 64 threads of it a block of 64 positions at a
// time: block b is that of threads 64·(b mod 4) and following. Thread: a position for the scores, then every 64th feature
// of the values. Of coded keys, queries are rotated, and rounded to bytes with one unit for the features that share a
// scale: products with levels are whole numbers. Of coded values, weights times scales are rounded to 15 bits with a sign,
// in units of the block's largest scale, as two bytes: the sums of a block are whole numbers, still rotated. These are
// exact in any order; the order of all else depends on nothing but a position. Levels of books are permuted in registers.
// The logarithms are of base 2.
//
// EACH: features of a thread, so that 64·EACH are as many as a value has. Memory: what Memory says. Grid: groups of query
// heads, splits, rows.
//
// variant: attend_coded_1 -DONCE=1 -DEACH=2
// variant: attend_coded_4 -DONCE=4 -DEACH=2
// variant: attend_coded_wide_1 -DONCE=1 -DEACH=8
#include "lib/act.cuh"
#include "lib/codes.cuh"
#include "lib/turned.cuh"

constexpr float nothing = -1e30f;
constexpr float mostWeight = 16383; // in whole units
constexpr uint grouped = 32;        // features of a key with one scale
constexpr uint teams = 4;

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
};

// Memory is that of a block: 128·scales + 8·scales bytes for each team and head, 44 for each part of a query, 320 more for
// each team and head, and floats of all queries, or of a value for each team.
struct Memory {
	uint4 *words;    // high and low bytes of eight weights
	uint2 *query;    // in bytes: eight features
	float *weights;  // of 64 positions
	float *tops;     // of eight positions
	float *totals;
	float *turned;   // queries; in the end, sums of teams
	float *units;    // of queries
	uint *most;      // of 32 features
	int *querySums;
	int *wordSums;   // of 32 weights
	uint parts, scales, valueScales;
};

DEVICE Memory memoryOf(const Args &a) {
	Memory m;
	m.parts = (a.keyFeatures + 31) / 32;
	m.scales = hasBook(a.type) ? 1 : m.parts;
	m.valueScales = codeScales(a.valueType, a.valueFeatures);
	m.words = dynamicShared<uint4>();
	m.query = reinterpret_cast<uint2 *>(m.words + teams * ONCE * m.valueScales * 8);
	m.weights = reinterpret_cast<float *>(m.query + ONCE * m.parts * 4);
	m.tops = m.weights + teams * ONCE * 64;
	m.totals = m.tops + teams * ONCE * 8;
	m.units = m.totals + teams * ONCE * 8;
	m.most = reinterpret_cast<uint *>(m.units + ONCE * m.parts);
	m.querySums = reinterpret_cast<int *>(m.most + ONCE * m.parts);
	m.wordSums = m.querySums + ONCE * m.parts;
	m.turned = reinterpret_cast<float *>(m.wordSums + teams * ONCE * m.valueScales * 2);
	return m;
}

// Sums are what a thread has of all heads.
struct Sums {
	float best[ONCE], total[ONCE], value[EACH * ONCE];
	float keep[ONCE], gain[ONCE]; // factors of what was added, and of a block
};

DEVICE uint team() { return threadX() / 64; }
DEVICE uint member() { return threadX() % 64; }

DEVICE int offsetBy(uint type) { return hasBook(type) ? 0 : 1 << (codeBits(type) - 1); }

// prepare brings the queries of a row, rotated and rounded if keys are codes.
DEVICE void prepare(const Args &a, const Memory &m, const float *from) {
	uint features = a.keyFeatures, parts = m.parts, octets = 4 * parts;
	for (uint t = threadX(); t < ONCE * features; t += 256) {
		m.turned[t] = isCoded(a.type) && flips(t % features) ? -from[t] : from[t];
	}
	if (!isCoded(a.type)) {
		sync();
		return;
	}
	transform(m.turned, ONCE, features, a.power, a.unit, false);
	for (uint t = threadX(); t < ONCE * parts; t += 256) {
		uint most = 0, n = lesser(32u, features - t % parts * 32); // by bits: so NaN is the largest
		for (uint i = 0; i < n; i++) {
			most = greater(most, floatBits(m.turned[t / parts * features + t % parts * 32 + (i + t) % n]) & 0x7fffffffu);
		}
		m.most[t] = most;
	}
	sync();
	for (uint t = threadX(); t < ONCE * m.scales; t += 256) {
		uint each = parts / m.scales, most = 0; // all parts, with a book
		for (uint i = 0; i < each; i++) {
			most = greater(most, m.most[t * each + i]);
		}
		m.units[t] = bitsFloat(most) * (1.0f / 127);
	}
	sync();
	for (uint t = threadX(); t < ONCE * octets; t += 256) {
		uint h = t / octets, d = t % octets * 8, words[2] = {};
		float by = m.units[h * m.scales + (hasBook(a.type) ? 0 : d / 32)];
		by = by > 0 ? 1 / by : 0.0f;
		for (uint i = 0; i < 8 && d + i < features; i++) {
			float q = lesser(greater(m.turned[h * features + d + i] * by, -127.0f), 127.0f);
			words[i / 4] |= (static_cast<uint>(static_cast<int>(roundEven(q))) & 0xffu) << (i % 4 * 8);
		}
		m.query[t] = uint2{words[0], words[1]};
	}
	sync();
	for (uint t = threadX(); t < ONCE * m.scales && !hasBook(a.type); t += 256) {
		int sum = 0;
		for (uint i = 0; i < 4; i++) {
			uint2 q = m.query[t * 4 + i];
			sum = dot4(q.y, 0x01010101u, dot4(q.x, 0x01010101u, sum));
		}
		m.querySums[t] = offsetBy(a.type) * sum;
	}
	sync();
}

// scoreCodes is the products of the queries with this thread's position of a run in codes.
template <uint type> DEVICE void scoreCodes(const Args &a, const Memory &m, const Book &book, uint64_t run, float *scores) {
	const uint16_t *factors = at<const uint16_t>(run + keyCodeBytes(type, a.keyFeatures));
	int sums[ONCE] = {};
	for (uint part = 0; part < m.parts; part++) {
		Lane l = keyLane<type>(run, a.keyFeatures, part, member());
#pragma unroll
		for (uint j = 0; j < 4; j++) {
			uint2 k = octet<type>(book, l, j);
#pragma unroll
			for (uint h = 0; h < ONCE; h++) {
				uint2 q = m.query[(h * m.parts + part) * 4 + j];
				sums[h] = dot4(q.y, k.y, dot4(q.x, k.x, sums[h]));
			}
		}
		if (!hasBook(type)) {
			float factor = fromHalf(load16(factors + part * 64 + member()));
#pragma unroll
			for (uint h = 0; h < ONCE; h++) {
				uint of = h * m.scales + part;
				scores[h] = fma(static_cast<float>(sums[h] - m.querySums[of]) * factor, m.units[of], scores[h]);
				sums[h] = 0;
			}
		}
	}
	if (hasBook(type)) {
		float factor = fromHalf(load16(factors + member()));
#pragma unroll
		for (uint h = 0; h < ONCE; h++) {
			scores[h] = static_cast<float>(sums[h]) * factor * m.units[h];
		}
	}
}

// plainAt is a value of a run without codes, without the scale of bytes.
DEVICE float plainAt(uint type, uint64_t run, uint i) {
	if (type == kvF32) {
		return at<const float>(run)[i];
	}
	return type == kvF16 ? fromHalf(at<const uint16_t>(run)[i]) : static_cast<float>(at<const int8_t>(run)[i]);
}

// scorePlain is scoreCodes for a run without codes, with the additions of attend_any.cu.
DEVICE void scorePlain(const Args &a, const Memory &m, uint64_t run, float *scores) {
	uint n = a.keyFeatures;
	for (uint part = 0; part < m.parts; part++) {
		float sums[ONCE];
#pragma unroll
		for (uint h = 0; h < ONCE; h++) {
			sums[h] = a.type == kvQ8 ? 0.0f : scores[h];
		}
		for (uint d = part * grouped; d < lesser((part + 1) * grouped, n); d++) {
			float k = plainAt(a.type, run, member() * n + d);
#pragma unroll
			for (uint h = 0; h < ONCE; h++) {
				sums[h] = fma(m.turned[h * n + d], k, sums[h]);
			}
		}
		float factor = a.type == kvQ8 ? at<const float>(run + 64ul * n)[member() * m.parts + part] : 1.0f;
#pragma unroll
		for (uint h = 0; h < ONCE; h++) {
			scores[h] = a.type == kvQ8 ? fma(sums[h], factor, scores[h]) : sums[h];
		}
	}
}

// score is the scores of this thread's position of a run.
DEVICE void score(const Args &a, const Memory &m, const Book &book, uint64_t run, float *scores) {
	switch (a.type) {
	case kvQ5: return scoreCodes<kvQ5>(a, m, book, run, scores);
	case kvQ4: return scoreCodes<kvQ4>(a, m, book, run, scores);
	case kvTQ4: return scoreCodes<kvTQ4>(a, m, book, run, scores);
	case kvTQ3: return scoreCodes<kvTQ3>(a, m, book, run, scores);
	}
	scorePlain(a, m, run, scores);
}

// weigh turns weights into bytes, for a run of values in codes: a thread has four positions, for one scale of a query.
DEVICE void weigh(const Args &a, const Memory &m, uint64_t run) {
	const uint16_t *factors = at<const uint16_t>(run + valueCodeBytes(a.valueType, a.valueFeatures));
	uint all = ONCE * m.valueScales * 16;
	for (uint first = 0; first < all; first += 64) { // all threads, as they add what they have
		uint t = lesser(first + member(), all - 1), quad = t % 16, of = t / 16, part = of % m.valueScales;
		float most = fromHalf(load16(factors + 64 * m.valueScales + part)), by = most > 0 ? mostWeight / most : 0.0f;
		const float *weights = m.weights + (team() * ONCE + of / m.valueScales) * 64 + quad * 4;
		uint high = 0, low = 0;
		int sum = 0;
#pragma unroll
		for (uint i = 0; i < 4; i++) {
			float w = weights[i] * (fromHalf(load16(factors + part * 64 + quad * 4 + i)) * by);
			int n = static_cast<int>(roundEven(lesser(greater(w, -mostWeight), mostWeight)));
			high |= (static_cast<uint>(n >> 7) & 0xffu) << (8 * i);
			low |= (static_cast<uint>(n) & 0x7fu) << (8 * i);
			sum += n;
		}
		sum += shuffleXor(sum, 1);
		sum += shuffleXor(sum, 2);
		sum += shuffleXor(sum, 4);
		if (first + member() < all) {
			uint *to = reinterpret_cast<uint *>(m.words + (team() * ONCE * m.valueScales + of) * 8 + quad / 2) + quad % 2;
			to[0] = high;
			to[2] = low;
			if (quad % 8 == 0) {
				m.wordSums[(team() * ONCE * m.valueScales + of) * 2 + quad / 8] = sum;
			}
		}
	}
}

// addCodes adds a run of values in codes, with the weights as bytes.
template <uint type> DEVICE void addCodes(const Args &a, const Memory &m, const Book &book, uint64_t run, Sums &s) {
	uint n = a.valueFeatures, scales = m.valueScales;
	const uint16_t *factors = at<const uint16_t>(run + valueCodeBytes(type, n)) + 64 * scales;
#pragma unroll
	for (uint e = 0; e < EACH; e++) {
		uint d = e * 64 + member(), part = hasBook(type) ? 0 : d / 32;
		if (d >= n) {
			continue;
		}
		int high[ONCE] = {}, low[ONCE] = {};
#pragma unroll
		for (uint side = 0; side < 2; side++) {
			Lane l = valueLane<type>(run, n, side, d);
#pragma unroll
			for (uint j = 0; j < 4; j++) {
				uint2 v = octet<type>(book, l, j);
#pragma unroll
				for (uint h = 0; h < ONCE; h++) {
					uint4 w = m.words[((team() * ONCE + h) * scales + part) * 8 + side * 4 + j];
					high[h] = dot4(w.y, v.y, dot4(w.x, v.x, high[h]));
					low[h] = dot4(w.w, v.y, dot4(w.z, v.x, low[h]));
				}
			}
		}
		float most = fromHalf(load16(factors + part)) * (1.0f / mostWeight);
#pragma unroll
		for (uint h = 0; h < ONCE; h++) {
			uint of = ((team() * ONCE + h) * scales + part) * 2;
			int sum = high[h] * 128 + low[h];
			if (!hasBook(type)) {
				sum -= offsetOf<type>() * (m.wordSums[of] + m.wordSums[of + 1]);
			}
			float kept = s.value[e * ONCE + h] * s.keep[h];
			s.value[e * ONCE + h] = fma(static_cast<float>(sum) * most, s.gain[h], kept);
		}
	}
}

// addPlain is addCodes for a run without codes, of which positions [low, high) are seen.
DEVICE void addPlain(const Args &a, const Memory &m, uint64_t run, uint low, uint high, Sums &s) {
	uint n = a.valueFeatures;
#pragma unroll
	for (uint e = 0; e < EACH; e++) {
		uint d = e * 64 + member();
		if (d >= n) {
			continue;
		}
		float added[ONCE] = {};
		for (uint i = low; i < high; i++) {
			float v = plainAt(a.valueType, run, i * n + d);
			v = a.valueType == kvQ8 ? v * at<const float>(run + 64ul * n)[i] : v;
#pragma unroll
			for (uint h = 0; h < ONCE; h++) {
				added[h] = fma(m.weights[(team() * ONCE + h) * 64 + i], v, added[h]);
			}
		}
#pragma unroll
		for (uint h = 0; h < ONCE; h++) {
			s.value[e * ONCE + h] = fma(added[h], s.gain[h], s.value[e * ONCE + h] * s.keep[h]);
		}
	}
}

// add adds the values of a run, of which positions [low, high) are seen.
DEVICE void add(const Args &a, const Memory &m, const Book &book, uint64_t run, uint low, uint high, Sums &s) {
	switch (a.valueType) {
	case kvQ5: return addCodes<kvQ5>(a, m, book, run, s);
	case kvQ4: return addCodes<kvQ4>(a, m, book, run, s);
	case kvTQ4: return addCodes<kvTQ4>(a, m, book, run, s);
	case kvTQ3: return addCodes<kvTQ3>(a, m, book, run, s);
	case kvTQ2: return addCodes<kvTQ2>(a, m, book, run, s);
	}
	addPlain(a, m, run, low, high, s);
}

// spread turns scores of a block's positions into weights relative to the largest, and says what these weigh beside what
// was added.
DEVICE void spread(const Memory &m, const float *scores, bool seen, Sums &s) {
#pragma unroll
	for (uint h = 0; h < ONCE; h++) {
		uint of = team() * ONCE + h;
		float top = nothing;
		for (uint i = 0; i < 8; i++) {
			top = greater(top, m.tops[of * 8 + i]);
		}
		float w = seen ? exp2(scores[h] - top) : 0.0f, sum = sum8(w), most = greater(s.best[h], top);
		m.weights[of * 64 + member()] = w;
		if (member() % 8 == 0) {
			m.totals[of * 8 + member() / 8] = sum;
		}
		s.keep[h] = exp2(s.best[h] - most);
		s.gain[h] = exp2(top - most);
		s.best[h] = most;
	}
}

// join writes the parts of a split: the sums of teams, in order.
DEVICE void join(const Args &a, const Memory &m, float *part, const Sums &s) {
	uint n = a.valueFeatures;
#pragma unroll
	for (uint h = 0; h < ONCE; h++) {
		sync();
#pragma unroll
		for (uint e = 0; e < EACH; e++) {
			if (e * 64 + member() < n) {
				m.turned[team() * n + e * 64 + member()] = s.value[e * ONCE + h];
			}
		}
		if (member() == 0) {
			m.tops[team()] = s.best[h];
			m.totals[team()] = s.total[h];
		}
		sync();
		float most = nothing, total = 0, by[teams];
		for (uint i = 0; i < teams; i++) {
			most = greater(most, m.tops[i]);
		}
		for (uint i = 0; i < teams; i++) {
			by[i] = exp2(m.tops[i] - most);
			total = fma(m.totals[i], by[i], total);
		}
		float *to = part + h * (mostSplits + 1) * (n + 4);
		for (uint d = threadX(); d < n; d += 256) {
			float v = 0;
			for (uint i = 0; i < teams; i++) {
				v = fma(m.turned[i * n + d], by[i], v);
			}
			to[d] = v;
		}
		if (threadX() == 0) {
			to[n] = most;
			to[n + 1] = total;
		}
	}
}

KERNEL(attendCoded, Args, 256) {
	uint head = blockX() * ONCE, split = blockY(), r = blockZ(), heads = gridX() * ONCE, n = a.valueFeatures;
	if (r >= rowsThere(a.count, ~0u)) {
		return;
	}
	Row row = at<const Row>(a.rows)[r];
	uint blocks = row.position / 64, length = evenLength(blocks), start = split * length;
	if (start >= 64 * blocks) {
		return;
	}
	uint to = lesser(start + length, 64 * blocks), from = greater(start, firstSeen(row, a.window, a.chunked));
	float *part = at<float>(a.parts) + ((uint64_t(r) * heads + head) * (mostSplits + 1) + split) * (n + 4);
	if (from >= to) { // what is seen of the split is open
		for (uint t = threadX(); t < ONCE * (n + 4); t += 256) {
			part[t / (n + 4) * (mostSplits + 1) * (n + 4) + t % (n + 4)] = t % (n + 4) == n ? nothing : 0.0f;
		}
		return;
	}
	Memory m = memoryOf(a);
	prepare(a, m, at<const float>(a.x) + uint64_t(r) * a.xStride + head * a.keyFeatures);
	Book keyBook = bookOf(a.type, a.keyLevels), valueBook = bookOf(a.valueType, a.valueLevels);
	uint64_t keyBytes = keyRunBytes(a.type, a.keyFeatures, grouped), valueBytes = valueRunBytes(a.valueType, n);
	Sums s = {};
#pragma unroll
	for (uint h = 0; h < ONCE; h++) {
		s.best[h] = nothing;
	}
	for (uint all = from / 256 * 256; all < to; all += 256) {
		uint first = all + 64 * team(), p = first + member();
		bool here = first + 64 > from && first < to, seen = p >= from && p < to;
		uint64_t run = 0;
		float scores[ONCE] = {};
		if (here) {
			run = uint64_t(blockOf(at<const uint>(a.tables), row, first)) * (heads / a.queries) + head / a.queries;
			score(a, m, keyBook, a.keys + run * keyBytes, scores);
#pragma unroll
			for (uint h = 0; h < ONCE; h++) {
				float v = scores[h] * a.scale;
				v = a.cap > 0 ? a.cap * hyperbolic(v / a.cap) : v;
				scores[h] = seen ? v : 2 * nothing;
				float top = greater(scores[h], shuffleXor(scores[h], 1));
				top = greater(top, shuffleXor(top, 2));
				top = greater(top, shuffleXor(top, 4));
				if (member() % 8 == 0) {
					m.tops[(team() * ONCE + h) * 8 + member() / 8] = top;
				}
			}
		}
		sync();
		if (here) {
			spread(m, scores, seen, s);
		}
		sync();
		if (here && isCoded(a.valueType)) {
			weigh(a, m, a.values + run * valueBytes);
		}
		sync();
		if (here) {
#pragma unroll
			for (uint h = 0; h < ONCE; h++) {
				float sum = 0;
				for (uint i = 0; i < 8; i++) {
					sum = sum + m.totals[(team() * ONCE + h) * 8 + i];
				}
				s.total[h] = fma(sum, s.gain[h], s.total[h] * s.keep[h]);
			}
			add(a, m, valueBook, a.values + run * valueBytes, from > first ? from - first : 0, lesser(to - first, 64u), s);
		}
	}
	join(a, m, part, s);
}
