package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/ftype"
	"github.com/sluice-ai/sluice/storage/gguf"
	"github.com/sluice-ai/sluice/storage/imatrix"
)

// quantization is a model with the types that its tensors will have.
type quantization struct {
	file   *gguf.File
	recipe *ftype.Type
	matrix *imatrix.Matrix // nil without one
	layout *gguf.Layout    // of the new file
	keys   *meta.Map
}

// plan finds the types, and reports what cannot be done.
func (q *quantization) plan(o ftype.Options, requantize bool) error {
	tensors := make([]ftype.Tensor, len(q.file.Tensors))
	names := make([]string, len(tensors))
	for i, t := range q.file.Tensors {
		tensors[i], names[i] = ftype.Tensor{Name: t.Name, Type: t.Type, Shape: t.Shape}, t.Name
	}
	types, err := q.recipe.Types(&q.file.Meta, tensors, o)
	if err != nil {
		return err
	}
	var list []gguf.Tensor
	for _, i := range ftype.Order(names) {
		from, to := tensors[i], types[i]
		if from.Type != to && from.Type.Block() > 1 && !requantize {
			return fmt.Errorf("tensor %q: is quantised already, as %s: start from a file in BF16 or F16, "+
				"or add --allow-requantize", from.Name, from.Type)
		}
		list = append(list, gguf.Tensor{Name: from.Name, Type: to, Shape: from.Shape})
	}
	q.keys = q.recipe.Meta(&q.file.Meta)
	if q.matrix != nil {
		q.keys.Set("quantize.imatrix.entries_count", uint32(len(q.matrix.Entries)))
		q.keys.Set("quantize.imatrix.chunks_count", uint32(q.matrix.Chunks))
	}
	q.layout, err = gguf.Plan(q.keys, list)
	return err
}

// missing says what the plan lacks to be carried out: a matrix of this model, an encoder, or the importance of a tensor
// that would be useless without it.
func (q *quantization) missing() error {
	if q.matrix != nil && !slices.ContainsFunc(q.layout.Tensors, func(t gguf.Tensor) bool {
		_, ok := q.matrix.Entries[t.Name]
		return ok
	}) {
		return errors.New("the importance matrix has none of its tensors: make one of this model with sluice imatrix")
	}
	for _, t := range q.changed() {
		if !quant.HasEncoder(t.Type) {
			return fmt.Errorf("tensor %q: would be %s, which cannot be written yet: choose another file type",
				t.Name, t.Type)
		}
		if !q.recipe.NeedsImportance(t.Name, t.Type) {
			continue
		}
		if q.matrix == nil {
			return fmt.Errorf("tensor %q: so few bits as in %s need an importance matrix: make one with "+
				"sluice imatrix, and give it with --imatrix", t.Name, t.Type)
		}
		if _, ok := q.matrix.Entries[t.Name]; !ok {
			return fmt.Errorf("tensor %q: so few bits as in %s need its importance, which the matrix does not have: "+
				"make one of this model", t.Name, t.Type)
		}
	}
	return nil
}

// changed lists the tensors of the new file whose type is another one.
func (q *quantization) changed() []gguf.Tensor {
	return slices.DeleteFunc(slices.Clone(q.layout.Tensors), func(t gguf.Tensor) bool {
		from, _ := q.file.Tensor(t.Name)
		return from.Type == t.Type
	})
}

// importance is what the matrix says of the tensors that are rounded.
func (q *quantization) importance() map[string][]float32 {
	weights := map[string][]float32{}
	if q.matrix == nil {
		return weights
	}
	for _, t := range q.changed() {
		if entry, ok := q.matrix.Entries[t.Name]; ok {
			weights[t.Name] = entry.Importance()
		}
	}
	return weights
}

// sizes says how large the new file is, and what it was made from.
func (q *quantization) sizes() string {
	var parameters, bytes, before int64
	for _, t := range q.layout.Tensors {
		parameters += values(t.Shape)
		bytes += t.Size
	}
	for i := range q.file.Parts() {
		before += q.file.Part(i).Size
	}
	return fmt.Sprintf("%s, %s, %.2f bits per weight; it was %s", q.recipe.Name, binarySize(q.layout.Size),
		8*float64(bytes)/float64(max(parameters, 1)), binarySize(before))
}

// larger says why the new file has much more bits for a weight than its type, if it has.
func (q *quantization) larger() string {
	base := q.recipe.Base
	asked := 8 * float64(base.Bytes()) / float64(base.Block())
	var parameters, bytes int64
	unfilled, widest := 0, 0
	for _, t := range q.changed() {
		parameters, bytes = parameters+values(t.Shape), bytes+t.Size
		if t.Shape[0]%base.Block() != 0 {
			unfilled, widest = unfilled+1, max(widest, t.Shape[0])
		}
	}
	got := 8 * float64(bytes) / float64(max(parameters, 1))
	if parameters == 0 || got < 1.4*asked {
		return ""
	}
	why := "its rules give more bits to what small models suffer from most; --pure gives all the same"
	switch {
	case base == quant.MXFP4:
		why = "it is for experts, and gives everything else Q8_0: Q4_0 has about the same size for all"
	case unfilled > 0:
		why = fmt.Sprintf("rows of %d values do not fill its blocks of %d, so %s got a larger type: Q4_0, Q5_0 and Q8_0 have "+
			"blocks of 32", widest, base.Block(), count(unfilled, "tensor"))
	}
	return fmt.Sprintf("%s has %.2f bits per weight, but what was written has %.2f: %s", q.recipe.Name, asked, got, why)
}

// print lists what would be written.
func (q *quantization) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "tensor\tshape\tfrom\tto\tsize")
	for _, to := range q.layout.Tensors {
		from, _ := q.file.Tensor(to.Name)
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", printable(to.Name), shapeText(to.Shape), from.Type, to.Type,
			binarySize(to.Size))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if err := q.missing(); err != nil {
		fmt.Fprintf(w, "\n%v\n", err)
	}
	if note := q.larger(); note != "" {
		fmt.Fprintf(w, "\n%s\n", note)
	}
	_, err := fmt.Fprintf(w, "\n%s\n", q.sizes())
	return err
}
