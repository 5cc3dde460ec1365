// Heads of a row as attention takes them: where FUSED, they are normalised and rotated here, and the row's own key and
// value are stored. Queries, then keys, then values of a row follow one another. Workgroups are KV heads.
//
// The includer defines THREADS, FEATURES, QUERIES, FUSED, DIMS, INTERLEAVED and NORMED, and what it is pushed: x, keys,
// values, tables, angles, queryGain, keyGain, xStride and eps.
shared float squares[NORMED * (QUERIES + 1) * 16 + 1];
shared uvec4 ownKey[FEATURES / 8];
shared uvec4 ownValue[FEATURES / 8];

vec4 low(uvec4 h) { return vec4(unpackHalf2x16(h.x), unpackHalf2x16(h.y)); }
vec4 high(uvec4 h) { return vec4(unpackHalf2x16(h.z), unpackHalf2x16(h.w)); }

// sumSquares prepares the norms of the query heads, and of the key head, as group_norm.comp sums. A barrier must follow.
void sumSquares(uint64_t from) {
	uint kv = gl_WorkGroupID.x, heads = gl_NumWorkGroups.x;
	for (uint i = gl_LocalInvocationID.x; i < (QUERIES + 1) * 16; i += THREADS) {
		uint head = i / 16 < QUERIES ? kv * QUERIES + i / 16 : heads * QUERIES + kv;
		Floats x = Floats(from + 4ul * (head * FEATURES));
		precise float s = 0.0;
		for (uint d = i % 16; d < FEATURES; d += 16) {
			s = fma(x.v[d], x.v[d], s);
		}
		squares[NORMED * i] = s;
	}
}

// normScale is what a query head of this KV head, or number QUERIES, the key, is multiplied by.
float normScale(uint head) {
	precise float s = 0.0;
	[[unroll]] for (uint i = 0; i < 16; i++) {
		s = s + squares[NORMED * (head * 16 + i)];
	}
	precise float scale = 1.0 / sqrt(s / float(FEATURES) + eps);
	return scale;
}

// normed is a feature of a head.
float normed(Floats head, Floats gain, float scale, uint d) {
	precise float v = head.v[d];
	if (NORMED != 0) {
		v = v * scale;
		if (uint64_t(gain) != 0) {
			v = v * gain.v[d];
		}
	}
	return v;
}

// turnedHead is turned of lib/rope.glsl, of a head that is normalised.
float turnedHead(Floats head, Floats gain, float scale, uint64_t mine, uint d) {
	if (FUSED == 0 || d >= DIMS) {
		return normed(head, gain, scale, d);
	}
	Turned t = turning(mine, d, DIMS, INTERLEAVED != 0);
	precise float r = normed(head, gain, scale, t.other) * t.sine;
	r = fma(normed(head, gain, scale, d), t.cosine, r);
	return r;
}

// anglesOf is where those of a row are.
uint64_t anglesOf(uint r) { return angles + 4ul * (r * DIMS); }

// turnedQuery is a feature of one of this KV head's query heads, counted through all of them, of a row.
float turnedQuery(uint r, uint i) {
	Floats head = Floats(x + 4ul * (r * xStride + (gl_WorkGroupID.x * QUERIES + i / FEATURES) * FEATURES));
	return turnedHead(head, queryGain, NORMED != 0 ? normScale(i / FEATURES) : 1.0, anglesOf(r), i % FEATURES);
}

// putOwn stores a row's key and value, in the cache and where the workgroup sees them. A barrier must follow.
void putOwn(Row row, uint r) {
	uint kv = gl_WorkGroupID.x, heads = gl_NumWorkGroups.x;
	uint at = cacheAt(block(tables, row, row.position), heads, kv, row.position, FEATURES) / 8;
	uint64_t from = x + 4ul * (r * xStride);
	Floats key = Floats(from + 4ul * ((heads * QUERIES + kv) * FEATURES));
	Floats value = Floats(from + 4ul * ((heads * QUERIES + heads + kv) * FEATURES));
	float norm = NORMED != 0 ? normScale(QUERIES) : 1.0;
	for (uint i = gl_LocalInvocationID.x; i < FEATURES / 8; i += THREADS) {
		float k[8], v[8];
		[[unroll]] for (uint j = 0; j < 8; j++) {
			k[j] = turnedHead(key, keyGain, norm, anglesOf(r), i * 8 + j);
			v[j] = value.v[i * 8 + j];
		}
		uvec4 kw, vw;
		[[unroll]] for (uint j = 0; j < 4; j++) {
			kw[j] = packHalf2x16(vec2(k[2 * j], k[2 * j + 1]));
			vw[j] = packHalf2x16(vec2(v[2 * j], v[2 * j + 1]));
		}
		ownKey[i] = kw;
		ownValue[i] = vw;
		keys.v[at + i] = kw;
		values.v[at + i] = vw;
	}
}
