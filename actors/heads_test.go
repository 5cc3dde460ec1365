package actors

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors/devicetest"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/model/arch"
	"github.com/sluice-ai/sluice/stages/model/arch/archtest"
	"github.com/sluice-ai/sluice/stages/model/synth"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// withHeads are small models with a head that is often right: one that attends through a latent vector, with experts,
// and one with recurrent states.
var withHeads = map[string]string{
	"latent": `{"model_type": "deepseek_v3", "num_hidden_layers": 3, "hidden_size": 64, "intermediate_size": 96,
		"num_attention_heads": 4, "kv_lora_rank": 32, "q_lora_rank": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 16,
		"v_head_dim": 16, "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
		"n_shared_experts": 1, "first_k_dense_replace": 1, "norm_topk_prob": true, "vocab_size": 520,
		"max_position_embeddings": 1024, "rms_norm_eps": 1e-5, "num_nextn_predict_layers": 1}`,
	"hybrid": `{"model_type": "qwen3_5_text", "num_hidden_layers": 4, "hidden_size": 64, "intermediate_size": 96,
		"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "linear_conv_kernel_dim": 4,
		"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 16,
		"full_attention_interval": 2, "vocab_size": 520, "max_position_embeddings": 1024, "rms_norm_eps": 1e-5,
		"mtp_num_hidden_layers": 1}`,
}

// headedFile writes one of them.
func headedFile(t testing.TB, name string) string {
	from, err := gguf.Open(fixturePath(t, fixture))
	require.NoError(t, err)
	defer from.Close()
	return headedWith(t, name, from, 520)
}

// headedWith writes one with another's vocabulary.
func headedWith(t testing.TB, name string, from *gguf.File, vocab int) string {
	config, err := synth.Parse([]byte(withHeads[name]))
	require.NoError(t, err)
	config.Vocab = vocab
	md := config.Meta(name)
	require.NoError(t, synth.Vocabulary(md, &from.Meta, config.Vocab))
	var programs []*ir.Program
	for _, head := range []bool{false, true} {
		p, err := arch.Record(md, config.Has, arch.Options{Head: head})
		require.NoError(t, err)
		programs = append(programs, p)
	}
	byName := map[string]*synth.Tensor{}
	var tensors []gguf.Tensor
	for _, x := range config.Tensors(programs...) {
		tensors = append(tensors, gguf.Tensor{Name: x.Name, Type: quant.F32, Shape: x.Shape})
		byName[x.Name] = &x
	}
	filler := synth.Filler{Seed: 1}
	path := filepath.Join(t.TempDir(), name+".gguf")
	file, err := os.Create(path)
	require.NoError(t, err)
	defer file.Close()
	require.NoError(t, gguf.Write(file, md, tensors, func(x *gguf.Tensor, w io.Writer) error {
		return filler.Write(w, byName[x.Name], x.Type)
	}))
	return path
}

// headed has the head of a file guess tokens, alone.
func headed(t testing.TB, path string) func(*Config) {
	return func(c *Config) {
		if c.took = time.Millisecond; c.Speculate {
			f, err := gguf.Open(path)
			require.NoError(t, err)
			c.Draft, c.DraftOnly, c.Heads = f, true, true
		}
	}
}

// Law Unseen, with heads: of a mixture, and of a model with states.
func TestUnseenHeads(t *testing.T) {
	for name := range withHeads {
		t.Run(name, func(t *testing.T) {
			path := headedFile(t, name)
			s := unseenFile(t, path, requestsUnseen(24, 4), headed(t, path))
			require.Equal(t, s.Accepted, s.DraftedRight, "nobody else guesses")
			require.Greater(t, float64(s.DraftedRight), 0.3*float64(s.Drafted))
		})
	}
}

// Law Unseen, with a head beside the text, and too few blocks for all.
func TestUnseenHeadsCrowded(t *testing.T) {
	path := headedFile(t, "latent")
	s := unseenFile(t, path, 16, func(c *Config) {
		headed(t, path)(c)
		c.DraftOnly, c.Blocks, c.Rows = false, 9, 32
	})
	require.Positive(t, s.DraftedRight)
}

