// Gathers the rows of each expert, so that weights are read once for several of them. An entry is an expert and so many
// numbers of pairs of a row and an expert, in any order; all ones where there is none.
//
// One block. A thread owns every so many experts. Memory: experts·8 bytes.
//
// variant: group
#include "lib/device.cuh"

struct Args {
	uint64_t ids;     // of experts, one for each pair
	uint64_t entries; // [entry][1 + size]
	uint pairs;
	uint most; // entries that there may be
	uint experts;
	uint size;
};

constexpr uint threads = 256, none = ~0u;

KERNEL(group, Args, threads) {
	uint *counts = dynamicShared<uint>(), *first = counts + a.experts; // pairs, and the first entry, of each expert
	uint thread = threadX(), *entries = at<uint>(a.entries);
	const uint *ids = at<const uint>(a.ids);
	SHARED uint used;
	for (uint e = thread; e < a.experts; e += threads) {
		counts[e] = 0;
	}
	sync();
	for (uint p = thread; p < a.pairs; p += threads) {
		if (ids[p] < a.experts) {
			atomicAdd(&counts[ids[p]], 1);
		}
	}
	sync();
	if (thread == 0) {
		used = 0;
		for (uint e = 0; e < a.experts; e++) {
			first[e] = used;
			used += (counts[e] + a.size - 1) / a.size;
		}
	}
	sync();
	for (uint i = used + thread; i < a.most; i += threads) {
		entries[i * (a.size + 1)] = none;
	}
	for (uint e = thread; e < a.experts; e += threads) {
		uint n = (counts[e] + a.size - 1) / a.size;
		for (uint i = 0; i < n; i++) {
			entries[(first[e] + i) * (a.size + 1)] = e;
		}
		for (uint p = counts[e]; p < n * a.size; p++) {
			entries[(first[e] + p / a.size) * (a.size + 1) + 1 + p % a.size] = none;
		}
		counts[e] = 0;
	}
	sync();
	for (uint p = thread; p < a.pairs; p += threads) {
		if (ids[p] < a.experts) {
			uint to = atomicAdd(&counts[ids[p]], 1);
			entries[(first[ids[p]] + to / a.size) * (a.size + 1) + 1 + to % a.size] = p;
		}
	}
}
