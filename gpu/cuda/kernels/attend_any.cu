// Splits of attention for heads of any size, caches of any type, keys and values of different sizes: what attend.cu is
// too special for. merge_any.cu joins splits.
//
// A block owns (ONCE query heads of a KV head, split, row): keys and values are read once for all of them. A thread has
// a position of 64 and every so many heads for the scores, then a feature of the values for all heads. Order of addition,
// whatever ONCE and the number of threads are: features one after the other; positions one after the other. The
// logarithms are of base 2.
//
// Memory: ONCE·(keys + 64) floats. Threads: a multiple of 64, as many as a value has features, 512 at most. Grid: groups
// of query heads, splits, rows.
//
// variant: attend_any_1 -DONCE=1
// variant: attend_any_2 -DONCE=2
// variant: attend_any_4 -DONCE=4
// variant: attend_any_8 -DONCE=8
#include "lib/act.cuh"
#include "lib/cache.cuh"

constexpr float nothing = -1e30f;
constexpr uint grouped = 32; // features of a key with one scale

struct Args {
	uint64_t x;      // rows of query heads
	uint64_t keys;   // the layer's
	uint64_t values;
	uint64_t parts;  // [row][head][mostSplits + open][valueFeatures + 4]: values, largest score, sum
	uint64_t rows;
	uint64_t tables;
	uint64_t count;  // rows that are there; 0: all
	uint xStride;    // in float32
	uint window;     // positions that are seen; 0: all
	float scale;     // of scores, times log2(e)
	float cap;       // scores s become cap·tanh(s/cap), cap times log2(e); 0: they stay
	uint chunked;    // 1: the window is the row's own chunk of so many positions
	uint type;       // of keys
	uint keyFeatures;
	uint valueFeatures;
	uint queries;    // heads of a KV head
	uint valueType;
	uint open;       // 1: a row's own block alone, which is the part behind the splits
	uint pad;
};

// dot is a query times the key of a position of a run.
DEVICE float dot(const Args &a, const float *query, uint64_t run, uint position) {
	uint from = position * a.keyFeatures;
	float s = 0;
	if (a.type == kvF32) {
		for (uint d = 0; d < a.keyFeatures; d++) {
			s = fma(query[d], at<const float>(run)[from + d], s);
		}
	} else if (a.type == kvF16) {
		for (uint d = 0; d < a.keyFeatures; d++) {
			s = fma(query[d], fromHalf(at<const uint16_t>(run)[from + d]), s);
		}
	} else {
		uint n = scalesOf(a.keyFeatures, grouped);
		const float *scales = at<const float>(run + 64ul * a.keyFeatures) + position * n;
		for (uint g = 0; g < n; g++) {
			float part = 0;
			for (uint d = g * grouped; d < lesser((g + 1) * grouped, a.keyFeatures); d++) {
				part = fma(query[d], static_cast<float>(at<const int8_t>(run)[from + d]), part);
			}
			s = fma(part, scales[g], s);
		}
	}
	return s;
}

// valueAt is a feature of the value of a position of a run.
DEVICE float valueAt(const Args &a, uint64_t run, uint position, uint d) {
	uint from = position * a.valueFeatures + d;
	if (a.valueType == kvF32) {
		return at<const float>(run)[from];
	}
	if (a.valueType == kvF16) {
		return fromHalf(at<const uint16_t>(run)[from]);
	}
	return static_cast<float>(at<const int8_t>(run)[from]) * at<const float>(run + 64ul * a.valueFeatures)[position];
}

// Sums are what a thread has of all heads: of its feature, and the rest for all.
struct Sums { float best[ONCE], total[ONCE], value[ONCE]; };

