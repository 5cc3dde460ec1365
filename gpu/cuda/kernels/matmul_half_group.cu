// What matmul_half.cu computes, on Hopper: by products of warpgroups, whose bits differ from those of smaller units, but
// not with the columns of a block.
//
// A block owns 128 outputs (four tiles of 32 rows; two of gate and two of up, where epilogue is a GLU) and some columns, each
// of its two warpgroups 64 outputs of them. Stages of 64 k of both come to shared memory, two of them ahead, while the
// units multiply the one before.
//
// Shared memory: four stages of 16 KB and of 128 bytes for each column; at the end 528 bytes of sums for each column take
// their place; 12 bytes of numbers for each column.
//
// variant: matmul_half_group_f16 -DF16 -DSM_90A
#include "lib/group.cuh"
#include "lib/many.cuh"
#include "lib/tile.cuh"

struct Args {
	uint64_t weights;
	uint64_t x; // rows of halves, of whole 256, and a factor for each of the columns
	uint64_t y, bias, residual;
	uint64_t count; // of a uint: columns that are there; 0: all
	uint rows, yStride, columns;
	uint kTiles; // 256 k each
	uint epilogue, extras, act, pad;
};

constexpr uint stages = 4, threads = 256;
constexpr uint leftBytes = 16 << 10; // of a stage: 8 times 8 k, of 128 rows

template <uint columns> constexpr uint stageBytes = leftBytes + columns * 128;

template <uint columns> DEVICE uint8_t *stageOf(uint i) {
	return dynamicShared<uint8_t>() + i % stages * stageBytes<columns>;
}

// Feed is where what a thread copies comes from: a word of each tile, and of every 32nd column.
template <uint columns> struct Feed {
	const uint8_t *weights, *x;
	uint tiles[4], rows[columns / 32];
};

template <uint columns> DEVICE Feed<columns> feedOf(const Args &a, const uint *rows) {
	Feed<columns> f;
	uint rowTiles = (a.rows + 31) / 32 * (a.epilogue == 0 ? 1 : 2), first = blockX() * 4;
	f.weights = at<const uint8_t>(a.weights) + uint64_t(first) * a.kTiles * (tileWords * 16);
	f.x = at<const uint8_t>(a.x);
#pragma unroll
	for (uint j = 0; j < 4; j++) {
		f.tiles[j] = lesser(j, rowTiles - 1 - first) * a.kTiles * (tileWords * 16) + threadX() * 16;
	}
#pragma unroll
	for (uint j = 0; j < columns / 32; j++) {
		f.rows[j] = rows[threadX() / 8 + j * 32] * a.kTiles * 512 + threadX() % 8 * 16;
	}
	return f;
}

// fetch has a stage on its way.
template <uint columns> DEVICE void fetch(const Feed<columns> &f, uint stage) {
	uint8_t *to = stageOf<columns>(stage);
	const uint8_t *tiles = f.weights + uint64_t(stage) * 4096, *x = f.x + stage * 128;
#pragma unroll
	for (uint j = 0; j < 4; j++) {
		copyAsync16(to + (threadX() / 32 * 128 + j * 32 + lane()) * 16, tiles + f.tiles[j]);
	}
	to += leftBytes;
#pragma unroll
	for (uint j = 0; j < columns / 32; j++) {
		uint column = threadX() / 8 + j * 32;
		copyAsync16(to + column * 128 + turned(column, threadX() % 8) * 16, x + f.rows[j]);
	}
}

// multiply adds a stage.
template <uint columns> DEVICE void multiply(uint stage, float *acc) {
	const uint8_t *left = stageOf<columns>(stage) + threadX() / 128 * 1024, *right = stageOf<columns>(stage) + leftBytes;
	beginProducts();
#pragma unroll
	for (uint k = 0; k < 4; k++) {
		Products<columns>::add(acc, operandOf(left + k * 4096, 2048, 128), turnedOf(right + k * 32));
	}
	endProducts();
}

template <uint columns> DEVICE void matMul(const Args &a) {
	uint8_t *shared = dynamicShared<uint8_t>();
	uint *targets = reinterpret_cast<uint *>(shared + stages * stageBytes<columns>), *rows = targets + columns;
	float *factors = reinterpret_cast<float *>(rows + columns), *sums = dynamicShared<float>();
	uint all = a.kTiles * 4;
	if (threadX() < columns) {
		uint c = threadX(), column = blockY() * columns + c;
		targets[c] = column < a.columns && (a.count == 0 || column < *at<const uint>(a.count)) ? column : none;
		rows[c] = lesser(column, a.columns - 1);
		factors[c] = at<const float>(a.x + uint64_t(a.columns) * a.kTiles * 512)[rows[c]];
	}
	sync();
	Feed<columns> f = feedOf<columns>(a, rows);
	float acc[columns / 2] = {};
	fetch(f, 0);
	commit();
	fetch(f, 1);
	commit();
	for (uint stage = 0; stage < all; stage++) {
		waitGroups<1>();
		showProducts();
		sync(); // all have what this stage needs, and nobody multiplies the last but one
		multiply<columns>(stage, acc);
		if (stage + 2 < all) {
			fetch(f, stage + 2);
		}
		commit();
		waitProducts<1>();
	}
	waitProducts<0>();
	waitGroups<0>();
	sync(); // sums take the stages' place
#pragma unroll
	for (uint i = 0; i < columns / 2; i++) {
		uint column = i / 4 * 8 + lane() % 4 * 2 + i % 2, row = threadX() / 32 * 16 + i / 2 % 2 * 8 + lane() / 4;
		sums[column * sumStride + row] = acc[i] * factors[column];
	}
	sync();
	storeAll({a.y, a.bias, a.residual, a.rows, a.yStride, a.epilogue, a.extras, a.act, 0, targets, columns}, sums);
}

KERNEL(matMul64, Args, threads) { matMul<64>(a); }
KERNEL(matMul128, Args, threads) { matMul<128>(a); }
KERNEL(matMul256, Args, threads) { matMul<256>(a); }
