// RMS norm of rows, or none, and what then becomes of them: float32 rows or quantised activations.
//
// A block owns a row; its memory is a float for each 32 values. The arithmetic is that of Vulkan's norm.comp, bit for
// bit: fours of values, one after the other; eight fours as a tree, a block of 32; every eighth block, one after the
// other; these eight as a tree. So it is the same for any number of threads, which are whole warps.
//
// variant: norm
#include "lib/norm.cuh"

struct Args {
	uint64_t x, y, gain; // gain 0: values as they are
	uint width, xStride, yStride; // strides in float32
	float eps;
	uint quantise; // 0: float32, zero from width to the end of the last 256
	uint pad;
};

KERNEL(norm, Args, 512) {
	uint k = (a.width + 255) / 256 * 256, blocks = k / 32, lane8 = threadX() % 8;
	const float *x = at<float>(a.x) + uint64_t(blockX()) * a.xStride, *gain = at<float>(a.gain);
	float scale = a.gain != 0 ? rowScale(x, a.width, a.eps, dynamicShared<float>()) : 1.0f;
	// Lanes take turns together: all of a warp go on until its first eight have no block left.
	for (uint first = threadX() / 32 * 4; first < blocks; first += blockThreads() / 8) {
		uint b = first + threadX() / 8 % 4;
		float4 v = input4(x, b * 32 + lane8 * 4, a.width);
		if (a.gain != 0) {
			v = scaled(v, scale, input4(gain, b * 32 + lane8 * 4, a.width));
		}
		if (a.quantise != 0) {
			Quantised q = quantise8(v);
			quantisedWords(a.y, blockX(), k)[b * 8 + lane8] = q.bytes;
			if (lane8 == 0) {
				quantisedScales(a.y, blockX(), k)[b] = q.scale;
			}
		} else {
			at<float4>(a.y)[(uint64_t(blockX()) * a.yStride + b * 32) / 4 + lane8] = v;
		}
	}
}
