#version 460
#extension GL_GOOGLE_include_directive : require
// y[c][o] = Σ w[o][k]·x[c][k] for many columns c: what matvec.comp computes, bit for bit, for prefill.
//
// A workgroup owns 128 outputs (four tiles of 32 rows; two of gate and two of up, where EPILOGUE is a GLU) and 32·WIDE
// columns. A team of 32 threads (of a subgroup, where MATRIX) has 64 outputs × 32 columns of them as 4 × 2 squares of
// 16 × 16. Stages of 64 k are unpacked to shared memory, while the next one is loaded.
//
// Order of addition: that of matvec.comp. Products of 32 k (of 16, where scales are of 16) are whole numbers, by
// cooperative matrices or by dot products; they are scaled and added one by one, in order of k, then segments are.
//
// Shared memory: as matmul.go says. Subgroups: 32 lanes where MATRIX, else 8 or more.
//
// variant: matmul_q4_0 -DQ4_0 -DDOT4
// variant: matmul_q4_0_plain -DQ4_0
// variant: matmul_q4_0_matrix -DQ4_0 -DMATRIX
// variant: matmul_q8_0 -DQ8_0 -DDOT4
// variant: matmul_q8_0_plain -DQ8_0
// variant: matmul_q8_0_matrix -DQ8_0 -DMATRIX
// variant: matmul_q4_k -DQ4_K -DDOT4
// variant: matmul_q4_k_plain -DQ4_K
// variant: matmul_q4_k_matrix -DQ4_K -DMATRIX
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
layout(constant_id = 6) const uint LAYOUT = 0;   // of a square in its lanes: see below; 0: any

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

const uint ACROSS = 2;
const uint TALL = 128, COLUMNS = 16 * ACROSS * WIDE;

// Shared words of 16 k: rows of weights, and of columns, in a stage. Where scales are of 16 k, each block of weights is
// 16 k, 16 zeros, 16 k: so a half of a block is multiplied with the other masked. Strides are odd: no two of eight rows
// are in the same banks.
#if defined(Q6_K) || defined(SPLIT) || defined(SPLITLOW)
#define HALVES
const uint ASTEP = 3, ASTRIDE = 7;
#else
const uint ASTEP = 2, ASTRIDE = 5;
#endif
const uint BSTEP = 2, BSTRIDE = 5;

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
#define WHOLE coopmat<int, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
#define LEFT coopmat<int8_t, gl_ScopeSubgroup, 16, 32, gl_MatrixUseA>
#define RIGHT coopmat<int8_t, gl_ScopeSubgroup, 32, 16, gl_MatrixUseB>
#define EACHBLOCK [[unroll]]
#else
#define WHOLE int[8]
#define LEFT uint
#define RIGHT uint
#define EACHBLOCK [[dont_unroll]]
#endif

shared uvec4 a[TALL * ASTRIDE];
shared uvec4 b[COLUMNS * BSTRIDE];
// Numbers of weights are [block of the stage][row], those of columns by pairs of columns.
shared float aScale[2 * TALL];
shared vec2 bScale[COLUMNS];
#if defined(Q6_K)
shared float aFirst[2 * TALL];
shared float aSecond[2 * TALL];
#elif defined(HALVES)
shared float aOther[2 * TALL];
#endif
#if defined(Q4_K) || defined(SPLITLOW)
shared float aLow[2 * TALL];
shared vec2 bSum[COLUMNS]; // of 32, or of the first 16, times their scale
#endif
#if defined(SPLITLOW)
shared float aOtherLow[2 * TALL];
shared vec2 bOtherSum[COLUMNS];
#endif
SQUARE acc[SQUARES]; // [4 of rows][ACROSS of columns]

const uint ITEMS = 256 / THREADS;             // blocks of weights that a thread has of a stage
const uint XITEMS = (COLUMNS * 4) / THREADS;  // words of 16 bytes of activations
const uint SITEMS = (COLUMNS * 2 + THREADS - 1) / THREADS; // scales of activations
Raw nextBlocks[ITEMS];
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
		nextBlocks[i] = rawAt(base, (tile * kTiles + stage / 4) * TILE, row % 32, stage % 4 * 2 + part);
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

// centred4 is 16 weights as centred has them.
uvec4 centred4(uvec4 q) { return uvec4(centred(q.x), centred(q.y), centred(q.z), centred(q.w)); }

