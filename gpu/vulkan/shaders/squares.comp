#version 460
#extension GL_GOOGLE_include_directive : require
// Where the parts of a cooperative matrix of 16 × 16 lie: y[row][column] = 8·lane + part, of float32 and of whole numbers.
//
// One workgroup. Subgroups: 32 lanes.
//
// variant: squares
#include "lib/buffers.glsl"
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require

layout(local_size_x = 32) in;

layout(push_constant, scalar) uniform Push {
	Floats floats;
	Words words;
};

void main() {
	coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator> f;
	coopmat<int, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator> w;
	[[unroll]] for (uint e = 0; e < f.length(); e++) {
		f[e] = float(gl_SubgroupInvocationID * 8 + e);
	}
	[[unroll]] for (uint e = 0; e < w.length(); e++) {
		w[e] = int(gl_SubgroupInvocationID * 8 + e);
	}
	coopMatStore(f, floats.v, 0, 16, gl_CooperativeMatrixLayoutRowMajor);
	coopMatStore(w, words.v, 0, 16, gl_CooperativeMatrixLayoutRowMajor);
}
