package kernel

import (
	"errors"
	"fmt"
)

// Extra says what is added to the results of a product.
type Extra uint32

// Extras, which are bits.
const (
	AddBias     Extra = 1
	AddResidual Extra = 2
)

// Extras is what m adds to its results: bias and residual, if they have addresses.
func (m *MatVec) Extras() (bits Extra) {
	if m.Bias != 0 {
		bits |= AddBias
	}
	if m.Residual != 0 {
		bits |= AddResidual
	}
	return bits
}

// ColumnsAtOnce is how many columns a workgroup of a mat-vec takes.
func (m *MatVec) ColumnsAtOnce() int { return min(m.Columns, MaxColumns) }

// Summed is how many experts' results a workgroup adds up; 1: it adds none.
func (m *MatVec) Summed() int {
	if m.Experts == nil || m.Experts.Shares == 0 {
		return 1
	}
	return m.Experts.Share
}

// Grouping says which columns a group of a mat-vec's workgroups computes.
type Grouping uint32

// Groupings, numbered as kernels know them.
const (
	OneGroup  Grouping = iota // all of them
	ByColumns                 // those from the group's number times ColumnsAtOnce on
	ByPair                    // one: a row with one of its experts
	ByEntry                   // those of an entry of Group
	BySum                     // one: a row with all of its experts, which are summed
)

// Grouping is how the pairs of a choice are divided among groups of workgroups.
func (c *Choice) Grouping() Grouping {
	switch {
	case c.Shares != 0:
		return BySum
	case c.Grouped > 0:
		return ByEntry
	}
	return ByPair
}

// Check returns an error for arguments that no kernel can compute with.
func (m *MatVec) Check() error {
	switch {
	case m.Columns < 1:
		return errors.New("no columns")
	case m.Experts != nil && m.Columns != m.Experts.Columns():
		return fmt.Errorf("experts take %d columns, want %d", m.Columns, m.Experts.Columns())
	case m.Experts != nil && (m.Gain != 0 && m.Experts.Grouped > 0 || m.Residual != 0 && m.Experts.Shares == 0):
		return errors.New("gathered rows have no norm, and experts no residual unless they are summed")
	case m.Summed() > 1 && (m.Experts.Grouped > 0 || m.Gain != 0 || m.W.Pair || m.Tiles > 1):
		return errors.New("experts are summed row by row, without a norm, of one matrix each")
	case m.Bias == 0 && m.UpBias != 0 || m.Bias != 0 && m.W.Pair != (m.UpBias != 0):
		return errors.New("a pair of matrices has two biases or none")
	case (m.Glue != Store) != m.W.Pair:
		return errors.New("a pair of matrices, and no other, needs a glue")
	case m.W.Pair && m.RowTilesAtOnce() != 2:
		return errors.New("a pair of matrices is two tiles")
	case m.W.Float && m.Gain == 0 && m.Columns > 1 && m.XStride != PaddedWidth(m.W.Cols):
		return fmt.Errorf("rows of activations are %d values apart, want %d", m.XStride, PaddedWidth(m.W.Cols))
	case m.XStride%4 != 0:
		return fmt.Errorf("rows of %d values do not begin at multiples of 16 bytes", m.XStride)
	}
	return nil
}