// put writes the stage that was fetched to shared memory.
void put() {
	[[unroll]] for (uint i = 0; i < ITEMS; i++) {
		uint item = i * THREADS + gl_LocalInvocationID.x, row = item % TALL, part = item / TALL;
		uint at = row * ASTRIDE + part * ASTEP;
		Block u = blockOf(nextBlocks[i]);
		a[at] = centred4(u.lo);
		a[at + ASTEP - 1] = centred4(u.hi);
		aScale[item] = u.scale;
#if defined(Q6_K)
		aFirst[item] = float(u.s0);
		aSecond[item] = float(u.s1);
#elif defined(HALVES)
		aOther[item] = u.otherScale;
#endif
#if defined(Q4_K) || defined(SPLITLOW)
		aLow[item] = u.low;
#endif
#if defined(SPLITLOW)
		aOtherLow[item] = u.otherLow;
#endif
	}
	[[unroll]] for (uint i = 0; i < XITEMS; i++) {
		uint item = i * THREADS + gl_LocalInvocationID.x;
		b[item / 4 * BSTRIDE + item % 4] = nextX[i];
	}
	[[unroll]] for (uint i = 0; i < SITEMS; i++) {
		uint item = i * THREADS + gl_LocalInvocationID.x, c = item / 2;
		uint at = item % 2 * (COLUMNS / 2) + c / 2;
		if (item >= COLUMNS * 2) {
			break;
		}
		float d = uintBitsToFloat(nextScales[i].x);
		bScale[at][c % 2] = d;
#if defined(Q4_K) || defined(SPLITLOW)
		int first = bitfieldExtract(int(nextScales[i].y), 0, 16), second = int(nextScales[i].y) >> 16;
#if defined(Q4_K)
		bSum[at][c % 2] = d * float(first + second);
#else
		bSum[at][c % 2] = d * float(first);
		bOtherSum[at][c % 2] = d * float(second);
#endif
#endif
	}
}

// LOADA and LOADB take 32 k of 16 rows and of 16 columns, PRODUCT their whole-number products, of so many words. BYROW
// and BYCOLUMN set eight floats, one for each part that this thread has of a square, to the numbers of their rows and
// columns.
#if defined(MATRIX)
#define LOADA(to, at) coopMatLoad(to, a, at, ASTRIDE, gl_CooperativeMatrixLayoutRowMajor)
#define LOADB(to, at) coopMatLoad(to, b, at, BSTRIDE, gl_CooperativeMatrixLayoutColumnMajor)
#define PRODUCT(to, left, right, words) to = coopMatMulAdd(left, right, WHOLE(0))
#define BYROW(to, list, from) \
	if (LAYOUT != 0) { \
		float near = list[(from) + laneRow], far = list[(from) + laneRow + 8]; \
		[[unroll]] for (uint e = 0; e < 8; e++) { \
			to[e] = farRow(e) ? far : near; \
		} \
	} else { \
		SQUARE s; \
		coopMatLoad(s, list, from, 0, gl_CooperativeMatrixLayoutColumnMajor); \
		[[unroll]] for (uint e = 0; e < 8; e++) { \
			to[e] = s[e]; \
		} \
	}
#define BYCOLUMN(to, list, from) \
	if (LAYOUT != 0) { \
		vec2 near = list[((from) + laneColumn) / 2], far = list[((from) + laneColumn + 8) / 2]; \
		[[unroll]] for (uint e = 0; e < 8; e++) { \
			to[e] = farColumn(e) ? (oddColumn(e) ? far.y : far.x) : (oddColumn(e) ? near.y : near.x); \
		} \
	} else { \
		SQUARE s; \
		coopMatLoad(s, list, (from) / 2, 0, gl_CooperativeMatrixLayoutRowMajor); \
		[[unroll]] for (uint e = 0; e < 8; e++) { \
			to[e] = s[e]; \
		} \
	}
#else
// What is loaded is where it is.
#define LOADA(to, at) to = (at) + squareRow() * ASTRIDE
#define LOADB(to, at) to = (at) + squareColumn() * BSTRIDE
#define PRODUCT(to, left, right, words) \
	[[unroll]] for (uint e = 0; e < 8; e++) { to[e] = dots(left, (right) + 2 * e * BSTRIDE, words); }
#define BYROW(to, list, from) [[unroll]] for (uint e = 0; e < 8; e++) { to[e] = list[(from) + squareRow()]; }
#define BYCOLUMN(to, list, from) \
	[[unroll]] for (uint e = 0; e < 8; e++) { to[e] = list[(from) / 2 + squareColumn() / 2 + e][squareColumn() % 2]; }

int dots(uint left, uint right, uint words) {
	int sum = 0;
	[[dont_unroll]] for (uint w = 0; w < words; w++) { // all of it would be thousands of instructions
		sum += dot16(a[left + w], b[right + w]);
	}
	return sum;
}
#endif

