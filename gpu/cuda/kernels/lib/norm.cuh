// RMS norm of a row by a block, in the order that norm.cu names. Rows begin at multiples of 16 bytes.
#pragma once
#include "quantise.cuh"

// input4 is four values of a row; zero beyond its end.
DEVICE float4 input4(const float *row, uint i, uint width) {
	if (i + 4 <= width) {
		return *reinterpret_cast<const float4 *>(row + i);
	}
	return {i < width ? row[i] : 0.0f, i + 1 < width ? row[i + 1] : 0.0f, i + 2 < width ? row[i + 2] : 0.0f, 0.0f};
}

DEVICE float4 scaled(float4 v, float scale, float4 gain) {
	return {v.x * scale * gain.x, v.y * scale * gain.y, v.z * scale * gain.z, v.w * scale * gain.w};
}

// rowScale is what a row is multiplied by before its gain: 1/√(mean x² + eps). sums has a float for each 32 values of
// whole 256. All threads of the block take part.
DEVICE float rowScale(const float *x, uint width, float eps, float *sums) {
	uint blocks = (width + 255) / 256 * 8, lane8 = threadX() % 8;
	for (uint first = threadX() / 32 * 4; first < blocks; first += blockThreads() / 8) {
		uint b = first + threadX() / 8 % 4;
		float4 v = input4(x, b * 32 + lane8 * 4, width);
		float s = v.x * v.x;
		s = fma(v.y, v.y, s);
		s = fma(v.z, v.z, s);
		s = sum8(fma(v.w, v.w, s));
		if (lane8 == 0) {
			sums[b] = s;
		}
	}
	sync();
	float s = 0.0f;
	for (uint b = lane8; b < blocks; b += 8) {
		s = s + sums[b];
	}
	return 1.0f / squareRoot(sum8(s) / static_cast<float>(width) + eps);
}
