// y[c][o] = Σ w[o][k]·x[c][k] for 1 to 8 columns c at once, with what stands before and after it in a layer: Vulkan's
// matvec.comp, whose bits it has. The grid's second dimension is groups of columns.
//
// A block owns `tiles` tiles of 32 rows (gate and up of the same outputs, where epilogue is a GLU), and takes the next
// ones by strides of the grid. Lane: a row. A warp takes pieces, every one a segment of k of one tile and, where the
// experts of a row are summed, one expert.
//
// Order of addition, the same for every number of columns, threads and tiles: within a segment, blocks of 32 k in
// order of k; of floats four sums, of every fourth k, that are joined at its end; the segments' sums in order of k,
// from 0. So a column alone has the bits of the same column among others. Experts' results are summed in their order.
//
// Shared memory: pieces·columns·32 floats; with a norm a float for each 32 k of a column; where staged, the rows of x.
//
// variant: matvec_q4_0 -DQ4_0
// variant: matvec_q8_0 -DQ8_0
// variant: matvec_q4_k -DQ4_K
// variant: matvec_q6_k -DQ6_K
// variant: matvec_split -DSPLIT
// variant: matvec_split_low -DSPLIT_LOW
// variant: matvec_f16 -DF16
// variant: matvec_bf16 -DBF16
// variant: matvec_f32 -DF32
#include "lib/act.cuh"
#include "lib/norm.cuh"
#include "lib/tile.cuh"

struct Args {
	uint64_t weights;  // of experts the addresses, by number
	uint64_t x;        // quantised rows, or float32 where they are normalised or weights are floats
	uint64_t y;        // float32 rows, or quantised ones
	uint64_t gain;     // of the norm
	uint64_t bias;     // of experts a row for each; of a pair of matrices gate's
	uint64_t upBias;
	uint64_t residual; // rows like y
	uint64_t count;    // columns that are there; 0: all. Not for experts: it was looked at when they were chosen
	uint64_t chosen;
	uint64_t shares;   // of the chosen experts, where they are summed
	uint rows;         // outputs; of gate and of up, each, for a GLU
	uint width;        // k as the model has it
	uint kTiles;       // 256 k each
	uint segment;      // tiles of k
	uint xStride;      // from row to row of x that is normalised, in 4 bytes; else rows follow each other, padded
	uint yStride;      // of y and residual, in 4 bytes
	uint columns;      // rows of x and y, of all groups
	uint atOnce;       // columns of a group
	uint share;        // rows of y that have the same row of x, one after the other
	float eps;
	uint tiles;        // of rows at once
	uint prologue;     // 0: x is read where it is; 1: it is normalised; 2: it is copied to shared memory
	uint epilogue;     // 0: store; 1: act(gate)·up, store; 2: the same, quantised
	uint extras;       // 1: add a bias; 2: add a residual; 3: both
	uint act;          // lib/act.cuh
	uint groups;       // what the columns of a group are: kernel.Grouping
	uint summed;       // experts of a row; 1: they are not summed
	uint pad;
};

constexpr uint none = 0xffffffffu;
enum Grouping : uint { oneGroup, byColumns, byPair, byEntry, bySum };

// yRow is the row of y of a column, none if it is not there.
DEVICE uint yRow(const Args &a, uint column) {
	if (column >= a.atOnce) {
		return none;
	}
	uint row = blockY() * a.atOnce + column;
	switch (a.groups) {
	case oneGroup:
	case byColumns:
		return row < a.columns && (a.count == 0 || row < *at<const uint>(a.count)) ? row : none;
	case byEntry:
		return at<const uint>(a.chosen)[blockY() * (a.atOnce + 1) + 1 + column];
	}
	return row;
}

// xRow is the row of x of a column, or of expert e of a row: any, if it is not there.
DEVICE uint xRow(const Args &a, uint column, uint e) {
	if (a.groups == bySum) {
		return blockY() * a.summed + e;
	}
	uint row = yRow(a, column);
	return row == none ? 0 : a.groups >= byPair ? row / a.share : row;
}

// rowBytes is the size of a row of x as it is multiplied.
DEVICE uint rowBytes(const Args &a) {
#if defined(FLOATS)
	return a.kTiles * 1024;
#else
	return a.kTiles * 320;
#endif
}

// expertOf is the number of expert e of this group; 0 where there are none.
DEVICE uint expertOf(const Args &a, uint e) {
	switch (a.groups) {
	case byPair:
		return at<const uint>(a.chosen)[blockY()];
	case byEntry:
		return at<const uint>(a.chosen)[blockY() * (a.atOnce + 1)];
	case bySum:
		return at<const uint>(a.chosen)[blockY() * a.summed + e];
	}
	return 0;
}

