// The half of device.cuh for the processor. A block's threads are fibers on one thread of the system, and take turns
// where they wait for one another (fake/fibers.cc): what they write to shared memory is seen by all only after a barrier
// has had them take turns, and lanes of a warp that miss a shuffle, or threads that miss a barrier, are found.
#pragma once

#define DEVICE static inline
#define CONSTANT static const
#define SHARED static thread_local
#define KERNEL(name, Args, threads)                                                                             \
	static void name(const Args &a);                                                                            \
	static void name##Run(const void *a) { name(*static_cast<const Args *>(a)); }                               \
	static const host::Entry name##Entry(SLUICE_MODULE, #name, sizeof(Args), threads, name##Run);               \
	static void name(const Args &a)
#define KERNEL_BLOCKS(name, Args, threads, blocks) KERNEL(name, Args, threads)

namespace host {
// Entry lists a kernel.
struct Entry {
	const char *module, *name;
	uint64_t args;
	uint threads;
	void (*run)(const void *);
	const Entry *next;
	Entry(const char *module, const char *name, uint64_t args, uint threads, void (*run)(const void *));
};

// Where is where a thread of a kernel is.
struct Where {
	uint thread, threads, block[3], grid[3];
	void *shared; // of the launch
};

const Where &where();
void sync();
void syncWarp();

// exchange gives something of at most 32 bytes to the other lanes of a warp, and has theirs, by lane, until the next
// exchange but one.
constexpr uint64_t most = 32;
const uint8_t *exchange(const void *mine, uint64_t bytes);

// lanes is how many lanes the warp has.
uint lanes();

void copyAsync(void *to, const void *from, uint64_t bytes);
void commit();
void waitGroups(int n);
uint64_t nanoseconds();
} // namespace host

DEVICE uint threadX() { return host::where().thread; }
DEVICE uint blockThreads() { return host::where().threads; }
DEVICE uint blockX() { return host::where().block[0]; }
DEVICE uint blockY() { return host::where().block[1]; }
DEVICE uint blockZ() { return host::where().block[2]; }
DEVICE uint gridX() { return host::where().grid[0]; }
DEVICE uint gridY() { return host::where().grid[1]; }
DEVICE uint gridZ() { return host::where().grid[2]; }

template <class T> DEVICE T *dynamicShared() { return static_cast<T *>(host::where().shared); }

DEVICE void sync() { host::sync(); }
DEVICE void syncWarp() { host::syncWarp(); }

// theirs is what a lane has exchanged.
template <class T> DEVICE T theirs(const uint8_t *all, uint lane) {
	T v;
	__builtin_memcpy(&v, all + lane * host::most, sizeof v);
	return v;
}

template <class T> DEVICE T shuffle(T v, uint from) {
	static_assert(sizeof(T) == 4, "a shuffle is of 32 bits");
	from %= warpLanes;
	const uint8_t *all = host::exchange(&v, sizeof v);
	return from < host::lanes() ? theirs<T>(all, from) : v;
}

DEVICE uint ballot(bool p) {
	uint mine = p, bits = 0;
	const uint8_t *all = host::exchange(&mine, sizeof mine);
	for (uint i = 0; i < host::lanes(); i++) {
		bits |= theirs<uint>(all, i) << i;
	}
	return bits;
}

DEVICE int dot4(uint a, uint b, int c) {
	for (uint i = 0; i < 32; i += 8) {
		c += static_cast<int>(static_cast<int8_t>(a >> i)) * static_cast<int8_t>(b >> i);
	}
	return c;
}

DEVICE float fromHalf(uint bits) {
	uint sign = (bits & 0x8000u) << 16, e = bits >> 10 & 31, m = bits & 0x3ffu;
	if (e == 0) { // m·2⁻²⁴, which is exact
		float v = static_cast<float>(m) * 0x1p-24f;
		return sign != 0 ? -v : v;
	}
	return __builtin_bit_cast(float, sign | (e == 31 ? 0x7f800000u | m << 13 : (e + 112) << 23 | m << 13));
}

DEVICE uint toHalf(float v) {
	uint b = __builtin_bit_cast(uint, v), sign = b >> 16 & 0x8000u;
	b &= 0x7fffffffu;
	if (b > 0x7f800000u) {
		return 0x7fffu; // NaN, as a card has it
	}
	if (b >= 0x477ff000u) {
		return sign | 0x7c00u;
	}
	if (b < 0x38800000u) { // less than 2⁻¹⁴: adding 2⁻¹ rounds to multiples of 2⁻²⁴
		float r = __builtin_bit_cast(float, b) + 0.5f;
		return sign | (__builtin_bit_cast(uint, r) - 0x3f000000u);
	}
	return sign | ((b + 0xfffu + (b >> 13 & 1)) - 0x38000000u) >> 13;
}

