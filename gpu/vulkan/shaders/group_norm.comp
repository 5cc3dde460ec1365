#version 460
#extension GL_GOOGLE_include_directive : require
// Norms of groups of a row's features: RMS or layer, with weight and bias or without.
//
// A workgroup owns a row's group. Grid: groups of a row, rows. y may be x.
// Sums: a thread's every THREADSth value in order, then the threads' as a tree. THREADS is chosen by the group's size. Of
// squares of RMS norms of groups smaller than 1024: every 16th value in order, then these 16 in order, as attend.comp has it.
//
// variant: group_norm
#include "lib/buffers.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 64; // a power of two
layout(constant_id = 1) const uint LAYER = 0;    // 1: subtract the mean

layout(push_constant, scalar) uniform Push {
	Floats x;
	Floats y;
	Floats gain;     // 0: ones
	Floats bias;     // 0: none
	Words count;     // rows that are there; 0: all
	uint group;      // features
	uint gainGroups; // 1: gain is by feature of the row, not of the group
	uint biasGroups;
	uint xStride;    // in float32
	uint yStride;
	float eps;
};

shared float sums[THREADS];

float total(float own) {
	uint thread = gl_LocalInvocationID.x;
	barrier();
	sums[thread] = own;
	for (uint n = THREADS / 2; n > 0; n /= 2) {
		barrier();
		if (thread < n) {
			precise float s = sums[thread] + sums[thread + n];
			sums[thread] = s;
		}
	}
	barrier();
	return sums[0];
}

float inOrder(float own) {
	barrier();
	sums[gl_LocalInvocationID.x] = own;
	barrier();
	precise float s = 0.0;
	[[unroll]] for (uint i = 0; i < 16; i++) {
		s = s + sums[i];
	}
	return s;
}

void main() {
	uint g = gl_WorkGroupID.x, r = gl_WorkGroupID.y;
	if (uint64_t(count) != 0 && r >= count.v[0]) {
		return;
	}
	uint from = r * xStride + g * group, to = r * yStride + g * group;
	precise float mean = 0.0;
	if (LAYER != 0) {
		precise float s = 0.0;
		for (uint i = gl_LocalInvocationID.x; i < group; i += THREADS) {
			s = s + x.v[from + i];
		}
		mean = total(s) / float(group);
	}
	bool few = LAYER == 0 && group < 1024;
	uint step = few ? 16 : THREADS;
	precise float squares = 0.0;
	for (uint i = gl_LocalInvocationID.x; i < group && gl_LocalInvocationID.x < step; i += step) {
		precise float d = x.v[from + i] - mean;
		squares = fma(d, d, squares);
	}
	precise float scale = 1.0 / sqrt((few ? inOrder(squares) : total(squares)) / float(group) + eps);
	for (uint i = gl_LocalInvocationID.x; i < group; i += THREADS) {
		precise float v = (x.v[from + i] - mean) * scale;
		if (uint64_t(gain) != 0) {
			v = v * gain.v[gainGroups * g * group + i];
		}
		if (uint64_t(bias) != 0) {
			v = v + bias.v[biasGroups * g * group + i];
		}
		y.v[to + i] = v;
	}
}