// Law Unseen, with a head, where a grammar or tools say what may come.
func TestUnseenHeadsBound(t *testing.T) {
	from, err := gguf.Parse(mini.Name, mini.GGUF)
	require.NoError(t, err)
	path := headedWith(t, "hybrid", from, 8192)
	start := func(guesses bool) *Engine {
		f, err := gguf.Open(path)
		require.NoError(t, err)
		return startFile(t, f, func(c *Config) {
			c.Context, c.Sequences, c.Rows, c.Log, c.Speculate = 1024, 4, 64, zerolog.Nop(), guesses
			headed(t, path)(c)
		})
	}
	all := boundRequests(t)
	boundAs(t, start(true), all, texts{}.learn(t, start(false), all))
}

// TestHeadsIfFit: a head that need not be there is left out where it finds no memory, or where weights would be
// streamed because of it; one that must be there is not.
func TestHeadsIfFit(t *testing.T) {
	path := headedFile(t, "hybrid")
	device := devicetest.Processor(t, "")
	t.Cleanup(func() { require.NoError(t, device.Close()) })
	f, err := gguf.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	m := Model{File: f, KV: backend.KVF16, Context: 512, Sequences: 1, Blocks: 9, Rows: 32, Speculate: true, Draft: f,
		Heads: true, HeadsIfFit: true}
	plan := func(memory, weights int64, spare bool) (planned, error) {
		m.Weights, m.HeadsIfFit = weights, spare
		return fitted([]Model{m}, device.Traits(), memory, nil)
	}
	roomy, err := plan(1<<30, 0, true)
	require.NoError(t, err)
	require.False(t, roomy.less)
	require.Len(t, roomy.specs, 2)
	const few = 1 << 16 // bytes
	full := roomy.specs[0].info.WeightBytes + roomy.specs[1].info.WeightBytes + 2*roomy.plan.SlabBytes()
	scan := func(what string, budget func(bytes int64) (memory, weights int64)) {
		for bytes := full; bytes > 0; bytes -= few { // until the head is too much
			memory, weights := budget(bytes)
			p, err := plan(memory, weights, true)
			require.NoError(t, err, what)
			if !p.less {
				continue
			}
			require.Len(t, p.specs, 1, what)
			require.False(t, p.streams(), what)
			with, err := plan(memory, weights, false)
			require.True(t, err != nil || with.streams() && len(with.specs) == 2, "%s: then nothing runs, or it has its way", what)
			return
		}
		t.Error(what, "the head is never too much")
	}
	scan("a budget for weights", func(bytes int64) (int64, int64) { return 1 << 30, bytes })
	scan("memory", func(bytes int64) (int64, int64) { return bytes + roomy.plan.Models[0].Takes[0].KV, 0 })
}

// TestHeadsDraw: a head draws by the number by which its target will, at the token's place in the whole text.
func TestHeadsDraw(t *testing.T) {
	path := headedFile(t, "hybrid")
	for name, device := range map[string]func(*testing.T) backend.Device{
		"processor": func(t *testing.T) backend.Device { return newDevice(t) },
		"card":      func(t *testing.T) backend.Device { return devicetest.Played(t) },
	} {
		if testing.Short() && name == "card" {
			continue // it is slow
		}
		t.Run(name, func(t *testing.T) {
			f, err := gguf.Open(path)
			require.NoError(t, err)
			e := startFile(t, f, func(c *Config) {
				c.Speculate, c.Device = true, device(t)
				headed(t, path)(c)
			})
			for n := uint64(0); e.Snapshot().Drafted < 150; n++ {
				require.Less(t, n, uint64(200), "nothing is guessed")
				r := plain(prompts(1)[0], 60)
				r.Sampling.Temp, r.Sampling.TopK, r.Sampling.Seed = 2, 20, n
				spelled(t, begin(t, e, r))
			}
			s := e.Snapshot()
			t.Logf("%d of %d are right", s.DraftedRight, s.Drafted)
			require.Greater(t, float64(s.DraftedRight), 0.26*float64(s.Drafted))
		})
	}
}

