#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_explicit_arithmetic_types_float64 : require
#extension GL_KHR_memory_scope_semantics : require
// Draws a token of a row of logits, as stages/sample does, bit for bit: the likeliest TOPK, those of them that together
// reach a probability, those with some share of the likeliest one's, and of these one by its weight under a temperature.
//
// Two dispatches. First a workgroup owns a part of a row and keeps its best; then one owns a row, and keeps the best of all
// parts. Grid: parts, draws; the second time one part. The best are found by counting: digit by digit, from the highest, of
// keys of 64 bits, which are in the order of logits, and of equal ones in that of ids backwards.
//
// What is left is few and sorted; sums go in that order, in float64, each operation rounded for itself.
// Shared memory: MOST·24 bytes and 3 KB.
//
// variant: sample
#include "lib/buffers.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint JOIN = 0;
layout(constant_id = 1) const uint MOST = 1024; // TOPK is at most

struct Draw {
	uvec2 chance; // a float64 in [0, 1), which picks the token
	uvec2 share;    // the logarithm of the least share of the likeliest one's probability, a float64
	float temp;
	float reach;    // the probability that is enough; 1: all
	uint topK;      // 0: this row is not drawn
	uint none;
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

shared uint counts[256];
shared uint found;
shared uint digit;
shared uint above;
shared uint keys[MOST];
shared uint tokens[MOST];
shared uint order[MOST];
shared double weights[MOST];
shared uint left;

// key has the order of floats. What cannot be drawn is 0.
uint key(float v) {
	if (!(v > -uintBitsToFloat(0x7f800000u))) {
		return 0;
	}
	uint b = floatBitsToUint(v == 0.0 ? 0.0 : v); // -0 is 0
	return (b >> 31) != 0 ? ~b : b | 0x80000000u;
}

double logit(uint key) { return double(uintBitsToFloat((key >> 31) != 0 ? key & 0x7fffffffu : ~key)); }

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
		order[thread] = sum;
		barrier();
		if (thread >= step) {
			sum += order[thread - step];
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

// sort sets order to the places of the candidates, the best first.
void sort() {
	for (uint i = gl_LocalInvocationID.x; i < left; i += 256) {
		uint before = 0;
		for (uint j = 0; j < left; j++) {
			before += keys[j] > keys[i] || keys[j] == keys[i] && tokens[j] < tokens[i] ? 1 : 0;
		}
		order[before] = i;
	}
	barrier();
}

// power is eˣ for x of 0 or less: operation by operation what exp of stages/sample is.
double power(double x) {
	if (x < -708.0LF) {
		return 0.0LF;
	}
	precise double k = x * 1.4426950408889634074LF;
	k = k + 0.5LF;
	k = floor(k);
	precise double high = k * 6.93147180369123816490e-01LF, low = k * 1.90821492927058770002e-10LF;
	precise double r = x - high;
	r = r - low;
	precise double s = r * r;
	const double evens[5] = double[5](1.0LF / 40320.0LF, 1.0LF / 720.0LF, 1.0LF / 24.0LF, 1.0LF / 2.0LF, 1.0LF);
	const double odds[5] = double[5](1.0LF / 362880.0LF, 1.0LF / 5040.0LF, 1.0LF / 120.0LF, 1.0LF / 6.0LF, 1.0LF);
	precise double even = 1.0LF / 3628800.0LF, odd = 1.0LF / 39916800.0LF;
	for (uint i = 0; i < 5; i++) {
		even = even * s;
		even = even + evens[i];
		odd = odd * s;
		odd = odd + odds[i];
	}
	odd = odd * r;
	even = even + odd;
	even = even * packDouble2x32(uvec2(0, uint(1023 + int(k)) << 20));
	return even;
}

// weigh sets the weights of all that are left.
void weigh(double temp) {
	double best = logit(keys[order[0]]);
	for (uint i = gl_LocalInvocationID.x; i < left; i += 256) {
		precise double x = logit(keys[order[i]]) - best;
		x = x / temp;
		weights[i] = power(x);
	}
	barrier();
}

double total() {
	precise double sum = 0.0LF;
	for (uint i = 0; i < left; i++) {
		sum = sum + weights[i];
	}
	return sum;
}

// cut is how many candidates are left by probability and share.
uint cut(Draw d) {
	uint n = left;
	if (d.reach < 1.0) {
		precise double all = total(), sum = 0.0LF;
		for (uint i = 0; i < n; i++) {
			precise double p = weights[i] / all;
			sum = sum + p;
			if (sum >= double(d.reach)) {
				n = i + 1;
			}
		}
	}
	precise double least = logit(keys[order[0]]) + packDouble2x32(d.share);
	while (n > 1 && logit(keys[order[n - 1]]) < least) {
		n--;
	}
	return n;
}

// pick is the place of the token that the draw's number falls on.
uint pick(Draw d) {
	precise double target = packDouble2x32(d.chance) * total(), sum = 0.0LF;
	for (uint i = 0; i < left; i++) {
		sum = sum + weights[i];
		if (sum > target) {
			return i;
		}
	}
	return 0;
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
	uint token = 0;
	if (left > 0) {
		sort();
		weigh(1.0LF);
		uint n = cut(d);
		barrier();
		if (gl_LocalInvocationID.x == 0) {
			left = n;
		}
		barrier();
		weigh(double(d.temp));
		token = tokens[order[pick(d)]];
	}
	if (gl_LocalInvocationID.x == 0) {
		ids.v[gl_WorkGroupID.y] = token;
		if (uint64_t(second) != 0) {
			second.v[gl_WorkGroupID.y] = token;
		}
	}
}
