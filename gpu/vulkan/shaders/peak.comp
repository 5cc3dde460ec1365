#version 460
#extension GL_GOOGLE_include_directive : require
// Multiplies as fast as the device can from registers, to measure that: the products of matmul.comp and matmul_f16.comp
// (whole numbers by cooperative matrices or by dot products, halves by cooperative matrices), or float32 products.
//
// Each subgroup, or thread, adds to eight sums that do not wait for each other, round after round. Grid: as many workgroups as
// the device keeps busy. Subgroups: 32 lanes where there are matrices, else any.
//
// variant: peak
// variant: peak_dot4 -DDOT4
// variant: peak_matrix -DMATRIX
// variant: peak_half_matrix -DMATRIX -DHALF
#include "lib/buffers.glsl"
#if defined(MATRIX)
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif
#if defined(DOT4)
#extension GL_EXT_integer_dot_product : require
#endif

layout(local_size_x = 128) in;

layout(push_constant, scalar) uniform Push {
	Words y;   // where a word of each workgroup goes
	uint seed; // of what is multiplied
	uint rounds;
};

#if defined(HALF)
#define NUMBER float16_t
#define SUM float
const uint DEPTH = 16;
#else
#define NUMBER int8_t
#define SUM int
const uint DEPTH = 32;
#endif
const uint SUMS = 8;

void main() {
	uint mine = seed + gl_GlobalInvocationID.x % 3;
#if defined(MATRIX)
	coopmat<NUMBER, gl_ScopeSubgroup, 16, DEPTH, gl_MatrixUseA> a =
		coopmat<NUMBER, gl_ScopeSubgroup, 16, DEPTH, gl_MatrixUseA>(NUMBER(seed));
	coopmat<NUMBER, gl_ScopeSubgroup, DEPTH, 16, gl_MatrixUseB> b =
		coopmat<NUMBER, gl_ScopeSubgroup, DEPTH, 16, gl_MatrixUseB>(NUMBER(seed + 1));
	coopmat<SUM, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator> sums[SUMS];
	[[unroll]] for (uint i = 0; i < SUMS; i++) {
		sums[i] = coopmat<SUM, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>(SUM(i));
	}
	[[dont_unroll]] for (uint r = 0; r < rounds; r++) {
		[[unroll]] for (uint i = 0; i < SUMS; i++) {
			sums[i] = coopMatMulAdd(a, b, sums[i]);
		}
	}
	SUM all = SUM(0);
	[[unroll]] for (uint i = 0; i < SUMS; i++) {
		all += sums[i][0];
	}
	uint left = uint(all);
#elif defined(DOT4)
	int a = int(mine), sums[SUMS];
	[[unroll]] for (uint i = 0; i < SUMS; i++) {
		sums[i] = int(mine + i);
	}
	[[dont_unroll]] for (uint r = 0; r < rounds; r++) {
		[[unroll]] for (uint i = 0; i < SUMS; i++) {
			sums[i] += dotPacked4x8EXT(a, sums[i]);
		}
	}
	uint left = 0;
	[[unroll]] for (uint i = 0; i < SUMS; i++) {
		left += uint(sums[i]);
	}
#else
	float a = float(mine), sums[SUMS];
	[[unroll]] for (uint i = 0; i < SUMS; i++) {
		sums[i] = float(mine + i);
	}
	[[dont_unroll]] for (uint r = 0; r < rounds; r++) {
		[[unroll]] for (uint i = 0; i < SUMS; i++) {
			sums[i] = fma(sums[i], a, 1.0);
		}
	}
	float all = 0.0;
	[[unroll]] for (uint i = 0; i < SUMS; i++) {
		all += sums[i];
	}
	uint left = floatBitsToUint(all);
#endif
	if (gl_LocalInvocationID.x == 0) {
		y.v[gl_WorkGroupID.x] = left;
	}
}
