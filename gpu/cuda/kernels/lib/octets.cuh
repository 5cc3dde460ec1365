// How a warp reads 64 keys, or values, of whole numbers as left operands of mmaS8: bytes, and codes of few bits, which become
// bytes. Rows of operands are positions of keys, and features of values.
#pragma once
#include "codes.cuh"
#include "join.cuh"

constexpr uint tiles = 4; // of 16 positions

DEVICE uint group() { return lane() / 4; }
DEVICE uint fourth() { return lane() % 4; }

// Raw is a lane's words of eight rows as they lie in memory: of codes, of a wide plane and of a narrow one.
struct Raw { uint2 row[2 * tiles]; };

// Keys is a part of 64 keys with the scales of its rows.
struct Keys : Raw { float factor[2 * tiles]; };

// askFactors loads the scales of a part of 64 keys: of rows group() and group() + 8 of each tile.
template <uint type> DEVICE void askFactors(Keys &r, uint64_t run, uint features, uint part) {
	if (type == kvQ8) {
		const float *from = at<const float>(run + 64ul * features) + group() * (features / 32) + part;
#pragma unroll
		for (uint i = 0; i < 2 * tiles; i++, from += features / 4) {
			r.factor[i] = *from;
		}
		return;
	}
	const uint16_t *from = at<const uint16_t>(run + keyCodeBytes(type, features)) + part * 64 + group();
#pragma unroll
	for (uint i = 0; i < 2 * tiles; i++) {
		r.factor[i] = fromHalf(load16(from + 8 * i));
	}
}

// askKeys loads this lane's octet of a part of 32 features of the same rows.
template <uint type> DEVICE void askKeys(Keys &r, uint64_t run, uint features, uint part) {
	if (type == kvQ8) {
		const uint *from = at<const uint>(run + group() * features + 32 * part) + 2 * fourth();
#pragma unroll
		for (uint i = 0; i < 2 * tiles; i++, from += 2 * features) {
			r.row[i] = load64(from);
		}
	} else {
		constexpr uint wide = wideBits(type);
		const uint *from = at<const uint>(run) + 64 * part * codeBits(type);
		const uint *words = from + group() * wide + (wide == 4 ? fourth() : fourth() / 2), *narrow = from + 64 * wide + group();
#pragma unroll
		for (uint i = 0; i < 2 * tiles; i++) {
			r.row[i] = {load32(words + 8 * i * wide), narrowBits(type) != 0 ? load32(narrow + 8 * i) : 0};
		}
	}
	if (!hasBook(type)) {
		askFactors<type>(r, run, features, part);
	}
}

// bytesOf is eight levels, or codes, of an octet as it lies in memory: of those of a lane the one that fourth() says.
template <uint type> DEVICE uint2 bytesOf(const Book &b, uint2 raw) {
	if (type == kvQ8) {
		return raw;
	}
	return octetOf<type>(b, wideBits(type) == 4 ? raw.x : raw.x >> (4 * (fourth() % 2)), raw.y >> (2 * fourth()));
}

// askValues loads this lane's words of 32 features of 64 values. Of codes: an octet of positions for features group(), and
// + 8, + 16 and + 24, of both sides. Of bytes: features 4·group() and following, of eight positions of a side.
template <uint type> DEVICE void askValues(Raw &r, uint64_t run, uint features, uint from) {
#pragma unroll
	for (uint side = 0; side < 2; side++) {
		if (type == kvQ8) { // positions 2·i and the next
			const uint *row = at<const uint>(run + (side * 32 + 8 * fourth()) * features + from) + group();
#pragma unroll
			for (uint i = 0; i < 4; i++, row += features / 2) {
				r.row[2 * i + side] = {load32(row), load32(row + features / 4)};
			}
			continue;
		}
		constexpr uint wide = wideBits(type);
		const uint *codes = at<const uint>(run) + (side * features + from + group()) * wide + (wide == 4 ? fourth() : fourth() / 2);
		const uint *narrow = at<const uint>(run) + (2 * wide + side) * features + from + group();
#pragma unroll
		for (uint i = 0; i < 4; i++) {
			r.row[2 * i + side] = {load32(codes + 8 * i * wide), narrowBits(type) != 0 ? load32(narrow + 8 * i) : 0};
		}
	}
}

// turnBytes makes of four words, of four positions, four of four positions of one feature.
DEVICE void turnBytes(uint (&v)[4]) {
	uint a = permute(v[0], v[1], 0x5140), b = permute(v[0], v[1], 0x7362), c = permute(v[2], v[3], 0x5140), d = permute(v[2], v[3], 0x7362);
	v[0] = permute(a, c, 0x5410), v[1] = permute(a, c, 0x7632), v[2] = permute(b, d, 0x5410), v[3] = permute(b, d, 0x7632);
}

// rowsOf are the operands of two tiles of 16 features by 32 positions of a side.
template <uint type> DEVICE void rowsOf(uint (&rows)[2][4], const Book &book, const Raw &r, uint side) {
	if (type == kvQ8) {
		uint low[4] = {r.row[side].x, r.row[side].y, r.row[2 + side].x, r.row[2 + side].y};
		uint high[4] = {r.row[4 + side].x, r.row[4 + side].y, r.row[6 + side].x, r.row[6 + side].y};
		turnBytes(low);
		turnBytes(high);
#pragma unroll
		for (uint t = 0; t < 2; t++) {
			rows[t][0] = low[2 * t], rows[t][1] = low[2 * t + 1], rows[t][2] = high[2 * t], rows[t][3] = high[2 * t + 1];
		}
		return;
	}
#pragma unroll
	for (uint t = 0; t < 2; t++) {
		uint2 x = bytesOf<type>(book, r.row[4 * t + side]), y = bytesOf<type>(book, r.row[4 * t + 2 + side]);
		rows[t][0] = x.x, rows[t][1] = y.x, rows[t][2] = x.y, rows[t][3] = y.y;
	}
}

// featureOf is the feature of a row of a tile: as rowsOf has them.
DEVICE uint featureOf(uint type, uint tile, uint second) {
	return type == kvQ8 ? tile / 2 * 32 + 4 * group() + tile % 2 * 2 + second : tile * 16 + second * 8 + group();
}

// largest is the largest of a column's rows, sum what they are together: all lanes of it have it.
DEVICE float largest(float v) {
	v = maximum(v, shuffleXor(v, 4));
	v = maximum(v, shuffleXor(v, 8));
	return maximum(v, shuffleXor(v, 16));
}
DEVICE float sum(float v) {
	v = v + shuffleXor(v, 4);
	v = v + shuffleXor(v, 8);
	return v + shuffleXor(v, 16);
}

// Runs are those of a KV head's keys and values: their sizes, and where those of a block of positions lie.
struct Runs {
	uint64_t keyBytes, valueBytes;
	uint heads, head;
};

// ahead asks for the keys and values of a run, which are read soon.
DEVICE void ahead(uint64_t keys, uint64_t values, const Runs &r, uint64_t run) {
	for (uint i = lane() * 128; i < r.keyBytes; i += warpLanes * 128) {
		prefetch(at<const uint>(keys + run * r.keyBytes + i));
	}
	for (uint i = lane() * 128; i < r.valueBytes; i += warpLanes * 128) {
		prefetch(at<const uint>(values + run * r.valueBytes + i));
	}
}
