#version 460
#extension GL_GOOGLE_include_directive : require
// Seals blocks of keys, or of values, whose last position is a row of the step: 64 rows of halves, rotated, become codes
// and scales, as internal/kvcode finds them, but that sums of squares are of float32. Blocks that a format keeps as they
// are are copied.
//
// A workgroup owns a row's KV head: it takes 8 positions at a time, 32 threads each. Grid: KV heads, rows. Shared
// memory: kernel.SealShared. Subgroups: at least 8 lanes.
//
// variant: seal
#include "lib/buffers.glsl"
#include "lib/step.glsl"
#include "lib/quantise.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint OPENTYPE = 1;
layout(constant_id = 1) const uint TYPE = 5;
layout(constant_id = 2) const uint FEATURES = 128;
layout(constant_id = 3) const uint GROUPED = 32;  // features with one scale, in types without codes
layout(constant_id = 4) const uint OFVALUES = 0;  // 1: values; 0: keys
layout(constant_id = 5) const uint POWER = 128;   // of two that divides FEATURES: see lib/turned.glsl
#include "lib/cache.glsl"
#include "lib/codes.glsl"

layout(push_constant, scalar) uniform Push {
	uint64_t open; // the layer's
	uint64_t kept;
	StepRows rows;
	StepRows recent; // the same rows in the class of open blocks
	Words tables;
	Words count;     // rows that are there; 0: all
	uint64_t levels; // of a book: the positive ones, bytes in ascending order
	float unit;      // of a book: what a level of 1 is, of a row whose squares have the mean 1
	float scale;     // 1/√FEATURES
};

const uint THREADS = 256, ROWS = 8;
const uint PARTS = (FEATURES + 31) / 32, TRIES = 10;
const uint EACH = (FEATURES + 255) / 256;

shared float turned[ROWS * FEATURES];
#include "lib/turned.glsl"
shared float found[ROWS * PARTS * TRIES]; // how good each try is; of a book, sums of eight lanes
shared float inverse[ROWS * PARTS];       // levels a value
shared uint halves[ROWS * PARTS];         // scales
shared int squares[ROWS * 4];             // of levels, of eight lanes

uint thread = gl_LocalInvocationID.x;

// nearest is the level nearest to y, ties to even.
float nearest(float y) {
	float low = -float(1u << (codeBits(TYPE) - 1)), high = -low - 1.0;
	return y < low ? low : y > high ? high : roundEven(y);
}

// largest is the largest magnitude of a part of a row.
float largest(uint at, uint n) {
	float most = 0.0;
	for (uint i = 0; i < n; i++) {
		most = max(most, abs(turned[at + i]));
	}
	return most;
}

// inverseOf is the inverse of the scale that a try begins with: tries shrink the range that the largest value spans, of
// both signs, as levels are not symmetrical.
float inverseOf(uint at, uint n, uint t) {
	float most = largest(at, n), high = float(1u << (codeBits(TYPE) - 1));
	float x = divided(high + 0.5 - float(t / 2) * 0.5, most);
	return t % 2 == 0 ? -x : x;
}

// products are Σx·y and Σy·y of values and the levels that a try gives them.
vec2 products(uint at, uint n, float inv) {
	precise vec2 sums = vec2(0);
	for (uint i = 0; i < n; i++) {
		precise float x = turned[at + i], scaled = x * inv, y = nearest(scaled);
		precise vec2 more = vec2(x * y, y * y);
		sums = sums + more;
	}
	return sums;
}

