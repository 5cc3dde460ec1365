// Seals blocks of keys, or of values, whose last position is a row of the step: 64 rows of halves, rotated, become codes
// and scales, as internal/kvcode finds them, but that sums of squares are of float32. Blocks that a format keeps as they
// are are copied.
//
// A block of threads owns a row's KV head: it takes 8 positions at a time, 32 threads each. Memory: 8·features floats, and
// 96 words for every 32 features, and 32. Grid: KV heads, rows.
//
// variant: seal
#include "lib/codes.cuh"
#include "lib/turned.cuh"

struct Args {
	uint64_t open; // the layer's
	uint64_t kept;
	uint64_t rows;
	uint64_t recent; // the same rows in the class of open blocks
	uint64_t tables;
	uint64_t count;  // rows that are there; 0: all
	uint64_t levels; // of a book: the positive ones, bytes in ascending order
	uint openType;
	uint type;
	uint features;   // 1024 at most
	uint grouped;    // features with one scale, in types without codes
	uint ofValues;   // 1: values; 0: keys
	uint power;      // of two that divides features: see lib/turned.cuh
	float unit;      // of a book: what a level of 1 is, of a row whose squares have the mean 1
	float scale;     // 1/√features
};

constexpr uint eight = 8, tries = 10, mostFeatures = 1024;

// Shared is the memory of a block.
struct Shared {
	float *turned;  // eight rows
	float *found;   // how good each try is; of a book, sums of eight lanes
	float *inverse; // [row][part]: levels a value
	uint *halves;   // [row][part]: scales
	int *squares;   // of levels, of eight lanes
};

DEVICE uint partsOf(const Args &a) { return (a.features + 31) / 32; }

// nearest is the level nearest to y, ties to even.
DEVICE float nearest(const Args &a, float y) {
	float low = -static_cast<float>(1u << (codeBits(a.type) - 1)), high = -low - 1;
	return y < low ? low : y > high ? high : roundEven(y);
}

// inverseOf is the inverse of the scale that a try begins with: tries shrink the range that the largest value spans, of
// both signs, as levels are not symmetrical.
DEVICE float inverseOf(const Args &a, const float *x, uint n, uint t) {
	float most = 0;
	for (uint i = 0; i < n; i++) {
		most = greater(most, magnitude(x[i]));
	}
	float inv = (static_cast<float>(1u << (codeBits(a.type) - 1)) + 0.5f - static_cast<float>(t / 2) * 0.5f) / most;
	return t % 2 == 0 ? -inv : inv;
}

// products are Σx·y and Σy·y of values and the levels that a try gives them.
DEVICE float2 products(const Args &a, const float *x, uint n, float inv) {
	float2 sums = {0, 0};
	for (uint i = 0; i < n; i++) {
		float y = nearest(a, x[i] * inv);
		sums.x = sums.x + x[i] * y;
		sums.y = sums.y + y * y;
	}
	return sums;
}

// scaleParts finds the scales of rows of even levels, one for 32 features: the best of some tries, then one that
// restores the length.
DEVICE void scaleParts(const Args &a, const Shared &s) {
	uint parts = partsOf(a);
	for (uint t = threadX(); t < eight * parts * tries; t += 256) {
		uint part = t / tries % parts, n = lesser(32u, a.features - part * 32);
		const float *x = s.turned + t / tries / parts * a.features + part * 32;
		float2 p = products(a, x, n, inverseOf(a, x, n, t % tries));
		s.found[t] = p.y > 0 ? p.x * p.x / p.y : -1.0f;
	}
	sync();
	for (uint t = threadX(); t < eight * parts; t += 256) {
		uint part = t % parts, n = lesser(32u, a.features - part * 32), best = tries;
		const float *x = s.turned + t / parts * a.features + part * 32;
		float most = -1, scale = 0;
		for (uint i = 0; i < tries; i++) {
			if (s.found[t * tries + i] > most) {
				most = s.found[t * tries + i];
				best = i;
			}
		}
		if (best < tries) {
			float2 p = products(a, x, n, inverseOf(a, x, n, best));
			scale = p.x / p.y;
		}
		uint half = toHalf(scale);
		float inv = (half & 0x7fffu) != 0 ? 1 / fromHalf(half) : 0.0f, square = 0, kept = 0;
		for (uint i = 0; i < n; i++) {
			float y = nearest(a, x[i] * inv);
			square = square + x[i] * x[i];
			kept = kept + y * y;
		}
		if (kept > 0) {
			float length = squareRoot(square / kept);
			half = toHalf(scale < 0 ? -length : length);
		}
		s.inverse[t] = inv;
		s.halves[t] = half;
	}
	sync();
}

