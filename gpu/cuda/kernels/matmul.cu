// y[c][o] = Σ w[o][k]·x[c][k] for many columns c, of weights and activations that are whole numbers with scales: what
// matvec.cu computes, bit for bit, by matrix units.
//
// A block owns 128 outputs (four tiles of 32 rows; two of gate and two of up, where epilogue is a GLU) and 32·wide
// columns, wide being a 64th of its threads. Stages of 64 k of both come to shared memory as they are, one ahead: what
// the lanes of a warp need at once of a tile lies side by side.
//
// Order of addition: that of matvec.cu. Products of 32 k (of 16, where scales are of 16) are whole numbers; they are
// scaled and added one by one, in order of k, then segments are.
//
// Whole numbers v below 2²² become floats for an addition: the unit adds them to the bits of 1.5·2²³, so that the sum's
// are those of 1.5·2²³ + v. What a format subtracts from all weights is in what the unit begins with.
//
// Shared memory: for each 32 columns 16640 bytes of sums, two stages of 2560 bytes, 256 bytes of rows' numbers; and two stages
// of weights, each of four times stageWords words of 16 bytes.
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

constexpr int magic = 0x4b400000; // the bits of 1.5·2²³
constexpr uint stageBytes = 80;   // of a column: 64 k, and the scales and sums of two blocks
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

DEVICE float wholeOf(int v) { return __builtin_bit_cast(float, v) - 12582912.0f; }

// Left is what a lane has of a block of one row of weights.
struct Left {
	uint lo, hi; // four weights of each half
	uint scale, low, d;
	uint2 each, lows; // scales and lows of halves
};

// leftOf takes block b, 0 to 7, of a row of a tile, of which a stage has it as its first or second.
DEVICE Left leftOf(const uint4 *part, uint row, uint b) {
	Left l;
	uint t = lane() % 4, half = b % 2;
	const uint4 *rest = part + quarter;
	(void)half;
#if defined(BYTES)
	l.lo = reinterpret_cast<const uint *>(part + 2 * half * 32 + row)[t];
	l.hi = reinterpret_cast<const uint *>(part + (2 * half + 1) * 32 + row)[t];
#else
	l.lo = reinterpret_cast<const uint *>(part + half * 32 + row)[t];
#endif
#if defined(Q4_0) || defined(Q8_0)
	l.scale = reinterpret_cast<const uint16_t *>(rest + row)[b];
#elif defined(Q4_K)
	const uint8_t *scales = reinterpret_cast<const uint8_t *>(rest + row);
	l.scale = scales[b];
	l.low = scales[8 + b];
	l.d = reinterpret_cast<const uint *>(rest + 32)[row];
#elif defined(Q6_K)
	l.hi = reinterpret_cast<const uint *>(rest)[(half * 32 + row) * 2 + t / 2];
	l.scale = reinterpret_cast<const uint16_t *>(rest + 32 + row)[b];
	l.d = reinterpret_cast<const uint16_t *>(rest + 64)[row];
#else
	l.each = reinterpret_cast<const uint2 *>(rest + row)[half];
#if defined(SPLIT_LOW)
	l.lows = reinterpret_cast<const uint2 *>(rest + 32 + row)[half];
#endif
#endif
	return l;
}

// Numbers are those of a row of weights in a block, as they are multiplied.
struct Numbers {
	uint lo, hi;
	float scale, other, low, otherLow, s0, s1;
};

DEVICE Numbers numbersOf(const Left &l) {
	Numbers n;
#if defined(BYTES)
	n.lo = l.lo;
	n.hi = l.hi;
#else
	n.lo = l.lo & 0x0f0f0f0fu;
	n.hi = l.lo >> 4 & 0x0f0f0f0fu;
#endif
#if defined(Q4_0) || defined(Q8_0)
	n.scale = fromHalf(l.scale);
#elif defined(Q4_K)
	n.scale = fromHalf(l.d & 0xffffu) * static_cast<float>(l.scale);
	n.low = fromHalf(l.d >> 16) * static_cast<float>(l.low);
#elif defined(Q6_K)
	uint pairs = l.hi >> lane() % 2 * 2;
	n.lo |= (pairs & 0x03030303u) << 4;
	n.hi |= pairs & 0x30303030u;
	n.scale = fromHalf(l.d);
	n.s0 = static_cast<float>(signedByte(l.scale));
	n.s1 = static_cast<float>(signedByte(l.scale >> 8));
#else
	n.scale = bitsFloat(l.each.x);
	n.other = bitsFloat(l.each.y);
#if defined(SPLIT_LOW)
	n.low = bitsFloat(l.lows.x);
	n.otherLow = bitsFloat(l.lows.y);
#endif
#endif
	return n;
}

