// turned rotates one feature of a head: pair i is (i, i + DIMS/2), or (2i, 2i + 1) where INTERLEAVED; angles has each
// pair's cosine and sine, made by the host from positions in double precision.
struct Turned {
	uint other; // feature of the pair
	float cosine, sine; // of the feature and of the other
};

Turned turning(uint64_t angles, uint d, uint DIMS, bool interleaved) {
	uint pair = interleaved ? d / 2 : d % (DIMS / 2);
	bool second = interleaved ? d % 2 == 1 : d >= DIMS / 2;
	uint other = interleaved ? d ^ 1 : (second ? d - DIMS / 2 : d + DIMS / 2);
	vec2 a = vec2(Floats(angles).v[2 * pair], Floats(angles).v[2 * pair + 1]);
	return Turned(other, a.x, second ? a.y : -a.y);
}

float turned(Floats x, uint64_t angles, uint d, uint DIMS, bool interleaved) {
	if (d >= DIMS) {
		return x.v[d];
	}
	Turned t = turning(angles, d, DIMS, interleaved);
	precise float r = x.v[t.other] * t.sine;
	r = fma(x.v[d], t.cosine, r);
	return r;
}
