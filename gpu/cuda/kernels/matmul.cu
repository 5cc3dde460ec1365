// y[c][o] = Σ w[o][k]·x[c][k] for many columns c, of weights and activations that are whole numbers with scales: what
// matvec.cu computes, bit for bit, by matrix units.
//
// A block owns 128 outputs (four tiles of 32 rows; two of gate and two of up, where epilogue is a GLU) and 32·wide columns;
// a warp has 32 × 32 of them, as 2 × 4 squares of 16 × 8. Stages of 64 k of both come to shared memory as they are, three
// of them ahead. Of the one that is next all threads make ready what lanes would else compute again and again: scales as
// floats (Row, Column).
//
// Order of addition: that of matvec.cu. Products of 32 k (of 16, where scales are of 16) are whole numbers; they are
// scaled and added one by one, in order of k, then segments are. What takes time is these additions: three or more
// instructions for each product of a lane, where the unit needs half of one.
//
// Whole numbers v below 2²² become floats for an addition: the unit adds them to the bits of 1.5·2²³, so that the sum's
// are those of 1.5·2²³ + v.
//
// Shared memory: four stages, each of four times stageWords words of 16 bytes and of 80 bytes for each column; what is
// ready of two of them; 128 bytes of sums for each thread; 8 bytes for each column. At the end sums take the stages' place.
//
// variant: matmul_q4_0 -DQ4_0
// variant: matmul_q8_0 -DQ8_0
// variant: matmul_q4_k -DQ4_K
// variant: matmul_q6_k -DQ6_K
// variant: matmul_split -DSPLIT
// variant: matmul_split_low -DSPLIT_LOW
#include "lib/many.cuh"
#include "lib/tile.cuh"

struct Args {
	uint64_t weights;  // of experts the addresses, by number
	uint64_t x;        // quantised rows
	uint64_t y, bias, residual;
	uint64_t count;    // of a uint: columns that are there; 0: all
	uint64_t chosen;   // entries, of experts
	uint rows, yStride, columns;
	uint kTiles;       // 256 k each
	uint segment;      // tiles of k
	uint share;        // rows of y that have the same row of x, of experts
	uint epilogue, extras, act;
	uint groups;       // 1: columns are those of an entry, of an expert's matrix
};

constexpr uint stages = 4, squares = 8;
constexpr uint columnBytes = 80; // of a stage: 64 k, and the scales and sums of two blocks
constexpr uint quarter = quantWords / 4 * 32; // words of quants of a tile in a stage

// stageWords is what a stage has of a tile: a quarter of the quants, then a quarter of what lies by blocks, then what is
// of all blocks.
#if defined(Q4_K)
constexpr uint stageWords = quarter + 40;
#elif defined(Q6_K)
constexpr uint stageWords = quarter + 32 + 36;
#elif defined(SPLIT_LOW)
constexpr uint stageWords = quarter + 64;
#else
constexpr uint stageWords = quarter + 32;
#endif

// wordAt is the word of a tile that is word i of a stage, 0 to 3.
DEVICE uint wordAt(uint stage, uint i) {
	if (i < quarter) {
		return stage * quarter + i;
	}
	i -= quarter;
#if defined(Q6_K)
	return i < 32 ? 8 * 32 + stage * 32 + i : 12 * 32 + i - 32;
#elif defined(SPLIT_LOW)
	return i < 32 ? (quantWords + stage) * 32 + i : (quantWords + 4 + stage) * 32 + i - 32;
#elif defined(SPLIT)
	return (quantWords + stage) * 32 + i;
#else
	return quantWords * 32 + i;
#endif
}

// Row is what a row of weights has of a block, Column what a column has; of some formats it is made ready.
#if defined(Q4_K)
struct alignas(8) Row { float scale, low; };
struct alignas(8) Column { float d, sum; };
constexpr uint readyRow = sizeof(Row), readyColumn = sizeof(Column);
#elif defined(Q6_K)
struct alignas(16) Row { float scale; int s0, s1, pad; };
struct Column { float d; };
constexpr uint readyRow = sizeof(Row), readyColumn = 0;
#elif defined(SPLIT_LOW)
struct Row { float scale, other, low, otherLow; };
struct alignas(16) Column { float d, sum, otherSum, pad; };
constexpr uint readyRow = 0, readyColumn = sizeof(Column);
#elif defined(SPLIT)
struct Row { float scale, other; };
struct Column { float d; };
constexpr uint readyRow = 0, readyColumn = 0;
#else
struct Row { float scale; };
struct Column { float d; };
constexpr uint readyRow = 0, readyColumn = 0;
#endif

