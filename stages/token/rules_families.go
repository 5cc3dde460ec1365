package token

import "unicode"

// starcoderRules: \p{N}, then GPT-2.
func starcoderRules() []rule { return append([]rule{words(upTo(1, number))}, gpt2Rules()...) }

// newlineRules: [^\n]+|[\n]+
func newlineRules() []rule {
	isLine := func(r rune) bool { return r == '\n' }
	return []rule{words(runOf(isLine), runOf(func(r rune) bool { return !isLine(r) }))}
}

// lagunaRules: lines, then Qwen 2.
func lagunaRules() []rule { return append(newlineRules(), qwen2Rule()) }

// qwen35Rules: (?i:'s|…)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
func qwen35Rules() []rule {
	return []rule{contracted(afterOne(letter|number, run(letter|mark)), upTo(1, number),
		then(afterBlank(run(^(space|letter|mark|number))), "\r\n"))}
}

// ufakzekaRules: Qwen 2 without contractions, which would cut Turkish suffixes.
func ufakzekaRules() []rule {
	return []rule{modern(letterWord(), upTo(1, number), otherRun("\r\n"))}
}

// seedCoderRules: Qwen 2, but lines do not stay with the characters before them.
func seedCoderRules() []rule {
	return []rule{contracted(letterWord(), upTo(1, number), otherRun(""))}
}

// miniCPM5Rules: \p{N}{1,3}, then as Llama 3 with \p{N}+.
func miniCPM5Rules() []rule {
	return []rule{words(upTo(3, number)), contracted(letterWord(), run(number), otherRun("\r\n"))}
}

// jais2Rules: Llama 3, but white space is cut into powers of two:
// …|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|…|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}
func jais2Rules() []rule {
	return []rule{words(anyShortForms, letterWord(), upTo(3, number), otherRun("\r\n"), lines, halvedSpaces)}
}

func halvedSpaces(t chars, i int) int {
	n, end := 0, i // characters that may be taken without touching a word
	for n < 512 {
		_, c, next := t.at(end)
		if c&space == 0 {
			if c != 0 && n > 0 {
				n--
			}
			break
		}
		n, end = n+1, next
	}
	take := 512
	for take > n && take > 1 {
		take /= 2
	}
	return upTo(take, space)(t, i)
}

// exaoneMoERules: (?i:'s|…)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?
// |\s*[\r\n]|\s+(?!\S)|\s+
func exaoneMoERules() []rule {
	return []rule{contracted(afterOne(letter|number, spacedLetters), upTo(1, number),
		thenUpTo(afterBlank(run(notSpaceLetterNumber)), "\r\n/", 1))}
}

// spacedLetters is (?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+: words, with one blank between two.
func spacedLetters(t chars, i int) int {
	end := i
	for {
		_, c, next := t.at(i)
		if c&letter == 0 {
			return end
		}
		end = t.run(next, mark)
		i = end
		if i < len(t.text) && t.text[i] == ' ' {
			i++
		}
	}
}

// isASCIIMark is [!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~].
func isASCIIMark(r rune) bool {
	return r >= '!' && r <= '/' || r >= ':' && r <= '@' || r >= '[' && r <= '`' || r >= '{' && r <= '~'
}

