#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_memory_scope_semantics : require
// Draws a token of a row of logits, as stages/sample does, bit for bit: the likeliest TOPK, those of them that together
// reach a probability, those with some share of the likeliest one's, and of these one by its weight under a temperature.
//
// Two dispatches. First a workgroup owns a part of a row and keeps its best; then one owns a row, and keeps the best of all
// parts. Grid: parts, draws; the second time one part. The best are found by counting: digit by digit, from the highest, of
// keys of 64 bits, which are in the order of logits, and of equal ones in that of ids backwards.
//
// What is left is few, and weighed by whole numbers, as internal/backend/draw.go defines them, from the bits of logits: no
// float is computed with. Their sums are exact, so that nothing has to be sorted.
// Shared memory: MOST·16 bytes and 3 KB.
//
// variant: sample
#include "lib/buffers.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint JOIN = 0;
layout(constant_id = 1) const uint MOST = 1024; // TOPK is at most

struct Draw {
	uint64_t random; // picks the token
	uint64_t most;   // a surprise, than which none is larger
	uint factor;     // of the temperature's scale
	int shift;
	uint reach;      // the share of all weights that is enough, in units of 2^-32
	uint topK;       // 0: this row is not drawn
};

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Draws { Draw v[]; };

layout(push_constant, scalar) uniform Push {
	Floats logits;
	Words scratch; // [draw][part][MOST] pairs of a key and an id
	Draws draws;
	Words ids;
	Words second;  // another place for the ids; 0: none
	uint width;
	uint stride;   // of logits, in float32
	uint parts;
};

const uint NONE = 0xffffffffu;

const uint ALL = 0xffffffffu;    // of reach: no share is enough
const uint PLAIN = 3098164009u;  // factor and shift of temperature 1
const int PLAIN_SHIFT = 25;

shared uint counts[256];
shared uint sums[256];
shared uint found;
shared uint digit;
shared uint above;
shared uint keys[MOST];
shared uint tokens[MOST];
shared uint64_t weights[MOST];
shared uint left;
shared uint best; // key

// key has the order of floats. What cannot be drawn, -Inf and NaN, is 0.
uint key(float v) {
	uint b = floatBitsToUint(v);
	if (b == 0xff800000u || (b & 0x7fffffffu) > 0x7f800000u) {
		return 0;
	}
	b = b == 0x80000000u ? 0 : b; // -0 is 0
	return (b >> 31) != 0 ? ~b : b | 0x80000000u;
}

uint topK() { return min(draws.v[gl_WorkGroupID.y].topK, MOST); }

uint items() {
	if (JOIN != 0) {
		return parts * topK();
	}
	uint each = (width + parts - 1) / parts, from = gl_WorkGroupID.x * each;
	return from >= width ? 0 : min(each, width - from);
}

// item is a key, and the id turned round; or nothing.
uvec2 item(uint i) {
	uint draw = gl_WorkGroupID.y;
	if (JOIN != 0) {
		uint at = 2 * ((draw * parts + i / topK()) * MOST + i % topK());
		return scratch.v[at + 1] != NONE ? uvec2(scratch.v[at], ~scratch.v[at + 1]) : uvec2(0);
	}
	uint id = gl_WorkGroupID.x * ((width + parts - 1) / parts) + i, k = key(logits.v[draw * stride + id]);
	return k == 0 ? uvec2(0) : uvec2(k, ~id);
}

// nth leaves in shared memory which digit the n-th largest of those counted has, and how many are above.
void nth(uint n) {
	uint thread = gl_LocalInvocationID.x, own = counts[255 - thread], sum = own; // of this digit and those above it
	for (uint step = 1; step < 256; step *= 2) {
		barrier();
		sums[thread] = sum;
		barrier();
		if (thread >= step) {
			sum += sums[thread - step];
		}
	}
	if (sum >= n && sum - own < n) {
		digit = 255 - thread;
		above = sum - own;
		found = 1;
	}
	barrier();
}