#if defined(MATRIX)
// A lane's parts of a square are of two rows, 8 apart, and of two pairs of columns, 8 apart, if LAYOUT says so: bit e for
// the other row, bit 8+e for the odd column, bit 16+e for the other pair. Numbers are then loaded once for all parts.
uint laneRow = gl_LocalInvocationID.x % 32 / 4, laneColumn = gl_LocalInvocationID.x % 4 * 2;
bool farRow(uint e) { return (LAYOUT >> e & 1) != 0; }
bool oddColumn(uint e) { return (LAYOUT >> 8 + e & 1) != 0; }
bool farColumn(uint e) { return (LAYOUT >> 16 + e & 1) != 0; }
#endif

// multiply adds a block of the stage to the sums.
void multiply(uint block) {
	uint team = gl_LocalInvocationID.x / 32, row = team % 2 * 64, column = team / 2 * (16 * ACROSS);
	RIGHT right[ACROSS];
	float d[ACROSS][8];
#if defined(Q4_K) || defined(SPLITLOW)
	float sum[ACROSS][8];
#endif
#if defined(SPLITLOW)
	float otherSum[ACROSS][8];
#endif
	[[unroll]] for (uint j = 0; j < ACROSS; j++) {
		uint from = block * COLUMNS + column + 16 * j;
		LOADB(right[j], (column + 16 * j) * BSTRIDE + block * BSTEP);
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
		uint at = (row + 16 * i) * ASTRIDE + block * ASTEP;
		LEFT left;
		float scale[8];
		LOADA(left, at);
		BYROW(scale, aScale, from);
#if defined(HALVES) && defined(MATRIX)
		LEFT second;
		LOADA(second, at + 1);
#endif
#if defined(Q6_K)
		float s0[8], s1[8];
		BYROW(s0, aFirst, from);
		BYROW(s1, aSecond, from);
#elif defined(HALVES)
		float other[8];
		BYROW(other, aOther, from);
#endif
#if defined(Q4_K) || defined(SPLITLOW)
		float low[8];
		BYROW(low, aLow, from);
#endif
#if defined(SPLITLOW)
		float otherLow[8];
		BYROW(otherLow, aOtherLow, from);
#endif
		[[unroll]] for (uint j = 0; j < ACROSS; j++) {
			WHOLE p;
#if !defined(HALVES)
			PRODUCT(p, left, right[j], 2);
#else
			WHOLE q;
#if defined(MATRIX)
			PRODUCT(p, left, right[j], 2);
			PRODUCT(q, second, right[j], 2);
#else
			PRODUCT(p, left, right[j], 1);
			PRODUCT(q, left + ASTEP - 1, right[j] + 1, 1);
#endif
#endif
			[[unroll]] for (uint e = 0; e < SIZE; e++) {
				precise float r = acc[ACROSS * i + j][e];
#if defined(Q6_K)
				float both = fma(s0[e], float(p[e]), s1[e] * float(q[e])); // a whole number below 2^24
				r = fma(scale[e] * d[j][e], both, r);
#else
				r = fma(scale[e] * d[j][e], float(p[e]), r);
#endif
#if defined(SPLIT) || defined(SPLITLOW)
				r = fma(other[e] * d[j][e], float(q[e]), r);
#endif
#if defined(Q4_K) || defined(SPLITLOW)
				r = fma(-low[e], sum[j][e], r);
#endif
#if defined(SPLITLOW)
				r = fma(-otherLow[e], otherSum[j][e], r);
#endif
				acc[ACROSS * i + j][e] = r;
			}
		}
	}
}

// endSegment adds what a segment has summed up to the sums.
void endSegment() {
	[[unroll]] for (uint s = 0; s < SQUARES; s++) {
		[[unroll]] for (uint e = 0; e < SIZE; e++) {
			precise float r = total[s][e] + acc[s][e];
			total[s][e] = r;
			acc[s][e] = 0.0;
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
	for (uint i = gl_LocalInvocationID.x; i < TALL * 2; i += THREADS) {
		a[i / 2 * ASTRIDE + i % 2 * ASTEP + 1] = uvec4(0);
	}
#endif
	fetch(0);
	uint left = segment; // tiles of k of the segment
	for (uint tile = 0; tile < kTiles; tile++) {
		[[dont_unroll]] for (uint part = 0; part < 4; part++) {
			uint stage = tile * 4 + part;
			barrier();
			put();
			barrier();
			if (stage + 1 < kTiles * 4) {
				fetch(stage + 1);
			}
			EACHBLOCK for (uint block = 0; block < 2; block++) {
				multiply(block);
			}
		}
		if (--left == 0 || tile + 1 == kTiles) {
			endSegment();
			left = segment;
		}
	}
	finish();
}
