#version 460
#extension GL_GOOGLE_include_directive : require
// y[c][o] = Σ w[o][k]·x[c][k] for 1 to 8 columns c at once, with what stands before and after it in a layer. The grid's
// second dimension is groups of columns: more rows of x, or rows with the experts that were chosen for them.
//
// A workgroup owns TILES tiles of 32 rows (gate and up of the same outputs, where EPILOGUE is a GLU), and takes the
// next ones by strides of the grid. Lane: a row. Slot (32 threads): every PER-th segment of SEGMENT tiles of k. Where
// the experts of a row are summed, slots are divided among them: all their weights are on the way at once.
//
// Order of addition, the same for every number of columns, threads and tiles: within a segment, blocks of 32 k in
// order of k; the segments' sums in order of k, from 0. So a column alone has the bits of the same column among
// others, and any device that multiplies and adds as IEEE 754 says has the same bits. Experts' results are summed as
// combine.comp does.
//
// Shared memory: HELD·KTILES·352 bytes with a PROLOGUE (1056 for floats), and THREADS·TILES·COLUMNS·4 bytes.
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
// variant: matvec_split -DSPLIT -DDOT4
// variant: matvec_split_plain -DSPLIT
// variant: matvec_split_low -DSPLITLOW -DDOT4
// variant: matvec_split_low_plain -DSPLITLOW
// variant: matvec_f16 -DF16
// variant: matvec_bf16 -DBF16
// variant: matvec_f32 -DF32
#include "lib/buffers.glsl"
#include "lib/quantise.glsl"
#include "lib/act.glsl"

layout(local_size_x_id = 0) in; // 32 · SLOTS
layout(constant_id = 0) const uint THREADS = 32;
layout(constant_id = 1) const uint KTILES = 1;   // 256 k each
layout(constant_id = 2) const uint SEGMENT = 1;  // tiles of k
layout(constant_id = 3) const uint COLUMNS = 1;
layout(constant_id = 4) const uint TILES = 1;    // of rows at once
// 0: x is read where it is; 1: it is normalised here, and quantised if that is used; 2: it is copied to shared memory
layout(constant_id = 5) const uint PROLOGUE = 0;
layout(constant_id = 6) const uint EPILOGUE = 0; // 0: store; 1: act(gate)·up, store; 2: the same, quantised
layout(constant_id = 7) const uint EXTRAS = 0;   // 1: add a bias; 2: add a residual; 3: both
layout(constant_id = 8) const uint ACT = 1;      // lib/act.glsl
// What the columns of group g are. 0: rows 0 to COLUMNS-1 of x and y, the only group; 1: those from g·COLUMNS on;
// 2: one column, row g/share of x and g of y, with expert chosen[g]; 3: rows and expert of an entry of group.comp;
// 4: the weighted sum of SUMMED experts, chosen[g·SUMMED] and those that follow, each of a row of x of its own, as y's g.
layout(constant_id = 9) const uint GROUPS = 0;
layout(constant_id = 10) const uint SUMMED = 1;

layout(push_constant, scalar) uniform Push {
	Quads weights;   // of experts the addresses, by number
	uint64_t x;      // quantised rows, or float32 where PROLOGUE or weights are floats
	uint64_t y;      // float32 rows, or quantised ones
	Floats gain;     // of the norm
	Floats bias;     // of experts a row for each; of a pair of matrices gate's
	Floats upBias;
	Floats residual; // rows like y
	Words count;     // columns that are there; 0: all. Not for experts: it was looked at when they were chosen
	Words chosen;
	Floats shares;   // of the chosen experts, where they are summed
	uint rows;       // outputs; of gate and of up, each, for a GLU
	uint width;      // k as the model has it
	uint xStride;    // from row to row of x where PROLOGUE is 1, in 4 bytes; else rows follow each other, padded to K
	uint yStride;    // of y and residual, in 4 bytes
	float eps;
	uint columns;    // rows of x and y, of all groups
	uint share;      // rows of y that have the same row of x, one after the other
};

const uint NONE = 0xffffffffu;
Quads base; // this group's weights
uint expert = 0;

