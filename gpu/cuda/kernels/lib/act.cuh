// Activation functions, numbered as internal/ir numbers them; the formulas are those of Vulkan's lib/act.glsl. NaN stays
// NaN. exp is that of the processor's kernels: so no card differs from another here.
#pragma once
#include "device.cuh"

constexpr uint actSilu = 1, actGelu = 2, actGeluErf = 3, actRelu2 = 4, actSigmoid = 5, actClamped = 6;

DEVICE float sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }

// hyperbolic is tanh: near 0 by its series, since there 1 - e⁻²ˣ loses its digits.
DEVICE float hyperbolic(float x) {
	float m = magnitude(x), s = x * x;
	if (m < 0.25f) {
		float p = -17.0f / 315.0f + s * (62.0f / 2835.0f);
		return x * (1.0f + s * (-1.0f / 3.0f + s * (2.0f / 15.0f + s * p)));
	}
	float e = exp(-2.0f * m), t = (1.0f - e) / (1.0f + e);
	return x < 0.0f ? -t : t;
}

// normalBelow is the part of a normal distribution below x: erfc(-x/√2)/2. Near the middle by the series
// z·e^(-z²)·Σ (2z²)ⁿ/(1·3·…·(2n+1)), whose terms are all positive, elsewhere by the continued fraction of erfc.
DEVICE float normalBelow(float x) {
	float z = magnitude(x) * 0.70710678f, s = z * z, scale = exp(-s) * 0.56418958f; // 1/√π
	if (z < 1.25f) {
		float term = z, sum = z;
		for (uint n = 1; n < 20; n++) {
			term *= 2.0f * s / static_cast<float>(2 * n + 1);
			sum += term;
		}
		float part = scale * sum; // erf/2
		return x < 0.0f ? 0.5f - part : 0.5f + part;
	}
	float f = 0.0f;
	for (uint n = 40; n > 0; n--) {
		f = 0.5f * static_cast<float>(n) / (z + f);
	}
	float tail = 0.5f * scale / (z + f);
	return x < 0.0f ? tail : 1.0f - tail;
}

DEVICE float activate(uint act, float x) {
	switch (act) {
	case actSilu:
		return x * sigmoid(x);
	case actGelu: // 0.5·(1+tanh u) is sigmoid(2u)
		return x * sigmoid(1.5957691f * (x + 0.044715f * x * x * x));
	case actGeluErf:
		return x * normalBelow(x);
	case actRelu2:
		return x < 0.0f ? 0.0f : x * x;
	case actSigmoid:
		return sigmoid(x);
	}
	return x;
}

// gated is a GLU of two inputs.
DEVICE float gated(uint act, float x, float up) {
	if (act == actClamped) {
		float g = x > 7.0f ? 7.0f : x, u = up > 7.0f ? 7.0f : up < -7.0f ? -7.0f : up;
		return g * sigmoid(1.702f * g) * (u + 1.0f);
	}
	return activate(act, x) * up;
}