DEVICE uint4 load128(const void *p) {
	uint4 v;
	__builtin_memcpy(&v, __builtin_assume_aligned(p, 16), sizeof v);
	return v;
}
DEVICE uint2 load64(const void *p) { return *static_cast<const uint2 *>(p); }
DEVICE uint load32(const void *p) { return *static_cast<const uint *>(p); }
DEVICE uint load16(const void *p) { return *static_cast<const uint16_t *>(p); }
DEVICE uint4 loadOnce128(const void *p) { return load128(p); }

DEVICE void prefetch(const void *) {}

DEVICE void copyAsync16(void *shared, const void *global) { host::copyAsync(shared, global, 16); }
DEVICE void commit() { host::commit(); }
template <int N> DEVICE void waitGroups() { host::waitGroups(N); }

DEVICE void loadMatrices(uint v[4], const void *row) {
	const uint8_t *all = host::exchange(&row, sizeof row);
	for (uint i = 0; i < 4; i++) {
		v[i] = theirs<const uint *>(all, i * 8 + threadX() % warpLanes / 4)[threadX() % 4];
	}
}

// pieces are a lane's parts of a and b.
struct pieces { uint a[4], b[2]; };

// mixed4 is dot4, but b's bytes have no signs.
DEVICE int mixed4(uint a, uint b, int c) {
	for (uint i = 0; i < 32; i += 8) {
		c += static_cast<int>(static_cast<int8_t>(a >> i)) * static_cast<int>(b >> i & 0xff);
	}
	return c;
}

template <int (*dot)(uint, uint, int)> DEVICE void mmaBytes(int c[4], const uint a[4], const uint b[2]) {
	pieces p = {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}};
	const uint8_t *all = host::exchange(&p, sizeof p);
	uint mine = threadX() % warpLanes;
	for (uint i = 0; i < 4; i++) {
		uint row = mine / 4, column = mine % 4 * 2 + i % 2;
		for (uint k = 0; k < 4; k++) { // four bytes of lane k's, of both halves of the 32
			pieces of = theirs<pieces>(all, row * 4 + k), with = theirs<pieces>(all, column * 4 + k);
			c[i] = dot(of.a[i / 2], with.b[0], c[i]);
			c[i] = dot(of.a[i / 2 + 2], with.b[1], c[i]);
		}
	}
}

DEVICE void mmaS8(int c[4], const uint a[4], const uint b[2]) { mmaBytes<dot4>(c, a, b); }
DEVICE void mmaS8U8(int c[4], const uint a[4], const uint b[2]) { mmaBytes<mixed4>(c, a, b); }

DEVICE void mmaS8Half(int c[4], uint a0, uint a1, uint b) {
	const uint a[4] = {a0, a1}, both[2] = {b};
	mmaS8(c, a, both);
}

// mmaF16 adds the exact products in double precision. A card has an order, and a rounding, of its own.
DEVICE void mmaF16(float c[4], const uint a[4], const uint b[2]) {
	pieces p = {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}};
	const uint8_t *all = host::exchange(&p, sizeof p);
	uint mine = threadX() % warpLanes;
	for (uint i = 0; i < 4; i++) {
		uint row = mine / 4, column = mine % 4 * 2 + i % 2;
		double sum = c[i];
		for (uint half = 0; half < 2; half++) {
			for (uint k = 0; k < 8; k++) {
				uint x = theirs<pieces>(all, row * 4 + k / 2).a[i / 2 + 2 * half] >> k % 2 * 16 & 0xffffu;
				uint y = theirs<pieces>(all, column * 4 + k / 2).b[half] >> k % 2 * 16 & 0xffffu;
				sum += static_cast<double>(fromHalf(x)) * fromHalf(y);
			}
		}
		c[i] = static_cast<float>(sum);
	}
}

DEVICE uint atomicAdd(uint *p, uint v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }
DEVICE uint atomicOr(uint *p, uint v) { return __atomic_fetch_or(p, v, __ATOMIC_RELAXED); }
DEVICE uint atomicMax(uint *p, uint v) {
	uint old = __atomic_load_n(p, __ATOMIC_RELAXED);
	while (old < v && !__atomic_compare_exchange_n(p, &old, v, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
	}
	return old;
}

DEVICE uint64_t nanoseconds() { return host::nanoseconds(); }
DEVICE void storeSystem(uint64_t *p, uint64_t v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }
DEVICE uint64_t loadSystem(const uint64_t *p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
