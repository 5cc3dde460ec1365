package token

// Rules that distinguish upper and lower case, cut digits in threes, or treat single scripts.

// casedWord is [^\r\n\p{L}\p{N}]?U*W+|[^\r\n\p{L}\p{N}]?U+W*, where U is a character of set other than a-z and W one
// other than A-Z: a word begins anew at an ASCII capital after a small letter. Letters beyond ASCII are both.
func casedWord(set class) match {
	first := func(t chars, i int) int { return upperLower(t, i, set) }
	second := func(t chars, i int) int { return upperRun(t, i, set) }
	lead := func(m match) match { return afterOne(letter|number, m) }
	a, b := lead(first), lead(second)
	return func(t chars, i int) int {
		if end := a(t, i); end > i {
			return end
		}
		return b(t, i)
	}
}

// upperLower matches U*W+, with a regular expression's backtracking.
func upperLower(t chars, i int, set class) int {
	end := i     // of U*
	shared := -1 // end of the last character in it that is a W too
	for {
		r, c, next := t.at(end)
		if c&set == 0 || r >= 'a' && r <= 'z' {
			break
		}
		end = next
		if r < 'A' || r > 'Z' {
			shared = end
		}
	}
	if lower := lowerRun(t, end, set); lower > end {
		return lower
	}
	if shared >= 0 {
		return shared
	}
	return i
}

// upperRun matches U+W*, where no W follows the U+.
func upperRun(t chars, i int, set class) int {
	for {
		r, c, next := t.at(i)
		if c&set == 0 || r >= 'a' && r <= 'z' {
			return lowerRun(t, i, set)
		}
		i = next
	}
}

func lowerRun(t chars, i int, set class) int {
	for {
		r, c, next := t.at(i)
		if c&set == 0 || r >= 'A' && r <= 'Z' {
			return i
		}
		i = next
	}
}

// tekkenRules: words by case, \p{N}, " ?[^\s\p{L}\p{N}]+[\r\n/]*", and white space as in Llama 3.
func tekkenRules() []rule {
	return []rule{modern(casedWord(letter), upTo(1, number), otherRun("\r\n/"))}
}

// gpt4oRules: words by case with contractions, \p{N}{1,3}, and the rest as in Tekken. The makers' expression has
// \p{M} in words; llama.cpp's has not.
func gpt4oRules() []rule {
	return []rule{modern(thenMaybe(casedWord(letter), anyShortForms), upTo(3, number), otherRun("\r\n/"))}
}

// graniteEmbedRules: GPT-4o with \p{M} in words.
func graniteEmbedRules() []rule {
	return []rule{modern(thenMaybe(casedWord(letter|mark), anyShortForms), upTo(3, number), otherRun("\r\n/"))}
}

// tinyAyaRules: digits in threes, then as GPT-4o, for which llama.cpp does not tell upper from lower case. The makers
// write \d{1,3}(?=(?:\d{3})*\b), which leaves numbers before letters alone; llama.cpp's code does not.
func tinyAyaRules() []rule {
	return []rule{digitsInThrees,
		modern(thenMaybe(afterOne(letter|number, run(letter|mark)), anyShortForms), upTo(3, number), otherRun("\r\n/"))}
}

// superBPERules: \p{N}+, then a cut before every three digits, counted from a number's end: (?=(\d{3})+(?!\d)).
func superBPERules() []rule {
	return []rule{words(run(number)), func(dst []int, t chars, from int) []int {
		for i := from; i < len(t.text); {
			end := t.runOf(i, isDigit)
			if end == i {
				_, _, i = t.at(i)
				continue
			}
			for cut := i + (end-i)%3; cut < end; cut += 3 {
				if cut > from {
					dst = append(dst, cut)
				}
			}
			i = end
		}
		return append(dst, len(t.text))
	}}
}

// afmoeRules: numbers in threes, then East Asian scripts, then as DeepSeek 3.
func afmoeRules() []rule {
	return []rule{digitsInThrees, words(runOf(isEastAsian)), deepseek3Rule("\r\n", lines)}
}