// least is the least of the n largest items; 0 if there are no more than n.
uvec2 least(uint n) {
	uvec2 prefix = uvec2(0), mask = uvec2(0);
	uint total = items();
	for (uint d = 0; d < 8; d++) {
		uint word = d / 4, shift = 24 - d % 4 * 8;
		counts[gl_LocalInvocationID.x] = 0;
		found = 0;
		barrier();
		for (uint i = gl_LocalInvocationID.x; i < total; i += 256) {
			uvec2 v = item(i);
			if (v.x != 0 && (v & mask) == prefix) {
				atomicAdd(counts[v[word] >> shift & 255u], 1, gl_ScopeWorkgroup, 0, gl_SemanticsRelaxed);
			}
		}
		barrier();
		nth(n);
		if (found == 0) {
			return uvec2(0);
		}
		n -= above;
		prefix[word] |= digit << shift;
		mask[word] |= 255u << shift;
		barrier();
	}
	return prefix;
}

// gather takes all items from a least one on, in any order.
void gather(uvec2 from) {
	uint n = items(), to = 2 * (gl_WorkGroupID.y * parts + gl_WorkGroupID.x) * MOST;
	if (gl_LocalInvocationID.x == 0) {
		left = 0;
	}
	barrier();
	for (uint i = gl_LocalInvocationID.x; i < n; i += 256) {
		uvec2 v = item(i);
		if (v.x == 0 || v.x < from.x || v.x == from.x && v.y < from.y) {
			continue;
		}
		uint at = atomicAdd(left, 1, gl_ScopeWorkgroup, 0, gl_SemanticsRelaxed);
		if (JOIN != 0) {
			keys[at] = v.x;
			tokens[at] = ~v.y;
		} else {
			scratch.v[to + 2 * at] = v.x;
			scratch.v[to + 2 * at + 1] = ~v.y;
		}
	}
	barrier();
	if (JOIN == 0) {
		for (uint i = left + gl_LocalInvocationID.x; i < topK(); i += 256) {
			scratch.v[to + 2 * i + 1] = NONE;
		}
	}
}

// units is a logit in units of 2^-shift, towards 0; from 2^55 on no more than its order.
int64_t units(uint key, int shift) {
	uint b = (key >> 31) != 0 ? key & 0x7fffffffu : ~key & 0x7fffffffu, exponent = b >> 23;
	uint64_t u = uint64_t(b & 0x7fffffu | (exponent > 0 ? 0x800000u : 0));
	int up = int(max(exponent, 1)) - 150 + shift;
	if (up >= 32) {
		u = uint64_t(b) << 32;
	} else if (up >= 0) {
		u <<= up;
	} else {
		u >>= min(-up, 24);
	}
	return (key >> 31) != 0 ? int64_t(u) : -int64_t(u);
}

// surprise is how much less likely than the best a token is: a power of two, in units of 2^-56.
uint64_t surprise(uint key, uint factor, int shift) {
	return min(uint64_t(units(best, shift)) - uint64_t(units(key, shift)), uint64_t(0xffffffffu)) * factor;
}

// high is the upper word of a product.
uint high(uint a, uint b) {
	uint upper, lower;
	umulExtended(a, b, upper, lower);
	return upper;
}

// roots are the numbers 2^(31 - i/32).
const uint roots[32] = uint[32](
	2147483648u, 2101467502u, 2056437387u, 2012372174u, 1969251188u, 1927054196u, 1885761398u, 1845353420u,
	1805811301u, 1767116489u, 1729250827u, 1692196547u, 1655936265u, 1620452965u, 1585730000u, 1551751076u,
	1518500250u, 1485961921u, 1454120821u, 1422962010u, 1392470869u, 1362633090u, 1333434672u, 1304861917u,
	1276901417u, 1249540052u, 1222764986u, 1196563654u, 1170923762u, 1145833280u, 1121280436u, 1097253708u);

