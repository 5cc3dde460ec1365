// Rows of activations in half precision, as matmul_half.cu takes them. A row with values that halves do not reach is made
// smaller by a power of two, and what makes the products large again is left behind all rows. What is NaN or infinite
// stays so.
//
// A block has a row. Grid: rows.
//
// variant: halve
#include "lib/device.cuh"

struct Args {
	uint64_t x, y; // float32 rows of whole 256; halves of such rows, then a float32 for each row
	uint kTiles;   // 256 values each
	uint pad;
};

constexpr uint threads = 256;

SHARED uint largest[threads]; // magnitudes, whose bits are ordered as they are

KERNEL(halve, Args, threads) {
	uint n = a.kTiles * 64, top = 0; // fours of values
	const uint4 *x = at<const uint4>(a.x) + uint64_t(blockX()) * n;
	for (uint i = threadX(); i < n; i += threads) {
		uint4 v = load128(x + i);
		top = greater(greater(top, greater(v.x & 0x7fffffffu, v.y & 0x7fffffffu)),
			greater(v.z & 0x7fffffffu, v.w & 0x7fffffffu));
	}
	largest[threadX()] = top;
	for (uint k = threads / 2; k > 0; k /= 2) {
		sync();
		if (threadX() < k) {
			largest[threadX()] = greater(largest[threadX()], largest[threadX() + k]);
		}
	}
	sync();
	constexpr uint one = 127, most = one + 14; // exponents, of 1 and of the largest values below 2¹⁵
	uint exponent = largest[0] >> 23, down = exponent > most ? exponent - most : 0;
	float smaller = bitsFloat((one - down) << 23);
	uint2 *y = at<uint2>(a.y) + uint64_t(blockX()) * n;
	for (uint i = threadX(); i < n; i += threads) {
		uint4 v = load128(x + i);
		y[i] = {toHalf(bitsFloat(v.x) * smaller) | toHalf(bitsFloat(v.y) * smaller) << 16,
			toHalf(bitsFloat(v.z) * smaller) | toHalf(bitsFloat(v.w) * smaller) << 16};
	}
	if (threadX() == 0) {
		at<float>(a.y + uint64_t(gridX()) * n * 8)[blockX()] = bitsFloat((one + down) << 23);
	}
}
