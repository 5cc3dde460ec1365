// What a queue needs besides kernels that compute: timestamps, and the words of timelines where the driver has streams
// neither wait for words nor write them.
//
// One block of one thread, but for fetch: a thread brings 16 bytes from the host's memory.
//
// variant: queue
#include "lib/device.cuh"

struct StampArgs { uint64_t to; };

KERNEL(stamp, StampArgs, 1) { storeSystem(at<uint64_t>(a.to), nanoseconds()); }

struct WordArgs { uint64_t word, value; };

KERNEL(raise, WordArgs, 1) { storeSystem(at<uint64_t>(a.word), a.value); }

KERNEL(await, WordArgs, 1) {
	while (static_cast<int64_t>(loadSystem(at<uint64_t>(a.word)) - a.value) < 0) {
	}
}

struct FetchArgs { uint64_t to, from, quads; };

KERNEL(fetch, FetchArgs, 256) {
	uint64_t i = uint64_t(blockX()) * blockThreads() + threadX();
	if (i < a.quads) {
		at<uint4>(a.to)[i] = at<uint4>(a.from)[i];
	}
}
