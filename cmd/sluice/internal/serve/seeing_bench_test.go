package serve

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/stages/model/vision/visiontest"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// seeingModel is the flags of a model that sees: SLUICE_SEEING_MODEL with its own tower, or else the embedded one with
// a tower of random weights.
func seeingModel(b *testing.B) []string {
	if path := os.Getenv("SLUICE_SEEING_MODEL"); path != "" {
		return []string{"-m", path}
	}
	text, err := gguf.Parse(mini.Name, mini.GGUF)
	require.NoError(b, err)
	table, ok := text.Tensor("token_embd.weight")
	require.True(b, ok)
	all := visiontest.All()
	tower := all[slices.IndexFunc(all, func(x visiontest.Tiny) bool { return x.Name == "gemma4 small" })].Wide(table.Shape[0])
	path := filepath.Join(b.TempDir(), "mmproj.gguf")
	require.NoError(b, os.WriteFile(path, tower.Bytes(b), 0o600))
	return []string{"--mmproj", path}
}

// photograph is a file of about a megabyte.
func photograph(b *testing.B, side int) []byte {
	m := image.NewNRGBA(image.Rect(0, 0, side, side))
	copy(m.Pix, visiontest.Pixels(side, side*4/3))
	for i := 3; i < len(m.Pix); i += 4 {
		m.Pix[i] = 255
	}
	var file bytes.Buffer
	require.NoError(b, jpeg.Encode(&file, m, nil))
	return file.Bytes()
}

// BenchmarkSecondQuestion measures how long a client waits for the first token of a prompt of which all but the last
// question is cached: a text, and one of as many tokens with a photograph in it, in turns.
func BenchmarkSecondQuestion(b *testing.B) {
	g := exhibit(b, "", seeingModel(b)...)
	asked := 0
	first := func(content string) (took time.Duration, tokens int) {
		asked++
		body := fmt.Sprintf(`{"max_tokens":4,"stream":true,"stream_options":{"include_usage":true},"temperature":0,"ignore_eos":true,
			"messages":[{"role":"user","content":[%s,{"type":"text","text":" %d?"}]}]}`, content, asked)
		began := time.Now()
		r, err := g.http.Post(g.url+"/v1/chat/completions", "application/json", strings.NewReader(body))
		require.NoError(b, err)
		defer r.Body.Close()
		if r.StatusCode != http.StatusOK {
			said, _ := io.ReadAll(r.Body)
			require.Fail(b, "refused", "%s", said)
		}
		for lines := bufio.NewScanner(r.Body); lines.Scan(); {
			var event struct {
				Choices []struct{ Delta struct{ Content string } }
				Usage   struct {
					Prompt int `json:"prompt_tokens"`
				}
			}
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok || data == "[DONE]" {
				continue
			}
			require.NoError(b, json.Unmarshal([]byte(data), &event))
			if took == 0 && len(event.Choices) > 0 && event.Choices[0].Delta.Content != "" {
				took = time.Since(began)
			}
			tokens = max(tokens, event.Usage.Prompt)
		}
		require.Positive(b, took)
		return took, tokens
	}
	file := photograph(b, 1200)
	picture := `{"type":"image_url","image_url":{"url":"data:image/jpeg;base64,` + base64.StdEncoding.EncodeToString(file) + `"}}`
	text := func(words int) string { return `{"type":"text","text":"` + strings.Repeat(" one", words) + `"}` }
	fresh, want := first(picture)
	words, n := 1, 0
	for ; n < want; words++ { // it is in the cache, too, when it is as long
		_, n = first(text(words))
	}
	same := text(words - 1)
	var seen, read []time.Duration
	for b.Loop() {
		t, _ := first(same)
		s, _ := first(picture)
		read, seen = append(read, t), append(seen, s)
	}
	median := func(all []time.Duration) float64 {
		slices.Sort(all)
		return float64(all[len(all)/2].Microseconds()) / 1000
	}
	b.ReportMetric(fresh.Seconds()*1000, "ms-first-time")
	b.ReportMetric(median(read), "ms-text")
	b.ReportMetric(median(seen), "ms-picture")
	b.ReportMetric(median(seen)/median(read), "ratio")
	b.ReportMetric(float64(n), "tokens")
	b.ReportMetric(float64(len(file))/1e6, "MB")
	b.ReportMetric(0, "ns/op")
}
