package lora

import (
	"io"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
)

// Output is a tensor of the GGUF file that an adapter becomes.
type Output struct {
	Name  string
	Shape []int // of ggml: Shape[0] is the length of a row

	of    *Change
	fold  bool // B is multiplied by the change's scale
	first bool // it is A
}

// Outputs are the metadata and the tensors of the GGUF file that an adapter of a model of this architecture becomes.
// Such a file has one number for all scales: where these differ they are multiplied into the second factors.
func (a *Adapter) Outputs(arch string) (*meta.Map, []Output) {
	alpha := float32(0)
	if len(a.Changes) > 0 {
		alpha = a.Changes[0].Scale * float32(a.Changes[0].rank())
	}
	for i := range a.Changes {
		if c := &a.Changes[i]; float32(float64(alpha)/float64(c.rank())) != c.Scale {
			alpha = 0
		}
	}
	m := &meta.Map{}
	m.Set("general.architecture", arch)
	m.Set("general.type", "adapter")
	m.Set("adapter.type", "lora")
	m.Set("adapter.lora.alpha", alpha)
	var all []Output
	for i := range a.Changes {
		c := &a.Changes[i]
		first := []int{c.in(), c.rank()}
		if c.Matrix == tokens {
			first = []int{c.rank(), c.in()}
		}
		all = append(all, Output{Name: c.Matrix + ".weight.lora_a", Shape: first, of: c, first: true},
			Output{Name: c.Matrix + ".weight.lora_b", Shape: []int{c.rank(), c.out()}, of: c, fold: alpha == 0})
	}
	return m, all
}

// tokens is the matrix whose first factor GGUF files have by tokens.
const tokens = "token_embd"

// Write writes the tensor's values at a type of plain numbers.
func (o *Output) Write(w io.Writer, to quant.Type) error {
	values, err := o.values()
	if err != nil {
		return err
	}
	size, err := to.RowBytes(len(values))
	if err != nil {
		return err
	}
	data := make([]byte, size)
	if err := quant.Quantize(to, data, values); err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

func (o *Output) values() ([]float32, error) {
	c := o.of
	if o.first {
		a, err := c.A.values()
		if err != nil || c.Tokens == (c.Matrix == tokens) {
			return a, err
		}
		turned := make([]float32, len(a))
		rows, columns := c.A.Shape[0], c.A.Shape[1]
		for i, x := range a {
			turned[i%columns*rows+i/columns] = x
		}
		return turned, nil
	}
	b, err := c.B.values()
	if err != nil {
		return nil, err
	}
	rank, values := c.rank(), make([]float32, 0, c.rank()*c.out())
	for i := range c.out() {
		row := i
		if c.Rows != nil {
			row = c.Rows[i]
		}
		values = append(values, b[row*rank:][:rank]...)
	}
	for i := range values {
		if o.fold {
			values[i] *= c.Scale
		}
	}
	return values, nil
}
