#version 460
#extension GL_GOOGLE_include_directive : require
// y[c][o] = Σ w[o][k]·x[c][k] for many columns c: what matvec.comp computes, bit for bit, for prefill.
//
// A workgroup owns 128 outputs (four tiles of 32 rows; two of gate and two of up, where EPILOGUE is a GLU) and 32·WIDE
// columns, or 16·WIDE if NARROW. A team of 32 threads (of a subgroup, where MATRIX) has 64 outputs × 32, or 16, columns
// of them as 4 × ACROSS squares of 16 × 16. Stages of 64 k are unpacked to shared memory, while the next one is loaded.
//
// Order of addition: that of matvec.comp. Products of 32 k (of 16, where scales are of 16) are whole numbers, by
// cooperative matrices or by dot products; they are scaled and added one by one, in order of k, then segments are.
//
// Shared memory: as matmul.go says. Subgroups: 32 lanes where MATRIX, else 8 or more.
//
// variant: matmul_q4_0 -DQ4_0 -DDOT4
// variant: matmul_q4_0_plain -DQ4_0
// variant: matmul_q4_0_matrix -DQ4_0 -DMATRIX
// variant: matmul_q4_0_narrow -DQ4_0 -DMATRIX -DNARROW
// variant: matmul_q8_0 -DQ8_0 -DDOT4
// variant: matmul_q8_0_plain -DQ8_0
// variant: matmul_q8_0_matrix -DQ8_0 -DMATRIX
// variant: matmul_q4_k -DQ4_K -DDOT4
// variant: matmul_q4_k_plain -DQ4_K
// variant: matmul_q4_k_matrix -DQ4_K -DMATRIX
// variant: matmul_q4_k_narrow -DQ4_K -DMATRIX -DNARROW
// variant: matmul_q6_k -DQ6_K -DDOT4
// variant: matmul_q6_k_plain -DQ6_K
// variant: matmul_q6_k_matrix -DQ6_K -DMATRIX
// variant: matmul_split -DSPLIT -DDOT4
// variant: matmul_split_plain -DSPLIT
// variant: matmul_split_matrix -DSPLIT -DMATRIX
// variant: matmul_split_low -DSPLITLOW -DDOT4
// variant: matmul_split_low_plain -DSPLITLOW
// variant: matmul_split_low_matrix -DSPLITLOW -DMATRIX
#include "lib/buffers.glsl"
#include "lib/quantise.glsl"
#include "lib/act.glsl"
#include "lib/tile.glsl"
#if defined(MATRIX)
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#endif

layout(local_size_x_id = 0) in; // 64 · WIDE
layout(constant_id = 0) const uint THREADS = 64;
layout(constant_id = 1) const uint WIDE = 1;     // teams side by side
layout(constant_id = 2) const uint EPILOGUE = 0; // as in matvec.comp
layout(constant_id = 3) const uint EXTRAS = 0;
layout(constant_id = 4) const uint ACT = 1;
layout(constant_id = 5) const uint GROUPS = 0;   // 1: columns are those of an entry of group.comp, of an expert's matrix

layout(push_constant, scalar) uniform Push {
	Quads weights;   // of experts the addresses, by number
	Quads x;         // quantised rows
	uint64_t y;
	Floats bias;
	Floats residual;
	Words count;     // columns that are there; 0: all
	uint rows;
	uint yStride;    // of y and residual, in float32
	uint columns;
	uint kTiles;     // 256 k each. No constants: one kernel serves all matrices
	uint segment;    // tiles of k
	uint share;      // rows of y that have the same row of x, of experts
	Words chosen;
};

#if defined(NARROW)
const uint ACROSS = 1;
#else
const uint ACROSS = 2;
#endif
const uint TALL = 128, COLUMNS = 16 * ACROSS * WIDE;

// Shared words of 4 k: rows of weights, and of columns, in a stage. Where scales are of 16 k, each block of weights is
// 16 k, 16 zeros, 16 k: so a half of a block is multiplied with the other masked.
#if defined(Q6_K) || defined(SPLIT) || defined(SPLITLOW)
#define HALVES
const uint ASTEP = 12, ASTRIDE = 28;
#else
const uint ASTEP = 8, ASTRIDE = 20;
#endif
const uint BSTEP = 8, BSTRIDE = 20;

