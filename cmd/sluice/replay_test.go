package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/testref"
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
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, o.stdout, sluice(string(text), "replay", "-", "--virtual", "--json").stdout, "from standard input")

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

// TestRecord: what run records can be replayed, and says what was asked and answered; without texts if so asked.
func TestRecord(t *testing.T) {
	model := filepath.Join(testref.Dir(t), "models", "moe-Q4_K_M.gguf")
	path := filepath.Join(t.TempDir(), "run.trace")
	for _, budget := range []string{"100M", "8M"} {
		e, _ := cachingEnv(t, "run", "-m", model, "--record", path, "-n", "8", "--temp", "0", "--ram", budget,
			"--force", "hello there")
		require.NoError(t, keep(e, speeds{Machine: machineName(), FileSystem: fileSystem(e.root, model), Memory: 20e9}))
		require.Equal(t, exitDone, run(e), e.stderr)
		opens, rows, chosen, drawn, ends := tapeOf(t, path)
		require.Len(t, opens, 1)
		require.Contains(t, opens[0].Text, "hello there")
		require.Equal(t, 1, ends)
		require.LessOrEqual(t, drawn, 8)
		require.Positive(t, drawn)
		require.GreaterOrEqual(t, rows, len(opens[0].Prompt)+drawn-1)
		require.Equal(t, 5*4*rows, chosen, "five layers, four experts each")
		o := sluice("", "replay", path, "--virtual")
		require.Equal(t, exitDone, o.code, o.stderr)
	}
	require.Equal(t, exitDone, sluice("", "run", "--record", path, "--force", "--record-ids-only", "-n", "1", "hi").code)
	opens, _, _, _, _ := tapeOf(t, path)
	require.Empty(t, opens[0].Text)
	require.NotEmpty(t, opens[0].Prompt)
	require.Equal(t, exitUsage, sluice("", "run", "--record-ids-only", "hi").code)
	require.Equal(t, exitUsage, sluice("", "run", "--record", path, "hi").code, "it is there already")
}

// tapeOf counts what is in a trace.
func tapeOf(t *testing.T, path string) (opens []*tokentrace.Open, rows, chosen, drawn, ends int) {
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	r, err := tokentrace.NewReader(f)
	require.NoError(t, err)
	for {
		event, err := r.Next()
		if errors.Is(err, io.EOF) {
			return opens, rows, chosen, drawn, ends
		}
		require.NoError(t, err)
		switch e := event.(type) {
		case *tokentrace.Open:
			opens = append(opens, e)
		case *tokentrace.Step:
			for _, s := range e.Spans {
				rows += s.Rows
			}
		case *tokentrace.Chosen:
			chosen += len(e.Experts)
		case *tokentrace.Drawn:
			drawn++
		case *tokentrace.End:
			ends++
		}
	}
}
