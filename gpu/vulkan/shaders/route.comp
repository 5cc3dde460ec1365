#version 460
#extension GL_GOOGLE_include_directive : require
// Chooses experts for rows by their logits, and weighs them, as internal/ir's Route says.
//
// A workgroup owns a row: a thread has every 64th expert. Of equal scores the lower number wins.
// Shared memory: EXPERTS·8 + USED·8 + 1.5 KB.
//
// variant: route
#include "lib/buffers.glsl"
#include "lib/act.glsl"

layout(local_size_x = 64) in;
layout(constant_id = 0) const uint EXPERTS = 8;
layout(constant_id = 1) const uint USED = 2;
layout(constant_id = 2) const uint SCORING = 1;  // as in internal/ir
layout(constant_id = 3) const uint TEAMS = 0;    // groups of experts; 0: none
layout(constant_id = 4) const uint TEAMSUSED = 0;
layout(constant_id = 5) const uint NORMALISE = 0;

layout(push_constant, scalar) uniform Push {
	Floats logits;
	Floats bias;   // of each expert, for the choice alone; 0: none
	Words ids;     // [row][USED], ascending; all ones where the row is not there
	Floats weights; // [row][USED]
	Floats dense;  // [row][experts] weights, 0 where an expert is not chosen; 0: not wanted
	Words count;   // rows that are there; 0: all
	uint xStride;  // of logits, in float32
	uint denseStride;
	float scale;
};

const uint SOFTMAXALL = 1, SOFTMAXCHOSEN = 2, SIGMOIDEACH = 3;
#define LEAST (-uintBitsToFloat(0x7f800000u))
const uint TEAM = TEAMS == 0 ? EXPERTS : EXPERTS / TEAMS;

shared float scores[EXPERTS]; // what weighs
shared float keys[EXPERTS];   // what chooses
shared float team[TEAMS + 1];
shared uint chosen[USED];
shared float weight[USED];
shared float best[64];
shared uint at[64];

// joinBest leaves the largest of all threads' values, and its index, in best[0] and at[0].
void joinBest(float v, uint i) {
	uint thread = gl_LocalInvocationID.x;
	best[thread] = v;
	at[thread] = i;
	for (uint n = 32; n > 0; n /= 2) {
		barrier();
		if (thread < n && (best[thread + n] > best[thread] || best[thread + n] == best[thread] && at[thread + n] < at[thread])) {
			best[thread] = best[thread + n];
			at[thread] = at[thread + n];
		}
	}
	barrier();
}

float total(float v) {
	uint thread = gl_LocalInvocationID.x;
	barrier();
	best[thread] = v;
	for (uint n = 32; n > 0; n /= 2) {
		barrier();
		if (thread < n) {
			best[thread] += best[thread + n];
		}
	}
	barrier();
	return best[0];
}

// score sets what experts are chosen by. Without bias and teams logits choose: scores may be equal where they are not.
void score(uint row) {
	uint thread = gl_LocalInvocationID.x;
	float most = LEAST;
	for (uint e = thread; e < EXPERTS; e += 64) {
		float x = logits.v[row * xStride + e];
		keys[e] = x;
		scores[e] = SCORING == SIGMOIDEACH ? sigmoid(x) : x;
		most = max(most, x);
	}
	if (SCORING == SOFTMAXALL) {
		joinBest(most, thread);
		most = best[0];
		float own = 0.0;
		for (uint e = thread; e < EXPERTS; e += 64) {
			scores[e] = exp(scores[e] - most);
			own += scores[e];
		}
		float sum = total(own);
		for (uint e = thread; e < EXPERTS; e += 64) {
			scores[e] /= sum;
		}
	}
	if (uint64_t(bias) != 0 || TEAMS != 0) {
		for (uint e = thread; e < EXPERTS; e += 64) {
			keys[e] = uint64_t(bias) != 0 ? scores[e] + bias.v[e] : scores[e];
		}
	}
	barrier();
}

// chooseTeams leaves LEAST as the key of experts whose team is not among the best. A team is as good as its best two.
void chooseTeams() {
	uint thread = gl_LocalInvocationID.x;
	for (uint t = thread; t < TEAMS; t += 64) {
		float first = LEAST, second = LEAST;
		for (uint e = t * TEAM; e < (t + 1) * TEAM; e++) {
			float k = keys[e];
			if (k > first) {
				second = first;
				first = k;
			} else if (k > second) {
				second = k;
			}
		}
		team[t] = TEAM > 1 ? first + second : first;
	}
	barrier();
	for (uint t = thread; t < TEAMS; t += 64) {
		uint better = 0;
		for (uint o = 0; o < TEAMS; o++) {
			better += team[o] > team[t] || team[o] == team[t] && o < t ? 1 : 0;
		}
		if (better >= TEAMSUSED) {
			for (uint e = t * TEAM; e < (t + 1) * TEAM; e++) {
				keys[e] = LEAST;
			}
		}
	}
	barrier();
}

void main() {
	uint row = gl_WorkGroupID.x, thread = gl_LocalInvocationID.x;
	bool there = uint64_t(count) == 0 || row < count.v[0];
	if (!there) {
		for (uint i = thread; i < USED; i += 64) {
			ids.v[row * USED + i] = 0xffffffffu;
		}
		return;
	}
	score(row);
	if (TEAMS != 0) {
		chooseTeams();
	}
	uint taken = 0; // bits of this thread's experts: 32 of them at most
	for (uint i = 0; i < USED; i++) {
		float v = LEAST;
		uint mine = 0xffffffffu;
		for (uint e = thread; e < EXPERTS; e += 64) {
			if ((taken >> e / 64 & 1u) == 0 && (mine == 0xffffffffu || keys[e] > v)) {
				v = keys[e];
				mine = e;
			}
		}
		joinBest(v, mine);
		uint e = min(at[0], EXPERTS - 1);
		if (e % 64 == thread) {
			taken |= 1u << e / 64;
		}
		if (thread == 0) {
			chosen[i] = e;
			weight[i] = scores[e];
		}
		barrier();
	}
	float sum = 0.0;
	if (thread == 0) {
		float most = LEAST;
		for (uint i = 0; i < USED; i++) {
			most = max(most, weight[i]);
		}
		for (uint i = 0; i < USED; i++) {
			if (SCORING == SOFTMAXCHOSEN) {
				weight[i] = exp(weight[i] - most);
			}
			sum += weight[i];
		}
		best[0] = SCORING == SOFTMAXCHOSEN || NORMALISE != 0 ? sum : 1.0;
	}
	barrier();
	for (uint e = thread; e < EXPERTS && uint64_t(dense) != 0; e += 64) {
		float w = 0.0;
		for (uint i = 0; i < USED; i++) {
			w = chosen[i] == e ? weight[i] / best[0] * scale : w;
		}
		dense.v[row * denseStride + e] = w;
	}
	for (uint i = thread; i < USED; i += 64) {
		uint before = 0;
		for (uint o = 0; o < USED; o++) {
			before += chosen[o] < chosen[i] ? 1 : 0;
		}
		ids.v[row * USED + before] = chosen[i];
		weights.v[row * USED + before] = weight[i] / best[0] * scale;
	}
}
