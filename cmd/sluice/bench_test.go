package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/stages/report"
)

// TestBench: every point has rates, times of all segments, and the peer's figures beside them.
func TestBench(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "b.svg")
	o := sluice("", "bench", "-p", "16,32", "-n", "4", "-r", "2", "--depth", "0,100", "--seqs", "2", "-t", "2", "--json",
		"--svg", picture, "--compare", `twice: echo {"prefill_tps":1e-3,"decode_tps":{"median":{tokens}e-3}}`)
	require.Equal(t, exitDone, o.code, o.stderr)
	var b report.Bench
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &b))
	require.Equal(t, 2, b.Seqs)
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

func TestBenchPeerFails(t *testing.T) {
	o := sluice("", "bench", "-p", "4", "-n", "1", "-r", "1", "-t", "1", "--compare", "ls /nonsense")
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, `--compare "ls /nonsense": exit status`)
	require.Contains(t, o.stderr, "/nonsense")
}

func TestPeakMemory(t *testing.T) {
	root := fstest.MapFS{"proc/self/status": {Data: []byte("VmPeak:\t  999 kB\nVmHWM:\t    2048 kB\n")}}
	require.EqualValues(t, 2<<20, peakMemory(root))
	require.Zero(t, peakMemory(fstest.MapFS{}))
}
