#version 460
#extension GL_GOOGLE_include_directive : require
// y[c][o] = Σ w[o][k]·x[c][k] for 1 to 8 columns c, with what stands before and after it in a layer.
//
// A workgroup owns TILES tiles of 32 rows (gate and up of the same outputs, where EPILOGUE is a GLU), and takes the
// next ones by strides of the grid. Lane: a row. Slot (32 threads): every SLOTS-th segment of SEGMENT tiles of k.
//
// Order of addition, the same for every number of columns, threads and tiles: within a segment, blocks of 32 k in
// order of k; the segments' sums in order of k, from 0. So a column alone has the bits of the same column among
// others, and any device that multiplies and adds as IEEE 754 says has the same bits.
//
// Shared memory: COLUMNS·KTILES·320 bytes with a PROLOGUE, and THREADS·TILES·COLUMNS·4 bytes.
// Subgroups: at least 8 lanes, where something is quantised.
//
// variant: matvec_q4_0 -DQ4_0 -DDOT4
// variant: matvec_q4_0_plain -DQ4_0
// variant: matvec_q8_0 -DQ8_0 -DDOT4
// variant: matvec_q8_0_plain -DQ8_0
// variant: matvec_q4_k -DQ4_K -DDOT4
// variant: matvec_q4_k_plain -DQ4_K
// variant: matvec_q6_k -DQ6_K -DDOT4
// variant: matvec_q6_k_plain -DQ6_K
// variant: matvec_f16 -DF16
#include "lib/buffers.glsl"
#include "lib/quantise.glsl"

layout(local_size_x_id = 0) in; // 32 · SLOTS
layout(constant_id = 0) const uint THREADS = 32;
layout(constant_id = 1) const uint KTILES = 1;   // 256 k each
layout(constant_id = 2) const uint SEGMENT = 1;  // tiles of k
layout(constant_id = 3) const uint COLUMNS = 1;
layout(constant_id = 4) const uint TILES = 1;    // of rows at once
layout(constant_id = 5) const uint PROLOGUE = 0; // 0: x is ready; 1: it is normalised here, and quantised if that is used
layout(constant_id = 6) const uint EPILOGUE = 0; // 0: store; 1: SiLU(gate)·up, store; 2: the same, quantised
layout(constant_id = 7) const uint EXTRAS = 0;   // 1: add a bias; 2: add a residual; 3: both

layout(push_constant, scalar) uniform Push {
	Quads weights;
	uint64_t x;      // quantised rows, or float32 where PROLOGUE or F16
	uint64_t y;      // float32 rows, or quantised ones
	Floats gain;     // of the norm
	Floats bias;
	Floats residual; // rows like y
	Words count;     // columns that are there; 0: all
	uint rows;       // outputs; of gate and of up, each, for a GLU
	uint width;      // k as the model has it
	uint xStride;    // from row to row of x, in 4 bytes
	uint yStride;    // of y and residual, in 4 bytes
	float eps;
};

const uint K = KTILES * 256;
const uint SLOTS = THREADS / 32;
const uint SEGMENTS = (KTILES + SEGMENT - 1) / SEGMENT;
const uint ROUNDS = (SEGMENTS + SLOTS - 1) / SLOTS;

shared float partial[SLOTS * TILES * COLUMNS * 32];
shared float blockSums[PROLOGUE * COLUMNS * KTILES * 8 + 1];

#include "lib/norm.glsl"
#include "lib/tile.glsl"

#if defined(F16)
shared vec4 values[PROLOGUE * COLUMNS * K / 4 + 1];

vec4 xAt(uint column, uint quad) {
	if (PROLOGUE != 0) {
		return values[column * (K / 4) + quad];
	}
	return Vectors(x).v[column * (xStride / 4) + quad];
}

// Four sums, of every fourth k: they are joined at the segment's end.
struct Sum { vec4 v; };
Sum zero() { return Sum(vec4(0)); }
float total(Sum s) {
	precise float r = (s.v.x + s.v.y) + (s.v.z + s.v.w);
	return r;
}

Sum acc[TILES * COLUMNS];

