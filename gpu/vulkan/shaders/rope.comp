#version 460
#extension GL_GOOGLE_include_directive : require
// Rotates queries and keys by their positions, and stores keys and values in the cache: for steps in which a sequence
// has several rows. A row of x is its query heads, then key heads, then value heads; queries are written to q.
//
// A workgroup owns a row's head. Grid: heads of all three kinds, rows.
//
// variant: rope
#include "lib/buffers.glsl"
#include "lib/step.glsl"
#include "lib/rope.glsl"

layout(local_size_x = 64) in;
layout(constant_id = 0) const uint FEATURES = 128; // of a head
layout(constant_id = 1) const uint DIMS = 128;     // that rotate; 0: none
layout(constant_id = 2) const uint INTERLEAVED = 0;
layout(constant_id = 3) const uint HEADS = 1;
layout(constant_id = 4) const uint KVHEADS = 1;

layout(push_constant, scalar) uniform Push {
	uint64_t x;      // float32 rows
	uint64_t q;      // float32 rows of query heads; x, if they stay there
	Halves keys;     // the layer's
	Halves values;
	StepRows rows;
	Words tables;
	uint64_t angles; // [row][DIMS/2] cosine and sine
	Words count;     // rows that are there; 0: all
	uint xStride;    // in float32
	uint qStride;
};

shared float turnedHead[FEATURES];

void main() {
	uint head = gl_WorkGroupID.x, r = gl_WorkGroupID.y;
	if (uint64_t(count) != 0 && r >= count.v[0]) {
		return;
	}
	Row row = rows.v[r];
	Floats from = Floats(x + 4ul * (r * xStride + head * FEATURES));
	uint64_t mine = angles + 4ul * (r * DIMS);
	bool rotates = DIMS > 0 && head < HEADS + KVHEADS;
	for (uint d = gl_LocalInvocationID.x; d < FEATURES; d += 64) {
		turnedHead[d] = rotates ? turned(from, mine, d, DIMS, INTERLEAVED != 0) : from.v[d];
	}
	barrier(); // queries may be written where they were read
	uint at = cacheAt(block(tables, row, row.position), KVHEADS, (head - HEADS) % KVHEADS, row.position, FEATURES);
	for (uint d = gl_LocalInvocationID.x; d < FEATURES; d += 64) {
		float v = turnedHead[d];
		if (head < HEADS) {
			Floats(q + 4ul * (r * qStride + head * FEATURES)).v[d] = v;
			continue;
		}
		uint16_t h = uint16_t(packHalf2x16(vec2(v, 0)));
		if (head < HEADS + KVHEADS) {
			keys.v[at + d] = h;
		} else {
			values.v[at + d] = h;
		}
	}
}
