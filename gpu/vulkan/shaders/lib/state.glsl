// What rows leave of a sequence for those after them, in blocks: a block holds the state after the last of its 64
// positions that was computed, and a row goes on from the block of the position before it. Needs lib/step.glsl.

// A span is the rows of one sequence in a step. One without rows is none.
struct Span {
	uint row;      // its first
	uint rows;
	uint position; // of the first
	uint table;    // index in the block tables of the sequence's first block
	uint kept;     // of the rows, the first ones: those behind them are of guessed tokens, and leave no states
};

layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Spans { Span v[]; };

// stateAt is where the state of the block that holds a position begins, of so many values.
Floats stateAt(uint64_t states, uint values, Words tables, Span s, uint position) {
	return Floats(states + 4ul * values * tables.v[s.table + position / 64]);
}

// leaves says whether row i of a span leaves its state: it is the last one of a block, or of those that leave any.
bool leaves(Span s, uint i) { return i < s.kept && ((s.position + i) % 64 == 63 || i + 1 == s.kept); }
