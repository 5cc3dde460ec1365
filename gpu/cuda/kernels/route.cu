// Chooses experts for rows by their logits, and weighs them, as internal/ir's Route says.
//
// A block owns a row: a thread has every so many experts, and counts those that come before each: so nothing is done once
// for each chosen one. Of equal scores the lower number wins; NaN is the least. Sums over all experts are a thread's own, in
// order, then the threads' as a tree: threads are a power of two, by the number of experts alone.
//
// Memory: experts·8 + used·8 + teams·4 + threads·4 bytes.
//
// variant: route
#include "lib/act.cuh"
#include "lib/step.cuh"

struct Args {
	uint64_t logits;
	uint64_t bias;    // of each expert, for the choice alone; 0: none
	uint64_t ids;     // [row][used], ascending; all ones where the row is not there
	uint64_t weights; // [row][used]
	uint64_t dense;   // [row][experts] weights, 0 where an expert is not chosen; 0: not wanted
	uint64_t factors; // by expert, what its weight is multiplied by at last; 0: nothing
	uint64_t count;   // rows that are there; 0: all
	uint xStride;     // of logits, in float32
	uint denseStride;
	float scale;
	uint experts, used;
	uint scoring;     // as in internal/ir
	uint teams;       // groups of experts; 0: none
	uint teamsUsed;
	uint teamBest;    // experts by which a team is judged: 1 or 2
	uint normalise;
};

constexpr uint softmaxAll = 1, softmaxChosen = 2, sigmoidEach = 3, sparseMixer = 4; // as internal/ir
constexpr float near = 0.02f;                                                      // as internal/ir
constexpr uint none = ~0u;

// Choice is a row's, in the block's memory.
struct Choice {
	float *scores; // what weighs
	uint *keys;    // what chooses, as whole numbers of the same order
	float *pairs;  // what teams are as good as
	uint *chosen;
	float *weight;
	float *joined; // by thread
};

DEVICE float least() { return -__builtin_inff(); }

DEVICE bool isNumber(float v) { return v == v; }

// keyOf is a float's place in order: NaN is the least, and both zeros are equal.
DEVICE uint keyOf(float v) {
	uint b = floatBits(v + 0.0f);
	return !isNumber(v) ? 0 : b >> 31 != 0 ? ~b : b | 0x80000000u;
}

// valueOf is what a key was made of.
DEVICE float valueOf(uint k) { return bitsFloat(k >> 31 != 0 ? k & 0x7fffffffu : ~k); }

// join is the sum, or the largest, of what all threads have.
template <bool ADD> DEVICE float join(const Choice &c, float v) {
	sync();
	c.joined[threadX()] = v;
	for (uint n = blockThreads() / 2; n > 0; n /= 2) {
		sync();
		if (threadX() < n) {
			float other = c.joined[threadX() + n];
			c.joined[threadX()] = ADD ? c.joined[threadX()] + other : greater(c.joined[threadX()], other);
		}
	}
	sync();
	return c.joined[0];
}

// score sets what experts are chosen by. Without bias and teams logits choose: scores may be equal where they are not.
DEVICE void score(const Choice &c, const Args &a, const float *logits) {
	float most = least();
	for (uint e = threadX(); e < a.experts; e += blockThreads()) {
		float x = logits[e];
		c.keys[e] = keyOf(x);
		c.scores[e] = a.scoring == sigmoidEach ? sigmoid(x) : x;
		most = greater(most, x);
	}
	if (a.scoring == softmaxAll) {
		most = join<false>(c, most);
		float own = 0;
		for (uint e = threadX(); e < a.experts; e += blockThreads()) {
			c.scores[e] = exp(c.scores[e] - most);
			own = own + c.scores[e];
		}
		float sum = join<true>(c, own);
		for (uint e = threadX(); e < a.experts; e += blockThreads()) {
			c.scores[e] = c.scores[e] / sum;
		}
	}
	if (a.bias != 0 || a.teams != 0) {
		for (uint e = threadX(); e < a.experts; e += blockThreads()) {
			c.keys[e] = keyOf(a.bias != 0 ? c.scores[e] + at<const float>(a.bias)[e] : c.scores[e]);
		}
	}
	sync();
}