// multiply adds a part, counted from the row's first, to the sums of all columns.
void multiply(uint t, Packed p, uint part) {
	[[unroll]] for (uint i = 0; i < 8; i++) {
		vec4 w0 = vec4(unpackHalf2x16(p.q[i].x), unpackHalf2x16(p.q[i].y));
		vec4 w1 = vec4(unpackHalf2x16(p.q[i].z), unpackHalf2x16(p.q[i].w));
		[[unroll]] for (uint c = 0; c < COLUMNS; c++) {
			precise vec4 v = acc[t * COLUMNS + c].v;
			v = fma(w0, xAt(c, part * 16 + 2 * i), v);
			v = fma(w1, xAt(c, part * 16 + 2 * i + 1), v);
			acc[t * COLUMNS + c].v = v;
		}
	}
}
#else
shared uvec4 values[PROLOGUE * COLUMNS * K / 16 + 1];
shared uvec2 scales[PROLOGUE * COLUMNS * K / 32 + 1];

uvec4 xAt(uint column, uint quad) {
	if (PROLOGUE != 0) {
		return values[column * (K / 16) + quad];
	}
	return Quads(x).v[column * (K * 5 / 64) + quad];
}

uvec2 scaleAt(uint column, uint block) {
	if (PROLOGUE != 0) {
		return scales[column * (K / 32) + block];
	}
	return Pairs(x).v[column * (K * 5 / 32) + K / 8 + block];
}

struct Sum { float v; };
Sum zero() { return Sum(0.0); }
float total(Sum s) { return s.v; }

Sum acc[TILES * COLUMNS];

// multiply adds a part, counted from the row's first, to the sums of all columns.
void multiply(uint t, Packed p, uint part) {
	[[unroll]] for (uint b = 0; b < BLOCKS; b++) {
		Block u = unpack(p, part % PARTS, b);
		uint at = part * BLOCKS + b; // block of the row
		[[unroll]] for (uint c = 0; c < COLUMNS; c++) {
			uvec2 s = scaleAt(c, at);
			acc[t * COLUMNS + c].v = add(acc[t * COLUMNS + c].v, u, xAt(c, 2 * at), xAt(c, 2 * at + 1),
				uintBitsToFloat(s.x), bitfieldExtract(int(s.y), 0, 16), int(s.y) >> 16);
		}
	}
}
#endif

// prologue normalises x: eight lanes for 32 values.
void prologue() {
	uint lane = gl_LocalInvocationID.x % 8, first = gl_LocalInvocationID.x / 8;
	for (uint c = 0; c < COLUMNS; c++) {
		sumSquares(x + 4ul * (c * xStride), c * (K / 32));
	}
	barrier();
	for (uint c = 0; c < COLUMNS; c++) {
		float scale = normScale(c * (K / 32));
		for (uint b = first; b < K / 32; b += THREADS / 8) {
			vec4 v = normed(x + 4ul * (c * xStride), b * 32 + lane * 4, scale);
#if defined(F16)
			values[c * (K / 4) + b * 8 + lane] = v;
#else
			Quantised q = quantise8(v);
			values[c * (K / 16) + b * 2 + lane / 4][lane % 4] = q.bytes;
			if (lane == 0) {
				scales[c * (K / 32) + b] = q.scale;
			}
#endif
		}
	}
	barrier();
}

// finish is what becomes of an output's sum.
float finish(float v, uint column, uint row) {
	precise float r = v;
	if ((EXTRAS & 1) != 0) {
		r = r + bias.v[row];
	}
	if ((EXTRAS & 2) != 0) {
		r = r + residual.v[column * yStride + row];
	}
	return r;
}

float silu(float v) { return v / (1.0 + exp(-v)); }

// storeQuantised writes 32 outputs of a column as quantised activations: eight threads, four values each, taken from partial.
void storeQuantised(uint tile, uint column, uint lane) {
	uint padded = (rows + 255) / 256 * 256, at = column * 32 + lane * 4;
	Quantised q = quantise8(vec4(partial[at], partial[at + 1], partial[at + 2], partial[at + 3]));
	Words(y).v[column * (padded * 5 / 16) + tile * 8 + lane] = q.bytes;
	if (lane == 0) {
		Pairs(y).v[column * (padded * 5 / 32) + padded / 8 + tile] = q.scale;
	}
}