// codeOf is the code of a feature of one of the eight rows.
DEVICE uint codeOf(const Args &a, const Shared &s, uint row, uint d) {
	float x = s.turned[row * a.features + d], by = s.inverse[row * partsOf(a) + (hasBook(a.type) ? 0 : d / 32)], y = x * by;
	if (!hasBook(a.type)) {
		return static_cast<uint>(static_cast<int>(nearest(a, y)) + (1 << (codeBits(a.type) - 1)));
	}
	uint code = 0;
	for (uint step = 1u << (codeBits(a.type) - 1); step > 0; step /= 2) {
		int both = bookLevel(a.type, a.levels, code + step - 1) + bookLevel(a.type, a.levels, code + step);
		code += y > 0.5f * static_cast<float>(both) ? step : 0;
	}
	return code;
}

// scaleRows finds the scales of rows whose levels are those of a book: each restores the row's length.
DEVICE void scaleRows(const Args &a, const Shared &s) {
	uint row = threadX() / 32, parts = partsOf(a);
	float square = 0;
	for (uint d = lane(); d < a.features; d += 32) {
		float x = s.turned[row * a.features + d];
		square = square + x * x;
	}
	square = sum8(square);
	if (threadX() % 8 == 0) {
		s.found[threadX() / 8] = square;
	}
	sync();
	float whole = s.found[row * 4] + s.found[row * 4 + 1] + s.found[row * 4 + 2] + s.found[row * 4 + 3];
	if (lane() == 0) {
		s.inverse[row * parts] = whole > 0 ? a.unit / squareRoot(whole / static_cast<float>(a.features)) : 0.0f;
	}
	sync();
	int kept = 0;
	for (uint d = lane(); d < a.features; d += 32) {
		int level = bookLevel(a.type, a.levels, codeOf(a, s, row, d));
		kept += level * level;
	}
	kept += shuffleXor(kept, 1);
	kept += shuffleXor(kept, 2);
	kept += shuffleXor(kept, 4);
	if (threadX() % 8 == 0) {
		s.squares[threadX() / 8] = kept;
	}
	sync();
	if (lane() == 0) {
		int all = s.squares[row * 4] + s.squares[row * 4 + 1] + s.squares[row * 4 + 2] + s.squares[row * 4 + 3];
		s.halves[row * parts] = toHalf(squareRoot(whole / static_cast<float>(all)));
	}
	sync();
}

// wideAt and narrowAt are where code i of octet j has its bits in a word.
DEVICE uint wideAt(uint type, uint j, uint i) {
	uint b = hasBook(type) ? i / 2 : i % 4, h = hasBook(type) ? i % 2 : i / 4;
	return wideBits(type) == 4 ? 8 * b + 4 * h : 8 * b + 4 * (j % 2) + 2 * h;
}

DEVICE uint narrowAt(uint type, uint j, uint i) {
	uint b = hasBook(type) ? i / 2 : i % 4, h = hasBook(type) ? i % 2 : i / 4;
	return 8 * b + 2 * j + h;
}

// putKeys writes the codes of eight positions, from one on: a thread owns a part of 32 features of one.
DEVICE void putKeys(const Args &a, const Shared &s, uint64_t run, uint first) {
	uint parts = partsOf(a), wide = wideBits(a.type);
	for (uint t = threadX(); t < eight * parts; t += 256) {
		uint row = t / parts, part = t % parts, words[4] = {}, narrow = 0, n = lesser(32u, a.features - 32 * part);
		for (uint d = 0; d < n; d++) {
			uint c = codeOf(a, s, row, 32 * part + d), j = d / 8, i = d % 8;
			words[wide == 4 ? j : j / 2] |= (c & ((1u << wide) - 1)) << wideAt(a.type, j, i);
			narrow |= (c >> wide) << narrowAt(a.type, j, i);
		}
		uint many = wideWords(a.type, a.features, part), position = first + row;
		uint *to = at<uint>(run) + 64 * part * codeBits(a.type);
		for (uint w = 0; w < many; w++) {
			to[position * many + w] = words[w];
		}
		if (narrowBits(a.type) != 0) {
			to[64 * many + position] = narrow;
		}
	}
}

