#version 460
#extension GL_GOOGLE_include_directive : require
// y[c][o] = Σ w[o][k]·x[c][k] for many columns c, both rounded to half precision, for the speed of cooperative matrices.
// Sums are float32, in an order of the device's: a column's bits are the same among any others, but not those of
// matvec.comp. Columns that were made smaller are made large again.
//
// A workgroup owns 128 outputs (four tiles of 32 rows; two of gate and two of up, where EPILOGUE is a GLU) and 64·WIDE
// columns. A team of 32 threads (of a subgroup, where MATRIX) has 64 outputs × 64 columns of them as 4 × 4 squares of
// 16 × 16. Stages of 64 k are unpacked to shared memory, while the next one is loaded.
// Shared memory: as matmul.go says. Subgroups: 32 lanes where MATRIX, else 8 or more.
//
// variant: matmul_f16 -DF16
// variant: matmul_f16_matrix -DF16 -DMATRIX
// variant: matmul_bf16 -DBF16
// variant: matmul_bf16_matrix -DBF16 -DMATRIX
// variant: matmul_half_q4_k -DQ4_K
// variant: matmul_half_q4_k_matrix -DQ4_K -DMATRIX
// variant: matmul_half_q6_k -DQ6_K
// variant: matmul_half_q6_k_matrix -DQ6_K -DMATRIX
// variant: matmul_half_split -DSPLIT
// variant: matmul_half_split_matrix -DSPLIT -DMATRIX
// variant: matmul_half_split_low -DSPLITLOW
// variant: matmul_half_split_low_matrix -DSPLITLOW -DMATRIX
#include "lib/buffers.glsl"
#include "lib/quantise.glsl"
#include "lib/act.glsl"
#include "lib/tile.glsl"
#if defined(MATRIX)
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif

layout(local_size_x_id = 0) in; // 64 · WIDE
layout(constant_id = 0) const uint THREADS = 64;
layout(constant_id = 1) const uint WIDE = 1;     // teams side by side
layout(constant_id = 2) const uint EPILOGUE = 0; // as in matvec.comp
layout(constant_id = 3) const uint EXTRAS = 0;
layout(constant_id = 4) const uint ACT = 1;

layout(push_constant, scalar) uniform Push {
	Quads weights;
	Quads x;         // rows of halves, of whole 256, and a factor for each of the columns: see halve.comp
	uint64_t y;
	Floats bias;
	Floats residual;
	Words count;     // columns that are there; 0: all
	uint rows;
	uint yStride;    // of y and residual, in float32
	uint columns;
	uint kTiles;     // 256 k each
};

const uint TALL = 128, ACROSS = 4, COLUMNS = 64 * WIDE, STRIDE = 9; // STRIDE: of eights of k, odd: no two of eight rows are in the same banks

const uint NONE = 0xffffffffu, expert = 0;

uint target(uint column) {
	return column < columns && (uint64_t(count) == 0 || column < count.v[0]) ? column : NONE;
}

#include "lib/squares.glsl"

#if defined(MATRIX)
#define LEFT coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define RIGHT coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB>
#define EIGHT f16vec4
const uint WORDS8 = 2;
f16vec4 four(uvec2 v) { return f16vec4(unpackFloat2x16(v.x), unpackFloat2x16(v.y)); }
#define KEEP(list, at, v) { uvec4 k = v; list[2 * (at)] = four(k.xy); list[2 * (at) + 1] = four(k.zw); }
#else
#define EIGHT uvec4
const uint WORDS8 = 1;
#define KEEP(list, at, v) list[at] = v
#endif

shared EIGHT a[TALL * STRIDE * WORDS8];
shared EIGHT b[COLUMNS * STRIDE * WORDS8];
shared float factors[COLUMNS]; // a thread has one of them

uvec2 rounded(vec4 v) { return uvec2(packHalf2x16(v.xy), packHalf2x16(v.zw)); }

uint column(uint c) { return min(gl_WorkGroupID.y * COLUMNS + c, columns - 1); }

#if defined(PLAIN)
const uint ITEMS = TALL * 8 / THREADS, XITEMS = COLUMNS * 8 / THREADS;
uvec4 nextX[XITEMS];
uvec4 nextWeights[ITEMS];

