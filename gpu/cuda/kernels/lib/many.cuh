// What becomes of the sums of many columns. A block owns 128 outputs of its columns; all sums are in shared memory.
#pragma once
#include "act.cuh"
#include "quantise.cuh"

// sumStride is from column to column of sums. The lanes of a warp that hold a square of mma reach different banks with it.
constexpr uint none = 0xffffffffu, tall = 128, sumStride = tall + 4;

// Output is where sums go, with what stands behind a product.
struct Output {
	uint64_t y, bias, residual; // float32 rows, or quantised ones
	uint rows, yStride;         // yStride: of y and residual, in float32
	uint epilogue, extras, act; // as in matvec.cu
	uint expert;                // whose bias is added
	const uint *targets;        // the row of y of each of the block's columns, none if it is not there
	uint columns;
};

DEVICE void storeOne(const Output &o, uint row, uint to, float v) {
	if (row >= o.rows) {
		return;
	}
	if ((o.extras & 1) != 0) {
		v = v + at<const float>(o.bias)[uint64_t(o.expert) * o.rows + row];
	}
	if ((o.extras & 2) != 0) {
		v = v + at<const float>(o.residual)[uint64_t(to) * o.yStride + row];
	}
	at<float>(o.y)[uint64_t(to) * o.yStride + row] = v;
}

// storePlain has a warp store a column. Of a pair, tiles of 32 rows of gate and of up alternate.
DEVICE void storePlain(const Output &o, const float *sums) {
	uint each = o.epilogue == 0 ? tall : tall / 2;
#pragma unroll 1
	for (uint c = threadX() / 32; c < o.columns; c += blockThreads() / 32) {
		const float *from = sums + c * sumStride + lane();
		if (o.targets[c] == none) {
			continue;
		}
#pragma unroll 1
		for (uint i = 0; i < each / 32; i++) {
			float v = o.epilogue == 0 ? from[i * 32] : gated(o.act, from[i * 64], from[i * 64 + 32]);
			storeOne(o, blockX() * each + i * 32 + lane(), o.targets[c], v);
		}
	}
}

DEVICE float4 four(const float *p) { return *reinterpret_cast<const float4 *>(p); }

// storeQuantised stores gate and up as one, quantised: eight lanes have 32 outputs of a column.
DEVICE void storeQuantised(const Output &o, const float *sums) {
	uint padded = (o.rows + 255) / 256 * 256, tiles = (o.rows + 31) / 32;
#pragma unroll 1
	for (uint i = threadX() / 8; i < o.columns * 2; i += blockThreads() / 8) {
		uint tile = blockX() * 2 + i % 2, to = o.targets[i / 2], row = tile * 32 + lane() % 8 * 4;
		const float *from = sums + i / 2 * sumStride + i % 2 * 64 + lane() % 8 * 4;
		float4 g = four(from), u = four(from + 32);
		Quantised q = quantise8({row < o.rows ? gated(o.act, g.x, u.x) : 0.0f, row + 1 < o.rows ? gated(o.act, g.y, u.y) : 0.0f,
			row + 2 < o.rows ? gated(o.act, g.z, u.z) : 0.0f, row + 3 < o.rows ? gated(o.act, g.w, u.w) : 0.0f});
		if (tile >= tiles || to == none) {
			continue;
		}
		uint last = tile + 1 < tiles ? tile : padded / 32 - 1; // after the last tile come zeros up to whole 256
#pragma unroll 1
		for (uint t = tile; t <= last; t++) {
			quantisedWords(o.y, to, padded)[t * 8 + lane() % 8] = t == tile ? q.bytes : 0;
			if (lane() % 8 == 0) {
				quantisedScales(o.y, to, padded)[t] = t == tile ? q.scale : uint2{0, 0};
			}
		}
	}
}

// storeAll stores all sums, [column][row] of the block.
DEVICE void storeAll(const Output &o, const float *sums) {
	if (o.epilogue == 2) {
		storeQuantised(o, sums);
	} else {
		storePlain(o, sums);
	}
}
