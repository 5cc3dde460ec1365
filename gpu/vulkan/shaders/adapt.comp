#version 460
#extension GL_GOOGLE_include_directive : require
// Adds what adapters make of rows: y[r] = a[r] + Σ s·B(A·x[r]), over the adapters of row r in their order. Two launches:
// the first leaves A·x by parts of x, the second (up) adds the parts in order and multiplies by B.
//
// First: a workgroup owns a part of a row's x: 16 ranks at a time, each by 16 threads, which take every 16th feature;
// their sums are added in order. Grid: parts, rows.
// Up: a thread makes a value, by the ranks in order. Grid: workgroups for a row's values, rows. y may be a.
//
// variant: adapt
#include "lib/buffers.glsl"

layout(local_size_x = 256) in;

const uint RANKS = 1024; // of a row's adapters, all together

// Where a site's factors lie: a has a row for each feature, b for each rank, both of whole sixteens.
struct Change {
	uint64_t a;
	uint64_t b;
	uint rank; // 0: none
	float scale;
	uint halves; // bit 0: a is of halves; bit 1: b is
	uint pad;
};

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Changes { Change v[]; };

struct Applied {
	Changes changes; // by site; 0 ends a row's list
	float scale;
	uint pad;
};

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Lists { Applied v[]; };

layout(push_constant, scalar) uniform Push {
	Floats x;
	Floats a;
	Floats y;
	Floats between; // [row][part][RANKS]
	Words first;    // by row of the step, where its list begins
	Lists applied;
	Words numbers; // rows of the step that these rows are; 0: the same
	Words ids;     // by which rows of A are taken, if there is no x; below 0, -1-i, what drawn[i] is
	Words drawn;
	Words count; // rows that are there
	uint features; // of x
	uint width;    // of y
	uint site;
	uint parts;
	uint xStride; // in float32
	uint aStride;
	uint yStride;
	uint up;
};

shared float sums[RANKS];

float factor(uint64_t at, uint halves, uint i) {
	return halves != 0 ? fromHalf(uint(Halves(at).v[i])) : Floats(at).v[i];
}

// What a thread adds up for a rank: every 16th feature from from on.
float product(Change c, uint r, uint k, uint from, uint to) {
	uint stride = (c.rank + 15) / 16 * 16;
	if (uint64_t(x) == 0) {
		uint id = ids.v[r];
		id = int(id) < 0 ? drawn.v[-1 - int(id)] : id;
		return from == 0 ? factor(c.a, c.halves & 1, id * stride + k) : 0.0;
	}
	precise float sum = 0.0;
	for (uint i = from; i < to; i += 16) {
		sum = fma(factor(c.a, c.halves & 1, i * stride + k), x.v[r * xStride + i], sum);
	}
	return sum;
}

void main() {
	uint n = gl_LocalInvocationID.x, r = gl_WorkGroupID.y;
	if (r >= count.v[0]) {
		return;
	}
	uint part = gl_WorkGroupID.x, at = r * parts * RANKS, o = part * 256 + n;
	precise float y0 = up != 0 && o < width ? a.v[r * aStride + o] : 0.0;
	for (uint i = first.v[uint64_t(numbers) == 0 ? r : numbers.v[r]];; i++) {
		Applied applied_ = applied.v[i];
		if (uint64_t(applied_.changes) == 0) {
			break;
		}
		Change c = applied_.changes.v[site];
		uint ranks = (c.rank + 15) / 16 * 16;
		if (up == 0) {
			uint each = (features + parts - 1) / parts, to = min(features, (part + 1) * each);
			for (uint k = 0; k < ranks; k += 16) {
				barrier();
				sums[n] = product(c, r, k + n % 16, part * each + n / 16, to);
				barrier();
				if (n < 16) {
					precise float sum = 0.0;
					for (uint j = n; j < 256; j += 16) {
						sum = sum + sums[j];
					}
					between.v[at + part * RANKS + k + n] = sum;
				}
			}
		} else {
			barrier();
			for (uint k = n; k < ranks; k += 256) {
				precise float sum = 0.0;
				for (uint p = 0; p < parts; p++) {
					sum = sum + between.v[at + p * RANKS + k];
				}
				sums[k] = sum * (c.scale * applied_.scale);
			}
			barrier();
			precise float sum = 0.0;
			for (uint k = 0; k < c.rank && o < width; k++) {
				sum = fma(factor(c.b, c.halves & 2, k * ((width + 15) / 16 * 16) + o), sums[k], sum);
			}
			y0 = y0 + sum;
		}
		at += ranks;
	}
	if (up != 0 && o < width) {
		y.v[r * yStride + o] = y0;
	}
}