DEVICE const uint4 *weightsOf(const Args &a, uint expert) {
	return a.groups >= byPair ? at<const uint4>(at<const uint64_t>(a.weights)[expert]) : at<const uint4>(a.weights);
}

// Sum is a column's within a segment.
#if defined(FLOATS)
struct Sum { float4 v; };
DEVICE float total(Sum s) { return (s.v.x + s.v.y) + (s.v.z + s.v.w); }
#else
struct Sum { float v; };
DEVICE float total(Sum s) { return s.v; }
#endif

// xWord and xScale are parts of a row of x, in shared memory or where nothing writes while the kernel runs.
template <bool staged> DEVICE uint4 xWord(const uint8_t *p) {
	return staged ? *reinterpret_cast<const uint4 *>(p) : load128(p);
}
template <bool staged> DEVICE uint2 xScale(const uint8_t *p) {
	return staged ? *reinterpret_cast<const uint2 *>(p) : load64(p);
}

// multiply adds a part, counted from the row's first, to the sums of all columns, whose rows of x are given.
template <uint C, bool staged>
DEVICE void multiply(const Packed &p, uint part, uint k, const uint8_t *const x[C], Sum acc[C]) {
#if defined(FLOATS)
	(void)k;
#pragma unroll
	for (uint i = 0; i < fours; i++) {
		float4 w = four(p.q, i);
#pragma unroll
		for (uint c = 0; c < C; c++) {
			uint4 q = xWord<staged>(x[c] + uint64_t(part * fours + i) * 16);
			acc[c].v.x = fma(w.x, bitsFloat(q.x), acc[c].v.x);
			acc[c].v.y = fma(w.y, bitsFloat(q.y), acc[c].v.y);
			acc[c].v.z = fma(w.z, bitsFloat(q.z), acc[c].v.z);
			acc[c].v.w = fma(w.w, bitsFloat(q.w), acc[c].v.w);
		}
	}
#else
#pragma unroll
	for (uint b = 0; b < blocks; b++) {
		Block u = unpack(p, part % parts, b);
		uint i = part * blocks + b; // block of the row
#pragma unroll
		for (uint c = 0; c < C; c++) {
			uint4 x0 = xWord<staged>(x[c] + i * 32), x1 = xWord<staged>(x[c] + i * 32 + 16);
			acc[c].v = add(acc[c].v, u, x0, x1, xScale<staged>(x[c] + k + i * 8));
		}
	}
#endif
}

// normalise makes rows of x what is multiplied, in shared memory: eight lanes for 32 values.
template <uint C> DEVICE void normalise(const Args &a, uint8_t *values, float *sums) {
	uint k = a.kTiles * 256, lane8 = threadX() % 8;
#pragma unroll 1
	for (uint c = 0; c < C; c++) {
		if (yRow(a, c) == none) {
			continue; // for all threads
		}
		const float *x = at<const float>(a.x) + uint64_t(xRow(a, c, 0)) * a.xStride, *gain = at<const float>(a.gain);
		uint8_t *to = values + c * rowBytes(a);
		float scale = rowScale(x, a.width, a.eps, sums + c * (k / 32));
		for (uint first = threadX() / 32 * 4; first < k / 32; first += blockThreads() / 8) {
			uint b = first + threadX() / 8 % 4, i = b * 32 + lane8 * 4;
			float4 v = scaled(input4(x, i, a.width), scale, input4(gain, i, a.width));
#if defined(FLOATS)
			reinterpret_cast<float4 *>(to)[i / 4] = v;
#else
			Quantised q = quantise8(v);
			reinterpret_cast<uint *>(to)[i / 4] = q.bytes;
			if (lane8 == 0) {
				reinterpret_cast<uint2 *>(to + k)[b] = q.scale;
			}
#endif
		}
	}
	sync();
}

// stage copies rows of x as they are.
template <uint C> DEVICE void stage(const Args &a, uint8_t *values) {
	uint size = rowBytes(a) / 16;
#pragma unroll 1
	for (uint r = 0; r < C * a.summed; r++) {
		const uint4 *from = at<const uint4>(a.x) + uint64_t(xRow(a, r % C, r / C)) * size;
#pragma unroll 1
		for (uint i = threadX(); i < size; i += blockThreads()) {
			reinterpret_cast<uint4 *>(values)[r * size + i] = load128(from + i);
		}
	}
	sync();
}

