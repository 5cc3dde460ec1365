// valueOf is value i, 0 to 31, of a block of lib/tile.glsl: of floats by where the block is, else as it was unpacked.
#if defined(PLAIN)
float valueOf(Quads w, uint at, uint row, uint block, uint i) {
#if defined(F32)
	return uintBitsToFloat(w.v[at + (block * 8 + i / 4) * 32 + row][i % 4]);
#else
	uint q = w.v[at + (block * 4 + i / 8) * 32 + row][i % 8 / 2] >> (i % 2) * 16;
#if defined(BF16)
	return uintBitsToFloat(q << 16);
#else
	return fromHalf(q);
#endif
#endif
}
#else
float valueOf(Block u, uint i) {
	int q = bitfieldExtract(int(i < 16 ? u.lo[i / 4] : u.hi[i % 16 / 4]), int(i % 4) * 8, 8);
#if defined(Q4_0)
	return u.scale * float(q - 8);
#elif defined(Q8_0)
	return u.scale * float(q);
#elif defined(Q4_K)
	precise float v = u.scale * float(q);
	v = v - u.low;
	return v;
#elif defined(SPLIT)
	return (i < 16 ? u.scale : u.otherScale) * float(q);
#elif defined(SPLITLOW)
	precise float v = (i < 16 ? u.scale : u.otherScale) * float(q);
	v = v - (i < 16 ? u.low : u.otherLow);
	return v;
#else
	return u.scale * float(i < 16 ? u.s0 : u.s1) * float(q - 32);
#endif
}
#endif
