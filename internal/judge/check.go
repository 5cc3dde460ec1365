package judge

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// Result says how a part of a device compares with the oracle.
type Result struct {
	Cases int     // that were compared
	Left  int     // that the device leaves to another one, as it has no kernel for them
	Wrong []error // the first difference of each case that is too far, with the case's name
}

// errLeft says that a device has no kernel for a program.
var errLeft = errors.New("the device has no kernel for it")

// add makes a check and counts it. A device that panics has failed it. Once ctx has
// ended, no more checks are made.
func (r *Result) add(ctx context.Context, name string, check func() error) {
	if ctx.Err() != nil {
		return
	}
	err := func() (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("it panicked: %v", p)
			}
		}()
		return check()
	}()
	switch {
	case errors.Is(err, errLeft):
		r.Left++
		return
	case err != nil:
		r.Wrong = append(r.Wrong, fmt.Errorf("%s: %w", name, err))
	}
	r.Cases++
}

// Ops compares every op in each of its cases, over more positions than a block of a cache holds.
func Ops(ctx context.Context, d, oracle backend.Device) (r Result) {
	tokens := prompt(4, backend.BlockSize+13, CaseWidth)
	for _, op := range ir.Ops() {
		for _, c := range op.Cases() {
			r.add(ctx, fmt.Sprintf("%s, %s", op, c.Name), func() error {
				m, err := OfCase(c)
				if err != nil {
					return err
				}
				return m.compare(d, oracle, backend.KVF32, tokens, OpBound)
			})
		}
	}
	return r
}

// Products compares products with a matrix of each type.
func Products(ctx context.Context, d, oracle backend.Device, types []quant.Type) (r Result) {
	const vocab, cols, rows = 256, 256, 29 // 256 is a block of K-quants
	tokens := prompt(5, rows, vocab)
	for _, typ := range types {
		r.add(ctx, typ.String(), func() error {
			m, err := Product(typ, vocab, cols)
			if err != nil {
				return err
			}
			bound, err := ProductBounds(m, typ, tokens)
			if err != nil {
				return err
			}
			return m.near(d, oracle, backend.KVF32, tokens, func(i int, _ float32) float64 { return bound(i) })
		})
	}
	return r
}

// Attentions compares attention in each shape that models have, over caches of each of some types.
func Attentions(ctx context.Context, d, oracle backend.Device, caches []backend.KV) (r Result) {
	for _, h := range AllHeads() {
		for _, kv := range caches {
			r.add(ctx, fmt.Sprintf("heads of %d, %d for each of %d, cache of %s", h.Dim, h.Group, h.KVHeads, kv), func() error {
				m, err := Attention(h)
				if err != nil {
					return err
				}
				return m.compare(d, oracle, kv, prompt(4, backend.BlockSize+9, h.Width()), AttentionBound(d, kv))
			})
		}
	}
	return r
}

// compare is near with bounds by what the oracle has.
func (m *Model) compare(d, oracle backend.Device, kv backend.KV, tokens []int32,
	bound func(want float32) float64) error {

	return m.near(d, oracle, kv, tokens, func(_ int, want float32) float64 { return bound(want) })
}

// near runs tokens on a device and on the oracle, and reports the first logit that is farther apart than its bound. The
// device computes them a second time, in a few steps and one by one, which other kernels may do: a row's bits depend
// on nothing but the row.
func (m *Model) near(d, oracle backend.Device, kv backend.KV, tokens []int32,
	bound func(i int, want float32) float64) error {

	if lacks := d.Traits().Lacks; lacks != nil && lacks(m.Program) != nil {
		return errLeft
	}
	got, err := m.Logits(d, kv, tokens, len(tokens))
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return errLeft
	case err != nil:
		return err
	}
	want, err := m.Logits(oracle, kv, tokens, len(tokens))
	if err != nil {
		return fmt.Errorf("the oracle: %w", err)
	}
	width := m.OutputWidth()
	for i := range got {
		if diff := math.Abs(float64(got[i]) - float64(want[i])); !(diff <= bound(i, want[i])) {
			return fmt.Errorf("row %d, feature %d: %v, the oracle has %v: %.3g apart, want at most %.3g", i/width, i%width,
				got[i], want[i], diff, bound(i, want[i]))
		}
	}
	if m.Whole { // a part of its texts cannot be computed
		return nil
	}
	again, err := m.Logits(d, kv, tokens, len(tokens)-12, 4, 3, 1)
	if err != nil {
		return err
	}
	for i := range again {
		if math.Float32bits(again[i]) != math.Float32bits(got[i]) {
			return fmt.Errorf("row %d, feature %d: %v among other rows, %v among fewer: want the same bits", i/width, i%width,
				got[i], again[i])
		}
	}
	return nil
}

// prompt is n tokens below vocab.
func prompt(seed uint64, n, vocab int) []int32 {
	rng := rand.New(rand.NewPCG(seed, 2))
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = int32(rng.IntN(vocab))
	}
	return tokens
}

// Relative is the root mean square of the differences, divided by that of want.
func Relative(got, want []float32) float64 {
	diff, size := 0.0, 0.0
	for i := range want {
		d := float64(got[i]) - float64(want[i])
		diff += d * d
		size += float64(want[i]) * float64(want[i])
	}
	if size == 0 || math.IsNaN(diff) {
		return math.Inf(1)
	}
	return math.Sqrt(diff / size)
}