const uint NONE = 0xffffffffu;
Quads base;
uint expert = 0;
shared uint targets[GROUPS != 0 ? COLUMNS : 1]; // of experts

// target is the row of y that a column, counted from the grid's first, goes to; NONE if it is not there.
uint target(uint column) {
	if (GROUPS != 0) {
		return targets[column % COLUMNS];
	}
	return column < columns && (uint64_t(count) == 0 || column < count.v[0]) ? column : NONE;
}

#include "lib/squares.glsl"

#if defined(MATRIX)
#define WORD i8vec4
#define WHOLE coopmat<int, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
#define LEFT coopmat<int8_t, gl_ScopeSubgroup, 16, 32, gl_MatrixUseA>
#define RIGHT coopmat<int8_t, gl_ScopeSubgroup, 32, 16, gl_MatrixUseB>
#define EACHBLOCK [[unroll]]
#define BYROW(to, list, from) coopMatLoad(to, list, from, 0, gl_CooperativeMatrixLayoutColumnMajor)
#define BYCOLUMN(to, list, from) coopMatLoad(to, list, from, 0, gl_CooperativeMatrixLayoutRowMajor)
WORD word(uint v) { return unpack8(int(v)); }
#else
#define WORD uint
#define WHOLE int[8]
#define LEFT uint
#define RIGHT uint
#define EACHBLOCK [[dont_unroll]]
#define BYROW(to, list, from) [[unroll]] for (uint e = 0; e < 8; e++) { to[e] = list[(from) + squareRow()]; }
#define BYCOLUMN(to, list, from) [[unroll]] for (uint e = 0; e < 8; e++) { to[e] = list[(from) + squareColumn() + 2 * e]; }
WORD word(uint v) { return v; }
#endif

shared WORD a[TALL * ASTRIDE];
shared WORD b[COLUMNS * BSTRIDE];
shared float aScale[2 * TALL]; // [block of the stage][row]
shared float bScale[2 * COLUMNS];
#if defined(Q6_K)
shared int aFirst[2 * TALL];
shared int aSecond[2 * TALL];
#elif defined(HALVES)
shared float aOther[2 * TALL];
#endif
#if defined(Q4_K) || defined(SPLITLOW)
shared float aLow[2 * TALL];
shared float bSum[2 * COLUMNS]; // of 32, or of the first 16
#endif
#if defined(SPLITLOW)
shared float aOtherLow[2 * TALL];
shared float bOtherSum[2 * COLUMNS];
#endif
SQUARE acc[SQUARES]; // [4 of rows][ACROSS of columns]

const uint ITEMS = 256 / THREADS;             // blocks of weights that a thread has of a stage
const uint XITEMS = (COLUMNS * 4) / THREADS;  // words of 16 bytes of activations
const uint SITEMS = (COLUMNS * 2 + THREADS - 1) / THREADS; // scales of activations
Block nextBlocks[ITEMS];
uvec4 nextX[XITEMS];
uvec2 nextScales[SITEMS];

// column is the row of x of a column of this workgroup: any, if it is not there.
uint column(uint c) {
	if (GROUPS != 0) {
		return targets[c] == NONE ? 0 : targets[c] / share;
	}
	return min(gl_WorkGroupID.y * COLUMNS + c, columns - 1);
}

// fetch loads a stage.
void fetch(uint stage) {
	uint rowTiles = (rows + 31) / 32 * (EPILOGUE == 0 ? 1 : 2);
	[[unroll]] for (uint i = 0; i < ITEMS; i++) {
		uint item = i * THREADS + gl_LocalInvocationID.x, row = item % TALL, part = item / TALL;
		uint tile = min(gl_WorkGroupID.x * 4 + row / 32, rowTiles - 1);
		nextBlocks[i] = blockAt(base, (tile * kTiles + stage / 4) * TILE, row % 32, stage % 4 * 2 + part);
	}
	[[unroll]] for (uint i = 0; i < XITEMS; i++) {
		uint item = i * THREADS + gl_LocalInvocationID.x;
		nextX[i] = x.v[column(item / 4) * (kTiles * 20) + stage * 4 + item % 4];
	}
	[[unroll]] for (uint i = 0; i < SITEMS; i++) {
		uint item = i * THREADS + gl_LocalInvocationID.x;
		nextScales[i] = Pairs(uint64_t(x)).v[column(min(item / 2, COLUMNS - 1)) * (kTiles * 40) + kTiles * 32 + stage * 2 + item % 2];
	}
}

