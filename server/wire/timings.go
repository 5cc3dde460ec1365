package wire

import (
	"math"
	"strconv"
	"time"

	"github.com/sluice-ai/sluice/stages/bill"
)

// Timings holds the values of llama.cpp's timings object.
type Timings struct {
	Cached, Read, Written int // tokens: of the prompt in the cache, of the prompt computed, of the answer
	Reading, Writing      time.Duration
	Tried, Right          int // tokens that were guessed, and those of them that were right

	Spent *bill.Bill    // what the time went to; nil: the client did not ask
	Wall  time.Duration // from the request's arrival to the answer's end; with Spent

	FirstToken, EachToken time.Duration // as predicted; 0: nothing was
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
	if t.Spent != nil {
		dst = appendCauses(append(dst, `,"causes":`...), t)
	}
	if t.FirstToken > 0 {
		dst = append(dst, `,"predicted":{"first_token_ms":`...)
		dst = strconv.AppendFloat(dst, round(t.FirstToken.Seconds()*1e3), 'f', -1, 64)
		dst = append(dst, `,"per_second":`...)
		dst = append(strconv.AppendFloat(dst, round(1/max(t.EachToken.Seconds(), 1e-9)), 'f', -1, 64), '}')
	}
	return append(dst, '}')
}

// appendCauses appends an object of what a request's time went to, in milliseconds. What the causes do not explain of
// the wall time is its residual.
func appendCauses(dst []byte, t *Timings) []byte {
	number := func(name string, d time.Duration) {
		dst = append(append(append(dst, '"'), name...), `_ms":`...)
		dst = append(strconv.AppendFloat(dst, float64(d.Nanoseconds())/1e6, 'f', -1, 64), ',')
	}
	dst = append(dst, '{')
	number("wall", t.Wall)
	for c := range bill.Compute {
		number(c.String(), t.Spent.Spent(c))
	}
	phase := func(name string, of func(bill.Cause) time.Duration) {
		dst = append(append(append(dst, '"'), name...), `":{`...)
		for c := bill.Compute; c < bill.Causes; c++ {
			number(c.String(), of(c))
		}
		dst = append(dst[:len(dst)-1], `},`...)
	}
	phase("prefill", t.Spent.Spent)
	phase("decode", t.Spent.Decoding)
	number("residual", t.Wall-t.Spent.Sum())
	return append(dst[:len(dst)-1], '}')
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
