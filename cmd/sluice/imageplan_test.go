package main

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPlanPictures: the plan of a model that makes pictures lists all of its programs, says what streams, and how long
// an evaluation waits for the drive.
func TestPlanPictures(t *testing.T) {
	type part struct {
		Name              string
		Weights, Streamed int64
		Slots             int
		Seconds           float64
		Once              bool
		Groups            []struct {
			Home  string
			Bytes int64
		}
	}
	type plan struct {
		Programs []part
		Seconds  float64 `json:"seconds_per_evaluation"`
		Streamed int64   `json:"streamed_bytes_per_evaluation"`
	}
	of := func(path string, flags ...string) (p plan) {
		o := planFile(t, path, append(flags, "--json")...)
		require.Zero(t, o.code, o.stderr)
		require.NoError(t, json.Unmarshal([]byte(o.stdout), &p))
		return p
	}
	dir := tinyParts(t, "z-image-turbo", "Q8_0")
	p := of(filepath.Join(dir, "transformer.gguf"))
	var names []string
	for _, x := range p.Programs {
		names = append(names, x.Name)
		require.Positive(t, x.Weights, x.Name)
		require.Zero(t, x.Streamed)
	}
	require.Equal(t, []string{"encoder of texts", "transformer: text", "time", "image", "both", "decoder"}, names)
	require.Positive(t, p.Seconds)

	llm := filepath.Join(dir, "qwen.gguf") // a large one in its place
	o := sluice("", "synth", "--shape", "qwen3-0.6b", "--quant", "Q8_0", "--hollow", "--force", "-o", llm)
	require.Zero(t, o.code, o.stderr)
	p = of(filepath.Join(dir, "transformer.gguf"), "--ram", "200M")
	require.Positive(t, p.Programs[0].Streamed)
	require.LessOrEqual(t, p.Programs[0].Weights, int64(200<<20))
	require.GreaterOrEqual(t, p.Programs[0].Seconds, float64(p.Programs[0].Streamed)/2e9, "the drive gives so much")
	require.Zero(t, p.Streamed, "the transformer has room")
	home := int64(0)
	for _, g := range p.Programs[0].Groups {
		if g.Home == "disk" {
			home += g.Bytes
		}
	}
	require.GreaterOrEqual(t, home, p.Programs[0].Streamed, "and a table")

	flux := filepath.Join(tinyParts(t, "flux-schnell", "Q8_0"), "transformer.gguf")
	o = planFile(t, flux)
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, o.stdout, "transformer: modulation")
	require.Contains(t, o.stdout, "s an evaluation; 0 B read from disk for it")
	o = planFile(t, flux, "--vram", "1G")
	require.Equal(t, exitUsage, o.code)
	require.Contains(t, o.stderr, "--vram: pictures are computed by the processor, leave it out")
	o = planFile(t, flux, "--ram", "32K")
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, "ask for at least 1M")
}