// Held is the bits of features' words of which octets are to come.
struct Held { uint wide[mostFeatures / 256], narrow[mostFeatures / 256]; };

// putValues writes the codes of eight positions: a thread owns features.
DEVICE void putValues(const Args &a, const Shared &s, Held &held, uint64_t run, uint first) {
	uint side = first / 32, j = first % 32 / 8, wide = wideBits(a.type), n = a.features;
#pragma unroll
	for (uint e = 0; e < mostFeatures / 256; e++) {
		uint d = e * 256 + threadX(), word = 0, narrow = 0;
		if (d >= n) {
			continue;
		}
		for (uint i = 0; i < 8; i++) {
			uint c = codeOf(a, s, i, d);
			word |= (c & ((1u << wide) - 1)) << wideAt(a.type, j, i);
			narrow |= (c >> wide) << narrowAt(a.type, j, i);
		}
		held.wide[e] = (wide == 2 && j % 2 == 1 ? held.wide[e] : 0) | word;
		held.narrow[e] = (j > 0 ? held.narrow[e] : 0) | narrow;
		if (wide == 4 || j % 2 == 1) {
			at<uint>(run)[(side * n + d) * wide + (wide == 4 ? j : j / 2)] = held.wide[e];
		}
		if (narrowBits(a.type) != 0 && j == 3) {
			at<uint>(run)[(2 * wide + side) * n + d] = held.narrow[e];
		}
	}
}

// sealRun writes a run of codes from one of halves.
DEVICE void sealRun(const Args &a, const Shared &s, uint64_t run, const uint16_t *from) {
	uint scales = codeScales(a.type, a.features), most = 0, parts = partsOf(a);
	uint16_t *kept = at<uint16_t>(run + (a.ofValues != 0 ? valueCodeBytes(a.type, a.features) :
		keyCodeBytes(a.type, a.features)));
	Held held = {};
	for (uint first = 0; first < 64; first += eight) {
		sync();
		for (uint t = threadX(); t < eight * a.features; t += 256) {
			float x = fromHalf(from[first * a.features + t]);
			s.turned[t] = flips(t % a.features) ? -x : x;
		}
		transform(s.turned, eight, a.features, a.power, a.scale, false);
		if (hasBook(a.type)) {
			scaleRows(a, s);
		} else {
			scaleParts(a, s);
		}
		for (uint t = threadX(); t < eight * scales; t += 256) {
			kept[t % scales * 64 + first + t / scales] = static_cast<uint16_t>(s.halves[t / scales * parts + t % scales]);
		}
		for (uint i = 0; i < eight && threadX() < scales; i++) {
			most = greater(most, s.halves[i * parts + threadX()] & 0x7fffu);
		}
		if (a.ofValues != 0) {
			putValues(a, s, held, run, first);
		} else {
			putKeys(a, s, run, first);
		}
	}
	if (a.ofValues != 0 && threadX() < scales) {
		kept[64 * scales + threadX()] = static_cast<uint16_t>(most);
	}
}

KERNEL(seal, Args, 256) {
	uint head = blockX(), r = blockY(), heads = gridX();
	if (r >= rowsThere(a.count, ~0u)) {
		return;
	}
	Row row = at<const Row>(a.rows)[r];
	if (row.position % 64 != 63) {
		return;
	}
	const uint *tables = at<const uint>(a.tables);
	uint64_t from = uint64_t(blockOf(tables, at<const Row>(a.recent)[r], row.position)) * heads + head;
	uint64_t to = uint64_t(blockOf(tables, row, row.position)) * heads + head;
	from = a.open + from * runBytes(a.openType, a.features, a.grouped);
	to = a.kept + to * (a.ofValues != 0 ? valueRunBytes(a.type, a.features) :
		keyRunBytes(a.type, a.features, a.grouped));
	if (!isCoded(a.type)) {
		for (uint i = threadX(); i < runBytes(a.type, a.features, a.grouped) / 4; i += 256) {
			at<uint>(to)[i] = at<const uint>(from)[i];
		}
		return;
	}
	Shared s;
	uint parts = partsOf(a);
	s.turned = dynamicShared<float>();
	s.found = s.turned + eight * a.features;
	s.inverse = s.found + eight * parts * tries;
	s.halves = reinterpret_cast<uint *>(s.inverse + eight * parts);
	s.squares = reinterpret_cast<int *>(s.halves + eight * parts);
	sealRun(a, s, to, at<const uint16_t>(from));
}
