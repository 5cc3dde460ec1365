// Packs rows as files have them (internal/quant) into tiles (lib/tile.cuh). Rows of SPLIT, which no file has, come as what
// tiles have of a row, one tile after the other. BF16 is packed as F16.
//
// A block, which is a warp, owns a tile of 32 rows × 256 k: a lane has a row. Grid: tiles of k, tiles of rows.
//
// variant: pack_q4_0 -DQ4_0
// variant: pack_q8_0 -DQ8_0
// variant: pack_q4_k -DQ4_K
// variant: pack_q6_k -DQ6_K
// variant: pack_f16 -DF16
// variant: pack_f32 -DF32
// variant: pack_split -DSPLIT
// variant: pack_split_low -DSPLIT_LOW
#include "lib/tile.cuh"

struct Args {
	uint64_t file, tiles; // whole rows
	uint rows;            // in file; the last tile's other rows become zeros
	uint rowBytes;        // of a row in file
	uint first;           // tile of rows that the first 32 go to
	uint step;            // to the tile of the next 32
};

// Row is where a lane's row begins, at an even address, and the tile that it goes to.
struct Row {
	const uint16_t *from;
	uint4 *tile;
	bool there;
};

DEVICE uint wordAt(const Row &r, uint at) { return r.from[at / 2] | static_cast<uint>(r.from[at / 2 + 1]) << 16; }

DEVICE void put(const Row &r, uint i, uint4 v) { r.tile[i * 32 + lane()] = v; }

#if defined(Q4_0) || defined(Q8_0)
DEVICE void pack(const Row &r, const Args &a) {
	constexpr uint size = quantWords * 2 + 2; // of a block
	uint scales[4] = {};
	for (uint b = 0; b < 8; b++) {
		uint from = (blockX() * 8 + b) * size;
		bool there = r.there && from + size <= a.rowBytes;
		for (uint i = 0; i < quantWords / 8; i++) {
			uint4 q = {};
			if (there) {
				uint w = from + 2 + i * 16;
				q = {wordAt(r, w), wordAt(r, w + 4), wordAt(r, w + 8), wordAt(r, w + 12)};
			}
			put(r, b * (quantWords / 8) + i, q);
		}
		if (there) {
			scales[b / 2] |= static_cast<uint>(r.from[from / 2]) << b % 2 * 16;
		}
	}
	put(r, quantWords, {scales[0], scales[1], scales[2], scales[3]});
}
#elif defined(F16) || defined(F32)
DEVICE void pack(const Row &r, const Args &a) {
	uint first = blockX() * (quantWords * 16), end = r.there ? a.rowBytes : 0;
	for (uint i = 0; i < quantWords; i++) {
		uint q[4];
		for (uint j = 0; j < 4; j++) {
			uint at = first + i * 16 + j * 4;
			q[j] = at + 4 <= end ? wordAt(r, at) : at + 2 <= end ? r.from[at / 2] : 0;
		}
		put(r, i, {q[0], q[1], q[2], q[3]});
	}
}
#elif defined(SPLIT)
DEVICE void pack(const Row &r, const Args &) {
	uint at = blockX() * (tileWords / 2); // a 32nd of a tile, in bytes
	for (uint i = 0; i < tileWords / 32; i++, at += 16) {
		uint4 q = {};
		if (r.there) {
			q = {wordAt(r, at), wordAt(r, at + 4), wordAt(r, at + 8), wordAt(r, at + 12)};
		}
		put(r, i, q);
	}
}
#else
// nibbles are the low or high nibbles of two runs of 16 bytes as one run in the order of Q4_0.
DEVICE uint4 nibbles(const Row &r, uint from, bool upper) {
	uint q[4] = {};
	for (uint i = 0; i < 4 && r.there; i++) {
		uint x = wordAt(r, from + i * 4), y = wordAt(r, from + 16 + i * 4);
		q[i] = upper ? (x >> 4 & 0x0f0f0f0fu) | (y & 0xf0f0f0f0u) : (x & 0x0f0f0f0fu) | (y & 0x0f0f0f0fu) << 4;
	}
	return {q[0], q[1], q[2], q[3]};
}

DEVICE uint byteAt(const Row &r, uint at) { return r.from[at / 2] >> at % 2 * 8 & 0xffu; }

#if defined(Q4_K)
DEVICE void pack(const Row &r, const Args &) {
	uint at = blockX() * 144, scales[4] = {};
	for (uint b = 0; b < 8; b++) {
		put(r, b, nibbles(r, at + 16 + b / 2 * 32, b % 2 == 1));
		if (r.there) {
			uint s = at + 4 + b;
			uint scale = b < 4 ? byteAt(r, s) & 63u : (byteAt(r, s + 4) & 15u) | byteAt(r, s - 4) >> 6 << 4;
			uint low = b < 4 ? byteAt(r, s + 4) & 63u : byteAt(r, s + 4) >> 4 | byteAt(r, s) >> 6 << 4;
			scales[b / 4] |= scale << b % 4 * 8;
			scales[2 + b / 4] |= low << b % 4 * 8;
		}
	}
	put(r, 8, {scales[0], scales[1], scales[2], scales[3]});
	reinterpret_cast<uint *>(r.tile + 9 * 32)[lane()] = r.there ? wordAt(r, at) : 0;
}
#else
DEVICE void pack(const Row &r, const Args &) {
	uint at = blockX() * 210, scales[4] = {};
	for (uint b = 0; b < 8; b++) {
		uint high = at + 128 + b / 4 * 32, shift = b % 4 * 2, pairs[2] = {};
		put(r, b, nibbles(r, at + b / 4 * 64 + b % 2 * 32, b % 4 >= 2));
		for (uint i = 0; i < 4 && r.there; i++) {
			pairs[i / 2] |= (wordAt(r, high + i * 4) >> shift & 0x03030303u) << i % 2 * 2;
			pairs[i / 2] |= (wordAt(r, high + 16 + i * 4) >> shift & 0x03030303u) << (i % 2 * 2 + 4);
		}
		reinterpret_cast<uint2 *>(r.tile + 8 * 32)[b * 32 + lane()] = {pairs[0], pairs[1]};
	}
	for (uint i = 0; i < 4 && r.there; i++) {
		scales[i] = wordAt(r, at + 192 + i * 4);
	}
	put(r, 12, {scales[0], scales[1], scales[2], scales[3]});
	reinterpret_cast<uint16_t *>(r.tile + 13 * 32)[lane()] = r.there ? r.from[(at + 208) / 2] : 0;
}
#endif
#endif

KERNEL(pack, Args, 32) {
	uint row = blockY() * 32 + lane(), index = (a.first + blockY() * a.step) * gridX() + blockX();
	pack({at<const uint16_t>(a.file + uint64_t(row) * a.rowBytes), at<uint4>(a.tiles) + uint64_t(index) * tileWords,
		row < a.rows}, a);
}
