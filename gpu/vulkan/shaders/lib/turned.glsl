// The rotation of heads whose keys or values are kept in codes: R = H·D/√n for n features, as internal/kvcode defines it.
// Where n is a power of two, products are added as there, to the bit.
//
// The includer defines THREADS and turned, a shared array of float32 that has rows of features.

// flips says whether D flips the sign of feature i.
bool flips(uint i) {
	uint64_t x = uint64_t(i + 1) * 0x9e3779b97f4a7c15ul;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ul;
	x = (x ^ x >> 27) * 0x94d049bb133111ebul;
	return (x >> 63) != 0;
}

// paley is an element of the Hadamard matrix of size q+1, where q is 11 or 19.
float paley(uint q, uint i, uint j) {
	if (i == j || i == 0) {
		return 1.0;
	}
	if (j == 0) {
		return -1.0;
	}
	uint squares = q == 11 ? 0x23au : 0x30af2u; // bit a: a is a square modulo q
	return (squares >> (i + q - j) % q & 1) != 0 ? 1.0 : -1.0;
}

// factorAt is an element of the factor of a size that is no power of two: Paley's matrix, or √2·cos(π·(j + 1/2)·i/outer).
float factorAt(uint outer, uint i, uint j) {
	if (outer == 12 || outer == 20) {
		return paley(outer - 1, i, j);
	}
	if (i == 0) {
		return 1.0;
	}
	uint k = i * (2 * j + 1) % (4 * outer); // in units of a right angle divided by outer
	k = k > 2 * outer ? 4 * outer - k : k;
	bool below = k > outer;
	float x = 1.57079633 * float(below ? 2 * outer - k : k) / float(outer), s = x * x;
	float c = 1.0 - s / 2.0 * (1.0 - s / 12.0 * (1.0 - s / 30.0 * (1.0 - s / 56.0 * (1.0 - s / 90.0 *
		(1.0 - s / 132.0)))));
	return 1.41421356 * (below ? -c : c);
}

const uint MOSTOUTER = 32; // rows of the factor

// transform multiplies rows of turned by H, or by its transpose, and by unit. power is the size of the butterflies. All
// threads call it, after a barrier or before one that follows what they wrote.
void transform(uint rows, uint features, uint power, float unit, bool back) {
	uint thread = gl_LocalInvocationID.x;
	for (uint part = 1; part < power; part *= 2) {
		barrier();
		for (uint t = thread; t < rows * features / 2; t += THREADS) {
			uint i = t / part * 2 * part + t % part;
			precise float a = turned[i], b = turned[i + part], sum = a + b, apart = a - b;
			turned[i] = sum;
			turned[i + part] = apart;
		}
	}
	barrier();
	uint outer = features / power;
	if (outer > 1) {
		for (uint t = thread; t < rows * power; t += THREADS) {
			float column[MOSTOUTER];
			uint at = t / power * features + t % power;
			for (uint i = 0; i < outer; i++) {
				column[i] = turned[at + i * power];
			}
			for (uint i = 0; i < outer; i++) {
				precise float sum = 0.0;
				for (uint k = 0; k < outer; k++) {
					precise float product = column[k] * (back ? factorAt(outer, k, i) : factorAt(outer, i, k));
					sum = sum + product;
				}
				turned[at + i * power] = sum;
			}
		}
		barrier();
	}
	for (uint t = thread; t < rows * features; t += THREADS) {
		precise float scaled = turned[t] * unit;
		turned[t] = scaled;
	}
	barrier();
}
