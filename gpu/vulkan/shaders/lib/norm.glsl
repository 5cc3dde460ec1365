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

// sumSquares sets blockSums[at…] to the sums of a row's blocks. A barrier must follow.
void sumSquares(uint64_t row, uint at) {
	uint lane = gl_LocalInvocationID.x % 8;
	for (uint b = gl_LocalInvocationID.x / 8; b < K / 32; b += THREADS / 8) {
		vec4 v = input4(row, b * 32 + lane * 4);
		precise float s = v.x * v.x;
		s = fma(v.y, v.y, s);
		s = fma(v.z, v.z, s);
		s = fma(v.w, v.w, s);
		s = sum8(s);
		if (lane == 0) {
			blockSums[at + b] = s;
		}
	}
}

// normScale is what the row is multiplied by.
float normScale(uint at) {
	precise float s = 0;
	for (uint b = gl_LocalInvocationID.x % 8; b < K / 32; b += 8) {
		s = s + blockSums[at + b];
	}
	precise float scale = 1.0 / sqrt(sum8(s) / float(width) + eps);
	return scale;
}

// normed is four values of the result.
vec4 normed(uint64_t row, uint at, float scale) {
	precise vec4 v = input4(row, at) * scale * input4(uint64_t(gain), at);
	return v;
}
