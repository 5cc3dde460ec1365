// Multiplies each head of rows by a matrix of its own: y[r][o] = Σ w[o][k]·x[r][h·width + k], where output o is of head
// h = o / each. The matrices lie as one, one after the other. Activations stay float32, whatever the weights are.
//
// A block owns a tile of 32 outputs for up to 8 rows. Lane: an output. Warp: every WARPS-th block of 32 k.
// Order of addition: within a warp's blocks, k in order; then the warps in order. There are eight warps, or as many as
// there are blocks: so a row has the same bits among any others, and those of Vulkan's head_linear.comp.
//
// variant: head_linear_q4_0 -DQ4_0
// variant: head_linear_q8_0 -DQ8_0
// variant: head_linear_q4_k -DQ4_K
// variant: head_linear_q6_k -DQ6_K
// variant: head_linear_split -DSPLIT
// variant: head_linear_split_low -DSPLIT_LOW
// variant: head_linear_f16 -DF16
// variant: head_linear_bf16 -DBF16
// variant: head_linear_f32 -DF32
#include "lib/tile.cuh"

struct Args {
	uint64_t weights, x, y, count; // count: of rows that are there, 0: all
	uint rows;                     // outputs, of all heads
	uint each;                     // outputs of a head
	uint width;                    // features of a head of x
	uint tiles;                    // of k in a row of weights
	uint xStride, yStride;         // in float32
	uint columns;                  // rows of x
	uint pad;
};

constexpr uint most = 8; // rows of a block

SHARED float partial[8 * 32 * most];

KERNEL(headLinear, Args, 256) {
	uint warp = threadX() / 32, warps = blockThreads() / 32, first = blockY() * most;
	uint there = a.count != 0 ? lesser(*at<const uint>(a.count), a.columns) : a.columns;
	if (first >= there) {
		return;
	}
	uint o = blockX() * 32 + lane(), from = lesser(o, a.rows - 1) / a.each * a.width;
	const float *x = at<const float>(a.x) + from;
	float sums[most] = {};
	for (uint b = warp; b * 32 < a.width; b += warps) {
		const uint4 *tile = at<const uint4>(a.weights) + (uint64_t(blockX()) * a.tiles + b / 8) * tileWords;
		uint n = lesser(32u, a.width - b * 32);
#if !defined(FLOATS)
		Block u = blockAt(tile, lane(), b % 8);
#endif
		for (uint i = 0; i < n; i++) {
#if defined(FLOATS)
			float w = valueAt(tile, lane(), b % 8 * 32 + i);
#else
			float w = valueOf(u, i);
#endif
#pragma unroll
			for (uint c = 0; c < most; c++) {
				uint r = lesser(first + c, a.columns - 1);
				sums[c] = fma(w, x[uint64_t(r) * a.xStride + b * 32 + i], sums[c]);
			}
		}
	}
#pragma unroll
	for (uint c = 0; c < most; c++) {
		partial[c * 256 + threadX()] = sums[c];
	}
	sync();
	for (uint c = warp; c < most; c += warps) {
		float s = partial[c * 256 + lane()];
		for (uint i = 1; i < warps; i++) {
			s = s + partial[c * 256 + i * 32 + lane()];
		}
		if (o < a.rows && first + c < there) {
			at<float>(a.y)[uint64_t(first + c) * a.yStride + o] = s;
		}
	}
}
