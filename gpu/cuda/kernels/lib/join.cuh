// How splits of attention are joined: one after the other, each multiplied by what is left of it, and of those before,
// under the largest score so far.
#pragma once
#include "device.cuh"

constexpr float nothing = -1e30f; // the largest score where none is seen

struct Factors {
	float kept, taken; // of what there is, and of the split
};

// factorsOf is the factors of a split whose largest score is best, behind others whose largest is before, under that of all.
DEVICE Factors factorsOf(float before, float best, float all) { return {exp2(before - all), exp2(best - all)}; }

// joined is a value behind one more split.
DEVICE float joined(Factors f, float before, float split) { return fma(f.taken, split, f.kept * before); }