// put writes the stage that was fetched to shared memory.
void put() {
	[[unroll]] for (uint i = 0; i < ITEMS; i++) {
		uint item = i * THREADS + gl_LocalInvocationID.x, row = item % TALL, part = item / TALL;
		uint at = row * ASTRIDE + part * ASTEP;
		[[unroll]] for (uint j = 0; j < 4; j++) {
			a[at + j] = word(centred(nextBlocks[i].lo[j]));
			a[at + ASTEP - 4 + j] = word(centred(nextBlocks[i].hi[j]));
		}
		aScale[item] = nextBlocks[i].scale;
#if defined(Q6_K)
		aFirst[item] = nextBlocks[i].s0;
		aSecond[item] = nextBlocks[i].s1;
#elif defined(HALVES)
		aOther[item] = nextBlocks[i].otherScale;
#endif
#if defined(Q4_K) || defined(SPLITLOW)
		aLow[item] = nextBlocks[i].low;
#endif
#if defined(SPLITLOW)
		aOtherLow[item] = nextBlocks[i].otherLow;
#endif
	}
	[[unroll]] for (uint i = 0; i < XITEMS; i++) {
		uint item = i * THREADS + gl_LocalInvocationID.x;
		[[unroll]] for (uint j = 0; j < 4; j++) {
			b[item / 4 * BSTRIDE + item % 4 * 4 + j] = word(nextX[i][j]);
		}
	}
	[[unroll]] for (uint i = 0; i < SITEMS; i++) {
		uint item = i * THREADS + gl_LocalInvocationID.x, at = item % 2 * COLUMNS + item / 2;
		if (item >= COLUMNS * 2) {
			break;
		}
		bScale[at] = uintBitsToFloat(nextScales[i].x);
#if defined(Q4_K) || defined(SPLITLOW)
		int first = bitfieldExtract(int(nextScales[i].y), 0, 16), second = int(nextScales[i].y) >> 16;
#if defined(Q4_K)
		bSum[at] = float(first + second);
#else
		bSum[at] = float(first);
		bOtherSum[at] = float(second);
#endif
#endif
	}
}

// LOADA and LOADB take 32 k of 16 rows and of 16 columns, PRODUCT their whole-number products, of so many words.
#if defined(MATRIX)
#define LOADA(to, row, at) coopMatLoad(to, a, (row) * ASTRIDE + (at), ASTRIDE, gl_CooperativeMatrixLayoutRowMajor)
#define LOADB(to, column, at) coopMatLoad(to, b, (column) * BSTRIDE + (at), BSTRIDE, gl_CooperativeMatrixLayoutColumnMajor)
#define PRODUCT(to, left, right, words) to = coopMatMulAdd(left, right, WHOLE(0))
#else
// What is loaded is where it is.
#define LOADA(to, row, at) to = ((row) + squareRow()) * ASTRIDE + (at)
#define LOADB(to, column, at) to = ((column) + squareColumn()) * BSTRIDE + (at)
#define PRODUCT(to, left, right, words) \
	[[unroll]] for (uint e = 0; e < 8; e++) { to[e] = dots(left, (right) + 2 * e * BSTRIDE, words); }

int dots(uint left, uint right, uint words) {
	int sum = 0;
	[[dont_unroll]] for (uint w = 0; w < words; w++) { // all of it would be thousands of instructions
		sum += dot4(a[left + w], b[right + w]);
	}
	return sum;
}
#endif

