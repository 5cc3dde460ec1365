#version 460
#extension GL_GOOGLE_include_directive : require
// Reads memory as fast as it comes, to measure that.
//
// A thread reads 16 bytes at a time, a grid apart from one another, four at once. Grid: as many workgroups as the device
// keeps busy. Subgroups: any.
//
// variant: read
#include "lib/buffers.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
	Quads x;
	Words never; // written if all that was read is a number that it is not: so it must be read
	uint quads;  // a multiple of four times all threads
};

void main() {
	uint all = gl_NumWorkGroups.x * 256;
	uvec4 sum = uvec4(0);
	for (uint i = gl_GlobalInvocationID.x; i < quads; i += 4 * all) {
		uvec4 a = x.v[i], b = x.v[i + all], c = x.v[i + 2 * all], d = x.v[i + 3 * all];
		sum ^= a ^ b ^ c ^ d;
	}
	if ((sum.x ^ sum.y ^ sum.z ^ sum.w) == 0x9e3779b9u) {
		never.v[0] = 1;
	}
}