// take adds the positions of a run from low to, but not including, high.
DEVICE void take(Sums &m, const Args &a, const float *query, float *weights, uint64_t block, uint low, uint high) {
	uint64_t keys = a.keys + block * runBytes(a.type, a.keyFeatures, grouped);
	uint64_t values = a.values + block * runBytes(a.valueType, a.valueFeatures, a.valueFeatures);
	uint position = threadX() % 64;
	for (uint h = threadX() / 64; h < ONCE; h += blockThreads() / 64) {
		float s = 2 * nothing;
		if (position >= low && position < high) {
			s = dot(a, query + h * a.keyFeatures, keys, position) * a.scale;
			s = a.cap > 0 ? a.cap * hyperbolic(s / a.cap) : s;
		}
		weights[h * 64 + position] = s;
	}
	sync();
	float kept[ONCE];
#pragma unroll
	for (uint h = 0; h < ONCE; h++) {
		float most = m.best[h];
		for (uint i = low; i < high; i++) {
			most = greater(most, weights[h * 64 + i]);
		}
		kept[h] = exp2(m.best[h] - most);
		m.best[h] = most;
	}
	sync();
	for (uint i = threadX(); i < ONCE * 64; i += blockThreads()) {
		// Each thread knows the largest of all heads, but only by numbers that are known when it is compiled.
		float most = 0;
#pragma unroll
		for (uint h = 0; h < ONCE; h++) {
			most = i / 64 == h ? m.best[h] : most;
		}
		weights[i] = exp2(weights[i] - most);
	}
	sync();
#pragma unroll
	for (uint h = 0; h < ONCE; h++) {
		m.total[h] = m.total[h] * kept[h];
		m.value[h] = m.value[h] * kept[h];
	}
	bool mine = threadX() < a.valueFeatures;
	for (uint i = low; i < high; i++) {
		float v = mine ? valueAt(a, values, i, threadX()) : 0.0f;
#pragma unroll
		for (uint h = 0; h < ONCE; h++) {
			float weight = weights[h * 64 + i];
			m.total[h] = m.total[h] + weight;
			m.value[h] = fma(weight, v, m.value[h]);
		}
	}
	sync();
}

KERNEL(attendAny, Args, 512) {
	uint head = blockX() * ONCE, split = blockY(), r = blockZ(), heads = gridX() * ONCE, kvHeads = heads / a.queries;
	if (r >= rowsThere(a.count, ~0u)) {
		return;
	}
	Row row = at<const Row>(a.rows)[r];
	uint length = splitLength(row.position), start = split * length;
	if (a.open != 0) {
		length = 64;
		start = row.position / 64 * 64;
		split = mostSplits;
	}
	if (start > row.position) {
		return;
	}
	uint to = lesser(start + length, row.position + 1), from = greater(start, firstSeen(row, a.window, a.chunked));
	float *query = dynamicShared<float>(), *weights = query + ONCE * a.keyFeatures;
	for (uint d = threadX(); d < ONCE * a.keyFeatures; d += blockThreads()) {
		query[d] = at<const float>(a.x)[uint64_t(r) * a.xStride + head * a.keyFeatures + d];
	}
	Sums m;
#pragma unroll
	for (uint h = 0; h < ONCE; h++) {
		m.best[h] = nothing;
		m.total[h] = m.value[h] = 0;
	}
	sync();
	for (uint first = from / 64 * 64; first < to; first += 64) {
		uint64_t block = uint64_t(blockOf(at<const uint>(a.tables), row, first)) * kvHeads + head / a.queries;
		take(m, a, query, weights, block, from > first ? from - first : 0, lesser(to - first, 64u));
	}
#pragma unroll
	for (uint h = 0; h < ONCE; h++) {
		uint64_t of = (uint64_t(r) * heads + head + h) * (mostSplits + a.open) + split;
		float *part = at<float>(a.parts) + of * (a.valueFeatures + 4);
		if (threadX() < a.valueFeatures) {
			part[threadX()] = m.value[h];
		}
		if (threadX() == 0) {
			part[a.valueFeatures] = m.best[h];
			part[a.valueFeatures + 1] = m.total[h];
		}
	}
}
