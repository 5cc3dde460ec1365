// Rotates queries and keys by their positions, and stores keys and values in the cache: for steps in which a sequence has
// several rows. A row of x is its query heads, then key heads, then value heads; queries stay where they are.
//
// A block owns a row's head; its memory is the head. Grid: heads of all three kinds, rows.
//
// variant: rope
#include "lib/own.cuh"

struct Args {
	uint64_t x;      // float32 rows
	uint64_t keys;   // the layer's
	uint64_t values;
	uint64_t rows;
	uint64_t tables;
	uint64_t angles; // [row][dims/2] cosine and sine
	uint64_t count;  // rows that are there; 0: all
	uint xStride;    // in float32
	uint features;
	uint dims; // that rotate; 0: none
	uint interleaved;
	uint heads;
	uint kvHeads;
};

KERNEL(rope, Args, 64) {
	uint head = blockX(), r = blockY();
	if (r >= rowsThere(a.count, ~0u)) {
		return;
	}
	Row row = at<const Row>(a.rows)[r];
	float *from = at<float>(a.x) + uint64_t(r) * a.xStride + head * a.features, *held = dynamicShared<float>();
	bool rotates = head < a.heads + a.kvHeads;
	Turn turn = {at<const float>(a.angles) + uint64_t(r) * a.dims, rotates ? a.dims : 0, a.interleaved};
	Head own = {from, nullptr, 1, false};
	for (uint d = threadX(); d < a.features; d += 64) {
		held[d] = turnedAt(own, turn, d);
	}
	sync(); // queries are written where they were read
	uint kv = (head - a.heads) % a.kvHeads;
	uint64_t to = cacheAt(blockOf(at<const uint>(a.tables), row, row.position), a.kvHeads, kv, row.position, a.features);
	uint16_t *cache = at<uint16_t>(rotates ? a.keys : a.values);
	for (uint d = threadX(); d < a.features; d += 64) {
		if (head < a.heads) {
			from[d] = held[d];
		} else {
			cache[to + d] = toHalf(held[d]);
		}
	}
}
