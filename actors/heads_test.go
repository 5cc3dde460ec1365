package actors

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors/devicetest"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
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
	config, err := synth.Parse([]byte(withHeads[name]))
	require.NoError(t, err)
	md := config.Meta(name)
	from, err := gguf.Open(fixturePath(t, fixture))
	require.NoError(t, err)
	defer from.Close()
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
	require.Positive(t, s.DraftedRight)
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
	return &overheardModel{m, d.rows, target, own, p.Width, nil}, nil
}

type overheardModel struct {
	backend.Model
	rows        *[]overheardRow
	target, own ir.Value
	width       int
	given       []float32
}

func (m *overheardModel) In(v ir.Value, s *backend.Step, rows []float32) error {
	if v == m.target {
		m.given = slices.Clone(rows)
		return m.Model.In(v, s, rows)
	}
	some := func(all []float32, r int) []float32 {
		x := all[r*m.width:][:m.width]
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
		(*m.rows)[len(*m.rows)-n+r].left = slices.Clone(rows[r*m.width:][:m.width])
	}
	return err
}

// TestHeadsHear: beside a token of the text a head is given the hidden state that the trunk had before it, to the bit,
// and beside one that it has guessed its own.
func TestHeadsHear(t *testing.T) {
	for name := range withHeads {
		t.Run(name, func(t *testing.T) {
			path := headedFile(t, name)
			f, err := gguf.Open(path)
			require.NoError(t, err)
			trunk := archtest.Model(t, f)
			var rows []overheardRow
			e := startFile(t, f, func(c *Config) {
				c.Speculate, c.KV, c.Device = true, backend.KVF16, overheard{c.Device, &rows}
				headed(t, path)(c)
			})
			prompt := append(slices.Clone(prompts(1)[0]), 7, 9, 11)
			r := plain(prompt, 180-len(prompt))
			text := append(slices.Clone(prompt), ids(t, begin(t, e, r))...)
			for n := 0; e.Snapshot().Drafted < 30; n++ {
				require.Less(t, n, 40, "nothing is guessed")
				require.Equal(t, text[len(prompt):], ids(t, begin(t, e, r)))
			}
			shut(t, e)
			want := hiddenOf(t, trunk, text)
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
		})
	}
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

// hiddenOf computes the hidden states of a text.
func hiddenOf(t *testing.T, m *backendtest.Model, text []int32) (all [][]float32) {
	x := backendtest.Run(t, newDevice(t), m, len(text))
	s := x.Steps()[0]
	s.Tokens = text
	s.Spans = []backend.Span{{Rows: len(text), Tables: backendtest.Tables(m.Program, []int32{2, 0, 1})}}
	rows := make([]float32, len(text)*m.Width)
	for i := range m.Segments {
		require.NoError(t, backend.Enqueue(x, i, s))
		if i == len(m.Segments)-2 {
			require.NoError(t, x.Out(m.Segments[i].Stream(), s, rows))
		}
	}
	done := make(chan error, 1)
	x.Finish(s, func(err error) { done <- err })
	require.NoError(t, <-done)
	for r := range text {
		all = append(all, rows[r*m.Width:][:m.Width])
	}
	return all
}
