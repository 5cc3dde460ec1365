// divided is a/b, rounded to nearest: drivers' own division may be 2.5 units of the last place off, and then bits are
// those of one driver. What the quotient leaves is found by products of halves of both (Dekker), since a driver's fma may
// round twice. A quotient that leaves no such rest (an infinite one, say) stays as it is.
float divided(float a, float b) {
	precise float q = a / b, product = q * b;
	precise float cq = 4097.0 * q, hq = cq - (cq - q), lq = q - hq;
	precise float cb = 4097.0 * b, hb = cb - (cb - b), lb = b - hb;
	precise float low = ((hq * hb - product) + hq * lb + lq * hb) + lq * lb;
	precise float rest = (a - product) - low, better = q + rest / b;
	return abs(better) <= 3.402823466e38 ? better : q;
}
