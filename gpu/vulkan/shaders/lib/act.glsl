// Activation functions, numbered as internal/ir numbers them. NaN stays NaN: min() and max() would forget it.
const uint SILU = 1, GELU = 2, GELUERF = 3, RELU2 = 4, SIGMOID = 5, CLAMPED = 6;

// sigmoid of what is far below zero divides by infinity, and is 0.
float sigmoid(float x) { return 1.0 / (1.0 + exp(-x)); }

// hyperbolic is tanh: near 0 by its series, since there 1 - e⁻²ˣ loses its digits.
float hyperbolic(float x) {
	float a = abs(x), s = x * x;
	if (a < 0.25) {
		return x * (1.0 + s * (-1.0 / 3.0 + s * (2.0 / 15.0 + s * (-17.0 / 315.0 + s * (62.0 / 2835.0)))));
	}
	float e = exp(-2.0 * a), t = (1.0 - e) / (1.0 + e);
	return x < 0.0 ? -t : t;
}

// normalBelow is the part of a normal distribution below x: erfc(-x/√2)/2. Near the middle by the series
// z·e^(-z²)·Σ (2z²)ⁿ/(1·3·…·(2n+1)), whose terms are all positive, elsewhere by the continued fraction of erfc.
float normalBelow(float x) {
	float z = abs(x) * 0.70710678, s = z * z, scale = exp(-s) * 0.56418958; // 1/√π
	if (z < 1.25) {
		float term = z, sum = z;
		for (uint n = 1; n < 20; n++) {
			term *= 2.0 * s / float(2 * n + 1);
			sum += term;
		}
		float part = scale * sum; // erf/2
		return x < 0.0 ? 0.5 - part : 0.5 + part;
	}
	float f = 0.0;
	for (uint n = 40; n > 0; n--) {
		f = 0.5 * float(n) / (z + f);
	}
	float tail = 0.5 * scale / (z + f);
	return x < 0.0 ? tail : 1.0 - tail;
}

float activate(uint act, float x) {
	switch (act) {
	case SILU:
		return x * sigmoid(x);
	case GELU: // 0.5·(1+tanh u) is sigmoid(2u)
		return x * sigmoid(1.5957691 * (x + 0.044715 * x * x * x));
	case GELUERF:
		return x * normalBelow(x);
	case RELU2:
		return x < 0.0 ? 0.0 : x * x;
	case SIGMOID:
		return sigmoid(x);
	}
	return x;
}

// gated is a GLU of two inputs.
float gated(uint act, float x, float up) {
	if (act == CLAMPED) {
		float g = x > 7.0 ? 7.0 : x, u = up > 7.0 ? 7.0 : up < -7.0 ? -7.0 : up;
		return g * sigmoid(1.702 * g) * (u + 1.0);
	}
	return activate(act, x) * up;
}