// multiply adds a block of the stage to the sums.
void multiply(uint block) {
	uint team = gl_LocalInvocationID.x / 32, row = team % 2 * 64, column = team / 2 * (16 * ACROSS);
	RIGHT right[ACROSS];
	SQUARE d[ACROSS];
#if defined(Q4_K) || defined(SPLITLOW)
	SQUARE sum[ACROSS];
#endif
#if defined(SPLITLOW)
	SQUARE otherSum[ACROSS];
#endif
	[[unroll]] for (uint j = 0; j < ACROSS; j++) {
		uint from = block * COLUMNS + column + 16 * j;
		LOADB(right[j], column + 16 * j, block * BSTEP);
		BYCOLUMN(d[j], bScale, from);
#if defined(Q4_K) || defined(SPLITLOW)
		BYCOLUMN(sum[j], bSum, from);
#endif
#if defined(SPLITLOW)
		BYCOLUMN(otherSum[j], bOtherSum, from);
#endif
	}
	[[unroll]] for (uint i = 0; i < 4; i++) {
		uint from = block * TALL + row + 16 * i;
		LEFT left;
		SQUARE scale;
		LOADA(left, row + 16 * i, block * ASTEP);
		BYROW(scale, aScale, from);
#if defined(HALVES) && defined(MATRIX)
		LEFT second;
		LOADA(second, row + 16 * i, block * ASTEP + 4);
#endif
#if defined(Q6_K)
		WHOLE s0, s1;
		BYROW(s0, aFirst, from);
		BYROW(s1, aSecond, from);
#elif defined(HALVES)
		SQUARE other;
		BYROW(other, aOther, from);
#endif
#if defined(Q4_K) || defined(SPLITLOW)
		SQUARE low;
		BYROW(low, aLow, from);
#endif
#if defined(SPLITLOW)
		SQUARE otherLow;
		BYROW(otherLow, aOtherLow, from);
#endif
		[[unroll]] for (uint j = 0; j < ACROSS; j++) {
			WHOLE p;
#if !defined(HALVES)
			PRODUCT(p, left, right[j], 8);
#else
			WHOLE q;
#if defined(MATRIX)
			PRODUCT(p, left, right[j], 8);
			PRODUCT(q, second, right[j], 8);
#else
			PRODUCT(p, left, right[j], 4);
			PRODUCT(q, left + ASTEP - 4, right[j] + 4, 4);
#endif
#endif
			[[unroll]] for (uint e = 0; e < SIZE; e++) {
				precise float r = acc[ACROSS * i + j][e];
#if defined(Q6_K)
				r = fma(scale[e] * d[j][e], float(s0[e] * p[e] + s1[e] * q[e]), r);
#else
				r = fma(scale[e] * d[j][e], float(p[e]), r);
#endif
#if defined(SPLIT) || defined(SPLITLOW)
				r = fma(other[e] * d[j][e], float(q[e]), r);
#endif
#if defined(Q4_K) || defined(SPLITLOW)
				r = fma(-(low[e] * d[j][e]), sum[j][e], r);
#endif
#if defined(SPLITLOW)
				r = fma(-(otherLow[e] * d[j][e]), otherSum[j][e], r);
#endif
				acc[ACROSS * i + j][e] = r;
			}
		}
	}
}

void main() {
	base = weights;
	if (GROUPS != 0) {
		uint entry = gl_WorkGroupID.y * (COLUMNS + 1);
		expert = chosen.v[entry];
		if (expert == NONE) {
			return;
		}
		base = Quads(Addresses(uint64_t(weights)).v[expert]);
		for (uint c = gl_LocalInvocationID.x; c < COLUMNS; c += THREADS) {
			targets[c] = chosen.v[entry + 1 + c];
		}
		barrier();
	}
	[[unroll]] for (uint s = 0; s < SQUARES; s++) {
		clearSquare(acc[s]);
		clearSquare(total[s]);
	}
#if defined(HALVES)
	for (uint i = gl_LocalInvocationID.x; i < TALL * 8; i += THREADS) {
		a[i / 8 * ASTRIDE + i % 8 / 4 * ASTEP + 4 + i % 4] = word(0);
	}
#endif
	fetch(0);
	for (uint stage = 0; stage < kTiles * 4; stage++) {
		barrier();
		put();
		barrier();
		if (stage + 1 < kTiles * 4) {
			fetch(stage + 1);
		}
		EACHBLOCK for (uint block = 0; block < 2; block++) {
			multiply(block);
		}
		if ((stage + 1) % (segment * 4) == 0 || stage + 1 == kTiles * 4) {
			[[unroll]] for (uint s = 0; s < SQUARES; s++) {
				[[unroll]] for (uint e = 0; e < SIZE; e++) {
					precise float r = total[s][e] + acc[s][e];
					total[s][e] = r;
					acc[s][e] = 0.0;
				}
			}
		}
	}
	finish();
}
