#version 460
#extension GL_GOOGLE_include_directive : require
// Chooses experts for rows by their logits, and weighs them, as internal/ir's Route says.
//
// A workgroup owns a row: a thread has every THREADSth expert, and counts those that come before it: so nothing is done
// once for each chosen one. Of equal scores the lower number wins; NaN is the least.
// Shared memory: EXPERTS·8 + USED·8 + TEAMS·4 + THREADS·4 bytes and some.
//
// variant: route
#include "lib/buffers.glsl"
#include "lib/act.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 64; // a power of two
layout(constant_id = 1) const uint EXPERTS = 8;
layout(constant_id = 2) const uint USED = 2;
layout(constant_id = 3) const uint SCORING = 1;  // as in internal/ir
layout(constant_id = 4) const uint TEAMS = 0;    // groups of experts; 0: none
layout(constant_id = 5) const uint TEAMSUSED = 0;
layout(constant_id = 7) const uint TEAMBEST = 2; // experts by which a team is judged: 1 or 2
layout(constant_id = 6) const uint NORMALISE = 0;

layout(push_constant, scalar) uniform Push {
	Floats logits;
	Floats bias;   // of each expert, for the choice alone; 0: none
	Words ids;     // [row][USED], ascending; all ones where the row is not there
	Floats weights; // [row][USED]
	Floats dense;  // [row][experts] weights, 0 where an expert is not chosen; 0: not wanted
	Floats factors; // by expert, what its weight is multiplied by at last; 0: nothing
	Words count;   // rows that are there; 0: all
	uint xStride;  // of logits, in float32
	uint denseStride;
	float scale;
};

const uint SOFTMAXALL = 1, SOFTMAXCHOSEN = 2, SIGMOIDEACH = 3, SPARSEMIXER = 4;
const float NEAR = 0.02; // as internal/ir
#define LEAST (-uintBitsToFloat(0x7f800000u))
const uint TEAM = TEAMS == 0 ? EXPERTS : EXPERTS / TEAMS;

shared float scores[EXPERTS]; // what weighs
shared uvec4 keys[(EXPERTS + 3) / 4]; // what chooses, as whole numbers of the same order; 0 past the end
shared float pairs[TEAMS + 1]; // what teams are as good as
shared uint chosen[USED];
shared float weight[USED];
shared float joined[THREADS];

// key is a float's place in order: NaN is the least, and both zeros are equal.
uint key(float v) {
	precise float x = v + 0.0;
	uint b = floatBitsToUint(x);
	return isnan(v) ? 0 : b >> 31 != 0 ? ~b : b | 0x80000000u;
}

uint keyOf(uint e) { return keys[e / 4][e % 4]; }

float largest(float v) {
	uint thread = gl_LocalInvocationID.x;
	barrier();
	joined[thread] = v;
	for (uint n = THREADS / 2; n > 0; n /= 2) {
		barrier();
		if (thread < n) {
			joined[thread] = max(joined[thread], joined[thread + n]);
		}
	}
	barrier();
	return joined[0];
}

float total(float v) {
	uint thread = gl_LocalInvocationID.x;
	barrier();
	joined[thread] = v;
	for (uint n = THREADS / 2; n > 0; n /= 2) {
		barrier();
		if (thread < n) {
			joined[thread] += joined[thread + n];
		}
	}
	barrier();
	return joined[0];
}

// score sets what experts are chosen by. Without bias and teams logits choose: scores may be equal where they are not.
void score(uint row) {
	uint thread = gl_LocalInvocationID.x;
	float most = LEAST;
	for (uint e = thread; e < (EXPERTS + 3) / 4 * 4; e += THREADS) {
		if (e >= EXPERTS) {
			keys[e / 4][e % 4] = 0;
			continue;
		}
		float x = logits.v[row * xStride + e];
		keys[e / 4][e % 4] = key(x);
		scores[e] = SCORING == SIGMOIDEACH ? sigmoid(x) : x;
		most = max(most, x);
	}
	if (SCORING == SOFTMAXALL) {
		most = largest(most);
		float own = 0.0;
		for (uint e = thread; e < EXPERTS; e += THREADS) {
			scores[e] = exp(scores[e] - most);
			own += scores[e];
		}
		float sum = total(own);
		for (uint e = thread; e < EXPERTS; e += THREADS) {
			scores[e] /= sum;
		}
	}
	if (uint64_t(bias) != 0 || TEAMS != 0) {
		for (uint e = thread; e < EXPERTS; e += THREADS) {
			keys[e / 4][e % 4] = key(uint64_t(bias) != 0 ? scores[e] + bias.v[e] : scores[e]);
		}
	}
	barrier();
}

