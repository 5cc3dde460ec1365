package actors

import (
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors/devicetest"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/model/arch"
	"github.com/sluice-ai/sluice/stages/model/synth"
	"github.com/sluice-ai/sluice/stages/sample"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// eagleFile writes a head of EAGLE-3 for a model of 520 tokens and 64 features, which takes hidden states before these
// layers. It has neither a vocabulary nor matrices for tokens; or, if it knows three of four tokens only, the rows of
// its target's output matrix for these.
func eagleFile(t testing.TB, target string, layers []int32, few bool) string {
	config, err := synth.Parse([]byte(`{"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 64,
		"intermediate_size": 96, "num_attention_heads": 4, "vocab_size": 520, "max_position_embeddings": 1024,
		"rms_norm_eps": 1e-5, "draft_vocab_size": 390}`))
	require.NoError(t, err)
	md := config.Meta("eagle")
	if layers != nil {
		md.Set(arch.EagleLayers, layers)
	}
	var known []int32
	for id := int32(0); few && id < 520; id++ {
		if id%4 != 3 {
			known = append(known, id)
		}
	}
	program, err := arch.Record(md, config.Has, arch.Options{Known: known})
	require.NoError(t, err)
	from, err := gguf.Open(target)
	require.NoError(t, err)
	defer from.Close()
	values := map[string]*synth.Tensor{}
	var tensors []gguf.Tensor
	for _, x := range config.Tensors(program) {
		if x.Name == "token_embd.weight" || x.Name == "output.weight" && !few {
			continue
		}
		values[x.Name] = &x
		tensors = append(tensors, gguf.Tensor{Name: x.Name, Type: quant.F32, Shape: x.Shape})
	}
	if few {
		tensors = append(tensors, gguf.Tensor{Name: arch.EagleKnown, Type: quant.I64, Shape: []int{len(known)}})
	}
	filler := synth.Filler{Seed: 3}
	path := filepath.Join(t.TempDir(), "eagle.gguf")
	file, err := os.Create(path)
	require.NoError(t, err)
	defer file.Close()
	require.NoError(t, gguf.Write(file, md, tensors, func(x *gguf.Tensor, w io.Writer) error {
		switch x.Name {
		case arch.EagleKnown:
			return binary.Write(w, binary.LittleEndian, widened(known))
		case "output.weight":
			return writeRows(w, from, known)
		}
		return filler.Write(w, values[x.Name], x.Type)
	}))
	return path
}

func widened(ids []int32) (wide []int64) {
	for _, id := range ids {
		wide = append(wide, int64(id))
	}
	return wide
}

// writeRows writes rows of the output matrix of a file, which may be its embeddings.
func writeRows(w io.Writer, from *gguf.File, ids []int32) error {
	output, ok := from.Tensor("output.weight")
	if !ok {
		output, _ = from.Tensor("token_embd.weight")
	}
	return from.View(output, func(data []byte) error {
		row := 4 * output.Shape[0]
		for _, id := range ids {
			if _, err := w.Write(data[int(id)*row:][:row]); err != nil {
				return err
			}
		}
		return nil
	})
}

// eagled has such a head guess tokens, alone.
func eagled(t testing.TB, path string) func(*Config) {
	return func(c *Config) {
		if c.took = time.Millisecond; c.Speculate {
			f, err := gguf.Open(path)
			require.NoError(t, err)
			c.Draft, c.DraftOnly = f, true
		}
	}
}

// Law Unseen, with EAGLE-3: for a mixture and for a model with states, with all tokens and with some.
func TestUnseenEagle(t *testing.T) {
	for _, c := range []struct {
		target string
		layers []int32
		few    bool
	}{{"latent", []int32{0, 1, 3}, false}, {"hybrid", []int32{1, 2, 3}, true}} {
		t.Run(c.target, func(t *testing.T) {
			path := headedFile(t, c.target)
			s := unseenFile(t, path, requestsUnseen(24, 4), eagled(t, eagleFile(t, path, c.layers, c.few)))
			t.Logf("%d of %d are right", s.DraftedRight, s.Drafted)
			require.Equal(t, s.Accepted, s.DraftedRight, "nobody else guesses")
			require.Greater(t, float64(s.DraftedRight), 0.2*float64(s.Drafted))
		})
	}
}

// Law Unseen, with EAGLE-3 that knows some tokens only, on a card: that draws for the target itself, and not for a head
// whose logits are in an order of their own.
func TestUnseenEagleOnCard(t *testing.T) {
	if testing.Short() {
		t.Skip("a card that is played is slow")
	}
	path := headedFile(t, "hybrid")
	s := unseenFile(t, path, 8, func(c *Config) {
		eagled(t, eagleFile(t, path, []int32{1, 2, 3}, true))(c)
		c.Device = devicetest.Played(t)
	})
	require.Greater(t, float64(s.DraftedRight), 0.2*float64(s.Drafted))
}

// TestEagleFits: what makes a head of no use for a model is said, and it does not run alone.
func TestEagleFits(t *testing.T) {
	path := headedFile(t, "latent")
	open := func(path string) *gguf.File {
		f, err := gguf.Open(path)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, f.Close()) })
		return f
	}
	target := open(path)
	require.NoError(t, Fits(target, open(eagleFile(t, path, []int32{0, 1, 3}, false))))
	for _, c := range []struct {
		layers []int32
		want   string
	}{{[]int32{0, 1, 4}, "before layers [0 1 4]: want ascending numbers up to 3"}, {[]int32{1, 1, 2}, "before layers [1 1 2]"},
		{[]int32{-1, 1, 2}, "before layers [-1 1 2]"}, {nil, "before layers [2 1 0]"},
		{[]int32{0, 1}, "from 192 features of its target, and the 2 hidden states"}} {
		require.ErrorContains(t, Fits(target, open(eagleFile(t, path, c.layers, false))), c.want)
	}
	device := devicetest.Processor(t, "")
	t.Cleanup(func() { require.NoError(t, device.Close()) })
	alone := open(eagleFile(t, path, nil, true))
	lend(target, alone)
	_, err := fitted([]Model{{File: alone, KV: backend.KVF16}}, device.Traits(), 1<<30, nil)
	require.ErrorContains(t, err, "only guesses tokens for another model (eagle3): name that one, and this one by --draft")
}

