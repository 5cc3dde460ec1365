// RMS norm: y = gain·x/√(mean x² + eps). The includer defines K (the width padded to 256), THREADS, width, gain, eps,
// and blockSums, shared floats.
//
// The sum of squares is, in this order: fours of values, one after the other; eight fours as a tree, a block of 32;
// every eighth block, one after the other; these eight as a tree. So it is the same for any number of threads.

// input4 is four values of a row; zero beyond its end. Rows begin at multiples of 16 bytes.
vec4 input4(uint64_t row, uint at) {
	if (at + 4 <= width) {
		return Vectors(row).v[at / 4];
	}
	vec4 v = vec4(0);
	for (uint i = 0; at + i < width; i++) {
		v[i] = Floats(row).v[at + i];
	}
	return v;
}

// A thread has four values of every THREADS/8th block, from its own on: EACH at most, of each of COLUMNS rows.
const uint EACH = (K / 32 + THREADS / 8 - 1) / (THREADS / 8);
vec4 held[COLUMNS * EACH];
vec4 gains[EACH];

// own is the number of this thread's i-th block. It may be beyond the last.
uint own(uint i) { return gl_LocalInvocationID.x / 8 + i * (THREADS / 8); }

// read loads this thread's values of a row.
void read(uint column, uint64_t row) {
	[[unroll]] for (uint i = 0; i < EACH; i++) {
		held[column * EACH + i] = input4(row, own(i) * 32 + gl_LocalInvocationID.x % 8 * 4);
	}
}

void readGain() {
	[[unroll]] for (uint i = 0; i < EACH; i++) {
		gains[i] = input4(uint64_t(gain), own(i) * 32 + gl_LocalInvocationID.x % 8 * 4);
	}
}

// sumSquares sets blockSums to the sums of a row's blocks. A barrier must follow.
void sumSquares(uint column) {
	[[unroll]] for (uint i = 0; i < EACH; i++) {
		if (own(i) >= K / 32) {
			break;
		}
		vec4 v = held[column * EACH + i];
		precise float s = v.x * v.x;
		s = fma(v.y, v.y, s);
		s = fma(v.z, v.z, s);
		s = fma(v.w, v.w, s);
		s = sum8(s);
		if (gl_LocalInvocationID.x % 8 == 0) {
			blockSums[column * (K / 32) + own(i)] = s;
		}
	}
}

// normScale is what the row is multiplied by.
float normScale(uint column) {
	precise float s = 0;
	for (uint b = gl_LocalInvocationID.x % 8; b < K / 32; b += 8) {
		s = s + blockSums[column * (K / 32) + b];
	}
	precise float scale = 1.0 / sqrt(sum8(s) / float(width) + eps);
	return scale;
}

// normed is four values of the result.
vec4 normed(uint column, uint i, float scale) {
	precise vec4 v = held[column * EACH + i] * scale * gains[i];
	return v;
}
