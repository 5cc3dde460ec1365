package grammar

import "unicode/utf8"

// utf8Ranges calls yield with sequences of byte ranges that together spell exactly the characters lo to hi, without the
// surrogates. The slice is yield's until it returns.
func utf8Ranges(lo, hi rune, yield func(parts [][2]byte)) {
	hi = min(hi, utf8.MaxRune)
	for _, limit := range [...]rune{0x7F, 0x7FF, 0xD7FF, 0xDFFF, 0xFFFF, utf8.MaxRune} {
		if lo > hi {
			return
		}
		if lo <= limit {
			if limit != 0xDFFF {
				utf8Aligned(lo, min(hi, limit), yield)
			}
			lo = limit + 1
		}
	}
}

// utf8Aligned does so for characters of equal length.
func utf8Aligned(lo, hi rune, yield func(parts [][2]byte)) {
	n := utf8.RuneLen(lo)
	for i := 1; i < n; i++ {
		mask := rune(1)<<(6*i) - 1
		if lo&^mask != hi&^mask { // they differ above the last i bytes: make both ends of the middle whole
			if lo&mask != 0 {
				utf8Aligned(lo, lo|mask, yield)
				utf8Aligned((lo|mask)+1, hi, yield)
				return
			}
			if hi&mask != mask {
				utf8Aligned(lo, (hi&^mask)-1, yield)
				utf8Aligned(hi&^mask, hi, yield)
				return
			}
		}
	}
	var a, b [4]byte
	utf8.EncodeRune(a[:], lo)
	utf8.EncodeRune(b[:], hi)
	var parts [4][2]byte
	for i := range n {
		parts[i] = [2]byte{a[i], b[i]}
	}
	yield(parts[:n])
}