// yRow is the row of y of a column, NONE if it is not there.
uint yRow(uint column) {
	uint row = gl_WorkGroupID.y * COLUMNS + column;
	switch (GROUPS) {
	case 0:
		return uint64_t(count) == 0 || column < count.v[0] ? column : NONE;
	case 1:
		return row < columns && (uint64_t(count) == 0 || row < count.v[0]) ? row : NONE;
	case 2:
	case 4:
		return row;
	}
	return chosen.v[gl_WorkGroupID.y * (COLUMNS + 1) + 1 + column];
}

// xRow is the row of x of a column: any, if it is not there.
uint xRow(uint column) {
	if (GROUPS == 0) {
		return column;
	}
	uint row = yRow(column);
	return row == NONE ? 0 : GROUPS == 1 ? row : row / share;
}

uint xRows[COLUMNS];

const uint K = KTILES * 256;
const uint SLOTS = THREADS / 32, PER = SLOTS / SUMMED; // of each expert that is summed
const uint SEGMENTS = (KTILES + SEGMENT - 1) / SEGMENT;
const uint ROUNDS = (SEGMENTS + PER - 1) / PER;

const uint HELD = COLUMNS * SUMMED; // rows of x
const uint WITH = PROLOGUE != 0 ? HELD : 0;

shared float partial[SLOTS * TILES * COLUMNS * 32];
shared float blockSums[WITH * KTILES * 8 + 1];

uint mine = 0; // this slot's first row of x: 0, unless experts are summed

#include "lib/norm.glsl"
#include "lib/tile.glsl"

#if defined(PLAIN)
shared vec4 values[WITH * K / 4 + 1];

vec4 xAt(uint column, uint quad) {
	if (PROLOGUE != 0) {
		return values[(mine + column) * (K / 4) + quad];
	}
	return Vectors(x).v[xRows[column] * (K / 4) + quad];
}

// Four sums, of every fourth k: they are joined at the segment's end.
struct Sum { vec4 v; };
Sum zero() { return Sum(vec4(0)); }
float total(Sum s) {
	precise float r = (s.v.x + s.v.y) + (s.v.z + s.v.w);
	return r;
}

Sum acc[COLUMNS];

// multiply adds a part, counted from the row's first, to the sums of all columns.
void multiply(Packed p, uint part) {
	[[unroll]] for (uint i = 0; i < QUADS; i++) {
		vec4 w = quad(p, i);
		[[unroll]] for (uint c = 0; c < COLUMNS; c++) {
			precise vec4 v = acc[c].v;
			v = fma(w, xAt(c, part * QUADS + i), v);
			acc[c].v = v;
		}
	}
}
#else
shared uvec4 values[WITH * K / 16 + 1];
shared uvec2 scales[WITH * K / 32 + 1];

uvec4 xAt(uint column, uint quad) {
	if (PROLOGUE != 0) {
		return values[(mine + column) * (K / 16) + quad];
	}
	return Quads(x).v[xRows[column] * (K * 5 / 64) + quad];
}

uvec2 scaleAt(uint column, uint block) {
	if (PROLOGUE != 0) {
		return scales[(mine + column) * (K / 32) + block];
	}
	return Pairs(x).v[xRows[column] * (K * 5 / 32) + K / 8 + block];
}

struct Sum { float v; };
Sum zero() { return Sum(0.0); }
float total(Sum s) { return s.v; }

Sum acc[COLUMNS];

// multiply adds a part, counted from the row's first, to the sums of all columns.
void multiply(Packed p, uint part) {
	[[unroll]] for (uint b = 0; b < BLOCKS; b++) {
		Block u = unpack(p, part % PARTS, b);
		uint at = part * BLOCKS + b; // block of the row
		[[unroll]] for (uint c = 0; c < COLUMNS; c++) {
			uvec2 s = scaleAt(c, at);
			acc[c].v = add(acc[c].v, u, xAt(c, 2 * at), xAt(c, 2 * at + 1),
				uintBitsToFloat(s.x), bitfieldExtract(int(s.y), 0, 16), int(s.y) >> 16);
		}
	}
}
#endif