// value is what a key was made of.
float value(uint k) { return uintBitsToFloat(k >> 31 != 0 ? k & 0x7fffffffu : ~k); }

// chooseTeams leaves the least key to experts whose team is not among the best. A team is as good as its best one or two.
void chooseTeams() {
	uint thread = gl_LocalInvocationID.x;
	for (uint t = thread; t < TEAMS; t += THREADS) {
		float first = LEAST, second = LEAST;
		for (uint e = t * TEAM; e < (t + 1) * TEAM; e++) {
			float k = value(keyOf(e));
			if (k > first) {
				second = first;
				first = k;
			} else if (k > second) {
				second = k;
			}
		}
		pairs[t] = TEAM > 1 && TEAMBEST > 1 ? first + second : first;
	}
	barrier();
	for (uint t = thread; t < TEAMS; t += THREADS) {
		uint better = 0;
		for (uint o = 0; o < TEAMS; o++) {
			better += pairs[o] > pairs[t] || pairs[o] == pairs[t] && o < t ? 1 : 0;
		}
		if (better >= TEAMSUSED) {
			for (uint e = t * TEAM; e < (t + 1) * TEAM; e++) {
				keys[e / 4][e % 4] = 0;
			}
		}
	}
	barrier();
}

// place is how many experts are better than one.
uint place(uint e) {
	uint own = keyOf(e), n = 0;
	[[dont_unroll]] for (uint o = 0; o < (EXPERTS + 3) / 4; o++) {
		uvec4 k = keys[o];
		[[unroll]] for (uint i = 0; i < 4; i++) {
			n += k[i] > own || k[i] == own && o * 4 + i < e ? 1 : 0;
		}
	}
	return n;
}

// mixed is the weight of the i-th best expert among those that are left and about as good.
float mixed(uint i) {
	float top = weight[i], sum = 0.0;
	for (uint e = 0; e < EXPERTS; e++) {
		bool left = true;
		for (uint o = 0; o < i; o++) {
			left = left && chosen[o] != e;
		}
		if (left && !((top - scores[e]) / max(abs(scores[e]), top) > NEAR)) { // of zeros it is no number
			sum += exp(scores[e] - top);
		}
	}
	return 1.0 / sum;
}

void main() {
	uint row = gl_WorkGroupID.x, thread = gl_LocalInvocationID.x;
	bool there = uint64_t(count) == 0 || row < count.v[0];
	if (!there) {
		for (uint i = thread; i < USED; i += THREADS) {
			ids.v[row * USED + i] = 0xffffffffu;
		}
		return;
	}
	score(row);
	if (TEAMS != 0) {
		chooseTeams();
	}
	for (uint e = thread; e < EXPERTS; e += THREADS) {
		uint n = place(e);
		if (n < USED) {
			chosen[n] = e;
			weight[n] = scores[e];
		} else if (uint64_t(dense) != 0) {
			dense.v[row * denseStride + e] = 0.0;
		}
	}
	barrier();
	float most = LEAST, sum = 0.0;
	for (uint i = 0; i < USED; i++) {
		most = max(most, weight[i]);
	}
	for (uint i = 0; i < USED; i++) {
		sum += SCORING == SOFTMAXCHOSEN ? exp(weight[i] - most) : weight[i];
	}
	float divisor = SCORING == SOFTMAXCHOSEN || NORMALISE != 0 ? sum : 1.0;
	for (uint i = thread; i < USED; i += THREADS) {
		float w = (SCORING == SOFTMAXCHOSEN ? exp(weight[i] - most) : weight[i]) / divisor * scale;
		if (SCORING == SPARSEMIXER) {
			w = mixed(i) * scale;
		}
		if (uint64_t(factors) != 0) {
			w *= factors.v[chosen[i]];
		}
		uint before = 0;
		for (uint o = 0; o < USED; o++) {
			before += chosen[o] < chosen[i] ? 1 : 0;
		}
		ids.v[row * USED + before] = chosen[i];
		weights.v[row * USED + before] = w;
		if (uint64_t(dense) != 0) {
			dense.v[row * denseStride + chosen[i]] = w;
		}
	}
}