// weight is 2^(42-surprise), rounded down.
uint64_t weight(uint64_t s) {
	uint whole = uint(s >> 56), fraction = uint(s >> 24), power = roots[fraction >> 27];
	if (whole > 42) {
		return 0;
	}
	uint r = fraction & 0x7ffffffu, less = 238388332u - high(r, 41309550u);
	less = 1031764991u - high(r, less);
	less = high(r, 2977044472u - high(r, less));
	return uint64_t(power - high(power, less)) << 11 >> whole;
}

// enough is the least sum of weights that is a share of all, which is below 2^53.
uint64_t enough(uint share, uint64_t all) {
	uint64_t low = (all & 0xffffffffu) * share, least = (all >> 32) * share + (low >> 32);
	return uint(low) != 0 ? least + 1 : least;
}

// point is a random number below all, which is below 2^53: all·random/2^64.
uint64_t point(uint64_t random, uint64_t all) {
	uint64_t r0 = random & 0xffffffffu, r1 = random >> 32, a0 = all & 0xffffffffu, a1 = all >> 32;
	uint64_t middle = r1 * a0 + (r0 * a0 >> 32), other = r0 * a1 + (middle & 0xffffffffu);
	return r1 * a1 + (middle >> 32) + (other >> 32);
}

// cut sets the weights of all that do not stay to 0, and of the others to those under the temperature. A token stays if
// those that are better are together not enough, and if its own surprise is not too large.
void cut(Draw d) {
	uint gone = 0, n = 0;
	if (d.reach != ALL) {
		for (uint i = gl_LocalInvocationID.x; i < left; i += 256) {
			weights[i] = weight(surprise(keys[i], PLAIN, PLAIN_SHIFT));
		}
		barrier();
	}
	for (uint i = gl_LocalInvocationID.x; i < left; i += 256, n++) {
		if (surprise(keys[i], PLAIN, PLAIN_SHIFT) > d.most) {
			gone |= 1u << n;
		} else if (d.reach != ALL) {
			uint64_t all = 0, before = 0;
			for (uint j = 0; j < left; j++) {
				uint64_t w = weights[j];
				all += w;
				before += keys[j] > keys[i] || keys[j] == keys[i] && tokens[j] < tokens[i] ? w : 0;
			}
			gone |= before > 0 && before >= enough(d.reach, all) ? 1u << n : 0;
		}
	}
	barrier();
	n = 0;
	for (uint i = gl_LocalInvocationID.x; i < left; i += 256, n++) {
		weights[i] = (gone >> n & 1) != 0 ? 0 : weight(surprise(keys[i], d.factor, d.shift));
	}
	barrier();
}

// pick sets found to the token that the draw's point lies in, when weights lie side by side in the order of ids.
void pick(Draw d) {
	for (uint i = gl_LocalInvocationID.x; i < left; i += 256) {
		uint64_t all = 0, before = 0;
		if (weights[i] == 0) {
			continue;
		}
		for (uint j = 0; j < left; j++) {
			uint64_t w = weights[j];
			all += w;
			before += tokens[j] < tokens[i] ? w : 0;
		}
		uint64_t at = point(d.random, all);
		if (before <= at && at < before + weights[i]) {
			found = tokens[i];
		}
	}
	barrier();
}

void main() {
	Draw d = draws.v[gl_WorkGroupID.y];
	if (d.topK == 0) {
		return;
	}
	gather(least(topK()));
	if (JOIN == 0) {
		return;
	}
	if (gl_LocalInvocationID.x == 0) {
		found = 0;
		best = 0;
	}
	barrier();
	for (uint i = gl_LocalInvocationID.x; i < left; i += 256) {
		atomicMax(best, keys[i], gl_ScopeWorkgroup, 0, gl_SemanticsRelaxed);
	}
	barrier();
	cut(d);
	pick(d);
	if (gl_LocalInvocationID.x == 0) {
		ids.v[gl_WorkGroupID.y] = found;
		if (uint64_t(second) != 0) {
			second.v[gl_WorkGroupID.y] = found;
		}
	}
}
