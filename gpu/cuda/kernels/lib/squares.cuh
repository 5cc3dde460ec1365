// Squares of 8 × 8 halves in shared memory, as operands of mmaF16: four of them at a time; and what else attention has of
// its own on a card.
#pragma once
#include "device.cuh"

// left4 loads 16 × 16 halves as the left operand, from its first on; lines are so many halves apart, and begin at
// multiples of 16 bytes. right4 loads halves as two right operands, of 8 columns each, where a line has the 16 values of a
// column; rows4 where lines are the 16 rows: the first two words are one operand, the last two the other.
#ifdef SLUICE_HOST

DEVICE uint halves2(const uint16_t *low, const uint16_t *high) { return *low | static_cast<uint>(*high) << 16; }

DEVICE void left4(uint to[4], const uint16_t *from, uint line) {
	for (uint i = 0; i < 4; i++) {
		const uint16_t *p = from + (lane() / 4 + i % 2 * 8) * line + i / 2 * 8 + lane() % 4 * 2;
		to[i] = halves2(p, p + 1);
	}
}

DEVICE void right4(uint to[4], const uint16_t *from, uint line) {
	for (uint i = 0; i < 4; i++) {
		const uint16_t *p = from + (lane() / 4 + i / 2 * 8) * line + i % 2 * 8 + lane() % 4 * 2;
		to[i] = halves2(p, p + 1);
	}
}

DEVICE void rows4(uint to[4], const uint16_t *from, uint line) {
	for (uint i = 0; i < 4; i++) {
		const uint16_t *p = from + (lane() % 4 * 2 + i % 2 * 8) * line + i / 2 * 8 + lane() / 4;
		to[i] = halves2(p, p + line);
	}
}

// maximum is the larger of two numbers; NaN if one of them is.
DEVICE float maximum(float a, float b) { return a != a || a > b ? a : b; }

// copyAsync16If is copyAsync16, or zeros.
DEVICE void copyAsync16If(void *shared, const void *global, bool there) {
	static const uint4 zeros = {0, 0, 0, 0};
	copyAsync16(shared, there ? global : &zeros);
}

#else

DEVICE float maximum(float a, float b) { return __nvvm_fmax_nan_f(a, b); }

DEVICE void left4(uint to[4], const uint16_t *from, uint line) {
	loadMatrices(to, from + (lane() % 16) * line + lane() / 16 * 8);
}

DEVICE void right4(uint to[4], const uint16_t *from, uint line) {
	loadMatrices(to, from + (lane() / 16 * 8 + lane() % 8) * line + lane() / 8 % 2 * 8);
}

DEVICE void rows4(uint to[4], const uint16_t *from, uint line) {
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
		: "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
		: "r"(sharedAt(from + (lane() % 16) * line + lane() / 16 * 8)) : "memory");
}

DEVICE void copyAsync16If(void *shared, const void *global, bool there) {
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(sharedAt(shared)), "l"(global), "r"(there ? 16 : 0)
		: "memory");
}

#endif
