package report_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/internal/report"
	"github.com/sluice-ai/sluice/internal/trace"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// example is a bench of two points with two peers.
func example() *report.Bench {
	b := &report.Bench{
		Model: "llama <8B>", Machine: "Some CPU", Device: "cpu avx512vnni", Cache: "f16", Commit: "4865274", Threads: 2, Seqs: 1,
		LoadSeconds: 2.5, WeightBytes: 4.9e9, PeakBytes: 5.1e9, ActorsShare: 0.001,
	}
	for i, depth := range []int{0, 8192} {
		slower := float64(i + 1)
		work := report.Work{Steps: 10}
		work.Time[ir.SegEmbed], work.Time[ir.SegMix] = time.Millisecond, 40*time.Millisecond
		work.Time[ir.SegFFN], work.Time[ir.SegHead] = 50*time.Millisecond, 9*time.Millisecond
		work.Cost[ir.SegMix] = report.Traffic{Bytes: 0.6e9, Ops: 1e9}
		work.Cost[ir.SegFFN] = report.Traffic{Bytes: 1.1e9, Ops: 60e9}
		p := report.Point{Depth: depth, Prompt: 512, Generate: 128}
		p.Compare([]report.Speeds{{400 / slower, 10 / slower, 11}, {420, 10.4 / slower, 11}, {390, 9.8 / slower, 11}},
			[]string{"peer, AMX", "peer, no AMX"}, [][]report.Speeds{
				{{360, 7, 8}, {300, 8, 9}, {350, 7, 8}},
				{{100, 5, 0}, {120, 6, 0}, {110, 5, 0}}, // which does not say how long a step takes
			})
		p.Prefill.Ran(work, 0)
		p.Decode.Ran(work, 0)
		b.Points = append(b.Points, p)
	}
	b.Relate([]report.Look{{Read: []float64{26.5e9, 12e9, 25e9}, Multiply: []float64{1.2e12, 1.3e12, 1.4e12}}})
	return b
}

func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), text, "%s: go test ./internal/report -update, and look at the difference", name)
}

func TestFormats(t *testing.T) {
	for name, write := range map[string]func(io.Writer) error{
		"bench.txt": example().Text, "bench.md": example().Markdown, "bench.svg": example().SVG,
	} {
		var out strings.Builder
		require.NoError(t, write(&out), name)
		golden(t, name, out.String())
	}
	text, err := json.MarshalIndent(example(), "", " ")
	require.NoError(t, err)
	golden(t, "bench.json", string(text)+"\n")
}

// TestSVGIsXML: whatever names hold, the picture is well formed.
func TestSVGIsXML(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := example()
		b.Model = rapid.StringMatching(`[ -~äß]{0,20}`).Draw(t, "model")
		b.Points[0].Prompt = rapid.IntRange(1, 9999).Draw(t, "prompt")
		b.Points = b.Points[:rapid.IntRange(1, 2).Draw(t, "points")]
		var out strings.Builder
		require.NoError(t, b.SVG(&out))
		d := xml.NewDecoder(strings.NewReader(out.String()))
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				return
			}
			require.NoError(t, err)
		}
	})
}

// A bench of weights as the file has them says so.
func TestNoRepack(t *testing.T) {
	b := example()
	b.NoRepack = true
	for _, write := range []func(io.Writer) error{b.Text, b.Markdown, b.SVG} {
		var text strings.Builder
		require.NoError(t, write(&text))
		require.Contains(t, text.String(), "1 sequence, cpu avx512vnni, cache f16, not repacked")
	}
}

// What built the program is left out where it is not known.
func TestUnknownCommit(t *testing.T) {
	b := example()
	b.Commit = ""
	var text strings.Builder
	require.NoError(t, b.Text(&text))
	require.Contains(t, text.String(), "\nSome CPU\n")
	data, err := json.Marshal(b)
	require.NoError(t, err)
	require.NotContains(t, string(data), `"commit"`)
}

