// dot4 is a product of four signed bytes with four others, exactly. With DOT4 the device has an instruction for it.
#if defined(DOT4)
#extension GL_EXT_integer_dot_product : require
int dot4(uint a, uint b) { return dotPacked4x8EXT(int(a), int(b)); }
#else
int dot4(uint a, uint b) {
	ivec4 x = bitfieldExtract(ivec4(int(a)) >> ivec4(0, 8, 16, 24), 0, 8);
	ivec4 y = bitfieldExtract(ivec4(int(b)) >> ivec4(0, 8, 16, 24), 0, 8);
	return (x.x * y.x + x.y * y.y) + (x.z * y.z + x.w * y.w);
}
#endif