// prologue normalises x: eight lanes for 32 values.
void prologue() {
	uint lane = gl_LocalInvocationID.x % 8;
	readGain();
	[[unroll]] for (uint c = 0; c < COLUMNS; c++) {
		read(c, x + 4ul * (xRows[c] * xStride));
	}
	[[unroll]] for (uint c = 0; c < COLUMNS; c++) {
		sumSquares(c);
	}
	barrier();
	[[unroll]] for (uint c = 0; c < COLUMNS; c++) {
		float scale = normScale(c);
		[[unroll]] for (uint i = 0; i < EACH; i++) {
			uint b = own(i);
			if (b >= K / 32) {
				break;
			}
			vec4 v = normed(c, i, scale);
#if defined(PLAIN)
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

// stage copies x as it is.
void stage() {
	[[unroll]] for (uint c = 0; c < HELD; c++) {
		uint row = SUMMED > 1 ? gl_WorkGroupID.y * SUMMED + c : xRows[c % COLUMNS];
#if defined(PLAIN)
		for (uint i = gl_LocalInvocationID.x; i < K / 4; i += THREADS) {
			values[c * (K / 4) + i] = Vectors(x).v[row * (K / 4) + i];
		}
#else
		for (uint i = gl_LocalInvocationID.x; i < K / 16; i += THREADS) {
			values[c * (K / 16) + i] = Quads(x).v[row * (K * 5 / 64) + i];
		}
		for (uint i = gl_LocalInvocationID.x; i < K / 32; i += THREADS) {
			scales[c * (K / 32) + i] = Pairs(x).v[row * (K * 5 / 32) + K / 8 + i];
		}
#endif
	}
	barrier();
}

// finish is what becomes of an output's sum, which goes to a row of y.
float finish(float v, uint to, uint row) {
	precise float r = v;
	if ((EXTRAS & 1) != 0) {
		r = r + bias.v[expert * rows + row];
	}
	if ((EXTRAS & 2) != 0) {
		r = r + residual.v[to * yStride + row];
	}
	return r;
}

// glued is gate and up as one.
float glued(float gate, float up, uint row) {
	if ((EXTRAS & 1) != 0 && row < rows) {
		gate += bias.v[expert * rows + row];
		up += upBias.v[expert * rows + row];
	}
	return gated(ACT, gate, up);
}

// storeQuantised writes 32 outputs of a column as quantised activations: eight threads, four values each, taken from
// partial. The last tile's threads write zeros up to whole 256, too.
void storeQuantised(uint tile, uint column, uint lane, uint to) {
	uint padded = (rows + 255) / 256 * 256, at = column * 32 + lane * 4;
	Quantised q = quantise8(vec4(partial[at], partial[at + 1], partial[at + 2], partial[at + 3]));
	if (to == NONE) {
		return;
	}
	uint last = tile + 1 < (rows + 31) / 32 ? tile : padded / 32 - 1;
	for (uint t = tile; t <= last; t++) {
		Words(y).v[to * (padded * 5 / 16) + t * 8 + lane] = t == tile ? q.bytes : 0;
		if (lane == 0) {
			Pairs(y).v[to * (padded * 5 / 32) + padded / 8 + t] = t == tile ? q.scale : uvec2(0);
		}
	}
}

// joined adds a round's segments, those from a slot on, to an output's sum.
float joined(float sum, uint round, uint first, uint t, uint o) {
	precise float s = sum;
	uint n = min(PER, SEGMENTS - round * PER);
	for (uint i = first; i < first + n; i++) {
		s = s + partial[(i * TILES + t) * COLUMNS * 32 + o];
	}
	return s;
}

// summed adds up the results of a row's experts, with their biases, by their weights.
float summed(float each[SUMMED], uint row) {
	precise float sum = 0.0;
	[[unroll]] for (uint s = 0; s < SUMMED; s++) {
		uint pair = gl_WorkGroupID.y * SUMMED + s;
		precise float v = each[s];
		if ((EXTRAS & 1) != 0) {
			v = v + bias.v[chosen.v[pair] * rows + row];
		}
		sum = fma(shares.v[pair], v, sum);
	}
	if ((EXTRAS & 2) != 0) {
		sum = sum + residual.v[gl_WorkGroupID.y * yStride + row];
	}
	return sum;
}

// loadPart takes a part of a row tile, counted from the row's first. Beyond the last tile of rows it takes the last.
Packed loadPart(uint rowTile, uint rowTiles, uint part, uint lane) {
	return load(base, (min(rowTile, rowTiles - 1) * KTILES + part / PARTS) * TILE, lane, part % PARTS);
}

void main() {
	uint lane = gl_LocalInvocationID.x % 32, slot = gl_LocalInvocationID.x / 32, thread = gl_LocalInvocationID.x;
	uint rowTiles = (rows + 31) / 32 * (EPILOGUE == 0 ? 1 : 2);
	base = weights;
	uint first = 0; // slot of this thread's expert
	if (GROUPS >= 2) {
		uint at = gl_WorkGroupID.y * (GROUPS == 2 ? 1 : COLUMNS + 1);
		if (GROUPS == 4) {
			mine = min(slot / PER, SUMMED - 1);
			first = mine * PER;
			at = gl_WorkGroupID.y * SUMMED + mine;
		}
		expert = chosen.v[at];
		if (expert == NONE) {
			return;
		}
		base = Quads(Addresses(uint64_t(weights)).v[expert]);
	}
	[[unroll]] for (uint c = 0; c < COLUMNS; c++) {
		xRows[c] = GROUPS == 4 ? gl_WorkGroupID.y * SUMMED + mine : xRow(c);
	}
	const uint OUTPUTS = (COLUMNS * 32 + THREADS - 1) / THREADS; // of a thread
	bool ready = PROLOGUE == 0;
	for (uint tile = gl_WorkGroupID.x * TILES; tile < rowTiles; tile += gl_NumWorkGroups.x * TILES) {
		Packed next = loadPart(tile, rowTiles, min((slot - first) * SEGMENT, KTILES - 1) * PARTS, lane);
		if (!ready) {
			if (PROLOGUE == 1) {
				prologue();
			} else {
				stage();
			}
			ready = true;
		}
		float sum[OUTPUTS * TILES * SUMMED];
		[[unroll]] for (uint i = 0; i < OUTPUTS * TILES * SUMMED; i++) {
			sum[i] = 0.0;
		}
		[[unroll]] for (uint round = 0; round < ROUNDS; round++) {
			uint from = (round * PER + slot - first) * SEGMENT * PARTS, to = min(from + SEGMENT * PARTS, KTILES * PARTS);
			for (uint t = 0; t < TILES; t++) {
				[[unroll]] for (uint c = 0; c < COLUMNS; c++) {
					acc[c] = zero();
				}
				for (uint i = from; i < to; i++) {
					Packed p = next;
					if (i + 1 < to) {
						next = loadPart(tile + t, rowTiles, i + 1, lane);
					} else if (t + 1 < TILES) {
						next = loadPart(tile + t + 1, rowTiles, from, lane);
					} else if (round + 1 < ROUNDS) {
						next = loadPart(tile, rowTiles, min(from + PER * SEGMENT * PARTS, KTILES * PARTS - 1), lane);
					}
					multiply(p, i);
				}
				[[unroll]] for (uint c = 0; c < COLUMNS; c++) {
					partial[((slot * TILES + t) * COLUMNS + c) * 32 + lane] = total(acc[c]);
				}
			}
			barrier();
			[[unroll]] for (uint i = 0; i < OUTPUTS; i++) {
				uint o = thread + i * THREADS;
				if (o < COLUMNS * 32) {
					[[unroll]] for (uint t = 0; t < TILES; t++) {
						[[unroll]] for (uint s = 0; s < SUMMED; s++) {
							uint at = (i * TILES + t) * SUMMED + s;
							sum[at] = joined(sum[at], round, s * PER, t, o);
						}
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
			uint to = yRow(column);
			if (EPILOGUE == 0) {
				[[unroll]] for (uint t = 0; t < TILES; t++) {
					uint at = (tile + t) * 32 + row;
					if (at >= rows || to == NONE) {
						continue;
					}
					if (GROUPS == 4) {
						float each[SUMMED];
						[[unroll]] for (uint s = 0; s < SUMMED; s++) {
							each[s] = sum[(i * TILES + t) * SUMMED + s];
						}
						Floats(y).v[to * yStride + at] = summed(each, at);
					} else {
						Floats(y).v[to * yStride + at] = finish(sum[i * TILES + t], to, at);
					}
				}
			} else {
				uint at = tile / 2 * 32 + row;
				float h = glued(sum[i * TILES], sum[i * TILES + TILES - 1], at);
				if (EPILOGUE == 2) {
					partial[o] = at < rows ? h : 0.0;
				} else if (at < rows && to != NONE) {
					Floats(y).v[to * yStride + at] = h;
				}
			}
		}
		if (EPILOGUE == 2) {
			barrier();
			for (uint i = thread; i < COLUMNS * 8; i += THREADS) {
				storeQuantised(tile / 2, i / 8, i % 8, yRow(i / 8));
			}
			barrier();
		}
	}
}
