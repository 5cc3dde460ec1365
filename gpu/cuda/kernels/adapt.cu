// Adds what adapters make of rows: y[r] = a[r] + Σ s·B(A·x[r]), over the adapters of row r in their order. Two launches:
// the first leaves A·x by parts of x, the second (up) adds the parts in order and multiplies by B.
//
// First: a block owns a part of a row's x: 16 ranks at a time, each by 16 threads, which take every 16th feature; their
// sums are added in order. Grid: parts, rows.
// Up: a thread makes a value, by the ranks in order. Grid: blocks for a row's values, rows. y may be a.
//
// variant: adapt
#include "lib/device.cuh"

constexpr uint mostRanks = 1024; // of a row's adapters, all together

// Where a site's factors lie: a has a row for each feature, b for each rank, both of whole sixteens.
struct Change {
	uint64_t a, b;
	uint rank; // 0: none
	float scale;
	uint halves; // bit 0: a is of halves; bit 1: b is
	uint pad;
};

struct Applied {
	uint64_t changes; // by site; 0 ends a row's list
	float scale;
	uint pad;
};

struct Args {
	uint64_t x, a, y;
	uint64_t between; // [row][part][mostRanks]
	uint64_t first;   // by row of the step, where its list begins
	uint64_t applied;
	uint64_t numbers;    // rows of the step that these rows are; 0: the same
	uint64_t ids, drawn; // by which rows of A are taken, if there is no x; below 0, -1-i, what drawn[i] is
	uint64_t count;      // rows that are there
	uint features, width; // of x, of y
	uint site, parts;
	uint xStride, aStride, yStride; // in float32
	uint up;
};

DEVICE float factor(uint64_t base, uint halves, uint64_t i) {
	return halves != 0 ? fromHalf(at<const uint16_t>(base)[i]) : at<const float>(base)[i];
}

// What a thread adds up for a rank: every 16th feature from from on.
DEVICE float product(const Args &a, const Change &c, uint r, uint k, uint from, uint to) {
	uint64_t stride = (c.rank + 15) / 16 * 16;
	if (a.x == 0) {
		int id = at<const int>(a.ids)[r];
		id = id < 0 ? at<const int>(a.drawn)[-1 - id] : id;
		return from == 0 ? factor(c.a, c.halves & 1, static_cast<uint>(id) * stride + k) : 0.0f;
	}
	float sum = 0;
	const float *x = at<const float>(a.x) + uint64_t(r) * a.xStride;
#pragma unroll 4
	for (uint i = from; i < to; i += 16) {
		sum = fma(factor(c.a, c.halves & 1, i * stride + k), x[i], sum);
	}
	return sum;
}

KERNEL(adapt, Args, 256) {
	SHARED float sums[mostRanks];
	uint n = threadX(), r = blockY();
	if (r >= *at<const uint>(a.count)) {
		return;
	}
	uint part = blockX(), o = part * 256 + n;
	float *between = at<float>(a.between) + uint64_t(r) * a.parts * mostRanks;
	float y0 = a.up != 0 && o < a.width ? at<const float>(a.a)[uint64_t(r) * a.aStride + o] : 0.0f;
	const Applied *list = at<const Applied>(a.applied) +
		at<const uint>(a.first)[a.numbers == 0 ? r : at<const uint>(a.numbers)[r]];
	for (; list->changes != 0; list++) {
		Change c = at<const Change>(list->changes)[a.site];
		uint ranks = (c.rank + 15) / 16 * 16;
		if (a.up == 0) {
			uint each = (a.features + a.parts - 1) / a.parts, to = lesser(a.features, (part + 1) * each);
#pragma unroll 1
			for (uint k = 0; k < ranks; k += 16) {
				sync();
				sums[n] = product(a, c, r, k + n % 16, part * each + n / 16, to);
				sync();
				if (n < 16) {
					float sum = 0;
#pragma unroll 1
					for (uint j = n; j < 256; j += 16) {
						sum = sum + sums[j];
					}
					between[part * mostRanks + k + n] = sum;
				}
			}
		} else {
			sync();
#pragma unroll 1
			for (uint k = n; k < ranks; k += 256) {
				float sum = 0;
#pragma unroll 1
				for (uint p = 0; p < a.parts; p++) {
					sum = sum + between[p * mostRanks + k];
				}
				sums[k] = sum * (c.scale * list->scale);
			}
			sync();
			float sum = 0;
#pragma unroll 4
			for (uint k = 0; k < c.rank && o < a.width; k++) {
				sum = fma(factor(c.b, c.halves & 2, uint64_t(k) * ((a.width + 15) / 16 * 16) + o), sums[k], sum);
			}
			y0 = y0 + sum;
		}
		between += ranks;
	}
	if (a.up != 0 && o < a.width) {
		at<float>(a.y)[uint64_t(r) * a.yStride + o] = y0;
	}
}