// Layout is where things lie in the shared memory of a block.
template <uint wide> struct Layout {
	static constexpr uint threads = 128 * wide, columns = 32 * wide;
	static constexpr uint leftBytes = 4 * stageWords * 16, stageBytes = leftBytes + columns * columnBytes;
	static constexpr uint readyBytes = 2 * (tall * readyRow + columns * readyColumn); // of a stage: two blocks
	static constexpr uint readyAt = stages * stageBytes, totalsAt = readyAt + 2 * readyBytes;
	static constexpr uint targetsAt = totalsAt + threads * squares * 16;
	static constexpr uint copies = (4 * stageWords + threads - 1) / threads;
};

template <uint wide> DEVICE uint8_t *stageOf(uint i) {
	return dynamicShared<uint8_t>() + i % stages * Layout<wide>::stageBytes;
}
template <uint wide> DEVICE Row *rowsOf(uint stage, uint half) {
	uint8_t *ready = dynamicShared<uint8_t>() + Layout<wide>::readyAt + stage % 2 * Layout<wide>::readyBytes;
	return reinterpret_cast<Row *>(ready) + half * tall;
}
template <uint wide> DEVICE Column *readyOf(uint stage, uint half) {
	uint8_t *ready = dynamicShared<uint8_t>() + Layout<wide>::readyAt + stage % 2 * Layout<wide>::readyBytes;
	return reinterpret_cast<Column *>(ready + 2 * tall * readyRow) + half * Layout<wide>::columns;
}
template <uint wide> DEVICE float4 *totalsOf() {
	return reinterpret_cast<float4 *>(dynamicShared<uint8_t>() + Layout<wide>::totalsAt) + threadX();
}

// Feed is where what a thread copies comes from.
template <uint wide> struct Feed {
	const uint8_t *weights;
	uint from[Layout<wide>::copies], step[Layout<wide>::copies]; // of weights, in stage 0 of a tile; from stage to stage
	const uint8_t *quants, *scales;                            // of columns
};

template <uint wide> DEVICE Feed<wide> feedOf(const Args &a, const uint4 *weights, const uint *rows) {
	using B = Layout<wide>;
	Feed<wide> f;
	uint rowTiles = (a.rows + 31) / 32 * (a.epilogue == 0 ? 1 : 2), first = blockX() * 4;
	f.weights = reinterpret_cast<const uint8_t *>(weights + uint64_t(first) * a.kTiles * tileWords);
#pragma unroll
	for (uint j = 0; j < B::copies; j++) {
		uint i = threadX() + j * B::threads, tile = lesser(i / stageWords, rowTiles - 1 - first);
		f.from[j] = (tile * a.kTiles * tileWords + wordAt(0, i % stageWords)) * 16;
		f.step[j] = (wordAt(1, i % stageWords) - wordAt(0, i % stageWords)) * 16;
	}
	uint64_t rowBytes = uint64_t(a.kTiles) * 320;
	f.quants = at<const uint8_t>(a.x + rows[threadX() / 4] * rowBytes + threadX() % 4 * 16);
	f.scales = at<const uint8_t>(a.x + rows[threadX() % B::columns] * rowBytes + a.kTiles * 256);
	return f;
}

// fetch has a stage of 64 k on its way.
template <uint wide> DEVICE void fetch(const Feed<wide> &f, uint stage) {
	using B = Layout<wide>;
	uint8_t *to = stageOf<wide>(stage);
	const uint8_t *tile = f.weights + uint64_t(stage / 4) * (tileWords * 16);
#pragma unroll
	for (uint j = 0; j < B::copies; j++) {
		uint i = threadX() + j * B::threads;
		if ((j + 1) * B::threads <= 4 * stageWords || i < 4 * stageWords) {
			copyAsync16(to + i * 16, tile + (f.from[j] + stage % 4 * f.step[j]));
		}
	}
	to += B::leftBytes;
	copyAsync16(to + threadX() / 4 * columnBytes + threadX() % 4 * 16, f.quants + stage * 64);
	if (threadX() < B::columns) {
		copyAsync16(to + threadX() * columnBytes + 64, f.scales + stage * 16);
	}
}

