package judge_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/judge"
	"github.com/sluice-ai/sluice/internal/quant"
)

// odd is a device that computes as the oracle does, but for one fault.
type odd struct {
	backend.Device
	lacks   error
	compile func(p *ir.Bound) error
	finish  func(s *backend.Step)
}

func (d odd) Traits() backend.Traits {
	t := d.Device.Traits()
	if d.lacks != nil {
		t.Lacks = func(*ir.Program) error { return d.lacks }
	}
	return t
}

func (d odd) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	if d.compile != nil {
		if err := d.compile(p); err != nil {
			return nil, err
		}
	}
	m, err := d.Device.Compile(p, c)
	return oddModel{m, d.finish}, err
}

type oddModel struct {
	backend.Model
	finish func(s *backend.Step)
}

func (m oddModel) Finish(s *backend.Step, done func(error)) {
	if m.finish != nil {
		m.finish(s)
	}
	m.Model.Finish(s, done)
}

// TestFaultsAreSeen: a device that is off by a little, that computes rows otherwise when they are alone, that refuses,
// or that panics, has failed; what it leaves to others is no failure, and one that computes as the oracle has none.
func TestFaultsAreSeen(t *testing.T) {
	types := []quant.Type{quant.F32, quant.Q8_0}
	for _, c := range []struct {
		name, want  string
		left, wrong int
		d           odd
	}{
		{name: "none"},
		{name: "leaves", left: 2, d: odd{lacks: errors.New("no kernel")}},
		{name: "off", wrong: 2, want: "apart, want at most", d: odd{finish: func(s *backend.Step) { s.Logits[3] += 0.5 }}},
		{name: "alone", wrong: 2, want: "among fewer: want the same bits", d: odd{finish: func(s *backend.Step) {
			if len(s.Tokens) == 1 {
				s.Logits[0] *= 1 + 1e-6
			}
		}}},
		{name: "refuses", wrong: 2, want: "F32: out of room", d: odd{compile: func(*ir.Bound) error {
			return errors.New("out of room")
		}}},
		{name: "panics", wrong: 2, want: "it panicked: nil map", d: odd{compile: func(*ir.Bound) error { panic("nil map") }}},
	} {
		t.Run(c.name, func(t *testing.T) {
			oracle := ref.New()
			c.d.Device = oracle
			r := judge.Products(t.Context(), c.d, oracle, types)
			require.Equal(t, c.left, r.Left)
			require.Equal(t, len(types)-c.left, r.Cases)
			require.Len(t, r.Wrong, c.wrong)
			if c.want != "" {
				require.ErrorContains(t, r.Wrong[0], c.want)
			}
		})
	}
}
