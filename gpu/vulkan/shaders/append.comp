#version 460
#extension GL_GOOGLE_include_directive : require
// Appends rows of keys, or of values, to a cache of any type.
//
// A workgroup owns a row's head. Grid: KV heads, rows.
//
// variant: append
#include "lib/buffers.glsl"
#include "lib/step.glsl"

layout(local_size_x = 64) in;
layout(constant_id = 0) const uint TYPE = 1;
#include "lib/cache.glsl"

layout(push_constant, scalar) uniform Push {
	Floats x;
	uint64_t cache; // the layer's
	StepRows rows;
	Words tables;
	Words count;    // rows that are there; 0: all
	uint features;  // of a head
	uint grouped;   // features with one scale
	uint xStride;   // in float32
};

const float TINY = 7.888609e-31; // 2⁻¹⁰⁰

void main() {
	uint head = gl_WorkGroupID.x, r = gl_WorkGroupID.y, heads = gl_NumWorkGroups.x;
	if (uint64_t(count) != 0 && r >= count.v[0]) {
		return;
	}
	Row row = rows.v[r];
	uint64_t run = cache + runBytes(TYPE, features, grouped) * (block(tables, row, row.position) * heads + head);
	uint from = r * xStride + head * features, at = row.position % 64 * features;
	if (TYPE != KVQ8) {
		for (uint d = gl_LocalInvocationID.x; d < features; d += 64) {
			float v = x.v[from + d];
			if (TYPE == KVF32) {
				Floats(run).v[at + d] = v;
			} else {
				Halves(run).v[at + d] = uint16_t(packHalf2x16(vec2(v, 0)));
			}
		}
		return;
	}
	uint n = scalesOf(features, grouped);
	for (uint g = gl_LocalInvocationID.x; g < n; g += 64) {
		uint to = min(grouped * (g + 1), features);
		float amax = 0.0;
		for (uint d = grouped * g; d < to; d++) {
			amax = max(amax, abs(x.v[from + d]));
		}
		float scale = amax < TINY ? 0.0 : 127.0 / amax;
		for (uint d = grouped * g; d < to; d++) {
			Bytes(run).v[at + d] = uint8_t(int(roundEven(x.v[from + d] * scale)) & 0xff);
		}
		Floats(run + 64ul * features).v[row.position % 64 * n + g] = amax < TINY ? 0.0 : 1.0 / scale;
	}
}