// Column is what a column has of a block.
struct Column {
	float d, sum, otherSum;
	int from, otherFrom; // what whole numbers begin with
};

DEVICE Column columnFrom(uint2 scale) {
	Column c;
	c.d = bitsFloat(scale.x);
	int first = static_cast<int16_t>(scale.y), second = static_cast<int>(scale.y) >> 16;
	(void)first, (void)second;
	c.from = magic;
	c.otherFrom = magic;
#if defined(Q4_0)
	c.from = magic - 8 * (first + second);
#elif defined(Q4_K)
	c.sum = c.d * static_cast<float>(first + second);
#elif defined(Q6_K)
	c.from = magic - 32 * first;
	c.otherFrom = magic - 32 * second;
#elif defined(SPLIT_LOW)
	c.sum = c.d * static_cast<float>(first);
	c.otherSum = c.d * static_cast<float>(second);
#endif
	return c;
}

// addTo adds one product of a block, as whole numbers of both halves or of all of it, to a sum.
DEVICE float addTo(float r, const Numbers &w, const Column &c, int p, int q) {
#if defined(Q6_K)
	float both = fma(w.s0, wholeOf(p), w.s1 * wholeOf(q)); // a whole number below 2²⁴
	return fma(w.scale * c.d, both, r);
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

// multiply adds block b of a tile, which a stage has: tiles are a warp's two.
DEVICE void multiply(const uint4 *tiles, const uint8_t *stage, uint b, float acc[squares][4]) {
	uint right[4][2];
	Column columns[4][2];
#pragma unroll
	for (uint n = 0; n < 4; n++) {
		const uint8_t *from = stage + (n * 8 + lane() / 4) * stageBytes + b % 2 * 32 + lane() % 4 * 4;
		right[n][0] = *reinterpret_cast<const uint *>(from);
		right[n][1] = *reinterpret_cast<const uint *>(from + 16);
		const uint8_t *scales = stage + (n * 8 + lane() % 4 * 2) * stageBytes + 64 + b % 2 * 8;
		columns[n][0] = columnFrom(*reinterpret_cast<const uint2 *>(scales));
		columns[n][1] = columnFrom(*reinterpret_cast<const uint2 *>(scales + stageBytes));
	}
#pragma unroll
	for (uint m = 0; m < 4; m++) {
		const uint4 *part = tiles + m / 2 * stageWords;
		uint row = m % 2 * 16 + lane() / 4;
		Numbers w[2] = {numbersOf(leftOf(part, row, b)), numbersOf(leftOf(part, row + 8, b))};
#pragma unroll
		for (uint n = 0; n < 4; n++) {
			const Column *c = columns[n];
			int p[4] = {c[0].from, c[1].from, c[0].from, c[1].from}, q[4];
#if defined(Q6_K) || defined(SPLIT)
			q[0] = q[2] = c[0].otherFrom;
			q[1] = q[3] = c[1].otherFrom;
			mmaS8Half(p, w[0].lo, w[1].lo, right[n][0]);
			mmaS8Half(q, w[0].hi, w[1].hi, right[n][1]);
#else
			const uint four[4] = {w[0].lo, w[1].lo, w[0].hi, w[1].hi};
			mmaS8(p, four, right[n]);
			q[0] = q[1] = q[2] = q[3] = 0;
#endif
#pragma unroll
			for (uint e = 0; e < 4; e++) {
				acc[m * 4 + n][e] = addTo(acc[m * 4 + n][e], w[e / 2], c[e % 2], p[e], q[e]);
			}
		}
	}
}

// Sources are where a block's weights and columns come from, and its stages lie.
struct Sources {
	const uint4 *weights;
	uint rowTiles;
	uint64_t x;
	const uint *rows; // of x, by column
	uint kTiles, columns;
	uint8_t *stages; // two, weights first
};

DEVICE uint8_t *stageAt(const Sources &s, uint stage) {
	return s.stages + stage % 2 * (4 * stageWords * 16 + s.columns * stageBytes);
}

// fetch has a stage of 64 k on its way.
DEVICE void fetch(const Sources &s, uint stage) {
	uint8_t *to = stageAt(s, stage);
#pragma unroll 1
	for (uint i = threadX(); i < 4 * stageWords; i += blockThreads()) {
		uint tile = lesser(blockX() * 4 + i / stageWords, s.rowTiles - 1);
		const uint4 *from = s.weights + (uint64_t(tile) * s.kTiles + stage / 4) * tileWords;
		copyAsync16(to + i * 16, from + wordAt(stage % 4, i % stageWords));
	}
	to += 4 * stageWords * 16;
#pragma unroll 1
	for (uint i = threadX(); i < s.columns * 5; i += blockThreads()) {
		uint column = i / 5, part = i % 5;
		uint64_t from = s.x + uint64_t(s.rows[column]) * s.kTiles * 320;
		from += part < 4 ? stage * 64 + part * 16 : s.kTiles * 256 + stage * 16;
		copyAsync16(to + column * stageBytes + part * 16, at<const uint8_t>(from));
	}
}

// endSegment adds what a segment has summed up to the sums.
DEVICE void endSegment(float *totals, float acc[squares][4]) {
#pragma unroll
	for (uint s = 0; s < squares; s++) {
#pragma unroll
		for (uint e = 0; e < 4; e++) {
			totalOf(totals, s, e) = totalOf(totals, s, e) + acc[s][e];
			acc[s][e] = 0.0f;
		}
	}
}

// sumUp multiplies all of k.
DEVICE void sumUp(const Sources &s, uint segment, float *totals) {
	float acc[squares][4] = {};
	uint stages = s.kTiles * 4, left = segment;
	fetch(s, 0);
	commit();
	for (uint stage = 0; stage < stages; stage++) {
		waitGroups<0>();
		sync();
		if (stage + 1 < stages) {
			fetch(s, stage + 1);
		}
		commit();
		const uint8_t *here = stageAt(s, stage);
		const uint4 *tiles = reinterpret_cast<const uint4 *>(here) + threadX() / 32 % 2 * 2 * stageWords;
		const uint8_t *columns = here + 4 * stageWords * 16 + threadX() / 64 * 32 * stageBytes;
#pragma unroll 1
		for (uint half = 0; half < 2; half++) {
			multiply(tiles, columns, stage % 4 * 2 + half, acc);
		}
		if (stage % 4 == 3 && (--left == 0 || stage + 1 == stages)) {
			endSegment(totals, acc);
			left = segment;
		}
	}
}

DEVICE void matMul(const Args &a) {
	uint columns = blockThreads() / 2;
	float *totals = dynamicShared<float>();
	uint8_t *stages = reinterpret_cast<uint8_t *>(totals + totalStride * blockThreads());
	uint *targets = reinterpret_cast<uint *>(stages + 2 * (4 * stageWords * 16 + columns * stageBytes));
	uint *rows = targets + columns;
	const uint4 *weights = at<const uint4>(a.weights);
	uint expert = 0;
	if (a.groups != 0) {
		const uint *entry = at<const uint>(a.chosen) + blockY() * (columns + 1);
		expert = entry[0];
		if (expert == none) {
			return;
		}
		weights = at<const uint4>(at<const uint64_t>(a.weights)[expert]);
		for (uint c = threadX(); c < columns; c += blockThreads()) {
			targets[c] = entry[1 + c];
			rows[c] = entry[1 + c] == none ? 0 : entry[1 + c] / a.share;
		}
	} else {
		for (uint c = threadX(); c < columns; c += blockThreads()) {
			uint column = blockY() * columns + c;
			targets[c] = column < a.columns && (a.count == 0 || column < *at<const uint>(a.count)) ? column : none;
			rows[c] = lesser(column, a.columns - 1);
		}
	}
	for (uint i = 0; i < squares * 4; i++) {
		totalOf(totals, 0, i) = 0.0f;
	}
	sync();
	uint rowTiles = (a.rows + 31) / 32 * (a.epilogue == 0 ? 1 : 2);
	sumUp({weights, rowTiles, a.x, rows, a.kTiles, columns, stages}, a.segment, totals);
	storeAll({a.y, a.bias, a.residual, a.rows, a.yStride, a.epilogue, a.extras, a.act, expert, targets}, totals);
}

// Two large blocks that share a processor hide each other's waits, with few registers; others take as many as they need.
KERNEL_BLOCKS(matMulShared, Args, 256, 2) { matMul(a); }
KERNEL(matMulFree, Args, 256) { matMul(a); }
