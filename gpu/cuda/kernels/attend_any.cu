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
#include "lib/codes.cuh"

constexpr float nothing = -1e30f;
constexpr uint grouped = 32; // features of a key with one scale
constexpr uint wide = 64;    // features of a key in bytes that are read at once
constexpr uint ahead = 8;    // positions whose values are read before they are added: memory is far away

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

// plain is the number of a byte with a sign whose highest bit is turned over: a conversion takes four times as long.
DEVICE float plain(uint turned, uint i) { return __builtin_bit_cast(float, permute(turned, 0x4B000000u, 0x7540u + i)) - 8388736.0f; }

// whole is a query times signed bytes of a key with their scales: some 64 at once, which lie at a multiple of 16.
DEVICE float whole(const float *query, uint64_t bytes, const float *scales, uint features) {
	float s = 0;
	for (uint d = 0; d < features; d += wide) {
		uint4 read[wide / 16];
#pragma unroll
		for (uint i = 0; i < wide / 16; i++) {
			read[i] = at<const uint4>(bytes + d)[i];
		}
#pragma unroll
		for (uint g = 0; g < wide / grouped; g++) {
			float part = 0;
#pragma unroll
			for (uint i = 0; i < grouped; i++) {
				uint4 four = read[(g * grouped + i) / 16];
				const uint words[4] = {four.x, four.y, four.z, four.w};
				part = fma(query[d + g * grouped + i], plain(words[i / 4 % 4] ^ 0x80808080u, i % 4), part);
			}
			s = fma(part, scales[d / grouped + g], s);
		}
	}
	return s;
}

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
		if (a.keyFeatures % wide == 0) {
			return whole(query, run + from, scales, a.keyFeatures);
		}
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

// read reads a feature of the values of positions of a run from first on, the last one again behind it.
DEVICE void read(float (&v)[ahead], const Args &a, uint64_t run, uint first, uint last, uint d) {
	if (a.valueType == kvQ8) {
#pragma unroll
		for (uint i = 0; i < ahead; i++) {
			uint position = lesser(first + i, last);
			v[i] = static_cast<float>(at<const int8_t>(run)[position * a.valueFeatures + d]) *
				at<const float>(run + 64ul * a.valueFeatures)[position];
		}
		return;
	}
#pragma unroll
	for (uint i = 0; i < ahead; i++) {
		uint from = lesser(first + i, last) * a.valueFeatures + d;
		v[i] = a.valueType == kvF32 ? at<const float>(run)[from] : fromHalf(at<const uint16_t>(run)[from]);
	}
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
	uint mine = lesser(threadX(), a.valueFeatures - 1); // threads behind the last feature add to what nobody reads
	for (uint first = low; first < high; first += ahead) {
		float v[ahead];
		read(v, a, values, first, high - 1, mine);
#pragma unroll
		for (uint i = 0; i < ahead; i++) {
#pragma unroll
			for (uint h = 0; h < ONCE && first + i < high; h++) {
				float weight = weights[h * 64 + first + i];
				m.total[h] = m.total[h] + weight;
				m.value[h] = fma(weight, v[i], m.value[h]);
			}
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