// scaleParts finds the scales of rows of even levels, one for 32 features: the best of some tries, then one that
// restores the length.
void scaleParts() {
	for (uint t = thread; t < ROWS * PARTS * TRIES; t += THREADS) {
		uint part = t / TRIES, at = part / PARTS * FEATURES + part % PARTS * 32, n = min(32, FEATURES - part % PARTS * 32);
		vec2 p = products(at, n, inverseOf(at, n, t % TRIES));
		precise float square = p.x * p.x;
		float good = p.y > 0.0 ? divided(square, p.y) : -1.0;
		found[t] = good;
	}
	barrier();
	for (uint part = thread; part < ROWS * PARTS; part += THREADS) {
		uint at = part / PARTS * FEATURES + part % PARTS * 32, n = min(32, FEATURES - part % PARTS * 32), best = TRIES;
		float most = -1.0;
		for (uint t = 0; t < TRIES; t++) {
			if (found[part * TRIES + t] > most) {
				most = found[part * TRIES + t];
				best = t;
			}
		}
		float scale = 0.0;
		if (best < TRIES) {
			vec2 p = products(at, n, inverseOf(at, n, best));
			scale = divided(p.x, p.y);
		}
		uint bits = packHalf2x16(vec2(scale, 0)) & 0xffffu;
		float inv = (bits & 0x7fffu) != 0 ? divided(1.0, fromHalf(bits)) : 0.0;
		precise vec2 sums = vec2(0);
		for (uint i = 0; i < n; i++) {
			precise float x = turned[at + i], scaled = x * inv, y = nearest(scaled);
			precise vec2 more = vec2(x * x, y * y);
			sums = sums + more;
		}
		if (sums.y > 0.0) {
			float length = sqrt(divided(sums.x, sums.y));
			bits = packHalf2x16(vec2(scale < 0.0 ? -length : length, 0)) & 0xffffu;
		}
		inverse[part] = inv;
		halves[part] = bits;
	}
	barrier();
}

// code is the code of a value of row `row` of the eight.
uint code(uint row, uint d) {
	float x = turned[row * FEATURES + d];
	if (!hasBook(TYPE)) {
		precise float scaled = x * inverse[row * PARTS + d / 32];
		return uint(int(nearest(scaled)) + (1 << (codeBits(TYPE) - 1)));
	}
	precise float y = x * inverse[row * PARTS];
	uint at = 0;
	for (uint by = 1u << (codeBits(TYPE) - 1); by > 0; by /= 2) {
		float border = 0.5 * float(bookLevel(TYPE, levels, at + by - 1) + bookLevel(TYPE, levels, at + by));
		at += y > border ? by : 0;
	}
	return at;
}

// scaleRows finds the scales of rows whose levels are those of a book: each restores the row's length.
void scaleRows() {
	uint row = thread / 32;
	precise float square = 0.0;
	for (uint d = thread % 32; d < FEATURES; d += 32) {
		precise float x = turned[row * FEATURES + d];
		square = square + x * x;
	}
	square = sum8(square);
	if (thread % 8 == 0) {
		found[thread / 8] = square;
	}
	barrier();
	precise float whole = found[row * 4] + found[row * 4 + 1] + found[row * 4 + 2] + found[row * 4 + 3];
	if (thread % 32 == 0) {
		inverse[row * PARTS] = whole > 0.0 ? unit / sqrt(whole / float(FEATURES)) : 0.0;
	}
	barrier();
	int kept = 0;
	for (uint d = thread % 32; d < FEATURES; d += 32) {
		int level = bookLevel(TYPE, levels, code(row, d));
		kept += level * level;
	}
	kept += subgroupShuffleXor(kept, 1);
	kept += subgroupShuffleXor(kept, 2);
	kept += subgroupShuffleXor(kept, 4);
	if (thread % 8 == 0) {
		squares[thread / 8] = kept;
	}
	barrier();
	if (thread % 32 == 0) {
		int all = squares[row * 4] + squares[row * 4 + 1] + squares[row * 4 + 2] + squares[row * 4 + 3];
		halves[row * PARTS] = packHalf2x16(vec2(sqrt(whole / float(all)), 0)) & 0xffffu;
	}
	barrier();
}

// wideAt and narrowAt are where code i of octet j has its bits in a word.
uint wideAt(uint j, uint i) {
	uint b = hasBook(TYPE) ? i / 2 : i % 4, h = hasBook(TYPE) ? i % 2 : i / 4;
	return wideBits(TYPE) == 4 ? 8 * b + 4 * h : 8 * b + 4 * (j % 2) + 2 * h;
}

uint narrowAt(uint j, uint i) {
	uint b = hasBook(TYPE) ? i / 2 : i % 4, h = hasBook(TYPE) ? i % 2 : i / 4;
	return 8 * b + 2 * j + h;
}

