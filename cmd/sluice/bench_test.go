package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/report"
	"github.com/sluice-ai/sluice/internal/testref"
)

// TestBench: every point has rates, times of all segments, and the peer's figures beside them.
func TestBench(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "b.svg")
	o := sluice("", "bench", "-p", "16,32", "-n", "4", "-r", "2", "--depth", "0,100", "--seqs", "2", "-t", "2", "--json",
		"--svg", picture, "--compare",
		`twice: echo {"of":[{prompt},{depth},{seqs}],"prefill_tps":1e-3,"decode_tps":{"median":{tokens}e-3}}`)
	require.Equal(t, exitDone, o.code, o.stderr)
	var b report.Bench
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &b))
	require.Equal(t, 2, b.Seqs)
	require.Equal(t, "f16", b.Cache)
	require.Positive(t, b.WeightBytes)
	require.Positive(t, b.ReadBandwidth)
	require.Len(t, b.Points, 4)
	for i, p := range b.Points {
		require.Equal(t, []int{0, 0, 100, 100}[i], p.Depth)
		for _, h := range []report.Phase{p.Prefill, p.Decode} {
			require.Len(t, h.Rate.Runs, 2)
			require.Positive(t, h.Rate.Min)
			require.Len(t, h.Segments, 4)
			share := 0.0
			for _, s := range h.Segments {
				share += s.Share
				require.Positive(t, s.BytesRate, s.Name)
			}
			require.InDelta(t, 1, share, 1e-6)
			require.Equal(t, "twice", h.Peers[0].Name)
			require.InEpsilon(t, h.Rate.Runs[0]/h.Peers[0].Rate.Runs[0], h.Peers[0].Ratio.Runs[0], 1e-9)
		}
		require.Equal(t, 4e-3, p.Decode.Peers[0].Rate.Median)
	}
	drawn, err := os.ReadFile(picture)
	require.NoError(t, err)
	require.Contains(t, string(drawn), "</svg>")
}

// TestBenchOfAdapters: runs with adapters are compared with runs without, in turns.
func TestBenchOfAdapters(t *testing.T) {
	o := sluice("", "bench", "-p", "8", "-n", "3", "-r", "2", "--seqs", "2", "-t", "2", "--adapters", "5", "--json")
	require.Equal(t, exitDone, o.code, o.stderr)
	var b report.Bench
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &b))
	require.Len(t, b.Points, 1)
	for _, h := range []report.Phase{b.Points[0].Prefill, b.Points[0].Decode} {
		require.Len(t, h.Peers, 1)
		require.Equal(t, "without adapters", h.Peers[0].Name)
		require.Len(t, h.Peers[0].Rate.Runs, 2)
		require.InEpsilon(t, h.Rate.Runs[1]/h.Peers[0].Rate.Runs[1], h.Peers[0].Ratio.Runs[1], 1e-9)
	}
	for _, c := range [][]string{{"--lora", "a.gguf"}, {"--depth", "8"}} {
		o := sluice("", append([]string{"bench", "--adapters", "2"}, c...)...)
		require.Equal(t, exitUsage, o.code)
		require.Contains(t, o.stderr, "--adapters")
	}
	path := filepath.Join(testref.Dir(t), "fixtures", "bert.gguf")
	o = sluice("", "bench", "-m", path, "-p", "16", "--adapters", "2")
	require.Equal(t, exitUsage, o.code)
	require.Contains(t, o.stderr, "makes vectors of texts")
}

// TestBenchOfVectors: a model that makes vectors has one rate, that of reading texts.
func TestBenchOfVectors(t *testing.T) {
	path := filepath.Join(testref.Dir(t), "fixtures", "bert.gguf")
	o := sluice("", "bench", "-m", path, "-p", "16", "-r", "2", "--seqs", "3", "-t", "2", "--json", "--compare",
		`echo {"of":{seqs},"prefill_tps":1{prompt},"decode_tps":{tokens}}`)
	require.Equal(t, exitDone, o.code, o.stderr)
	var b report.Bench
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &b))
	require.Len(t, b.Points, 1)
	p := &b.Points[0]
	require.Zero(t, p.Generate)
	require.Positive(t, p.Prefill.Rate.Min)
	require.Len(t, p.Prefill.Segments, 4)
	require.Equal(t, 116.0, p.Prefill.Peers[0].Rate.Median)
	require.Empty(t, p.Decode.Peers)
	picture := filepath.Join(t.TempDir(), "b.svg")
	o = sluice("", "bench", "-m", path, "-p", "16", "-r", "1", "-t", "2", "--svg", picture)
	require.Equal(t, exitDone, o.code, o.stderr)
	require.FileExists(t, picture)
	require.Contains(t, o.stdout, "\nembed ")
	require.NotContains(t, o.stdout, "decode")
	o = sluice("", "bench", "-m", path, "-p", "16", "--depth", "8")
	require.Equal(t, exitUsage, o.code)
	require.Contains(t, o.stderr, "--depth: fixture bert makes vectors of texts")
}

func TestBenchPeerFails(t *testing.T) {
	o := sluice("", "bench", "-p", "4", "-n", "1", "-r", "1", "-t", "1", "--compare", "ls /nonsense")
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, `--compare "ls /nonsense": exit status`)
	require.Contains(t, o.stderr, "/nonsense")
}

// What cannot work is said before a model is loaded.
func TestBenchUsage(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--depth", ""}, exitUsage, "--depth is empty: want a number of tokens, or several such as 128,512"},
		{[]string{"-p", ""}, exitUsage, "-p is empty"},
		{[]string{"-p", "8,0"}, exitUsage, "-p is 0: want 1 to"},
		{[]string{"--json", "--markdown"}, exitUsage, "--json and --markdown can't be used together"},
		{[]string{"--svg", dir}, exitUsage, dir + " is a folder: name a file in it"},
		{[]string{"--svg", filepath.Join(dir, "none", "b.svg")}, exitFailed, "b.svg: no such file or directory"},
		{[]string{"--compare", "no-such-engine -p 1"}, exitUsage,
			"--compare: no-such-engine cannot be run: executable file not found in $PATH"},
		{[]string{"--depth", "0,64", "--compare", "ls {prompt}"}, exitUsage,
			`--compare: "ls {prompt}" does not say {depth}: it would do other work than is measured here`},
		{[]string{"--seqs", "2", "--compare", "ls {prompt}"}, exitUsage, `does not say {seqs}`},
		{[]string{"--compare", "ls {promt}"}, exitUsage, "--compare: {promt} is not filled in: want {model}, {threads}"},
	} {
		o := sluice("", append([]string{"bench", "-m", "/no/model"}, c.args...)...)
		require.Equal(t, c.code, o.code, c.args)
		require.Contains(t, o.stderr, c.want)
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}
