// Products of a warpgroup, 128 threads that begin at a multiple of 128, by Hopper's matrix units (wgmma; modules with
// -DSM_90A): of 64 rows and some columns, and 16 k, of halves that lie in shared memory. They go on beside.
//
//	operandOf(p, along, across)   rows whose groups of 8, of 8 k (128 bytes that lie together), are so many bytes apart: along k,
//	                              and across rows
//	turnedOf(p)                   rows of 128 bytes, 64 k, of which words of 16 bytes have places that turned(row, word) says; p is
//	                              a multiple of 1024, plus 2 bytes for each k
//	Products<columns>::add(d, a, b)   d has a lane's sums: number i is of row warp·16 + i/2%2·8 + lane/4 and of column
//	                              i/4·8 + lane%4·2 + i%2
//	beginProducts() endProducts() waitProducts<N>()   before the first of a group and behind its last; N: groups that may
//	                              still be under way
//	showProducts()                has them see what the thread wrote
#pragma once
#include "device.cuh"

DEVICE uint turned(uint row, uint word) { return word ^ row % 8; }

template <uint columns> struct Products;

#ifdef SLUICE_HOST
struct Operand {
	const uint8_t *p;
	uint along, across; // 0: turned
};

DEVICE Operand operandOf(const void *p, uint along, uint across) { return {static_cast<const uint8_t *>(p), along, across}; }
DEVICE Operand turnedOf(const void *p) { return {static_cast<const uint8_t *>(p), 0, 1024}; }

DEVICE float halfAt(const Operand &o, uint row, uint k) {
	const uint8_t *p = o.p + row / 8 * o.across;
	if (o.along != 0) {
		p += k / 8 * o.along + row % 8 * 16 + k % 8 * 2;
	} else {
		uint64_t at = p + row % 8 * 128 + k * 2 - dynamicShared<uint8_t>();
		p = dynamicShared<uint8_t>() + (at ^ (at >> 7 & 7) << 4);
	}
	return fromHalf(*reinterpret_cast<const uint16_t *>(p));
}

// Like mmaF16, it adds exact products in double precision.
template <uint columns> struct Products {
	static void add(float *d, Operand a, Operand b) {
		for (uint i = 0; i < columns / 2; i++) {
			uint row = threadX() % 128 / 32 * 16 + i / 2 % 2 * 8 + lane() / 4, column = i / 4 * 8 + lane() % 4 * 2 + i % 2;
			double sum = d[i];
			for (uint k = 0; k < 16; k++) {
				sum += static_cast<double>(halfAt(a, row, k)) * halfAt(b, column, k);
			}
			d[i] = static_cast<float>(sum);
		}
	}
};

DEVICE void beginProducts() {}
DEVICE void endProducts() {}
template <int N> DEVICE void waitProducts() {}
DEVICE void showProducts() {}
#else
using Operand = uint64_t;

// Bits of an operand: 0 its address, 16 and 32 the distances, all without their last four bits; 62: how it is turned.
DEVICE Operand operandOf(const void *p, uint along, uint across) {
	return uint64_t(sharedAt(p) >> 4) | uint64_t(along >> 4) << 16 | uint64_t(across >> 4) << 32;
}
DEVICE Operand turnedOf(const void *p) { return operandOf(p, 16, 1024) | 1ul << 62; }

DEVICE void beginProducts() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void endProducts() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> DEVICE void waitProducts() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }
DEVICE void showProducts() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

#define SLUICE_4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SLUICE_16(i) SLUICE_4(i), SLUICE_4(i + 4), SLUICE_4(i + 8), SLUICE_4(i + 12)
#define SLUICE_D0 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define SLUICE_D16 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define SLUICE_D32 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define SLUICE_D48 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define SLUICE_D64 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define SLUICE_D80 "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define SLUICE_D96 "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111"
#define SLUICE_D112 "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

template <> struct Products<64> {
	static DEVICE void add(float d[32], Operand a, Operand b) {
		asm volatile("{.reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {"
			SLUICE_D0 ", " SLUICE_D16 "}, %32, %33, p, 1, 1, 0, 0;}"
			: SLUICE_16(0), SLUICE_16(16) : "l"(a), "l"(b) : "memory");
	}
};

template <> struct Products<128> {
	static DEVICE void add(float d[64], Operand a, Operand b) {
		asm volatile("{.reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
			SLUICE_D0 ", " SLUICE_D16 ", " SLUICE_D32 ", " SLUICE_D48 "}, %64, %65, p, 1, 1, 0, 0;}"
			: SLUICE_16(0), SLUICE_16(16), SLUICE_16(32), SLUICE_16(48) : "l"(a), "l"(b) : "memory");
	}
};

template <> struct Products<256> {
	static DEVICE void add(float d[128], Operand a, Operand b) {
		asm volatile("{.reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {"
			SLUICE_D0 ", " SLUICE_D16 ", " SLUICE_D32 ", " SLUICE_D48 ", "
			SLUICE_D64 ", " SLUICE_D80 ", " SLUICE_D96 ", " SLUICE_D112 "}, %128, %129, p, 1, 1, 0, 0;}"
			: SLUICE_16(0), SLUICE_16(16), SLUICE_16(32), SLUICE_16(48),
			  SLUICE_16(64), SLUICE_16(80), SLUICE_16(96), SLUICE_16(112) : "l"(a), "l"(b) : "memory");
	}
};
#endif