// makeReady computes the scales of both blocks of a stage.
template <uint wide> DEVICE void makeReady(uint stage) {
	using B = Layout<wide>;
	const uint8_t *here = stageOf<wide>(stage);
	if constexpr (readyRow != 0) {
#pragma unroll
		for (uint i = threadX(); i < 2 * tall; i += B::threads) {
			uint b = stage % 4 * 2 + i / tall, row = i % 32;
			const uint4 *rest = reinterpret_cast<const uint4 *>(here) + i % tall / 32 * stageWords + quarter;
			(void)b, (void)row, (void)rest;
#if defined(Q4_K)
			const uint8_t *scales = reinterpret_cast<const uint8_t *>(rest + row);
			uint d = reinterpret_cast<const uint *>(rest + 32)[row];
			rowsOf<wide>(stage, 0)[i] = {fromHalf(d & 0xffffu) * static_cast<float>(static_cast<uint>(scales[b])),
				fromHalf(d >> 16) * static_cast<float>(static_cast<uint>(scales[8 + b]))};
#elif defined(Q6_K)
			uint s = reinterpret_cast<const uint16_t *>(rest + 32 + row)[b];
			float scale = fromHalf(reinterpret_cast<const uint16_t *>(rest + 64)[row]);
			rowsOf<wide>(stage, 0)[i] = {scale, signedByte(s), signedByte(s >> 8), 0};
#endif
		}
	}
	if constexpr (readyColumn != 0) {
#pragma unroll
		for (uint i = B::threads - 1 - threadX(); i < 2 * B::columns; i += B::threads) { // from threads that have no row
			const uint8_t *from = here + B::leftBytes + i % B::columns * columnBytes + 64 + i / B::columns * 8;
			uint2 scale = *reinterpret_cast<const uint2 *>(from);
			float d = bitsFloat(scale.x);
			int first = static_cast<int16_t>(scale.y), second = static_cast<int>(scale.y) >> 16;
			(void)d, (void)first, (void)second;
#if defined(Q4_K)
			readyOf<wide>(stage, 0)[i] = {d, d * static_cast<float>(first + second)};
#elif defined(SPLIT_LOW)
			readyOf<wide>(stage, 0)[i] = {d, d * static_cast<float>(first), d * static_cast<float>(second), 0.0f};
#endif
		}
	}
}

// rowOf is row i of a lane's four, 8 apart, of a tile.
template <uint wide> DEVICE Row rowOf(const uint4 *tile, uint stage, uint half, uint i) {
	uint row = i * 8 + lane() / 4;
	const uint4 *rest = tile + quarter;
	(void)rest, (void)row;
#if defined(Q4_0) || defined(Q8_0)
	return {fromHalf(reinterpret_cast<const uint16_t *>(rest + row)[stage % 4 * 2 + half])};
#elif defined(SPLIT)
	Row r;
	uint2 scales = reinterpret_cast<const uint2 *>(rest + row)[half];
	r.scale = bitsFloat(scales.x);
	r.other = bitsFloat(scales.y);
#if defined(SPLIT_LOW)
	uint2 lows = reinterpret_cast<const uint2 *>(rest + 32 + row)[half];
	r.low = bitsFloat(lows.x);
	r.otherLow = bitsFloat(lows.y);
#endif
	return r;
#else
	return rowsOf<wide>(stage, half)[threadX() / 32 % 4 * 32 + row];
#endif
}

// columnsOf takes two columns that lie side by side.
template <uint wide> DEVICE void columnsOf(const uint8_t *right, uint stage, uint half, uint column, Column c[2]) {
	if constexpr (readyColumn != 0) {
		const Column *from = readyOf<wide>(stage, half) + column;
		if constexpr (sizeof(Column) == 8) {
			__builtin_memcpy(c, __builtin_assume_aligned(from, 16), 2 * sizeof(Column));
		} else {
			c[0] = from[0];
			c[1] = from[1];
		}
	} else {
		const uint8_t *from = right + column * columnBytes + 64 + half * 8;
		c[0].d = *reinterpret_cast<const float *>(from);
		c[1].d = *reinterpret_cast<const float *>(from + columnBytes);
	}
}

