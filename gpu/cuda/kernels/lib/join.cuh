// How splits of attention are joined: one after the other, each multiplied by what is left of it, and of those before,
// under the largest score so far.
#pragma once
#include "squares.cuh"

constexpr float nothing = -1e30f; // the largest score where none is seen

struct Factors {
	float kept, taken; // of what there is, and of the split
};

// factorsOf is the factors of a split whose largest score is best, behind others whose largest is before, under that of all.
DEVICE Factors factorsOf(float before, float best, float all) { return {exp2(before - all), exp2(best - all)}; }

// joined is a value behind one more split.
DEVICE float joined(Factors f, float before, float split) { return fma(f.taken, split, f.kept * before); }

// weightOf is 2 to the x, for an x of at most 0: to 4e-6 of it, since it becomes a half. Below -100 it is next to nothing,
// and NaN stays none.
DEVICE float weightOf(float x) {
	x = maximum(x, -100.0f);
	float t = x + 0x1.8p23f, f = x - (t - 0x1.8p23f);
	float p = fma(0x1.409104p-7f, f, 0x1.ca9008p-5f);
	p = fma(p, f, 0x1.ebf1b4p-3f);
	p = fma(p, f, 0x1.62dfcap-1f);
	p = fma(p, f, 1.0f);
	return p * bitsFloat((floatBits(t) << 23) + 0x3f800000u);
}
