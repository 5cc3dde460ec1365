#version 460
#extension GL_GOOGLE_include_directive : require
// y[c][o] = Σ w[o][k]·x[c][k] for many columns c of float32, rounded to half precision, as BF16 weights are, for the speed
// of cooperative matrices. Sums are float32, in an order of the device's: a column's bits are the same among any others,
// but not those of matvec.comp.
//
// A workgroup owns 128 outputs and 32·WIDE columns, as in matmul.comp. Stages of 64 k.
// Shared memory: as matmul.go says. Subgroups: 32 lanes where MATRIX.
//
// variant: matmul_f16 -DF16
// variant: matmul_f16_matrix -DF16 -DMATRIX
// variant: matmul_bf16 -DBF16
// variant: matmul_bf16_matrix -DBF16 -DMATRIX
#include "lib/buffers.glsl"
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
layout(constant_id = 2) const uint EPILOGUE = 0; // 0: store; 1: act(gate)·up, store
layout(constant_id = 3) const uint EXTRAS = 0;
layout(constant_id = 4) const uint ACT = 1;

layout(push_constant, scalar) uniform Push {
	Quads weights;
	Vectors x;       // float32 rows of whole 256
	uint64_t y;
	Floats bias;
	Floats residual;
	Words count;     // columns that are there; 0: all
	uint rows;
	uint yStride;    // of y and residual, in float32
	uint columns;
	uint kTiles;     // 256 k each
};

const uint TALL = 128, COLUMNS = 32 * WIDE, STRIDE = 18; // of fours of k

const uint NONE = 0xffffffffu, expert = 0;

uint target(uint column) {
	return column < columns && (uint64_t(count) == 0 || column < count.v[0]) ? column : NONE;
}

#include "lib/squares.glsl"

#if defined(MATRIX)
#define FOUR f16vec4
#define LEFT coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define RIGHT coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB>
FOUR four(uvec2 v) { return f16vec4(unpackFloat2x16(v.x), unpackFloat2x16(v.y)); }
#else
#define FOUR uvec2
FOUR four(uvec2 v) { return v; }
#endif

shared FOUR a[TALL * STRIDE];
shared FOUR b[COLUMNS * STRIDE];

const uint ITEMS = TALL * 8 / THREADS, XITEMS = COLUMNS * 16 / THREADS;
uvec4 nextWeights[ITEMS];
vec4 nextX[XITEMS];

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
		uint column = min(gl_WorkGroupID.y * COLUMNS + item / 16, columns - 1);
		nextX[i] = x.v[column * (kTiles * 64) + stage * 16 + item % 16];
	}
}

// put writes the stage that was fetched to shared memory.
void put() {
	[[unroll]] for (uint i = 0; i < ITEMS; i++) {
		uint item = i * THREADS + gl_LocalInvocationID.x, at = item % TALL * STRIDE + item / TALL * 2;
		uvec4 h = halves(nextWeights[i]);
		a[at] = four(h.xy);
		a[at + 1] = four(h.zw);
	}
	[[unroll]] for (uint i = 0; i < XITEMS; i++) {
		uint item = i * THREADS + gl_LocalInvocationID.x;
		vec4 v = nextX[i];
		b[item / 16 * STRIDE + item % 16] = four(uvec2(packHalf2x16(v.xy), packHalf2x16(v.zw)));
	}
}

// multiply adds 16 k, from four at on.
void multiply(uint at) {
	uint team = gl_LocalInvocationID.x / 32, row = team % 2 * 64, column = team / 2 * 32;
#if defined(MATRIX)
	RIGHT right[2];
	[[unroll]] for (uint j = 0; j < 2; j++) {
		coopMatLoad(right[j], b, (column + 16 * j) * STRIDE + at, STRIDE, gl_CooperativeMatrixLayoutColumnMajor);
	}
	[[unroll]] for (uint i = 0; i < 4; i++) {
		LEFT left;
		coopMatLoad(left, a, (row + 16 * i) * STRIDE + at, STRIDE, gl_CooperativeMatrixLayoutRowMajor);
		[[unroll]] for (uint j = 0; j < 2; j++) {
			total[2 * i + j] = coopMatMulAdd(left, right[j], total[2 * i + j]);
		}
	}
#else
	// For tests of all but the products: it is slower than mat-vecs.
	[[dont_unroll]] for (uint s = 0; s < 8; s++) {
		[[dont_unroll]] for (uint e = 0; e < 8; e++) {
			uint from = (row + s / 2 * 16 + squareRow()) * STRIDE + at;
			uint with = (column + s % 2 * 16 + squareColumn() + 2 * e) * STRIDE + at;
			[[dont_unroll]] for (uint n = 0; n < 4; n++) {
				vec2 p = unpackHalf2x16(a[from + n].x) * unpackHalf2x16(b[with + n].x);
				vec2 q = unpackHalf2x16(a[from + n].y) * unpackHalf2x16(b[with + n].y);
				precise float sum = total[s][e] + ((p.x + p.y) + (q.x + q.y));
				total[s][e] = sum;
			}
		}
	}
#endif
}

void main() {
	[[unroll]] for (uint s = 0; s < 8; s++) {
		clearSquare(total[s]);
	}
	fetch(0);
	for (uint stage = 0; stage < kTiles * 4; stage++) {
		barrier();
		put();
		barrier();
		if (stage + 1 < kTiles * 4) {
			fetch(stage + 1);
		}
		for (uint at = 0; at < 16; at += 4) {
			multiply(at);
		}
	}
	finish();
}
