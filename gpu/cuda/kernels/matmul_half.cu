// y[c][o] = Σ w[o][k]·x[c][k] for many columns c, both rounded to half precision, by matrix units. Sums are float32, in
// the unit's own order: a column's bits are the same among any others, but not those of matvec.cu. Columns that were made
// smaller (halve.cu) are made large again.
//
// A block owns 128 outputs (four tiles of 32 rows; two of gate and two of up, where epilogue is a GLU) and 32·wide
// columns, wide being a 64th of its threads. Stages of 64 k of both come to shared memory as they are, two of them ahead.
//
// Shared memory: three stages of 16 KB and of 4608 bytes for each 32 columns; at the end 16896 bytes of sums for each
// of them take their place; 384 bytes of numbers for each.
//
// variant: matmul_half_f16 -DF16
// variant: matmul_half_bf16 -DBF16
#include "lib/many.cuh"
#include "lib/tile.cuh"

struct Args {
	uint64_t weights;
	uint64_t x; // rows of halves, of whole 256, and a factor for each of the columns
	uint64_t y, bias, residual;
	uint64_t count; // of a uint: columns that are there; 0: all
	uint rows, yStride, columns;
	uint kTiles; // 256 k each
	uint epilogue, extras, act;
	uint stagesAt; // bytes of shared memory before the numbers of columns
};

constexpr uint leftBytes = 16 << 10;  // of a stage: 128 rows of 64 k
constexpr uint rightBytes = 128 + 16; // of a column in a stage: 64 k, and what keeps eight columns in different banks

// A warp has 64 × 32 outputs, as 4 × 4 squares of 16 × 8. A lane has four numbers of a square: those of rows lane/4 and
// lane/4 + 8, each of columns lane%4·2 and the next. rowOf and columnOf are where number e of square s lies.
constexpr uint squares = 16;
DEVICE uint rowOf(uint s, uint e) { return threadX() / 32 % 2 * 64 + s / 4 * 16 + e / 2 * 8 + lane() / 4; }
DEVICE uint columnOf(uint s, uint e) { return threadX() / 64 * 32 + s % 4 * 8 + lane() % 4 * 2 + e % 2; }

// Stage is where a stage of 64 k lies.
DEVICE uint8_t *stageAt(uint stage, uint columns) {
	return dynamicShared<uint8_t>() + stage % 3 * (leftBytes + columns * rightBytes);
}

// fetch has a stage on its way.
DEVICE void fetch(const Args &a, const uint *rows, uint columns, uint stage) {
	uint rowTiles = (a.rows + 31) / 32 * (a.epilogue == 0 ? 1 : 2);
	uint8_t *to = stageAt(stage, columns);
	for (uint i = threadX(); i < leftBytes / 16; i += blockThreads()) { // of a tile of rows a stage is 256 words
		uint tile = lesser(blockX() * 4 + i / 256, rowTiles - 1);
		const uint4 *from = at<const uint4>(a.weights) + (uint64_t(tile) * a.kTiles + stage / 4) * tileWords;
		copyAsync16(to + i * 16, from + stage % 4 * 256 + i % 256);
	}
	to += leftBytes;
	for (uint i = threadX(); i < columns * 8; i += blockThreads()) {
		uint64_t from = a.x + (uint64_t(rows[i / 8]) * a.kTiles * 4 + stage) * 128;
		copyAsync16(to + i / 8 * rightBytes + i % 8 * 16, at<const uint8_t>(from + i % 8 * 16));
	}
}

// halvesOf is two weights as halves.
DEVICE uint halvesOf(uint w) {
#if defined(BF16)
	return toHalf(bitsFloat(w << 16)) | toHalf(bitsFloat(w & 0xffff0000u)) << 16;
#else
	return w;
#endif
}

// multiply adds 16 k of a stage.
DEVICE void multiply(const uint8_t *stage, uint k16, float acc[squares][4]) {
	const uint8_t *columns = stage + leftBytes + (threadX() / 64 * 32 + lane() / 4) * rightBytes + k16 * 32 + lane() % 4 * 4;
	uint right[4][2];
#pragma unroll
	for (uint n = 0; n < 4; n++) {
		right[n][0] = *reinterpret_cast<const uint *>(columns + n * 8 * rightBytes);
		right[n][1] = *reinterpret_cast<const uint *>(columns + n * 8 * rightBytes + 16);
	}
#pragma unroll
	for (uint m = 0; m < 4; m++) {
		uint tile = threadX() / 32 % 2 * 2 + m / 2, row = m % 2 * 16 + lane() / 4;
		const uint8_t *from = stage + ((tile * 8 + k16 * 2) * 32 + row) * 16 + lane() % 4 * 4;
		uint left[4];
#pragma unroll
		for (uint i = 0; i < 4; i++) { // rows lane/4 and 8 further on, of the first 8 k and of the others
			left[i] = halvesOf(*reinterpret_cast<const uint *>(from + i % 2 * 128 + i / 2 * 512));
		}
#pragma unroll
		for (uint n = 0; n < 4; n++) {
			mmaF16(acc[m * 4 + n], left, right[n]);
		}
	}
}

KERNEL_BLOCKS(matMulHalf, Args, 256, 2) {
	uint columns = blockThreads() / 2, stages = a.kTiles * 4;
	uint *targets = reinterpret_cast<uint *>(dynamicShared<uint8_t>() + a.stagesAt), *rows = targets + columns;
	float *factors = reinterpret_cast<float *>(rows + columns);
	for (uint c = threadX(); c < columns; c += blockThreads()) {
		uint column = blockY() * columns + c;
		targets[c] = column < a.columns && (a.count == 0 || column < *at<const uint>(a.count)) ? column : none;
		rows[c] = lesser(column, a.columns - 1);
		factors[c] = at<const float>(a.x + uint64_t(a.columns) * a.kTiles * 512)[rows[c]];
	}
	sync();
	float acc[squares][4] = {};
	fetch(a, rows, columns, 0);
	commit();
	fetch(a, rows, columns, 1);
	commit();
	for (uint stage = 0; stage < stages; stage++) {
		waitGroups<1>();
		sync();
		if (stage + 2 < stages) {
			fetch(a, rows, columns, stage + 2);
		}
		commit();
#pragma unroll
		for (uint k = 0; k < 4; k++) {
			multiply(stageAt(stage, columns), k, acc);
		}
	}
	waitGroups<0>();
	sync(); // sums take the stages' place
	float *sums = dynamicShared<float>();
#pragma unroll
	for (uint s = 0; s < squares; s++) {
#pragma unroll
		for (uint e = 0; e < 4; e++) {
			sums[columnOf(s, e) * sumStride + rowOf(s, e)] = acc[s][e] * factors[columnOf(s, e)];
		}
	}
	sync();
	storeAll({a.y, a.bias, a.residual, a.rows, a.yStride, a.epilogue, a.extras, a.act, 0, targets, columns}, sums);
}
