// y[c][o] = Σ w[o][k]·x[c][k] for many columns c, of weights and activations that are whole numbers with scales: what
// matvec.cu computes, bit for bit, by matrix units.
//
// A block owns 128 outputs (four tiles of 32 rows; two of gate and two of up, where epilogue is a GLU) and 32·wide
// columns, wide being a 64th of its threads. Activations come to shared memory as they are, 64 k at a time, two such
// stages ahead; weights come to registers, where a lane needs just what lies side by side in tiles.
//
// Order of addition: that of matvec.cu. Products of 32 k (of 16, where scales are of 16) are whole numbers; they are
// scaled and added one by one, in order of k, then segments are.
//
// Whole numbers v below 2²² become floats for an addition: the unit adds them to the bits of 1.5·2²³, so that the sum's
// are those of 1.5·2²³ + v. What a format subtracts from all weights is in what the unit begins with.
//
// Shared memory, for each 32 columns: 16 KB of sums, three stages of 2560 bytes, 256 bytes of rows' numbers.
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

DEVICE float wholeOf(int v) { return __builtin_bit_cast(float, v) - 12582912.0f; }

// Left is what a lane has of a block of one row of weights.
struct Left {
	uint lo, hi; // four weights of each half
	uint scale, low, d;
	uint2 each, lows; // scales and lows of halves
};

DEVICE Left leftOf(const uint4 *tile, uint row, uint b) {
	Left l;
	uint t = lane() % 4;
#if defined(BYTES)
	l.lo = load32(reinterpret_cast<const uint *>(tile + 2 * b * 32 + row) + t);
	l.hi = load32(reinterpret_cast<const uint *>(tile + (2 * b + 1) * 32 + row) + t);
#else
	l.lo = load32(reinterpret_cast<const uint *>(tile + b * 32 + row) + t);
#endif
#if defined(Q4_0) || defined(Q8_0)
	l.scale = load16(reinterpret_cast<const uint16_t *>(tile + quantWords * 32 + row) + b);
#elif defined(Q4_K)
	const uint8_t *scales = reinterpret_cast<const uint8_t *>(tile + 8 * 32 + row);
	l.scale = scales[b];
	l.low = scales[8 + b];
	l.d = load32(reinterpret_cast<const uint *>(tile + 9 * 32) + row);
#elif defined(Q6_K)
	l.hi = load32(reinterpret_cast<const uint *>(tile + 8 * 32) + (b * 32 + row) * 2 + t / 2);
	l.scale = load16(reinterpret_cast<const uint16_t *>(tile + 12 * 32 + row) + b);
	l.d = load16(reinterpret_cast<const uint16_t *>(tile + 13 * 32) + row);
#else
	l.each = load64(reinterpret_cast<const uint2 *>(tile + (quantWords + b / 2) * 32 + row) + b % 2);
#if defined(SPLIT_LOW)
	l.lows = load64(reinterpret_cast<const uint2 *>(tile + (quantWords + 4 + b / 2) * 32 + row) + b % 2);
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

// multiply adds a block: rows of weights by what was loaded of them, columns by what a stage has.
DEVICE void multiply(const Left left[8], const uint8_t *stage, uint half, float acc[squares][4]) {
	uint right[4][2];
	Column columns[4][2];
#pragma unroll
	for (uint n = 0; n < 4; n++) {
		const uint8_t *from = stage + (n * 8 + lane() / 4) * stageBytes + half * 32 + lane() % 4 * 4;
		right[n][0] = *reinterpret_cast<const uint *>(from);
		right[n][1] = *reinterpret_cast<const uint *>(from + 16);
		const uint8_t *scales = stage + (n * 8 + lane() % 4 * 2) * stageBytes + 64 + half * 8;
		columns[n][0] = columnFrom(*reinterpret_cast<const uint2 *>(scales));
		columns[n][1] = columnFrom(*reinterpret_cast<const uint2 *>(scales + stageBytes));
	}
#pragma unroll
	for (uint m = 0; m < 4; m++) {
		Numbers w[2] = {numbersOf(left[2 * m]), numbersOf(left[2 * m + 1])};
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

// Sources are where a block's columns come from, and its stages lie.
struct Sources {
	uint64_t x;
	const uint *rows; // of x, by column
	uint kTiles, columns;
	uint8_t *stages; // three
};

// fetch has a stage of 64 k on its way.
DEVICE void fetch(const Sources &s, uint stage) {
	uint8_t *to = s.stages + stage % 3 * s.columns * stageBytes;
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
DEVICE void sumUp(const Args &a, const Sources &s, const uint4 *weights, float *totals) {
	uint rowTiles = (a.rows + 31) / 32 * (a.epilogue == 0 ? 1 : 2), first = blockX() * 4 + threadX() / 32 % 2 * 2;
	const uint4 *tiles[2];
	for (uint i = 0; i < 2; i++) {
		tiles[i] = weights + uint64_t(lesser(first + i, rowTiles - 1)) * a.kTiles * tileWords;
	}
	float acc[squares][4] = {};
	Left next[8];
#pragma unroll
	for (uint i = 0; i < 8; i++) {
		next[i] = leftOf(tiles[i / 4], i % 4 * 8 + lane() / 4, 0);
	}
	uint stages = a.kTiles * 4, left = a.segment;
	fetch(s, 0);
	commit();
	fetch(s, 1);
	commit();
	for (uint stage = 0; stage < stages; stage++) {
		waitGroups<1>();
		sync();
		if (stage + 2 < stages) {
			fetch(s, stage + 2);
		}
		commit();
		const uint8_t *columns = s.stages + (stage % 3 * s.columns + threadX() / 64 * 32) * stageBytes;
#pragma unroll
		for (uint half = 0; half < 2; half++) {
			Left now[8];
			uint block = lesser(stage * 2 + half + 1, a.kTiles * 8 - 1);
#pragma unroll
			for (uint i = 0; i < 8; i++) {
				now[i] = next[i];
				next[i] = leftOf(tiles[i / 4] + uint64_t(block / 8) * tileWords, i % 4 * 8 + lane() / 4, block % 8);
			}
			multiply(now, columns, half, acc);
		}
		if (stage % 4 == 3 && (--left == 0 || stage + 1 == stages)) {
			endSegment(totals, acc);
			left = a.segment;
		}
	}
}

KERNEL_BLOCKS(matMul, Args, 256, 2) {
	uint columns = blockThreads() / 2;
	float *totals = dynamicShared<float>();
	uint8_t *stages = reinterpret_cast<uint8_t *>(totals + squares * 4 * blockThreads());
	uint *targets = reinterpret_cast<uint *>(stages + 3 * columns * stageBytes), *rows = targets + columns;
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
		totals[i * blockThreads() + threadX()] = 0.0f;
	}
	sync();
	sumUp(a, {a.x, rows, a.kTiles, columns, stages}, weights, totals);
	storeAll({a.y, a.bias, a.residual, a.rows, a.yStride, a.epilogue, a.extras, a.act, expert, targets}, totals);
}