func TestSpread(t *testing.T) {
	runs := []float64{9, 1, 2}
	require.Equal(t, report.Spread{Median: 2, Min: 1, Max: 9, Runs: runs}, report.SpreadOf(runs))
	require.Equal(t, 3.0, report.SpreadOf([]float64{9, 1, 2, 4}).Median)
	// The machine was half as fast in the second run: the ratio does not see it.
	r := report.Ratio([]float64{10, 5, 11}, []float64{5, 2.5, 5})
	require.Equal(t, 2.0, r.Median)
	require.Equal(t, 2.2, r.Max)
}

// A machine that is half as fast for a while is so in a run and in the looks around it: the shares do not see it, nor a
// single run that something else disturbed.
func TestRelate(t *testing.T) {
	var b report.Bench
	b.Points = []report.Point{{Generate: 1}}
	p := &b.Points[0]
	for look, took := range []int{10, 20, 20, 90, 10} { // ms
		work := report.Work{Steps: 1}
		work.Time[ir.SegFFN] = time.Duration(took) * time.Millisecond
		work.Cost[ir.SegFFN] = report.Traffic{Bytes: 90e6, Ops: 5e9}
		p.Decode.Ran(work, look)
	}
	b.Relate([]report.Look{
		{[]float64{10e9}, []float64{1e12}}, {[]float64{9e9, 10e9, 11e9}, []float64{1e12}}, {[]float64{0, 5e9, 5e9}, nil},
		{[]float64{5e9}, []float64{1e12}}, {[]float64{10e9}, []float64{1e12}}, {[]float64{10e9}, []float64{1e12}},
	})
	require.Len(t, p.Decode.Segments, 1)
	s := p.Decode.Segments[0]
	require.InDelta(t, 0.9, s.OfBandwidth, 1e-9)
	require.InDelta(t, 0.25, s.OfMultiply, 1e-9)
	require.InDelta(t, 0.03, s.Seconds, 1e-9, "the mean")
	require.Empty(t, p.Prefill.Segments)
	require.Equal(t, 9.5e9, b.ReadBandwidth)
}

// TestCost counts a model by hand: one layer of attention with a window, one of experts.
func TestCost(t *testing.T) {
	b := ir.NewBuilder("test", nil)
	x := b.Embed("token_embd", 1000, 64)
	b.Layer(0)
	q := b.Linear(x, "attn_q", 128)
	k, v := b.Linear(x, "attn_k", 64), b.Linear(x, "attn_v", 64)
	o := b.Attend(q, k, v, ir.AttendArgs{Heads: 4, KVHeads: 2, KDim: 32, VDim: 32, Scale: 1, Window: 50})
	x = b.Add(x, b.Linear(o, "attn_output", 64))
	b.FFN()
	w := b.Route(b.Linear(x, "ffn_gate_inp", 8), "", ir.RouteArgs{Scoring: ir.SoftmaxAll, Used: 2, Scale: 1})
	x = b.Add(x, b.Experts(x, w, "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", 32, 2, ir.SiLU))
	b.Head(b.Rows(x), "output", "token_embd")
	p, err := b.Program(4096)
	require.NoError(t, err)
	bound := &ir.Bound{Program: p, Types: make([]quant.Type, len(p.Weights))}
	for i := range bound.Types {
		bound.Types[i] = quant.Q8_0 // 34 bytes for 32 values
	}

	// One step of one row at depth 99, f16 cache: 2·2·32·2 bytes a position.
	c := report.Cost(bound, 256, report.Load{Steps: 1, Rows: 1, Wanted: 1, Sequences: 1, Positions: 100, Seen: 100})
	const bytes = 34.0 / 32
	require.InDelta(t, 64*bytes, c[ir.SegEmbed].Bytes, 1e-6)
	require.InDelta(t, (128+64+64+128)*64*bytes+50*256, c[ir.SegMix].Bytes, 1e-6)
	require.InDelta(t, 2*(128+64+64+128)*64+2*50*4*64, c[ir.SegMix].Ops, 1e-6)
	require.InDelta(t, 8*64*bytes, c[ir.SegRoute].Bytes, 1e-6)
	require.InDelta(t, 2*8*64, c[ir.SegRoute].Ops, 1e-6)
	require.InDelta(t, 2*3*32*64*bytes, c[ir.SegExperts].Bytes, 1e-6, "two of eight experts")
	require.InDelta(t, 2*2*3*32*64, c[ir.SegExperts].Ops, 1e-6)
	require.Zero(t, c[ir.SegFFN])
	require.InDelta(t, 1000*64*bytes, c[ir.SegHead].Bytes, 1e-6)

	// Many rows touch all experts, and the head is read for wanted rows only.
	c = report.Cost(bound, 256, report.Load{Steps: 2, Rows: 1000, Sequences: 2, Positions: 1000, Seen: 1000})
	require.InDelta(t, 2*8*64*bytes, c[ir.SegRoute].Bytes, 1e-3)
	require.InDelta(t, 2*8*3*32*64*bytes, c[ir.SegExperts].Bytes, 1e-3)
	require.Zero(t, c[ir.SegHead].Bytes)
	require.Zero(t, c[ir.SegHead].Ops)
}

