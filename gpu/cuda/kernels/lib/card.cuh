// The half of device.cuh for a card: clang's builtins and PTX. No file of NVIDIA's is needed.
#pragma once

#define DEVICE __attribute__((device, always_inline)) inline
#define CONSTANT static __attribute__((device)) constexpr
#define SHARED static __attribute__((shared))
#define KERNEL(name, Args, threads) \
	extern "C" __attribute__((global, launch_bounds(threads))) void name(const Args a)
#define KERNEL_BLOCKS(name, Args, threads, blocks) \
	extern "C" __attribute__((global, launch_bounds(threads, blocks))) void name(const Args a)

DEVICE uint threadX() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE uint blockThreads() { return __nvvm_read_ptx_sreg_ntid_x(); }
DEVICE uint blockX() { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEVICE uint blockY() { return __nvvm_read_ptx_sreg_ctaid_y(); }
DEVICE uint blockZ() { return __nvvm_read_ptx_sreg_ctaid_z(); }
DEVICE uint gridX() { return __nvvm_read_ptx_sreg_nctaid_x(); }
DEVICE uint gridY() { return __nvvm_read_ptx_sreg_nctaid_y(); }
DEVICE uint gridZ() { return __nvvm_read_ptx_sreg_nctaid_z(); }

#ifdef SM_90A
constexpr uint sharedGrain = 1024; // of operands of wgmma that are turned
#else
constexpr uint sharedGrain = 16;
#endif
extern __attribute__((shared)) __attribute__((aligned(sharedGrain))) uint8_t sluiceShared[];
template <class T> DEVICE T *dynamicShared() { return reinterpret_cast<T *>(sluiceShared); }

DEVICE void sync() { __syncthreads(); }
DEVICE void syncWarp() { __nvvm_bar_warp_sync(0xffffffffu); }

template <class T> DEVICE T shuffle(T v, uint from) {
	static_assert(sizeof(T) == 4, "a shuffle is of 32 bits");
	return __builtin_bit_cast(T, __nvvm_shfl_sync_idx_i32(0xffffffff, __builtin_bit_cast(int, v), from, 31));
}

DEVICE uint ballot(bool p) { return __nvvm_vote_ballot_sync(0xffffffffu, p); }

// dot4 is c and the products of four signed bytes of a and b.
DEVICE int dot4(uint a, uint b, int c) {
	int d;
	asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
	return d;
}

// A half is known by its bits, in the low 16 of a word.
DEVICE float fromHalf(uint bits) { return static_cast<float>(__builtin_bit_cast(_Float16, static_cast<uint16_t>(bits))); }
DEVICE uint toHalf(float v) { return __builtin_bit_cast(uint16_t, static_cast<_Float16>(v)); }

DEVICE uint4 load128(const void *p) {
	uint4 v;
	asm("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
	return v;
}

DEVICE uint2 load64(const void *p) {
	uint2 v;
	asm("ld.global.nc.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p));
	return v;
}

DEVICE uint load32(const void *p) {
	uint v;
	asm("ld.global.nc.u32 %0, [%1];" : "=r"(v) : "l"(p));
	return v;
}

DEVICE uint load16(const void *p) {
	uint16_t v;
	asm("ld.global.nc.u16 %0, [%1];" : "=h"(v) : "l"(p));
	return v;
}

DEVICE uint4 loadOnce128(const void *p) {
	uint4 v;
	asm("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
		: "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
	return v;
}

DEVICE void prefetch(const void *p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }

// sharedAt is the address of shared memory as PTX has it.
DEVICE uint sharedAt(const void *p) {
	return static_cast<uint>(reinterpret_cast<uint64_t>((const __attribute__((address_space(3))) void *)p));
}

DEVICE void copyAsync16(void *shared, const void *global) {
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(sharedAt(shared)), "l"(global) : "memory");
}
DEVICE void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> DEVICE void waitGroups() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

// loadMatrices has four 8 × 8 matrices of 16 bits: lane i says where row i%8 of matrix i/8 lies.
DEVICE void loadMatrices(uint v[4], const void *row) {
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
		: "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(sharedAt(row)) : "memory");
}

DEVICE void mmaS8(int c[4], const uint a[4], const uint b[2]) {
	asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
		"{%0, %1, %2, %3};"
		: "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

DEVICE void mmaS8U8(int c[4], const uint a[4], const uint b[2]) {
	asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
		"{%0, %1, %2, %3};"
		: "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

DEVICE void mmaS8Half(int c[4], uint a0, uint a1, uint b) {
	asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
		: "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
		: "r"(a0), "r"(a1), "r"(b));
}

DEVICE void mmaF16(float c[4], const uint a[4], const uint b[2]) {
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
		"{%0, %1, %2, %3};"
		: "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Atomic operations on memory of the card or of a block. There are none on floats: their order would be part of a result.
DEVICE uint atomicAdd(uint *p, uint v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }
DEVICE uint atomicMax(uint *p, uint v) { return __atomic_fetch_max(p, v, __ATOMIC_RELAXED); }
DEVICE uint atomicOr(uint *p, uint v) { return __atomic_fetch_or(p, v, __ATOMIC_RELAXED); }

// nanoseconds is the card's clock.
DEVICE uint64_t nanoseconds() {
	uint64_t t;
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
	return t;
}

// storeSystem stores a word after all that the thread wrote, where the host sees it.
DEVICE void storeSystem(uint64_t *p, uint64_t v) {
	asm volatile("fence.acq_rel.sys; st.relaxed.sys.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
DEVICE uint64_t loadSystem(const uint64_t *p) {
	uint64_t v;
	asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
	return v;
}
