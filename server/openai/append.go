package openai

import (
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/sluice-ai/sluice/actors"
)

const hex = "0123456789abcdef"

// appendString appends s as a JSON string. Bytes that are not UTF-8 become U+FFFD, as encoding/json does it; no
// line break of any kind is left, so that the result is one line of an event.
func appendString[T string | []byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		b := s[i]
		if b >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
			if escaped := wideEscape(r, n); escaped != "" {
				dst = append(append(dst, s[from:i]...), escaped...)
				from = i + n
			}
			i += n
			continue
		}
		if b < ' ' || b == '"' || b == '\\' || b == 0x7F {
			dst = appendEscape(append(dst, s[from:i]...), b)
			from = i + 1
		}
		i++
	}
	return append(append(dst, s[from:]...), '"')
}

// wideEscape is how a character beyond ASCII is written, if not as it is.
func wideEscape(r rune, n int) string {
	switch {
	case r == utf8.RuneError && n == 1:
		return `\ufffd`
	case r == '\u2028':
		return `\u2028` // line breaks in JavaScript
	case r == '\u2029':
		return `\u2029`
	}
	return ""
}

func appendEscape(dst []byte, b byte) []byte {
	switch b {
	case '"', '\\':
		return append(dst, '\\', b)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	return append(dst, '\\', 'u', '0', '0', hex[b>>4], hex[b&15])
}

// leastLogProb stands for −∞, which JSON has no number for.
const leastLogProb = -9999

func appendLogProb(dst []byte, p float32) []byte {
	if math.IsNaN(float64(p)) || p < leastLogProb {
		p = leastLogProb
	}
	return strconv.AppendFloat(dst, float64(min(p, math.MaxFloat32)), 'g', -1, 32)
}

// appendUsage writes the object of that name. Choices of one prompt share it: it is counted once.
func appendUsage(dst []byte, u actors.Usage) []byte {
	dst = strconv.AppendInt(append(dst, `{"prompt_tokens":`...), int64(u.Prompt), 10)
	dst = strconv.AppendInt(append(dst, `,"completion_tokens":`...), int64(u.Generated), 10)
	dst = strconv.AppendInt(append(dst, `,"total_tokens":`...), int64(u.Prompt+u.Generated), 10)
	dst = strconv.AppendInt(append(dst, `,"prompt_tokens_details":{"cached_tokens":`...), int64(u.Cached), 10)
	return append(dst, "}}"...)
}

// appendTimings writes what llama.cpp's server reports under that name: cached and computed prompt tokens, tokens
// generated, and the time both took.
func appendTimings(dst []byte, u actors.Usage) []byte {
	dst = strconv.AppendInt(append(dst, `{"cache_n":`...), int64(u.Cached), 10)
	dst = appendPace(dst, "prompt", u.Prompt-u.Cached, u.Prefill.Seconds()*1e3)
	dst = appendPace(dst, "predicted", u.Generated, u.Decode.Seconds()*1e3)
	return append(dst, '}')
}

func appendPace(dst []byte, what string, n int, ms float64) []byte {
	number := func(name string, x float64) {
		dst = append(append(append(append(dst, `,"`...), what...), name...), `":`...)
		dst = strconv.AppendFloat(dst, x, 'f', -1, 64)
	}
	number("_n", float64(n))
	number("_ms", round(ms))
	number("_per_token_ms", round(ms/max(float64(n), 1)))
	perSecond := 0.0
	if ms > 0 {
		perSecond = float64(n) / ms * 1e3
	}
	number("_per_second", round(perSecond))
	return dst
}

// round keeps three decimals: microseconds.
func round(x float64) float64 { return math.Round(x*1e3) / 1e3 }
