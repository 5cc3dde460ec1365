// What becomes of the sums of many columns. A block owns 128 outputs and 32·wide columns; its warps, two for rows × wide
// for columns, have 64 × 32 of them each, as 4 × 4 squares of 16 × 8. A lane has four numbers of a square, as mma gives
// them: those of rows lane/4 and lane/4 + 8, each of columns lane%4·2 and the next.
#pragma once
#include "act.cuh"
#include "quantise.cuh"

constexpr uint none = 0xffffffffu, tall = 128, squares = 16;

// Output is where sums go, with what stands behind a product.
struct Output {
	uint64_t y, bias, residual; // float32 rows, or quantised ones
	uint rows, yStride;         // yStride: of y and residual, in float32
	uint epilogue, extras, act; // as in matvec.cu
	uint expert;                // whose bias is added
	const uint *targets;        // the row of y of each of the block's columns, none if it is not there
};

// rowOf and columnOf are where number e of square s lies within the block.
DEVICE uint rowOf(uint s, uint e) { return threadX() / 32 % 2 * 64 + s / 4 * 16 + e / 2 * 8 + lane() / 4; }
DEVICE uint columnOf(uint s, uint e) { return threadX() / 64 * 32 + s % 4 * 8 + lane() % 4 * 2 + e % 2; }

// totalOf is where number e of square s of this thread is kept between segments. The odd stride keeps the threads of a warp
// in different banks, and what is constant in an address so.
constexpr uint totalStride = squares * 4 + 1;
DEVICE float &totalOf(float *totals, uint s, uint e) { return totals[threadX() * totalStride + s * 4 + e]; }

DEVICE void storeOne(const Output &o, uint row, uint column, float v) {
	uint to = o.targets[column];
	if (row >= o.rows || to == none) {
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

// outputAt is where the sum of an output, 0 to 63, of a column is kept, of a pair of matrices.
DEVICE float outputAt(const float *totals, uint output, uint column) {
	uint s = output % 32 / 16 * 4 + column % 32 / 8, e = output % 16 / 8 * 2 + column % 2;
	uint thread = (column / 32 * 2 + output / 32) * 32 + output % 8 * 4 + column % 8 / 2;
	return totals[thread * totalStride + s * 4 + e];
}

// storeGated stores gate and up as one. Tiles of 32 rows of both alternate: a warp's first two squares of rows are of
// gate, the others of the same outputs of up.
DEVICE void storeGated(const Output &o, float *totals) {
#pragma unroll 1
	for (uint i = 0; i < squares / 2 * 4; i++) {
		uint row = rowOf(i / 4, i % 4), output = blockX() * 64 + row / 64 * 32 + row % 32;
		float h = gated(o.act, totalOf(totals, i / 4, i % 4), totalOf(totals, i / 4 + squares / 2, i % 4));
		if (o.epilogue == 1) {
			storeOne(o, output, columnOf(i / 4, i % 4), h);
		} else {
			totalOf(totals, i / 4, i % 4) = output < o.rows ? h : 0.0f;
		}
	}
	if (o.epilogue == 1) {
		return;
	}
	sync();
	uint padded = (o.rows + 255) / 256 * 256, tiles = (o.rows + 31) / 32;
#pragma unroll 1
	for (uint i = threadX() / 8; i < blockThreads(); i += blockThreads() / 8) { // 32 outputs of a column: eight lanes
		uint column = i / 2, tile = blockX() * 2 + i % 2, to = o.targets[column], from = i % 2 * 32 + lane() % 8 * 4;
		Quantised q = quantise8({outputAt(totals, from, column), outputAt(totals, from + 1, column),
			outputAt(totals, from + 2, column), outputAt(totals, from + 3, column)});
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

// storeAll stores all sums.
DEVICE void storeAll(const Output &o, float *totals) {
	if (o.epilogue != 0) {
		storeGated(o, totals);
		return;
	}
#pragma unroll 1
	for (uint s = 0; s < squares; s++) {
#pragma unroll
		for (uint e = 0; e < 4; e++) {
			storeOne(o, blockX() * tall + rowOf(s, e), columnOf(s, e), totalOf(totals, s, e));
		}
	}
}
