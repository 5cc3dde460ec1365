#version 460
#extension GL_GOOGLE_include_directive : require
// One split of attention to sealed blocks: keys and values in codes, or in other types. A row's own block is open, and
// attend_any.comp's; merge_coded.comp joins all parts.
//
// A workgroup owns (AT_ONCE query heads of a KV head, split, row), each 64 threads of it a block of 64 positions at a
// time: block b is that of threads 64·(b mod TEAMS) and following. Thread: a position for the scores, then every 64th
// feature of the values. Of coded keys, queries are rotated, and rounded to bytes with one unit for the features that
// share a scale: products with levels are whole numbers. Of coded values, weights times scales are rounded to 15 bits
// with a sign, in units of the block's largest scale, as two bytes: the sums of a block are whole numbers, still rotated.
// These are exact in any order; the order of all else depends on nothing but a position. The logarithms are of base 2.
// Subgroups: at least 8 lanes.
//
// Shared memory: AT_ONCE·KEYS·5 bytes and numbers of them; COPIES KiB for the levels of each book, 1 to 32, so that lanes
// seldom meet in a bank; for each team AT_ONCE·(256 + 128·the scales of a value) bytes; TEAMS·VALUES·4 bytes.
//
// variant: attend_coded -DDOT4
// variant: attend_coded_plain
#include "lib/buffers.glsl"
#include "lib/step.glsl"
#include "lib/act.glsl"
#include "lib/dot4.glsl"
#include "lib/quantise.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 256;
layout(constant_id = 1) const uint TYPE = 5;      // of keys
layout(constant_id = 2) const uint VALUETYPE = 5; // of values
layout(constant_id = 3) const uint KEYS = 128;    // features of a key
layout(constant_id = 4) const uint VALUES = 128;  // features of a value
layout(constant_id = 5) const uint QUERIES = 4;   // heads of a KV head
layout(constant_id = 6) const uint AT_ONCE = 1;   // of these; a divisor
layout(constant_id = 7) const uint POWER = 128;   // of two that divides KEYS: see lib/turned.glsl
layout(constant_id = 8) const uint COPIES = 1;
#include "lib/cache.glsl"
#include "lib/codes.glsl"

layout(push_constant, scalar) uniform Push {
	Floats x;        // rows of query heads
	uint64_t keys;   // the layer's
	uint64_t values;
	Floats parts;    // [row][head][MAXSPLITS + 1][VALUES + 4]: values, largest score, sum
	StepRows rows;
	Words tables;
	Words count;     // rows that are there; 0: all
	uint xStride;    // in float32
	uint window;     // positions that are seen; 0: all
	float scale;     // of scores, times log2(e)
	float cap;       // scores s become cap·tanh(s/cap), cap times log2(e); 0: they stay
	uint chunked;    // 1: the window is the row's own chunk of so many positions
	float unit;      // 1/√KEYS
	uint64_t keyLevels; // of a book: the positive ones, bytes in ascending order
	uint64_t valueLevels;
};

const float NOTHING = -1e30;
const uint GROUPED = 32; // features of a key with one scale
const uint TEAMS = THREADS / 64;
const uint EACH = (VALUES + 63) / 64; // features of a thread
const uint PARTS = (KEYS + 31) / 32, OCTETS = 4 * PARTS;
const uint SCALES = TYPE >= KVTQ4 ? 1 : PARTS;
const uint VALUESCALES = VALUETYPE >= KVTQ4 ? 1 : (VALUES + 31) / 32;
const bool ALIKE = TYPE == VALUETYPE && KEYS == VALUES;
const uint BOOKS = (TYPE >= KVTQ4 ? 1 : 0) + (VALUETYPE >= KVTQ4 && !ALIKE ? 1 : 0);
const uint VALUEBOOK = TYPE >= KVTQ4 && !ALIKE ? 256 * COPIES : 0; // where it begins
const float MOST = 16383.0; // of a weight in whole units

