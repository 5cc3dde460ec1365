package wire

import (
	"math"
	"strconv"
	"time"
)

// AppendTimings appends llama.cpp's timings object: the numbers of prompt tokens that were cached and read, of tokens
// that were written, and the time of both phases in milliseconds.
func AppendTimings(dst []byte, cached, read, written int, reading, writing time.Duration) []byte {
	dst = strconv.AppendInt(append(dst, `{"cache_n":`...), int64(cached), 10)
	dst = appendPace(dst, "prompt", read, reading.Seconds()*1e3)
	dst = appendPace(dst, "predicted", written, writing.Seconds()*1e3)
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
