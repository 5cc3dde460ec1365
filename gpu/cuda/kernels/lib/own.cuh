// Heads of a row where rotation is not a kernel of its own: they may be normalised, as group_norm.cu has it, and are
// rotated by their positions.
#pragma once
#include "step.cuh"

// Turn is how heads of a row rotate: pair i of features is (i, i + dims/2), or (2i, 2i + 1) where interleaved; angles has
// each pair's cosine and sine, made by the host from positions in double precision.
struct Turn {
	const float *angles; // the row's
	uint dims;           // that rotate, from the first
	uint interleaved;
};

// Head is a head of a row, with the norm that comes before its rotation.
struct Head {
	const float *x;
	const float *gain; // nullptr: ones
	float scale;
	bool normed;
};

DEVICE float normedAt(const Head &h, uint d) {
	float v = h.x[d];
	if (h.normed) {
		v = v * h.scale;
		if (h.gain != nullptr) {
			v = v * h.gain[d];
		}
	}
	return v;
}

// turnedAt is a feature of the head, normalised and rotated.
DEVICE float turnedAt(const Head &h, const Turn &t, uint d) {
	if (d >= t.dims) {
		return normedAt(h, d);
	}
	uint half = t.dims / 2, pair = t.interleaved != 0 ? d / 2 : d % half;
	bool second = t.interleaved != 0 ? d % 2 == 1 : d >= half;
	uint other = t.interleaved != 0 ? d ^ 1 : second ? d - half : d + half;
	float sine = t.angles[2 * pair + 1];
	float r = normedAt(h, other) * (second ? sine : -sine);
	return fma(normedAt(h, d), t.angles[2 * pair], r);
}

// sixteenth is one of 16 parts of a head's sum of squares: every 16th feature.
DEVICE float sixteenth(const float *x, uint features, uint part) {
	float s = 0;
	for (uint d = part; d < features; d += 16) {
		s = fma(x[d], x[d], s);
	}
	return s;
}

// headScale is what a head is multiplied by, of the parts of its sum of squares.
DEVICE float headScale(const float *parts, uint features, float eps) {
	float s = 0;
	for (uint i = 0; i < 16; i++) {
		s = s + parts[i];
	}
	return 1.0f / squareRoot(s / static_cast<float>(features) + eps);
}