// Piece is what a warp multiplies in one go: parts of a row of tiles.
struct Piece {
	const uint4 *tiles;
	uint from, to; // parts, counted from the row's first
	uint e;        // of which expert of the row
};

// pieceOf is number i of a block's pieces: segments first, then tiles, then experts. Beyond the last tile of rows it takes
// the last.
DEVICE Piece pieceOf(const Args &a, uint i, uint segments, uint tile, uint rowTiles) {
	uint s = i % segments, t = i / segments % a.tiles, e = i / segments / a.tiles, expert = expertOf(a, e);
	const uint4 *w = weightsOf(a, expert == none ? expertOf(a, 0) : expert);
	uint from = s * a.segment;
	return {w + uint64_t(lesser(tile + t, rowTiles - 1)) * a.kTiles * tileWords, from * parts,
		lesser(from + a.segment, a.kTiles) * parts, e};
}

DEVICE Packed partOf(const Piece &p, uint part) {
	return loadPart(p.tiles + uint64_t(part / parts) * tileWords, lane(), part % parts);
}

// Sums are what a block's warps have summed up, [piece][column][row].
template <uint C> struct Sums {
	float *all;
	uint segments;
};

template <uint C> DEVICE float joined(const Sums<C> &sums, uint piece, uint column, uint row) {
	float sum = 0.0f;
#pragma unroll 4
	for (uint s = 0; s < sums.segments; s++) {
		sum = sum + sums.all[((piece * sums.segments + s) * C + column) * 32 + row];
	}
	return sum;
}

// finish is what becomes of an output's sum, which goes to a row of y.
DEVICE float finish(const Args &a, float v, uint expert, uint to, uint row) {
	if ((a.extras & 1) != 0) {
		v = v + at<const float>(a.bias)[uint64_t(expert) * a.rows + row];
	}
	if ((a.extras & 2) != 0) {
		v = v + at<const float>(a.residual)[uint64_t(to) * a.yStride + row];
	}
	return v;
}

// weighted adds up the results of a row's experts, with their biases, by their weights.
template <uint C> DEVICE float weighted(const Args &a, const Sums<C> &sums, uint t, uint row, uint at32) {
	float sum = 0.0f;
#pragma unroll 1
	for (uint e = 0; e < a.summed; e++) {
		float v = joined<C>(sums, e * a.tiles + t, 0, at32);
		if ((a.extras & 1) != 0) {
			v = v + at<const float>(a.bias)[uint64_t(expertOf(a, e)) * a.rows + row];
		}
		sum = fma(at<const float>(a.shares)[blockY() * a.summed + e], v, sum);
	}
	if ((a.extras & 2) != 0) {
		sum = sum + at<const float>(a.residual)[uint64_t(blockY()) * a.yStride + row];
	}
	return sum;
}

// glue is gate and up as one.
DEVICE float glue(const Args &a, float gate, float up, uint expert, uint row) {
	if ((a.extras & 1) != 0 && row < a.rows) {
		gate += at<const float>(a.bias)[uint64_t(expert) * a.rows + row];
		up += at<const float>(a.upBias)[uint64_t(expert) * a.rows + row];
	}
	return gated(a.act, gate, up);
}

// storeQuantised writes 32 outputs of each column as quantised activations: eight lanes, four values each. Those of the
// last tile write zeros up to whole 256, too.
template <uint C> DEVICE void storeQuantised(const Args &a, const float *results, uint tile) {
	uint padded = (a.rows + 255) / 256 * 256, last = tile + 1 < (a.rows + 31) / 32 ? tile : padded / 32 - 1;
	for (uint first = threadX() / 32 * 4; first < C; first += blockThreads() / 8) { // whole warps take part
		uint column = lesser(first + lane() / 8, C - 1), from = column * 32 + lane() % 8 * 4, to = yRow(a, column);
		Quantised q = quantise8({results[from], results[from + 1], results[from + 2], results[from + 3]});
		if (to == none || first + lane() / 8 >= C) {
			continue;
		}
#pragma unroll 1
		for (uint t = tile; t <= last; t++) {
			quantisedWords(a.y, to, padded)[t * 8 + lane() % 8] = t == tile ? q.bytes : 0;
			if (lane() % 8 == 0) {
				quantisedScales(a.y, to, padded)[t] = t == tile ? q.scale : uint2{0, 0};
			}
		}
	}
}

