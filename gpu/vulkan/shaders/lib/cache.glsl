// Keys and values of one layer in the types of caches that are not sealed. One of them, for one sequence's block and KV
// head, is a run: 64 positions × features of halves (as lib/step.glsl says), of float32, or of signed bytes and behind
// those, for each position, the float32 scales of every GROUPED features, by which bytes are multiplied.
const uint KVF16 = 1, KVF32 = 2, KVQ8 = 3; // numbered as gpu/kernel does

uint scalesOf(uint features, uint grouped) { return (features + grouped - 1) / grouped; }

// runBytes is the memory of a run.
uint64_t runBytes(uint type, uint features, uint grouped) {
	uint each = type == KVF32 ? 4 * features : 2 * features;
	if (type == KVQ8) {
		each = features + 4 * scalesOf(features, grouped);
	}
	return 64ul * each;
}
