#version 460
#extension GL_GOOGLE_include_directive : require
// Gathers the rows of each expert, so that a workgroup of matvec.comp takes SIZE of them with one read of the weights.
// An entry is an expert and SIZE numbers of pairs of a row and an expert, in order; all ones where there is none.
//
// One workgroup. Thread: every 256th expert. Shared memory: EXPERTS·4 bytes.
//
// variant: group
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

shared uint first[EXPERTS]; // entry of each expert

void main() {
	uint thread = gl_LocalInvocationID.x;
	for (uint e = thread; e < EXPERTS; e += 256) {
		uint n = 0;
		for (uint p = 0; p < pairs; p++) {
			n += ids.v[p] == e ? 1 : 0;
		}
		first[e] = (n + SIZE - 1) / SIZE;
	}
	barrier();
	if (thread == 0) {
		uint sum = 0;
		for (uint e = 0; e < EXPERTS; e++) {
			uint n = first[e];
			first[e] = sum;
			sum += n;
		}
		for (uint i = sum; i < most; i++) {
			entries.v[i * (SIZE + 1)] = 0xffffffffu;
		}
	}
	barrier();
	for (uint e = thread; e < EXPERTS; e += 256) {
		uint n = 0, at = first[e] * (SIZE + 1);
		for (uint p = 0; p < pairs; p++) {
			if (ids.v[p] == e) {
				if (n % SIZE == 0) {
					entries.v[at + n / SIZE * (SIZE + 1)] = e;
				}
				entries.v[at + n / SIZE * (SIZE + 1) + 1 + n % SIZE] = p;
				n++;
			}
		}
		for (; n % SIZE != 0; n++) {
			entries.v[at + n / SIZE * (SIZE + 1) + 1 + n % SIZE] = 0xffffffffu;
		}
	}
}
