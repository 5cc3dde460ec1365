// Keys and values in codes of 2 to 5 bits, of sealed blocks; how internal/kvcode defines them.
//
// A lane has 32 codes: of keys it is a position, and a code is a feature; of values it is a feature, and a code is a
// position of one half of the block. Codes lie in planes of 4 or 2 bits (wide) and, with 3 and 5 bits, of one (narrow).
// Code i of octet j is at bit 8b+4h of word j of a wide plane of 4 bits, at 8b+4(j%2)+2h of word j/2 of one of 2 bits, at
// 8b+2j+h of the narrow word, where b, h are i/2, i%2 for codes of a book, else i%4, i/4. So four bytes of levels, which
// follow each other, are a few operations away.
//
// A run of keys, of one block and KV head:
//
//	for every 32 features: wide [position][words], narrow [position]; the last ones have as many words as they need
//	scales  halves [every 32 features, or all of them with a book][position]
//
// A run of values:
//
//	wide    [half][feature][words]
//	narrow  [half][feature]
//	scales  halves [every 32 features, or all of them with a book][position]
//	most    halves: of each 64 scales the largest magnitude
//
// and zeros up to a whole 16 bytes.
const uint KVQ5 = 4, KVQ4 = 5, KVTQ4 = 6, KVTQ3 = 7, KVTQ2 = 8; // numbered as gpu/kernel does

bool isCoded(uint type) { return type >= KVQ5; }
bool hasBook(uint type) { return type >= KVTQ4; }
uint wideBits(uint type) { return type >= KVTQ3 ? 2 : 4; }
uint narrowBits(uint type) { return type == KVQ5 || type == KVTQ3 ? 1 : 0; }
uint codeBits(uint type) { return wideBits(type) + narrowBits(type); }

// codeScales is how many scales a row of so many features has.
uint codeScales(uint type, uint features) { return hasBook(type) ? 1 : (features + 31) / 32; }

// wideWords and narrowWords are a key's words of part of its features: up to 32 from 32·part on.
uint wideWords(uint type, uint features, uint part) { return (min(features - 32 * part, 32) * wideBits(type) + 31) / 32; }
uint narrowWords(uint type) { return narrowBits(type); }

// keyCodeBytes is the memory of the codes of a run of keys.
uint keyCodeBytes(uint type, uint features) {
	uint part = (features - 1) / 32; // the last
	return 256 * (part * codeBits(type) + wideWords(type, features, part) + narrowWords(type));
}

uint64_t codedKeyBytes(uint type, uint features) {
	return uint64_t(keyCodeBytes(type, features) + 128 * codeScales(type, features));
}

uint valueCodeBytes(uint type, uint features) { return 8 * codeBits(type) * features; }

uint64_t codedValueBytes(uint type, uint features) {
	return uint64_t((valueCodeBytes(type, features) + 130 * codeScales(type, features) + 15) & ~15u);
}

// bookLevel is the level of a code of a book, whose positive levels are bytes in ascending order.
int bookLevel(uint type, uint64_t levels, uint code) {
	uint n = 1u << (codeBits(type) - 1), m = code >= n ? code - n : n - 1 - code;
	int level = int((m < 4 ? uint(levels) : uint(levels >> 32)) >> (m % 4 * 8) & 0xffu);
	return code >= n ? level : -level;
}
