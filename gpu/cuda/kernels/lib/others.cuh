// Memory that other cards read and write while a kernel runs.
//
//	storeOpen(p, v) loadOpen(p)   16 bytes; each half of them comes whole
//	fenceSystem()                 others see what the thread wrote before they see what it writes from here on
//	storeFlag(p, v) loadFlag(p)   a word that others wait for, and what was written before it
#pragma once
#include "device.cuh"

#ifdef SLUICE_HOST
extern "C" int sched_yield() noexcept; // who waits lets others run

DEVICE void storeOpen(uint4 *p, uint4 v) {
	auto to = reinterpret_cast<uint64_t *>(p);
	__atomic_store_n(to, uint64_t(v.y) << 32 | v.x, __ATOMIC_RELEASE);
	__atomic_store_n(to + 1, uint64_t(v.w) << 32 | v.z, __ATOMIC_RELEASE);
}
DEVICE uint4 loadOpen(const uint4 *p) {
	auto from = reinterpret_cast<const uint64_t *>(p);
	uint64_t low = __atomic_load_n(from, __ATOMIC_ACQUIRE), high = __atomic_load_n(from + 1, __ATOMIC_ACQUIRE);
	return {uint(low), uint(low >> 32), uint(high), uint(high >> 32)};
}
DEVICE void fenceSystem() { __atomic_thread_fence(__ATOMIC_ACQ_REL); }
DEVICE void storeFlag(uint *p, uint v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }
DEVICE uint loadFlag(const uint *p) {
	sched_yield();
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}
#else
DEVICE void storeOpen(uint4 *p, uint4 v) {
	asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
		: "memory");
}
DEVICE uint4 loadOpen(const uint4 *p) {
	uint4 v;
	asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
		: "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p) : "memory");
	return v;
}
DEVICE void fenceSystem() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
DEVICE void storeFlag(uint *p, uint v) {
	asm volatile("fence.acq_rel.sys; st.relaxed.sys.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
DEVICE uint loadFlag(const uint *p) {
	uint v;
	asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
	return v;
}
#endif