// joined adds a round's segments to an output's sum.
float joined(float sum, uint round, uint t, uint o) {
	precise float s = sum;
	uint n = min(SLOTS, SEGMENTS - round * SLOTS);
	for (uint i = 0; i < n; i++) {
		s = s + partial[(i * TILES + t) * COLUMNS * 32 + o];
	}
	return s;
}

// loadPart takes a part of a row tile, counted from the row's first.
Packed loadPart(uint rowTile, uint part, uint lane) {
	return load(weights, (rowTile * KTILES + part / PARTS) * TILE, lane, part % PARTS);
}

void main() {
	uint lane = gl_LocalInvocationID.x % 32, slot = gl_LocalInvocationID.x / 32, thread = gl_LocalInvocationID.x;
	uint rowTiles = (rows + 31) / 32 * (EPILOGUE == 0 ? 1 : 2);
	uint present = uint64_t(count) == 0 ? COLUMNS : min(count.v[0], COLUMNS);
	const uint OUTPUTS = (COLUMNS * 32 + THREADS - 1) / THREADS; // of a thread
	bool ready = PROLOGUE == 0;
	for (uint tile = gl_WorkGroupID.x * TILES; tile < rowTiles; tile += gl_NumWorkGroups.x * TILES) {
		Packed next = loadPart(tile, min(slot * SEGMENT, KTILES - 1) * PARTS, lane);
		if (!ready) {
			prologue();
			ready = true;
		}
		float sum[OUTPUTS * TILES];
		[[unroll]] for (uint i = 0; i < OUTPUTS * TILES; i++) {
			sum[i] = 0.0;
		}
		[[unroll]] for (uint round = 0; round < ROUNDS; round++) {
			uint from = (round * SLOTS + slot) * SEGMENT * PARTS, to = min(from + SEGMENT * PARTS, KTILES * PARTS);
			[[unroll]] for (uint i = 0; i < TILES * COLUMNS; i++) {
				acc[i] = zero();
			}
			[[unroll]] for (uint t = 0; t < TILES; t++) {
				for (uint i = from; i < to; i++) {
					Packed p = next;
					if (i + 1 < to) {
						next = loadPart(tile + t, i + 1, lane);
					} else if (t + 1 < TILES) {
						next = loadPart(min(tile + t + 1, rowTiles - 1), from, lane);
					} else if (round + 1 < ROUNDS) {
						next = loadPart(tile, min(from + SLOTS * SEGMENT * PARTS, KTILES * PARTS - 1), lane);
					}
					multiply(t, p, i);
				}
			}
			[[unroll]] for (uint i = 0; i < TILES * COLUMNS; i++) {
				partial[(slot * TILES * COLUMNS + i) * 32 + lane] = total(acc[i]);
			}
			barrier();
			[[unroll]] for (uint i = 0; i < OUTPUTS; i++) {
				uint o = thread + i * THREADS;
				if (o < COLUMNS * 32) {
					[[unroll]] for (uint t = 0; t < TILES; t++) {
						sum[i * TILES + t] = joined(sum[i * TILES + t], round, t, o);
					}
				}
			}
			barrier();
		}
		[[unroll]] for (uint i = 0; i < OUTPUTS; i++) {
			uint o = thread + i * THREADS, column = o / 32, row = o % 32;
			if (o >= COLUMNS * 32) {
				break;
			}
			if (EPILOGUE == 0) {
				[[unroll]] for (uint t = 0; t < TILES; t++) {
					uint at = (tile + t) * 32 + row;
					if (at < rows && column < present) {
						Floats(y).v[column * yStride + at] = finish(sum[i * TILES + t], column, at);
					}
				}
			} else {
				uint at = tile / 2 * 32 + row;
				float h = silu(sum[i * TILES]) * sum[i * TILES + TILES - 1];
				if (EPILOGUE == 2) {
					partial[o] = h;
				} else if (at < rows && column < present) {
					Floats(y).v[column * yStride + at] = h;
				}
			}
		}
		if (EPILOGUE == 2) {
			barrier();
			for (uint i = thread; i < present * 8; i += THREADS) {
				storeQuantised(tile / 2, i / 8, i % 8);
			}
			barrier();
		}
	}
}