// leftOf takes a block of the 32 rows of a tile, as two operands of mma.
DEVICE void leftOf(const uint4 *tile, uint half, uint left[2][4]) {
#if defined(BYTES)
#pragma unroll
	for (uint m = 0; m < 2; m++) {
		loadMatrices(left[m], tile + (half * 2 + lane() / 16) * 32 + m * 16 + lane() % 16);
	}
#else
	uint q[4];
	loadMatrices(q, tile + half * 32 + lane());
#pragma unroll
	for (uint i = 0; i < 4; i++) {
#if defined(Q4_0) // 16 times the weights: sign bits are where a byte has them
		left[i / 2][i % 2] = (q[i] << 4 & 0xf0f0f0f0u) ^ 0x80808080u;
		left[i / 2][i % 2 + 2] = (q[i] & 0xf0f0f0f0u) ^ 0x80808080u;
#elif defined(Q6_K)
		const uint2 *high = reinterpret_cast<const uint2 *>(tile + quarter) + half * 32 + i * 8 + lane() / 4;
		uint pairs = reinterpret_cast<const uint *>(high)[lane() % 4 / 2] >> lane() % 2 * 2;
		uint lo = (q[i] & 0x0f0f0f0fu) | ((pairs << 4 & 0x30303030u) | 0x80808080u);
		uint hi = (q[i] >> 4 & 0x0f0f0f0fu) | ((pairs & 0x30303030u) | 0x80808080u);
		left[i / 2][i % 2] = (lo - 0x20202020u) ^ 0x80808080u;
		left[i / 2][i % 2 + 2] = (hi - 0x20202020u) ^ 0x80808080u;
#else
		left[i / 2][i % 2] = q[i] & 0x0f0f0f0fu;
		left[i / 2][i % 2 + 2] = q[i] >> 4 & 0x0f0f0f0fu;
#endif
	}
#endif
}

// Whole numbers that become floats: what the unit begins with, and what is subtracted. Those of Q4_0 are 16 times as large.
#if defined(Q4_0)
constexpr int magic = 0x49400000;
DEVICE float wholeOf(int v) { return __builtin_bit_cast(float, v) - 786432.0f; }
#elif defined(Q6_K)
constexpr int magic = 0;
#else
constexpr int magic = 0x4b400000;
DEVICE float wholeOf(int v) { return __builtin_bit_cast(float, v) - 12582912.0f; }
#endif

// addTo adds one product of a block, as whole numbers of both halves or of all of it, to a sum.
DEVICE float addTo(float r, const Row &w, const Column &c, int p, int q) {
#if defined(Q6_K)
	return fma(w.scale * c.d, static_cast<float>(w.s0 * p + w.s1 * q), r); // below 2²⁴
#else
	r = fma(w.scale * c.d, wholeOf(p), r);
#if defined(SPLIT)
	r = fma(w.other * c.d, wholeOf(q), r);
#endif
#if defined(Q4_K) || defined(SPLIT_LOW)
	r = fma(-w.low, c.sum, r);
#endif
#if defined(SPLIT_LOW)
	r = fma(-w.otherLow, c.otherSum, r);
#endif
	return r;
#endif
}

// multiply adds one of the two blocks of a stage.
template <uint wide> DEVICE void multiply(uint stage, uint half, float acc[squares][4]) {
	using B = Layout<wide>;
	const uint8_t *here = stageOf<wide>(stage), *right = here + B::leftBytes;
	const uint4 *tile = reinterpret_cast<const uint4 *>(here) + threadX() / 32 % 4 * stageWords;
	uint first = threadX() / 128 * 32, x[2][4], left[2][4];
#pragma unroll
	for (uint n = 0; n < 2; n++) { // matrices: columns of the first square and of the second, each the lower k first
		uint column = first + n * 16 + lane() / 16 * 8 + lane() % 8;
		loadMatrices(x[n], right + column * columnBytes + half * 32 + lane() / 8 % 2 * 16);
	}
	Column c[4][2];
#pragma unroll
	for (uint n = 0; n < 4; n++) {
		columnsOf<wide>(right, stage, half, first + n * 8 + lane() % 4 * 2, c[n]);
	}
	leftOf(tile, half, left);
#pragma unroll
	for (uint m = 0; m < 2; m++) {
		Row rows[2] = {rowOf<wide>(tile, stage, half, m * 2), rowOf<wide>(tile, stage, half, m * 2 + 1)};
#pragma unroll
		for (uint n = 0; n < 4; n++) {
			const uint *with = x[n / 2] + n % 2 * 2;
			int p[4] = {magic, magic, magic, magic}, q[4] = {magic, magic, magic, magic};
#if defined(Q6_K) || defined(SPLIT)
			mmaS8Half(p, left[m][0], left[m][1], with[0]);
			mmaS8Half(q, left[m][2], left[m][3], with[1]);
#else
			mmaS8(p, left[m], with);
#endif
#pragma unroll
			for (uint e = 0; e < 4; e++) {
				acc[m * 4 + n][e] = addTo(acc[m * 4 + n][e], rows[e / 2], c[n][e % 2], p[e], q[e]);
			}
		}
	}
}