// TestCostOfPool: an encoder's last segment is computed for wanted rows only.
func TestCostOfPool(t *testing.T) {
	b := ir.NewBuilder("test", nil)
	b.Vectors(b.Linear(b.Pool(b.Embed("token_embd", 1000, 64)), "dense_2", 32))
	p, err := b.Program(4096)
	require.NoError(t, err)
	c := report.Cost(&ir.Bound{Program: p, Types: make([]quant.Type, 2)}, 0, report.Load{Steps: 1, Rows: 100, Wanted: 3})
	require.InDelta(t, 2*3*64*32, c[ir.SegPool].Ops, 1e-6)
	require.InDelta(t, 4*64*32, c[ir.SegPool].Bytes, 1e-6)
}

func TestCostOfStates(t *testing.T) {
	b := ir.NewBuilder("test", nil)
	x := b.Embed("token_embd", 1000, 64)
	b.Layer(0)
	x = b.SSMScan(x, x, b.CausalConv(x, "conv", 4), b.Slice(x, 0, 4), "a", "dt", "", ir.ScanArgs{Heads: 4, Groups: 1, KDim: 64,
		VDim: 16, Scale: 1})
	b.Logits(b.Linear(b.Rows(x), "output", 1000))
	p, err := b.Program(4096)
	require.NoError(t, err)
	bound := &ir.Bound{Program: p, Types: make([]quant.Type, len(p.Weights))}
	c := report.Cost(bound, 0, report.Load{Steps: 10, Rows: 30, Wanted: 3, Sequences: 20})
	require.InDelta(t, 30*(5*64*64+2*3*64), c[ir.SegMix].Ops, 1e-6)
	require.InDelta(t, 8*20*(64*64+3*64), c[ir.SegMix].Bytes, 1e-6)
}

