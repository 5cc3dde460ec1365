// What becomes of the sums of matmul.comp and matmul_f16.comp: total, squares of 16 × 16, of a team of 32 threads: 4 of
// outputs × ACROSS of columns. They are spread out in shared memory, a few at a time, and stored from there.
//
// The includer defines the push constants, EPILOGUE, EXTRAS, ACT, COLUMNS, ACROSS and THREADS; target, the row of y and of the
// residual that a column goes to, NONE if it is not there; and expert, whose bias is added.

// A square is a cooperative matrix, or what each of 32 threads has of it: row lane%16, every second column from lane/16.
#if defined(MATRIX)
#define SQUARE coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
#define SIZE (SQUARE(0.0).length())
#define EACHSQUARE [[unroll]]
#else
#define EACHSQUARE [[dont_unroll]] // all of it would be thousands of instructions
#define SQUARE float[8]
#define SIZE 8
uint squareRow() { return gl_LocalInvocationID.x % 16; }
uint squareColumn() { return gl_LocalInvocationID.x / 16 % 2; }
#endif

const uint OUT = EPILOGUE == 2 ? 512 : 256;
shared float result[THREADS / 32 * OUT];

const uint SQUARES = 4 * ACROSS;
SQUARE total[SQUARES];

// clearSquare sets a square to zero.
void clearSquare(inout SQUARE s) {
	[[unroll]] for (uint e = 0; e < SIZE; e++) {
		s[e] = 0.0;
	}
}

// spread writes a square to the team's part of result: column by column, whose rows are stride apart.
void spread(uint square, uint from, uint stride) {
	uint at = gl_LocalInvocationID.x / 32 * OUT + from;
#if defined(MATRIX)
	coopMatStore(total[square], result, at, stride, gl_CooperativeMatrixLayoutColumnMajor);
#else
	[[unroll]] for (uint e = 0; e < 8; e++) {
		result[at + (gl_LocalInvocationID.x / 16 % 2 + 2 * e) * stride + gl_LocalInvocationID.x % 16] = total[square][e];
	}
#endif
}

// apart keeps a team's writes to result apart from its reads: where it is a subgroup, without the others.
void apart() {
#if defined(MATRIX)
	subgroupBarrier();
#else
	barrier();
#endif
}

// store writes 16 rows × 16 columns of a team, from row and column of y on.
void store(uint row, uint column) {
	uint lane = gl_LocalInvocationID.x % 32, team = gl_LocalInvocationID.x / 32, at = row + lane % 16;
	float added[8];
	uint to[8];
	[[unroll]] for (uint i = 0; i < 8; i++) { // all loads before the first store
		to[i] = at < rows ? target(column + 2 * i + lane / 16) : NONE;
		added[i] = (EXTRAS & 2) != 0 && to[i] != NONE ? residual.v[to[i] * yStride + at] : 0.0;
	}
	float biased = (EXTRAS & 1) != 0 && at < rows ? bias.v[expert * rows + at] : 0.0;
	[[unroll]] for (uint i = 0; i < 8; i++) {
		precise float r = result[team * OUT + i * 32 + lane];
		if ((EXTRAS & 1) != 0) {
			r = r + biased;
		}
		if ((EXTRAS & 2) != 0) {
			r = r + added[i];
		}
		if (to[i] != NONE) {
			Floats(y).v[to[i] * yStride + at] = r;
		}
	}
}

#if !defined(PLAIN)
// storeQuantised writes 32 rows × 16 columns of a team as quantised activations, from row tile and column on. After the
// last tile come zeros up to whole 256.
void storeQuantised(uint tile, uint column) {
	uint lane = gl_LocalInvocationID.x % 32, team = gl_LocalInvocationID.x / 32;
	uint padded = (rows + 255) / 256 * 256, tiles = (rows + 31) / 32, last = tile + 1 < tiles ? tile : padded / 32 - 1;
	for (uint i = 0; i < 4; i++) {
		uint to = target(column + i * 4 + lane / 8), at = team * OUT + (i * 4 + lane / 8) * 32 + lane % 8 * 4;
		vec4 v = vec4(result[at], result[at + 1], result[at + 2], result[at + 3]);
		[[unroll]] for (uint n = 0; n < 4; n++) {
			v[n] = tile * 32 + lane % 8 * 4 + n < rows ? v[n] : 0.0;
		}
		Quantised q = quantise8(v);
		if (tile >= tiles || to == NONE) {
			continue;
		}
		for (uint t = tile; t <= last; t++) {
			Words(y).v[to * (padded * 5 / 16) + t * 8 + lane % 8] = t == tile ? q.bytes : 0;
			if (lane % 8 == 0) {
				Pairs(y).v[to * (padded * 5 / 32) + padded / 8 + t] = t == tile ? q.scale : uvec2(0);
			}
		}
	}
}
#endif

// finish stores all sums.
void finish() {
	uint team = gl_LocalInvocationID.x / 32, column = gl_WorkGroupID.y * COLUMNS + team / 2 * (16 * ACROSS);
	uint tile = gl_WorkGroupID.x * 4 + team % 2 * 2; // the team's first
	if (EPILOGUE == 0) {
		EACHSQUARE for (uint s = 0; s < SQUARES; s++) {
			spread(s, 0, 16);
			apart();
			store(tile * 32 + s / ACROSS * 16, column + s % ACROSS * 16);
			apart();
		}
		return;
	}
	EACHSQUARE for (uint s = 0; s < SQUARES / 2; s++) {
		[[unroll]] for (uint e = 0; e < SIZE; e++) {
			total[s][e] = gated(ACT, total[s][e], total[s + SQUARES / 2][e]);
		}
	}
	EACHSQUARE for (uint j = 0; j < ACROSS; j++) {
#if !defined(PLAIN)
		if (EPILOGUE == 2) {
			spread(j, 0, 32);
			spread(ACROSS + j, 16, 32);
			apart();
			storeQuantised(tile / 2, column + j * 16);
			apart();
			continue;
		}
#endif
		EACHSQUARE for (uint i = 0; i < 2; i++) {
			spread(ACROSS * i + j, 0, 16);
			apart();
			store(tile / 2 * 32 + i * 16, column + j * 16);
			apart();
		}
	}
}