// digitsInThrees cuts \p{N}+ into threes counted from its end. Text before a number stays with its first digits:
// llama.cpp does so, and models are run with it.
func digitsInThrees(dst []int, t chars, from int) []int {
	for i := from; i < len(t.text); {
		end, n := i, 0
		for {
			_, c, next := t.at(end)
			if c&number == 0 {
				break
			}
			end, n = next, n+1
		}
		if n == 0 {
			_, _, i = t.at(i)
			continue
		}
		for i < end {
			i = upTo((n-1)%3+1, number)(t, i)
			n -= (n-1)%3 + 1
			dst = append(dst, i)
		}
		from = end
	}
	if from < len(t.text) {
		dst = append(dst, len(t.text))
	}
	return dst
}

// isEastAsian reports whether Trinity's expression lists r. The third range begins at U+8C48 where U+F900 was meant:
// they look the same, and llama.cpp has the former.
func isEastAsian(r rune) bool {
	for _, span := range [...][2]rune{
		{0x4E00, 0x9FFF}, {0x3400, 0x4DBF}, {0x8C48, 0xFAFF}, {0x3040, 0x30FF}, {0xFF65, 0xFF9F}, {0x2F00, 0x2FDF},
		{0x0E40, 0x0E7F}, {0x0E80, 0x0EFF}, {0x1780, 0x17FF}, {0x1000, 0x109F}, {0xAA60, 0xAA7F}, {0xA9E0, 0xA9FF},
		{0xAC00, 0xD7AF}, {0x1100, 0x11FF},
	} {
		if r >= span[0] && r <= span[1] {
			return true
		}
	}
	return false
}

// chameleonRules: <sentinel:[0-9]+>, then (IMGIMG)((A|…|I){1,4})Z, then ([\t\n]|    |  ), then \p{N}, then
// [\p{P}!-/:-@\[-`{-~], then GPT-2.
func chameleonRules() []rule {
	isTab := func(r rune) bool { return r == '\t' || r == '\n' }
	oneMark := func(t chars, i int) int {
		if r, c, next := t.at(i); c&punctuation != 0 || isASCIIMark(r) {
			return next
		}
		return i
	}
	return append([]rule{words(sentinel), words(imageToken), words(oneOf(isTab), literal("    "), literal("  ")),
		words(upTo(1, number)), words(oneMark)}, gpt2Rules()...)
}

func sentinel(t chars, i int) int {
	const open = "<sentinel:"
	digits := literal(open)(t, i)
	if digits == i {
		return i
	}
	end := t.runOf(digits, isDigit)
	if end == digits || end == len(t.text) || t.text[end] != '>' {
		return i
	}
	return end + 1
}

func imageToken(t chars, i int) int {
	const open = "IMGIMG"
	start := literal(open)(t, i)
	if start == i {
		return i
	}
	for end := start; end < len(t.text) && end <= start+4; end++ {
		if c := t.text[end]; c == 'Z' && end > start {
			return end + 1
		} else if c < 'A' || c > 'I' {
			break
		}
	}
	return i
}

// kimiRules: [\p{Han}]+, then words of other letters with contractions, \p{N}{1,3}, and the rest as in Llama 3.
// The makers' expression minds case and \p{M}; llama.cpp's code does not.
func kimiRules() []rule {
	return []rule{words(runOf(isHan), thenMaybe(afterOne(letter|number, letterNotHan), anyShortForms), upTo(3, number),
		otherRun("\r\n"), lines, spacesButLast, spaces)}
}

func letterNotHan(t chars, i int) int {
	for {
		r, c, next := t.at(i)
		if c&letter == 0 || isHan(r) {
			return i
		}
		i = next
	}
}

// isHan reports whether r is in the CJK blocks that llama.cpp takes for \p{Han}.
func isHan(r rune) bool {
	return r >= 0x4E00 && r <= 0x9FFF || r >= 0x3400 && r <= 0x4DBF || r >= 0x20000 && r <= 0x2A6DF ||
		r >= 0x2A700 && r <= 0x2EBEF || r >= 0xF900 && r <= 0xFAFF || r >= 0x2F800 && r <= 0x2FA1F
}
