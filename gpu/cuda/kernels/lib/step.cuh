// A step's rows and spans: where each stands in its sequence, and where its sequence's blocks of 64 positions are.
#pragma once
#include "device.cuh"

struct Row {
	uint position; // 0 for a sequence's first token
	uint table;    // index in the block tables of the sequence's first block
};

// blockOf is the number of the cache block that holds a position. Indices are of 32 bits: a first block may be gone.
DEVICE uint blockOf(const uint *tables, Row row, uint position) {
	return tables[row.table + position / 64];
}

// cacheAt is where a head's features of a position begin: keys and values of a layer are
// [block][KV head][64 positions][features].
DEVICE uint64_t cacheAt(uint block, uint heads, uint head, uint position, uint features) {
	return ((uint64_t(block) * heads + head) * 64 + position % 64) * features;
}

// splitLength is the length of the splits of a row's positions: whole blocks, as many as the depth's class has, a power
// of two of at least 512. So where a split begins depends on nothing but the position of the row that looks.
DEVICE uint splitLength(uint position) {
	uint depth = 2u << (31 - __builtin_clz(position | 1));
	depth = greater(depth, 512u);
	return depth / (depth < 2048 ? 8 : 16);
}

// firstSeen is the first position that the row sees: of a window that ends with it, or of its own chunk of so many; 0
// sees all.
DEVICE uint firstSeen(Row row, uint window, uint chunked) {
	if (window == 0 || row.position < window) {
		return 0;
	}
	return row.position + 1 - (chunked != 0 ? row.position % window + 1 : window);
}

constexpr uint mostSplits = 16;

DEVICE uint splits(uint position) { return position / splitLength(position) + 1; }

// evenLength is the length of splits of so many blocks of positions where these are divided as evenly as whole blocks can
// be: evenSplits of at least four blocks, which need not end together with those of other rows.
DEVICE uint evenLength(uint blocks) { return 64 * greater(4u, (blocks + mostSplits - 1) / mostSplits); }
DEVICE uint evenSplits(uint blocks) { return (64 * blocks + evenLength(blocks) - 1) / evenLength(blocks); }

// rowsThere is how many of a launch's rows there are.
DEVICE uint rowsThere(uint64_t count, uint size) {
	if (count == 0) {
		return size;
	}
	return lesser(*at<const uint>(count), size);
}

// A span is the rows of one sequence in a step. One without rows is none.
struct Span {
	uint row; // its first
	uint rows;
	uint position; // of the first
	uint table;    // index in the block tables of the sequence's first block
	uint kept;     // of the rows, the first ones: those behind them are of guessed tokens, and leave no states
};

// stateAt is where the state of the block that holds a position begins, of so many values. A block holds the state after
// the last of its 64 positions that was computed, and a row goes on from the block of the position before it.
DEVICE float *stateAt(uint64_t states, uint values, const uint *tables, Span s, uint position) {
	return at<float>(states) + uint64_t(values) * tables[s.table + position / 64];
}

// leaves says whether row i of a span leaves its state: it is the last one of a block, or of those that leave any.
DEVICE bool leaves(Span s, uint i) { return i < s.kept && ((s.position + i) % 64 == 63 || i + 1 == s.kept); }
