// The rotation of heads whose keys or values are kept in codes: R = H·D/√n for n features, as internal/kvcode defines it.
// Where n is a power of two, products are added as there, to the bit.
#pragma once
#include "device.cuh"

// flips says whether D flips the sign of feature i.
DEVICE bool flips(uint i) {
	uint64_t x = uint64_t(i + 1) * 0x9e3779b97f4a7c15ul;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ul;
	x = (x ^ x >> 27) * 0x94d049bb133111ebul;
	return x >> 63 != 0;
}

// paley is an element of the Hadamard matrix of size q+1, where q is 11 or 19.
DEVICE float paley(uint q, uint i, uint j) {
	if (i == j || i == 0) {
		return 1;
	}
	if (j == 0) {
		return -1;
	}
	uint squares = q == 11 ? 0x23a : 0x30af2; // bit a: a is a square modulo q
	return (squares >> (i + q - j) % q & 1) != 0 ? 1 : -1;
}

// factorAt is an element of the factor of a size that is no power of two: Paley's matrix, or √2·cos(π·(j + 1/2)·i/outer).
DEVICE float factorAt(uint outer, uint i, uint j) {
	if (outer == 12 || outer == 20) {
		return paley(outer - 1, i, j);
	}
	if (i == 0) {
		return 1;
	}
	uint k = i * (2 * j + 1) % (4 * outer); // in units of a right angle divided by outer
	k = k > 2 * outer ? 4 * outer - k : k;
	bool below = k > outer;
	float x = 1.57079633f * static_cast<float>(below ? 2 * outer - k : k) / static_cast<float>(outer), s = x * x;
	float c = 1 - s / 90 * (1 - s / 132);
	c = 1 - s / 2 * (1 - s / 12 * (1 - s / 30 * (1 - s / 56 * c)));
	return 1.41421356f * (below ? -c : c);
}

constexpr uint mostOuter = 32; // rows of the factor

// transform multiplies rows by H, or by its transpose, and by unit. power is the size of the butterflies. All threads call
// it, and need no barrier before or after it.
DEVICE void transform(float *turned, uint rows, uint features, uint power, float unit, bool back) {
	for (uint part = 1; part < power; part *= 2) {
		sync();
		for (uint t = threadX(); t < rows * features / 2; t += blockThreads()) {
			uint i = t / part * 2 * part + t % part;
			float x = turned[i], y = turned[i + part];
			turned[i] = x + y;
			turned[i + part] = x - y;
		}
	}
	sync();
	uint outer = features / power;
	if (outer > 1) {
		for (uint t = threadX(); t < rows * power; t += blockThreads()) {
			float column[mostOuter], *to = turned + t / power * features + t % power;
			for (uint i = 0; i < outer; i++) {
				column[i] = to[i * power];
			}
			for (uint i = 0; i < outer; i++) {
				float sum = 0;
				for (uint k = 0; k < outer; k++) {
					sum = sum + column[k] * (back ? factorAt(outer, k, i) : factorAt(outer, i, k));
				}
				to[i * power] = sum;
			}
		}
		sync();
	}
	for (uint t = threadX(); t < rows * features; t += blockThreads()) {
		turned[t] = turned[t] * unit;
	}
	sync();
}
