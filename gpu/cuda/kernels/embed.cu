// Rows of a matrix by number, as float32: y[r] = w[id[r]]. An id below 0, -1-i, stands for what drawn[i] is by then.
//
// A thread makes four values. Grid: blocks for a row's values, rows.
//
// variant: embed_q4_0 -DQ4_0
// variant: embed_q8_0 -DQ8_0
// variant: embed_q4_k -DQ4_K
// variant: embed_q6_k -DQ6_K
// variant: embed_split -DSPLIT
// variant: embed_split_low -DSPLIT_LOW
// variant: embed_f16 -DF16
// variant: embed_bf16 -DBF16
// variant: embed_f32 -DF32
#include "lib/tile.cuh"

struct Args {
	uint64_t weights, ids, drawn, y; // drawn by the step before
	uint width, yStride;             // yStride in float32
	uint tiles;                      // of k in a row
	uint pad;
};

KERNEL(embed, Args, 64) {
	int id = at<int>(a.ids)[blockY()];
	if (id < 0) {
		id = at<int>(a.drawn)[-1 - id];
	}
	uint row = static_cast<uint>(id), from = (blockX() * 64 + threadX()) * 4;
	if (from >= a.width) {
		return;
	}
	const uint4 *tile = at<const uint4>(a.weights) + (uint64_t(row / 32) * a.tiles + from / 256) * tileWords;
	float *y = at<float>(a.y) + uint64_t(blockY()) * a.yStride;
#if !defined(FLOATS)
	Block u = blockAt(tile, row % 32, from % 256 / 32);
#endif
	for (uint i = from; i < lesser(from + 4, a.width); i++) {
#if defined(FLOATS)
		y[i] = valueAt(tile, row % 32, i % 256);
#else
		y[i] = valueOf(u, i % 32);
#endif
	}
}
