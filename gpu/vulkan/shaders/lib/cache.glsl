// Keys and values of one layer in the three types of caches. One of them, for one sequence's block and KV head, is a
// run: 64 positions × features of halves (as lib/step.glsl says), of float32, or of signed bytes and behind those, for
// each position, the float32 scales of every GROUPED features, by which bytes are multiplied.
//
// The includer defines TYPE.
const uint KVF16 = 1, KVF32 = 2, KVQ8 = 3; // numbered as internal/backend does

uint scalesOf(uint features, uint grouped) { return (features + grouped - 1) / grouped; }

// runBytes is the memory of a run.
uint64_t runBytes(uint features, uint grouped) {
	uint each = TYPE == KVF32 ? 4 * features : 2 * features;
	if (TYPE == KVQ8) {
		each = features + 4 * scalesOf(features, grouped);
	}
	return 64ul * each;
}