// What a head leaves in its cache depends on more than tokens: nobody else finds it there.
func TestHeadsShareNothing(t *testing.T) {
	d := drafting{by: &drafter{head: true, ids: new(atomic.Uint64)}}
	h := &sequence{of: &asked{}, hidden: newHidden(1)}
	h.Terms, h.Tokens = &batch.Terms{MaxLen: 9}, []int32{5, 6, 7, 8}
	h.hidden.put(1, []float32{1, 2})
	one, other := d.newDraft(h), d.newDraft(h)
	require.NotEqual(t, one.asks.Salt, other.asks.Salt)
	require.Equal(t, []int32{7, 8}, one.seq.Tokens)
	require.True(t, one.seq.Anew)
}

// TestHidden: what is kept of hidden states is the newest without a gap, and what is written again counts from there.
func TestHidden(t *testing.T) {
	h := newHidden(1)
	put := func(pos, n int) {
		rows := make([]float32, n)
		for i := range rows {
			rows[i] = float32(pos + i)
		}
		h.put(pos, rows)
	}
	require.Zero(t, h.before(1))
	put(100, 5)
	require.Equal(t, 5, h.before(105))
	require.Zero(t, h.before(106), "it is not there yet")
	require.Zero(t, h.before(100))
	put(105, 3)
	require.Equal(t, 8, h.before(108))
	put(106, 1) // a guess was wrong
	require.Equal(t, 7, h.before(107))
	require.Zero(t, h.before(108))
	put(107, 3*mostHidden)
	end := 107 + 3*mostHidden
	require.Equal(t, mostHidden, h.before(end))
	for pos := end - mostHidden; pos < end; pos++ {
		require.Equal(t, []float32{float32(pos)}, h.at(pos))
	}
	put(end+7, 2) // a gap: a prompt's middle came from the cache
	require.Equal(t, 2, h.before(end+9))
	put(3, 4) // it is computed from the start again
	require.Equal(t, 4, h.before(7))
	x := heard{base: 4}
	x.listen(h, 4, 8)
	require.Equal(t, []float32{3, 4, 5, 6}, x.rows)
	require.Equal(t, []float32{5}, x.row(2, 1))
	require.Nil(t, x.row(4, 1))
}

// Law Unseen, with a head on a card that draws tokens itself.
func TestUnseenHeadsOnCard(t *testing.T) {
	if testing.Short() {
		t.Skip("a card that is played is slow")
	}
	path := headedFile(t, "hybrid")
	s := unseenFile(t, path, 8, func(c *Config) {
		headed(t, path)(c)
		c.Device = devicetest.Played(t)
	})
	require.Greater(t, float64(s.DraftedRight), 0.4*float64(s.Drafted))
}

// overheard is a device that notes what a head is given, and what it leaves.
type overheard struct {
	backend.Device
	rows *[]overheardRow
}

type overheardRow struct {
	token       int32
	pos         int
	target, own []float32 // nil: zeros
	left        []float32
}

func (d overheard) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	m, err := d.Device.Compile(p, c)
	own, ok := p.Input(arch.OwnRows)
	if err != nil || !ok || c.Counted {
		return m, err
	}
	target, _ := p.Input(arch.TargetRows)
	return &overheardModel{m, d.rows, target, own, nil}, nil
}

type overheardModel struct {
	backend.Model
	rows        *[]overheardRow
	target, own ir.Value
	given       []float32
}

func (m *overheardModel) In(v ir.Value, s *backend.Step, rows []float32) error {
	if v == m.target {
		m.given = slices.Clone(rows)
		return m.Model.In(v, s, rows)
	}
	some := func(all []float32, r int) []float32 {
		width := len(all) / s.Rows()
		x := all[r*width:][:width]
		if slices.ContainsFunc(x, func(f float32) bool { return f != 0 }) {
			return slices.Clone(x)
		}
		return nil
	}
	for _, span := range s.Spans {
		for r := range span.Rows {
			at := span.Row + r
			*m.rows = append(*m.rows, overheardRow{token: s.Tokens[at], pos: span.Pos + r, target: some(m.given, at),
				own: some(rows, at)})
		}
	}
	return m.Model.In(v, s, rows)
}

