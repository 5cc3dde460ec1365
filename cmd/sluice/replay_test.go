package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/internal/tokentrace"
	"github.com/sluice-ai/sluice/stages/sample"
	"github.com/sluice-ai/sluice/storage/gguf"
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
	require.Equal(t, exitUsage, sluice("", "replay", path).code, "with weights or without")
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
		e, _ := envtest.CachingEnv(t, "run", "-m", model, "--record", path, "-n", "8", "--temp", "0", "--ram", budget,
			"--force", "hello there")
		known := compute.Unmeasured(e, model)
		known.Memory = 20e9
		require.NoError(t, compute.Keep(e, known))
		require.Equal(t, exitDone, run(e), e.Stderr)
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
	o := sluice("", "replay", path, "--virtual", "--prefetch", "none,ours")
	require.Contains(t, o.stderr, "has no experts: all policies are alike")
	require.Equal(t, 2, strings.Count(o.stdout, "\n"), "a head and one line: %s", o.stdout)
	opens, _, _, _, _ := tapeOf(t, path)
	require.Empty(t, opens[0].Text)
	require.NotEmpty(t, opens[0].Prompt)
	require.Equal(t, exitUsage, sluice("", "run", "--record-ids-only", "hi").code)
	require.Equal(t, exitUsage, sluice("", "run", "--record", path, "hi").code, "it is there already")
}

// TestReplayCheck: what was recorded of eight sessions at once is computed again, and one changed token is found.
func TestReplayCheck(t *testing.T) {
	path := filepath.Join(t.TempDir(), "eight.trace")
	recordEight(t, path)
	o := sluice("", "replay", path, "--check")
	require.Equal(t, exitDone, o.code, o.stderr)
	require.Contains(t, o.stdout, "8 requests, 192 tokens: all the same")
	require.Equal(t, exitUsage, sluice("", "replay", path, "--check", "--virtual").code)

	text, err := os.ReadFile(path)
	require.NoError(t, err)
	changed := changeToken(t, text, 5, 20)
	o = sluice(changed, "replay", "-", "--check", "--json")
	require.Equal(t, exitFailed, o.code)
	require.Regexp(t, `request 5 \(of-\d\), token 20 of its answer: \d+ was recorded, \d+ is computed here`, o.stderr)
	require.Contains(t, o.stdout, `"token": 20`)
	require.Contains(t, sluice("", "replay", recorded(t), "--check").stderr, "give the one that was recorded")
}

// TestRecordedForms: an answer of run that had a form is answered again with it.
func TestRecordedForms(t *testing.T) {
	for flag, form := range map[string]string{
		"--schema": "testdata/grammar/s.json", "--grammar": "testdata/grammar/g.gbnf", "--regex": "[a-z]{3,9}é",
	} {
		t.Run(flag, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.trace")
			o := sluice("", "run", flag, form, "-n", "20", "--temp", "1", "--record", path, "hi")
			require.Equal(t, exitDone, o.code, o.stderr)
			o = sluice("", "replay", path, "--check")
			require.Equal(t, exitDone, o.code, o.stderr+o.stdout)
			require.Regexp(t, `^1 request, \d+ tokens: all the same`, o.stdout)
			o = sluice("", "why", path, "0", "0")
			require.Equal(t, exitDone, o.code, o.stderr)
			require.Contains(t, o.stdout, "grammar")
		})
	}
}

// recordEight answers eight requests at once, with temperature, and records them.
func recordEight(t *testing.T, path string) {
	f, err := os.Create(path)
	require.NoError(t, err)
	defer f.Close()
	file, err := gguf.Parse(mini.Name, mini.GGUF)
	require.NoError(t, err)
	device, err := cpu.New(2, "")
	require.NoError(t, err)
	out := tapedFile{f}
	tape := actors.NewTape(out, true)
	e, err := actors.Start(t.Context(), actors.Config{Model: actors.Model{File: file, Tapes: []*actors.Tape{tape}},
		Device: device, Log: zerolog.Nop()})
	require.NoError(t, err)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			p := sample.Params{Seed: uint64(i), Temp: 1, TopP: 1, TypicalP: 1, RepeatPenalty: 1, LogProbs: -1}
			prompt := []int32{5, int32(6 + i), 7}
			s, err := e.Generate(actors.Request{Tokens: prompt, MaxTokens: 24, Sampling: p, IgnoreEOG: true,
				ID: fmt.Sprintf("of-%d", i)})
			if !assert.NoError(t, err) {
				return
			}
			defer s.Close()
			var ev actors.Event
			for s.Next(t.Context(), &ev) == nil {
			}
		})
	}
	all.Wait()
	require.NoError(t, e.Close(t.Context()))
	tape.Close()
}

// tapedFile is a file that a tape goes to.
type tapedFile struct{ *os.File }

func (f tapedFile) Append(records []byte, head func() []byte) {
	if at, err := f.Seek(0, io.SeekCurrent); err == nil && at == 0 {
		_, _ = f.Write(head())
	}
	_, _ = f.Write(records)
}

func (tapedFile) Lost(error) {}
func (tapedFile) Close()     {}

// changeToken writes a trace again, with another token in an answer.
func changeToken(t *testing.T, trace []byte, request, token int) string {
	var out bytes.Buffer
	r, err := tokentrace.NewReader(bytes.NewReader(trace))
	require.NoError(t, err)
	w, err := tokentrace.NewWriter(&out, &r.Model)
	require.NoError(t, err)
	var order []uint64
	drawn := map[uint64]int{}
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		switch x := e.(type) {
		case *tokentrace.Open:
			order = append(order, x.Sequence)
		case *tokentrace.Drawn:
			drawn[x.Sequence]++ // maybe before the request is opened
			if len(order) > request && x.Sequence == order[request] && drawn[x.Sequence] == token+1 {
				x.Token ^= 1
			}
		}
		require.NoError(t, w.Write(e))
	}
	return out.String()
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