shared float turned[AT_ONCE * KEYS > TEAMS * VALUES ? AT_ONCE * KEYS : TEAMS * VALUES]; // queries; in the end, sums of teams
#include "lib/turned.glsl"
shared uvec2 query[TYPE >= KVQ5 ? AT_ONCE * OCTETS : 1]; // in bytes: eight features
shared uint amax[TYPE >= KVQ5 ? AT_ONCE * PARTS : 1];     // of 32 features
shared float units[TYPE >= KVQ5 ? AT_ONCE * SCALES : 1];
shared int querySums[TYPE >= KVQ5 ? AT_ONCE * SCALES : 1];
shared uint books[BOOKS > 0 ? BOOKS * 256 * COPIES : 1]; // two levels by a byte of two codes
shared vec4 weights[TEAMS * AT_ONCE * 16];               // of 64 positions
shared float tops[TEAMS * AT_ONCE * 8], totals[TEAMS * AT_ONCE * 8]; // of eight positions
shared uvec4 words[VALUETYPE >= KVQ5 ? TEAMS * AT_ONCE * VALUESCALES * 8 : 1]; // high and low bytes of eight weights
shared int wordSums[VALUETYPE >= KVQ5 ? TEAMS * AT_ONCE * VALUESCALES * 2 : 1]; // of 32 weights

uint thread = gl_LocalInvocationID.x, lane = thread % 64, team = thread / 64;
float scores[AT_ONCE];
float best[AT_ONCE], total[AT_ONCE], sums[EACH * AT_ONCE]; // of this thread's features
float keep[AT_ONCE], gain[AT_ONCE];                        // factors of what was added, and of a block

// Lane is 32 codes: see lib/codes.glsl.
struct Lane {
	uint wide[4];
	uint narrow;
};

// laneAt loads a lane's words: many of a wide plane, which begins at word `at` of a run, and one of a narrow one.
Lane laneAt(uint type, uint64_t run, uint at, uint index, uint many, uint narrowAt) {
	Lane l;
	l.wide[0] = l.wide[1] = l.wide[2] = l.wide[3] = l.narrow = 0;
	if (many == 4) {
		uvec4 w = Quads(run + 4 * at).v[index];
		l.wide[0] = w.x;
		l.wide[1] = w.y;
		l.wide[2] = w.z;
		l.wide[3] = w.w;
	} else if (many == 2) {
		uvec2 w = Pairs(run + 4 * at).v[index];
		l.wide[0] = w.x;
		l.wide[1] = w.y;
	} else {
		[[unroll]] for (uint w = 0; w < 3; w++) {
			l.wide[w] = w < many ? Words(run).v[at + index * many + w] : 0;
		}
	}
	if (narrowBits(type) != 0) {
		l.narrow = Words(run).v[narrowAt];
	}
	return l;
}

Lane keyLane(uint64_t run, uint part, uint position) {
	uint at = 64 * part * codeBits(TYPE), many = wideWords(TYPE, KEYS, part);
	return laneAt(TYPE, run, at, position, many, at + 64 * many + position);
}

Lane valueLane(uint64_t run, uint side, uint d) {
	uint wide = wideBits(VALUETYPE);
	return laneAt(VALUETYPE, run, side * VALUES * wide, d, wide, (2 * wide + side) * VALUES + d);
}

// pairOf is four levels of a book, of two bytes of codes.
uint pairOf(uint book, uint two) {
	uint copy = book + thread % COPIES;
	return books[(two & 0xffu) * COPIES + copy] | books[(two >> 8 & 0xffu) * COPIES + copy] << 16;
}

// octet is eight levels of a lane as bytes; without a book, codes, which are levels plus half their number.
uvec2 octet(uint type, uint book, Lane l, uint j) {
	uint n = l.wide[wideBits(type) == 4 ? j : j / 2];
	if (wideBits(type) == 2) {
		n = n >> (4 * (j % 2)) & 0x0f0f0f0fu;
		n = (n & 0x03030303u) | (n & 0x0c0c0c0cu) << 2;
	}
	if (hasBook(type)) {
		if (narrowBits(type) != 0) {
			uint m = l.narrow >> (2 * j);
			n |= (m & 0x01010101u) << 2 | (m & 0x02020202u) << 5;
		}
		return uvec2(pairOf(book, n), pairOf(book, n >> 16));
	}
	uvec2 codes = uvec2(n, n >> 4) & 0x0f0f0f0fu;
	if (narrowBits(type) != 0) {
		codes |= (uvec2(l.narrow >> (2 * j), l.narrow >> (2 * j + 1)) & 0x01010101u) << 4;
	}
	return codes;
}

