package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/tokentrace"
)

// recorded writes a trace of one layer of four experts, whose steps go round.
func recorded(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "a.trace")
	f, err := os.Create(path)
	require.NoError(t, err)
	w, err := tokentrace.NewWriter(f, &tokentrace.Model{Name: "a", Dense: []int64{1e6},
		Layers: []tokentrace.Layer{{Experts: 4, Used: 1, Bytes: 1e6}}})
	require.NoError(t, err)
	for i := range 400 {
		require.NoError(t, w.Write(&tokentrace.Step{Spans: []tokentrace.Span{{Sequence: 1, Position: i, Rows: 1}}}))
		require.NoError(t, w.Write(&tokentrace.Chosen{Experts: []int32{int32(i % 4)}}))
	}
	require.NoError(t, w.Flush())
	require.NoError(t, f.Close())
	return path
}

func TestReplay(t *testing.T) {
	path := recorded(t)
	o := sluice("", "replay", path, "--virtual", "--json")
	require.Equal(t, exitDone, o.code, o.stderr)
	var got struct {
		Policies []struct {
			Policy       string
			Hits, Misses int
			Bytes        int64
			Tokens       float64 `json:"tokens_per_second"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &got))
	require.Len(t, got.Policies, 5)
	misses := map[string]int{}
	for _, p := range got.Policies {
		require.Equal(t, 400, p.Hits+p.Misses)
		require.EqualValues(t, p.Misses*1e6, p.Bytes)
		require.Positive(t, p.Tokens)
		misses[p.Policy] = p.Misses
	}
	require.Equal(t, 400, misses["lru"], "two slots for a cycle of four")
	require.Less(t, misses["belady"], 280)
	require.Less(t, misses["ours"], 300)
	require.Equal(t, o.stdout, sluice("", "replay", path, "--virtual", "--json").stdout, "the same to the byte")

	o = sluice("", "replay", path, "--virtual", "--slots", "4", "--policy", "lru,ours", "--prefetch", "none,oracle")
	require.Equal(t, exitDone, o.code, o.stderr)
	require.Contains(t, o.stdout, "99.00 %")
	require.Contains(t, o.stdout, "oracle")
	for _, bad := range [][]string{
		{"--policy", "fifo"}, {"--prefetch", "x"}, {"--slots", "2", "--ram", "3M"}, {"--disk", "fast"}, {"--slots", "-1"},
	} {
		require.Equal(t, exitUsage, sluice("", append([]string{"replay", path, "--virtual"}, bad...)...).code, bad)
	}
	require.Equal(t, exitUsage, sluice("", "replay", path).code, "there is no other way yet")
	o = sluice("", "replay", path, "--virtual", "--ram", "1M")
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, "ask for at least")
	require.Contains(t, sluice("", "replay", "testdata/help.txt", "--virtual").stderr, "no token trace")
}