// endSegment adds what a segment has summed up to the sums.
template <uint wide> DEVICE void endSegment(float acc[squares][4]) {
	float4 *totals = totalsOf<wide>();
#pragma unroll
	for (uint s = 0; s < squares; s++) {
		float4 v = totals[s * Layout<wide>::threads];
		totals[s * Layout<wide>::threads] = {v.x + acc[s][0], v.y + acc[s][1], v.z + acc[s][2], v.w + acc[s][3]};
#pragma unroll
		for (uint e = 0; e < 4; e++) {
			acc[s][e] = 0.0f;
		}
	}
}

// sumUp multiplies all of k; sums lie at the beginning of shared memory then.
template <uint wide> DEVICE void sumUp(const Args &a, const Feed<wide> &f) {
	using B = Layout<wide>;
	float acc[squares][4] = {};
	for (uint s = 0; s < squares; s++) {
		totalsOf<wide>()[s * B::threads] = {0.0f, 0.0f, 0.0f, 0.0f};
	}
	uint all = a.kTiles * 4, left = a.segment;
	for (uint stage = 0; stage < stages - 1; stage++) { // there are four at least
		fetch(f, stage);
		commit();
	}
	waitGroups<stages - 2>();
	sync();
	makeReady<wide>(0);
	for (uint stage = 0; stage < all; stage++) {
		waitGroups<stages - 3>();
		sync();
		if (stage + stages - 1 < all) {
			fetch(f, stage + stages - 1);
		}
		commit();
		if (stage + 1 < all) {
			makeReady<wide>(stage + 1);
		}
#pragma unroll
		for (uint half = 0; half < 2; half++) {
			multiply<wide>(stage, half, acc);
		}
		if (stage % 4 == 3 && (--left == 0 || stage + 1 == all)) {
			endSegment<wide>(acc);
			left = a.segment;
		}
	}
	sync();
	float *sums = dynamicShared<float>();
#pragma unroll
	for (uint s = 0; s < squares; s++) {
		float4 v = totalsOf<wide>()[s * B::threads];
		acc[s][0] = v.x;
		acc[s][1] = v.y;
		acc[s][2] = v.z;
		acc[s][3] = v.w;
	}
	sync();
#pragma unroll
	for (uint s = 0; s < squares; s++) {
#pragma unroll
		for (uint e = 0; e < 4; e++) {
			uint column = threadX() / 128 * 32 + s % 4 * 8 + lane() % 4 * 2 + e % 2;
			sums[column * sumStride + threadX() / 32 % 4 * 32 + s / 4 * 16 + e / 2 * 8 + lane() / 4] = acc[s][e];
		}
	}
	sync();
}

template <uint wide> DEVICE void matMul(const Args &a) {
	using B = Layout<wide>;
	uint *targets = reinterpret_cast<uint *>(dynamicShared<uint8_t>() + B::targetsAt), *rows = targets + B::columns;
	const uint4 *weights = at<const uint4>(a.weights);
	const uint *entry = nullptr;
	uint expert = 0;
	if (a.groups != 0) {
		entry = at<const uint>(a.chosen) + blockY() * (B::columns + 1);
		expert = entry[0];
		if (expert == none) {
			return;
		}
		weights = at<const uint4>(at<const uint64_t>(a.weights)[expert]);
	}
	if (threadX() < B::columns) {
		uint c = threadX(), column = blockY() * B::columns + c;
		if (a.groups != 0) {
			targets[c] = entry[1 + c];
			rows[c] = entry[1 + c] == none ? 0 : entry[1 + c] / a.share;
		} else {
			targets[c] = column < a.columns && (a.count == 0 || column < *at<const uint>(a.count)) ? column : none;
			rows[c] = lesser(column, a.columns - 1);
		}
	}
	sync();
	sumUp<wide>(a, feedOf<wide>(a, weights, rows));
	storeAll({a.y, a.bias, a.residual, a.rows, a.yStride, a.epilogue, a.extras, a.act, expert, targets, B::columns},
		dynamicShared<float>());
}

KERNEL(matMul1, Args, 128) { matMul<1>(a); }
KERNEL_BLOCKS(matMul2, Args, 256, 2) { matMul<2>(a); }