int offsetOf(uint type) { return hasBook(type) ? 0 : 1 << (codeBits(type) - 1); }

// fill writes the table of a book.
void fill(uint type, uint book, uint64_t levels) {
	for (uint i = thread; i < 256; i += THREADS) {
		uint most = (1u << codeBits(type)) - 1, low = min(i & 15u, most), high = min(i >> 4, most);
		uint two = (uint(bookLevel(type, levels, low)) & 0xffu) | (uint(bookLevel(type, levels, high)) & 0xffu) << 8;
		for (uint c = 0; c < COPIES; c++) {
			books[book + i * COPIES + c] = two;
		}
	}
}

// prepare brings the queries of a row, rotated and rounded if keys are codes, and the books. A barrier must follow.
void prepare(uint from) {
	for (uint t = thread; t < AT_ONCE * KEYS; t += THREADS) {
		float q = x.v[from + t];
		turned[t] = isCoded(TYPE) && flips(t % KEYS) ? -q : q;
	}
	if (hasBook(TYPE)) {
		fill(TYPE, 0, keyLevels);
	}
	if (hasBook(VALUETYPE) && !ALIKE) {
		fill(VALUETYPE, VALUEBOOK, valueLevels);
	}
	if (!isCoded(TYPE)) {
		return;
	}
	transform(AT_ONCE, KEYS, POWER, unit, false);
	for (uint t = thread; t < AT_ONCE * PARTS; t += THREADS) {
		uint most = 0, n = min(32, KEYS - t % PARTS * 32); // by bits: so NaN is the largest
		for (uint i = 0; i < n; i++) {
			most = max(most, floatBitsToUint(turned[t / PARTS * KEYS + t % PARTS * 32 + (i + t) % n]) & 0x7fffffffu);
		}
		amax[t] = most;
	}
	barrier();
	for (uint t = thread; t < AT_ONCE * SCALES; t += THREADS) {
		uint most = 0; // of a head's features, or of 32 of them
		for (uint i = 0; i < PARTS / SCALES; i++) {
			most = max(most, amax[t * (PARTS / SCALES) + i]);
		}
		units[t] = uintBitsToFloat(most) * per127;
	}
	barrier();
	for (uint t = thread; t < AT_ONCE * OCTETS; t += THREADS) {
		uint a = t / OCTETS, d = t % OCTETS * 8;
		float by = units[hasBook(TYPE) ? a : a * SCALES + d / 32];
		uvec2 bytes = uvec2(0);
		by = by > 0.0 ? 1.0 / by : 0.0;
		for (uint i = 0; i < min(8, max(KEYS, d) - d); i++) {
			int b = int(roundEven(clamp(turned[a * KEYS + d + i] * by, -127.0, 127.0)));
			bytes[i / 4] |= (uint(b) & 0xffu) << (i % 4 * 8);
		}
		query[t] = bytes;
	}
	barrier();
	for (uint t = thread; t < AT_ONCE * SCALES && !hasBook(TYPE); t += THREADS) {
		int sum = 0;
		for (uint i = 0; i < 4; i++) {
			uvec2 q = query[t * 4 + i];
			sum += dot4(q.x, 0x01010101u) + dot4(q.y, 0x01010101u);
		}
		querySums[t] = offsetOf(TYPE) * sum;
	}
}

// scoreCodes sets scores to products of the queries with a position of a run in codes.
void scoreCodes(uint64_t run) {
	uint64_t factors = run + keyCodeBytes(TYPE, KEYS);
	int sums[AT_ONCE];
	[[unroll]] for (uint a = 0; a < AT_ONCE; a++) {
		sums[a] = 0;
		scores[a] = 0.0;
	}
	for (uint part = 0; part < PARTS; part++) {
		Lane l = keyLane(run, part, lane);
		[[unroll]] for (uint j = 0; j < 4; j++) {
			uvec2 k = octet(TYPE, 0, l, j);
			[[unroll]] for (uint a = 0; a < AT_ONCE; a++) {
				uvec2 q = query[a * OCTETS + part * 4 + j];
				sums[a] += dot4(q.x, k.x) + dot4(q.y, k.y);
			}
		}
		if (!hasBook(TYPE)) {
			float factor = fromHalf(uint(Halves(factors).v[part * 64 + lane]));
			[[unroll]] for (uint a = 0; a < AT_ONCE; a++) {
				uint at = a * SCALES + part;
				precise float s = fma(float(sums[a] - querySums[at]) * factor, units[at], scores[a]);
				scores[a] = s;
				sums[a] = 0;
			}
		}
	}
	if (hasBook(TYPE)) {
		float factor = fromHalf(uint(Halves(factors).v[lane]));
		[[unroll]] for (uint a = 0; a < AT_ONCE; a++) {
			precise float s = float(sums[a]) * factor * units[a];
			scores[a] = s;
		}
	}
}

