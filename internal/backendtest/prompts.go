package backendtest

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/judge"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/internal/testref"
)

// Prompts returns d with Step.Prompt set in all steps: see backend.Traits.Apart.
func Prompts(d backend.Device) backend.Device { return prompts{d} }

type prompts struct{ backend.Device }

func (d prompts) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	m, err := d.Device.Compile(p, c)
	if err != nil {
		return nil, err
	}
	for _, s := range m.Steps() {
		s.Prompt = true // nobody here says otherwise
	}
	return m, nil
}

// PromptLaws checks the laws on a device that computes prompts of such matrices apart: by bits, logits of prompts are
// the same in any chunks and beside any others. They only have to be near those of answers, relative to their size.
func PromptLaws(t *testing.T, d backend.Device, matrixTypes []quant.Type, tolerance float64) {
	s := small{layers: 1, width: 64, ffn: 96, vocab: 51, heads: 2, kvHeads: 1, head: 32}
	for _, f := range models {
		if f.name != "gemma" && f.name != "starcoder" { // with gates and without, with biases and without
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			p, err := f.record(s)
			require.NoError(t, err)
			m, err := made(judge.Random(p, 9, inTurn(matrixTypes)))
			require.NoError(t, err)
			require.True(t, d.Traits().Apart(m.Bound))
			answers, prompts := newLawful(t, d, m), newLawful(t, Prompts(d), m)
			chunks := prompts.sequence(t, prompts.tokens, []int32{7, 2, 9}, 5, 60, 1, 3, len(prompts.tokens))
			sameBits(t, "in chunks", m.OutputWidth(), chunks, prompts.want)
			prompts.beside(t)
			apart := judge.Relative(prompts.want, answers.want)
			t.Logf("%.2g apart", apart)
			require.Positive(t, apart)
			require.LessOrEqual(t, apart, tolerance)
		})
	}
}

// PromptFixtures runs the models of Fixtures, as open makes them, on a device that computes prompts apart: logits of
// prompts must be near those of answers, relative to their size, and be followed by the same greedy tokens. For models
// with states, which add up rounding errors, near is twice as far.
func PromptFixtures(t *testing.T, d backend.Device, open Loader, tolerance float64) {
	dir := filepath.Join(testref.Dir(t), "fixtures")
	for _, v := range variants {
		if v.edit != nil || v.blocks { // nothing new, or computed in one way
			continue
		}
		t.Run(v.name, func(t *testing.T) {
			f, m := readFixture(t, filepath.Join(dir, v.name+".json")), open(t, filepath.Join(dir, v.name+".gguf"), nil)
			require.True(t, d.Traits().Apart(m.Bound))
			tolerance := tolerance
			if len(m.Program.States) > 0 {
				tolerance *= 2
			}
			apart := judge.Relative(Logits(t, Prompts(d), m, f.Tokens), Logits(t, d, m, f.Tokens))
			t.Logf("%.2g apart, of %.2g", apart, tolerance)
			require.Positive(t, apart)
			require.LessOrEqual(t, apart, tolerance)
			f.greedy(t, d, m)
		})
	}
}
