package serve

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pictureModel is the model that benchmarks make pictures by: SLUICE_IMAGE_MODEL, with budgets as serve has them, or a
// tiny one.
func pictureModel(b *testing.B) (folder, size string) {
	b.Helper()
	if path := os.Getenv("SLUICE_IMAGE_MODEL"); path != "" {
		return path, "256x256"
	}
	return tinyModel(b), "512x512"
}

// BenchmarkTextsBesidePicture measures the tokens a second of an answer that a server gives alone and while it makes
// pictures, in turns, and their ratio.
func BenchmarkTextsBesidePicture(b *testing.B) {
	folder, size := pictureModel(b)
	g := exhibit(b, folder)
	const tokens = 1000
	text := func() float64 {
		began := time.Now()
		r, err := g.http.Post(g.url+"/v1/completions", "application/json", strings.NewReader(fmt.Sprintf(
			`{"prompt": "one two", "max_tokens": %d, "stream": true, "ignore_eos": true}`, tokens)))
		require.NoError(b, err)
		defer r.Body.Close()
		_, err = io.Copy(io.Discard, r.Body)
		require.NoError(b, err)
		require.Equal(b, http.StatusOK, r.StatusCode)
		return tokens / time.Since(began).Seconds()
	}
	text()
	var alone, beside float64
	for b.Loop() {
		alone += text()
		ctx, cancel := context.WithCancel(b.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for ctx.Err() == nil {
				_, _ = g.ask(ctx, false, fmt.Sprintf(`{"prompt": "a cat", "size": %q, "steps": 100}`, size))
			}
		}()
		for g.painter.mu.TryLock() { // nothing is drawn yet
			g.painter.mu.Unlock()
			time.Sleep(time.Millisecond)
		}
		text() // until the model is there
		beside += text()
		cancel()
		<-ended
	}
	b.ReportMetric(alone/float64(b.N), "tokens/s")
	b.ReportMetric(beside/float64(b.N), "tokens/s-beside")
	b.ReportMetric(beside/alone, "ratio")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkPictureLeft measures how long after its client has left a picture still computes, at most and on average.
// Clients leave after longer and longer, so that each part is left.
func BenchmarkPictureLeft(b *testing.B) {
	folder, size := pictureModel(b)
	g := exhibit(b, folder)
	var most, sum time.Duration
	wait := 100 * time.Millisecond
	for b.Loop() {
		ctx, cancel := context.WithCancel(b.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := g.ask(ctx, false, fmt.Sprintf(`{"prompt": "a cat", "size": %q, "steps": 2}`, size))
			ended <- err
		}()
		time.Sleep(wait)
		wait += wait / 4
		left := time.Now()
		cancel()
		if err := <-ended; err == nil {
			wait = 100 * time.Millisecond
			continue
		}
		g.painter.mu.Lock()
		took := time.Since(left)
		g.painter.mu.Unlock()
		most, sum = max(most, took), sum+took
	}
	b.ReportMetric(float64(most.Milliseconds()), "ms-at-most")
	b.ReportMetric(float64(sum.Milliseconds())/float64(b.N), "ms")
	b.ReportMetric(0, "ns/op")
}