// key is a feature of a key without codes, without the scale of bytes.
float key(uint64_t run, uint at) {
	if (TYPE == KVF32) {
		return Floats(run).v[at];
	}
	return TYPE == KVF16 ? fromHalf(uint(Halves(run).v[at])) : float(int8_t(Bytes(run).v[at]));
}

// scorePlain is scoreCodes for a run without codes, with the additions of attend_any.comp.
void scorePlain(uint64_t run) {
	[[unroll]] for (uint a = 0; a < AT_ONCE; a++) {
		scores[a] = 0.0;
	}
	for (uint part = 0; part < PARTS; part++) {
		float sums[AT_ONCE], factor = TYPE == KVQ8 ? Floats(run + 64ul * KEYS).v[lane * PARTS + part] : 1.0;
		[[unroll]] for (uint a = 0; a < AT_ONCE; a++) {
			sums[a] = TYPE == KVQ8 ? 0.0 : scores[a];
		}
		for (uint d = part * GROUPED; d < min((part + 1) * GROUPED, KEYS); d++) {
			float k = key(run, lane * KEYS + d);
			[[unroll]] for (uint a = 0; a < AT_ONCE; a++) {
				precise float s = fma(turned[a * KEYS + d], k, sums[a]);
				sums[a] = s;
			}
		}
		[[unroll]] for (uint a = 0; a < AT_ONCE; a++) {
			precise float s = TYPE == KVQ8 ? fma(sums[a], factor, scores[a]) : sums[a];
			scores[a] = s;
		}
	}
}

// weigh turns weights into bytes, for a run of values in codes: a thread has four positions, for one scale of a query.
void weigh(uint64_t run) {
	uint64_t factors = run + valueCodeBytes(VALUETYPE, VALUES);
	for (uint t = lane; t < AT_ONCE * VALUESCALES * 16; t += 64) {
		uint quad = t % 16, of = t / 16, part = of % VALUESCALES;
		float most = fromHalf(uint(Halves(factors + 128 * VALUESCALES).v[part]));
		float by = most > 0.0 ? MOST / most : 0.0;
		uvec2 h = Pairs(factors).v[part * 16 + quad];
		vec4 s = vec4(unpackHalf2x16(h.x), unpackHalf2x16(h.y)) * by;
		ivec4 w = ivec4(roundEven(clamp(weights[(team * AT_ONCE + of / VALUESCALES) * 16 + quad] * s, -MOST, MOST)));
		uvec4 high = uvec4(w >> 7) & 0xffu, low = uvec4(w) & 0x7fu;
		uint at = (team * AT_ONCE * VALUESCALES + of) * 8 + quad / 2;
		words[at][quad % 2] = high.x | high.y << 8 | high.z << 16 | high.w << 24;
		words[at][2 + quad % 2] = low.x | low.y << 8 | low.z << 16 | low.w << 24;
		if (!hasBook(VALUETYPE)) {
			int sum = w.x + w.y + w.z + w.w;
			sum += subgroupShuffleXor(sum, 1);
			sum += subgroupShuffleXor(sum, 2);
			sum += subgroupShuffleXor(sum, 4);
			if (quad % 8 == 0) {
				wordSums[at / 4] = sum;
			}
		}
	}
}

