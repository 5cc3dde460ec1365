// What a warp of attend.cu does with 64 positions: scores, weights and weighted values of its pairs.
//
// The includer defines FEATURES, TEAMS and DEEP, as attend.cu says, and may define JOIN.
#pragma once
#include "act.cuh"
#include "join.cuh"
#include "squares.cuh"

#ifndef JOIN
#define JOIN 0
#endif

constexpr uint line = FEATURES + 8;               // in shared memory, halves: lines begin in different banks
constexpr uint steps = FEATURES / 16;             // of products
constexpr uint eighths = 8 / TEAMS;               // of positions, a warp's
constexpr uint down = (steps + TEAMS - 1) / TEAMS; // sixteens of features, a warp's
constexpr uint weightLine = 64 + 8;               // of a pair's weights in shared memory, halves
constexpr bool joins = JOIN != 0;                  // a block takes all splits of its rows
constexpr bool holds = FEATURES * DEEP <= 128 && !joins; // queries stay in registers

// Pair is what a lane knows of one of its two pairs.
struct Pair {
	uint low, high;    // positions that it sees, of this split
	float best, total; // total: of the lane's weights
	float most, all;   // the same of the splits before, all: of all lanes' weights; where splits are joined
};

// State is what a warp has of 16 pairs.
struct State {
	Pair pair[2];
	float sums[down][2][4];
	float joined[joins ? down : 1][2][4]; // sums of the splits before
	uint query[holds ? steps : 1][4];
};

// Scores are those of 16 pairs with a warp's positions.
struct Scores { float v[eighths][4]; };

// score multiplies the queries of a warp's pairs by its keys.
DEVICE void score(Scores (&s)[DEEP], const State (&m)[DEEP], const uint16_t *query, const uint16_t *keys) {
#pragma unroll
	for (uint t = 0; t < DEEP; t++) {
#pragma unroll
		for (uint j = 0; j < eighths; j++) {
			s[t].v[j][0] = s[t].v[j][1] = s[t].v[j][2] = s[t].v[j][3] = 0;
		}
	}
#pragma unroll
	for (uint k = 0; k < steps; k++) {
		uint q[DEEP][4], b[4];
#pragma unroll
		for (uint t = 0; t < DEEP; t++) {
			if (holds) {
				q[t][0] = m[t].query[holds ? k : 0][0], q[t][1] = m[t].query[holds ? k : 0][1];
				q[t][2] = m[t].query[holds ? k : 0][2], q[t][3] = m[t].query[holds ? k : 0][3];
			} else {
				left4(q[t], query + t * 16 * line + k * 16, line);
			}
		}
#pragma unroll
		for (uint j = 0; j < eighths; j += 2) {
			right4(b, keys + j * 8 * line + k * 16, line);
#pragma unroll
			for (uint t = 0; t < DEEP; t++) {
				mmaF16(s[t].v[j], q[t], b);
				mmaF16(s[t].v[j + 1], q[t], b + 2);
			}
		}
	}
}

// limit caps scores, and forgets those that are not seen. first is the position of the warp's first.
DEVICE void limit(Scores &s, const State &m, uint first, float cap) {
#pragma unroll
	for (uint j = 0; j < eighths; j++) {
#pragma unroll
		for (uint e = 0; e < 4; e++) {
			uint p = first + j * 8 + lane() % 4 * 2 + e % 2;
			float v = cap > 0 ? cap * hyperbolic(s.v[j][e] / cap) : s.v[j][e];
			s.v[j][e] = p >= m.pair[e / 2].low && p < m.pair[e / 2].high ? v : 2 * nothing;
		}
	}
}

// largest finds the largest score of each of a lane's two pairs.
DEVICE void largest(float (&most)[2], const Scores &s) {
#pragma unroll
	for (uint i = 0; i < 2; i++) {
		most[i] = s.v[0][2 * i];
#pragma unroll
		for (uint j = 0; j < eighths; j++) {
			most[i] = maximum(most[i], maximum(s.v[j][2 * i], s.v[j][2 * i + 1]));
		}
		most[i] = maximum(most[i], shuffleXor(most[i], 1));
		most[i] = maximum(most[i], shuffleXor(most[i], 2));
	}
}

// weigh makes weights of scores, two in a word.
DEVICE void weigh(uint (&p)[eighths][2], const Scores &s, const float (&most)[2]) {
#pragma unroll
	for (uint j = 0; j < eighths; j++) {
#pragma unroll
		for (uint i = 0; i < 2; i++) {
			p[j][i] = toHalf(weightOf(s.v[j][2 * i] - most[i])) | toHalf(weightOf(s.v[j][2 * i + 1] - most[i])) << 16;
		}
	}
}

// lower multiplies what was added up by what is left of it under a larger score. Mostly there is none.
DEVICE void lower(State &m, const float (&most)[2]) {
	if (ballot(most[0] != m.pair[0].best || most[1] != m.pair[1].best) == 0) {
		return;
	}
#pragma unroll
	for (uint i = 0; i < 2; i++) {
		float kept = exp2(m.pair[i].best - most[i]);
		m.pair[i].best = most[i];
		m.pair[i].total = m.pair[i].total * kept;
#pragma unroll
		for (uint f = 0; f < down; f++) {
#pragma unroll
			for (uint n = 0; n < 2; n++) {
				m.sums[f][n][2 * i] = m.sums[f][n][2 * i] * kept;
				m.sums[f][n][2 * i + 1] = m.sums[f][n][2 * i + 1] * kept;
			}
		}
	}
}

// add multiplies the weights of 16 positions by their values, of the warp's features, and adds them to the sums.
DEVICE void add(State (&m)[DEEP], const uint (&p)[DEEP][4], const uint16_t *values, uint team) {
#pragma unroll
	for (uint t = 0; t < DEEP; t++) {
#pragma unroll
		for (uint e = 0; e < 4; e++) {
			float &total = m[t].pair[e % 2].total;
			total = total + fromHalf(p[t][e] & 0xffffu);
			total = total + fromHalf(p[t][e] >> 16);
		}
	}
#pragma unroll
	for (uint f = 0; f < down; f++) {
		if (steps % TEAMS == 0 || f * TEAMS + team < steps) {
			uint b[4];
			rows4(b, values + (f * TEAMS + team) * 16, line);
#pragma unroll
			for (uint t = 0; t < DEEP; t++) {
				mmaF16(m[t].sums[f][0], p[t], b);
				mmaF16(m[t].sums[f][1], p[t], b + 2);
			}
		}
	}
}

// share has the warps of a team know the largest score of all.
DEVICE void share(float (&most)[DEEP][2], float *tops, uint team) {
	uint group = lane() / 4;
	if (lane() % 4 == 0) {
#pragma unroll
		for (uint t = 0; t < DEEP; t++) {
			tops[(t * TEAMS + team) * 16 + group] = most[t][0];
			tops[(t * TEAMS + team) * 16 + group + 8] = most[t][1];
		}
	}
	sync();
#pragma unroll
	for (uint t = 0; t < DEEP; t++) {
#pragma unroll
		for (uint o = 0; o < TEAMS; o++) {
			most[t][0] = maximum(most[t][0], tops[(t * TEAMS + o) * 16 + group]);
			most[t][1] = maximum(most[t][1], tops[(t * TEAMS + o) * 16 + group + 8]);
		}
	}
}
