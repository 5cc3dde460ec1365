// turned rotates one feature of a head: pair i is (i, i + DIMS/2), or (2i, 2i + 1) where INTERLEAVED; angles has each
// pair's cosine and sine, made by the host from positions in double precision.
float turned(Floats x, uint64_t angles, uint d, uint DIMS, bool interleaved) {
	if (d >= DIMS) {
		return x.v[d];
	}
	uint pair = interleaved ? d / 2 : d % (DIMS / 2);
	bool second = interleaved ? d % 2 == 1 : d >= DIMS / 2;
	uint other = interleaved ? d ^ 1 : (second ? d - DIMS / 2 : d + DIMS / 2);
	vec2 a = vec2(Floats(angles).v[2 * pair], Floats(angles).v[2 * pair + 1]);
	precise float r = x.v[other] * (second ? a.y : -a.y);
	r = fma(x.v[d], a.x, r);
	return r;
}
