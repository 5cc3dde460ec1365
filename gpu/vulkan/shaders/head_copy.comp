#version 460
#extension GL_GOOGLE_include_directive : require
// Copies some features of each head of rows to some of the heads of others: y[r][h·yHead + i] = x[r][h·xHead + i].
//
// A thread copies a value. Grid: workgroups for the values of a row, rows. x and y share no memory.
//
// variant: head_copy
#include "lib/buffers.glsl"

layout(local_size_x = 64) in;

layout(push_constant, scalar) uniform Push {
	Floats x;     // from the first feature that is copied on
	Floats y;
	Words count;  // rows that are there; 0: all
	uint heads;
	uint width;   // features that are copied of each head
	uint xHead;   // features of a head
	uint yHead;
	uint xStride; // of rows, in float32
	uint yStride;
};

void main() {
	uint i = gl_WorkGroupID.x * 64 + gl_LocalInvocationID.x, r = gl_WorkGroupID.y, head = i / width;
	if (head >= heads || uint64_t(count) != 0 && r >= count.v[0]) {
		return;
	}
	y.v[r * yStride + head * yHead + i % width] = x.v[r * xStride + head * xHead + i % width];
}
