package openai

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
)

// FuzzString: what we write is one line of JSON, and encoding/json reads from it what it would read from its own.
func FuzzString(f *testing.F) {
	for _, s := range []string{"", "plain", "\"\\/\b\f\n\r\t\x00\x1f\x7f", "é日本🚀", "\xff\xc3(\xe2\x82", "\u2028\u2029\ufffd", "a\xf0\x9f\x9a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ours := appendString(nil, s)
		require.Equal(t, ours, appendString(nil, []byte(s)))
		require.NotContains(t, string(ours), "\n")
		theirs, err := json.Marshal(s)
		require.NoError(t, err)
		var got, want string
		require.NoError(t, json.Unmarshal(ours, &got), "%s", ours)
		require.NoError(t, json.Unmarshal(theirs, &want))
		require.Equal(t, want, got)
	})
}

func TestLogProbIsJSON(t *testing.T) {
	for _, p := range []float32{0, -0.5, float32(math.Inf(-1)), float32(math.Inf(1)), float32(math.NaN()), -1e30, -1e-30} {
		var x float64
		require.NoError(t, json.Unmarshal(appendLogProb(nil, p), &x))
		require.GreaterOrEqual(t, x, float64(leastLogProb))
	}
}

func TestTimings(t *testing.T) {
	u := actors.Usage{Prompt: 10, Cached: 4, Generated: 5, Prefill: 3 * time.Millisecond, Decode: 10 * time.Millisecond}
	require.JSONEq(t, `{"cache_n":4,"prompt_n":6,"prompt_ms":3,"prompt_per_token_ms":0.5,"prompt_per_second":2000,
		"predicted_n":5,"predicted_ms":10,"predicted_per_token_ms":2,"predicted_per_second":500}`, string(appendTimings(nil, u)))
	require.True(t, json.Valid(appendTimings(nil, actors.Usage{})))
}

// TestNoAlloc: an event of a stream is written into a buffer that is used again.
func TestNoAlloc(t *testing.T) {
	h := newHead("cmpl-1", 1, "model", "text_completion", "text_completion")
	c := &choice{text: []byte(`some "text" of a token, ` + strings.Repeat("é\n", 8))}
	buf := make([]byte, 0, 4096)
	for _, s := range []shape{chatShape{}, textShape{}} {
		require.Zero(t, testing.AllocsPerRun(100, func() {
			buf = h.event(buf[:0], s.part, c)
		}), "%T", s)
		require.True(t, json.Valid(buf[len("data: "):]))
	}
}