// putKeys writes the codes of eight positions, from one on: a thread owns a part of 32 features of one.
void putKeys(uint64_t run, uint first) {
	for (uint t = thread; t < ROWS * PARTS; t += THREADS) {
		uint row = t / PARTS, part = t % PARTS, words[4], narrow = 0, wide = wideBits(TYPE);
		words[0] = words[1] = words[2] = words[3] = 0;
		uint n = min(32, FEATURES - 32 * part);
		for (uint d = 0; d < n; d++) {
			uint c = code(row, 32 * part + d), j = d / 8, i = d % 8;
			words[wide == 4 ? j : j / 2] |= (c & ((1u << wide) - 1)) << wideAt(j, i);
			narrow |= (c >> wide) << narrowAt(j, i);
		}
		uint many = wideWords(TYPE, FEATURES, part), at = 64 * part * codeBits(TYPE), position = first + row;
		for (uint w = 0; w < many; w++) {
			Words(run).v[at + position * many + w] = words[w];
		}
		if (narrowBits(TYPE) != 0) {
			Words(run).v[at + 64 * many + position] = narrow;
		}
	}
}

uint wideHeld[EACH], narrowHeld[EACH]; // of features' words of which octets are to come

// putValues writes the codes of eight positions: a thread owns features.
void putValues(uint64_t run, uint first) {
	uint side = first / 32, j = first % 32 / 8, wide = wideBits(TYPE);
	[[unroll]] for (uint e = 0; e < EACH; e++) {
		uint d = e * THREADS + thread, word = 0, narrow = 0;
		if (d >= FEATURES) {
			continue;
		}
		for (uint i = 0; i < 8; i++) {
			uint c = code(i, d);
			word |= (c & ((1u << wide) - 1)) << wideAt(j, i);
			narrow |= (c >> wide) << narrowAt(j, i);
		}
		wideHeld[e] = (wide == 2 && j % 2 == 1 ? wideHeld[e] : 0) | word;
		narrowHeld[e] = (j > 0 ? narrowHeld[e] : 0) | narrow;
		if (wide == 4 || j % 2 == 1) {
			Words(run).v[(side * FEATURES + d) * wide + (wide == 4 ? j : j / 2)] = wideHeld[e];
		}
		if (narrowBits(TYPE) != 0 && j == 3) {
			Words(run).v[2 * FEATURES * wide + side * FEATURES + d] = narrowHeld[e];
		}
	}
}

// copy takes a run as it is.
void copy(uint64_t to, uint64_t from) {
	uint words = uint(runBytes(TYPE, FEATURES, GROUPED) / 4);
	for (uint i = thread; i < words; i += THREADS) {
		Words(to).v[i] = Words(from).v[i];
	}
}

void main() {
	uint head = gl_WorkGroupID.x, r = gl_WorkGroupID.y, heads = gl_NumWorkGroups.x;
	if (uint64_t(count) != 0 && r >= count.v[0]) {
		return;
	}
	Row row = rows.v[r];
	if (row.position % 64 != 63) {
		return;
	}
	uint64_t from = open + runBytes(OPENTYPE, FEATURES, GROUPED) * (block(tables, recent.v[r], row.position) * heads + head);
	uint64_t to = uint64_t(block(tables, row, row.position) * heads + head);
	if (!isCoded(TYPE)) {
		copy(kept + to * runBytes(TYPE, FEATURES, GROUPED), from);
		return;
	}
	uint64_t each = OFVALUES != 0 ? codedValueBytes(TYPE, FEATURES) : codedKeyBytes(TYPE, FEATURES);
	uint64_t run = kept + to * each;
	uint scales = codeScales(TYPE, FEATURES), codes = OFVALUES != 0 ? valueCodeBytes(TYPE, FEATURES) :
		keyCodeBytes(TYPE, FEATURES), most = 0;
	for (uint first = 0; first < 64; first += ROWS) {
		barrier();
		for (uint t = thread; t < ROWS * FEATURES; t += THREADS) {
			float x = fromHalf(uint(Halves(from).v[first * FEATURES + t]));
			turned[t] = flips(t % FEATURES) ? -x : x;
		}
		transform(ROWS, FEATURES, POWER, scale, false);
		if (hasBook(TYPE)) {
			scaleRows();
		} else {
			scaleParts();
		}
		for (uint t = thread; t < ROWS * scales; t += THREADS) {
			uint i = t / scales, part = t % scales;
			Halves(run + codes).v[part * 64 + first + i] = uint16_t(halves[i * PARTS + part]);
		}
		if (thread < scales) {
			for (uint i = 0; i < ROWS; i++) {
				most = max(most, halves[i * PARTS + thread] & 0x7fffu);
			}
		}
		if (OFVALUES != 0) {
			putValues(run, first);
		} else {
			putKeys(run, first);
		}
	}
	if (OFVALUES != 0 && thread < scales) {
		Halves(run + codes + 128 * scales).v[thread] = uint16_t(most);
	}
}