func (m *overheardModel) Out(v ir.Value, s *backend.Step, rows []float32) error {
	err := m.Model.Out(v, s, rows)
	n := s.Rows()
	for r := range n {
		(*m.rows)[len(*m.rows)-n+r].left = slices.Clone(rows[r*(len(rows)/n):][:len(rows)/n])
	}
	return err
}

// TestHeadsHear: beside a token of the text a head is given the hidden state that the trunk had before it, to the bit,
// and beside one that it has guessed its own.
func TestHeadsHear(t *testing.T) {
	for name := range withHeads {
		t.Run(name, func(t *testing.T) {
			path := headedFile(t, name)
			hears(t, path, headed(t, path), func(segments int) []int { return []int{segments - 2} })
		})
	}
}

// hears runs a model with a head, and compares what that is given with hidden states after these segments, of as many.
func hears(t *testing.T, path string, head func(*Config), after func(segments int) []int) {
	f, err := gguf.Open(path)
	require.NoError(t, err)
	trunk := archtest.Model(t, f)
	var rows []overheardRow
	e := startFile(t, f, func(c *Config) {
		c.Speculate, c.KV, c.Device = true, backend.KVF16, overheard{c.Device, &rows}
		head(c)
	})
	prompt := append(slices.Clone(prompts(1)[0]), 7, 9, 11)
	r := plain(prompt, 180-len(prompt))
	text := append(slices.Clone(prompt), ids(t, begin(t, e, r))...)
	for n := 0; n == 0 || e.Snapshot().Drafted < 30; n++ {
		require.Less(t, n, 40, "nothing is guessed")
		require.Equal(t, text[len(prompt):], ids(t, begin(t, e, r)))
	}
	shut(t, e)
	want := hiddenOf(t, trunk, text, after(len(trunk.Segments))...)
	base, told, own := 0, 0, 0
	for i, row := range rows {
		require.False(t, row.target != nil && row.own != nil, "one of both")
		if row.own != nil {
			require.Equal(t, rows[i-1].left, row.own)
			own++
			continue
		}
		if row.pos == 0 {
			base = slices.IndexFunc(want, func(h []float32) bool { return slices.Equal(h, row.target) })
			require.GreaterOrEqual(t, base, 0, "row %d is no hidden state of the text", i)
		}
		require.Equal(t, text[base+row.pos+1], row.token)
		require.Equal(t, want[base+row.pos], row.target, "position %d", row.pos)
		told++
	}
	require.Positive(t, told)
	require.Positive(t, own)
}

// ids is the tokens of an answer.
func ids(t *testing.T, s *Stream) (all []int32) {
	defer s.Close()
	for {
		var x Event
		if err := s.Next(t.Context(), &x); err != nil {
			require.ErrorIs(t, err, io.EOF)
			return all
		}
		all = append(all, x.Token)
	}
}

// hiddenOf computes the hidden states of a text, after several segments side by side.
func hiddenOf(t *testing.T, m *backendtest.Model, text []int32, after ...int) [][]float32 {
	x := backendtest.Run(t, newDevice(t), m, len(text))
	s := x.Steps()[0]
	s.Tokens = text
	s.Spans = []backend.Span{{Rows: len(text), Tables: backendtest.Tables(m.Program, []int32{2, 0, 1})}}
	rows, all := make([]float32, len(text)*m.Width), make([][]float32, len(text))
	for i := range m.Segments {
		require.NoError(t, backend.Enqueue(x, i, s))
		if slices.Contains(after, i) {
			require.NoError(t, x.Out(m.Segments[i].Stream(), s, rows))
			for r := range text {
				all[r] = append(all[r], rows[r*m.Width:][:m.Width]...)
			}
		}
	}
	done := make(chan error, 1)
	x.Finish(s, func(err error) { done <- err })
	require.NoError(t, <-done)
	return all
}
