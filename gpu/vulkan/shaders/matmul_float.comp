#version 460
#extension GL_GOOGLE_include_directive : require
// y[c][o] = Σ w[o][k]·x[c][k] for many columns c, of weights that are floats: what matvec.comp computes, bit for bit.
//
// A workgroup owns 128 outputs (four tiles of 32 rows; two of gate and two of up, where EPILOGUE is a GLU) and 64
// columns. A thread has eight of these outputs, every 16th, times four columns, every 16th. Stages of 32 k are unpacked to
// shared memory, while the next one is loaded.
//
// Order of addition: that of matvec.comp. In a segment four sums, of every fourth k; then they are joined, then segments.
//
// Shared memory: 24.75 KB. Subgroups: any.
//
// variant: matmul_float_f16 -DF16
// variant: matmul_float_bf16 -DBF16
// variant: matmul_float_f32 -DF32
#include "lib/buffers.glsl"
#include "lib/act.glsl"
#include "lib/tile.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint EPILOGUE = 0; // 0: store; 1: act(gate)·up, store
layout(constant_id = 1) const uint EXTRAS = 0;   // as in matvec.comp
layout(constant_id = 2) const uint ACT = 1;

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
	uint segment;    // tiles of k
};

const uint TALL = 128, COLUMNS = 64, FOURS = 8; // FOURS: of k in a stage
const uint HIGH = 8, WIDE = 4;                  // a thread's outputs and columns
const uint ASTRIDE = TALL + 1, BSTRIDE = COLUMNS + 1;

shared vec4 a[FOURS * ASTRIDE]; // [four][row]
shared vec4 b[FOURS * BSTRIDE]; // [four][column]

#if defined(F32)
const uint EACH = 1; // fours of a word of 16 bytes
#else
const uint EACH = 2;
#endif
const uint ITEMS = TALL * FOURS / EACH / 256, XITEMS = COLUMNS * FOURS / 256;
uvec4 nextWeights[ITEMS];
vec4 nextX[XITEMS];
vec4 acc[HIGH * WIDE];
float total[HIGH * WIDE];

// fetch loads a stage.
void fetch(uint stage) {
	uint rowTiles = (rows + 31) / 32 * (EPILOGUE == 0 ? 1 : 2);
	[[unroll]] for (uint i = 0; i < ITEMS; i++) {
		uint item = i * 256 + gl_LocalInvocationID.x, row = item % TALL;
		uint tile = min(gl_WorkGroupID.x * 4 + row / 32, rowTiles - 1), word = stage % 8 * (FOURS / EACH) + item / TALL;
		nextWeights[i] = weights.v[(tile * kTiles + stage / 8) * TILE + word * 32 + row % 32];
	}
	[[unroll]] for (uint i = 0; i < XITEMS; i++) {
		uint item = i * 256 + gl_LocalInvocationID.x;
		uint column = min(gl_WorkGroupID.y * COLUMNS + item / FOURS, columns - 1);
		nextX[i] = x.v[column * (kTiles * 64) + stage * FOURS + item % FOURS];
	}
}

// put writes the stage that was fetched to shared memory.
void put() {
	[[unroll]] for (uint i = 0; i < ITEMS; i++) {
		uint item = i * 256 + gl_LocalInvocationID.x, at = item / TALL * EACH * ASTRIDE + item % TALL;
		Packed p;
		p.q[0] = nextWeights[i];
		[[unroll]] for (uint j = 0; j < EACH; j++) {
			a[at + j * ASTRIDE] = quad(p, j);
		}
	}
	[[unroll]] for (uint i = 0; i < XITEMS; i++) {
		uint item = i * 256 + gl_LocalInvocationID.x;
		b[item % FOURS * BSTRIDE + item / FOURS] = nextX[i];
	}
}

// multiply adds a stage to the sums.
void multiply() {
	uint row = gl_LocalInvocationID.x % 16, column = gl_LocalInvocationID.x / 16;
	[[dont_unroll]] for (uint k = 0; k < FOURS; k++) {
		vec4 right[WIDE];
		[[unroll]] for (uint j = 0; j < WIDE; j++) {
			right[j] = b[k * BSTRIDE + column + 16 * j];
		}
		[[unroll]] for (uint i = 0; i < HIGH; i++) {
			vec4 left = a[k * ASTRIDE + row + 16 * i];
			[[unroll]] for (uint j = 0; j < WIDE; j++) {
				precise vec4 v = acc[i * WIDE + j];
				v = fma(left, right[j], v);
				acc[i * WIDE + j] = v;
			}
		}
	}
}

// store writes an output of a column.
void store(uint row, uint to, float v) {
	if (row >= rows || to >= columns || uint64_t(count) != 0 && to >= count.v[0]) {
		return;
	}
	precise float r = v;
	if ((EXTRAS & 1) != 0) {
		r = r + bias.v[row];
	}
	if ((EXTRAS & 2) != 0) {
		r = r + residual.v[to * yStride + row];
	}
	Floats(y).v[to * yStride + row] = r;
}

void main() {
	[[unroll]] for (uint s = 0; s < HIGH * WIDE; s++) {
		acc[s] = vec4(0);
		total[s] = 0.0;
	}
	fetch(0);
	for (uint stage = 0; stage < kTiles * 8; stage++) {
		barrier();
		put();
		barrier();
		if (stage + 1 < kTiles * 8) {
			fetch(stage + 1);
		}
		multiply();
		if ((stage + 1) % (segment * 8) == 0 || stage + 1 == kTiles * 8) {
			[[unroll]] for (uint s = 0; s < HIGH * WIDE; s++) {
				precise float r = (acc[s].x + acc[s].y) + (acc[s].z + acc[s].w);
				r = total[s] + r;
				total[s] = r;
				acc[s] = vec4(0);
			}
		}
	}
	uint row = gl_LocalInvocationID.x % 16, column = gl_WorkGroupID.y * COLUMNS + gl_LocalInvocationID.x / 16;
	[[unroll]] for (uint i = 0; i < HIGH; i++) {
		[[unroll]] for (uint j = 0; j < WIDE; j++) {
			if (EPILOGUE == 0) {
				store(gl_WorkGroupID.x * TALL + row + 16 * i, column + 16 * j, total[i * WIDE + j]);
			} else if (i % 4 < 2) { // gate's; up's are two further on
				uint at = gl_WorkGroupID.x * (TALL / 2) + i / 4 * 32 + i % 4 * 16 + row;
				store(at, column + 16 * j, gated(ACT, total[i * WIDE + j], total[(i + 2) * WIDE + j]));
			}
		}
	}
}
