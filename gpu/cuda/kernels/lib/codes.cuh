// Keys and values in codes of 2 to 5 bits, of sealed blocks; how internal/kvcode defines them. They lie in memory as
// gpu/vulkan/shaders/lib/codes.glsl says: a lane has 32 codes in a wide plane, of 4 or 2 bits, and with 3 and 5 bits in a
// narrow one, of one bit. Code i of octet j is at bit 8b+4h of word j of a plane of 4 bits, at 8b+4(j%2)+2h of word j/2 of
// one of 2 bits, at 8b+2j+h of the narrow word, where b, h are i/2, i%2 for codes of a book, else i%4, i/4.
#pragma once
#include "cache.cuh"

constexpr uint kvQ5 = 4, kvQ4 = 5, kvTQ4 = 6, kvTQ3 = 7, kvTQ2 = 8; // as gpu/kernel numbers them

DEVICE constexpr bool isCoded(uint type) { return type >= kvQ5; }
DEVICE constexpr bool hasBook(uint type) { return type >= kvTQ4; }
DEVICE constexpr uint wideBits(uint type) { return type >= kvTQ3 ? 2 : 4; }
DEVICE constexpr uint narrowBits(uint type) { return type == kvQ5 || type == kvTQ3 ? 1 : 0; }
DEVICE constexpr uint codeBits(uint type) { return wideBits(type) + narrowBits(type); }

// codeScales is how many scales a row of so many features has.
DEVICE uint codeScales(uint type, uint features) { return hasBook(type) ? 1 : (features + 31) / 32; }

// wideWords is a key's words of the wide plane of up to 32 features, from 32·part on.
DEVICE uint wideWords(uint type, uint features, uint part) {
	return (lesser(features - 32 * part, 32u) * wideBits(type) + 31) / 32;
}

// keyCodeBytes is the memory of the codes of a run of keys.
DEVICE uint keyCodeBytes(uint type, uint features) {
	uint part = (features - 1) / 32; // the last
	return 256 * (part * codeBits(type) + wideWords(type, features, part) + narrowBits(type));
}

DEVICE uint64_t keyRunBytes(uint type, uint features, uint grouped) {
	if (!isCoded(type)) {
		return runBytes(type, features, grouped);
	}
	return keyCodeBytes(type, features) + 128 * codeScales(type, features);
}

DEVICE uint valueCodeBytes(uint type, uint features) { return 8 * codeBits(type) * features; }

DEVICE uint64_t valueRunBytes(uint type, uint features) {
	if (!isCoded(type)) {
		return runBytes(type, features, features);
	}
	return (valueCodeBytes(type, features) + 130 * codeScales(type, features) + 15) & ~15u;
}

// bookLevel is the level of a code of a book, whose positive levels are bytes in ascending order.
DEVICE int bookLevel(uint type, uint64_t levels, uint code) {
	uint n = 1u << (codeBits(type) - 1), m = code >= n ? code - n : n - 1 - code;
	int level = static_cast<int>(levels >> (8 * m) & 0xff);
	return code >= n ? level : -level;
}

// permute is four bytes of eight, by the low three bits of the four low nibbles of a selector.
DEVICE uint permute(uint low, uint high, uint selector) {
#ifdef SLUICE_HOST
	uint64_t both = low | uint64_t(high) << 32;
	uint v = 0;
	for (uint i = 0; i < 4; i++) {
		v |= static_cast<uint>(both >> (8 * (selector >> (4 * i) & 7)) & 0xff) << (8 * i);
	}
	return v;
#else
	uint v;
	asm("prmt.b32 %0, %1, %2, %3;" : "=r"(v) : "r"(low), "r"(high), "r"(selector & 0x7777u));
	return v;
#endif
}

// Book is the levels of all codes, as bytes.
struct Book { uint words[4]; };

DEVICE Book bookOf(uint type, uint64_t levels) {
	Book b = {};
	if (!hasBook(type)) {
		return b;
	}
#pragma unroll
	for (uint i = 0; i < 16; i++) {
		int level = bookLevel(type, levels, i & ((1u << codeBits(type)) - 1));
		b.words[i / 4] |= (static_cast<uint>(level) & 0xffu) << (8 * (i % 4));
	}
	return b;
}

// Lane is 32 codes.
struct Lane { uint wide[4], narrow; };

// laneAt loads a lane's words: many of a wide plane, and one of a narrow one.
template <uint type> DEVICE Lane laneAt(const uint *wide, uint index, uint many, const uint *narrow) {
	Lane l = {};
	if (many == 4) {
		uint4 w = load128(wide + 4 * index);
		l.wide[0] = w.x, l.wide[1] = w.y, l.wide[2] = w.z, l.wide[3] = w.w;
	} else if (many == 2) {
		uint2 w = load64(wide + 2 * index);
		l.wide[0] = w.x, l.wide[1] = w.y;
	} else {
#pragma unroll
		for (uint w = 0; w < 3; w++) {
			l.wide[w] = w < many ? load32(wide + index * many + w) : 0;
		}
	}
	if (narrowBits(type) != 0) {
		l.narrow = load32(narrow);
	}
	return l;
}

template <uint type> DEVICE Lane keyLane(uint64_t run, uint features, uint part, uint position) {
	const uint *from = at<const uint>(run) + 64 * part * codeBits(type);
	uint many = part < features / 32 ? wideBits(type) : wideWords(type, features, part);
	return laneAt<type>(from, position, many, from + 64 * many + position);
}

template <uint type> DEVICE Lane valueLane(uint64_t run, uint features, uint side, uint d) {
	const uint *from = at<const uint>(run);
	constexpr uint wide = wideBits(type);
	return laneAt<type>(from + side * features * wide, d, wide, from + (2 * wide + side) * features + d);
}

// levelsOf is four levels of a book by four codes.
template <uint type> DEVICE uint levelsOf(const Book &b, uint codes) {
	if (type == kvTQ4) {
		uint low = permute(b.words[0], b.words[1], codes), high = permute(b.words[2], b.words[3], codes);
		return permute(low, high, 0x3210u | (codes & 0x8888u) >> 1);
	}
	return permute(b.words[0], b.words[1], codes);
}

// octetOf is eight levels as bytes, of a word of each plane that begins with theirs; without a book, codes, which are levels
// plus half their number.
template <uint type> DEVICE uint2 octetOf(const Book &b, uint n, uint narrow) {
	if (wideBits(type) == 2) {
		n = (n & 0x03030303u) | (n & 0x0c0c0c0cu) << 2;
	}
	if (hasBook(type)) {
		if (narrowBits(type) != 0) {
			n |= (narrow & 0x01010101u) << 2 | (narrow & 0x02020202u) << 5;
		}
		return uint2{levelsOf<type>(b, n), levelsOf<type>(b, n >> 16)};
	}
	uint2 codes = {n & 0x0f0f0f0fu, n >> 4 & 0x0f0f0f0fu};
	if (narrowBits(type) != 0) {
		codes.x |= (narrow & 0x01010101u) << 4;
		codes.y |= (narrow >> 1 & 0x01010101u) << 4;
	}
	return codes;
}

// octet is octetOf of an octet of a lane.
template <uint type> DEVICE uint2 octet(const Book &b, const Lane &l, uint j) {
	return octetOf<type>(b, wideBits(type) == 4 ? l.wide[j] : l.wide[j / 2] >> (4 * (j % 2)), l.narrow >> (2 * j));
}

template <uint type> DEVICE int offsetOf() { return hasBook(type) ? 0 : 1 << (codeBits(type) - 1); }