// chooseTeams leaves the least key to experts whose team is not among the best. A team is as good as its best one or two.
DEVICE void chooseTeams(const Choice &c, const Args &a) {
	uint size = a.experts / a.teams;
	for (uint t = threadX(); t < a.teams; t += blockThreads()) {
		float first = least(), second = least();
		for (uint e = t * size; e < (t + 1) * size; e++) {
			float k = valueOf(c.keys[e]);
			if (k > first) {
				second = first;
				first = k;
			} else if (k > second) {
				second = k;
			}
		}
		c.pairs[t] = size > 1 && a.teamBest > 1 ? first + second : first;
	}
	sync();
	for (uint t = threadX(); t < a.teams; t += blockThreads()) {
		uint better = 0;
		for (uint o = 0; o < a.teams; o++) {
			better += c.pairs[o] > c.pairs[t] || (c.pairs[o] == c.pairs[t] && o < t) ? 1 : 0;
		}
		for (uint e = t * size; better >= a.teamsUsed && e < (t + 1) * size; e++) {
			c.keys[e] = 0;
		}
	}
	sync();
}

// placeOf is how many experts are better than one.
DEVICE uint placeOf(const Choice &c, uint experts, uint e) {
	uint own = c.keys[e], n = 0;
	for (uint o = 0; o < experts; o++) {
		n += c.keys[o] > own || (c.keys[o] == own && o < e) ? 1 : 0;
	}
	return n;
}

// mixed is the weight of the i-th best expert among those that are left and about as good.
DEVICE float mixed(const Choice &c, uint experts, uint i) {
	float top = c.weight[i], sum = 0;
	for (uint e = 0; e < experts; e++) {
		bool left = true;
		for (uint o = 0; o < i; o++) {
			left = left && c.chosen[o] != e;
		}
		if (left && !((top - c.scores[e]) / greater(magnitude(c.scores[e]), top) > near)) { // of zeros it is no number
			sum = sum + exp(c.scores[e] - top);
		}
	}
	return 1.0f / sum;
}

// weigh stores the chosen experts with their weights.
DEVICE void weigh(const Choice &c, const Args &a, uint row) {
	float most = least(), sum = 0;
	for (uint i = 0; i < a.used; i++) {
		most = greater(most, c.weight[i]);
	}
	for (uint i = 0; i < a.used; i++) {
		sum = sum + (a.scoring == softmaxChosen ? exp(c.weight[i] - most) : c.weight[i]);
	}
	float divisor = a.scoring == softmaxChosen || a.normalise != 0 ? sum : 1.0f;
	for (uint i = threadX(); i < a.used; i += blockThreads()) {
		float w = (a.scoring == softmaxChosen ? exp(c.weight[i] - most) : c.weight[i]) / divisor * a.scale;
		if (a.scoring == sparseMixer) {
			w = mixed(c, a.experts, i) * a.scale;
		}
		if (a.factors != 0) {
			w = w * at<const float>(a.factors)[c.chosen[i]];
		}
		uint before = 0;
		for (uint o = 0; o < a.used; o++) {
			before += c.chosen[o] < c.chosen[i] ? 1 : 0;
		}
		at<uint>(a.ids)[row * a.used + before] = c.chosen[i];
		at<float>(a.weights)[row * a.used + before] = w;
		if (a.dense != 0) {
			at<float>(a.dense)[uint64_t(row) * a.denseStride + c.chosen[i]] = w;
		}
	}
}

KERNEL(route, Args, 256) {
	uint row = blockX();
	if (row >= rowsThere(a.count, ~0u)) {
		for (uint i = threadX(); i < a.used; i += blockThreads()) {
			at<uint>(a.ids)[row * a.used + i] = none;
		}
		return;
	}
	Choice c;
	c.scores = dynamicShared<float>();
	c.weight = c.scores + a.experts;
	c.pairs = c.weight + a.used;
	c.joined = c.pairs + a.teams;
	c.keys = reinterpret_cast<uint *>(c.joined + blockThreads());
	c.chosen = c.keys + a.experts;
	score(c, a, at<const float>(a.logits) + uint64_t(row) * a.xStride);
	if (a.teams != 0) {
		chooseTeams(c, a);
	}
	for (uint e = threadX(); e < a.experts; e += blockThreads()) {
		uint n = placeOf(c, a.experts, e);
		if (n < a.used) {
			c.chosen[n] = e;
			c.weight[n] = c.scores[e];
		} else if (a.dense != 0) {
			at<float>(a.dense)[uint64_t(row) * a.denseStride + e] = 0;
		}
	}
	sync();
	weigh(c, a, row);
}