func TestCommand(t *testing.T) {
	at := report.Placeholders{Model: "/a b/m.gguf", Threads: 2, Prompt: 512, Tokens: 128, Depth: 8192, Seqs: 3}
	name, words, err := report.Command(
		"with AMX: /opt/peer bench -m {model} -t {threads} --x={prompt},{tokens},{depth},{seqs}", at)
	require.NoError(t, err)
	require.Equal(t, "with AMX", name)
	require.Equal(t, []string{"/opt/peer", "bench", "-m", "/a b/m.gguf", "-t", "2", "--x=512,128,8192,3"}, words)
	name, _, err = report.Command("/opt/peer bench", at)
	require.NoError(t, err)
	require.Equal(t, "peer", name)
	_, _, err = report.Command(" ", at)
	require.EqualError(t, err, `" " is no command`)
	_, _, err = report.Command("peer -m {model}", report.Placeholders{})
	require.EqualError(t, err, "{model} is not known for the embedded model: name a file with -m")
	_, _, err = report.Command("peer -p {promt} -m {model}", at)
	require.EqualError(t, err,
		"{promt} is not filled in: want {model}, {threads}, {prompt}, {tokens}, {depth} or {seqs}")
	_, words, err = report.Command(`echo {"n":{tokens}}`, at)
	require.NoError(t, err)
	require.Equal(t, []string{"echo", `{"n":128}`}, words)
}

func TestParsePeer(t *testing.T) {
	for _, c := range []struct{ output, last string }{
		{"loading\n" + `{"prefill_tps":{"runs":[1,2],"median":81.5},"decode_tps":{"median":9.5}}` + "\n", ""},
		{"[info] loading\n" + `{"prefill_tps":81.5,"decode_tps":9.5}`, ""},
		{`{"prefill_tps":81.5,"decode_tps":9.5,"decode_step_tps":-1}`,
			`"{\"prefill_tps\":81.5,\"decode_tps\":9.5,\"decode_step_tps\":-1}"`},
		{`{"prefill_tps":81.5,"decode_tps":9.5}`, ""},
		{`[{"n_prompt":512,"n_gen":0,"avg_ts":81.5},` + "\n" + `{"n_prompt":0,"n_gen":128,"avg_ts":9.5}]`, ""},
		{`{}`, `"{}"`},
		{``, `""`},
		{"what\n\x1b[2J" + strings.Repeat("x", 1000), `"\x1b[2J` + strings.Repeat("x", 76) + `"`},
		{`[{"n_prompt":"x"}]`, `"[{\"n_prompt\":\"x\"}]"`},
	} {
		got, err := report.ParsePeer([]byte(c.output), true)
		if c.last != "" {
			require.EqualError(t, err, "it printed "+c.last+" at its end: want a line of JSON with prefill_tps and "+
				"decode_tps, each above 0, or llama-bench's list (-o json)")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, report.Speeds{Prefill: 81.5, Decode: 9.5}, got)
	}
	got, err := report.ParsePeer([]byte(`{"prefill_tps":1,"decode_tps":2,"decode_step_tps":{"median":3,"p10":2}}`), true)
	require.NoError(t, err)
	require.Equal(t, report.Speeds{Prefill: 1, Decode: 2, Step: 3}, got)
	const vectors = `{"prefill_tps":7,"decode_tps":null}`
	got, err = report.ParsePeer([]byte(vectors), false)
	require.NoError(t, err)
	require.Equal(t, report.Speeds{Prefill: 7}, got)
	_, err = report.ParsePeer([]byte(vectors), true)
	require.ErrorContains(t, err, "want a line of JSON")
}

// FuzzParsePeer: no output of a stranger's program breaks ours.
func FuzzParsePeer(f *testing.F) {
	f.Add([]byte(`{"prefill_tps":{"median":81.5},"decode_tps":9}`))
	f.Add([]byte(`[{"n_prompt":512,"n_gen":0,"avg_ts":1e999}]`))
	f.Fuzz(func(t *testing.T, output []byte) {
		s, err := report.ParsePeer(output, true)
		require.Equal(t, err == nil, s.Prefill > 0 && s.Decode > 0)
	})
}

// TestCopied: what crosses the bus is related to what copies reach.
func TestCopied(t *testing.T) {
	b := report.Bench{Model: "m", Device: "a card", Beside: true, Copied: 9.5e9, Bus: 50e9,
		Points: []report.Point{{Decode: report.Phase{Rate: report.SpreadOf([]float64{4, 5, 6})}}}}
	var text strings.Builder
	require.NoError(t, b.Text(&text))
	require.Contains(t, text.String(), "copied to the device for each token: 9.50 GB; decoding copies 47.5 GB/s, 95 % of the "+
		"50.0 that copies reach\n")
}