func isASCIILetter(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' && r < 0x80 }

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

// markedWord is [!"#…~][A-Za-z]+.
func markedWord(t chars, i int) int {
	r, _, next := t.at(i)
	if !isASCIIMark(r) {
		return i
	}
	if end := t.runOf(next, isASCIILetter); end > next {
		return end
	}
	return i
}

// isKanaOrHan is [一-龥぀-ゟ゠-ヿ].
func isKanaOrHan(r rune) bool { return r >= 0x4E00 && r <= 0x9FA5 || r >= 0x3040 && r <= 0x30FF }

// deepseek3Rules: \p{N}{1,3}, then [一-龥぀-ゟ゠-ヿ]+, then
// [!"#…~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
func deepseek3Rules() []rule {
	return []rule{words(upTo(3, number)), words(runOf(isKanaOrHan)), deepseek3Rule("\r\n", lines)}
}

// deepseek3Rule makes a rule from the bytes that may follow punctuation, and the match of line ends.
func deepseek3Rule(tail string, line match) rule {
	return words(markedWord, afterOne(letter|punctuation|symbolic, run(letter|mark)),
		then(afterBlank(run(punctuation|symbolic)), tail), line, spacesButLast, spaces)
}

// sparkRules: as DeepSeek 3, but line ends stand alone, and then so do digits.
func sparkRules() []rule {
	isLineEnd := func(r rune) bool { return r == '\r' || r == '\n' }
	return []rule{words(upTo(3, number)), words(runOf(isKanaOrHan)), deepseek3Rule("", oneOf(isLineEnd)),
		words(upTo(1, number))}
}

// youtuRules: Korean, CJK punctuation, Bopomofo, and Han with kana, then as GPT-4o with single digits.
func youtuRules() []rule {
	return []rule{
		words(
			runOf(func(r rune) bool { return r >= 0xAC00 && r <= 0xD7A3 || r >= 0x3131 && r <= 0x318E }),
			runOf(isCJKMark),
			runOf(func(r rune) bool { return r >= 0x3105 && r <= 0x312F }),
			runOf(isKanaOrHan)),
		modern(thenMaybe(afterOne(letter|number, run(letter|mark)), anyShortForms), upTo(1, number), otherRun("\r\n/")),
	}
}

// isCJKMark is [！…“”‘’—：；，、-〿︰-﹏].
func isCJKMark(r rune) bool {
	switch r {
	case '！', '…', '“', '”', '‘', '’', '—', '：', '；', '，':
		return true
	}
	return r >= 0x3001 && r <= 0x303F || r >= 0xFE30 && r <= 0xFE4F
}

// deepseekCoderRules: [\r\n], then \s?\p{L}+, then \s?\p{P}+, then [一-龥ࠀ-一가-퟿]+, then \p{N}.
func deepseekCoderRules() []rule {
	return []rule{words(oneOf(func(r rune) bool { return r == '\r' || r == '\n' })),
		words(afterSpace(run(letter))), words(afterSpace(run(punctuation))), words(runOf(isCJK)), words(upTo(1, number))}
}

// isCJK is [一-龥ࠀ-一가-퟿], but never white space: llama.cpp replaces that before it matches.
func isCJK(r rune) bool {
	return (r >= 0x800 && r <= 0x9FA5 || r >= 0xAC00 && r <= 0xD7FF) && !unicode.Is(unicode.White_Space, r)
}

// deepseekLLMRules: [\r\n], then \s? and letters (a list of ranges), then \s? and punctuation, then \s+$, then
// [一-龥ࠀ-一가-퟿]+, then \p{N}+.
func deepseekLLMRules() []rule {
	return []rule{words(oneOf(func(r rune) bool { return r == '\r' || r == '\n' })),
		words(afterSpace(runOf(isCasedLetter))), words(afterSpace(runOf(isWideMark))), lastSpaces,
		words(runOf(isCJK)), words(run(number))}
}

// isWideMark is [!-/:-~！-／：-～‘-‟　-。]. White space never gets so far, so U+3000 does not count.
func isWideMark(r rune) bool {
	return r >= '!' && r <= '/' || r >= ':' && r <= '~' || r >= '！' && r <= '／' || r >= '：' && r <= '～' ||
		r >= '‘' && r <= '‟' || r >= 0x3001 && r <= '。'
}

// lastSpaces is the rule \s+$.
func lastSpaces(dst []int, t chars, from int) []int {
	word := from // end of the last character that is not white space
	for i := from; i < len(t.text); {
		_, c, next := t.at(i)
		if c&space == 0 {
			word = next
		}
		i = next
	}
	if word > from {
		dst = append(dst, word)
	}
	if word < len(t.text) {
		dst = append(dst, len(t.text))
	}
	return dst
}

// falconRules: [\p{P}\$\+<=>\^~\|`]+, then GPT-2, then [0-9][0-9][0-9].
func falconRules() []rule {
	return append(append([]rule{markRule("$+<=>^~|`")}, gpt2Rules()...), words(threeDigits))
}

// defaultRules: [\p{P}\$\+<=>\^~\|]+, then GPT-2, then \p{N}+, then [0-9][0-9][0-9].
func defaultRules() []rule {
	return append(append([]rule{markRule("$+<=>^~|")}, gpt2Rules()...), words(run(number)), words(threeDigits))
}

// markRule is [\p{P} and more]+.
func markRule(more string) rule {
	return words(func(t chars, i int) int {
		for {
			r, c, next := t.at(i)
			if c&punctuation == 0 && (c == 0 || r >= 0x80 || !containsByte(more, byte(r))) {
				return i
			}
			i = next
		}
	})
}

func threeDigits(t chars, i int) int {
	if i+3 > len(t.text) {
		return i
	}
	for _, b := range []byte(t.text[i : i+3]) {
		if !isDigit(rune(b)) {
			return i
		}
	}
	return i + 3
}

// bloomRules: " ?[^(\s|.,!?…。，、।۔،)]+"
func bloomRules() []rule {
	return []rule{words(afterBlank(func(t chars, i int) int {
		for {
			r, c, next := t.at(i)
			if c == 0 || c&space != 0 || isStop(r) {
				return i
			}
			i = next
		}
	}))}
}

func isStop(r rune) bool {
	switch r {
	case '(', ')', '|', '.', ',', '!', '?', '…', '。', '，', '、', '।', '۔', '،':
		return true
	}
	return false
}

// vikingRules: as Bloom, then \p{N}.
func vikingRules() []rule { return append(bloomRules(), words(upTo(1, number))) }
