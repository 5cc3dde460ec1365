#version 460
#extension GL_GOOGLE_include_directive : require
// Gathers the rows of each expert, so that a workgroup of matvec.comp takes SIZE of them with one read of the weights.
// An entry is an expert and SIZE numbers of pairs of a row and an expert, in any order; all ones where there is none.
//
// One workgroup. Thread: every 256th expert and pair. Shared memory: EXPERTS·12 bytes.
//
// variant: group
#extension GL_KHR_memory_scope_semantics : require
#include "lib/buffers.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint EXPERTS = 8;
layout(constant_id = 1) const uint SIZE = 8;

layout(push_constant, scalar) uniform Push {
	Words ids;     // of experts, one for each pair
	Words entries; // [entry][1 + SIZE]
	uint pairs;
	uint most;     // entries that there may be: EXPERTS + pairs/SIZE
};

const uint NONE = 0xffffffffu;

shared uint counts[EXPERTS];
shared uint taken[EXPERTS];
shared uint first[EXPERTS]; // entry of each expert
shared uint used;

void main() {
	uint thread = gl_LocalInvocationID.x;
	for (uint e = thread; e < EXPERTS; e += 256) {
		counts[e] = 0;
		taken[e] = 0;
	}
	barrier();
	for (uint p = thread; p < pairs; p += 256) {
		uint e = ids.v[p];
		if (e < EXPERTS) {
			atomicAdd(counts[e], 1, gl_ScopeWorkgroup, 0, gl_SemanticsRelaxed);
		}
	}
	barrier();
	if (thread == 0) {
		used = 0;
		for (uint e = 0; e < EXPERTS; e++) {
			first[e] = used;
			used += (counts[e] + SIZE - 1) / SIZE;
		}
	}
	barrier();
	for (uint i = used + thread; i < most; i += 256) {
		entries.v[i * (SIZE + 1)] = NONE;
	}
	for (uint e = thread; e < EXPERTS; e += 256) {
		uint n = (counts[e] + SIZE - 1) / SIZE;
		for (uint i = 0; i < n; i++) {
			entries.v[(first[e] + i) * (SIZE + 1)] = e;
		}
		for (uint p = counts[e]; p < n * SIZE; p++) {
			entries.v[(first[e] + p / SIZE) * (SIZE + 1) + 1 + p % SIZE] = NONE;
		}
	}
	for (uint p = thread; p < pairs; p += 256) {
		uint e = ids.v[p];
		if (e < EXPERTS) {
			uint at = atomicAdd(taken[e], 1, gl_ScopeWorkgroup, 0, gl_SemanticsRelaxed);
			entries.v[(first[e] + at / SIZE) * (SIZE + 1) + 1 + at % SIZE] = p;
		}
	}
}