// TestEagleHears: beside a token of the text EAGLE-3 is given the hidden states that its target had before it, before
// the first layer, before the second one and after the last one, side by side.
func TestEagleHears(t *testing.T) {
	path := headedFile(t, "latent") // its layers after the first end with experts
	hears(t, path, eagled(t, eagleFile(t, path, []int32{0, 1, 3}, false)), func(segments int) []int {
		return []int{0, 2, segments - 2}
	})
}

// TestEagleDraws: a head whose logits are in an order of their own draws without what names tokens or counts them.
func TestEagleDraws(t *testing.T) {
	d := drafting{by: &drafter{few: true, ids: new(atomic.Uint64)}}
	h := &sequence{of: &asked{}}
	h.Terms, h.Tokens = &batch.Terms{MaxLen: 9}, []int32{5, 6}
	h.of.Sampling = sample.Params{Seed: 3, Temp: 0.5, Bias: []sample.Bias{{ID: 400, Add: 1}}, IgnoreEOG: []int32{400},
		RepeatPenalty: 2, FrequencyPenalty: 1, PresencePenalty: 1, DRY: sample.DRY{Multiplier: 1, Base: 2}}
	want := sample.Params{Seed: 3, Temp: 0.5, RepeatPenalty: 1, DRY: sample.DRY{Base: 2}, LogProbs: -1}
	require.Equal(t, want, d.newDraft(h).asks.Sampling)
	d.by.few = false
	require.Len(t, d.newDraft(h).asks.Sampling.Bias, 1)
}

// TestEagleDrawsOnTheHost: a card that draws tokens does so for a model and for a head that knows all of them; not for
// one whose logits are in an order of their own, by whose columns its next step would go on.
func TestEagleDrawsOnTheHost(t *testing.T) {
	path, card := headedFile(t, "latent"), devicetest.Played(t)
	t.Cleanup(func() { require.NoError(t, card.Close()) })
	for _, few := range []bool{false, true} {
		target, err := gguf.Open(path)
		require.NoError(t, err)
		draft, err := gguf.Open(eagleFile(t, path, []int32{0, 1, 3}, few))
		require.NoError(t, err)
		p, err := fitted([]Model{{File: target, KV: backend.KVF16, Context: 512, Sequences: 1, Rows: 32, Speculate: true,
			Draft: draft}}, card.Traits(), 1<<30, nil)
		require.NoError(t, err)
		require.True(t, p.specs[0].limits.Draws)
		require.Equal(t, !few, p.specs[1].limits.Draws)
		require.NoError(t, draft.Close())
		require.NoError(t, target.Close())
	}
}

// TestKnownTokens: tokens that no number of a token can be are refused.
func TestKnownTokens(t *testing.T) {
	write := func(ids ...int64) *gguf.File {
		var out strings.Builder
		require.NoError(t, gguf.Write(&out, new(meta.Map), []gguf.Tensor{{Name: "d2t", Type: quant.I64, Shape: []int{len(ids)}}},
			func(_ *gguf.Tensor, w io.Writer) error { return binary.Write(w, binary.LittleEndian, ids) }))
		f, err := gguf.Parse("d2t", []byte(out.String()))
		require.NoError(t, err)
		return f
	}
	known, err := knownTokens(write(0, 5, 3))
	require.NoError(t, err)
	require.True(t, slices.Equal([]int32{0, 5, 3}, known))
	_, err = knownTokens(write(0, 1<<32))
	require.ErrorContains(t, err, "value 1 is 4294967296, want a token's number")
}
