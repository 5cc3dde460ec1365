package wire

import (
	"math"
	"strconv"
	"time"
)

// Timings holds the values of llama.cpp's timings object.
type Timings struct {
	Cached, Read, Written int // tokens: of the prompt in the cache, of the prompt computed, of the answer
	Reading, Writing      time.Duration
	Tried, Right          int // tokens that were guessed, and those of them that were right
}

// AppendTimings appends llama.cpp's timings object, with times in milliseconds.
func AppendTimings(dst []byte, t *Timings) []byte {
	dst = strconv.AppendInt(append(dst, `{"cache_n":`...), int64(t.Cached), 10)
	dst = appendPace(dst, "prompt", t.Read, t.Reading.Seconds()*1e3)
	dst = appendPace(dst, "predicted", t.Written, t.Writing.Seconds()*1e3)
	if t.Tried > 0 {
		dst = strconv.AppendInt(append(dst, `,"draft_n":`...), int64(t.Tried), 10)
		dst = strconv.AppendInt(append(dst, `,"draft_n_accepted":`...), int64(t.Right), 10)
	}
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

// round rounds to three decimals: microseconds.
func round(x float64) float64 { return math.Round(x*1e3) / 1e3 }