// addCodes adds a run of values in codes, with the weights as bytes, to sums.
void addCodes(uint64_t run) {
	uint64_t factors = run + valueCodeBytes(VALUETYPE, VALUES) + 128 * VALUESCALES;
	[[unroll]] for (uint e = 0; e < EACH; e++) {
		uint d = e * 64 + lane, part = hasBook(VALUETYPE) ? 0 : d / 32;
		if (d >= VALUES) {
			continue;
		}
		int high[AT_ONCE], low[AT_ONCE];
		[[unroll]] for (uint a = 0; a < AT_ONCE; a++) {
			high[a] = low[a] = 0;
		}
		[[unroll]] for (uint side = 0; side < 2; side++) {
			Lane l = valueLane(run, side, d);
			[[unroll]] for (uint j = 0; j < 4; j++) {
				uvec2 v = octet(VALUETYPE, VALUEBOOK, l, j);
				[[unroll]] for (uint a = 0; a < AT_ONCE; a++) {
					uvec4 w = words[((team * AT_ONCE + a) * VALUESCALES + part) * 8 + side * 4 + j];
					high[a] += dot4(w.x, v.x) + dot4(w.y, v.y);
					low[a] += dot4(w.z, v.x) + dot4(w.w, v.y);
				}
			}
		}
		float most = fromHalf(uint(Halves(factors).v[part])) * (1.0 / MOST);
		[[unroll]] for (uint a = 0; a < AT_ONCE; a++) {
			int sum = high[a] * 128 + low[a];
			if (!hasBook(VALUETYPE)) {
				uint at = ((team * AT_ONCE + a) * VALUESCALES + part) * 2;
				sum -= offsetOf(VALUETYPE) * (wordSums[at] + wordSums[at + 1]);
			}
			precise float kept = sums[e * AT_ONCE + a] * keep[a], s = fma(float(sum) * most, gain[a], kept);
			sums[e * AT_ONCE + a] = s;
		}
	}
}

float value(uint64_t run, uint position, uint d) {
	uint at = position * VALUES + d;
	if (VALUETYPE == KVF32) {
		return Floats(run).v[at];
	}
	if (VALUETYPE == KVF16) {
		return fromHalf(uint(Halves(run).v[at]));
	}
	return float(int8_t(Bytes(run).v[at])) * Floats(run + 64ul * VALUES).v[position];
}

// addPlain is addCodes for a run without codes, of which positions [low, high) are seen.
void addPlain(uint64_t run, uint low, uint high) {
	[[unroll]] for (uint e = 0; e < EACH; e++) {
		uint d = e * 64 + lane;
		if (d >= VALUES) {
			continue;
		}
		float added[AT_ONCE];
		[[unroll]] for (uint a = 0; a < AT_ONCE; a++) {
			added[a] = 0.0;
		}
		for (uint i = low; i < high; i++) {
			float v = value(run, i, d);
			[[unroll]] for (uint a = 0; a < AT_ONCE; a++) {
				precise float s = fma(weights[(team * AT_ONCE + a) * 16 + i / 4][i % 4], v, added[a]);
				added[a] = s;
			}
		}
		[[unroll]] for (uint a = 0; a < AT_ONCE; a++) {
			precise float kept = sums[e * AT_ONCE + a] * keep[a], s = fma(added[a], gain[a], kept);
			sums[e * AT_ONCE + a] = s;
		}
	}
}

// join writes the parts of a split: the sums of teams, in order.
void join(uint at) {
	[[unroll]] for (uint a = 0; a < AT_ONCE; a++) {
		barrier();
		[[unroll]] for (uint e = 0; e < EACH; e++) {
			uint d = e * 64 + lane;
			if (d < VALUES) {
				turned[team * VALUES + d] = sums[e * AT_ONCE + a];
			}
		}
		if (lane == 0) {
			tops[team] = best[a];
			totals[team] = total[a];
		}
		barrier();
		float most = NOTHING;
		for (uint i = 0; i < TEAMS; i++) {
			most = max(most, tops[i]);
		}
		uint to = at + a * (MAXSPLITS + 1) * (VALUES + 4);
		for (uint d = thread; d < VALUES; d += THREADS) {
			precise float s = 0.0;
			for (uint i = 0; i < TEAMS; i++) {
				s = fma(turned[i * VALUES + d], exp2(tops[i] - most), s);
			}
			parts.v[to + d] = s;
		}
		if (thread == 0) {
			precise float t = 0.0;
			for (uint i = 0; i < TEAMS; i++) {
				t = fma(totals[i], exp2(tops[i] - most), t);
			}
			parts.v[to + VALUES] = most;
			parts.v[to + VALUES + 1] = t;
		}
	}
}