// halves are eight weights in half precision.
uvec4 halves(uvec4 q) {
#if defined(BF16)
	[[unroll]] for (uint i = 0; i < 4; i++) {
		q[i] = packHalf2x16(vec2(uintBitsToFloat(q[i] << 16), uintBitsToFloat(q[i] & 0xffff0000u)));
	}
#endif
	return q;
}

// fetch loads a stage.
void fetch(uint stage) {
	uint rowTiles = (rows + 31) / 32 * (EPILOGUE == 0 ? 1 : 2);
	[[unroll]] for (uint i = 0; i < ITEMS; i++) {
		uint item = i * THREADS + gl_LocalInvocationID.x, row = item % TALL;
		uint tile = min(gl_WorkGroupID.x * 4 + row / 32, rowTiles - 1);
		nextWeights[i] = weights.v[(tile * kTiles + stage / 4) * TILE + (stage % 4 * 8 + item / TALL) * 32 + row % 32];
	}
	[[unroll]] for (uint i = 0; i < XITEMS; i++) {
		uint item = i * THREADS + gl_LocalInvocationID.x;
		nextX[i] = x.v[column(item / 8) * (kTiles * 32) + stage * 8 + item % 8];
	}
}

// put writes the stage that was fetched to shared memory.
void put() {
	[[unroll]] for (uint i = 0; i < ITEMS; i++) {
		uint item = i * THREADS + gl_LocalInvocationID.x;
		KEEP(a, item % TALL * STRIDE + item / TALL, halves(nextWeights[i]));
	}
	[[unroll]] for (uint i = 0; i < XITEMS; i++) {
		uint item = i * THREADS + gl_LocalInvocationID.x;
		KEEP(b, item / 8 * STRIDE + item % 8, nextX[i]);
	}
}
#else
const uint ITEMS = TALL * 2 / THREADS;       // blocks of weights that a thread has of a stage
const uint XITEMS = COLUMNS * 8 / THREADS;   // words of 16 bytes of activations
Raw nextBlocks[ITEMS];
uvec4 nextX[XITEMS];

// fetch loads a stage.
void fetch(uint stage) {
	uint rowTiles = (rows + 31) / 32 * (EPILOGUE == 0 ? 1 : 2);
	[[unroll]] for (uint i = 0; i < ITEMS; i++) {
		uint item = i * THREADS + gl_LocalInvocationID.x, row = item % TALL;
		uint tile = min(gl_WorkGroupID.x * 4 + row / 32, rowTiles - 1);
		nextBlocks[i] = rawAt(weights, (tile * kTiles + stage / 4) * TILE, row % 32, stage % 4 * 2 + item / TALL);
	}
	[[unroll]] for (uint i = 0; i < XITEMS; i++) {
		uint item = i * THREADS + gl_LocalInvocationID.x;
		nextX[i] = x.v[column(item / 8) * (kTiles * 32) + stage * 8 + item % 8];
	}
}

// bytes are four signed ones of a word.
vec4 bytes(uint v) { return vec4(bitfieldExtract(ivec4(int(v)) >> ivec4(0, 8, 16, 24), 0, 8)); }

// put writes the stage that was fetched to shared memory.
void put() {
	[[unroll]] for (uint i = 0; i < ITEMS; i++) {
		uint item = i * THREADS + gl_LocalInvocationID.x, at = item % TALL * STRIDE + item / TALL * 4;
		Block u = blockOf(nextBlocks[i]);
		float scale = u.scale, other = u.scale, low = 0.0, otherLow = 0.0;
#if defined(Q6_K)
		scale *= float(u.s0);
		other *= float(u.s1);
#elif defined(SPLIT) || defined(SPLITLOW)
		other = u.otherScale;
#endif
#if defined(Q4_K)
		low = u.low;
		otherLow = u.low;
#elif defined(SPLITLOW)
		low = u.low;
		otherLow = u.otherLow;
#endif
#define HALVE(q, scale, low) rounded(fma(bytes(centred(q)), vec4(scale), vec4(-(low))))
		KEEP(a, at, uvec4(HALVE(u.lo.x, scale, low), HALVE(u.lo.y, scale, low)));
		KEEP(a, at + 1, uvec4(HALVE(u.lo.z, scale, low), HALVE(u.lo.w, scale, low)));
		KEEP(a, at + 2, uvec4(HALVE(u.hi.x, other, otherLow), HALVE(u.hi.y, other, otherLow)));
		KEEP(a, at + 3, uvec4(HALVE(u.hi.z, other, otherLow), HALVE(u.hi.w, other, otherLow)));
	}
	[[unroll]] for (uint i = 0; i < XITEMS; i++) {
		uint item = i * THREADS + gl_LocalInvocationID.x;
		KEEP(b, item / 8 * STRIDE + item % 8, nextX[i]);
	}
}
#endif