// store writes the outputs of a block's tiles.
template <uint C> DEVICE void store(const Args &a, const Sums<C> &sums, uint tile) {
	uint expert = a.groups >= byPair ? expertOf(a, 0) : 0;
#pragma unroll 1
	for (uint i = threadX(); i < (a.epilogue == 0 ? a.tiles : 1) * C * 32; i += blockThreads()) {
		uint t = i / (C * 32), column = i / 32 % C, row = i % 32, to = yRow(a, column);
		if (a.epilogue == 0) {
			uint o = (tile + t) * 32 + row;
			if (o < a.rows && to != none) {
				at<float>(a.y)[uint64_t(to) * a.yStride + o] = a.groups == bySum ? weighted<C>(a, sums, t, o, row)
					: finish(a, joined<C>(sums, t, column, row), expert, to, o);
			}
			continue;
		}
		uint o = tile / 2 * 32 + row;
		float h = glue(a, joined<C>(sums, 0, column, row), joined<C>(sums, 1, column, row), expert, o);
		if (a.epilogue == 2) {
			sums.all[i] = o < a.rows ? h : 0.0f; // nobody else reads what was there
		} else if (o < a.rows && to != none) {
			at<float>(a.y)[uint64_t(to) * a.yStride + o] = h;
		}
	}
	sync();
	if (a.epilogue == 2) {
		storeQuantised<C>(a, sums.all, tile / 2);
		sync();
	}
}

// multiplyAll has the warps multiply all pieces of a block, whose first part each has loaded.
template <uint C, bool staged>
DEVICE void multiplyAll(const Args &a, const Sums<C> &sums, const uint8_t *values, uint tile, uint rowTiles, Piece p, Packed next) {
	uint pieces = sums.segments * a.tiles * a.summed, warps = blockThreads() / 32;
	for (uint i = threadX() / 32; i < pieces; i += warps) {
		Sum acc[C] = {};
		const uint8_t *x[C];
#pragma unroll
		for (uint c = 0; c < C; c++) {
			x[c] = staged ? values + (p.e * C + c) * rowBytes(a) : at<const uint8_t>(a.x) + uint64_t(xRow(a, c, p.e)) * rowBytes(a);
		}
		uint to = p.to;
		for (uint part = p.from; part < to; part++) {
			Packed w = next;
			if (part + 1 < to) {
				next = partOf(p, part + 1);
			} else if (i + warps < pieces) {
				p = pieceOf(a, i + warps, sums.segments, tile, rowTiles);
				next = partOf(p, p.from);
			}
			multiply<C, staged>(w, part, a.kTiles * 256, x, acc);
		}
#pragma unroll
		for (uint c = 0; c < C; c++) {
			sums.all[(i * C + c) * 32 + lane()] = total(acc[c]);
		}
	}
}

template <uint C, bool staged> DEVICE void matVec(const Args &a) {
	if (a.groups >= byPair && expertOf(a, 0) == none) {
		return;
	}
	uint rowTiles = (a.rows + 31) / 32 * (a.epilogue == 0 ? 1 : 2);
	Sums<C> sums = {dynamicShared<float>(), (a.kTiles + a.segment - 1) / a.segment};
	uint pieces = sums.segments * a.tiles * a.summed;
	float *squares = sums.all + pieces * C * 32;
	uint8_t *values = reinterpret_cast<uint8_t *>(squares + (a.prologue == 1 ? C * a.kTiles * 8 : 0));
	bool ready = !staged;
	for (uint tile = blockX() * a.tiles; tile < rowTiles; tile += gridX() * a.tiles) {
		// Weights are on the way while activations are made ready.
		Piece p = pieceOf(a, lesser(threadX() / 32, pieces - 1), sums.segments, tile, rowTiles);
		Packed next = partOf(p, p.from);
		if (!ready) {
			if (a.prologue == 1) {
				normalise<C>(a, values, squares);
			} else {
				stage<C>(a, values);
			}
			ready = true;
		}
		multiplyAll<C, staged>(a, sums, values, tile, rowTiles, p, next);
		sync();
		store<C>(a, sums, tile);
	}
}

// Few shapes, as cards compile each for a second: columns are rounded up to one of these.
KERNEL(matVec1, Args, 512) { matVec<1, false>(a); }
KERNEL(matVec8, Args, 512) { matVec<8, false>(a); }
KERNEL(matVec1Staged, Args, 512) { matVec<1, true>(a); }
KERNEL(matVec2Staged, Args, 512) { matVec<2, true>(a); }
KERNEL(matVec4Staged, Args, 512) { matVec<4, true>(a); }
KERNEL(matVec8Staged, Args, 512) { matVec<8, true>(a); }
