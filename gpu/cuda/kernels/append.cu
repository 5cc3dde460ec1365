// Appends rows of keys, or of values, to a cache of any type.
//
// A block owns a row's head. Grid: KV heads, rows.
//
// variant: append
#include "lib/cache.cuh"

struct Args {
	uint64_t x;
	uint64_t cache; // the layer's
	uint64_t rows;
	uint64_t tables;
	uint64_t count; // rows that are there; 0: all
	uint type;      // of the cache
	uint features;  // of a head
	uint grouped;   // features with one scale
	uint xStride;   // in float32
};

constexpr float tiny = 0x1p-100f;

// quantiseGroup keeps features that share a scale as bytes. Magnitudes are compared by their bits: NaN is the largest.
DEVICE void quantiseGroup(const float *x, int8_t *to, uint n, float *scale) {
	uint most = 0;
	for (uint d = 0; d < n; d++) {
		most = greater(most, floatBits(x[d]) & 0x7fffffffu);
	}
	float amax = bitsFloat(most), factor = 0, unit = 0;
	if (!(amax < tiny)) {
		factor = 127.0f / amax;
		unit = 1.0f / factor;
	}
	for (uint d = 0; d < n; d++) {
		to[d] = static_cast<int8_t>(static_cast<int>(roundEven(x[d] * factor)));
	}
	*scale = unit;
}

KERNEL(append, Args, 64) {
	uint head = blockX(), r = blockY(), heads = gridX();
	if (r >= rowsThere(a.count, ~0u)) {
		return;
	}
	Row row = at<const Row>(a.rows)[r];
	uint64_t block = blockOf(at<const uint>(a.tables), row, row.position);
	uint64_t run = a.cache + runBytes(a.type, a.features, a.grouped) * (block * heads + head);
	const float *x = at<const float>(a.x) + uint64_t(r) * a.xStride + head * a.features;
	uint position = row.position % 64, to = position * a.features, n = scalesOf(a.features, a.grouped);
	if (a.type == kvQ8) {
		float *scales = at<float>(run + 64ul * a.features) + position * n;
		for (uint g = threadX(); g < n; g += 64) {
			uint first = a.grouped * g;
			quantiseGroup(x + first, at<int8_t>(run) + to + first, lesser(a.grouped, a.features - first), scales + g);
		}
		return;
	}
	for (uint d = threadX(); d < a.features; d += 64) {
		if (a.type == kvF32) {
			at<float>(run)[to + d] = x[d];
		} else {
			at<uint16_t>(run)[to + d] = toHalf(x[d]);
		}
	}
}