void main() {
	uint head = gl_WorkGroupID.x * AT_ONCE, split = gl_WorkGroupID.y, r = gl_WorkGroupID.z;
	uint heads = gl_NumWorkGroups.x * AT_ONCE, kvHeads = heads / QUERIES;
	if (uint64_t(count) != 0 && r >= count.v[0]) {
		return;
	}
	Row row = rows.v[r];
	uint length = splitLength(row.position), begin = split * length;
	if (begin > row.position) {
		return;
	}
	uint to = min(begin + length, row.position / 64 * 64);
	uint from = max(begin, firstSeen(row, window, chunked));
	uint at = ((r * heads + head) * (MAXSPLITS + 1) + split) * (VALUES + 4);
	if (from >= to) { // what is seen of the split is open
		for (uint t = thread; t < AT_ONCE * (VALUES + 4); t += THREADS) {
			uint d = t % (VALUES + 4);
			parts.v[at + t / (VALUES + 4) * (MAXSPLITS + 1) * (VALUES + 4) + d] = d == VALUES ? NOTHING : 0.0;
		}
		return;
	}
	[[unroll]] for (uint a = 0; a < AT_ONCE; a++) {
		best[a] = NOTHING;
		total[a] = 0.0;
	}
	[[unroll]] for (uint e = 0; e < EACH * AT_ONCE; e++) {
		sums[e] = 0.0;
	}
	prepare(r * xStride + head * KEYS);
	barrier();
	uint64_t keyBytes = isCoded(TYPE) ? codedKeyBytes(TYPE, KEYS) : runBytes(TYPE, KEYS, GROUPED);
	uint64_t valueBytes = isCoded(VALUETYPE) ? codedValueBytes(VALUETYPE, VALUES) : runBytes(VALUETYPE, VALUES, VALUES);
	for (uint all = from / THREADS * THREADS; all < to; all += THREADS) {
		uint first = all + 64 * team, p = first + lane;
		bool here = first + 64 > from && first < to, seen = p >= from && p < to;
		uint64_t run = 0;
		if (here) {
			run = uint64_t(block(tables, row, first)) * kvHeads + head / QUERIES;
			if (isCoded(TYPE)) {
				scoreCodes(keys + run * keyBytes);
			} else {
				scorePlain(keys + run * keyBytes);
			}
			[[unroll]] for (uint a = 0; a < AT_ONCE; a++) {
				precise float s = scores[a] * scale;
				s = cap > 0.0 ? cap * hyperbolic(s / cap) : s;
				scores[a] = seen ? s : 2.0 * NOTHING;
				float m = max(scores[a], subgroupShuffleXor(scores[a], 1));
				m = max(m, subgroupShuffleXor(m, 2));
				m = max(m, subgroupShuffleXor(m, 4));
				if (lane % 8 == 0) {
					tops[(team * AT_ONCE + a) * 8 + lane / 8] = m;
				}
			}
		}
		barrier();
		if (here) {
			[[unroll]] for (uint a = 0; a < AT_ONCE; a++) {
				float top = NOTHING;
				[[unroll]] for (uint i = 0; i < 8; i++) {
					top = max(top, tops[(team * AT_ONCE + a) * 8 + i]);
				}
				float w = seen ? exp2(scores[a] - top) : 0.0, sum = sum8(w), most = max(best[a], top);
				weights[(team * AT_ONCE + a) * 16 + lane / 4][lane % 4] = w;
				if (lane % 8 == 0) {
					totals[(team * AT_ONCE + a) * 8 + lane / 8] = sum;
				}
				keep[a] = exp2(best[a] - most);
				gain[a] = exp2(top - most);
				best[a] = most;
			}
		}
		barrier();
		if (here && isCoded(VALUETYPE)) {
			weigh(values + run * valueBytes);
		}
		barrier();
		if (here) {
			[[unroll]] for (uint a = 0; a < AT_ONCE; a++) {
				precise float sum = 0.0;
				[[unroll]] for (uint i = 0; i < 8; i++) {
					sum = sum + totals[(team * AT_ONCE + a) * 8 + i];
				}
				precise float kept = total[a] * keep[a], t = fma(sum, gain[a], kept);
				total[a] = t;
			}
			if (isCoded(VALUETYPE)) {
				addCodes(values + run * valueBytes);
			} else {
				addPlain(values + run * valueBytes, from > first ? from - first : 0, min(to - first, 64));
			}
		}
	}
	join(at);
}
