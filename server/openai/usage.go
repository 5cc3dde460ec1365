package openai

import (
	"math"
	"strconv"

	"github.com/sluice-ai/sluice/actors"
)

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
