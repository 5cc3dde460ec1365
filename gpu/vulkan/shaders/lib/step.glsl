// A step's rows: where each stands in its sequence, and where its sequence's blocks of 64 positions are.
struct Row {
	uint position; // 0 for a sequence's first token
	uint table;    // index in the block tables of the sequence's first block
};

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer StepRows { Row v[]; };

// block is the number of the cache block that holds a position.
uint block(Words tables, Row row, uint position) { return tables.v[row.table + position / 64]; }

// Keys and values of a layer are [block][KV head][64 positions][features] in half precision.
uint cacheAt(uint block, uint heads, uint head, uint position, uint features) {
	return ((block * heads + head) * 64 + position % 64) * features;
}

// Positions are attended to in splits of whole blocks: as many as the depth's class has, a power of two of at least
// 512. So where a split begins depends on nothing but the position of the row that looks.
uint splitLength(uint position) {
	uint depth = max(512, 2u << findMSB(max(position, 1)));
	return depth / (depth < 2048 ? 8 : 16);
}

// firstSeen is the first position that the row sees: of a window that ends with it, or of its own chunk of so many; 0
// sees all.
uint firstSeen(Row row, uint window, uint chunked) {
	if (window == 0 || row.position < window) {
		return 0;
	}
	return row.position + 1 - (chunked != 0 ? row.position % window + 1 : window);
}

const uint MAXSPLITS = 16;

uint splits(uint position) {
	uint length = splitLength(position);
	return position / length + 1;
}