// multiply adds 16 k, from eight at on.
void multiply(uint at) {
	uint team = gl_LocalInvocationID.x / 32, row = team % 2 * 64, column = team / 2 * 64;
#if defined(MATRIX)
	RIGHT right[ACROSS];
	[[unroll]] for (uint j = 0; j < ACROSS; j++) {
		coopMatLoad(right[j], b, ((column + 16 * j) * STRIDE + at) * WORDS8, STRIDE * WORDS8, gl_CooperativeMatrixLayoutColumnMajor);
	}
	[[unroll]] for (uint i = 0; i < 4; i++) {
		LEFT left;
		coopMatLoad(left, a, ((row + 16 * i) * STRIDE + at) * WORDS8, STRIDE * WORDS8, gl_CooperativeMatrixLayoutRowMajor);
		[[unroll]] for (uint j = 0; j < ACROSS; j++) {
			total[ACROSS * i + j] = coopMatMulAdd(left, right[j], total[ACROSS * i + j]);
		}
	}
#else
	// For tests of all but the products: it is slower than mat-vecs.
	[[dont_unroll]] for (uint s = 0; s < SQUARES; s++) {
		[[dont_unroll]] for (uint e = 0; e < 8; e++) {
			uint from = (row + s / ACROSS * 16 + squareRow()) * STRIDE + at;
			uint with = (column + s % ACROSS * 16 + squareColumn() + 2 * e) * STRIDE + at;
			[[dont_unroll]] for (uint n = 0; n < 4; n++) {
				uvec4 v = a[from + n / 2], w = b[with + n / 2];
				vec2 p = unpackHalf2x16(v[n % 2 * 2]) * unpackHalf2x16(w[n % 2 * 2]);
				vec2 q = unpackHalf2x16(v[n % 2 * 2 + 1]) * unpackHalf2x16(w[n % 2 * 2 + 1]);
				precise float sum = total[s][e] + ((p.x + p.y) + (q.x + q.y));
				total[s][e] = sum;
			}
		}
	}
#endif
}

// enlarge multiplies all sums by their columns' factors.
void enlarge() {
	uint first = gl_LocalInvocationID.x / 64 * 64; // of the team's columns
	EACHSQUARE for (uint s = 0; s < SQUARES; s++) {
		uint from = first + s % ACROSS * 16;
#if defined(MATRIX)
		SQUARE each;
		coopMatLoad(each, factors, from, 0, gl_CooperativeMatrixLayoutRowMajor);
#endif
		[[unroll]] for (uint e = 0; e < SIZE; e++) {
#if defined(MATRIX)
			total[s][e] *= each[e];
#else
			total[s][e] *= factors[from + squareColumn() + 2 * e];
#endif
		}
	}
}

void main() {
	EACHSQUARE for (uint s = 0; s < SQUARES; s++) {
		clearSquare(total[s]);
	}
	uint64_t behind = uint64_t(x) + 512 * uint64_t(columns * kTiles);
	factors[gl_LocalInvocationID.x] = Floats(behind).v[column(gl_LocalInvocationID.x)];
	fetch(0);
	for (uint stage = 0; stage < kTiles * 4; stage++) {
		barrier();
		put();
		barrier();
		if (stage + 1 < kTiles * 4) {
			fetch(stage + 1);
		}
		[[unroll]] for (uint at = 0; at < 8; at += 2) {
			multiply(at);
		}
	}
	enlarge();
	finish();
}