// TestExpected: what was measured where weights stream is related to what the plan expects, and stands beside the run
// before, in which slots were filled.
func TestExpected(t *testing.T) {
	b := report.Bench{Model: "m", Device: "a card", Beside: true, Expected: 40,
		Points: []report.Point{{Decode: report.Phase{Rate: report.SpreadOf([]float64{42})}}}}
	var text strings.Builder
	require.NoError(t, b.Text(&text))
	require.Contains(t, text.String(), "the plan expects decoding at 40.0 tokens/s; this is 1.05 times that\n")
	require.NotContains(t, text.String(), "from cold")
	b.Points[0].Cold = &report.Speeds{Prefill: 1234, Decode: 7.89}
	text.Reset()
	require.NoError(t, b.Text(&text))
	require.Contains(t, text.String(), "in the run before, from cold: reading the prompt 1234.0, decoding 7.89 tokens/s\n")
	b.ExpectedCold = 7.5
	text.Reset()
	require.NoError(t, b.Text(&text))
	require.Contains(t, text.String(), "decoding 7.89 tokens/s; the plan expects 7.50, this is 1.05 times that\n")
	b.Expected = 0
	text.Reset()
	require.NoError(t, b.Text(&text))
	require.NotContains(t, text.String(), "expect")
}

// TestBeside: of a device that computes beside the program only the rates are known.
func TestBeside(t *testing.T) {
	b := report.Bench{Model: "m", Device: "a card", Beside: true, ActorsShare: -3, ReadBandwidth: 1e9,
		Points: []report.Point{{Prompt: 1, Generate: 1}}}
	var out strings.Builder
	require.NoError(t, b.Text(&out))
	require.Contains(t, out.String(), "tokens/s")
	for _, unknown := range []string{"actors", "ceilings", "segment"} {
		require.NotContains(t, out.String(), unknown)
	}
}

// TestGaps: what a device waited for stands beside its segments, the longest first, but for what nobody asked for; they
// are shares of one whole.
func TestGaps(t *testing.T) {
	work := report.Work{Steps: 2}
	work.Time[ir.SegMix], work.Time[ir.SegHead] = 6*time.Millisecond, 2*time.Millisecond
	work.Cost[ir.SegMix] = report.Traffic{Bytes: 12e6}
	work.Gaps[trace.Launch], work.Gaps[trace.Host] = 500*time.Microsecond, 1500*time.Microsecond
	work.Gaps[trace.NoWork], work.Gaps[trace.Credit], work.Gaps[trace.Loading] = time.Hour, time.Hour, time.Hour
	p := report.Point{Prompt: 1, Generate: 1}
	p.Compare([]report.Speeds{{1, 1, 1}}, nil, nil)
	p.Decode.Ran(work, 0)
	p.Decode.Ran(work, 0)
	b := report.Bench{Model: "m", Device: "a card", Points: []report.Point{p}}
	b.Relate([]report.Look{{Read: []float64{4e9}}})
	decode := &b.Points[0].Decode
	require.Empty(t, b.Points[0].Prefill.Gaps)
	require.Equal(t, []report.Gap{{Cause: "host", Seconds: 0.75e-3, Share: 0.15}, {Cause: "launch", Seconds: 0.25e-3,
		Share: 0.05}}, decode.Gaps)
	require.InDelta(t, 0.6, decode.Segments[0].Share, 1e-9)
	require.InDelta(t, 0.5, decode.Segments[0].OfBandwidth, 1e-9)
	var text strings.Builder
	require.NoError(t, b.Text(&text))
	require.Regexp(t, `(?m)^decode +0 +1 +gap: host +0\.750 +15\.0 %$`, text.String())
}
